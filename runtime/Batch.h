// Builds the KvcBatch of one step. Its arrays are reserved once, so that a
// step allocates nothing.
#ifndef KVC_RUNTIME_BATCH_H
#define KVC_RUNTIME_BATCH_H

#include "runtime/Abi.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvc {

/// Which rows of a sequence's new tokens have their logits computed.
enum class Outputs { None, Last, All };

class BatchBuilder {
public:
  BatchBuilder(const KvcProgramInfo &program, int64_t maxRows,
               int64_t maxOutputs);

  void clear();
  /// Adds `count` new rows of one sequence from position `first` on. The page
  /// table must stay where it is until batch().
  void add(const int32_t *tokens, int64_t count, int64_t first,
           const std::vector<int32_t> &pages, Outputs outputs);
  int64_t rows() const { return int64_t(Tokens.size()); }
  int64_t outputs() const { return int64_t(OutputRows.size()); }

  /// The step; valid until clear().
  const KvcBatch &batch();

private:
  void addAngles(int64_t position);

  const KvcProgramInfo &Program;
  std::vector<int32_t> Tokens;
  std::vector<int32_t> Positions;
  std::vector<int32_t> RowSequence;
  std::vector<int32_t> OutputRows;
  std::vector<KvcRowTile> Tiles;
  std::vector<const std::vector<int32_t> *> PageTables;
  std::vector<int32_t> Pages;
  std::vector<float> Rope;
  KvcBatch Batch = {};
};

} // namespace kvc

#endif // KVC_RUNTIME_BATCH_H

//===- RopeTables.h - The angle tables of a model's rotary embeddings -----===//
//
// The runtime fills, for each row of a step, the cosines and sines that the
// programs' kvc.rope ops need (KvcBatch::rope in runtime/Abi.h). Code
// generation reads them and emission describes them, so both number them here.
#ifndef KVC_CODEGEN_ROPETABLES_H
#define KVC_CODEGEN_ROPETABLES_H

#include "dialect/KvcDialect.h"

#include <vector>

namespace kvc {

/// The different (inv_freq, scale) pairs of a model's kvc.rope ops, in the
/// order in which a walk of the model meets them.
class RopeTables {
public:
  struct Entry {
    RealsAttr invFreq;
    double scale;
    int64_t offset; // in floats, in a row of KvcBatch::rope
    int64_t pairs() const { return invFreq.size(); }
  };

  explicit RopeTables(ModelOp model);

  llvm::ArrayRef<Entry> entries() const { return tables; }
  /// Floats a row has: a cosine and a sine for each pair of each table.
  int64_t floatsPerRow() const;
  /// Where the table of `op`, an op of the model, starts in a row.
  int64_t offsetOf(RopeOp op) const;

private:
  const Entry *find(RopeOp op) const;
  std::vector<Entry> tables;
};

} // namespace kvc

#endif // KVC_CODEGEN_ROPETABLES_H

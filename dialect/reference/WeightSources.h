//===- WeightSources.h - Weights, a row at a time --------------*- C++ -*-===//
#ifndef KVC_DIALECT_REFERENCE_WEIGHTSOURCES_H
#define KVC_DIALECT_REFERENCE_WEIGHTSOURCES_H

#include "codegen/formats/Format.h"
#include "codegen/formats/Seeded.h"
#include "dialect/KvcDialect.h"
#include "dialect/reference/Tensor.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"

namespace kvc {

/// One layer's matrix or vector. A vector is a matrix of one row.
class WeightReader {
public:
  /// Row `row` as f64, `columns()` values.
  void read(int64_t row, double *out);
  int64_t rows() const { return rowCount; }
  int64_t columns() const { return columnCount; }

private:
  friend class WeightSources;
  int64_t rowCount = 0;
  int64_t columnCount = 0;

  const uint8_t *bytes = nullptr; // of a file's slice; null if generated
  Format format = Format::F32;

  uint64_t seed = 0;
  llvm::StringRef name;
  SeededRange range = {0, 0};
  int64_t skip = 0;
  std::vector<uint8_t> generated;
};

/// The files and generators of a model. Files are mapped when first used and
/// must have the size that their kvc.source states.
class WeightSources {
public:
  /// `directory`: where the IR's file lies. A relative path is looked up there,
  /// then in the working directory.
  explicit WeightSources(llvm::StringRef directory = "")
      : directory(directory.str()) {}

  llvm::Expected<WeightReader> open(WeightOp weight, int64_t layer);

private:
  llvm::Expected<llvm::StringRef> map(SourceOp source);

  std::string directory;
  llvm::StringMap<std::unique_ptr<llvm::MemoryBuffer>> files;
};

} // namespace kvc

#endif // KVC_DIALECT_REFERENCE_WEIGHTSOURCES_H

//===- Tensor.h - The interpreter's values ----------------------*- C++ -*-===//
#ifndef KVC_DIALECT_REFERENCE_TENSOR_H
#define KVC_DIALECT_REFERENCE_TENSOR_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <vector>

namespace kvc {

/// A matrix of f64: the rows of a step, or of its outputs, with all trailing
/// dimensions flattened.
struct Tensor {
  Tensor() = default;
  Tensor(int64_t rows, int64_t width)
      : rows(rows), width(width), values(rows * width) {}

  double *row(int64_t r) { return values.data() + r * width; }
  const double *row(int64_t r) const { return values.data() + r * width; }

  int64_t rows = 0;
  int64_t width = 0;
  std::vector<double> values;
};

using TensorRef = std::shared_ptr<const Tensor>;

/// A one-line error that names where `op` was written, its name and the kernel
/// around it.
llvm::Error opError(mlir::Operation *op, const llvm::Twine &message);

} // namespace kvc

#endif // KVC_DIALECT_REFERENCE_TENSOR_H

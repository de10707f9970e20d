//===- RowEmitter.h - Values of a few columns of one row ------------------===//
//
// Ops are not run one after the other: what an op that stores needs is
// computed where it is needed, column by column, from slots, so nothing lies
// between the ops of a dispatch and no thread waits for another. One emitter
// serves kernels without an anchor and attention's epilogue.
//
//===----------------------------------------------------------------------===//
#ifndef KVC_CODEGEN_NVPTX_ROWEMITTER_H
#define KVC_CODEGEN_NVPTX_ROWEMITTER_H

#include "codegen/nvptx/ProgramContext.h"

#include "llvm/ADT/DenseMap.h"

namespace kvc::nvptx {

class RowEmitter {
public:
  explicit RowEmitter(KernelContext &context)
      : context(context), e(context.e) {}

  /// The most adjacent columns (4, 2 or 1) that the values of `ops` can be
  /// computed together in.
  static int widthOf(llvm::ArrayRef<mlir::Operation *> ops);

  /// Starts a window: `width` columns from `column` (a multiple of it) on, of
  /// row `row`.
  void begin(Value row, Value column, int width);

  /// The window's values of an anchor's result.
  void bind(Value value, ValueRange values);

  /// What a norm multiplies a row with; `mean` is null for rms_norm.
  struct Norm {
    Value mean, factor;
  };
  void setNorm(mlir::Operation *norm, Norm values) { norms[norm] = values; }

  /// The window's f32 values of `value`.
  Values values(Value value);

  /// Computes what `op` (a write or cache_append) stores of the window.
  void pull(mlir::Operation *op);
  /// Stores it.
  mlir::LogicalResult store(mlir::Operation *op);

  /// Failure once an op had no emitter; its error is printed then.
  mlir::LogicalResult status() const { return outcome; }

private:
  struct Place {
    Value row, column;
    bool window; // the window itself
  };
  Values valuesAt(Value value, Place place);
  Values elementwise(mlir::Operation *op, Place place);
  Values norm(mlir::Operation *op, Place place);
  Values rope(RopeOp op, Place place);
  Values vectorAt(mlir::FlatSymbolRefAttr weight, Value column);
  void append(CacheAppendOp op);
  Value storedValue(WriteOp op);
  Values unsupported(mlir::Operation *op, llvm::StringRef why);

  KernelContext &context;
  Emitter &e;
  Place window{};
  int width = 1;
  llvm::DenseMap<Value, Values> known;
  llvm::DenseMap<mlir::Operation *, Norm> norms;
  mlir::LogicalResult outcome = mlir::success();
};

/// `width` (1, 2 or 4) f32 from and to memory of f32, bf16 or f16.
Values loadFloats(Emitter &e, Type element, Value pointer, int width);
void storeFloats(Emitter &e, Type element, ValueRange values, Value pointer);
inline int64_t elementBytes(Type element) {
  return element.getIntOrFloatBitWidth() / 8;
}

} // namespace kvc::nvptx

#endif // KVC_CODEGEN_NVPTX_ROWEMITTER_H

//===- RowEmitter.h - Ops on a window of columns of one row ---------------===//
//
// One emitter an op serves three places: a kernel without an anchor (the window
// is the whole row), an anchor's prologue (likewise), and its epilogue (the
// window is the tile that was just computed). Values between ops live in slots
// where the schedule gave them one, else on the stack, in the nearest cache.
//
//===----------------------------------------------------------------------===//
#ifndef KVC_CODEGEN_CPU_ROWEMITTER_H
#define KVC_CODEGEN_CPU_ROWEMITTER_H

#include "codegen/cpu/ProgramContext.h"

#include "llvm/ADT/DenseMap.h"

namespace kvc::cpu {

class RowEmitter {
public:
  explicit RowEmitter(DispatchContext &context)
      : context(context), e(context.e) {}

  /// Starts a window: `columns` columns from `firstColumn` on, of row `row`.
  void begin(Value row, Value firstColumn, int64_t columns);

  /// Ops of one row differ in width where no window is shared.
  void setColumns(int64_t newColumns) { columns = newColumns; }

  /// The window's f32 values of `value` start at `window`; `slot` is the write
  /// that this satisfies, null for scratch.
  void bind(Value value, Value window, mlir::Operation *slot = nullptr) {
    windows[value] = window;
    placed[value] = slot;
  }

  /// The f32 window of a bound, read or emitted value.
  Value window(Value value);

  /// Emits one op. A cache_append whose key or value alone is bound
  /// writes that one.
  mlir::LogicalResult emit(mlir::Operation *op);

  /// The first write or stage of `value` as f32: the value is computed right
  /// there. Null if it only lives between ops.
  static mlir::Operation *f32Slot(Value value);
  static SlotAttr slotOf(mlir::Operation *writeOrStage);

private:
  Value destination(Value value);
  Value slotWindow(SlotAttr slot, Value row);
  bool bound(Value value) const { return windows.count(value) != 0; }

  void emitEmbed(EmbedOp op);
  void emitPanelRow(mlir::FlatSymbolRefAttr weight, Value index,
                    llvm::function_ref<void(Value offset, Value value)> use);
  void emitAddPositions(AddPositionsOp op);
  mlir::LogicalResult emitSelectRows(SelectRowsOp op);
  void emitNorm(mlir::Operation *op);
  void emitElementwise(mlir::Operation *op);
  mlir::LogicalResult emitQuantize(QuantizeOp op);
  void emitRope(RopeOp op);
  void emitAppend(CacheAppendOp op);
  void emitScores(ScoresOp op);
  void emitMaskedSoftmax(MaskedSoftmaxOp op);
  void emitContext(ContextOp op);
  void emitCopy(mlir::Operation *writeOrStage);
  /// Folds `body` over the window's registers.
  Value
  reduce(Value init,
         llvm::function_ref<Value(Value offset, Value mask, Value sum)> body);

  DispatchContext &context;
  Emitter &e;
  Value row, firstColumn;
  int64_t columns = 0;
  llvm::DenseMap<Value, Value> windows;
  llvm::DenseMap<Value, mlir::Operation *> placed;
  /// Stack space a value got in an earlier window of the same function.
  llvm::DenseMap<Value, Value> scratch;
};

/// The elements of a cache's K or V near a position, see docs/RUNTIME.md: K in
/// panels of `lanes` positions, [head_dim][lanes]; V as [position][head_dim].
struct CachePanels {
  CacheType cache;
  int lanes;
  int64_t elementBytes() const {
    return cache.getType().getIntOrFloatBitWidth() / 8;
  }
  int64_t panelBytes() const {
    return cache.getHeadDim() * lanes * elementBytes();
  }
  int64_t valueRowBytes() const { return cache.getHeadDim() * elementBytes(); }
};

} // namespace kvc::cpu

#endif // KVC_CODEGEN_CPU_ROWEMITTER_H

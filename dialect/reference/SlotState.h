//===- SlotState.h - What the arenas of a schedule hold ---------*- C++ -*-===//
#ifndef KVC_DIALECT_REFERENCE_SLOTSTATE_H
#define KVC_DIALECT_REFERENCE_SLOTSTATE_H

#include "dialect/KvcDialect.h"
#include "dialect/reference/Tensor.h"

namespace kvc {

/// The slots of L4 during one step. A slot remembers its producer, so that
/// reading one that was never written, or overwritten in whole or in part, is
/// an error. Dispatches without a barrier in between may run at the same time,
/// so a conflict between them is one, too.
class SlotState {
public:
  /// Forgets everything: arenas keep nothing from step to step. `function` is
  /// the program whose workspace sizes bound the slots.
  void beginStep(mlir::FunctionOpInterface function);
  /// A kernel or a dispatch begins or ends.
  llvm::Error enter(mlir::Operation *kernel);
  void leave();
  void barrier() { recent.clear(); }

  llvm::Expected<TensorRef> read(ReadOp op);
  llvm::Error write(WriteOp op, TensorRef value);
  llvm::Error stage(StageOp op);
  /// The current dispatch reads or writes a layer of a cache.
  llvm::Error touchCache(mlir::Operation *op, mlir::FlatSymbolRefAttr cache,
                         int64_t layer, bool writes);
  /// What the logits slot holds, null if nothing.
  TensorRef logits() const;

private:
  struct Held {
    SlotAttr slot;
    TensorRef value;
    mlir::Operation *producer;
    mlir::Operation *overwriter; // null while the value is whole
  };
  struct Access {
    DispatchOp dispatch;
    mlir::Attribute place; // a SlotAttr or a cache's symbol
    int64_t layer;         // of a cache
    bool writes;
  };

  llvm::Error checkBounds(mlir::Operation *op, SlotAttr slot);
  llvm::Error recordAccess(mlir::Operation *op, mlir::Attribute place,
                           int64_t layer, bool writes);

  ProgramOp program;
  DispatchOp current;
  std::vector<Held> held;
  std::vector<Access> recent; // since the last barrier
  std::vector<SlotAttr> staged;
};

} // namespace kvc

#endif // KVC_DIALECT_REFERENCE_SLOTSTATE_H

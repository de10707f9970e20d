//===- SlotPlan.h - Which values share a slot, and where it lies ----------===//
//
// The analysis behind kvc-plan-memory. Time is counted in steps, a kernel
// each, in the order of the program; a value lives from the kernel that makes
// it to the last that reads it, both included, so that a kernel never writes
// bytes that it reads. A layer body counts once: what lives across its back
// edge (a value from outside that the body reads) lives through all of it.
//
// Values that must share a slot (a carried value of kvc.layers in all its
// names) or may (an elementwise result and the operand that dies with it) form
// a class; classes that never live together share bytes.
#ifndef KVC_PASSES_SLOTPLAN_H
#define KVC_PASSES_SLOTPLAN_H

#include "dialect/KvcDialect.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

namespace kvc {

class SlotPlan {
public:
  /// All ops of the program are in kernels.
  explicit SlotPlan(ProgramOp program);

  /// Joins the carried values of kvc.layers. Where two of them live together,
  /// returns the use (of a kvc.layers or its yield) that needs a copy; null
  /// when all is joined.
  mlir::OpOperand *joinCarried();

  /// Joins elementwise results with operands that die with them. Returns how
  /// many.
  unsigned joinInPlace();

  /// Chooses the bytes of each class. Returns a value whose slot is too large,
  /// null if all is well.
  mlir::Value place();

  /// The slot of a value, null for one that needs none.
  SlotAttr slotOf(mlir::Value value) const { return slots.lookup(value); }
  int64_t arenaBytes(Space space) const {
    return space == Space::Outputs ? outputsBytes : rowsBytes;
  }

private:
  struct Class;

  void number();
  void addValue(mlir::Value value, int64_t from);
  bool dieInto(mlir::Value dying, mlir::Value made) const;
  bool interfere(mlir::Value one, mlir::Value other) const;
  bool join(mlir::Value one, mlir::Value other);

  ProgramOp program;
  llvm::DenseMap<mlir::Operation *, int64_t> first; // first step of an op
  llvm::DenseMap<mlir::Operation *, int64_t> end;   // behind its last step
  int64_t steps = 0;
  llvm::MapVector<mlir::Value, llvm::BitVector> alive;
  /// The class of a value, as its members.
  llvm::DenseMap<mlir::Value, unsigned> classOf;
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> classes;
  llvm::DenseMap<mlir::Value, SlotAttr> slots;
  int64_t rowsBytes = 0;
  int64_t outputsBytes = 0;
};

/// The slot's stride for a row of `type`: its bytes, rounded up to 64. -1 if
/// that is beyond what an arena can hold.
int64_t slotStride(ProgramOp program, mlir::Type type, SlotElement element);

} // namespace kvc

#endif // KVC_PASSES_SLOTPLAN_H

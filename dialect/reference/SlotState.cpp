//===- SlotState.cpp ------------------------------------------------------===//
#include "dialect/reference/SlotState.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace kvc;

/// Rows of two slots of different stride meet for some number of rows, so any
/// overlap of their bytes a row counts.
static bool overlap(SlotAttr a, SlotAttr b) {
  return a.getSpace() == b.getSpace() &&
         a.getOffset() < b.getOffset() + b.getStride() &&
         b.getOffset() < a.getOffset() + a.getStride();
}

static std::string text(Attribute attribute) {
  std::string result;
  llvm::raw_string_ostream(result) << attribute;
  return result;
}

static std::string kernelName(Operation *op) {
  if (auto dispatch = dyn_cast_or_null<DispatchOp>(op))
    return ("\"" + dispatch.getName() + "\" " + Twine(dispatch.getId())).str();
  if (auto kernel = dyn_cast_or_null<KernelOp>(op))
    return ("\"" + kernel.getName() + "\"").str();
  return "a lone op";
}

void SlotState::beginStep(FunctionOpInterface function) {
  program = dyn_cast<ProgramOp>(function.getOperation());
  current = {};
  held.clear();
  recent.clear();
  staged.clear();
}

/// The ops that `anchor` depends on inside its kernel: they are done with whole
/// rows before any tile of the anchor's output is written.
static llvm::SetVector<Operation *> prologueOf(Operation *anchor) {
  llvm::SetVector<Operation *> ops;
  ops.insert(anchor);
  for (size_t i = 0; i < ops.size(); ++i)
    for (Value operand : ops[i]->getOperands())
      if (Operation *def = operand.getDefiningOp();
          def && def->getBlock() == anchor->getBlock())
        ops.insert(def);
  return ops;
}

llvm::Error SlotState::enter(Operation *kernel) {
  current = dyn_cast<DispatchOp>(kernel);
  staged.clear();
  // Workers write tiles while others still read: a kernel may write over its
  // own input only value for value.
  llvm::SetVector<Operation *> prologue;
  for (Operation &op : kernel->getRegion(0).front())
    if (isAnchor(&op))
      prologue = prologueOf(&op);
  for (auto write : kernel->getRegion(0).getOps<WriteOp>())
    for (auto read : kernel->getRegion(0).getOps<ReadOp>()) {
      if (!overlap(read.getSlot(), write.getSlot()))
        continue;
      if (read.getSlot() != write.getSlot())
        return opError(write, "writes " + text(write.getSlot()) +
                                  " over a part of the kernel's input in " +
                                  text(read.getSlot()));
      if (prologue.contains(read))
        return opError(write, "writes over " + text(write.getSlot()) +
                                  ", which the kernel's anchor reads");
    }
  return llvm::Error::success();
}

void SlotState::leave() { current = {}; }

llvm::Error SlotState::checkBounds(Operation *op, SlotAttr slot) {
  if (!program)
    return llvm::Error::success();
  std::optional<int64_t> bytes;
  switch (slot.getSpace()) {
  case Space::Rows:
    bytes = program.getRowsBytes();
    break;
  case Space::Outputs:
    bytes = program.getOutputsBytes();
    break;
  case Space::Worker:
    bytes = program.getWorkerBytes();
    break;
  case Space::Logits:
    break;
  }
  if (bytes && slot.getOffset() + slot.getStride() > *bytes)
    return opError(op, text(slot) + " does not fit an arena of " +
                           Twine(*bytes) + " bytes a row");
  return llvm::Error::success();
}

llvm::Error SlotState::recordAccess(Operation *op, Attribute place,
                                    int64_t layer, bool writes) {
  if (!current)
    return llvm::Error::success();
  auto slot = dyn_cast<SlotAttr>(place);
  for (const Access &access : recent) {
    if (access.dispatch == current || !(access.writes || writes))
      continue;
    auto otherSlot = dyn_cast<SlotAttr>(access.place);
    bool conflict = slot && otherSlot
                        ? overlap(slot, otherSlot)
                        : place == access.place && layer == access.layer;
    if (conflict)
      return opError(op,
                     Twine(writes ? "writes " : "reads ") + text(place) +
                         ", which " + kernelName(access.dispatch) +
                         (access.writes ? " writes: " : " reads: ") +
                         "a kvc.barrier between the two dispatches is missing");
  }
  recent.push_back({current, place, layer, writes});
  return llvm::Error::success();
}

llvm::Expected<TensorRef> SlotState::read(ReadOp op) {
  SlotAttr slot = op.getSlot();
  if (llvm::Error error = checkBounds(op, slot))
    return std::move(error);
  if (llvm::Error error = recordAccess(op, slot, 0, /*writes=*/false))
    return std::move(error);
  for (const Held &entry : llvm::reverse(held)) {
    if (entry.slot != slot)
      continue;
    if (entry.overwriter)
      return opError(op, "reads " + text(slot) + ", which " +
                             kernelName(entry.producer->getParentOp()) +
                             " wrote and " +
                             kernelName(entry.overwriter->getParentOp()) +
                             " has overwritten");
    if (entry.value->width != rowElements(op.getType()) &&
        !ShapedType::isDynamic(
            cast<RankedTensorType>(op.getType()).getShape().back()))
      return opError(op, "reads " + Twine(rowElements(op.getType())) +
                             " values a row from " + text(slot) + ", where " +
                             kernelName(entry.producer->getParentOp()) +
                             " wrote " + Twine(entry.value->width));
    return entry.value;
  }
  return opError(op, "reads " + text(slot) + ", which nothing has written");
}

llvm::Error SlotState::write(WriteOp op, TensorRef value) {
  SlotAttr slot = op.getSlot();
  if (llvm::Error error = checkBounds(op, slot))
    return error;
  if (llvm::Error error = recordAccess(op, slot, 0, /*writes=*/true))
    return error;
  llvm::erase_if(held, [&](const Held &entry) { return entry.slot == slot; });
  for (Held &entry : held)
    if (!entry.overwriter && overlap(entry.slot, slot))
      entry.overwriter = op;
  held.push_back({slot, std::move(value), op, nullptr});
  return llvm::Error::success();
}

llvm::Error SlotState::stage(StageOp op) {
  if (llvm::Error error = checkBounds(op, op.getSlot()))
    return error;
  for (SlotAttr other : staged)
    if (overlap(other, op.getSlot()))
      return opError(op, "stages in " + text(op.getSlot()) +
                             " over this kernel's own " + text(other));
  staged.push_back(op.getSlot());
  return llvm::Error::success();
}

llvm::Error SlotState::touchCache(Operation *op, FlatSymbolRefAttr cache,
                                  int64_t layer, bool writes) {
  return recordAccess(op, cache, layer, writes);
}

TensorRef SlotState::logits() const {
  for (const Held &entry : held)
    if (entry.slot.getSpace() == Space::Logits && !entry.overwriter)
      return entry.value;
  return {};
}

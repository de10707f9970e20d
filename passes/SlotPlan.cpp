//===- SlotPlan.cpp - Which values share a slot, and where it lies --------===//
#include "passes/SlotPlan.h"
#include "passes/TargetInfo.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvc;

/// Rows of more bytes than this are refused: products with the rows of a step
/// stay far from overflow.
static constexpr int64_t MaxStride = int64_t(1) << 40;

int64_t kvc::slotStride(ProgramOp program, Type type, SlotElement element) {
  auto model = program->getParentOfType<ModelOp>();
  int64_t elements = 1;
  for (int64_t dim : cast<RankedTensorType>(type).getShape().drop_front()) {
    // Attention scores have room for every position.
    if (ShapedType::isDynamic(dim))
      dim = static_cast<int64_t>(model.getMaxContext());
    if (dim > MaxStride / elements)
      return -1;
    elements *= dim;
  }
  int64_t bytes = slotRowBytes(elements, element);
  return bytes > MaxStride ? -1 : llvm::alignTo(bytes, 64);
}

SlotPlan::SlotPlan(ProgramOp program) : program(program) {
  number();
  program.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto kernel = dyn_cast<KernelOp>(op))
      for (Value result : kernel.getResults())
        addValue(result, first[op]);
    if (auto layers = dyn_cast<LayersOp>(op)) {
      for (Value argument : layers.getBody().front().getArguments().drop_back())
        addValue(argument, first[op]);
      for (Value result : layers.getResults())
        addValue(result, end[op]);
    }
  });
  for (auto &[value, points] : alive) {
    classOf[value] = classes.size();
    classes.push_back({value});
  }
}

void SlotPlan::number() {
  auto visit = [&](Operation *op, const WalkStage &stage) {
    if (stage.isBeforeAllRegions())
      first[op] = steps;
    // Layers begin with a step of their own, in which carried values change
    // their names.
    if (isa<KernelOp>(op) ? stage.isAfterAllRegions()
                          : isa<LayersOp>(op) && stage.isBeforeAllRegions())
      ++steps;
    if (stage.isAfterAllRegions())
      end[op] = steps;
  };
  program->walk(visit);
}

/// Notes when `value`, made at kernel `from`, lives. What is only returned
/// needs no slot: it is written to the logits.
void SlotPlan::addValue(Value value, int64_t from) {
  if (llvm::all_of(
          value.getUses(),
          [](OpOperand &use) { return isa<ReturnOp>(use.getOwner()); }) &&
      value.getDefiningOp<KernelOp>())
    return;
  int64_t to = from;
  bool read = isa<BlockArgument>(value) || value.getDefiningOp<KernelOp>();
  for (OpOperand &use : value.getUses()) {
    Operation *user =
        value.getParentBlock()->findAncestorOpInBlock(*use.getOwner());
    int64_t until = end[user];
    // Carried in: the body's argument takes over where the body starts.
    if (user == use.getOwner() && isa<LayersOp>(user))
      until = first[user];
    read |= until > from;
    to = std::max(to, until - 1);
  }
  llvm::BitVector points(steps);
  if (read && from < steps)
    points.set(from, std::max(from, to) + 1);
  alive[value] = points;
}

/// `made` is an elementwise result that may be written over its operand
/// `dying`: each element is read by the worker that writes it, before it does.
bool SlotPlan::dieInto(Value dying, Value made) const {
  auto kernel = made.getDefiningOp<KernelOp>();
  if (!kernel || dying.getType() != made.getType())
    return false;
  Value inside = kernel.getBody().front().getTerminator()->getOperand(
      cast<OpResult>(made).getResultNumber());
  Operation *maker = inside.getDefiningOp();
  if (!maker || maker->getParentOp() != kernel ||
      !isa<AddOp, MulOp, ActivationOp, SoftCapOp>(maker) ||
      !llvm::is_contained(maker->getOperands(), dying))
    return false;
  // In a prologue, or beside ops that want whole rows, it is read in full.
  if (Operation *anchor = kernel.getAnchor()) {
    if (maker->isBeforeInBlock(anchor))
      return false;
  }
  for (OpOperand &use : dying.getUses())
    if (kernel->isProperAncestor(use.getOwner()) && use.getOwner() != maker)
      return false;
  return true;
}

bool SlotPlan::interfere(Value one, Value other) const {
  llvm::BitVector common = alive.find(one)->second;
  common &= alive.find(other)->second;
  if (common.none())
    return false;
  if (common.count() > 1)
    return true;
  auto madeHere = [&](Value value) {
    auto kernel = value.getDefiningOp<KernelOp>();
    return kernel && first.lookup(kernel) == common.find_first();
  };
  return !(madeHere(one) && dieInto(other, one)) &&
         !(madeHere(other) && dieInto(one, other));
}

bool SlotPlan::join(Value one, Value other) {
  unsigned into = classOf.lookup(one), from = classOf.lookup(other);
  if (into == from)
    return true;
  for (Value lhs : classes[into])
    for (Value rhs : classes[from])
      if (interfere(lhs, rhs))
        return false;
  for (Value value : classes[from])
    classOf[value] = into;
  classes[into].append(classes[from]);
  classes[from].clear();
  return true;
}

OpOperand *SlotPlan::joinCarried() {
  OpOperand *unjoined = nullptr;
  program.walk<WalkOrder::PreOrder>([&](LayersOp layers) {
    Block &body = layers.getBody().front();
    Operation *yield = body.getTerminator();
    // Values handed on under another name are copied first, all of them: a
    // swap reads both before either is overwritten.
    for (OpOperand &yielded : yield->getOpOperands()) {
      Value value = yielded.get();
      if (value != body.getArgument(yielded.getOperandNumber()) &&
          (isa<BlockArgument>(value) || value.getParentBlock() != &body)) {
        unjoined = &yielded;
        return WalkResult::interrupt();
      }
    }
    for (unsigned i = 0; i < layers.getNumResults(); ++i) {
      Value argument = body.getArgument(i);
      OpOperand &yielded = yield->getOpOperand(i);
      OpOperand &init = layers.getInitsMutable()[i];
      for (OpOperand *use : {&yielded, &init})
        if (!classOf.contains(use->get()) || !join(argument, use->get())) {
          unjoined = use;
          return WalkResult::interrupt();
        }
      // A result lives where none of these does any more.
      if (!join(argument, layers.getResult(i))) {
        unjoined = &init;
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  return unjoined;
}

unsigned SlotPlan::joinInPlace() {
  unsigned joined = 0;
  for (auto &[value, points] : alive) {
    auto kernel = value.getDefiningOp<KernelOp>();
    if (!kernel)
      continue;
    Value inside = kernel.getBody().front().getTerminator()->getOperand(
        cast<OpResult>(value).getResultNumber());
    Operation *maker = inside.getDefiningOp();
    if (!maker)
      continue;
    llvm::SmallVector<Value> operands;
    for (Value operand : maker->getOperands())
      if (classOf.contains(operand) && dieInto(operand, value))
        operands.push_back(operand);
    // The operand that already shares a slot is the one carried along.
    auto members = [&](Value operand) {
      return classes[classOf[operand]].size();
    };
    if (operands.size() == 2 && members(operands[1]) > members(operands[0]))
      std::swap(operands[0], operands[1]);
    for (Value operand : operands)
      if (join(operand, value)) {
        ++joined;
        break;
      }
  }
  return joined;
}

/// What the slot of `members` keeps: the form of a rounding, if all are results
/// of the same one.
static SlotElement elementOf(TargetAttr target, ArrayRef<Value> members) {
  std::optional<SlotElement> common;
  for (Value value : members) {
    auto kernel = value.getDefiningOp<KernelOp>();
    Operation *producer = nullptr;
    if (kernel)
      producer = kernel.getBody()
                     .front()
                     .getTerminator()
                     ->getOperand(cast<OpResult>(value).getResultNumber())
                     .getDefiningOp();
    SlotElement element = storedElement(target, producer);
    if (common && *common != element)
      return SlotElement::F32;
    common = element;
  }
  return *common;
}

Value SlotPlan::place() {
  struct Placed {
    Space space;
    llvm::BitVector points;
    int64_t offset, stride;
  };
  TargetAttr target = program->getParentOfType<ModelOp>().getTargetAttr();
  llvm::SmallVector<Placed> placed;
  for (auto &members : classes) {
    if (members.empty())
      continue;
    Placed slot{Space::Rows, llvm::BitVector(steps), 0, 0};
    auto type = cast<RankedTensorType>(members.front().getType());
    if (isa<OutputsAttr>(type.getEncoding()))
      slot.space = Space::Outputs;
    SlotElement element = elementOf(target, members);
    slot.stride = slotStride(program, type, element);
    if (slot.stride < 0)
      return members.front();
    for (Value value : members)
      slot.points |= alive.find(value)->second;
    if (slot.points.none())
      continue;
    // The lowest gap among the slots that live at the same time.
    llvm::SmallVector<const Placed *> beside;
    for (const Placed &other : placed)
      if (other.space == slot.space && other.points.anyCommon(slot.points))
        beside.push_back(&other);
    llvm::sort(beside, [](const Placed *lhs, const Placed *rhs) {
      return lhs->offset < rhs->offset;
    });
    for (const Placed *other : beside) {
      if (slot.offset + slot.stride <= other->offset)
        break;
      slot.offset = std::max(slot.offset, other->offset + other->stride);
    }
    int64_t &arena = slot.space == Space::Outputs ? outputsBytes : rowsBytes;
    arena = std::max(arena, slot.offset + slot.stride);
    if (arena > MaxStride)
      return members.front();
    auto attribute = SlotAttr::get(program.getContext(), slot.space,
                                   slot.offset, slot.stride, element);
    for (Value value : members)
      slots[value] = attribute;
    placed.push_back(slot);
  }
  return {};
}

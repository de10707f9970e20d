//===- KernelFusion.cpp - The one way ops become a kernel -----------------===//
#include "passes/KernelFusion.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace kvc;

Value kvc::resolve(Value value) {
  while (auto kernel = value.getDefiningOp<KernelOp>())
    value = kernel.getBody().front().getTerminator()->getOperand(
        cast<OpResult>(value).getResultNumber());
  return value;
}

llvm::SmallVector<Operation *> kvc::usersOf(Value value) {
  llvm::SmallVector<Operation *> users;
  for (OpOperand &use : value.getUses()) {
    Operation *owner = use.getOwner();
    auto kernel = dyn_cast<KernelOp>(owner->getParentOp());
    if (isa<YieldOp>(owner) && kernel)
      users.append(usersOf(kernel.getResult(use.getOperandNumber())));
    else
      users.push_back(owner);
  }
  return users;
}

Operation *kvc::kernelOf(Operation *op) {
  auto kernel = op->getParentOfType<KernelOp>();
  return kernel ? kernel.getOperation() : op;
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

namespace {
enum class Role { Before, Anchor, After };
} // namespace

using Roles = llvm::DenseMap<Operation *, Role>;

/// Before or after the anchor, by what an op depends on.
static Roles findRoles(ArrayRef<Operation *> ops) {
  Roles roles;
  for (Operation *op : ops) {
    Role role = isAnchor(op) ? Role::Anchor : Role::Before;
    for (Value operand : op->getOperands()) {
      auto producer = roles.find(resolve(operand).getDefiningOp());
      if (producer != roles.end() && producer->second != Role::Before &&
          role != Role::Anchor)
        role = Role::After;
    }
    roles[op] = role;
  }
  return roles;
}

bool kvc::isRounding(Operation *op) {
  return isa_and_present<QuantizeOp, RoundOp>(op);
}

static bool isSlotOp(Operation *op) {
  return isa<ReadOp, WriteOp, StageOp>(op);
}

static bool runsOnRows(Operation *op) {
  return isa<SelectRowsOp, AddOp, RmsNormOp, LayerNormOp, QuantizeOp, RoundOp>(
      op);
}

static bool runsOnTiles(Operation *op) {
  return isa<AddOp, MulOp, ActivationOp, SoftCapOp, RopeOp, CacheAppendOp>(
             op) ||
         isRounding(op);
}

static std::string nameOf(Operation *op) {
  return op->getName().getStringRef().str();
}

static std::string anchorlessError(ArrayRef<Operation *> ops) {
  auto computes =
      llvm::make_filter_range(ops, [](Operation *op) { return !isSlotOp(op); });
  if (llvm::range_size(computes) < 2)
    return {};
  for (Operation *op : computes)
    if (!runsOnRows(op) && !isa<MulOp, ActivationOp, SoftCapOp>(op))
      return nameOf(op) + " shares a kernel only with an anchor";
  return {};
}

static std::string prologueError(Operation *op, const Roles &roles) {
  if (isSlotOp(op))
    return {};
  if (!runsOnRows(op))
    return nameOf(op) + " cannot run before an anchor";
  for (Value result : op->getResults())
    for (Operation *user : usersOf(result)) {
      auto role = roles.find(user);
      if (role == roles.end() || role->second == Role::After)
        return "every worker computes " + nameOf(op) +
               " for itself, but something besides the anchor uses it";
    }
  return {};
}

static std::string epilogueError(Operation *op, Operation *anchor,
                                 const Roles &roles) {
  if (isSlotOp(op))
    return {};
  if (!runsOnTiles(op) || (isa<AttentionOp>(anchor) && !isRounding(op)))
    return nameOf(op) + " cannot run on the tiles of " + nameOf(anchor);
  if (auto quantize = dyn_cast<QuantizeOp>(op)) {
    auto type = cast<RankedTensorType>(quantize.getType());
    if (type.getRank() == 3 && type.getDimSize(2) % 32 != 0)
      return "a head of " + std::to_string(type.getDimSize(2)) +
             " values is not whole blocks of 32";
  }
  for (Value operand : op->getOperands()) {
    auto role = roles.find(resolve(operand).getDefiningOp());
    if (role != roles.end() && role->second == Role::Before &&
        !isa<ReadOp>(role->first))
      return nameOf(op) + " needs what " + nameOf(role->first) +
             " makes before the anchor";
  }
  return {};
}

/// As kernelError; `combined` linears count as one anchor.
static std::string bodyError(ArrayRef<Operation *> ops,
                             ArrayRef<LinearOp> combined) {
  Operation *anchor = nullptr;
  for (Operation *op : ops) {
    if (isa<LayersOp, KernelOp, DispatchOp, BarrierOp>(op))
      return nameOf(op) + " cannot be in a kernel";
    if (!isAnchor(op))
      continue;
    auto linear = dyn_cast<LinearOp>(op);
    if (anchor && !(linear && llvm::is_contained(combined, linear) &&
                    isa<LinearOp>(anchor) &&
                    llvm::is_contained(combined, cast<LinearOp>(anchor))))
      return "it would have two anchors";
    anchor = op;
  }
  if (!anchor)
    return anchorlessError(ops);
  Roles roles = findRoles(ops);
  for (Operation *op : ops) {
    std::string error;
    if (roles[op] == Role::Before)
      error = isa<AttentionOp>(anchor) && !isSlotOp(op)
                  ? nameOf(op) + " cannot run before an attention"
                  : prologueError(op, roles);
    else if (roles[op] == Role::After)
      error = epilogueError(op, anchor, roles);
    if (!error.empty())
      return error;
  }
  return {};
}

std::string kvc::kernelError(ArrayRef<Operation *> ops) {
  return bodyError(ops, {});
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

AttentionPart kvc::attentionPart(Value value) {
  for (Operation *user : usersOf(value)) {
    AttentionPart part = AttentionPart::None;
    if (isa<RopeOp, RoundOp>(user))
      part = attentionPart(user->getResult(0));
    else if (isa<ScoresOp, AttentionOp>(user))
      part = AttentionPart::Query;
    else if (auto append = dyn_cast<CacheAppendOp>(user))
      part = resolve(append.getKey()) == value ? AttentionPart::Key
                                               : AttentionPart::Value;
    if (part != AttentionPart::None)
      return part;
  }
  return AttentionPart::None;
}

template <typename... Ops> static bool feeds(Value value) {
  return llvm::any_of(usersOf(value),
                      [](Operation *user) { return isa<Ops...>(user); });
}

static llvm::StringRef linearName(LinearOp linear) {
  Value first = linear.getOutputs().front();
  AttentionPart part = attentionPart(first);
  if (linear.getNumResults() > 1)
    return part != AttentionPart::None         ? "qkv"
           : feeds<ActivationOp, MulOp>(first) ? "gate_up"
                                               : "linear";
  if (part != AttentionPart::None)
    return part == AttentionPart::Query ? "q"
           : part == AttentionPart::Key ? "k"
                                        : "v";
  auto type = cast<RankedTensorType>(first.getType());
  if (isa_and_present<OutputsAttr>(type.getEncoding()))
    return "head";
  for (Operation *user : usersOf(first)) {
    auto activation = dyn_cast<ActivationOp>(user);
    if (activation)
      return feeds<MulOp>(activation.getResult()) ? "gate" : "up";
    if (isa<MulOp>(user))
      return "up";
  }
  Value input = resolve(linear.getInput());
  if (Operation *rounding = input.getDefiningOp(); isRounding(rounding))
    input = resolve(rounding->getOperand(0));
  Operation *producer = input.getDefiningOp();
  if (isa_and_present<AttentionOp, ContextOp>(producer))
    return "out";
  if (isa_and_present<MulOp, ActivationOp>(producer))
    return "down";
  return "linear";
}

/// A kernel is named by what it does in the model.
static std::string kernelName(KernelOp kernel) {
  Operation *anchor = kernel.getAnchor();
  if (auto linear = dyn_cast_or_null<LinearOp>(anchor))
    return linearName(linear).str();
  if (anchor)
    return "attention";
  Operation *named = nullptr;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    named = &op;
    if (isa<RmsNormOp, LayerNormOp>(op))
      return "norm";
  }
  return named->getName().stripDialect().str();
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

/// `later` must stay behind `earlier`, which stands before it in one block.
static bool dependsOn(Operation *later, Operation *earlier) {
  WalkResult uses = later->walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        if (earlier->isAncestor(producer))
          return WalkResult::interrupt();
    return WalkResult::advance();
  });
  if (uses.wasInterrupted())
    return true;
  auto laterEffects = getEffectsRecursively(later);
  auto earlierEffects = getEffectsRecursively(earlier);
  if (!laterEffects || !earlierEffects)
    return true;
  for (const MemoryEffects::EffectInstance &one : *laterEffects)
    for (const MemoryEffects::EffectInstance &other : *earlierEffects)
      if (one.getResource() == other.getResource() &&
          (isa<MemoryEffects::Write>(one.getEffect()) ||
           isa<MemoryEffects::Write>(other.getEffect())))
        return true;
  return false;
}

/// The ops between the first and the last member that must run after the
/// members. False if a member needs one of them.
static bool findOpsBehind(ArrayRef<Operation *> members,
                          llvm::SmallVectorImpl<Operation *> &behind) {
  llvm::SmallVector<Operation *> seen;
  for (Operation *op = members.front();; op = op->getNextNode()) {
    bool isMember = llvm::is_contained(members, op);
    auto needs = [&](Operation *earlier) { return dependsOn(op, earlier); };
    if (isMember) {
      if (llvm::any_of(behind, needs))
        return false;
      seen.push_back(op);
    } else if (llvm::any_of(seen, needs) || llvm::any_of(behind, needs)) {
      behind.push_back(op);
    }
    if (op == members.back())
      return true;
  }
}

/// The lone ops and kernels that hold `ops`, in the order of their block; empty
/// where they are not all in one.
static llvm::SmallVector<Operation *> findMembers(ArrayRef<Operation *> ops) {
  llvm::SmallSetVector<Operation *, 8> members;
  for (Operation *op : ops)
    members.insert(kernelOf(op));
  for (Operation *member : members)
    if (member->getBlock() != members.front()->getBlock())
      return {};
  auto sorted = members.takeVector();
  llvm::sort(sorted, [](Operation *lhs, Operation *rhs) {
    return lhs->isBeforeInBlock(rhs);
  });
  return {sorted.begin(), sorted.end()};
}

static llvm::SmallVector<Operation *> flatten(ArrayRef<Operation *> members) {
  llvm::SmallVector<Operation *> ops;
  for (Operation *member : members) {
    if (auto kernel = dyn_cast<KernelOp>(member))
      for (Operation &op : kernel.getBody().front().without_terminator())
        ops.push_back(&op);
    else
      ops.push_back(member);
  }
  return ops;
}

/// Gives a kernel the results that are used outside it, each once, and its
/// name. Uses outside already name the values inside.
static KernelOp finishKernel(RewriterBase &rewriter, KernelOp kernel,
                             bool rename) {
  llvm::SmallVector<Value> escaping;
  Block &body = kernel.getBody().front();
  auto isOutside = [&](OpOperand &use) {
    return !kernel->isProperAncestor(use.getOwner());
  };
  for (Operation &op : body)
    for (Value result : op.getResults())
      if (llvm::any_of(result.getUses(), isOutside))
        escaping.push_back(result);
  rewriter.setInsertionPoint(kernel);
  auto finished =
      KernelOp::create(rewriter, kernel.getLoc(),
                       TypeRange(ValueRange(escaping)), kernel.getName());
  finished.getBody().takeBody(kernel.getBody());
  Block &block = finished.getBody().front();
  rewriter.setInsertionPointToEnd(&block);
  YieldOp::create(rewriter, kernel.getLoc(), escaping);
  for (auto [inside, result] : llvm::zip_equal(escaping, finished.getResults()))
    rewriter.replaceUsesWithIf(inside, result, [&](OpOperand &use) {
      return !finished->isProperAncestor(use.getOwner());
    });
  rewriter.eraseOp(kernel);
  if (rename)
    finished.setName(kernelName(finished));
  return finished;
}

/// Moves what `member` computes to the end of `body`.
static void takeOps(RewriterBase &rewriter, Operation *member, Block *body) {
  auto kernel = dyn_cast<KernelOp>(member);
  if (!kernel) {
    rewriter.moveOpBefore(member, body, body->end());
    return;
  }
  Block &inner = kernel.getBody().front();
  Operation *yield = inner.getTerminator();
  rewriter.replaceAllUsesWith(kernel.getResults(), yield->getOperands());
  rewriter.eraseOp(yield);
  while (!inner.empty())
    rewriter.moveOpBefore(&inner.front(), body, body->end());
  rewriter.eraseOp(kernel);
}

/// One kernel of `members`, unfinished: without results and terminator.
static KernelOp gather(RewriterBase &rewriter, ArrayRef<Operation *> members,
                       ArrayRef<Operation *> behind) {
  rewriter.setInsertionPointAfter(members.back());
  auto kernel =
      KernelOp::create(rewriter, members.back()->getLoc(), TypeRange(), "");
  Operation *last = kernel;
  for (Operation *op : behind) {
    rewriter.moveOpAfter(op, last);
    last = op;
  }
  Block *body = rewriter.createBlock(&kernel.getBody());
  for (Operation *member : members)
    takeOps(rewriter, member, body);
  return kernel;
}

/// Ops that the anchor does not need may stand behind it, prologue ops may not.
static void orderByRole(RewriterBase &rewriter, KernelOp kernel) {
  Operation *anchor = kernel.getAnchor();
  if (!anchor)
    return;
  llvm::SmallVector<Operation *> ops;
  for (Operation &op : kernel.getBody().front())
    ops.push_back(&op);
  Roles roles = findRoles(ops);
  for (Operation *op : ops)
    if (roles[op] == Role::Before && anchor->isBeforeInBlock(op))
      rewriter.moveOpBefore(op, anchor);
}

KernelOp kvc::fuseIntoKernel(RewriterBase &rewriter,
                             ArrayRef<Operation *> ops) {
  llvm::SmallVector<Operation *> members = findMembers(ops);
  if (members.empty())
    return {};
  if (members.size() == 1 && isa<KernelOp>(members.front()))
    return cast<KernelOp>(members.front());
  llvm::SmallVector<Operation *> behind;
  if (!findOpsBehind(members, behind) || !kernelError(flatten(members)).empty())
    return {};
  KernelOp kernel = gather(rewriter, members, behind);
  orderByRole(rewriter, kernel);
  return finishKernel(rewriter, kernel, /*rename=*/true);
}

LinearOp kvc::fuseLinears(RewriterBase &rewriter, ArrayRef<LinearOp> linears) {
  llvm::SmallVector<Operation *> ops(linears.begin(), linears.end());
  llvm::SmallVector<Operation *> members = findMembers(ops);
  llvm::SmallVector<Operation *> behind;
  if (members.empty() || !findOpsBehind(members, behind) ||
      !bodyError(flatten(members), linears).empty())
    return {};
  llvm::SmallVector<Attribute> weights, biases;
  llvm::SmallVector<Type> types;
  bool anyBias = false;
  for (LinearOp linear : linears) {
    llvm::append_range(weights, linear.getWeights());
    llvm::append_range(types, linear.getResultTypes());
    if (auto own = linear.getBiases()) {
      llvm::append_range(biases, *own);
      anyBias = true;
    } else {
      biases.append(linear.getNumResults(), rewriter.getUnitAttr());
    }
  }
  KernelOp kernel = gather(rewriter, members, behind);
  LinearOp first = linears.front();
  for (LinearOp linear : linears)
    if (linear->isBeforeInBlock(first))
      first = linear;
  rewriter.setInsertionPoint(first);
  auto combined =
      LinearOp::create(rewriter, first.getLoc(), types, first.getInput(),
                       rewriter.getArrayAttr(weights), first.getLayer(),
                       anyBias ? rewriter.getArrayAttr(biases) : ArrayAttr());
  unsigned next = 0;
  for (LinearOp linear : linears) {
    unsigned count = linear.getNumResults();
    rewriter.replaceOp(linear, combined.getResults().slice(next, count));
    next += count;
  }
  orderByRole(rewriter, kernel);
  finishKernel(rewriter, kernel, /*rename=*/true);
  return combined;
}

void kvc::wrapLoneOps(RewriterBase &rewriter, ProgramOp program) {
  llvm::SmallVector<Operation *> lone;
  llvm::SmallVector<KernelOp> kernels;
  program.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto kernel = dyn_cast<KernelOp>(op)) {
      kernels.push_back(kernel);
      return WalkResult::skip();
    }
    if (!isa<ProgramOp, LayersOp>(op) && !op->hasTrait<OpTrait::IsTerminator>())
      lone.push_back(op);
    return WalkResult::advance();
  });
  for (KernelOp kernel : kernels) {
    Operation *yield = kernel.getBody().front().getTerminator();
    rewriter.replaceAllUsesWith(kernel.getResults(), yield->getOperands());
    rewriter.eraseOp(yield);
    if (kernel.getBody().front().empty())
      rewriter.eraseOp(kernel);
    else
      finishKernel(rewriter, kernel, /*rename=*/false);
  }
  for (Operation *op : llvm::reverse(lone)) {
    if (isOpTriviallyDead(op))
      rewriter.eraseOp(op);
    else
      finishKernel(rewriter, gather(rewriter, {op}, {}), /*rename=*/true);
  }
}

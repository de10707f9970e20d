//===- RowAttention.cpp - Attention that stores its scores ----------------===//
//
// A head's scores take max_context entries of a row, of which the first
// position + 1 are meant: what the mask would hide is neither computed nor
// read.
//
//===----------------------------------------------------------------------===//
#include "codegen/nvptx/RowAttention.h"
#include "codegen/nvptx/AttentionTile.h"
#include "codegen/nvptx/RowEmitter.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

namespace {

class RowAttention {
public:
  RowAttention(DispatchContext &context, Operation *op)
      : context(context), op(op), stride(context.model.model.getMaxContext()) {}

  LogicalResult emit();

private:
  LogicalResult check();
  void emitScores(KernelContext &k, ScoresOp scores, Value row, Value head,
                  Value length);
  void emitSoftmax(KernelContext &k, Value row, Value head, Value length);
  void emitContext(KernelContext &k, ContextOp sums, Value row, Value head,
                   Value length);
  Value load(KernelContext &k, Value base, Value index) {
    return loadFloats(
        k.e, k.element(from),
        k.e.at(base, k.e.mul(index, elementBytes(k.element(from)))), 1)[0];
  }
  void store(KernelContext &k, Value value, Value base, Value index) {
    storeFloats(k.e, k.element(to), value,
                k.e.at(base, k.e.mul(index, elementBytes(k.element(to)))));
  }
  /// Element `index` of a head of head_dim values in the cache.
  Value cached(KernelContext &k, CacheType cache, Value plane, Value position,
               Value dim);

  DispatchContext &context;
  Operation *op;
  int64_t stride;
  SlotAttr from, to;
};
} // namespace

static constexpr int Threads = 128;

LogicalResult RowAttention::check() {
  auto read = op->getOperand(0).getDefiningOp<ReadOp>();
  if (!read)
    return op->emitOpError("needs its input in a slot");
  from = read.getSlot();
  if (!op->hasOneUse())
    return op->emitOpError("needs one use on cuda, a kvc.write");
  auto write = dyn_cast<WriteOp>(*op->user_begin());
  if (!write)
    return op->emitOpError("needs its result in a slot on cuda");
  to = write.getSlot();
  for (Operation &other :
       context.dispatch.getBody().front().without_terminator())
    if (&other != op && &other != write && !isa<ReadOp>(other))
      return other.emitOpError("stands beside ")
             << op->getName() << ", which needs a dispatch of its own on cuda";
  return success();
}

Value RowAttention::cached(KernelContext &k, CacheType cache, Value plane,
                           Value position, Value dim) {
  Emitter &e = k.e;
  int64_t bytes = elementBytes(cache.getType());
  Value index =
      e.add(e.mul(e.rem(position, cache.getPage()), cache.getHeadDim()), dim);
  return loadFloats(e, cache.getType(), e.at(plane, e.mul(index, bytes)), 1)[0];
}

void RowAttention::emitScores(KernelContext &k, ScoresOp scores, Value row,
                              Value head, Value length) {
  Emitter &e = k.e;
  CacheType cache = lookupCache(scores, scores.getCacheAttr()).getCacheType();
  int64_t headDim = cache.getHeadDim();
  auto query = cast<RankedTensorType>(scores.getQuery().getType());
  int64_t group = query.getDimSize(1) / cache.getKvHeads();
  Value in = k.slotRow(from, row), out = k.slotRow(to, row);
  Value sequence = k.rowSequence(row);
  e.loop(e.tid(), length, Threads, [&](Value position) {
    Value page = k.page(cache, sequence, e.div(position, cache.getPage()));
    Value plane = k.headPlane(cache, page, false, e.div(head, group));
    Value sum = e.loop(
        e.c(0), e.c(headDim), e.c(1), {e.real(0.0)},
        [&](Value dim, ValueRange sums) -> Values {
          Value q = load(k, in, e.add(e.mul(head, headDim), dim));
          return {e.fma(q, cached(k, cache, plane, position, dim), sums[0])};
        })[0];
    store(k, e.mulf(sum, e.real(scores.getScale().convertToDouble())), out,
          e.add(e.mul(head, stride), position));
  });
}

void RowAttention::emitSoftmax(KernelContext &k, Value row, Value head,
                               Value length) {
  // One warp: these are the kernels for checking, not for speed.
  Emitter &e = k.e;
  Value in = k.slotRow(from, row), out = k.slotRow(to, row);
  Value first = e.mul(head, stride);
  e.ifThen(e.less(e.tid(), 32), [&] {
    Value top =
        e.loop(e.lane(), length, e.c(32), {e.real(LowScore)},
               [&](Value at, ValueRange tops) -> Values {
                 return {e.maxf(tops[0], load(k, in, e.add(first, at)))};
               })[0];
    top = e.maxLanes(top);
    auto weight = [&](Value at) {
      return e.exp(e.subf(load(k, in, e.add(first, at)), top));
    };
    Value sum = e.loop(e.lane(), length, e.c(32), {e.real(0.0)},
                       [&](Value at, ValueRange sums) -> Values {
                         return {e.addf(sums[0], weight(at))};
                       })[0];
    sum = e.sumLanes(sum);
    e.loop(e.lane(), length, 32, [&](Value at) {
      store(k, e.divf(weight(at), sum), out, e.add(first, at));
    });
  });
}

void RowAttention::emitContext(KernelContext &k, ContextOp sums, Value row,
                               Value head, Value length) {
  Emitter &e = k.e;
  CacheType cache = lookupCache(sums, sums.getCacheAttr()).getCacheType();
  int64_t headDim = cache.getHeadDim();
  auto type = cast<RankedTensorType>(sums.getType());
  int64_t group = type.getDimSize(1) / cache.getKvHeads();
  Value in = k.slotRow(from, row), out = k.slotRow(to, row);
  Value sequence = k.rowSequence(row);
  e.loop(e.tid(), e.c(headDim), Threads, [&](Value dim) {
    Value sum = e.loop(
        e.c(0), length, e.c(1), {e.real(0.0)},
        [&](Value position, ValueRange carried) -> Values {
          Value page =
              k.page(cache, sequence, e.div(position, cache.getPage()));
          Value plane = k.headPlane(cache, page, true, e.div(head, group));
          Value weight = load(k, in, e.add(e.mul(head, stride), position));
          return {e.fma(weight, cached(k, cache, plane, position, dim),
                        carried[0])};
        })[0];
    store(k, sum, out, e.add(e.mul(head, headDim), dim));
  });
}

LogicalResult RowAttention::emit() {
  if (failed(check()))
    return failure();
  int64_t heads =
      cast<RankedTensorType>(op->getResult(0).getType()).getDimSize(1);
  KernelContext k = context.begin("", Threads);
  Emitter &e = k.e;
  e.waitForPrevious();
  e.launchNext();
  Value row = e.ctaid(0), head = e.ctaid(1);
  Value length = e.add(k.position(row), 1);
  if (auto scores = dyn_cast<ScoresOp>(op))
    emitScores(k, scores, row, head, length);
  else if (auto sums = dyn_cast<ContextOp>(op))
    emitContext(k, sums, row, head, length);
  else
    emitSoftmax(k, row, head, length);

  Launch &launch = context.launch(k);
  launch.grid[0] = {Extent::Rows, 1};
  launch.grid[1] = {Extent::Fixed, heads};
  return success();
}

LogicalResult kvc::nvptx::emitRowAttention(DispatchContext &context,
                                           Operation *op) {
  return RowAttention(context, op).emit();
}

//===- RowAttention.cpp - Rope, the cache and unfused attention, by rows --===//
#include "codegen/cpu/RowEmitter.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::cpu;

void RowEmitter::emitRope(RopeOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  int64_t headDim = type.getDimSize(2);
  int64_t pairs = static_cast<int64_t>(op.getInvFreq().size());
  Value in = window(op.getInput());
  Value out = destination(op.getResult());
  Value angles = context.ropeAngles(op, row);
  int64_t lanes = e.lanes;
  auto maskFor = [&](int64_t count) {
    return count >= lanes ? Value() : e.tailMask(std::max<int64_t>(count, 0));
  };
  auto loadAt = [&](Value base, Value byte, int64_t element, int64_t count) {
    if (count <= 0)
      return e.splatReal(0.0);
    return e.loadColumns(e.at(base, byte), e.c(element), maskFor(count));
  };
  auto storeAt = [&](Value value, Value byte, int64_t element, int64_t count) {
    e.storeColumns(value, e.at(out, byte), e.c(element), maskFor(count));
  };
  SmallVector<int64_t> even, odd, first, second, swap;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    even.push_back(2 * lane);
    odd.push_back(2 * lane + 1);
    first.push_back(lane / 2 * 2);
    second.push_back(lane / 2 * 2 + 1);
    swap.push_back(lane ^ 1);
  }

  e.loop(e.c(0), e.c(columns / headDim), 1, [&](Value head) {
    Value byte = e.mul(head, headDim * 4);
    Value zeroByte = e.c(0);
    if (op.getLayout() == RopeLayout::Interleaved) {
      SmallVector<Attribute> signs;
      for (int64_t lane = 0; lane < lanes; ++lane)
        signs.push_back(e.b.getF32FloatAttr(lane % 2 ? 1.0f : -1.0f));
      Value sign = arith::ConstantOp::create(
          e.b, e.loc, DenseElementsAttr::get(e.vec(e.f32), signs));
      for (int64_t i = 0; i < 2 * pairs; i += lanes) {
        int64_t count = 2 * pairs - i;
        Value x = loadAt(in, byte, i, count);
        Value table = loadAt(angles, zeroByte, i, count);
        Value cos = e.shuffle(table, table, first);
        Value sin = e.mulf(e.shuffle(table, table, second), sign);
        Value turned = e.fma(e.shuffle(x, x, swap), sin, e.mulf(x, cos));
        storeAt(turned, byte, i, count);
      }
    } else {
      for (int64_t i = 0; i < pairs; i += lanes) {
        int64_t count = pairs - i;
        Value low = loadAt(angles, zeroByte, 2 * i, 2 * count);
        Value high = loadAt(angles, zeroByte, 2 * i + lanes, 2 * count - lanes);
        Value cos = e.shuffle(low, high, even);
        Value sin = e.shuffle(low, high, odd);
        Value x = loadAt(in, byte, i, count);
        Value y = loadAt(in, byte, i + pairs, count);
        storeAt(e.fma(e.negf(y), sin, e.mulf(x, cos)), byte, i, count);
        storeAt(e.fma(x, sin, e.mulf(y, cos)), byte, i + pairs, count);
      }
    }
    for (int64_t i = 2 * pairs; i < headDim; i += lanes)
      storeAt(loadAt(in, byte, i, headDim - i), byte, i, headDim - i);
  });
}

void RowEmitter::emitAppend(CacheAppendOp op) {
  CacheType cache = lookupCache(op, op.getCacheAttr()).getCacheType();
  CachePanels panels{cache, e.lanes};
  int64_t headDim = cache.getHeadDim();
  Type element = cache.getType();
  Value position = context.position(row);
  Value page = context.page(cache, context.rowSequence(row),
                            e.div(position, cache.getPage()));
  Value inPage = e.rem(position, cache.getPage());
  Value firstHead = e.div(firstColumn, headDim);

  auto write = [&](Value source, bool isValue) {
    e.loop(e.c(0), e.c(columns / headDim), 1, [&](Value head) {
      Value in = e.at(source, e.mul(head, headDim * 4));
      Value plane =
          context.headPlane(cache, page, isValue, e.add(firstHead, head));
      if (isValue) {
        Value target = e.at(plane, e.mul(inPage, panels.valueRowBytes()));
        e.forColumns(headDim, [&](Value offset, Value mask) {
          Value stored = e.narrow(e.loadColumns(in, offset, mask), element);
          Value at = e.at(target, e.mul(offset, panels.elementBytes()));
          if (mask)
            e.storeMasked(stored, at, mask, 1);
          else
            e.store(stored, at, 1);
        });
        return;
      }
      Value panel =
          e.at(plane, e.mul(e.div(inPage, e.lanes), panels.panelBytes()));
      Value lane =
          e.at(panel, e.mul(e.rem(inPage, e.lanes), panels.elementBytes()));
      e.loop(e.c(0), e.c(headDim), 1, [&](Value d) {
        Value x = e.load(e.f32, e.at(in, e.mul(d, 4)), 4);
        Value at = e.at(lane, e.mul(d, e.lanes * panels.elementBytes()));
        e.store(e.narrow(x, element), at, 1);
      });
    });
  };
  // Where key and value come from tiles of their own, each tile writes its own.
  auto available = [&](Value value) {
    return bound(value) || value.getDefiningOp<ReadOp>();
  };
  if (available(op.getKey()))
    write(window(op.getKey()), /*isValue=*/false);
  if (available(op.getValue()))
    write(window(op.getValue()), /*isValue=*/true);
}

//===----------------------------------------------------------------------===//
// Attention that stores its scores
//===----------------------------------------------------------------------===//

// A head's scores take max_context entries of a row, of which the first
// position + 1 are meant: what the mask would hide is neither computed nor
// read.

static int64_t scoreStride(DispatchContext &context) {
  return context.model.model.getMaxContext();
}

void RowEmitter::emitScores(ScoresOp op) {
  CacheType cache = lookupCache(op, op.getCacheAttr()).getCacheType();
  CachePanels panels{cache, e.lanes};
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  int64_t heads = query.getDimSize(1), headDim = cache.getHeadDim();
  int64_t group = heads / cache.getKvHeads();
  Value in = window(op.getQuery());
  Value out = destination(op.getResult());
  Value length = e.add(context.position(row), 1);
  Value scale = e.splatReal(op.getScale().convertToDouble());
  e.loop(e.c(0), e.c(heads), 1, [&](Value head) {
    Value q = e.at(in, e.mul(head, headDim * 4));
    Value scores = e.at(out, e.mul(head, scoreStride(context) * 4));
    e.loop(e.c(0), length, e.lanes, [&](Value first) {
      Value page = context.page(cache, context.rowSequence(row),
                                e.div(first, cache.getPage()));
      Value plane = context.headPlane(cache, page, false, e.div(head, group));
      Value panel =
          e.at(plane, e.mul(e.div(e.rem(first, cache.getPage()), e.lanes),
                            panels.panelBytes()));
      Value sum = e.loop(
          e.c(0), e.c(headDim), 1, {e.splatReal(0.0)},
          [&](Value d, ValueRange sums) -> SmallVector<Value> {
            Value at = e.at(panel, e.mul(d, e.lanes * panels.elementBytes()));
            Value k = e.loadFloats(cache.getType(), at, 1);
            Value x = e.broadcast(e.load(e.f32, e.at(q, e.mul(d, 4)), 4));
            return {e.fma(x, k, sums[0])};
          })[0];
      Value remaining = e.trunc(e.sub(length, first), e.i32);
      Value mask = e.less(e.iota(e.i32), e.broadcast(remaining));
      e.storeMasked(e.mulf(sum, scale), e.at(scores, e.mul(first, 4)), mask, 4);
    });
  });
}

void RowEmitter::emitMaskedSoftmax(MaskedSoftmaxOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  Value in = window(op.getInput());
  Value out = destination(op.getResult());
  Value length = e.add(context.position(row), 1);
  e.loop(e.c(0), e.c(type.getDimSize(1)), 1, [&](Value head) {
    Value offset = e.mul(head, scoreStride(context) * 4);
    Value scores = e.at(in, offset), weights = e.at(out, offset);
    auto maskAt = [&](Value first) {
      return e.less(e.iota(e.i32),
                    e.broadcast(e.trunc(e.sub(length, first), e.i32)));
    };
    Value low = e.splatReal(-3.0e38);
    auto scoresAt = [&](Value first, Value mask) {
      Value x =
          e.loadMasked(e.vec(e.f32), e.at(scores, e.mul(first, 4)), mask, 4);
      return e.select(mask, x, low);
    };
    Value largest =
        e.loop(e.c(0), length, e.lanes, {low},
               [&](Value first, ValueRange carried) -> SmallVector<Value> {
                 return {e.maxf(carried[0], scoresAt(first, maskAt(first)))};
               })[0];
    Value top = e.broadcast(e.horizontal(largest, Emitter::Fold::Max));
    Value sum =
        e.loop(e.c(0), length, e.lanes, {e.splatReal(0.0)},
               [&](Value first, ValueRange carried) -> SmallVector<Value> {
                 Value mask = maskAt(first);
                 Value p = e.exp(e.subf(scoresAt(first, mask), top));
                 p = e.select(mask, p, e.splatReal(0.0));
                 e.storeMasked(p, e.at(weights, e.mul(first, 4)), mask, 4);
                 return {e.addf(carried[0], p)};
               })[0];
    Value total = e.broadcast(e.horizontal(sum, Emitter::Fold::Add));
    e.loop(e.c(0), length, e.lanes, [&](Value first) {
      Value mask = maskAt(first);
      Value at = e.at(weights, e.mul(first, 4));
      Value p = e.loadMasked(e.vec(e.f32), at, mask, 4);
      e.storeMasked(e.divf(p, total), at, mask, 4);
    });
  });
}

void RowEmitter::emitContext(ContextOp op) {
  CacheType cache = lookupCache(op, op.getCacheAttr()).getCacheType();
  CachePanels panels{cache, e.lanes};
  auto type = cast<RankedTensorType>(op.getType());
  int64_t heads = type.getDimSize(1), headDim = cache.getHeadDim();
  int64_t group = heads / cache.getKvHeads();
  Value in = window(op.getWeights());
  Value out = destination(op.getResult());
  Value length = e.add(context.position(row), 1);
  e.loop(e.c(0), e.c(heads), 1, [&](Value head) {
    Value weights = e.at(in, e.mul(head, scoreStride(context) * 4));
    Value target = e.at(out, e.mul(head, headDim * 4));
    e.forColumns(headDim, [&](Value offset, Value mask) {
      Value sum = e.loop(
          e.c(0), length, 1, {e.splatReal(0.0)},
          [&](Value t, ValueRange sums) -> SmallVector<Value> {
            Value page = context.page(cache, context.rowSequence(row),
                                      e.div(t, cache.getPage()));
            Value plane =
                context.headPlane(cache, page, true, e.div(head, group));
            Value at = e.at(plane, e.add(e.mul(e.rem(t, cache.getPage()),
                                               panels.valueRowBytes()),
                                         e.mul(offset, panels.elementBytes())));
            VectorType stored = e.vec(cache.getType());
            Value v = e.widen(mask ? e.loadMasked(stored, at, mask, 1)
                                   : e.load(stored, at, 1));
            Value p = e.broadcast(e.load(e.f32, e.at(weights, e.mul(t, 4)), 4));
            return {e.fma(p, v, sums[0])};
          })[0];
      e.storeColumns(sum, target, offset, mask);
    });
  });
}

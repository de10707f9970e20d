//===- DispatchAttention.cpp - Attention over pages, split by split -------===//
//
// A tile's queries (rows x the heads that share a kv head) read each panel of K
// and each row of V once. Within a split of the cache type's `split` positions:
// scores into the nearest cache, their maximum, weights and their sum, then the
// weighted sum of V; splits are merged in ascending order. Every sum of a query
// has one order, whatever it shares its tile with.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/Dispatch.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::cpu;

namespace {

/// Below every score, and finite: the difference of two of them is not a NaN.
constexpr double LowScore = -3.0e38;

class AttentionEmitter {
public:
  AttentionEmitter(DispatchContext &context, DispatchOp dispatch,
                   AttentionOp attention)
      : context(context), e(context.e), dispatch(dispatch),
        attention(attention), rowEmitter(context),
        cache(lookupCache(attention, attention.getCacheAttr()).getCacheType()),
        panels{cache, e.lanes}, headDim(cache.getHeadDim()),
        heads(cast<RankedTensorType>(attention.getType()).getDimSize(1)),
        group(heads / cache.getKvHeads()) {}

  LogicalResult emit();

private:
  struct Query {
    Value row, head; // of the step, of the model
    Value values;    // f32[head_dim]
    Value position;  // absolute
    Value scores;    // f32[split], scratch
    Value output;    // f32[head_dim], scratch
  };

  void emitItem(Value item);
  void emitQueries(Value sequence, Value kvHead, ArrayRef<Query> queries);
  /// Scores of one split; returns each query's maximum.
  SmallVector<Value> emitScores(Value sequence, Value kvHead,
                                ArrayRef<Query> queries, Value start,
                                Value count);
  /// Weights in place of scores; returns each query's sum.
  SmallVector<Value> emitWeights(ArrayRef<Query> queries, Value count,
                                 ArrayRef<Value> maxima);
  void emitValues(Value sequence, Value kvHead, ArrayRef<Query> queries,
                  Value start, Value count, ArrayRef<Value> oldFactors,
                  ArrayRef<Value> newFactors);

  DispatchContext &context;
  Emitter &e;
  DispatchOp dispatch;
  AttentionOp attention;
  RowEmitter rowEmitter;
  CacheType cache;
  CachePanels panels;
  int64_t headDim, heads, group;
  SlotAttr input;
  Value scoreSpace, outputSpace;
  LogicalResult status = success();
};
} // namespace

LogicalResult AttentionEmitter::emit() {
  auto read = attention.getQuery().getDefiningOp<ReadOp>();
  if (!read || read.getSlot().getElement() != SlotElement::F32)
    return attention.emitOpError("needs its query in an f32 slot");
  if (cache.getPage() % (2 * e.lanes) != 0)
    return attention.emitOpError("needs pages of whole pairs of panels of ")
           << e.lanes << " positions, found pages of " << cache.getPage();
  input = read.getSlot();
  for (Operation *op = attention->getPrevNode(); op; op = op->getPrevNode())
    if (!isa<ReadOp>(op))
      return op->emitOpError("stands before the kernel's attention, which "
                             "takes no prologue");
  int64_t most = e.target.queryTiles().front();
  scoreSpace = e.stack(most * cache.getSplit() * 4);
  outputSpace = e.stack(most * llvm::alignTo(headDim * 4, 64));
  Value items = e.mul(context.tiles(), cache.getKvHeads());
  auto [low, high] = context.share(items);
  e.loop(low, high, 1, [&](Value item) { emitItem(item); });
  return status;
}

void AttentionEmitter::emitItem(Value item) {
  Value tile = context.rowTile(e.div(item, cache.getKvHeads()));
  Value kvHead = e.rem(item, cache.getKvHeads());
  auto tileField = [&](int64_t offset) {
    return e.sext(e.load(e.i32, e.at(tile, offset), 4), e.i64);
  };
  Value sequence = tileField(offsetof(KvcRowTile, sequence));
  Value firstRow = tileField(offsetof(KvcRowTile, first_row));
  Value rows = tileField(offsetof(KvcRowTile, rows));
  forTiles(
      e, e.mul(rows, group), e.target.queryTiles(), [&](Value first, int size) {
        SmallVector<Query> queries;
        for (int i = 0; i < size; ++i) {
          Value index = e.add(first, i);
          Query query;
          query.row = e.add(firstRow, e.div(index, group));
          query.head = e.add(e.mul(kvHead, group), e.rem(index, group));
          query.values = e.at(context.slotRow(input, query.row),
                              e.mul(query.head, headDim * 4));
          query.position = context.position(query.row);
          query.scores = e.at(scoreSpace, i * cache.getSplit() * 4);
          query.output =
              e.at(outputSpace,
                   i * static_cast<int64_t>(llvm::alignTo(headDim * 4, 64)));
          queries.push_back(query);
        }
        emitQueries(sequence, kvHead, queries);
        for (Query &query : queries) {
          rowEmitter.begin(query.row, e.mul(query.head, headDim), headDim);
          rowEmitter.bind(attention.getResult(), query.output);
          for (Operation *op = attention->getNextNode();
               !op->hasTrait<OpTrait::IsTerminator>(); op = op->getNextNode())
            if (failed(rowEmitter.emit(op))) {
              status = failure();
              return;
            }
        }
      });
}

void AttentionEmitter::emitQueries(Value sequence, Value kvHead,
                                   ArrayRef<Query> queries) {
  size_t size = queries.size();
  for (const Query &query : queries)
    e.forColumns(headDim, [&](Value offset, Value mask) {
      e.storeColumns(e.splatReal(0.0), query.output, offset, mask);
    });
  // Rows ascend in position: the last query sees the most.
  Value length = e.add(queries.back().position, 1);
  SmallVector<Value> state(size, e.splatReal(LowScore));
  state.append(size, e.splatReal(0.0));
  state =
      e.loop(e.c(0), length, cache.getSplit(), state,
             [&](Value start, ValueRange carried) {
               Value count = e.min(e.sub(length, start), e.c(cache.getSplit()));
               SmallVector<Value> maxima =
                   emitScores(sequence, kvHead, queries, start, count);
               SmallVector<Value> sums = emitWeights(queries, count, maxima);
               SmallVector<Value> newMaxima, newSums, oldFactors, newFactors;
               for (size_t i = 0; i < size; ++i) {
                 Value top = e.maxf(carried[i], maxima[i]);
                 oldFactors.push_back(e.exp(e.subf(carried[i], top)));
                 newFactors.push_back(e.exp(e.subf(maxima[i], top)));
                 newMaxima.push_back(top);
                 newSums.push_back(e.fma(carried[size + i], oldFactors[i],
                                         e.mulf(sums[i], newFactors[i])));
               }
               emitValues(sequence, kvHead, queries, start, count, oldFactors,
                          newFactors);
               newMaxima.append(newSums);
               return newMaxima;
             });
  for (size_t i = 0; i < size; ++i)
    e.forColumns(headDim, [&](Value offset, Value mask) {
      Value sum = e.loadColumns(queries[i].output, offset, mask);
      e.storeColumns(e.divf(sum, state[size + i]), queries[i].output, offset,
                     mask);
    });
}

SmallVector<Value> AttentionEmitter::emitScores(Value sequence, Value kvHead,
                                                ArrayRef<Query> queries,
                                                Value start, Value count) {
  // Two panels at a time keep twice as many sums in flight.
  constexpr int Panels = 2;
  size_t size = queries.size();
  Value scale = e.splatReal(attention.getScale().convertToDouble());
  Value lanesIota = e.iota(e.i32);
  SmallVector<Value> maxima(size, e.splatReal(LowScore));
  maxima = e.loop(
      e.c(0), count, Panels * e.lanes, maxima,
      [&](Value first, ValueRange carried) {
        Value position = e.add(start, first);
        Value page =
            context.page(cache, sequence, e.div(position, cache.getPage()));
        Value plane = context.headPlane(cache, page, false, kvHead);
        Value panel =
            e.at(plane, e.mul(e.div(e.rem(position, cache.getPage()), e.lanes),
                              panels.panelBytes()));
        SmallVector<Value> sums(Panels * size, e.splatReal(0.0));
        auto step = [&](Value d, SmallVector<Value> sums) {
          Value at = e.at(panel, e.mul(d, e.lanes * panels.elementBytes()));
          SmallVector<Value> keys;
          for (int p = 0; p < Panels; ++p)
            keys.push_back(e.loadFloats(cache.getType(),
                                        e.at(at, p * panels.panelBytes()), 1));
          for (size_t i = 0; i < size; ++i) {
            Value q = e.broadcast(
                e.load(e.f32, e.at(queries[i].values, e.mul(d, 4)), 4));
            for (int p = 0; p < Panels; ++p)
              sums[i * Panels + p] = e.fma(q, keys[p], sums[i * Panels + p]);
          }
          return sums;
        };
        int64_t unroll = headDim % 4 == 0 ? 4 : 1;
        sums = e.loop(e.c(0), e.c(headDim), unroll, sums,
                      [&](Value d, ValueRange carried) {
                        SmallVector<Value> sums = llvm::to_vector(carried);
                        for (int64_t i = 0; i < unroll; ++i)
                          sums = step(e.add(d, i), sums);
                        return sums;
                      });
        SmallVector<Value> next;
        for (size_t i = 0; i < size; ++i) {
          Value top = carried[i];
          for (int p = 0; p < Panels; ++p) {
            Value lane0 = e.add(position, static_cast<int64_t>(p) * e.lanes);
            Value visible =
                e.trunc(e.sub(e.add(queries[i].position, 1), lane0), e.i32);
            Value mask = e.less(lanesIota, e.broadcast(visible));
            Value score = e.select(mask, e.mulf(sums[i * Panels + p], scale),
                                   e.splatReal(LowScore));
            e.store(
                score,
                e.at(queries[i].scores,
                     e.mul(e.add(first, static_cast<int64_t>(p) * e.lanes), 4)),
                4);
            top = e.maxf(top, score);
          }
          next.push_back(top);
        }
        return next;
      });
  for (Value &maximum : maxima)
    maximum = e.broadcast(e.horizontal(maximum, Emitter::Fold::Max));
  return maxima;
}

SmallVector<Value> AttentionEmitter::emitWeights(ArrayRef<Query> queries,
                                                 Value count,
                                                 ArrayRef<Value> maxima) {
  size_t size = queries.size();
  SmallVector<Value> sums(size, e.splatReal(0.0));
  Value hidden = e.splatReal(LowScore);
  sums = e.loop(e.c(0), count, e.lanes, sums,
                [&](Value first, ValueRange carried) {
                  SmallVector<Value> next;
                  for (size_t i = 0; i < size; ++i) {
                    Value at = e.at(queries[i].scores, e.mul(first, 4));
                    Value score = e.load(e.vec(e.f32), at, 4);
                    Value isHidden = arith::CmpFOp::create(
                        e.b, e.loc, arith::CmpFPredicate::OEQ, score, hidden);
                    Value weight = e.exp(e.subf(score, maxima[i]));
                    weight = e.select(isHidden, e.splatReal(0.0), weight);
                    Value stored = weight;
                    if (std::optional<Type> type = attention.getWeights())
                      stored = e.widen(e.narrow(weight, *type));
                    e.store(stored, at, 4);
                    next.push_back(e.addf(carried[i], weight));
                  }
                  return next;
                });
  for (Value &sum : sums)
    sum = e.broadcast(e.horizontal(sum, Emitter::Fold::Add));
  return sums;
}

void AttentionEmitter::emitValues(Value sequence, Value kvHead,
                                  ArrayRef<Query> queries, Value start,
                                  Value count, ArrayRef<Value> oldFactors,
                                  ArrayRef<Value> newFactors) {
  size_t size = queries.size();
  int64_t registers = e.target.valueRegisters(static_cast<int>(size));
  int64_t chunk = registers * e.lanes;
  for (int64_t firstDim = 0; firstDim < headDim; firstDim += chunk) {
    SmallVector<int64_t> dims;
    for (int64_t dim = firstDim; dim < std::min(firstDim + chunk, headDim);
         dim += e.lanes)
      dims.push_back(dim);
    auto maskOf = [&](int64_t dim) {
      return headDim - dim >= e.lanes ? Value() : e.tailMask(headDim - dim);
    };
    SmallVector<Value> sums(size * dims.size(), e.splatReal(0.0));
    sums = e.loop(
        e.c(0), count, cache.getPage(), sums,
        [&](Value pageStart, ValueRange carried) {
          Value position = e.add(start, pageStart);
          Value page =
              context.page(cache, sequence, e.div(position, cache.getPage()));
          Value plane = context.headPlane(cache, page, true, kvHead);
          Value inPage = e.min(e.sub(count, pageStart), e.c(cache.getPage()));
          return e.loop(
              e.c(0), inPage, 1, carried, [&](Value t, ValueRange carried) {
                Value at = e.at(plane, e.mul(t, panels.valueRowBytes()));
                SmallVector<Value> values;
                VectorType stored = e.vec(cache.getType());
                for (int64_t dim : dims) {
                  Value from = e.at(at, dim * panels.elementBytes());
                  Value mask = maskOf(dim);
                  values.push_back(
                      e.widen(mask ? e.loadMasked(stored, from, mask, 1)
                                   : e.load(stored, from, 1)));
                }
                SmallVector<Value> next;
                for (size_t i = 0; i < size; ++i) {
                  Value index = e.mul(e.add(pageStart, t), 4);
                  Value weight = e.broadcast(
                      e.load(e.f32, e.at(queries[i].scores, index), 4));
                  for (size_t v = 0; v < values.size(); ++v)
                    next.push_back(e.fma(weight, values[v],
                                         carried[i * values.size() + v]));
                }
                return next;
              });
        });
    for (size_t i = 0; i < size; ++i)
      for (auto [v, dim] : llvm::enumerate(dims)) {
        Value old = e.loadColumns(queries[i].output, e.c(dim), maskOf(dim));
        Value merged = e.fma(old, oldFactors[i],
                             e.mulf(sums[i * dims.size() + v], newFactors[i]));
        e.storeColumns(merged, queries[i].output, e.c(dim), maskOf(dim));
      }
  }
}

LogicalResult kvc::cpu::emitAttention(DispatchContext &context,
                                      DispatchOp dispatch,
                                      AttentionOp attention) {
  return AttentionEmitter(context, dispatch, attention).emit();
}

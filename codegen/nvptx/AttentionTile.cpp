//===- AttentionTile.cpp - Queries against one tile of cached positions ---===//
#include "codegen/nvptx/AttentionTile.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

static int64_t up(int64_t value, int64_t multiple) {
  return static_cast<int64_t>(
      llvm::alignTo(static_cast<uint64_t>(value), llvm::Align(multiple)));
}

AttentionShape::AttentionShape(CacheType cache, int64_t heads)
    : element(cache.getType()), headDim(cache.getHeadDim()),
      kvHeads(cache.getKvHeads()), heads(heads), group(heads / kvHeads),
      padded(up(headDim, 16)), copyBytes(16) {
  while (headDim * 2 % copyBytes != 0)
    copyBytes /= 2;
}

int64_t AttentionShape::partialBytes() const {
  return up(heads * (partialHeadBytes() + 8), 128);
}

AttentionTile::AttentionTile(Emitter &e, const AttentionShape &shape,
                             double scale)
    : e(e), shape(shape), scaleLog2(scale * 1.44269504088896340736) {
  Value lane = e.lane();
  g = e.shr(lane, 2);
  q = e.bitAnd(lane, 3);
  // Matrix i of an ldmatrix takes its rows from lanes 8i .. 8i+7. K: matrices
  // are (positions, dims), (positions, dims + 8), (positions + 8, dims), ...
  Value row = e.bitAnd(lane, 7);
  Value odd = e.bitAnd(e.shr(lane, 3), 1), upper = e.shr(lane, 4);
  keyRow = e.add(e.mul(e.add(row, e.mul(upper, 8)), shape.rowBytes()),
                 e.mul(odd, 16));
  // V, transposed: (positions, dims), (positions + 8, dims), (positions, dims
  // + 8), ...
  valueRow = e.add(e.mul(e.add(row, e.mul(odd, 8)), shape.rowBytes()),
                   e.mul(upper, 16));
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void AttentionTile::clearPadding(Value tile, int64_t rows, Value thread,
                                 int64_t threads) {
  int64_t perRow = shape.padded - shape.headDim;
  if (perRow == 0)
    return;
  e.loop(thread, e.c(rows * perRow), threads, [&](Value index) {
    Value at = e.add(e.mul(e.div(index, perRow), shape.rowBytes()),
                     e.mul(e.rem(index, perRow), 2));
    e.store(e.integer(0, e.i16), e.at(tile, e.add(at, shape.headDim * 2)), 2);
  });
}

void AttentionTile::copy(Value tile, Value base, Value away, int64_t further,
                         Value valid, Value thread, int64_t threads) {
  int64_t bytes = shape.copyBytes, perRow = shape.headDim * 2 / bytes;
  int64_t total = TilePositions * perRow;
  auto one = [&](Value row, Value to, Value from) {
    Value inside = e.less(row, valid);
    if (bytes >= 4) {
      Value given = e.select(inside, e.c(bytes), e.c(0));
      e.copyAsync(to, from, static_cast<int>(bytes), given);
      return;
    }
    Value zero = e.integer(0, e.i16);
    Value value = e.ifElse(
        inside, e.i16, [&] { return Values{e.load(e.i16, from, 2)}; },
        [&] { return Values{zero}; })[0];
    e.store(value, to, 2);
  };
  auto place = [&](Value index) {
    return e.at(tile, e.add(e.mul(e.div(index, perRow), shape.rowBytes()),
                            e.mul(e.rem(index, perRow), bytes)));
  };
  auto source = [&](Value index) {
    return e.at(e.at(e.at(base, e.mul(index, bytes)), away), further);
  };
  auto at = [&](Value index) {
    one(e.div(index, perRow), place(index), source(index));
  };
  constexpr int64_t MostUnrolled = 64;
  if (total % threads != 0 || total / threads > MostUnrolled) {
    e.loop(thread, e.c(total), threads, at);
    return;
  }
  if (threads % perRow != 0) {
    for (int64_t i = 0; i < total / threads; ++i)
      at(e.add(thread, i * threads));
    return;
  }
  // Every copy of a thread is of the same columns.
  Value row = e.div(thread, perRow), to = place(thread), from = source(thread);
  for (int64_t i = 0; i < total / threads; ++i) {
    int64_t rows = i * (threads / perRow);
    one(e.add(row, rows), e.at(to, rows * shape.rowBytes()),
        e.at(from, i * threads * bytes));
  }
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

Value AttentionTile::queryWord(Value row, int64_t firstDim) {
  Value dim = e.add(e.mul(q, 2), firstDim);
  bool whole = firstDim + 8 <= shape.headDim;
  if (shape.headDim % 2 == 0) {
    if (whole)
      return e.load(e.i32, e.at(row, e.mul(dim, 2)), 4);
    Value inside = e.less(dim, shape.headDim);
    Value at = e.mul(e.select(inside, dim, e.c(0)), 2);
    return e.select(inside, e.load(e.i32, e.at(row, at), 4), e.c(0));
  }
  auto half = [&](Value dim) {
    Value inside = e.less(dim, shape.headDim);
    Value at = e.mul(e.select(inside, dim, e.c(0)), 2);
    Value bits = e.zext(e.load(e.i16, e.at(row, at), 2), e.i32);
    return e.select(inside, bits, e.c(0));
  };
  return e.bitOr(half(dim), e.shl(half(e.add(dim, 1)), 16));
}

Values AttentionTile::query(const Value (&rows)[2], int64_t step) {
  Values words;
  for (int64_t upper : {0, 8})
    for (Value row : rows)
      words.push_back(row ? queryWord(row, step * 16 + upper) : e.c(0));
  return words;
}

Values AttentionTile::scores(Value tile,
                             llvm::function_ref<Values(int64_t)> query) {
  Values sums(4 * TilePositions / 8, e.real(0.0));
  Value base = e.at(tile, keyRow);
  for (int64_t step = 0; step < shape.steps(); ++step) {
    Values a = query(step);
    for (int64_t pair = 0; pair < TilePositions / 16; ++pair) {
      Values b =
          e.ldmatrix(e.at(base, pair * 16 * shape.rowBytes() + step * 32), 4);
      for (int64_t half = 0; half < 2; ++half) {
        ValueRange c = ValueRange(sums).slice((2 * pair + half) * 4, 4);
        Values d = e.mma(shape.element, a, ValueRange(b).slice(2 * half, 2), c);
        llvm::copy(d, sums.begin() + (2 * pair + half) * 4);
      }
    }
  }
  return sums;
}

void AttentionTile::scale(Values &s) {
  for (Value &x : s)
    x = e.mulf(x, e.real(scaleLog2));
}

void AttentionTile::hide(Values &s, const Value (&last)[2]) {
  Value hidden = e.real(-std::numeric_limits<double>::infinity());
  Value bound[2];
  for (int row = 0; row < 2; ++row)
    bound[row] = e.sub(last[row], e.mul(q, 2));
  for (int64_t i = 0; i < static_cast<int64_t>(s.size()); ++i) {
    int64_t position = i / 4 * 8 + i % 2;
    Value beyond = e.less(bound[i % 4 / 2], position);
    s[i] = e.select(beyond, hidden, s[i]);
  }
}

TileWeights AttentionTile::weigh(ValueRange s, int rows) {
  TileWeights result;
  Values weights(s.size());
  for (int row = 0; row < rows; ++row) {
    Value top;
    for (size_t i = 2 * row; i < s.size(); i += 4)
      for (size_t j = 0; j < 2; ++j)
        top = top ? e.maxf(top, s[i + j]) : s[i + j];
    top = e.maxf(e.maxLanes(top, 4), e.real(LowScore));
    Value sum;
    for (size_t i = 2 * row; i < s.size(); i += 4)
      for (size_t j = 0; j < 2; ++j) {
        Value p = e.ex2(e.subf(s[i + j], top));
        weights[i + j] = p;
        sum = sum ? e.addf(sum, p) : p;
      }
    result.maximum[row] = top;
    result.sum[row] = e.sumLanes(sum, 4);
  }
  // Sums of two n8 tiles lie as the A fragment of one k16 step does.
  for (size_t i = 0; i < weights.size(); i += 2)
    result.words.push_back(
        weights[i] ? e.pack(shape.element, weights[i], weights[i + 1])
                   : e.c(0));
  return result;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void AttentionTile::values(
    Value tile, const TileWeights &weights,
    llvm::function_ref<void(int64_t, const Values &)> use) {
  // Four n8 tiles at a time: enough independent sums to keep the tensor cores
  // busy, few enough registers beside the running totals.
  constexpr int64_t Chunk = 4;
  Value base = e.at(tile, valueRow);
  for (int64_t first = 0; first < shape.dimTiles(); first += Chunk) {
    int64_t count = std::min(Chunk, shape.dimTiles() - first);
    Values sums(4 * count, e.real(0.0));
    for (int64_t step = 0; step < TilePositions / 16; ++step) {
      ValueRange a = ValueRange(weights.words).slice(4 * step, 4);
      for (int64_t i = 0; i < count; i += 2) {
        Values b = e.ldmatrix(
            e.at(base, step * 16 * shape.rowBytes() + (first + i) * 16), 4,
            /*transposed=*/true);
        for (int64_t half = 0; half < 2; ++half) {
          ValueRange c = ValueRange(sums).slice((i + half) * 4, 4);
          Values d =
              e.mma(shape.element, a, ValueRange(b).slice(2 * half, 2), c);
          llvm::copy(d, sums.begin() + (i + half) * 4);
        }
      }
    }
    for (int64_t i = 0; i < count; ++i)
      use(first + i, Values(ValueRange(sums).slice(4 * i, 4)));
  }
}

MergeFactors kvc::nvptx::mergeFactors(Emitter &e, Value maximum,
                                      Value tileMaximum) {
  Value top = e.maxf(maximum, tileMaximum);
  return {top, e.ex2(e.subf(maximum, top)), e.ex2(e.subf(tileMaximum, top))};
}

Value kvc::nvptx::merge(Emitter &e, const MergeFactors &factors, Value x,
                        Value y) {
  return e.fma(x, factors.before, e.mulf(y, factors.added));
}

Values kvc::nvptx::finish(Emitter &e, Value sum, ValueRange outputs) {
  Value inverse = e.divf(e.real(1.0), sum);
  Values results;
  for (Value output : outputs)
    results.push_back(e.addf(e.mulf(output, inverse), e.real(0.0)));
  return results;
}

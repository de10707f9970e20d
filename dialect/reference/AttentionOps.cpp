//===- AttentionOps.cpp - Rotary positions, the cache, attention ----------===//
#include "dialect/reference/Interpreter.h"

#include <cmath>

using namespace mlir;
using namespace kvc;

llvm::Error Interpreter::run(RopeOp op) {
  Tensor result = get(op.getInput());
  auto type = cast<RankedTensorType>(op.getType());
  int64_t heads = type.getDimSize(1), headDim = type.getDimSize(2);
  ArrayRef<double> frequencies = op.getInvFreq();
  int64_t pairs = frequencies.size();
  double scale = op.getScale().convertToDouble();
  bool half = op.getLayout() == RopeLayout::Half;
  for (int64_t r = 0; r < result.rows; ++r) {
    for (int64_t i = 0; i < pairs; ++i) {
      double angle = step.rows[r].position * frequencies[i];
      double cosine = std::cos(angle) * scale, sine = std::sin(angle) * scale;
      for (int64_t h = 0; h < heads; ++h) {
        double *head = result.row(r) + h * headDim;
        double &x = head[half ? i : 2 * i];
        double &y = head[half ? i + pairs : 2 * i + 1];
        double rotated = x * cosine - y * sine;
        y = x * sine + y * cosine;
        x = rotated;
      }
    }
  }
  set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

llvm::Error Interpreter::run(CacheAppendOp op) {
  auto layer =
      cacheLayer(op, op.getCacheAttr(), op.getLayer(), /*writes=*/true);
  if (!layer)
    return layer.takeError();
  CacheState &state = cache(op.getCacheAttr());
  const Tensor &key = get(op.getKey()), &value = get(op.getValue());
  for (auto [r, row] : llvm::enumerate(step.rows)) {
    CacheEntry &entry = state.entry(*layer, row.sequence);
    state.grow(entry, row.position);
    if (entry.writtenIn[row.position] == stepNumber)
      return opError(op, "writes position " + Twine(row.position) +
                             " of sequence " + Twine(row.sequence) +
                             " in layer " + Twine(*layer) +
                             " a second time in one step");
    entry.writtenIn[row.position] = stepNumber;
    int64_t start = row.position * state.width();
    for (int64_t i = 0; i < state.width(); ++i) {
      double k = key.row(r)[i], v = value.row(r)[i];
      if (roundings == Roundings::Declared) {
        k = roundTo(state.getType().getType(), k);
        v = roundTo(state.getType().getType(), v);
      }
      entry.keys[start + i] = k;
      entry.values[start + i] = v;
    }
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

static double dot(const double *a, const double *b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += a[i] * b[i];
  return sum;
}

/// scores[t] = scale * dot(query, key t) for t < count; NaN for positions that
/// nobody wrote.
static void scoreHead(const double *query, const CacheEntry &entry,
                      const CacheState &cache, int64_t kvHead, double scale,
                      int64_t count, double *scores) {
  int64_t headDim = cache.getType().getHeadDim();
  for (int64_t t = 0; t < count; ++t)
    scores[t] =
        t < entry.positions()
            ? scale * dot(query,
                          &entry.keys[t * cache.width() + kvHead * headDim],
                          headDim)
            : std::numeric_limits<double>::quiet_NaN();
}

/// Softmax of the first `visible` of `count` scores; the others become 0.
static void softmax(double *scores, int64_t visible, int64_t count) {
  double largest = *std::max_element(scores, scores + visible);
  double sum = 0;
  for (int64_t t = 0; t < visible; ++t) {
    scores[t] = std::exp(scores[t] - largest);
    sum += scores[t];
  }
  for (int64_t t = 0; t < visible; ++t)
    scores[t] /= sum;
  std::fill(scores + visible, scores + count, 0.0);
}

/// out[:] = sum over t < visible of weights[t] * value t.
static void weigh(const double *weights, const CacheEntry &entry,
                  const CacheState &cache, int64_t kvHead, int64_t visible,
                  double *out) {
  int64_t headDim = cache.getType().getHeadDim();
  std::fill_n(out, headDim, 0.0);
  for (int64_t t = 0; t < visible; ++t) {
    const double *value = &entry.values[t * cache.width() + kvHead * headDim];
    for (int64_t i = 0; i < headDim; ++i)
      out[i] += weights[t] * value[i];
  }
}

/// out[:] = the weighted sum of the values of positions 0 .. visible-1, split
/// by split, each split's weights rounded to `element`.
static void weighRounded(std::vector<double> &scores, const CacheEntry &entry,
                         const CacheState &cache, int64_t kvHead,
                         int64_t visible, Type element, double *out) {
  int64_t headDim = cache.getType().getHeadDim();
  int64_t split = cache.getType().getSplit();
  double largest = *std::max_element(scores.begin(), scores.begin() + visible);
  double sum = 0;
  std::fill_n(out, headDim, 0.0);
  for (int64_t begin = 0; begin < visible; begin += split) {
    int64_t end = std::min(begin + split, visible);
    double top =
        *std::max_element(scores.begin() + begin, scores.begin() + end);
    double factor = std::exp(top - largest);
    for (int64_t t = begin; t < end; ++t) {
      double weight = std::exp(scores[t] - top);
      sum += weight * factor;
      weight = roundTo(element, weight) * factor;
      const double *value = &entry.values[t * cache.width() + kvHead * headDim];
      for (int64_t i = 0; i < headDim; ++i)
        out[i] += weight * value[i];
    }
  }
  for (int64_t i = 0; i < headDim; ++i)
    out[i] /= sum;
}

static int64_t headsOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getDimSize(1);
}

llvm::Error Interpreter::run(ScoresOp op) {
  auto layer =
      cacheLayer(op, op.getCacheAttr(), op.getLayer(), /*writes=*/false);
  if (!layer)
    return layer.takeError();
  CacheState &state = cache(op.getCacheAttr());
  int64_t heads = headsOf(op.getQuery());
  int64_t group = heads / state.getType().getKvHeads();
  int64_t headDim = state.getType().getHeadDim();
  Tensor result(step.rows.size(), heads * context);
  for (auto [r, row] : llvm::enumerate(step.rows)) {
    auto entry = visible(op, state, *layer, row);
    if (!entry)
      return entry.takeError();
    for (int64_t h = 0; h < heads; ++h)
      scoreHead(get(op.getQuery()).row(r) + h * headDim, **entry, state,
                h / group, op.getScale().convertToDouble(), context,
                result.row(r) + h * context);
  }
  set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

llvm::Error Interpreter::run(MaskedSoftmaxOp op) {
  Tensor result = get(op.getInput());
  for (auto [r, row] : llvm::enumerate(step.rows))
    for (int64_t h = 0; h < headsOf(op.getInput()); ++h)
      softmax(result.row(r) + h * context, row.position + 1, context);
  set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

llvm::Error Interpreter::run(ContextOp op) {
  auto layer =
      cacheLayer(op, op.getCacheAttr(), op.getLayer(), /*writes=*/false);
  if (!layer)
    return layer.takeError();
  CacheState &state = cache(op.getCacheAttr());
  int64_t heads = headsOf(op.getWeights());
  int64_t group = heads / state.getType().getKvHeads();
  int64_t headDim = state.getType().getHeadDim();
  Tensor result(step.rows.size(), heads * headDim);
  for (auto [r, row] : llvm::enumerate(step.rows)) {
    auto entry = visible(op, state, *layer, row);
    if (!entry)
      return entry.takeError();
    for (int64_t h = 0; h < heads; ++h)
      weigh(get(op.getWeights()).row(r) + h * context, **entry, state,
            h / group, row.position + 1, result.row(r) + h * headDim);
  }
  set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

llvm::Error Interpreter::run(AttentionOp op) {
  auto layer =
      cacheLayer(op, op.getCacheAttr(), op.getLayer(), /*writes=*/false);
  if (!layer)
    return layer.takeError();
  CacheState &state = cache(op.getCacheAttr());
  int64_t heads = headsOf(op.getQuery());
  int64_t group = heads / state.getType().getKvHeads();
  int64_t headDim = state.getType().getHeadDim();
  const Tensor &query = get(op.getQuery());
  Tensor result(step.rows.size(), heads * headDim);
  std::vector<double> scores(context);
  for (auto [r, row] : llvm::enumerate(step.rows)) {
    auto entry = visible(op, state, *layer, row);
    if (!entry)
      return entry.takeError();
    int64_t count = row.position + 1;
    for (int64_t h = 0; h < heads; ++h) {
      scoreHead(query.row(r) + h * headDim, **entry, state, h / group,
                op.getScale().convertToDouble(), count, scores.data());
      if (op.getWeights() && roundings == Roundings::Declared) {
        weighRounded(scores, **entry, state, h / group, count, *op.getWeights(),
                     result.row(r) + h * headDim);
        continue;
      }
      softmax(scores.data(), count, count);
      weigh(scores.data(), **entry, state, h / group, count,
            result.row(r) + h * headDim);
    }
  }
  set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

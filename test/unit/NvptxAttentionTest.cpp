// Attention kernels on the PTX interpreter: against doubles, and decode and
// prefill against each other, bit by bit.
#include "KernelRunner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace kvc;

namespace {

struct Shape {
  int64_t heads, kvHeads, headDim;
  bool bf16;
};

std::string moduleText(const Shape &shape, const char *scale) {
  const char *type = shape.bf16 ? "bf16" : "f16";
  int64_t stride = (shape.heads * shape.headDim * 2 + 63) / 64 * 64;
  auto number = [](int64_t value) { return std::to_string(value); };
  std::string tensor = "tensor<?x" + number(shape.heads) + "x" +
                       number(shape.headDim) + "xf32, #kvc.rows>";
  std::string text =
      "kvc.model @m attributes {max_context = 4096 : i64, activations = "
      "\"bf16\", target = #kvc.target<arch = \"cuda\", cpu = \"sm_90\", "
      "features = \"+ptx80\", vector_width = 128>} {\n"
      "kvc.cache @kv : !kvc.cache<layers = 2, kv_heads = " +
      number(shape.kvHeads) + ", head_dim = " + number(shape.headDim) +
      ", type = " + type + ", page = 64, split = 64>\n";
  for (const char *phase : {"prefill", "decode"})
    text += std::string("kvc.program @") + phase +
            "(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) "
            "attributes {phase = #kvc.phase<" +
            phase + ">, rows_bytes = " + number(2 * stride) +
            " : i64, outputs_bytes = 0 : i64, worker_bytes = 0 : i64} {\n"
            "kvc.layers 2 {\n^bb0(%layer: index):\n"
            "kvc.dispatch \"attention\" 0 {\n"
            "%q = kvc.read slot<rows, offset = 0, stride = " +
            number(stride) + ", " + type + "> : " + tensor +
            "\n%c = kvc.attention %q, @kv[%layer], %batch {scale = " + scale +
            " : f64} : " + tensor + "\n%r = kvc.round %c to bf16 : " + tensor +
            "\nkvc.write %r, slot<rows, offset = " + number(stride) +
            ", stride = " + number(stride) + ", bf16> : " + tensor +
            "\n}\n}\nkvc.return\n}\n";
  return text + "}\n";
}

constexpr int64_t Layers = 2, Page = 64;

class Attention : public testing::TestWithParam<Shape> {
protected:
  void SetUp() override {
    shape = GetParam();
    std::string error;
    runner = KernelRunner::create(moduleText(shape, "0.125"), error);
    ASSERT_TRUE(runner) << error;
    stride = (shape.heads * shape.headDim * 2 + 63) / 64 * 64;
    runner->maxRows = MaxRows;
    runner->rows = runner->allocate("rows", 2 * stride * MaxRows);
    const nvptx::LaunchLists &lists = runner->code.launches;
    runner->maxSplits = 8;
    runner->scratch = runner->allocate("scratch", MaxRows * runner->maxSplits *
                                                      lists.partialBytes);
    uint64_t counterBytes = MaxRows * lists.countersPerRow * 4;
    runner->counters = runner->allocate("counters", counterBytes);
    runner->machine.fill(runner->counters, 0, counterBytes);
  }

  float draw() {
    return fromBits(
        toBits(std::normal_distribution<float>()(random), shape.bf16),
        shape.bf16);
  }

  /// A cache of `lengths` positions; pages lie scattered, nothing else of them
  /// is initialised.
  void fillCache(const std::vector<int64_t> &lengths) {
    stridePages = 1;
    for (int64_t length : lengths)
      stridePages = std::max(stridePages, (length + Page - 1) / Page);
    auto count = static_cast<int64_t>(lengths.size()) * stridePages;
    int64_t plane = Page * shape.headDim;
    pageElements = Layers * 2 * shape.kvHeads * plane;
    runner->kv = runner->allocate("kv", count * pageElements * 2);
    pages.assign(count, -1);
    keys.assign(lengths.size(), {});
    for (size_t sequence = 0; sequence < lengths.size(); ++sequence) {
      for (int64_t page = 0; page * Page < lengths[sequence]; ++page)
        // Backwards, so that no page is where its number says.
        pages[sequence * stridePages + page] =
            static_cast<int32_t>(count - 1 - (sequence * stridePages + page));
      for (int64_t position = 0; position < lengths[sequence]; ++position) {
        int64_t page = pages[sequence * stridePages + position / Page];
        for (int64_t layer = 0; layer < Layers; ++layer)
          for (int64_t which = 0; which < 2; ++which)
            for (int64_t head = 0; head < shape.kvHeads; ++head) {
              std::vector<uint16_t> row(shape.headDim);
              for (uint16_t &bits : row) {
                float value = draw();
                bits = toBits(value, shape.bf16);
                if (layer == 1)
                  keys[sequence].push_back(value);
              }
              int64_t at =
                  page * pageElements +
                  ((layer * 2 + which) * shape.kvHeads + head) * plane +
                  position % Page * shape.headDim;
              runner->machine.write(runner->kv + at * 2, row.data(),
                                    row.size() * 2);
            }
      }
    }
  }
  /// K (0) or V (1) of layer 1.
  float cached(int64_t sequence, int64_t position, int64_t which, int64_t head,
               int64_t dim) {
    return keys[sequence][((position * 2 + which) * shape.kvHeads + head) *
                              shape.headDim +
                          dim];
  }

  /// Runs one phase on these rows' queries; the context's bits, row by row.
  std::vector<std::vector<uint16_t>>
  run(bool decode, TestBatch batch,
      const std::vector<std::vector<float>> &queries) {
    batch.pages = pages;
    batch.pagesStride = stridePages;
    batch.sequences = static_cast<int64_t>(keys.size());
    uint64_t rows = queries.size();
    runner->machine.poison(runner->rows, 2 * stride * MaxRows);
    for (uint64_t row = 0; row < rows; ++row) {
      std::vector<uint16_t> bits;
      for (float value : queries[row])
        bits.push_back(toBits(value, shape.bf16));
      runner->machine.write(runner->rows + row * stride, bits.data(),
                            bits.size() * 2);
    }
    const nvptx::LaunchLists &lists = runner->code.launches;
    std::string error;
    // The second layer's launch.
    EXPECT_TRUE(
        runner->run({(decode ? lists.decode : lists.prefill)[1]}, batch, error))
        << error;
    std::vector<std::vector<uint16_t>> results;
    for (uint64_t row = 0; row < rows; ++row)
      results.push_back(runner->download<uint16_t>(
          runner->rows + stride * MaxRows + row * stride,
          shape.heads * shape.headDim));
    return results;
  }

  std::vector<float> query() {
    std::vector<float> values(shape.heads * shape.headDim);
    for (float &value : values)
      value = draw();
    return values;
  }

  void expectNear(const std::vector<uint16_t> &bits,
                  const std::vector<float> &query, int64_t sequence,
                  int64_t position) {
    ASSERT_EQ(bits.size(), query.size());
    int64_t group = shape.heads / shape.kvHeads;
    for (int64_t head = 0; head < shape.heads; ++head) {
      std::vector<double> weights;
      double largest = -1e300, sum = 0;
      for (int64_t t = 0; t <= position; ++t) {
        double score = 0;
        for (int64_t dim = 0; dim < shape.headDim; ++dim)
          score += double(query[head * shape.headDim + dim]) *
                   cached(sequence, t, 0, head / group, dim);
        weights.push_back(score * 0.125);
        largest = std::max(largest, weights.back());
      }
      for (double &weight : weights)
        sum += weight = std::exp(weight - largest);
      for (int64_t dim = 0; dim < shape.headDim; ++dim) {
        double expected = 0;
        for (int64_t t = 0; t <= position; ++t)
          expected +=
              weights[t] / sum * cached(sequence, t, 1, head / group, dim);
        // The result is bf16, and so may be the weights.
        double tolerance = 0.01 + std::abs(expected) / 128;
        ASSERT_NEAR(fromBits(bits[head * shape.headDim + dim], true), expected,
                    tolerance)
            << "sequence " << sequence << " position " << position << " head "
            << head << " dim " << dim;
      }
    }
  }

  static constexpr int64_t MaxRows = 160;
  Shape shape;
  std::unique_ptr<KernelRunner> runner;
  int64_t stride = 0, stridePages = 0, pageElements = 0;
  std::vector<int32_t> pages;
  std::vector<std::vector<float>> keys; // [sequence][position][K|V][head][dim]
  std::mt19937 random{7};
};

TEST_P(Attention, DecodeAndPrefillAgree) {
  // Lengths around tiles' and blocks' ends, and queries at their ends.
  std::vector<int64_t> lengths = {1, 64, 65, 300};
  fillCache(lengths);
  std::vector<std::vector<float>> queries;
  TestBatch batch;
  int64_t tileRows = runner->code.launches.attentionRows;
  for (size_t i = 0; i < lengths.size(); ++i) {
    batch.addRows(static_cast<int32_t>(i), static_cast<int32_t>(lengths[i] - 1),
                  1, tileRows);
    queries.push_back(query());
  }
  auto decoded = run(/*decode=*/true, batch, queries);
  for (size_t i = 0; i < lengths.size(); ++i)
    expectNear(decoded[i], queries[i], static_cast<int64_t>(i), lengths[i] - 1);

  // The same rows as prefill: alone in their tiles.
  EXPECT_EQ(run(/*decode=*/false, batch, queries), decoded);
  // In another order of the blocks, the counters left as they must be.
  runner->options.Seed = 3;
  EXPECT_EQ(run(/*decode=*/true, batch, queries), decoded);
}

TEST_P(Attention, ChunksAgree) {
  // Rows that end in the middle of tiles, across a page's boundary, behind
  // others of another sequence.
  fillCache({40, 140});
  int64_t tileRows = runner->code.launches.attentionRows;
  TestBatch batch;
  batch.addRows(0, 0, 40, tileRows);
  batch.addRows(1, 50, 90, tileRows);
  std::vector<std::vector<float>> queries;
  for (size_t row = 0; row < batch.positions.size(); ++row)
    queries.push_back(query());
  auto whole = run(/*decode=*/false, batch, queries);
  for (size_t row : {0, 17, 39, 40, 53, 54, 128, 129}) {
    expectNear(whole[row], queries[row], batch.rowSequence[row],
               batch.positions[row]);
    // One row alone, in both phases.
    for (bool decode : {false, true}) {
      TestBatch alone;
      alone.addRows(batch.rowSequence[row], batch.positions[row], 1, tileRows);
      std::vector<std::vector<float>> own = {queries[row]};
      // Decode has a row for each sequence; the kernels index by row.
      auto saved = keys;
      if (decode)
        keys.resize(1);
      auto bits = run(decode, alone, own);
      keys = saved;
      EXPECT_EQ(bits[0], whole[row]) << "row " << row << " decode " << decode;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Attention,
    testing::Values(Shape{4, 1, 64, false}, Shape{2, 2, 128, true},
                    Shape{6, 2, 24, false}, Shape{3, 3, 2, true},
                    Shape{4, 2, 3, false}, Shape{20, 1, 16, false},
                    Shape{9, 1, 80, true}, Shape{2, 1, 256, false},
                    Shape{5, 1, 65, false}, Shape{8, 8, 36, true}),
    [](const testing::TestParamInfo<Shape> &info) {
      const Shape &shape = info.param;
      return "heads" + std::to_string(shape.heads) + "of" +
             std::to_string(shape.kvHeads) + "dim" +
             std::to_string(shape.headDim) + (shape.bf16 ? "bf16" : "f16");
    });

} // namespace

// Linear kernels on the PTX interpreter: every format and every cut of K
// against doubles, and the same bits from each kernel that a dispatch has.
#include "KernelRunner.h"
#include "codegen/formats/Tiles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace kvc;

namespace {

struct Shape {
  const char *format;
  int64_t rows, columns;
  const char *other; // of a second weight that meets the first; null without
};

std::string number(int64_t value) { return std::to_string(value); }
int64_t lines(int64_t bytes) { return (bytes + 63) / 64 * 64; }
std::string tensor(int64_t columns) {
  return "tensor<?x" + number(columns) + "xf32, #kvc.rows>";
}

/// A weight with random values, packed and as doubles.
struct Matrix {
  Matrix(const char *name, const Shape &shape, std::mt19937 &random)
      : layout(tilesLayout(*formatFromName(name), shape.rows, shape.columns, 16,
                           8, tileSplits(shape.columns))) {
    int64_t rowBytes = formatInfo(layout.format).rowBytes(shape.columns);
    std::vector<uint8_t> source(shape.rows * rowBytes);
    // Scales and elements below 2: neither infinities nor NaN.
    for (uint8_t &byte : source)
      byte = static_cast<uint8_t>(random() & 0xbb);
    packed.resize((layout.totalBytes + 127) / 128 * 128);
    packTiles(layout, source.data(), 0, layout.units, packed.data());
    values.resize(shape.rows * shape.columns);
    for (int64_t row = 0; row < shape.rows; ++row)
      dequantize(layout.format, source.data() + row * rowBytes, shape.columns,
                 values.data() + row * shape.columns);
  }

  std::string declaration(const std::string &symbol, const char *name,
                          int64_t offset) const {
    return "kvc.weight @" + symbol + " : !kvc.weight<1x" + number(layout.rows) +
           "x" + number(layout.columns) +
           ", #kvc.tiles<unit = 16, pair = 8, splits = " +
           number(layout.splits) + ">> = [#kvc.slice<@f, " + name +
           ", 0>] {offsets = array<i64: " + number(offset) + ">}\n";
  }

  TilesLayout layout;
  std::vector<uint8_t> packed;
  std::vector<double> values;
};

class Linear : public testing::TestWithParam<Shape> {
protected:
  static constexpr int64_t Rows = 70; // two blocks of 64 tokens

  void SetUp() override {
    const Shape &shape = GetParam();
    weights.emplace_back(shape.format, shape, random);
    if (shape.other)
      weights.emplace_back(shape.other, shape, random);
    xStride = lines(2 * shape.columns);
    yStride = lines(4 * shape.rows);
    std::string declarations;
    std::vector<uint8_t> arena;
    for (size_t index = 0; index < weights.size(); ++index) {
      declarations +=
          weights[index].declaration("w" + number(static_cast<int64_t>(index)),
                                     index ? shape.other : shape.format,
                                     static_cast<int64_t>(arena.size()));
      arena.insert(arena.end(), weights[index].packed.begin(),
                   weights[index].packed.end());
    }
    std::string x = tensor(shape.columns), y = tensor(shape.rows);
    std::string slotOf = ", stride = " + number(yStride) + ", f32> : " + y;
    std::string body =
        "%x = kvc.read slot<rows, offset = 0, stride = " + number(xStride) +
        ", bf16> : " + x + "\n";
    if (shape.other)
      body += "%y:2 = kvc.linear %x, [@w0, @w1] : (" + x + ") -> (" + y + ", " +
              y +
              ")\n%s = kvc.activation %y#0 {kind = "
              "#kvc.activation_kind<silu>} : " +
              y + "\n%r = kvc.mul %s, %y#1 : " + y + "\n";
    else
      body += "%h = kvc.read slot<rows, offset = " + number(xStride) + slotOf +
              "\n%y = kvc.linear %x, [@w0] : (" + x + ") -> " + y +
              "\n%r = kvc.add %h, %y : " + y + "\n";
    body += "kvc.write %r, slot<rows, offset = " + number(xStride) + slotOf;
    std::string text =
        "kvc.model @m attributes {max_context = 128 : i64, target = "
        "#kvc.target<arch = \"cuda\", cpu = \"sm_90\", features = \"+ptx80\", "
        "vector_width = 128>} {\n"
        "kvc.source @f {path = \"w\", size = 1000000000 : i64}\n" +
        declarations +
        "kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: "
        "!kvc.batch) attributes {phase = #kvc.phase<decode>, rows_bytes = " +
        number(xStride + yStride) +
        " : i64, outputs_bytes = 0 : i64, worker_bytes = 0 : i64} {\n"
        "kvc.dispatch \"linear\" 0 {\n" +
        body + "\n}\nkvc.return\n}\n}\n";
    std::string error;
    runner = KernelRunner::create(text, error);
    ASSERT_TRUE(runner) << error << "\n" << text;
    // Immutable: a kernel may read them before it waits.
    runner->weights =
        runner->machine.allocate("weights", arena.size(), /*readOnly=*/true);
    runner->machine.write(runner->weights, arena.data(), arena.size());
    runner->maxRows = Rows;
    std::normal_distribution<float> draw;
    for (int64_t i = 0; i < Rows * shape.columns; ++i)
      activations.push_back(toBits(draw(random), /*bf16=*/true));
    for (int64_t i = 0; i < Rows * shape.rows; ++i)
      residual.push_back(draw(random));
  }

  /// The results of the first `rows` rows from the kernel with this suffix, in
  /// at most `blocks` blocks along x. Empty if there is none.
  std::vector<float> run(const std::string &suffix, int64_t rows,
                         int64_t blocks) {
    const Shape &shape = GetParam();
    std::vector<nvptx::Launch> launches;
    for (const nvptx::Launch &launch : runner->code.launches.decode)
      if (launch.kernel == "decode_0_linear_" + suffix)
        launches.push_back(launch);
    if (launches.empty())
      return {};
    if (launches[0].blocksPerSm)
      launches[0].grid[0].per = std::min(launches[0].grid[0].per, blocks);
    // Nothing but the rows themselves is initialised.
    runner->rows = runner->allocate("rows", (xStride + yStride) * Rows);
    for (int64_t row = 0; row < rows; ++row) {
      runner->machine.write(runner->rows + row * xStride,
                            activations.data() + row * shape.columns,
                            2 * shape.columns);
      runner->machine.write(runner->rows + Rows * xStride + row * yStride,
                            residual.data() + row * shape.rows, 4 * shape.rows);
    }
    TestBatch batch;
    batch.addRows(0, 0, static_cast<int32_t>(rows), 16);
    std::string error;
    EXPECT_TRUE(runner->run(launches, batch, error)) << suffix << ": " << error;
    std::vector<float> results;
    for (int64_t row = 0; row < rows; ++row) {
      std::vector<float> line = runner->download<float>(
          runner->rows + Rows * xStride + row * yStride, shape.rows);
      results.insert(results.end(), line.begin(), line.end());
    }
    runner->machine.free(runner->rows);
    return results;
  }

  void compare(const std::vector<float> &results) {
    const Shape &shape = GetParam();
    for (size_t i = 0; i < results.size(); ++i) {
      int64_t row = static_cast<int64_t>(i) / shape.rows,
              output = static_cast<int64_t>(i) % shape.rows;
      double sums[2] = {}, sizes[2] = {};
      for (size_t index = 0; index < weights.size(); ++index)
        for (int64_t k = 0; k < shape.columns; ++k) {
          double product =
              weights[index].values[output * shape.columns + k] *
              fromBits(activations[row * shape.columns + k], /*bf16=*/true);
          sums[index] += product;
          sizes[index] += std::fabs(product);
        }
      // f32 sums of exact products; f32 weights have 16 bits of a mantissa.
      double allowed = 2e-5 * sizes[0] + 1e-6, expected;
      if (shape.other) {
        double silu = sums[0] / (1 + std::exp(-sums[0]));
        expected = silu * sums[1];
        allowed = 1.2 * allowed * std::fabs(sums[1]) +
                  std::fabs(silu) * 2e-5 * sizes[1] +
                  1e-5 * std::fabs(expected) + 1e-6;
      } else {
        expected = residual[i] + sums[0];
      }
      ASSERT_NEAR(results[i], expected, allowed)
          << "row " << row << ", output " << output;
    }
  }

  std::mt19937 random{7};
  std::vector<Matrix> weights;
  std::vector<uint16_t> activations;
  std::vector<float> residual;
  int64_t xStride = 0, yStride = 0;
  std::unique_ptr<KernelRunner> runner;
};

} // namespace

TEST_P(Linear, EveryKernelSumsInOneOrder) {
  std::vector<float> wide = run("wide", Rows, 0);
  ASSERT_FALSE(wide.empty());
  compare(wide);
  auto prefix = [&](int64_t rows) {
    return std::vector<float>(wide.begin(),
                              wide.begin() + rows * GetParam().rows);
  };
  // A block for each tile, and one for all of them.
  EXPECT_EQ(run("narrow", 8, 1000), prefix(8));
  EXPECT_EQ(run("narrow", 3, 1), prefix(3));
  EXPECT_EQ(run("wide", 9, 0), prefix(9));
  std::vector<float> large = run("large", Rows, 0);
  if (!large.empty())
    EXPECT_EQ(large, wide);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Linear,
    testing::Values(
        // Segments of whole chunks, of several, and more than eight rows of
        // activations fit in shared memory.
        Shape{"bf16", 40, 512, nullptr}, Shape{"bf16", 16, 8448, nullptr},
        Shape{"bf16", 16, 14592, nullptr}, Shape{"f32", 24, 512, nullptr},
        Shape{"f16", 24, 768, nullptr}, Shape{"q2_k", 24, 256, nullptr},
        Shape{"q3_k", 24, 512, nullptr}, Shape{"q4_k", 40, 512, nullptr},
        Shape{"q5_k", 24, 512, nullptr}, Shape{"q6_k", 24, 768, nullptr},
        Shape{"iq4_xs", 24, 512, nullptr}, Shape{"q4_k", 16, 8448, nullptr},
        // Chunks of every size, segments of two lengths, tails of K.
        Shape{"q8_0", 24, 480, nullptr}, Shape{"q5_1", 24, 736, nullptr},
        Shape{"q5_0", 24, 416, nullptr}, Shape{"q4_0", 24, 288, nullptr},
        Shape{"q4_1", 24, 96, nullptr}, Shape{"iq4_nl", 24, 480, nullptr},
        Shape{"mxfp4", 24, 416, nullptr}, Shape{"f32", 24, 288, nullptr},
        Shape{"f16", 24, 40, nullptr}, Shape{"bf16", 24, 300, nullptr},
        Shape{"bf16", 24, 37, nullptr},
        // Two weights that meet, of one format and of two.
        Shape{"bf16", 40, 512, "bf16"}, Shape{"q4_k", 24, 512, "q6_k"},
        Shape{"q4_0", 24, 480, "f16"}),
    [](const testing::TestParamInfo<Shape> &info) {
      std::string name =
          std::string(info.param.format) + "by" + number(info.param.columns);
      return info.param.other ? name + "with" + info.param.other : name;
    });

// Row kernels on the PTX interpreter: gathered rows of every format bit by bit,
// arithmetic against doubles.
#include "KernelRunner.h"
#include "codegen/formats/Tiles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace kvc;

namespace {

std::string number(int64_t value) { return std::to_string(value); }

/// A module of one decode program with these declarations and dispatches.
std::string moduleText(const std::string &declarations,
                       const std::string &dispatches) {
  return "kvc.model @m attributes {max_context = 128 : i64, target = "
         "#kvc.target<arch = \"cuda\", cpu = \"sm_90\", features = \"+ptx80\", "
         "vector_width = 128>} {\n"
         "kvc.source @f {path = \"w\", size = 1000000000 : i64}\n" +
         declarations +
         "kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: "
         "!kvc.batch) attributes {phase = #kvc.phase<decode>, rows_bytes = "
         "1000000 : i64, outputs_bytes = 1000000 : i64, worker_bytes = 0 : "
         "i64} {\n" +
         dispatches + "kvc.return\n}\n}\n";
}

std::string slot(const char *space, int64_t offset, int64_t columns,
                 const char *element = "f32") {
  int64_t bytes = columns * (std::string(element) == "f32" ? 4 : 2);
  return std::string("slot<") + space + ", offset = " + number(offset) +
         ", stride = " + number((bytes + 63) / 64 * 64) + ", " + element + ">";
}

std::string rows(int64_t columns, const char *space = "rows") {
  return "tensor<?x" + number(columns) + "xf32, #kvc." + space + ">";
}

//===----------------------------------------------------------------------===//
// Gathers
//===----------------------------------------------------------------------===//

struct Gather {
  const char *format;
  int64_t rows, columns, unit, pair;
};

class Embed : public testing::TestWithParam<Gather> {};

TEST_P(Embed, EveryBit) {
  const Gather &gather = GetParam();
  Format format = *formatFromName(gather.format);
  const FormatInfo &info = formatInfo(format);
  int splits = tileSplits(gather.columns);
  TilesLayout layout = tilesLayout(format, gather.rows, gather.columns,
                                   gather.unit, gather.pair, splits);
  std::mt19937 random(5);
  std::vector<uint8_t> source(gather.rows * info.rowBytes(gather.columns));
  // Neither infinities nor NaN among the scales and elements.
  for (uint8_t &byte : source)
    byte = static_cast<uint8_t>(random() & 0xbb);
  std::vector<uint8_t> packed(layout.totalBytes);
  packTiles(layout, source.data(), 0, layout.units, packed.data());

  std::string type = rows(gather.columns);
  std::string weight =
      "kvc.weight @e : !kvc.weight<1x" + number(gather.rows) + "x" +
      number(gather.columns) + ", #kvc.tiles<unit = " + number(gather.unit) +
      ", pair = " + number(gather.pair) + ", splits = " + number(splits) +
      ">> = [#kvc.slice<@f, " + gather.format +
      ", 0>] {offsets = array<i64: 128>}\n";
  std::string body = "%x = kvc.embed %tokens, @e : (tensor<?xi32, #kvc.rows>) "
                     "-> " +
                     type + "\n";
  int64_t stride = (gather.columns * 4 + 63) / 64 * 64;
  std::string text = moduleText(
      weight, "kvc.dispatch \"embed\" 0 {\n" + body + "kvc.write %x, " +
                  slot("rows", 0, gather.columns) + " : " + type + "\n}\n" +
                  "kvc.dispatch \"positions\" 1 {\n" + body +
                  "%y = kvc.add_positions %x, @e, %batch : " + type +
                  "\nkvc.write %y, " + slot("rows", stride, gather.columns) +
                  " : " + type + "\n}\n");
  std::string error;
  auto runner = KernelRunner::create(text, error);
  ASSERT_TRUE(runner) << error;
  packed.insert(packed.begin(), 128, 0xff);
  runner->weights = runner->upload("weights", packed);
  TestBatch batch;
  std::vector<int32_t> ids = {0, 1, 7,
                              8, 9, static_cast<int32_t>(gather.rows - 1)};
  for (size_t row = 0; row < ids.size(); ++row) {
    batch.tokens.push_back(ids[row]);
    batch.positions.push_back(ids[ids.size() - 1 - row]);
    batch.rowSequence.push_back(static_cast<int32_t>(row));
  }
  runner->maxRows = static_cast<int64_t>(ids.size());
  runner->rows = runner->allocate("rows", 2 * stride * ids.size());
  ASSERT_TRUE(runner->run(runner->code.launches.decode, batch, error)) << error;
  auto valuesOf = [&](int64_t id) {
    std::vector<float> values(gather.columns);
    unpackRow(layout, packed.data() + 128, id, values.data());
    return values;
  };
  for (size_t row = 0; row < ids.size(); ++row) {
    std::vector<float> expected = valuesOf(ids[row]);
    EXPECT_EQ(
        runner->download<float>(runner->rows + row * stride, gather.columns),
        expected);
    std::vector<float> added = valuesOf(batch.positions[row]);
    for (size_t i = 0; i < added.size(); ++i)
      added[i] = expected[i] + added[i];
    EXPECT_EQ(runner->download<float>(runner->rows + stride * ids.size() +
                                          row * stride,
                                      gather.columns),
              added);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, Embed,
    testing::Values(
        Gather{"f32", 40, 96, 16, 8}, Gather{"f32", 21, 7, 16, 8},
        Gather{"f16", 33, 130, 16, 8}, Gather{"bf16", 48, 320, 24, 12},
        Gather{"bf16", 32, 1056, 16, 1}, Gather{"q4_0", 40, 96, 16, 8},
        Gather{"q4_1", 40, 288, 16, 8}, Gather{"q5_0", 40, 96, 16, 8},
        Gather{"q5_1", 40, 64, 20, 10}, Gather{"q8_0", 40, 992, 16, 8},
        Gather{"q2_k", 40, 512, 16, 8}, Gather{"q3_k", 40, 256, 16, 8},
        Gather{"q4_k", 40, 2304, 16, 8}, Gather{"q5_k", 40, 256, 16, 8},
        Gather{"q6_k", 40, 512, 16, 8}, Gather{"iq4_nl", 40, 32, 16, 8},
        Gather{"iq4_xs", 40, 256, 16, 8}, Gather{"mxfp4", 40, 160, 16, 8}),
    [](const testing::TestParamInfo<Gather> &info) {
      return std::string(info.param.format) + "by" + number(info.param.columns);
    });

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

class Rows : public testing::TestWithParam<int64_t> {
protected:
  std::vector<float> draw(int64_t count) {
    std::vector<float> values(count);
    for (float &value : values)
      value = std::normal_distribution<float>()(random);
    return values;
  }
  std::mt19937 random{3};
};

TEST_P(Rows, Norms) {
  int64_t columns = GetParam(), count = 3;
  int64_t stride = (columns * 4 + 63) / 64 * 64;
  std::string type = rows(columns);
  int64_t biasOffset = (columns * 4 + 127) / 128 * 128;
  auto vectorOf = [&](const char *name, int64_t offset) {
    return std::string("kvc.weight @") + name + " : !kvc.weight<1x" +
           number(columns) +
           "> = [#kvc.slice<@f, f32, 0>] {offsets = "
           "array<i64: " +
           number(offset) + ">}\n";
  };
  std::string read = "%x = kvc.read " + slot("rows", 0, columns) + " : " + type;
  std::string text = moduleText(
      vectorOf("w", 0) + vectorOf("b", biasOffset),
      "kvc.dispatch \"rms\" 0 {\n" + read +
          "\n%n = kvc.rms_norm %x, @w {eps = 1.0e-5 : f64} : " + type +
          "\n%r = kvc.round %n to bf16 : " + type + "\nkvc.write %n, " +
          slot("rows", stride, columns) + " : " + type + "\nkvc.write %r, " +
          slot("rows", 2 * stride, columns, "bf16") + " : " + type +
          "\n}\nkvc.dispatch \"layer\" 1 {\n" + read +
          "\n%n = kvc.layer_norm %x, @w bias @b {eps = 1.0e-5 : f64} : " +
          type + "\nkvc.write %n, " + slot("rows", 3 * stride, columns) +
          " : " + type + "\n}\nkvc.dispatch \"select\" 2 {\n" + read +
          "\n%s = kvc.select_rows %x, %batch : (" + type + ") -> " +
          rows(columns, "outputs") +
          "\n%n = kvc.rms_norm %s, @w {eps = 1.0e-5 : f64} : " +
          rows(columns, "outputs") + "\nkvc.write %n, " +
          slot("outputs", 0, columns) + " : " + rows(columns, "outputs") +
          "\n}\n");
  std::string error;
  auto runner = KernelRunner::create(text, error);
  ASSERT_TRUE(runner) << error;
  std::vector<float> arena = draw(biasOffset / 4 + columns);
  runner->weights = runner->upload("weights", arena);
  runner->maxRows = runner->maxOutputs = count;
  runner->rows = runner->allocate("rows", 4 * stride * count);
  runner->outputs = runner->allocate("outputs", stride * count);
  TestBatch batch;
  std::vector<std::vector<float>> inputs;
  for (int64_t row = 0; row < count; ++row) {
    batch.positions.push_back(static_cast<int32_t>(row));
    inputs.push_back(draw(columns));
    // A mean that variance has to be taken from.
    for (float &value : inputs.back())
      value += 2;
    runner->machine.write(runner->rows + row * stride, inputs[row].data(),
                          columns * 4);
  }
  batch.outputRows = {2, 0};
  ASSERT_TRUE(runner->run(runner->code.launches.decode, batch, error)) << error;
  auto row = [&](int64_t which, int64_t index) {
    return runner->rows + (which * count + index) * stride;
  };
  for (int64_t index = 0; index < count; ++index) {
    auto rms = runner->download<float>(row(1, index), columns);
    auto rounded = runner->download<uint16_t>(
        row(2, 0) + index * ((columns * 2 + 63) / 64 * 64), columns);
    auto layer = runner->download<float>(row(3, index), columns);
    double squares = 0, mean = 0, variance = 0;
    for (float x : inputs[index]) {
      squares += double(x) * x / columns;
      mean += double(x) / columns;
    }
    for (float x : inputs[index])
      variance += (x - mean) * (x - mean) / columns;
    for (int64_t i = 0; i < columns; ++i) {
      double x = inputs[index][i], weight = arena[i];
      double expected = x / std::sqrt(squares + 1e-5) * weight;
      ASSERT_NEAR(rms[i], expected, 2e-6 * (1 + std::abs(expected)));
      ASSERT_EQ(rounded[i], toBits(rms[i], true));
      expected = (x - mean) / std::sqrt(variance + 1e-5) * weight +
                 arena[biasOffset / 4 + i];
      ASSERT_NEAR(layer[i], expected, 4e-6 * (1 + std::abs(expected)));
    }
  }
  for (size_t output = 0; output < 2; ++output)
    EXPECT_EQ(
        runner->download<float>(runner->outputs + output * stride, columns),
        runner->download<float>(row(1, batch.outputRows[output]), columns));
}

TEST_P(Rows, Elementwise) {
  int64_t columns = GetParam();
  int64_t stride = (columns * 4 + 63) / 64 * 64;
  std::string type = rows(columns), body;
  const char *kinds[] = {"silu", "gelu", "gelu_tanh"};
  for (int kind = 0; kind < 3; ++kind)
    body += "kvc.dispatch \"e\" " + number(kind) + " {\n%x = kvc.read " +
            slot("rows", 0, columns) + " : " + type + "\n%y = kvc.read " +
            slot("rows", stride, columns) + " : " + type +
            "\n%a = kvc.activation %x {kind = #kvc.activation_kind<" +
            kinds[kind] + ">} : " + type + "\n%m = kvc.mul %a, %y : " + type +
            "\n%s = kvc.add %m, %x : " + type + "\nkvc.write %s, " +
            slot("rows", (2 + kind) * stride, columns) + " : " + type + "\n}\n";
  std::string error;
  auto runner = KernelRunner::create(moduleText("", body), error);
  ASSERT_TRUE(runner) << error;
  runner->rows = runner->allocate("rows", 5 * stride);
  std::vector<float> x = draw(columns), y = draw(columns);
  for (float &value : x)
    value *= 4;
  x[0] = -200;
  x[columns - 1] = 200;
  runner->machine.write(runner->rows, x.data(), columns * 4);
  runner->machine.write(runner->rows + stride, y.data(), columns * 4);
  TestBatch batch;
  batch.positions = {0};
  ASSERT_TRUE(runner->run(runner->code.launches.decode, batch, error)) << error;
  for (int kind = 0; kind < 3; ++kind) {
    auto results =
        runner->download<float>(runner->rows + (2 + kind) * stride, columns);
    ASSERT_EQ(results.size(), static_cast<size_t>(columns));
    for (int64_t i = 0; i < columns; ++i) {
      double v = x[i];
      double inner = std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
      double activated = kind == 0 ? v / (1 + std::exp(-v))
                         : kind == 1
                             ? v / 2 * (1 + std::erf(v / std::sqrt(2.0)))
                             : v / 2 * (1 + std::tanh(inner));
      double expected = activated * y[i] + v;
      ASSERT_NEAR(results[i], expected,
                  3e-6 * (1 + std::abs(v) * (1 + std::abs(y[i]))))
          << kinds[kind] << " of " << v;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Columns, Rows,
                         testing::Values<int64_t>(7, 80, 576, 1030, 4096));

//===----------------------------------------------------------------------===//
// Rope, the cache and unfused attention
//===----------------------------------------------------------------------===//

struct Turn {
  const char *layout;
  int64_t headDim, pairs;
};

class Rope : public testing::TestWithParam<Turn> {};

TEST_P(Rope, RotatesAppendsAndAttends) {
  const char *layout = GetParam().layout;
  int64_t headDim = GetParam().headDim, pairs = GetParam().pairs;
  bool half = std::string(layout) == "half";
  constexpr int64_t Heads = 4, KvHeads = 2, Count = 70, Context = 128;
  int64_t stride = Heads * Context * 4;
  auto heads = [&](int64_t count, const std::string &last) {
    return "tensor<?x" + number(count) + "x" + last + "xf32, #kvc.rows>";
  };
  std::string wide = heads(Heads, number(headDim));
  std::string narrow = heads(KvHeads, number(headDim));
  std::string scores = heads(Heads, "?");
  auto at = [&](int64_t index, const char *element = "f32") {
    return "slot<rows, offset = " + number(index * stride) +
           ", stride = " + number(stride) + ", " + element + ">";
  };
  std::string frequencies;
  for (int64_t pair = 0; pair < pairs; ++pair)
    frequencies += std::string(pair ? ", " : "") + "0.5";
  auto rope = [&](const char *to, const char *from, const std::string &type) {
    return std::string(to) + " = kvc.rope " + from +
           ", %batch {layout = " + "#kvc.rope_layout<" + layout +
           ">, inv_freq = #kvc.reals<[" + frequencies + "]>} : " + type + "\n";
  };
  std::string body =
      "kvc.dispatch \"turn\" 0 {\n%q = kvc.read " + at(0) + " : " + wide +
      "\n" + rope("%r", "%q", wide) + "%h = kvc.round %r to f16 : " + wide +
      "\nkvc.write %h, " + at(1, "f16") + " : " + wide + "\n}\n" +
      "kvc.dispatch \"append\" 1 {\n%k = kvc.read " + at(2) + " : " + narrow +
      "\n%v = kvc.read " + at(3) + " : " + narrow + "\n" +
      rope("%r", "%k", narrow) +
      "kvc.cache_append %r, %v, @kv, %batch : " + narrow + "\n}\n" +
      "kvc.dispatch \"scores\" 2 {\n%q = kvc.read " + at(1, "f16") + " : " +
      wide + "\n%s = kvc.scores %q, @kv, %batch {scale = 0.25 : f64} : (" +
      wide + ") -> " + scores + "\nkvc.write %s, " + at(4) + " : " + scores +
      "\n}\nkvc.dispatch \"softmax\" 3 {\n%s = kvc.read " + at(4) + " : " +
      scores + "\n%p = kvc.masked_softmax %s, %batch : " + scores +
      "\nkvc.write %p, " + at(5) + " : " + scores +
      "\n}\nkvc.dispatch \"context\" 4 {\n%p = kvc.read " + at(5) + " : " +
      scores + "\n%c = kvc.context %p, @kv, %batch : (" + scores + ") -> " +
      wide + "\nkvc.write %c, " + at(6) + " : " + wide + "\n}\n";
  std::string text = moduleText(
      "kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = " +
          number(headDim) + ", type = f16, page = 64, split = 64>\n",
      body);
  std::string error;
  auto runner = KernelRunner::create(text, error);
  ASSERT_TRUE(runner) << error;

  std::mt19937 random(9);
  TestBatch batch;
  batch.addRows(0, 0, Count, 16);
  batch.pages = {1, 0};
  batch.pagesStride = 2;
  for (int64_t row = 0; row < Count; ++row)
    for (int64_t pair = 0; pair < pairs; ++pair) {
      double angle = 0.1 * static_cast<double>(row * (pair + 1));
      batch.rope.push_back(static_cast<float>(std::cos(angle)));
      batch.rope.push_back(static_cast<float>(std::sin(angle)));
    }
  runner->maxRows = Count;
  runner->rows = runner->allocate("rows", 7 * stride * Count);
  runner->kv = runner->allocate("kv", 2 * 2 * KvHeads * 64 * headDim * 2);
  std::vector<std::vector<float>> inputs[3];
  for (int64_t which = 0; which < 3; ++which)
    for (int64_t row = 0; row < Count; ++row) {
      std::vector<float> values((which ? KvHeads : Heads) * headDim);
      for (float &value : values)
        value = std::normal_distribution<float>()(random);
      int64_t at = which ? which + 1 : 0;
      runner->machine.write(runner->rows + (at * Count + row) * stride,
                            values.data(), values.size() * 4);
      inputs[which].push_back(values);
    }
  ASSERT_TRUE(runner->run(runner->code.launches.decode, batch, error)) << error;

  auto turned = [&](const std::vector<float> &values, int64_t row) {
    std::vector<double> result(values.begin(), values.end());
    for (size_t head = 0; head < values.size(); head += headDim)
      for (int64_t pair = 0; pair < pairs; ++pair) {
        size_t first = head + (half ? pair : 2 * pair);
        size_t second = half ? first + pairs : first + 1;
        double cos = batch.rope[(row * pairs + pair) * 2];
        double sin = batch.rope[(row * pairs + pair) * 2 + 1];
        result[first] = values[first] * cos - values[second] * sin;
        result[second] = values[first] * sin + values[second] * cos;
      }
    return result;
  };
  for (int64_t row : {0, 1, 63, 64, 69}) {
    auto query = runner->download<uint16_t>(
        runner->rows + (Count + row) * stride, Heads * headDim);
    std::vector<double> expected = turned(inputs[0][row], row);
    for (size_t i = 0; i < query.size(); ++i)
      ASSERT_NEAR(fromBits(query[i], false), expected[i],
                  1e-3 * (1 + std::abs(expected[i])));
    auto context = runner->download<float>(
        runner->rows + (6 * Count + row) * stride, Heads * headDim);
    ASSERT_EQ(context.size(), query.size());
    for (int64_t head = 0; head < Heads; ++head) {
      int64_t from = head / 2 * headDim;
      std::vector<double> weights;
      double sum = 0;
      for (int64_t t = 0; t <= row; ++t) {
        std::vector<double> key = turned(inputs[1][t], t);
        double score = 0;
        for (int64_t dim = 0; dim < headDim; ++dim)
          score += expected[head * headDim + dim] * key[from + dim];
        weights.push_back(std::exp(score / 4));
        sum += weights.back();
      }
      for (int64_t dim = 0; dim < headDim; ++dim) {
        double value = 0;
        for (int64_t t = 0; t <= row; ++t)
          value += weights[t] / sum * inputs[2][t][from + dim];
        ASSERT_NEAR(context[head * headDim + dim], value, 5e-3)
            << "row " << row << " head " << head << " dim " << dim;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, Rope,
    testing::Values(Turn{"half", 24, 12}, Turn{"half", 24, 8},
                    Turn{"half", 10, 3}, Turn{"interleaved", 16, 8},
                    Turn{"interleaved", 20, 6}, Turn{"interleaved", 7, 3}),
    [](const testing::TestParamInfo<Turn> &info) {
      return std::string(info.param.layout) + number(info.param.headDim) +
             "pairs" + number(info.param.pairs);
    });

} // namespace

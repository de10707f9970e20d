// Tokens chosen on the PTX interpreter, against the runtime's own sampler.
#include "KernelRunner.h"
#include "runtime/Sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

using namespace kvc;

namespace {

std::string moduleText(int64_t vocab) {
  std::string columns = std::to_string(vocab);
  std::string stride = std::to_string((vocab * 4 + 63) / 64 * 64);
  std::string type = "tensor<?x" + columns + "xf32, #kvc.outputs>";
  return "kvc.model @m attributes {max_context = 64 : i64, target = "
         "#kvc.target<arch = \"cuda\", cpu = \"sm_90\", features = \"+ptx80\", "
         "vector_width = 128>} {\n"
         "kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: "
         "!kvc.batch) attributes {phase = #kvc.phase<decode>, rows_bytes = 0 "
         ": i64, outputs_bytes = " +
         stride +
         " : i64, worker_bytes = 0 : i64} {\n"
         "kvc.dispatch \"head\" 0 {\n"
         "%x = kvc.read slot<outputs, offset = 0, stride = " +
         stride + ", f32> : " + type +
         "\nkvc.write %x, slot<logits, offset = 0, stride = " +
         std::to_string(vocab * 4) + ", f32> : " + type +
         "\n}\nkvc.return\n}\n}\n";
}

struct Choice {
  SamplingOptions options;
  float uniform;
  int64_t tokens;
};

class Choose : public testing::TestWithParam<int64_t> {
protected:
  void SetUp() override {
    vocab = GetParam();
    std::string error;
    runner = KernelRunner::create(moduleText(vocab), error);
    ASSERT_TRUE(runner) << error;
    ASSERT_EQ(runner->code.launches.choose.size(), 1u);
  }

  /// Outputs' ids, all in one launch.
  std::vector<int32_t> run(const std::vector<std::vector<float>> &logits,
                           const std::vector<Choice> &choices) {
    uint64_t count = logits.size();
    TestBatch batch;
    std::vector<float> all;
    for (uint64_t i = 0; i < count; ++i) {
      const SamplingOptions &options = choices[i].options;
      batch.outputRows.push_back(static_cast<int32_t>(i));
      batch.positions.push_back(0);
      batch.sampling.push_back(
          {options.Temperature == 0
               ? 0.0f
               : static_cast<float>(
                     std::min(1 / options.Temperature,
                              double(std::numeric_limits<float>::max()))),
           static_cast<int32_t>(options.TopK), static_cast<float>(options.TopP),
           static_cast<float>(options.MinP), choices[i].uniform,
           static_cast<int32_t>(choices[i].tokens)});
      all.insert(all.end(), logits[i].begin(), logits[i].end());
    }
    runner->logits = runner->upload("logits", all);
    uint64_t counterBytes = count * runner->code.launches.countersPerRow * 4;
    runner->counters = runner->allocate("counters", counterBytes);
    runner->machine.fill(runner->counters, 0, counterBytes);
    runner->chosen = runner->allocate("chosen", count * 4);
    std::string error;
    EXPECT_TRUE(runner->run(runner->code.launches.choose, batch, error))
        << error;
    // What the next kernel finds.
    for (uint8_t byte :
         runner->download<uint8_t>(runner->counters, counterBytes))
      EXPECT_EQ(byte, 0);
    return runner->download<int32_t>(runner->chosen, count);
  }

  std::vector<float> draw(float spread) {
    std::vector<float> values(vocab);
    for (float &value : values)
      value = spread * std::normal_distribution<float>()(random);
    return values;
  }

  void expectSamplers(const std::vector<std::vector<float>> &logits,
                      const std::vector<Choice> &choices) {
    std::vector<int32_t> ids = run(logits, choices);
    ASSERT_EQ(ids.size(), logits.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      std::string error;
      const SamplingOptions &options = choices[i].options;
      Sampler sampler(options, choices[i].tokens);
      int32_t expected =
          sampler.choose(logits[i].data(), choices[i].uniform, error);
      EXPECT_EQ(ids[i], expected)
          << error << " temperature " << options.Temperature << " top-k "
          << options.TopK << " top-p " << options.TopP << " min-p "
          << options.MinP << " uniform " << choices[i].uniform;
    }
  }

  int64_t vocab = 0;
  std::unique_ptr<KernelRunner> runner;
  std::mt19937 random{11};
};

TEST_P(Choose, Largest) {
  std::vector<std::vector<float>> logits;
  std::vector<Choice> choices;
  for (int i = 0; i < 3; ++i) {
    logits.push_back(draw(1));
    choices.push_back({{}, 0, vocab});
  }
  // Ties, minus zero among them: the lowest id.
  std::vector<float> ties(vocab, -1);
  ties[vocab - 1] = ties[vocab / 2] = 0;
  ties[vocab / 3] = -0.0f;
  logits.push_back(ties);
  choices.push_back({{}, 0, vocab});
  // The largest lies beyond the tokens.
  logits.push_back(draw(1));
  logits.back()[vocab - 1] = 100;
  choices.push_back({{}, 0, vocab - 2});
  expectSamplers(logits, choices);
}

// In the share of every warp of every block.
TEST_P(Choose, LargestAnywhere) {
  std::vector<std::vector<float>> logits;
  std::vector<Choice> choices;
  int64_t step = std::max<int64_t>(1, vocab / 256);
  for (int64_t id = 0; id < vocab; id += step) {
    logits.push_back(std::vector<float>(size_t(vocab), -1));
    logits.back()[size_t(id)] = 1;
    choices.push_back({{}, 0, vocab});
  }
  expectSamplers(logits, choices);
}

TEST_P(Choose, Errors) {
  float infinity = std::numeric_limits<float>::infinity();
  std::vector<std::vector<float>> logits(5, draw(1));
  logits[0][vocab / 2] = std::nanf("");
  logits[1][vocab - 1] = infinity;
  logits[2].assign(vocab, -infinity);
  logits[3][0] = -std::nanf("");
  logits[4].assign(vocab, -infinity);
  logits[4][vocab / 5] = -std::numeric_limits<float>::max();
  for (double temperature : {0.0, 1.0}) {
    std::vector<Choice> choices(5, {{}, 0.5f, vocab});
    for (Choice &choice : choices)
      choice.options.Temperature = temperature;
    EXPECT_EQ(run(logits, choices),
              (std::vector<int32_t>{-1, -2, -3, -1,
                                    static_cast<int32_t>(vocab / 5)}));
  }
}

TEST_P(Choose, Draws) {
  std::vector<std::vector<float>> logits;
  std::vector<Choice> choices;
  const SamplingOptions kinds[] = {
      {1, 0, 1, 0},        {0.5, 0, 1, 0},      {1, 40, 1, 0},
      {1, 1, 1, 0},        {1, 0, 0.75, 0},     {2, 0, 0.96875, 0},
      {1, 0, 1, 0.125},    {1.5, 7, 0.5, 0},    {1, 50, 0.9375, 0.0625},
      {1, 0, 0.875, 0.25}, {1e-30, 0, 1, 0},    {1, 1000000, 1, 0},
      {4, 100, 1, 0.5},    {1, 0, 0.0078125, 0}};
  const float uniforms[] = {0, 0.25f, 0.59375f, 0.99999994f};
  for (const SamplingOptions &options : kinds)
    for (float uniform : uniforms) {
      logits.push_back(draw(3));
      // Few distinct values: ties at every limit.
      if (choices.size() % 3 == 0)
        for (float &value : logits.back())
          value = std::round(value);
      choices.push_back({options, uniform, vocab - 1});
    }
  expectSamplers(logits, choices);
}

// Top-p that keeps some of many equal tokens, whose weights are far below 2^32:
// how many are kept is a quotient of sums above 2^32.
TEST_P(Choose, TiesOfSmallWeights) {
  std::vector<std::vector<float>> logits;
  std::vector<Choice> choices;
  double weight = std::exp(-10.0), total = 1 + weight * double(vocab - 1);
  for (int kept = 1; kept < 130; kept += 3) {
    logits.push_back(std::vector<float>(size_t(vocab), -10));
    logits.back()[size_t(kept)] = 0;
    SamplingOptions options = {1, 0, float((1 + weight * (kept - 0.5)) / total),
                               0};
    choices.push_back({options, 0.99999994f, vocab});
  }
  expectSamplers(logits, choices);
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, Choose,
                         testing::Values<int64_t>(131, 2048, 33000));

} // namespace

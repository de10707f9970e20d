#include "runtime/Philox.h"
#include "runtime/Sampler.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace kvc;

using Words = std::array<uint32_t, 4>;

// The known answers of the generator's authors (Random123's kat_vectors).
TEST(RuntimeSampler, PhiloxKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                   {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RuntimeSampler, UniformIsKeyedByPlace) {
  EXPECT_EQ(uniformAt(1, 2, 3), uniformAt(1, 2, 3));
  EXPECT_NE(uniformAt(1, 2, 3), uniformAt(2, 2, 3));
  EXPECT_NE(uniformAt(1, 2, 3), uniformAt(1, 3, 3));
  EXPECT_NE(uniformAt(1, 2, 3), uniformAt(1, 2, 4));
  double sum = 0;
  for (uint64_t i = 0; i != 20000; ++i) {
    double value = uniformAt(5, 0, i);
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  EXPECT_NEAR(sum / 20000, 0.5, 0.01);
}

TEST(RuntimeSampler, GreedyTakesTheLowestOfTies) {
  std::string error;
  for (int64_t count : {1, 3, 16, 17, 64, 100, 1000}) {
    std::vector<float> logits(size_t(count), -2.0f);
    Sampler sampler({}, count);
    EXPECT_EQ(sampler.choose(logits.data(), 0, error), 0);
    for (int64_t at = 0; at < count; at += 7) {
      logits[size_t(at)] = 3.0f;
      logits[size_t(count - 1)] = 3.0f;
      EXPECT_EQ(sampler.choose(logits.data(), 0, error), at);
      logits[size_t(at)] = logits[size_t(count - 1)] = -2.0f;
    }
  }
}

TEST(RuntimeSampler, PaddedIdsAreNeverChosen) {
  std::vector<float> logits(40, 0.0f);
  logits[30] = 5;
  logits[35] = std::nanf("");
  std::string error;
  EXPECT_EQ(Sampler({}, 30).choose(logits.data(), 0, error), 0);
  EXPECT_EQ(Sampler({}, 31).choose(logits.data(), 0, error), 30);
  SamplingOptions hot;
  hot.Temperature = 1;
  Sampler sampler(hot, 30);
  for (uint64_t i = 0; i != 500; ++i) {
    int32_t id = sampler.choose(logits.data(), uniformAt(0, 0, i), error);
    ASSERT_GE(id, 0);
    ASSERT_LT(id, 30);
  }
}

TEST(RuntimeSampler, NotANumberIsAnError) {
  for (double temperature : {0.0, 1.0}) {
    SamplingOptions options;
    options.Temperature = temperature;
    for (size_t at : {size_t(0), size_t(17), size_t(48), size_t(49)}) {
      std::vector<float> logits(50, 1.0f);
      Sampler sampler(options, 50);
      std::string error;
      logits[at] = std::nanf("");
      EXPECT_EQ(sampler.choose(logits.data(), 0.5, error), -1);
      EXPECT_EQ(error, "the model computed NaN as the logit of token " +
                           std::to_string(at));
      logits[at] = std::numeric_limits<float>::infinity();
      EXPECT_EQ(sampler.choose(logits.data(), 0.5, error), -1);
      EXPECT_EQ(error, "the model computed infinity as the logit of token " +
                           std::to_string(at));
      logits[at] = -std::numeric_limits<float>::infinity();
      EXPECT_GE(sampler.choose(logits.data(), 0.5, error), 0);
    }
    std::vector<float> none(50, -std::numeric_limits<float>::infinity());
    std::string error;
    EXPECT_EQ(Sampler(options, 50).choose(none.data(), 0.5, error), -1);
    EXPECT_EQ(error, "every logit is minus infinity");
  }
}

// How often each id is drawn out of `draws`.
static std::vector<double> frequencies(const SamplingOptions &options,
                                       const std::vector<float> &logits,
                                       int draws = 40000) {
  Sampler sampler(options, int64_t(logits.size()));
  std::vector<double> counts(logits.size());
  std::string error;
  for (int i = 0; i != draws; ++i) {
    int32_t id =
        sampler.choose(logits.data(), uniformAt(9, 1, uint64_t(i)), error);
    EXPECT_GE(id, 0) << error;
    counts[size_t(id)] += 1.0 / draws;
  }
  return counts;
}

static std::vector<float> logsOf(const std::vector<double> &probabilities) {
  std::vector<float> logits;
  for (double p : probabilities)
    logits.push_back(float(std::log(p)) + 3.0f);
  return logits;
}

TEST(RuntimeSampler, DrawsFromTheDistribution) {
  std::vector<double> p = {0.1, 0.4, 0.05, 0.25, 0.2};
  SamplingOptions options;
  options.Temperature = 1;
  std::vector<double> f = frequencies(options, logsOf(p));
  for (size_t i = 0; i != p.size(); ++i)
    EXPECT_NEAR(f[i], p[i], 0.01);

  options.Temperature = 0.5; // squares the probabilities
  double total = 0;
  for (double value : p)
    total += value * value;
  f = frequencies(options, logsOf(p));
  for (size_t i = 0; i != p.size(); ++i)
    EXPECT_NEAR(f[i], p[i] * p[i] / total, 0.01);
}

TEST(RuntimeSampler, FiltersKeepWhatTheySay) {
  std::vector<float> logits = logsOf({0.1, 0.4, 0.05, 0.25, 0.2});
  SamplingOptions options;
  options.Temperature = 1;
  auto kept = [&](const SamplingOptions &settings) {
    std::vector<size_t> ids;
    std::vector<double> f = frequencies(settings, logits, 4000);
    for (size_t i = 0; i != f.size(); ++i)
      if (f[i] > 0)
        ids.push_back(i);
    return ids;
  };
  using Ids = std::vector<size_t>;
  options.TopK = 2;
  EXPECT_EQ(kept(options), (Ids{1, 3}));
  options.TopK = 0;
  options.TopP = 0.5; // 0.4 does not reach it, the next one crosses
  EXPECT_EQ(kept(options), (Ids{1, 3}));
  options.TopP = 0.66;
  EXPECT_EQ(kept(options), (Ids{1, 3, 4}));
  options.TopP = 1e-9;
  EXPECT_EQ(kept(options), (Ids{1}));
  options.TopP = 1;
  options.MinP = 0.45; // of 0.4: 0.18
  EXPECT_EQ(kept(options), (Ids{1, 3, 4}));
  options.MinP = 1;
  EXPECT_EQ(kept(options), (Ids{1}));
  // Top-p counts within what top-k left: 0.4 of 0.65.
  options.MinP = 0;
  options.TopK = 2;
  options.TopP = 0.6;
  EXPECT_EQ(kept(options), (Ids{1}));
}

TEST(RuntimeSampler, TopPOverALargeVocabulary) {
  // Equal logits: the fewest that reach a half are the first half, by id.
  std::vector<float> logits(5000, 0.0f);
  SamplingOptions options;
  options.Temperature = 1;
  options.TopP = 0.5;
  Sampler sampler(options, 5000);
  std::string error;
  EXPECT_EQ(sampler.choose(logits.data(), 0, error), 0);
  EXPECT_EQ(sampler.choose(logits.data(), 1 - 0x1p-53, error), 2499);
}

// Weights against the C library's exponential, over the whole range of use.
TEST(RuntimeSampler, ProbabilitiesAreAccurate) {
  for (double temperature : {0.3, 1.0, 3.0})
    for (float distance : {0.0f, 1e-3f, 0.5f, 1.0f, 3.7f, 9.0f}) {
      // Two tokens: the share of the second tells its weight.
      std::vector<float> logits = {5.0f, 5.0f - distance};
      SamplingOptions options;
      options.Temperature = temperature;
      Sampler sampler(options, 2);
      double weight = std::exp(double(logits[1] - logits[0]) / temperature);
      double share = 1 / (1 + weight); // of the first
      std::string error;
      EXPECT_EQ(sampler.choose(logits.data(), share - 1e-6, error), 0);
      if (share + 1e-6 < 1) {
        EXPECT_EQ(sampler.choose(logits.data(), share + 1e-6, error), 1);
      }
    }
}

TEST(RuntimeSampler, ExtremeTemperatures) {
  std::vector<float> logits = {1.0f, 1.0f, -1e30f, 0.5f};
  std::string error;
  for (double temperature : {1e-300, 1e-30, 1e-3}) {
    SamplingOptions cold;
    cold.Temperature = temperature;
    Sampler sampler(cold, 4);
    EXPECT_EQ(sampler.choose(logits.data(), 0.49, error), 0);
    EXPECT_EQ(sampler.choose(logits.data(), 0.51, error), 1);
  }
}

// Top-k by a heap against a plain sort.
TEST(RuntimeSampler, TopKAgainstSorting) {
  std::vector<float> logits;
  for (uint64_t i = 0; i != 3001; ++i) // many equal ones
    logits.push_back(float(int(uniformAt(4, 4, i) * 200)));
  std::vector<int32_t> order(logits.size());
  for (size_t i = 0; i != order.size(); ++i)
    order[i] = int32_t(i);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    float left = logits[size_t(a)], right = logits[size_t(b)];
    return left != right ? left > right : a < b;
  });
  for (int64_t k : {1, 2, 15, 16, 40, 1000, 3000}) {
    SamplingOptions options;
    options.Temperature = 1e6; // all but equal weights
    options.TopK = k;
    Sampler sampler(options, int64_t(logits.size()));
    std::string error;
    for (int64_t at : {int64_t(0), k / 2, k - 1})
      EXPECT_EQ(
          sampler.choose(logits.data(), (double(at) + 0.5) / double(k), error),
          order[size_t(at)])
          << k << ' ' << at;
  }
}

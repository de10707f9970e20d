#include "FakeProgram.h"
#include "runtime/CpuDevice.h"
#include "runtime/Engine.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace kvc;

namespace {

std::vector<int32_t> randomTokens(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> tokens(count);
  for (int32_t &token : tokens)
    token = int32_t(random() % fake::Vocab);
  return tokens;
}

// An engine over the fake program.
struct Fixture {
  explicit Fixture(Engine::Limits limits, CpuOptions options = {}) {
    EXPECT_TRUE(parsePlan(kvc_program.plan_json, Schedule, Error)) << Error;
    options.Poison = true;
    Model = Engine::create(kvc_program, Schedule, Weights.data(), limits,
                           std::make_unique<CpuDevice>(options), Error);
  }

  // Appends tokens and returns the logits of the last one.
  std::vector<float> feed(int32_t sequence,
                          const std::vector<int32_t> &tokens) {
    std::vector<float> result;
    bool done = Model->prefill(
        {{sequence, tokens.data(), int64_t(tokens.size())}},
        [&](size_t, int64_t, const StepOutput &output) {
          const float *logits = output.logits(Error);
          result.assign(logits, logits + fake::Vocab);
          return true;
        },
        Error);
    EXPECT_TRUE(done) << Error;
    return result;
  }

  std::vector<float> decode(int32_t sequence, int32_t token) {
    std::vector<float> result;
    bool done = Model->decode(
        {{sequence, &token, 1}},
        [&](size_t, int64_t, const StepOutput &output) {
          const float *logits = output.logits(Error);
          result.assign(logits, logits + fake::Vocab);
          return true;
        },
        Error);
    EXPECT_TRUE(done) << Error;
    return result;
  }

  std::vector<uint8_t> Weights = fake::weights();
  Plan Schedule;
  std::string Error;
  std::unique_ptr<Engine> Model;
};

Engine::Limits limitsFor(int64_t rows, int64_t sequences = 4) {
  Engine::Limits limits;
  limits.Context = fake::Context;
  limits.Pages = 200;
  limits.Rows = std::max(rows, sequences);
  limits.Sequences = sequences;
  limits.Outputs = sequences;
  return limits;
}

class RuntimeEngine
    : public testing::TestWithParam<std::tuple<int /*workers*/, int /*rows*/>> {
protected:
  CpuOptions options() const {
    CpuOptions options;
    options.Workers = std::get<0>(GetParam());
    return options;
  }
  int64_t rows() const { return std::get<1>(GetParam()); }
};

} // namespace

TEST_P(RuntimeEngine, PrefillThenDecode) {
  for (size_t length : {1u, 2u, 3u, 4u, 5u, 31u, 64u}) {
    Fixture fixture(limitsFor(rows(), 1), options());
    ASSERT_TRUE(fixture.Model) << fixture.Error;
    std::vector<int32_t> tokens = randomTokens(length, uint32_t(length));
    int32_t sequence = fixture.Model->sequences().add();
    EXPECT_EQ(fixture.feed(sequence, tokens), fake::logits(tokens));
    for (int32_t next : randomTokens(9, 99)) {
      tokens.push_back(next);
      EXPECT_EQ(fixture.decode(sequence, next), fake::logits(tokens));
    }
    EXPECT_EQ(fixture.Model->projectedRows(), int64_t(tokens.size()));
  }
}

TEST_P(RuntimeEngine, RaggedSequences) {
  Fixture fixture(limitsFor(rows(), 3), options());
  ASSERT_TRUE(fixture.Model) << fixture.Error;
  std::vector<std::vector<int32_t>> texts = {
      randomTokens(17, 1), randomTokens(1, 2), randomTokens(40, 3),
      randomTokens(4, 4), randomTokens(6, 5)};
  std::vector<Engine::Feed> feeds;
  for (const std::vector<int32_t> &text : texts)
    feeds.push_back(
        {fixture.Model->sequences().add(), text.data(), int64_t(text.size())});
  std::vector<int> seen(texts.size());
  auto check = [&](size_t feed, int64_t, const StepOutput &output) {
    const float *logits = output.logits(fixture.Error);
    ++seen[feed];
    EXPECT_EQ(std::vector<float>(logits, logits + fake::Vocab),
              fake::logits(texts[feed]));
    return true;
  };
  ASSERT_TRUE(fixture.Model->prefill(feeds, check, fixture.Error))
      << fixture.Error;
  EXPECT_EQ(seen, std::vector<int>(texts.size(), 1));
  for (int32_t step = 0; step != 8; ++step) {
    for (size_t i = 0; i != texts.size(); ++i) {
      texts[i].push_back((step * 5 + int32_t(i)) % int32_t(fake::Vocab));
      feeds[i] = {feeds[i].Sequence, &texts[i].back(), 1};
    }
    ASSERT_TRUE(fixture.Model->decode(feeds, check, fixture.Error))
        << fixture.Error;
  }
  EXPECT_EQ(seen, std::vector<int>(texts.size(), 9));
}

TEST_P(RuntimeEngine, LogitsOfEveryRow) {
  Fixture fixture(limitsFor(rows(), 2), options());
  ASSERT_TRUE(fixture.Model) << fixture.Error;
  std::vector<int32_t> first = randomTokens(23, 6);
  std::vector<int32_t> second = randomTokens(10, 7);
  std::vector<Engine::Feed> feeds = {
      {fixture.Model->sequences().add(), first.data(), 23, Outputs::All},
      {fixture.Model->sequences().add(), second.data(), 10, Outputs::Last}};
  std::vector<int64_t> rowsSeen;
  auto check = [&](size_t feed, int64_t row, const StepOutput &output) {
    const float *logits = output.logits(fixture.Error);
    const std::vector<int32_t> &text = feed == 0 ? first : second;
    std::vector<int32_t> prefix(text.begin(), text.begin() + row + 1);
    EXPECT_EQ(std::vector<float>(logits, logits + fake::Vocab),
              fake::logits(prefix));
    if (feed == 0)
      rowsSeen.push_back(row);
    else
      EXPECT_EQ(row, 9);
    return true;
  };
  ASSERT_TRUE(fixture.Model->prefill(feeds, check, fixture.Error))
      << fixture.Error;
  ASSERT_EQ(rowsSeen.size(), 23u);
  for (int64_t i = 0; i != 23; ++i)
    EXPECT_EQ(rowsSeen[size_t(i)], i);
}

TEST_P(RuntimeEngine, ForksGoTheirOwnWays) {
  Fixture fixture(limitsFor(rows(), 2), options());
  ASSERT_TRUE(fixture.Model) << fixture.Error;
  Sequences &sequences = fixture.Model->sequences();
  std::vector<int32_t> tokens = randomTokens(14, 8);
  int32_t first = sequences.add();
  fixture.feed(first, tokens);
  int32_t second = sequences.fork(first);
  std::vector<int32_t> left = tokens, right = tokens;
  left.push_back(5);
  right.push_back(6);
  EXPECT_EQ(fixture.decode(second, 6), fake::logits(right));
  EXPECT_EQ(fixture.decode(first, 5), fake::logits(left));
  sequences.truncate(first, 10);
  left.resize(10);
  left.insert(left.end(), {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(fixture.feed(first, {1, 2, 3, 4, 5, 6}), fake::logits(left));
  right.push_back(9);
  EXPECT_EQ(fixture.decode(second, 9), fake::logits(right));
}

INSTANTIATE_TEST_SUITE_P(WorkersAndChunks, RuntimeEngine,
                         testing::Combine(testing::Values(1, 2, 3),
                                          testing::Values(1, 7, 64)));

TEST(RuntimeEngineLimits, Refusals) {
  std::string error;
  KvcProgramInfo program = kvc_program;
  EXPECT_TRUE(checkProgram(program, error)) << error;
  program.abi_version = KVC_ABI_VERSION + 1;
  EXPECT_FALSE(checkProgram(program, error));
  EXPECT_NE(error.find("ABI version"), std::string::npos);
  program = kvc_program;
  program.batch_bytes += 8;
  EXPECT_FALSE(checkProgram(program, error));
  EXPECT_NE(error.find("KvcBatch"), std::string::npos);
  program = kvc_program;
  program.page_tokens = 0;
  EXPECT_FALSE(checkProgram(program, error));
  EXPECT_EQ(error, "the program's page_tokens is 0, it must be 1 to "
                   "2147483647");
  program = kvc_program;
  program.rope_floats = 6;
  EXPECT_FALSE(checkProgram(program, error));

  Engine::Limits limits = limitsFor(8);
  limits.Context = fake::Context + 1;
  EXPECT_FALSE(Fixture(limits).Model);
  limits = limitsFor(8);
  limits.Pages = 0;
  EXPECT_FALSE(Fixture(limits).Model);
}

TEST(RuntimeEngineLimits, MemoryIsAdmittedBeforehand) {
  KvcProgramInfo program = kvc_program;
  program.page_bytes = int64_t(1) << 50;
  Plan plan;
  std::string error;
  auto model = Engine::create(program, plan, nullptr, limitsFor(8),
                              std::make_unique<CpuDevice>(CpuOptions()), error);
  EXPECT_FALSE(model);
  EXPECT_NE(error.find("bytes of KV cache (200 pages)"), std::string::npos)
      << error;
  program.page_bytes = INT64_MAX;
  error.clear();
  model = Engine::create(program, plan, nullptr, limitsFor(8),
                         std::make_unique<CpuDevice>(CpuOptions()), error);
  EXPECT_FALSE(model);
  EXPECT_NE(error.find("more than 2^63"), std::string::npos) << error;
}

TEST(RuntimeEngineLimits, ProfileCountsWork) {
  CpuOptions options;
  options.Profile = true;
  options.Workers = 2;
  Fixture fixture(limitsFor(8, 2), options);
  ASSERT_TRUE(fixture.Model) << fixture.Error;
  int32_t sequence = fixture.Model->sequences().add();
  fixture.feed(sequence, randomTokens(10, 1));
  fixture.decode(sequence, 3);
  const Profile &profile = fixture.Model->device().profile();
  EXPECT_EQ(profile[Phase::Prefill].Steps, 2);
  EXPECT_EQ(profile[Phase::Prefill].Rows, 10);
  EXPECT_EQ(profile[Phase::Prefill].Outputs, 1);
  EXPECT_EQ(profile[Phase::Prefill].RowPositions, 55);
  // Tiles of 3 rows: 3, 6, 8 in the first step, 10 in the second.
  EXPECT_EQ(profile[Phase::Prefill].TilePositions, 3 + 6 + 8 + 10);
  EXPECT_EQ(profile[Phase::Decode].TilePositions, 11);
  EXPECT_EQ(profile[Phase::Decode].Kernels[1].Calls, 1);
  std::string table = formatProfile(fixture.Schedule, profile);
  EXPECT_NE(table.find("prefill: 2 steps, 10 rows, 1 outputs"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("attention"), std::string::npos);
}

TEST(RuntimeEngineLimits, PoisonFillsPages) {
  CpuOptions options;
  options.Poison = true;
  options.Workers = 1;
  Plan plan;
  std::string error;
  auto owned = std::make_unique<CpuDevice>(options);
  CpuDevice &device = *owned;
  std::vector<uint8_t> weights = fake::weights();
  auto model = Engine::create(kvc_program, plan, weights.data(), limitsFor(8),
                              std::move(owned), error);
  ASSERT_TRUE(model) << error;
  int32_t sequence = model->sequences().add();
  int32_t token = 3;
  auto ignore = [](size_t, int64_t, const StepOutput &) { return true; };
  ASSERT_TRUE(model->decode({{sequence, &token, 1}}, ignore, error));
  const uint8_t *page = device.page(model->sequences().pages(sequence)[0]);
  EXPECT_EQ(page[0], 3);
  for (int64_t i = kvc_program.page_bytes / fake::PageTokens;
       i != kvc_program.page_bytes; ++i)
    EXPECT_EQ(page[i], 0xFF);
}

#if defined(__SANITIZE_ADDRESS__)
#define KVC_HAS_GUARDS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KVC_HAS_GUARDS 1
#endif
#endif
#ifdef KVC_HAS_GUARDS
// A program that reads a page that is free, or past the end of a buffer.
static int64_t StrayOffset = 0;
static void strayRead(const KvcBatch *, const KvcArenas *arenas, void *,
                      int64_t, int64_t) {
  arenas->logits[0] = arenas->kv[StrayOffset];
}
static void strayWrite(const KvcBatch *, const KvcArenas *arenas, void *,
                       int64_t, int64_t) {
  arenas->rows_arena[StrayOffset] = 1;
}

TEST(RuntimeEngineDeathTest, GuardsCatchStrayPrograms) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  KvcProgramInfo program = kvc_program;
  program.prefill = strayRead;
  program.decode = strayWrite;
  Plan plan;
  std::string error;
  ASSERT_TRUE(parsePlan(program.plan_json, plan, error)) << error;
  CpuOptions options;
  options.Workers = 1;
  auto model = Engine::create(program, plan, nullptr, limitsFor(8),
                              std::make_unique<CpuDevice>(options), error);
  ASSERT_TRUE(model) << error;
  auto ignore = [](size_t, int64_t, const float *) { return true; };
  int32_t sequence = model->sequences().add();
  int32_t token = 1;
  StrayOffset = program.page_bytes - 1;
  EXPECT_TRUE(model->prefill({{sequence, &token, 1}}, ignore, error));
  StrayOffset = 63; // the row's buffer has 64 bytes, the arena 8 rows
  EXPECT_TRUE(model->decode({{sequence, &token, 1}}, ignore, error));
  EXPECT_DEATH(
      {
        StrayOffset = program.page_bytes;
        (void)model->prefill({{sequence, &token, 1}}, ignore, error);
      },
      "use-after-poison");
  EXPECT_DEATH(
      {
        StrayOffset = 64;
        (void)model->decode({{sequence, &token, 1}}, ignore, error);
      },
      "use-after-poison");
}
#endif

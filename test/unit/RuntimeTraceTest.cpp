#include "FakeProgram.h"
#include "runtime/CpuDevice.h"
#include "runtime/Engine.h"
#include "runtime/Payload.h"
#include "runtime/Trace.h"

#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace kvc;
using nlohmann::json;

namespace {

std::string hashOf(const std::vector<float> &values) {
  PayloadHash hash;
  hash.update(values.data(), values.size() * sizeof(float));
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx",
                static_cast<unsigned long long>(hash.finish()));
  return text;
}

class RuntimeTrace : public testing::Test {
protected:
  RuntimeTrace() {
    EXPECT_TRUE(parsePlan(kvc_program.plan_json, Schedule, Error)) << Error;
  }
  ~RuntimeTrace() override { unlink(Path.c_str()); }

  std::vector<json> records() const {
    std::vector<json> result;
    std::ifstream file(Path);
    for (std::string line; std::getline(file, line);)
      result.push_back(json::parse(line));
    return result;
  }

  /// Has every kernel write its row slots from `offset` on, `values` a row.
  void moveRowWrites(int64_t offset, int64_t values) {
    for (PlanKernel &kernel : Schedule.Kernels)
      for (PlanWrite &write : kernel.Writes)
        if (write.In == PlanWrite::Arena::Rows) {
          write.Offset = offset;
          write.Values = values;
        }
  }

  /// One line of error where a trace of a changed plan is opened.
  std::string openError() {
    std::string error;
    EXPECT_FALSE(Trace(Path, Schedule).open(kvc_program, error));
    EXPECT_NE(access(Path.c_str(), F_OK), 0);
    return error;
  }

  std::string Path =
      testing::TempDir() + "kvc-trace-" + std::to_string(getpid()) + ".jsonl";
  std::string Error;
  Plan Schedule;
};

} // namespace

// Chunks of three rows over three workers: every row of every kernel once, by
// the names that the caller gave its sequences.
TEST_F(RuntimeTrace, EveryRowOfEveryKernel) {
  Engine::Limits limits;
  limits.Context = fake::Context;
  limits.Pages = 64;
  limits.Rows = 3;
  limits.Sequences = limits.Outputs = 2;
  CpuOptions options;
  options.Workers = 3;
  options.Poison = true;
  std::vector<uint8_t> weights = fake::weights();
  auto engine = Engine::create(kvc_program, Schedule, weights.data(), limits,
                               std::make_unique<CpuDevice>(options), Error);
  ASSERT_TRUE(engine) << Error;
  Trace trace(Path, Schedule);
  ASSERT_TRUE(trace.open(kvc_program, Error)) << Error;
  engine->setTrace(&trace);

  std::vector<std::vector<int32_t>> texts = {{1, 2, 3, 4, 5}, {6, 7}};
  std::vector<Engine::Feed> feeds;
  for (size_t i = 0; i != texts.size(); ++i) {
    feeds.push_back(
        {engine->sequences().add(), texts[i].data(), int64_t(texts[i].size())});
    feeds.back().Request = 10 + int64_t(i);
  }
  auto ignore = [](size_t, int64_t, const StepOutput &) { return true; };
  ASSERT_TRUE(engine->prefill(feeds, ignore, Error)) << Error;
  for (size_t i = 0; i != texts.size(); ++i) {
    texts[i].push_back(int32_t(30 + i));
    feeds[i].Tokens = &texts[i].back();
    feeds[i].Count = 1;
  }
  ASSERT_TRUE(engine->decode(feeds, ignore, Error)) << Error;
  EXPECT_TRUE(records().empty()); // it has its name when it is whole
  ASSERT_TRUE(trace.finish(Error)) << Error;

  std::map<std::string, int64_t> rows;
  for (const json &record : records()) {
    ++rows[record["kernel"]];
    size_t text = record["sequence"].get<size_t>() - 10;
    size_t length = record["position"].get<size_t>() + 1;
    ASSERT_LT(text, texts.size());
    ASSERT_LE(length, texts[text].size());
    EXPECT_EQ(record["layer"], 0);
    EXPECT_EQ(record["phase"],
              length == texts[text].size() ? "decode" : "prefill");
    if (record["kernel"] != "head")
      continue;
    std::vector<int32_t> prefix(texts[text].begin(),
                                texts[text].begin() + int64_t(length));
    EXPECT_EQ(record["hash"], hashOf(fake::logits(prefix)));
    EXPECT_EQ(record["values"], fake::Vocab);
    EXPECT_EQ(record["not_finite"], 0);
    EXPECT_GT(record["max"], 0.0);
    EXPECT_GE(record["max"], record["rms"]);
  }
  EXPECT_EQ(rows["attention"], 9);
  EXPECT_EQ(rows["head"], 4);
  EXPECT_EQ(rows.size(), 2u); // what "append" writes is no slot
}

TEST_F(RuntimeTrace, RefusesOtherPlans) {
  moveRowWrites(/*offset=*/1, /*values=*/2);
  EXPECT_EQ(
      openError(),
      "the program's plan: kernel attention's writes[0] has 2 values in 8 "
      "of 64 bytes at 1, its arena has 64 a row");
  moveRowWrites(/*offset=*/0, /*values=*/3);
  EXPECT_EQ(
      openError(),
      "the program's plan: kernel attention's writes[0] has 3 values in 8 "
      "of 64 bytes at 0, its arena has 64 a row");
  for (PlanKernel &kernel : Schedule.Kernels)
    kernel.Writes.clear();
  EXPECT_EQ(openError(), "the program's plan does not say what its kernels "
                         "write, --trace wants a program of this kvc");
}

TEST_F(RuntimeTrace, RefusesAKernelThatIsNotInThePlan) {
  Trace trace(Path, Schedule);
  ASSERT_TRUE(trace.open(kvc_program, Error)) << Error;
  KvcBatch batch = {};
  trace.beginStep(Phase::Decode, batch, {});
  EXPECT_FALSE(trace.afterKernel(
      3,
      [](const PlanWrite &, int64_t, std::string &) -> const uint8_t * {
        return nullptr;
      },
      Error));
  EXPECT_EQ(Error, "--trace: kernel 3 is not in the plan");
}

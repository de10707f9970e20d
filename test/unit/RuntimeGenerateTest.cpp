#include "FakeProgram.h"
#include "runtime/CpuDevice.h"
#include "runtime/Generate.h"
#include "runtime/Npy.h"

#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <unistd.h>

using namespace kvc;

namespace {

struct Job {
  std::vector<Request> Requests;
  GenerationOptions Options;
  int Workers = 2;
  int64_t Chunk = 512;
  int64_t Memory = int64_t(1) << 30;
  int64_t Pages = 0; // overrides the plan
  std::string Error;
  std::vector<Completion> Completions;
  std::vector<size_t> Finished; // in order

  explicit Job(std::vector<std::vector<int32_t>> prompts, int64_t newTokens) {
    for (std::vector<int32_t> &prompt : prompts)
      Requests.push_back(
          {std::move(prompt), newTokens, uint64_t(Requests.size())});
    Options.Tokens = fake::Vocab;
    Options.StopIds = {fake::StopId};
  }

  bool check(int64_t context = fake::Context) {
    return checkRequests(Requests, Options, context, fake::Vocab, Error);
  }

  bool run(GenerationEvents events = {}) {
    if (!check())
      return false;
    Plan plan;
    std::vector<uint8_t> weights = fake::weights();
    Engine::Limits limits =
        planLimits(kvc_program, Requests, Options, fake::Context, Chunk, Memory,
                   /*maxSequences=*/64);
    if (Pages)
      limits.Pages = Pages;
    CpuOptions device;
    device.Workers = Workers;
    device.Poison = true;
    auto engine = Engine::create(kvc_program, plan, weights.data(), limits,
                                 std::make_unique<CpuDevice>(device), Error);
    if (!engine)
      return false;
    events.OnFinish = [this](size_t request, const Completion &,
                             std::string &) {
      Finished.push_back(request);
      return true;
    };
    bool done =
        generate(*engine, Requests, Options, events, Completions, Error);
    if (done) {
      EXPECT_EQ(engine->sequences().allocator().used(), 0);
    }
    return done;
  }
};

// Prompts whose greedy continuations are long enough to tell things apart.
const std::vector<int32_t> First = {1, 2, 3, 4, 5};
const std::vector<int32_t> Second = {30};
const std::vector<int32_t> Third = {9, 9, 9, 8, 8, 1, 0, 36, 20, 21, 22};

} // namespace

TEST(RuntimeGenerate, GreedyMatchesTheModel) {
  Job job({First}, 40);
  job.Options.StopIds.clear();
  ASSERT_TRUE(job.run()) << job.Error;
  EXPECT_EQ(job.Completions[0].Ids, fake::continuation(First, 40, true));
  EXPECT_EQ(job.Completions[0].Finish, FinishReason::Length);
  EXPECT_EQ(job.Completions[0].ProjectedRows, 5 + 39);
  EXPECT_EQ(job.Completions[0].KvBytes, 11 * kvc_program.page_bytes);
}

TEST(RuntimeGenerate, StopIdEndsASequence) {
  std::vector<int32_t> prompt = {0};
  std::vector<int32_t> expected;
  // A prompt that runs into the stop id after a few tokens.
  for (int32_t id = 0; id != fake::Vocab; ++id) {
    prompt[0] = id;
    expected = fake::continuation(prompt, 60);
    if (expected.back() == fake::StopId && expected.size() > 3 &&
        expected.size() < 40)
      break;
  }
  ASSERT_EQ(expected.back(), fake::StopId);
  Job job({prompt}, 60);
  ASSERT_TRUE(job.run()) << job.Error;
  EXPECT_EQ(job.Completions[0].Ids, expected);
  EXPECT_EQ(job.Completions[0].Finish, FinishReason::Stop);

  Job ignoring({prompt}, 60);
  ignoring.Options.StopIds.clear();
  ASSERT_TRUE(ignoring.run()) << ignoring.Error;
  EXPECT_EQ(ignoring.Completions[0].Ids, fake::continuation(prompt, 60, true));
}

TEST(RuntimeGenerate, SameTokensHoweverItRuns) {
  const std::vector<std::vector<int32_t>> prompts = {First, Second, Third};
  for (bool sampled : {false, true}) {
    std::vector<std::vector<int32_t>> alone;
    for (size_t i = 0; i != prompts.size(); ++i) {
      Job job({prompts[i]}, 20);
      job.Requests[0].Number = i;
      if (sampled) {
        job.Options.Sampling.Temperature = 2;
        job.Options.Sampling.TopP = 0.9;
        job.Options.Seed = 12345678901234567890u;
      }
      ASSERT_TRUE(job.run()) << job.Error;
      alone.push_back(job.Completions[0].Ids);
    }
    for (int workers : {1, 2, 3})
      for (int64_t chunk : {1, 7, 64})
        for (bool noCache : {false, true}) {
          Job job(prompts, 20);
          job.Workers = workers;
          job.Chunk = chunk;
          job.Options.NoCache = noCache;
          if (sampled) {
            job.Options.Sampling.Temperature = 2;
            job.Options.Sampling.TopP = 0.9;
            job.Options.Seed = 12345678901234567890u;
          }
          ASSERT_TRUE(job.run()) << job.Error;
          for (size_t i = 0; i != prompts.size(); ++i)
            EXPECT_EQ(job.Completions[i].Ids, alone[i]);
        }
  }
}

TEST(RuntimeGenerate, ProjectedRowsCountWork) {
  Job cached({Third}, 20);
  cached.Options.StopIds.clear();
  ASSERT_TRUE(cached.run()) << cached.Error;
  EXPECT_EQ(cached.Completions[0].ProjectedRows, 11 + 19);
  Job naive({Third}, 20);
  naive.Options.StopIds.clear();
  naive.Options.NoCache = true;
  ASSERT_TRUE(naive.run()) << naive.Error;
  EXPECT_EQ(naive.Completions[0].ProjectedRows, 11 * 20 + 20 * 19 / 2);
  EXPECT_EQ(naive.Completions[0].Ids, cached.Completions[0].Ids);
}

TEST(RuntimeGenerate, ForcedIdsAreFed) {
  const std::vector<int32_t> forced = {3, fake::StopId, 5};
  Job job({First}, 5);
  job.Options.ForcedIds = forced;
  std::vector<std::vector<float>> rows;
  GenerationEvents events;
  events.OnLogits = [&](size_t, const float *logits, std::string &) {
    rows.emplace_back(logits, logits + fake::Vocab);
    return true;
  };
  ASSERT_TRUE(job.run(events)) << job.Error;
  const Completion &completion = job.Completions[0];
  ASSERT_EQ(rows.size(), completion.Ids.size());
  EXPECT_TRUE(std::equal(forced.begin(), forced.end(), completion.Ids.begin()));
  std::vector<int32_t> tokens = First;
  for (size_t i = 0; i != rows.size(); ++i) {
    EXPECT_EQ(rows[i], fake::logits(tokens));
    if (i < forced.size()) {
      EXPECT_EQ(completion.ChosenIds[i], fake::continuation(tokens, 1)[0]);
    } else {
      EXPECT_EQ(completion.Ids[i], fake::continuation(tokens, 1)[0]);
    }
    tokens.push_back(completion.Ids[i]);
  }
  EXPECT_EQ(completion.ChosenIds.size(), forced.size());

  Job tooMany({First}, 2);
  tooMany.Options.ForcedIds = forced;
  EXPECT_FALSE(tooMany.check());
  EXPECT_EQ(tooMany.Error,
            "--force-ids has 3 ids, more than the 2 of --max-new-tokens");
}

TEST(RuntimeGenerate, ContextEdges) {
  std::vector<int32_t> prompt(size_t(fake::Context) - 10, 4);
  for (int64_t newTokens : {9, 10}) {
    Job job({prompt}, newTokens);
    job.Options.StopIds.clear();
    ASSERT_TRUE(job.run()) << job.Error;
    EXPECT_EQ(int64_t(job.Completions[0].Ids.size()), newTokens);
  }
  Job over({prompt}, 11);
  EXPECT_FALSE(over.check());
  EXPECT_EQ(over.Error,
            "the prompt has 86 tokens and 11 new ones are asked for, the "
            "context holds 96: shorten the prompt or --max-new-tokens");
  Job huge({prompt, First}, INT64_MAX);
  EXPECT_FALSE(huge.check());
  EXPECT_EQ(huge.Error.substr(0, 9), "prompt 0 ");
}

TEST(RuntimeGenerate, BadPrompts) {
  Job empty({First, {}}, 4);
  EXPECT_FALSE(empty.check());
  EXPECT_EQ(empty.Error,
            "prompt 1 has no tokens: there is nothing to continue");
  Job outside({{1, 37}}, 4);
  EXPECT_FALSE(outside.check());
  EXPECT_EQ(outside.Error, "the prompt holds token id 37, ids must be 0 to 36");
  Job negative({{-1}}, 4);
  EXPECT_FALSE(negative.check());
}

// Pages for one sequence at a time: the others wait and come out the same.
TEST(RuntimeGenerate, RequestsWaitForPages) {
  std::vector<std::vector<int32_t>> prompts;
  for (int32_t i = 0; i != 9; ++i)
    prompts.push_back(std::vector<int32_t>(size_t(i % 4 + 1), i));
  Job wide(prompts, 12);
  ASSERT_TRUE(wide.run()) << wide.Error;
  for (int64_t pages : {4, 7, 11}) {
    Job narrow(prompts, 12);
    narrow.Pages = pages;
    ASSERT_TRUE(narrow.run()) << narrow.Error;
    EXPECT_EQ(narrow.Finished.size(), prompts.size());
    for (size_t i = 0; i != prompts.size(); ++i)
      EXPECT_EQ(narrow.Completions[i].Ids, wide.Completions[i].Ids);
  }
  Job starved(prompts, 12);
  starved.Pages = 3;
  EXPECT_FALSE(starved.run());
}

TEST(RuntimeGenerate, EventsCanEndTheRun) {
  Job job({First}, 20);
  int tokens = 0;
  GenerationEvents events;
  events.OnToken = [&](size_t, int32_t, bool, std::string &error) {
    error = "disk full";
    return ++tokens < 3;
  };
  EXPECT_FALSE(job.run(events));
  EXPECT_EQ(job.Error, "disk full");
  EXPECT_EQ(tokens, 3);
}

TEST(RuntimeNpy, WritesWholeFilesOnly) {
  std::string path =
      testing::TempDir() + "kvc-npy-" + std::to_string(getpid()) + ".npy";
  std::string error;
  {
    NpyWriter abandoned(path, 3);
    ASSERT_TRUE(abandoned.open(error)) << error;
    float row[3] = {};
    ASSERT_TRUE(abandoned.addRow(row, error));
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  {
    NpyWriter writer(path, 3);
    ASSERT_TRUE(writer.open(error)) << error;
    for (float i : {0.0f, 1.0f}) {
      float row[3] = {i, i + 0.5f, -i};
      ASSERT_TRUE(writer.addRow(row, error));
    }
    ASSERT_TRUE(writer.finish(error)) << error;
  }
  std::ifstream file(path, std::ios::binary);
  std::stringstream stream;
  stream << file.rdbuf();
  std::string content = stream.str();
  ASSERT_EQ(content.size(), 128u + 6 * sizeof(float));
  EXPECT_EQ(content.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(content[8], 118);
  EXPECT_EQ(content.substr(10, 57),
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3),");
  EXPECT_EQ(content[127], '\n');
  float values[6];
  std::memcpy(values, content.data() + 128, sizeof(values));
  EXPECT_EQ(values[4], 1.5f);
  unlink(path.c_str());

  NpyWriter nowhere("/nonexistent/x.npy", 3);
  EXPECT_FALSE(nowhere.open(error));
  EXPECT_EQ(error, "/nonexistent/x.npy: cannot write: No such file or "
                   "directory");
}

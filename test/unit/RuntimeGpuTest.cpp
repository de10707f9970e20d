// The device for GPUs over a CUDA driver that has none (FakeCuda.cpp): what
// kernels are handed, what comes back, and each way in which a driver fails.
#include "FakeGpu.h"
#include "FakeProgram.h"
#include "runtime/Generate.h"
#include "runtime/RandomWeights.h"
#include "runtime/gpu/CudaBackend.h"
#include "runtime/gpu/GpuDevice.h"
#include "runtime/gpu/GpuLaunches.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace kvc;

namespace {

/// The ways in which the driver fails, while this lives.
struct FakeCuda {
  explicit FakeCuda(const char *ways) { setenv("FAKE_CUDA", ways, 1); }
  ~FakeCuda() { unsetenv("FAKE_CUDA"); }
};

/// A run of the fake program on the fake GPU, or in the PTX interpreter.
struct GpuJob {
  explicit GpuJob(std::vector<std::vector<int32_t>> prompts, int64_t fresh = 12)
      : Code(fake::gpuCode()), Program(fake::gpuProgram(Code)) {
    EXPECT_TRUE(parsePlan(Program.plan_json, Schedule, Error)) << Error;
    for (std::vector<int32_t> &prompt : prompts)
      Requests.push_back({std::move(prompt), fresh, uint64_t(Requests.size())});
    Choices.Tokens = fake::Vocab;
    Choices.StopIds = {fake::StopId};
  }

  bool load() {
    if (Options.Simulate) {
      Code.ptx = fake::gpuPtx().c_str();
      Code.ptx_bytes = int64_t(fake::gpuPtx().size());
    }
    std::unique_ptr<GpuBackend> backend =
        Options.Simulate ? createSimBackend(Code, Options, Error)
                         : createCudaBackend(Code, Options, Error);
    if (!backend)
      return false;
    Engine::Limits limits =
        planLimits(Program, Requests, Choices, fake::Context, Chunk, 1 << 20,
                   /*maxSequences=*/64);
    Model = Engine::create(
        Program, Schedule, Weights.data(), limits,
        std::make_unique<GpuDevice>(Code, std::move(backend), Options), Error);
    return Model != nullptr;
  }
  bool run(const GenerationEvents &events = {}) {
    return load() &&
           generate(*Model, Requests, Choices, events, Completions, Error);
  }

  KvcDeviceCode Code;
  KvcProgramInfo Program;
  Plan Schedule;
  std::vector<uint8_t> Weights = fake::weights();
  std::vector<Request> Requests;
  GenerationOptions Choices;
  GpuOptions Options;
  int64_t Chunk = 7;
  std::unique_ptr<Engine> Model;
  std::vector<Completion> Completions;
  std::string Error;
};

const std::vector<int32_t> First = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};
const std::vector<int32_t> Second = {30};

KvcLaunch launchOf(int32_t extent, int32_t per) {
  KvcLaunch launch = {};
  launch.kernel = "k";
  launch.threads = 32;
  launch.extent[0] = extent;
  launch.per[0] = per;
  launch.per[1] = launch.per[2] = 1;
  return launch;
}

std::vector<uint32_t> gridsOf(const std::vector<KvcLaunch> &list,
                              const GpuExtents &extents) {
  std::vector<GpuLaunch> launches;
  resolveLaunches(list.data(), int64_t(list.size()),
                  std::vector<int32_t>(list.size(), 0), extents, 10, launches);
  std::vector<uint32_t> grids;
  for (const GpuLaunch &launch : launches)
    grids.push_back(launch.Grid[0]);
  return grids;
}

} // namespace

TEST(RuntimeGpu, LaunchesResolve) {
  GpuExtents extents;
  extents.Rows = 9;
  extents.Outputs = 0;
  extents.Tiles = 5;
  extents.Sequences = 3;
  extents.Positions = 512;
  std::vector<KvcLaunch> list = {
      launchOf(KVC_FIXED, 7),     launchOf(KVC_ROWS, 4),
      launchOf(KVC_OUTPUTS, 1), // nothing to do
      launchOf(KVC_TILES, 5),     launchOf(KVC_SEQUENCES, 1),
      launchOf(KVC_POSITIONS, 64)};
  EXPECT_EQ(gridsOf(list, extents), (std::vector<uint32_t>{7, 3, 1, 3, 8}));
  list = {launchOf(KVC_POSITIONS, 1)};
  list[0].blocks_per_sm = 2; // of ten processors
  EXPECT_EQ(gridsOf(list, extents), (std::vector<uint32_t>{20}));
  for (auto [least, most, launched] :
       {std::tuple{1, 8, false}, std::tuple{9, 9, true},
        std::tuple{10, INT32_MAX, false}}) {
    list = {launchOf(KVC_FIXED, 1)};
    list[0].when = KVC_ROWS;
    list[0].at_least = least;
    list[0].at_most = most;
    EXPECT_EQ(gridsOf(list, extents).size(), launched ? 1u : 0u) << least;
  }
}

TEST(RuntimeGpu, PositionsMakeFewGrids) {
  EXPECT_EQ(roundPositions(1), 256);
  EXPECT_EQ(roundPositions(256), 256);
  EXPECT_EQ(roundPositions(257), 512);
  EXPECT_EQ(roundPositions(5000), 8192);
}

TEST(RuntimeGpu, BadLaunchesAreNamed) {
  std::string error;
  KvcDeviceCode code = fake::gpuCode();
  EXPECT_TRUE(checkLaunches(code, error)) << error;
  KvcLaunch launch = launchOf(KVC_ROWS, 0);
  code.decode = &launch;
  code.decode_count = 1;
  EXPECT_FALSE(checkLaunches(code, error));
  EXPECT_EQ(error, "the program's decode launches[0] (k): per[0] is 0, it must "
                   "be 1 to 2147483647");
  launch = launchOf(9, 1);
  EXPECT_FALSE(checkLaunches(code, error));
  EXPECT_NE(error.find("extent[0] is 9, it must be 0 to 5"), std::string::npos);
  launch = launchOf(KVC_ROWS, 1);
  launch.kernel = nullptr;
  EXPECT_FALSE(checkLaunches(code, error));
  EXPECT_NE(error.find("launches[0]: names no kernel"), std::string::npos);
  code = fake::gpuCode();
  code.split = 0;
  EXPECT_FALSE(checkLaunches(code, error));
  EXPECT_NE(error.find("split is 0"), std::string::npos);
}

TEST(RuntimeGpu, SizesAreChecked) {
  KvcDeviceCode code = fake::gpuCode();
  KvcProgramInfo program = fake::gpuProgram(code);
  DeviceLimits limits;
  limits.Pages = 100;
  limits.Rows = 20;
  limits.Outputs = 6;
  limits.Sequences = 5;
  limits.Tokens = 90;
  GpuSizes sizes;
  std::string error;
  ASSERT_TRUE(sizes.compute(program, limits, 1 << 20, error)) << error;
  EXPECT_EQ(sizes.MaxSplits, 12);   // of 8 positions
  EXPECT_EQ(sizes.PagesStride, 23); // of 4
  EXPECT_EQ(sizes.Kv, 100 * 32);
  EXPECT_EQ(sizes.Scratch, 5 * 12 * 16); // more than 6 staged rows of 64
  EXPECT_EQ(sizes.Counters, 20 * 2 * 4);
  EXPECT_EQ(sizes.Logits, 6 * fake::Vocab * 4);
  code.stage_bytes = 1 << 10;
  ASSERT_TRUE(sizes.compute(program, limits, 1 << 20, error)) << error;
  EXPECT_EQ(sizes.Scratch, 6 << 10);
  EXPECT_FALSE(sizes.compute(program, limits, 5000, error));
  EXPECT_NE(error.find("5000 bytes of weights, 3200 of KV cache (100 pages)"),
            std::string::npos)
      << error;
  program.page_bytes = INT64_MAX / 2;
  EXPECT_FALSE(sizes.compute(program, limits, INT64_MAX, error));
  EXPECT_NE(error.find("more than 2^63 of KV cache"), std::string::npos);
}

TEST(RuntimeGpu, StepsArePacked) {
  KvcDeviceCode code = fake::gpuCode();
  KvcProgramInfo program = fake::gpuProgram(code);
  BatchBuilder builder(program, 8, 4);
  std::vector<int32_t> pages = {7, 9}, one = {4};
  builder.add(First.data(), 5, 2, pages, Outputs::Last);
  builder.add(Second.data(), 1, 0, one, Outputs::Last);
  const KvcBatch &batch = builder.batch();
  GpuStepLayout layout;
  std::string error;
  ASSERT_TRUE(layout.create(program, 8, 4, 3, 5, error)) << error;
  std::vector<uint8_t> bytes(size_t(layout.bytes()), 0xEE);
  KvcSampling sampling[2] = {{0, 1, 2, 3, 4, 5}, {6, 7, 8, 9, 10, 11}};
  int64_t used = layout.pack(batch, sampling, bytes.data());
  EXPECT_LT(used, layout.bytes());
  GpuParameters p;
  layout.place(1000, p);
  auto words = [&](GpuAddress at, size_t count) {
    std::vector<int32_t> result(count);
    std::memcpy(result.data(), bytes.data() + (at - 1000), count * 4);
    return result;
  };
  auto floats = [&](GpuAddress at, size_t count) {
    std::vector<float> result(count);
    std::memcpy(result.data(), bytes.data() + (at - 1000), count * 4);
    return result;
  };
  EXPECT_EQ(words(p.Step, 8), (std::vector<int32_t>{6, 0, 2, 0, 2, 0, 3, 0}));
  EXPECT_EQ(words(p.Tokens, 6), (std::vector<int32_t>{3, 1, 4, 1, 5, 30}));
  EXPECT_EQ(words(p.Positions, 6), (std::vector<int32_t>{2, 3, 4, 5, 6, 0}));
  EXPECT_EQ(words(p.RowSequence, 6), (std::vector<int32_t>{0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(words(p.OutputRows, 2), (std::vector<int32_t>{4, 5}));
  EXPECT_EQ(words(p.RowTiles, 12),
            (std::vector<int32_t>{0, 0, 3, 0, 0, 3, 2, 0, 1, 5, 1, 0}));
  EXPECT_EQ(p.PagesStride, 5);
  EXPECT_EQ(words(p.Pages, 10),
            (std::vector<int32_t>{7, 9, -1, -1, -1, 4, -1, -1, -1, -1}));
  EXPECT_EQ(words(p.Sampling + 24, 6)[1], 7);
  EXPECT_EQ(floats(p.Sampling, 6)[4], 4.0f);
  EXPECT_EQ(words(p.Sampling + 24, 6)[5], 11);
  EXPECT_EQ(floats(p.Rope, 24),
            std::vector<float>(batch.rope, batch.rope + 24));
}

TEST(RuntimeGpu, GeneratesWhatTheProgramSays) {
  std::vector<std::vector<int32_t>> prompts = {First, Second};
  for (int i = 0; i != 11; ++i) // more than eight: the wide kernel
    prompts.push_back({int32_t(i), 2, int32_t(i)});
  for (const char *ways : {"", "no-vmm"})
    for (bool poison : {false, true})
      for (bool noCache : {false, true}) {
        FakeCuda cuda(ways);
        GpuJob job(prompts);
        job.Options.Poison = poison;
        job.Choices.NoCache = noCache;
        ASSERT_TRUE(job.run()) << job.Error;
        for (size_t i = 0; i != prompts.size(); ++i)
          EXPECT_EQ(job.Completions[i].Ids, fake::continuation(prompts[i], 12))
              << i;
        DeviceFacts facts = job.Model->device().facts();
        EXPECT_EQ(facts.Kind, "cuda");
        EXPECT_EQ(facts.Name, "Fake GPU");
        EXPECT_EQ(facts.StepNanoseconds[0], facts.Steps[0] * 500000);
      }
}

// One graph for all steps of a batch, launched once a token.
TEST(RuntimeGpu, DecodeStepsAreGraphs) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  auto count = [&](const char *name) {
    return reinterpret_cast<int (*)()>(dlsym(library, name))();
  };
  int made = count("fakeCudaGraphsMade");
  int launched = count("fakeCudaGraphLaunches");
  GpuJob job({First, Second}, 20);
  job.Choices.StopIds.clear();
  ASSERT_TRUE(job.run()) << job.Error;
  EXPECT_EQ(count("fakeCudaGraphLaunches") - launched, 19);
  EXPECT_EQ(count("fakeCudaGraphsMade") - made, 1);
  dlclose(library);
}

TEST(RuntimeGpu, LogitsChangeNoToken) {
  GpuJob job({First});
  job.Choices.ForcedIds = {2, 2};
  std::vector<std::vector<float>> rows;
  GenerationEvents events;
  events.OnLogits = [&](size_t, const float *logits, std::string &) {
    rows.emplace_back(logits, logits + fake::Vocab);
    return true;
  };
  ASSERT_TRUE(job.run(events)) << job.Error;
  std::vector<int32_t> tokens = First;
  for (size_t i = 0; i != rows.size(); ++i) {
    EXPECT_EQ(rows[i], fake::logits(tokens));
    tokens.push_back(job.Completions[0].Ids[i]);
  }
  EXPECT_EQ(job.Completions[0].ChosenIds[0], fake::continuation(First, 1)[0]);

  // Without kernels that choose, the host does.
  GpuJob plain({First});
  plain.Code.choose_count = 0;
  ASSERT_TRUE(plain.run()) << plain.Error;
  EXPECT_EQ(plain.Completions[0].Ids, fake::continuation(First, 12));
}

TEST(RuntimeGpu, SharedPagesAreCopied) {
  GpuJob job({First});
  ASSERT_TRUE(job.load()) << job.Error;
  Engine &engine = *job.Model;
  int32_t sequence = engine.sequences().add();
  auto feed = [&](int32_t to, std::vector<int32_t> tokens) {
    std::vector<float> result;
    EXPECT_TRUE(engine.prefill(
        {{to, tokens.data(), int64_t(tokens.size())}},
        [&](size_t, int64_t, const StepOutput &output) {
          const float *logits = output.logits(job.Error);
          result.assign(logits, logits + fake::Vocab);
          return true;
        },
        job.Error))
        << job.Error;
    return result;
  };
  feed(sequence, {1, 2, 3, 4, 5});
  int32_t other = engine.sequences().fork(sequence);
  EXPECT_EQ(feed(other, {6}), fake::logits({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(feed(sequence, {7}), fake::logits({1, 2, 3, 4, 5, 7}));
}

TEST(RuntimeGpu, TokensThatCannotBeChosenHaveAReason) {
  GpuJob job({First});
  job.Choices.Tokens = 0; // no id is a token
  EXPECT_FALSE(job.run());
  EXPECT_NE(job.Error.find("(sequence 0, position 11)"), std::string::npos)
      << job.Error;
}

TEST(RuntimeGpu, ProfilesKernels) {
  GpuJob job({First});
  job.Options.Profile = true;
  ASSERT_TRUE(job.run()) << job.Error;
  const Profile &profile = job.Model->device().profile();
  int64_t steps = profile[Phase::Decode].Steps;
  EXPECT_EQ(steps, int64_t(job.Completions[0].Ids.size()) - 1);
  for (size_t kernel = 0; kernel != 3; ++kernel) {
    EXPECT_EQ(profile[Phase::Decode].Kernels[kernel].Calls, steps);
    EXPECT_EQ(profile[Phase::Decode].Kernels[kernel].Nanoseconds,
              steps * 500000);
  }
  EXPECT_NE(job.Model->device().facts().KernelsJson.find(
                "{\"kernel\":\"choose\",\"phase\":\"decode\",\"calls\":" +
                std::to_string(steps)),
            std::string::npos);
}

TEST(RuntimeGpu, DriversFailInOneLine) {
  struct Case {
    const char *Ways;
    const char *Message;
  };
  for (const Case &test : {
           Case{"no-gpu", "the CUDA driver finds no GPU on this machine"},
           Case{"old", "GPU 0 (Fake GPU) has compute capability 7.5, the "
                       "program was compiled for sm_90 and needs 9.0 or newer: "
                       "compile it with --chip=sm_75"},
           Case{"bad-ptx", "cannot load the program's code for sm_90 (line 7; "
                           "unknown opcode): CUDA_ERROR_INVALID_PTX"},
           Case{"no-kernel", "has no kernel head: CUDA_ERROR_NOT_FOUND"},
           Case{"few-threads", "kernel attention: a block has 64 threads, GPU "
                               "0 runs it with at most 32"},
           Case{"little-shared", "kernel attention: a block needs 60000 bytes "
                                 "of shared memory, GPU 0 has at most 50000"},
           Case{"little-memory", "the device grants 1000"},
           Case{"no-memory", "cuMemAlloc of 5000 bytes for weights: "
                             "CUDA_ERROR_OUT_OF_MEMORY (as asked for)"},
           Case{"fault", "cuStreamSynchronize after prefill: "
                         "CUDA_ERROR_ILLEGAL_ADDRESS (as asked for); "
                         "KVC_SYNC=1 names the kernel (a prefill step of 7 "
                         "rows)"},
       }) {
    FakeCuda cuda(test.Ways);
    GpuJob job({First});
    EXPECT_FALSE(job.run()) << test.Ways;
    EXPECT_NE(job.Error.find(test.Message), std::string::npos) << job.Error;
    EXPECT_EQ(job.Error.find('\n'), std::string::npos) << job.Error;
  }
  FakeCuda cuda("fault");
  GpuJob job({First});
  job.Options.Synchronise = true;
  EXPECT_FALSE(job.run());
  EXPECT_EQ(job.Error, "GPU 0: kernel attention (layer 5): "
                       "CUDA_ERROR_ILLEGAL_ADDRESS (as asked for) (a prefill "
                       "step of 7 rows)");
  GpuJob other({First});
  other.Options.Gpu = 3;
  EXPECT_FALSE(other.run());
  EXPECT_EQ(other.Error, "--gpu is 3, this machine has GPUs 0 to 0");
}

TEST(RuntimeGpu, ChipsHaveCapabilities) {
  bool exactly;
  EXPECT_EQ(chipCapability("sm_80", exactly), 80);
  EXPECT_FALSE(exactly);
  EXPECT_EQ(chipCapability("sm_90a", exactly), 90);
  EXPECT_TRUE(exactly);
  EXPECT_EQ(chipCapability("sm_100", exactly), 100);
  for (const char *name : {"", "sm_", "sm_9x", "gfx90", "sm_a0", "sm_90aa"})
    EXPECT_EQ(chipCapability(name, exactly), 0) << name;
}

TEST(RuntimeGpu, RandomWeightsDependOnTheirPlace) {
  const KvcWeightRange ranges[] = {{0, 4096, KVC_WEIGHT_BF16},
                                   {4096, 4000, KVC_WEIGHT_F32},
                                   {8192, 5000000, KVC_WEIGHT_CODES16},
                                   {5008192, 1024, KVC_WEIGHT_F16},
                                   {5009216, 1024, KVC_WEIGHT_CODES8}};
  KvcProgramInfo program = kvc_program;
  program.weights_bytes = 5010240;
  program.random_ranges = 5;
  program.random_range = ranges;
  std::string error;
  ASSERT_TRUE(checkRandomRanges(program, error)) << error;
  std::vector<uint8_t> whole(size_t(program.weights_bytes));
  fillRandomWeights(program, 0, program.weights_bytes, whole.data());
  for (int64_t offset : {0, 4000, 8000, 4999996, 5009212}) {
    std::vector<uint8_t> part(size_t(program.weights_bytes - offset));
    fillRandomWeights(program, offset, int64_t(part.size()), part.data());
    EXPECT_EQ(std::memcmp(part.data(), whole.data() + offset, part.size()), 0);
  }
  double sum = 0, squares = 0;
  for (size_t i = 0; i != 1000; ++i) {
    float value;
    std::memcpy(&value, whole.data() + 4096 + i * 4, sizeof(value));
    ASSERT_LE(std::fabs(value), 0x1p-5f);
    sum += value;
    squares += double(value) * value;
  }
  EXPECT_NEAR(sum / 1000, 0, 0.003);
  EXPECT_NEAR(squares / 1000, 0x1p-10 / 3, 0x1p-10 / 20);
  for (size_t i = 0; i != 2048; ++i) { // bf16: exponents below 2^-5
    uint16_t bits;
    std::memcpy(&bits, whole.data() + i * 2, sizeof(bits));
    ASSERT_LE(bits & 0x7FFF, 0x3D00);
  }
  EXPECT_EQ(whole[8100], 0); // between two ranges
  program.weights_bytes = 5010239;
  EXPECT_FALSE(checkRandomRanges(program, error));
  EXPECT_NE(error.find("random range 4 has 1024 bytes"), std::string::npos);
}

//===----------------------------------------------------------------------===//
// The PTX interpreter as a device
//===----------------------------------------------------------------------===//

TEST(RuntimeSim, RunsThePtxOfAProgram) {
  std::vector<std::vector<int32_t>> prompts = {First, Second};
  for (int i = 0; i != 9; ++i)
    prompts.push_back({int32_t(i), 2, int32_t(i)});
  for (uint64_t seed : {0, 7})
    for (bool checks : {true, false}) {
      GpuJob job(prompts);
      job.Options.Simulate = true;
      job.Options.SimSeed = seed;
      job.Options.SimChecks = checks;
      job.Options.Poison = seed != 0;
      ASSERT_TRUE(job.run()) << job.Error;
      for (size_t i = 0; i != prompts.size(); ++i)
        EXPECT_EQ(job.Completions[i].Ids, fake::continuation(prompts[i], 12));
    }
}

TEST(RuntimeSim, PagesKeepWhatWasWritten) {
  GpuJob job({First});
  job.Options.Simulate = true;
  ASSERT_TRUE(job.load()) << job.Error;
  Engine &engine = *job.Model;
  int32_t sequence = engine.sequences().add();
  std::vector<float> result;
  auto feed = [&](int32_t to, std::vector<int32_t> tokens) {
    return engine.prefill(
        {{to, tokens.data(), int64_t(tokens.size())}},
        [&](size_t, int64_t, const StepOutput &output) {
          const float *logits = output.logits(job.Error);
          result.assign(logits, logits + fake::Vocab);
          return true;
        },
        job.Error);
  };
  ASSERT_TRUE(feed(sequence, {1, 2, 3, 4, 5})) << job.Error;
  int32_t other = engine.sequences().fork(sequence);
  ASSERT_TRUE(feed(other, {6})) << job.Error;
  EXPECT_EQ(result, fake::logits({1, 2, 3, 4, 5, 6}));
  ASSERT_TRUE(feed(sequence, {7})) << job.Error;
  EXPECT_EQ(result, fake::logits({1, 2, 3, 4, 5, 7}));
}

TEST(RuntimeSim, MetersKernels) {
  GpuJob job({First});
  job.Options.Simulate = true;
  job.Options.SimMeter = true;
  ASSERT_TRUE(job.run()) << job.Error;
  DeviceFacts facts = job.Model->device().facts();
  EXPECT_EQ(facts.Kind, "sim");
  auto meter = nlohmann::json::parse(facts.MeterJson);
  int64_t steps = facts.Steps[0] + facts.Steps[1];
  EXPECT_EQ(meter["kernels"]["append"]["launches"], steps);
  // An entry of eight bytes for every row.
  EXPECT_EQ(meter["kernels"]["append"]["store_bytes"],
            8 * job.Model->projectedRows());
  EXPECT_EQ(meter["plan"][0]["plan_bytes"], 8.0 * int64_t(First.size()));
  EXPECT_NE(facts.MeterTable.find("attention"), std::string::npos);
}

TEST(RuntimeSim, MistakesAreNamed) {
  struct Case {
    const char *From, *To, *Message;
  };
  const std::string &ptx = fake::gpuPtx();
  std::string path = testing::TempDir() + "kvc-mistake.ptx";
  for (const Case &test : {
           // A store behind the logits' end, reads of what nobody wrote, and an
           // instruction that there is not.
           Case{"mul.lo.u32 %r18, %r12, 37;", "mul.lo.u32 %r18, %r12, 4096;",
                "kernel 'head'"},
           Case{"setp.gt.u32 %p2, %r2, %r15;", "setp.gt.u32 %p2, %r2, 30;",
                "has never been written"},
           Case{"xor.b64", "xar.b64", "xar"},
       }) {
    std::string wrong = ptx;
    wrong.replace(wrong.find(test.From), strlen(test.From), test.To);
    std::ofstream(path) << wrong;
    GpuJob job({First, Second});
    job.Options.Simulate = true;
    job.Options.PtxFile = path;
    EXPECT_FALSE(job.run()) << test.From;
    EXPECT_NE(job.Error.find(test.Message), std::string::npos) << job.Error;
    EXPECT_EQ(job.Error.find('\n'), std::string::npos) << job.Error;
  }
  std::remove(path.c_str());
  GpuJob job({First});
  job.Options.Simulate = true;
  job.Options.PtxFile = path;
  EXPECT_FALSE(job.run());
  EXPECT_EQ(job.Error, path + ": cannot read: No such file or directory");
}

//===- PassesTest.cpp - Every pass keeps what a model computes ------------===//
//
// The gate of the passes: the interpreter's logits and cache before and after,
// at 1e-12, in prefill and decode of three sequences of different lengths.
// At L4 the interpreter also refuses a slot that was overwritten or never
// written, and a missing barrier; SlotChecker.h asks the same again, from the
// schedule's text alone.
#include "passes/Passes.h"
#include "RandomModel.h"
#include "SlotChecker.h"
#include "dialect/reference/Interpret.h"
#include "frontend/ImportSpec.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <map>
#include <random>

using namespace mlir;
using namespace kvc;

static const char *const Fusions[] = {
    "kvc-fuse-qkv",          "kvc-fuse-gate-up",  "kvc-fuse-masked-softmax",
    "kvc-fuse-cache-append", "kvc-fuse-residual", "kvc-fuse-norm"};
static const char *const ToPrograms =
    "kvc-set-target{target-cpu=x86-64-v3 kv-type=f32},kvc-split-phases,"
    "kvc-quantize-activations";
static const char *const ToCudaPrograms =
    "kvc-set-target{target=cuda},kvc-split-phases,kvc-quantize-activations";
static const char *const ToSchedule =
    "kvc-pack-weights,kvc-plan-memory,kvc-schedule";

static MLIRContext &context() {
  static MLIRContext *instance = [] {
    registerPassesAndPipeline();
    auto *made = new MLIRContext(MLIRContext::Threading::DISABLED);
    made->loadDialect<KvcDialect>();
    return made;
  }();
  return *instance;
}

static OwningOpRef<ModuleOp> parse(const std::string &text) {
  return parseSourceString<ModuleOp>(text, ParserConfig(&context()));
}

/// A spec of test/models or a model of test/passes/Inputs.
static OwningOpRef<ModuleOp> load(const std::string &name) {
  std::string root = KVC_SOURCE_DIR "/test/";
  if (name.find(".json") == std::string::npos)
    return parseSourceFile<ModuleOp>(root + "passes/Inputs/" + name,
                                     ParserConfig(&context()));
  auto module = importSpec(root + "models/" + name, &context());
  if (module)
    return std::move(*module);
  ADD_FAILURE() << llvm::toString(module.takeError());
  return {};
}

/// Runs passes on each model of the module, "kvc-a,kvc-b".
static bool runPasses(ModuleOp module, const std::string &passes) {
  PassManager manager(&context());
  return succeeded(parsePassPipeline("kvc.model(" + passes + ")", manager)) &&
         succeeded(manager.run(module));
}

static std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

/// Three sequences, the last decode steps with fewer of them.
static InterpretOptions threeSequences() {
  InterpretOptions options;
  options.ids = {{3, 1, 4, 1, 5, 9, 2}, {6}, {5, 3, 5, 8}};
  options.decodeIds = {{9, 7}, {9, 3, 2}, {3}};
  options.allLogits = true;
  return options;
}

namespace {

/// A model and what it computes.
struct Gate {
  OwningOpRef<ModuleOp> module;
  std::optional<Interpretation> run;

  explicit Gate(OwningOpRef<ModuleOp> model) : module(std::move(model)) {
    if (module)
      run = interpretation(*module);
  }

  static std::optional<Interpretation> interpretation(ModuleOp module) {
    auto model = findModel(module);
    if (!model) {
      ADD_FAILURE() << llvm::toString(model.takeError());
      return {};
    }
    auto run = interpretModel(*model, threeSequences());
    if (!run) {
      ADD_FAILURE() << llvm::toString(run.takeError()) << "\n" << print(module);
      return {};
    }
    return std::move(*run);
  }

  /// `other` computes the same.
  void expectSame(ModuleOp other, const std::string &what) const {
    SCOPED_TRACE(what);
    ASSERT_TRUE(run);
    ASSERT_TRUE(succeeded(verify(other)));
    std::optional<Interpretation> ran = interpretation(other);
    ASSERT_TRUE(ran);
    auto difference = compare(*run, *ran);
    if (!difference) {
      ADD_FAILURE() << llvm::toString(difference.takeError());
      return;
    }
    EXPECT_LT(difference->error(), 1e-12) << difference->worst << "\n"
                                          << print(other);
  }

  /// `passes` run on a copy keep what it computes.
  void expectKept(const std::string &passes) const {
    OwningOpRef<ModuleOp> copy = module.get().clone();
    ASSERT_TRUE(runPasses(*copy, passes)) << passes;
    expectSame(*copy, passes);
  }
};

} // namespace

static void checkSchedule(ModuleOp module, const std::string &what) {
  for (auto model : module.getOps<ModelOp>())
    for (auto program : model.getOps<ProgramOp>())
      EXPECT_EQ(checkSlots(program), "") << what << "\n" << print(module);
}

namespace {

class PassesOnModel : public testing::TestWithParam<const char *> {};

TEST_P(PassesOnModel, EachAlone) {
  Gate gate(load(GetParam()));
  gate.expectKept(ToPrograms);
  for (const char *fusion : Fusions)
    gate.expectKept(std::string(ToPrograms) + "," + fusion);
  gate.expectKept(std::string(ToPrograms) + ",kvc-fuse-quantize");
  gate.expectKept(std::string(ToPrograms) + ",kvc-pack-weights");
  gate.expectKept(std::string(ToPrograms) + ",kvc-plan-memory");
}

TEST_P(PassesOnModel, Pipeline) {
  Gate gate(load(GetParam()));
  for (bool fuse : {false, true})
    for (int64_t width : {128, 256, 512}) {
      OwningOpRef<ModuleOp> copy = gate.module->clone();
      PassManager manager(&context());
      PipelineOptions options;
      options.targetCpu = "x86-64-v3";
      options.vectorWidth = width;
      options.kvType = "f32";
      options.fuse = fuse;
      buildPipeline(manager, options);
      ASSERT_TRUE(succeeded(manager.run(*copy)));
      std::string what = fuse ? "fused" : "unfused";
      gate.expectSame(*copy, what);
      checkSchedule(*copy, what);
    }
}

TEST_P(PassesOnModel, CudaPipeline) {
  Gate gate(load(GetParam()));
  for (bool fuse : {false, true}) {
    OwningOpRef<ModuleOp> copy = gate.module->clone();
    PassManager manager(&context());
    PipelineOptions options;
    options.target = "cuda";
    options.fuse = fuse;
    buildPipeline(manager, options);
    ASSERT_TRUE(succeeded(manager.run(*copy)));
    gate.expectSame(*copy, fuse ? "fused" : "unfused");
    checkSchedule(*copy, fuse ? "fused" : "unfused");
  }
}

/// Every order of the six fusions computes the same, and so does its schedule.
/// Many orders end in the same IR, which runs once.
TEST_P(PassesOnModel, AllOrdersOfTheFusions) {
  Gate gate(load(GetParam()));
  OwningOpRef<ModuleOp> programs = gate.module->clone();
  ASSERT_TRUE(runPasses(*programs, ToPrograms));
  std::vector<int> order = {0, 1, 2, 3, 4, 5};
  std::map<std::string, std::string> distinct; // IR -> the first order
  int orders = 0;
  do {
    OwningOpRef<ModuleOp> copy = programs->clone();
    std::string passes;
    for (int fusion : order)
      passes += (passes.empty() ? "" : ",") + std::string(Fusions[fusion]);
    ASSERT_TRUE(runPasses(*copy, passes)) << passes;
    distinct.insert({print(*copy), passes});
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, 720);
  for (auto &[text, passes] : distinct) {
    OwningOpRef<ModuleOp> module = parse(text);
    ASSERT_TRUE(module);
    gate.expectSame(*module, passes);
    // Rounding after any order, then the schedule.
    ASSERT_TRUE(runPasses(*module, "kvc-fuse-quantize"));
    gate.expectSame(*module, passes + ",kvc-fuse-quantize");
    ASSERT_TRUE(runPasses(*module, ToSchedule)) << passes;
    gate.expectSame(*module, passes + ", scheduled");
    checkSchedule(*module, passes);
  }
}

/// A fusion that has run finds nothing more to do.
TEST_P(PassesOnModel, FusionsAreIdempotent) {
  std::string all;
  for (const char *fusion : Fusions)
    all += std::string(fusion) + ",";
  all += "kvc-fuse-quantize";
  for (const char *toPrograms : {ToPrograms, ToCudaPrograms}) {
    OwningOpRef<ModuleOp> module = load(GetParam());
    ASSERT_TRUE(runPasses(*module, toPrograms));
    ASSERT_TRUE(runPasses(*module, all));
    std::string once = print(*module);
    ASSERT_TRUE(runPasses(*module, all));
    EXPECT_EQ(print(*module), once);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, PassesOnModel,
    testing::Values("gqa.mlir", "rounded.mlir", "rounded_small_heads.mlir",
                    "gqa_small.json", "tiny_causal_lm.json",
                    "modular_small.json", "mqa_learned_small.json",
                    "partial_rotary_small.json"),
    [](const testing::TestParamInfo<const char *> &info) {
      std::string name = info.param;
      name = name.substr(0, name.find('.'));
      name.erase(std::remove(name.begin(), name.end(), '_'), name.end());
      return name;
    });

//===----------------------------------------------------------------------===//
// Random programs
//===----------------------------------------------------------------------===//

TEST(PassesOnRandomModels, KeepWhatTheyCompute) {
  for (unsigned seed = 0; seed < 300 && !testing::Test::HasFailure(); ++seed) {
    std::string text = randomModel(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    OwningOpRef<ModuleOp> module = parse(text);
    ASSERT_TRUE(module);
    Gate gate(std::move(module));
    std::mt19937 random(seed);
    for (bool fuse : {false, true}) {
      OwningOpRef<ModuleOp> copy = gate.module->clone();
      ASSERT_TRUE(runPasses(*copy, seed % 2 ? ToPrograms : ToCudaPrograms));
      if (fuse) {
        std::vector<std::string> order(std::begin(Fusions), std::end(Fusions));
        order.push_back("kvc-fuse-quantize");
        std::shuffle(order.begin(), order.end(), random);
        for (const std::string &fusion : order)
          ASSERT_TRUE(runPasses(*copy, fusion)) << fusion;
        gate.expectSame(*copy, "fused");
      }
      ASSERT_TRUE(runPasses(*copy, ToSchedule));
      gate.expectSame(*copy, fuse ? "fused, scheduled" : "scheduled");
      checkSchedule(*copy, fuse ? "fused" : "unfused");
    }
  }
}

} // namespace

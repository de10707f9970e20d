//===- PassesTest.cpp - Every pass keeps what a model computes ------------===//
//
// The gate of the passes: the interpreter's logits and cache before and after,
// at 1e-12, in prefill and decode of three sequences of different lengths.
// At L4 the interpreter also refuses a slot that was overwritten or never
// written, and a missing barrier; SlotChecker.h asks the same again, from the
// schedule's text alone.
#include "passes/Passes.h"
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

namespace {

const char *const Fusions[] = {
    "kvc-fuse-qkv",          "kvc-fuse-gate-up",  "kvc-fuse-masked-softmax",
    "kvc-fuse-cache-append", "kvc-fuse-residual", "kvc-fuse-norm"};
const char *const ToPrograms =
    "kvc-set-target{target-cpu=x86-64-v3 kv-type=f32},kvc-split-phases,"
    "kvc-quantize-activations";
const char *const ToSchedule = "kvc-pack-weights,kvc-plan-memory,kvc-schedule";

MLIRContext &context() {
  static MLIRContext *instance = [] {
    registerPassesAndPipeline();
    auto *made = new MLIRContext(MLIRContext::Threading::DISABLED);
    made->loadDialect<KvcDialect>();
    return made;
  }();
  return *instance;
}

OwningOpRef<ModuleOp> parse(const std::string &text) {
  return parseSourceString<ModuleOp>(text, ParserConfig(&context()));
}

/// A spec of test/models or a model of test/passes/Inputs.
OwningOpRef<ModuleOp> load(const std::string &name) {
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
bool runPasses(ModuleOp module, const std::string &passes) {
  PassManager manager(&context());
  return succeeded(parsePassPipeline("kvc.model(" + passes + ")", manager)) &&
         succeeded(manager.run(module));
}

std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

/// Three sequences, the last decode steps with fewer of them.
InterpretOptions threeSequences() {
  InterpretOptions options;
  options.ids = {{3, 1, 4, 1, 5, 9, 2}, {6}, {5, 3, 5, 8}};
  options.decodeIds = {{9, 7}, {9, 3, 2}, {3}};
  options.allLogits = true;
  return options;
}

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

void checkSchedule(ModuleOp module, const std::string &what) {
  for (auto model : module.getOps<ModelOp>())
    for (auto program : model.getOps<ProgramOp>())
      EXPECT_EQ(checkSlots(program), "") << what << "\n" << print(module);
}

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
  OwningOpRef<ModuleOp> module = load(GetParam());
  ASSERT_TRUE(runPasses(*module, ToPrograms));
  std::string all;
  for (const char *fusion : Fusions)
    all += std::string(fusion) + ",";
  all += "kvc-fuse-quantize";
  ASSERT_TRUE(runPasses(*module, all));
  std::string once = print(*module);
  ASSERT_TRUE(runPasses(*module, all));
  EXPECT_EQ(print(*module), once);
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

/// A model of random ops on random operands: residual streams that cross, swap
/// and are dropped, values that live past a layer, results that nobody uses.
std::string randomModel(unsigned seed) {
  std::mt19937 random(seed);
  auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  std::string rows = "tensor<?x32xf32, #kvc.rows>";
  std::string outs = "tensor<?x32xf32, #kvc.outputs>";
  int next = 0;
  auto fresh = [&] { return "%v" + std::to_string(next++); };
  auto pick = [&](const std::vector<std::string> &pool) {
    // Recent values more often, so that old ones die.
    size_t back = std::min(below(pool.size()), below(pool.size()));
    return pool[pool.size() - 1 - back];
  };
  auto addOps = [&](std::string &text, std::vector<std::string> &pool,
                    size_t count, bool layered) {
    for (size_t i = 0; i < count; ++i) {
      std::string a = pick(pool), b = pick(pool), made = fresh();
      std::string layer = layered ? "[%layer]" : "";
      std::string matrix = (layered ? "@w" : "@u") + std::to_string(below(2));
      switch (below(7)) {
      case 0:
      case 1:
        text += made + " = kvc.add " + a + ", " + b + " : " + rows + "\n";
        break;
      case 2:
        text += made + " = kvc.rms_norm " + a + ", " +
                (layered ? "@g" : "@go") + layer +
                " {eps = 1.0e-5 : f64} : " + rows + "\n";
        break;
      case 3:
        text += made + " = kvc.activation " + a +
                " {kind = #kvc.activation_kind<silu>} : " + rows + "\n";
        break;
      case 4:
        text += made + " = kvc.quantize " + a + " : " + rows + "\n";
        break;
      case 5:
        text += made + " = kvc.linear " + a + ", [" + matrix + "]" + layer +
                " : (" + rows + ") -> " + rows + "\n";
        break;
      case 6: {
        // A gated pair, which products alone would make grow.
        std::string gate = fresh(), up = fresh(), act = fresh();
        text += gate + " = kvc.linear " + a + ", [" + matrix + "]" + layer +
                " : (" + rows + ") -> " + rows + "\n";
        text += up + " = kvc.linear " + (below(2) ? a : b) + ", [" + matrix +
                "]" + layer + " : (" + rows + ") -> " + rows + "\n";
        text += act + " = kvc.activation " + gate +
                " {kind = #kvc.activation_kind<gelu>} : " + rows + "\n";
        text += made + " = kvc.mul " + act + ", " + up + " : " + rows + "\n";
        if (below(4) == 0)
          pool.push_back(gate);
        break;
      }
      }
      pool.push_back(made);
    }
  };
  auto weight = [&](const std::string &name, size_t layers,
                    const std::string &shape, const std::string &range) {
    std::string text = "kvc.weight @" + name + " : !kvc.weight<" +
                       std::to_string(layers) + "x" + shape + "> = [";
    for (size_t l = 0; l < layers; ++l)
      text += std::string(l ? ", " : "") + "#kvc.slice<@seed, f32, 0, \"" +
              name + std::to_string(l) + "\", " + range + ">";
    return text + "]\n";
  };
  std::string text = "kvc.model @random attributes {max_context = 16 : i64} {\n"
                     "kvc.source @seed {seed = 7 : i64}\n";
  text += weight("embd", 1, "16x32", "[0.0, 1.0]");
  for (std::string name : {"0", "1"}) {
    text += weight("w" + name, 3, "32x32", "[0.0, 0.3]");
    text += weight("u" + name, 1, "32x32", "[0.0, 0.3]");
  }
  text += weight("g", 3, "32", "[1.0, 0.25]") +
          weight("go", 1, "32", "[1.0, 0.25]");
  text += "kvc.forward @forward(%tokens: tensor<?xi32, #kvc.rows>, %batch: "
          "!kvc.batch) -> " +
          outs +
          " {\n%e = kvc.embed %tokens, @embd : (tensor<?xi32, "
          "#kvc.rows>) -> " +
          rows + "\n";
  std::vector<std::string> pool = {"%e"};
  addOps(text, pool, below(4), false);
  for (size_t loop = 0, loops = below(3); loop < loops; ++loop) {
    size_t carried = 1 + below(3);
    std::string inits, types, results, arguments;
    std::vector<std::string> inside = pool, made;
    for (size_t i = 0; i < carried; ++i) {
      std::string separator = i ? ", " : "";
      std::string argument = fresh();
      made.push_back(fresh());
      inits += separator + pick(pool);
      types += separator + rows;
      results += separator + made.back();
      arguments += argument + ": " + rows + ", ";
      inside.push_back(argument);
    }
    std::string body;
    addOps(body, inside, 1 + below(6), true);
    std::string yielded;
    for (size_t i = 0; i < carried; ++i)
      yielded += (i ? ", " : "") + pick(inside);
    text += results + " = kvc.layers 3 (" + inits + ") : (" + types + ") -> ";
    text += carried > 1 ? "(" + types + ")" : types;
    text += " {\n^bb0(" + arguments + "%layer: index):\n" + body +
            "kvc.yield " + yielded + " : " + types + "\n}\n";
    pool.insert(pool.end(), made.begin(), made.end());
    addOps(text, pool, below(4), false);
  }
  text +=
      "%r = kvc.select_rows " + pick(pool) + ", %batch : (" + rows + ") -> " +
      outs + "\n%n = kvc.rms_norm %r, @go {eps = 1.0e-5 : f64} : " + outs +
      "\n%l = kvc.linear %n, [@u0] : (" + outs + ") -> " + outs +
      "\nkvc.return " + (below(8) ? "%l" : "%n") + " : " + outs + "\n}\n}\n";
  return text;
}

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
      ASSERT_TRUE(runPasses(*copy, ToPrograms));
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

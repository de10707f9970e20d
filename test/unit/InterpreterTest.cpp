// What the interpreter refuses: state that is not there yet, not there any
// more, or not there for certain.
#include "dialect/reference/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace kvc;
using testing::HasSubstr;

static const char *const prelude = R"(
kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  kvc.weight @e : !kvc.weight<1x4x32> = [#kvc.slice<@s, f32, 0, "e", [0.0, 1.0]>]
  kvc.weight @w : !kvc.weight<1x32x32> = [#kvc.slice<@s, f32, 0, "w", [0.0, 1.0]>]
  kvc.cache @kv : !kvc.cache<layers = 2, kv_heads = 1, head_dim = 32, type = f32, page = 2, split = 2>
  kvc.program @prefill(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch)
      attributes {phase = #kvc.phase<prefill>, rows_bytes = 512 : i64, worker_bytes = 256 : i64} {
)";

// The slots are named in the bodies below: A, B and C lie side by side, AB
// overlaps the first two.
static std::string expand(std::string text) {
  const std::pair<const char *, const char *> names[] = {
      {"$AB", "slot<rows, offset = 64, stride = 128, f32>"},
      {"$A", "slot<rows, offset = 0, stride = 128, f32>"},
      {"$B", "slot<rows, offset = 128, stride = 128, f32>"},
      {"$C", "slot<rows, offset = 256, stride = 128, f32>"},
      {"$FAR", "slot<rows, offset = 448, stride = 128, f32>"},
      {"$LOGITS", "slot<logits, offset = 0, stride = 16, f32>"},
      {"$T", "tensor<?x32xf32, #kvc.rows>"},
      {"$H", "tensor<?x1x32xf32, #kvc.rows>"},
      {"$O", "tensor<?x32xf32, #kvc.outputs>"},
      {"$L", "tensor<?x4xf32, #kvc.outputs>"},
      {"$EMBED", "kvc.embed %t, @e : (tensor<?xi32, #kvc.rows>) -> "
                 "tensor<?x32xf32, #kvc.rows>"}};
  for (auto [name, value] : names)
    for (size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, strlen(name), value);
  // Dispatches are numbered in their order.
  int id = 0;
  for (size_t at; (at = text.find("\" #")) != std::string::npos;)
    text.replace(at + 2, 1, std::to_string(id++));
  return text;
}

static std::string embed(const char *slot = "$A") {
  return std::string(
             "kvc.dispatch \"embed\" # {\n %e = $EMBED\n kvc.write %e, ") +
         slot + " : $T\n}\n";
}

static std::string head(const char *slot = "$A") {
  return std::string("kvc.dispatch \"head\" # {\n %x = kvc.read ") + slot +
         R"( : $T
    %r = kvc.select_rows %x, %b : ($T) -> $O
    %l = kvc.linear %r, [@e] : ($O) -> $L
    kvc.write %l, $LOGITS : $L
  }
)";
}

static const std::string barrier = "kvc.barrier\n";

namespace {
/// A model whose first program has `body`, and its interpreter.
class Runner {
public:
  explicit Runner(const std::string &body) {
    context.loadDialect<KvcDialect>();
    std::string text = prelude + expand(body) + "kvc.return\n}\n}\n";
    mlir::ScopedDiagnosticHandler handler(
        &context, [&](mlir::Diagnostic &diagnostic) {
          ADD_FAILURE() << diagnostic.str() << "\nin\n" << text;
        });
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!module)
      return;
    model = *module->getOps<ModelOp>().begin();
    interpreter =
        std::make_unique<Interpreter>(model, weights, Roundings::Exact);
  }

  /// The error of a step of a program, empty for none.
  std::string run(const Step &step, int which = 0) {
    if (!interpreter)
      return "no module";
    auto program = *std::next(model.getOps<ProgramOp>().begin(), which);
    auto logits = interpreter->runStep(
        mlir::cast<mlir::FunctionOpInterface>(program.getOperation()), step);
    return logits ? "" : llvm::toString(logits.takeError());
  }

  ModelOp model;
  std::unique_ptr<Interpreter> interpreter;

private:
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;
  WeightSources weights;
};
} // namespace

static const Step twoRows = {{{1, 0, 0}, {2, 0, 1}}, {1}};

static std::string errorOf(const std::string &body) {
  return Runner(body).run(twoRows);
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

TEST(InterpreterSlots, HoldWhatWasWritten) {
  EXPECT_EQ(errorOf(embed() + barrier + head()), "");
  // What does not conflict needs no barrier.
  EXPECT_EQ(errorOf(embed() + barrier + head() + embed("$C")), "");
}

TEST(InterpreterSlots, NeverWritten) {
  EXPECT_THAT(errorOf(head()),
              HasSubstr("'kvc.read' in \"head\": reads #kvc.slot<rows, offset "
                        "= 0, stride = 128, f32>, which nothing has written"));
}

TEST(InterpreterSlots, KeepNothingFromStepToStep) {
  Runner runner("kvc.layers 1 {\n^bb0(%i: index):\n}\n" + head());
  EXPECT_THAT(runner.run(twoRows), HasSubstr("nothing has written"));
  EXPECT_THAT(runner.run(twoRows), HasSubstr("nothing has written"));
}

TEST(InterpreterSlots, NoLogits) {
  EXPECT_THAT(errorOf(embed()), HasSubstr("has written no logits"));
}

TEST(InterpreterSlots, Overwritten) {
  for (const char *slot : {"$A", "$B"}) {
    std::string body = embed(slot);
    body += barrier;
    body += embed("$AB");
    body += barrier;
    body += head(slot);
    EXPECT_THAT(errorOf(body),
                HasSubstr("which \"embed\" 0 wrote and \"embed\" 1 has "
                          "overwritten"));
  }
  EXPECT_EQ(
      errorOf(embed("$C") + barrier + embed("$AB") + barrier + head("$C")), "");
}

TEST(InterpreterSlots, AnotherWidthOfRows) {
  EXPECT_THAT(errorOf(embed() + barrier + R"(
      kvc.dispatch "half" # {
        %x = kvc.read $A : tensor<?x16xf32, #kvc.rows>
      }
)"),
              HasSubstr("reads 16 values a row from"));
}

TEST(InterpreterSlots, BeyondTheArena) {
  EXPECT_THAT(errorOf(embed("$FAR")),
              HasSubstr("does not fit an arena of 512 bytes a row"));
}

TEST(InterpreterSlots, MissingBarrier) {
  const char *missing = "a kvc.barrier between the two dispatches is missing";
  // A read after a write, a write after a read, a write after a write.
  EXPECT_THAT(errorOf(embed() + head()), HasSubstr(missing));
  EXPECT_THAT(errorOf(embed() + barrier + head() + embed()),
              HasSubstr(missing));
  EXPECT_THAT(errorOf(embed() + embed("$AB")), HasSubstr(missing));
  EXPECT_THAT(errorOf(embed() + embed("$AB")),
              HasSubstr("writes #kvc.slot<rows, offset = 64, stride = 128, "
                        "f32>, which \"embed\" 0 writes"));
}

TEST(InterpreterSlots, MissingBarrierOnTheBackEdge) {
  auto loop = [](const std::string &end) {
    return embed() + barrier + R"(
      kvc.layers 2 {
      ^bb0(%i: index):
        kvc.dispatch "there" # {
          %x = kvc.read $A : $T
          kvc.write %x, $B : $T
        }
        kvc.barrier
        kvc.dispatch "back" # {
          %x = kvc.read $B : $T
          kvc.write %x, $A : $T
        }
      )" + end +
           "}\n" + barrier + head();
  };
  EXPECT_EQ(errorOf(loop(barrier)), "");
  EXPECT_THAT(errorOf(loop("")),
              HasSubstr("which \"back\" 2 writes: a kvc.barrier"));
}

//===----------------------------------------------------------------------===//
// Inside a kernel
//===----------------------------------------------------------------------===//

static std::string project(const char *from, const char *residual,
                           const char *to) {
  return std::string("kvc.dispatch \"project\" # {\n %x = kvc.read ") + from +
         " : $T\n %h = kvc.read " + residual + R"( : $T
    %y = kvc.linear %x, [@w] : ($T) -> $T
    %s = kvc.add %h, %y : $T
    kvc.write %s, )" +
         to + " : $T\n}\n";
}

TEST(InterpreterKernels, WriteInPlace) {
  std::string start = embed("$A") + embed("$C") + barrier;
  EXPECT_EQ(errorOf(start + project("$A", "$C", "$C") + barrier + head("$C")),
            "");
  EXPECT_THAT(errorOf(start + project("$A", "$C", "$A")),
              HasSubstr("which the kernel's anchor reads"));
  EXPECT_THAT(errorOf(start + project("$C", "$A", "$AB")),
              HasSubstr("over a part of the kernel's input"));
}

TEST(InterpreterKernels, StagesDoNotOverlap) {
  auto stages = [](const char *second) {
    return embed() + barrier + R"(
      kvc.dispatch "stage" # {
        %x = kvc.read $A : $T
        %s = kvc.stage %x, slot<worker, offset = 0, stride = 128, f32> : $T
        %u = kvc.stage %s, slot<worker, offset = )" +
           second + R"(, stride = 128, f32> : $T
        %y = kvc.linear %u, [@w] : ($T) -> $T
        kvc.write %y, $B : $T
      }
)" + barrier +
           head("$B");
  };
  EXPECT_EQ(errorOf(stages("128")), "");
  EXPECT_THAT(errorOf(stages("64")), HasSubstr("over this kernel's own"));
  EXPECT_THAT(errorOf(stages("192")),
              HasSubstr("does not fit an arena of 256 bytes a row"));
}

//===----------------------------------------------------------------------===//
// The cache
//===----------------------------------------------------------------------===//

static const std::string append = R"(
  kvc.dispatch "append" # {
    %k = kvc.read $A : $H
    kvc.cache_append %k, %k, @kv[%i], %b : $H
  }
)";
static const std::string attend = R"(
  kvc.dispatch "attend" # {
    %q = kvc.read $A : $H
    %c = kvc.attention %q, @kv[%i], %b {scale = 1.0 : f64} : $H
    kvc.write %c, $B : $H
  }
)";

static std::string layers(const std::string &body) {
  return embed() + barrier + "kvc.layers 2 {\n^bb0(%i: index):\n" + body +
         "}\n" + barrier + head("$B");
}

TEST(InterpreterCache, ReadsWhatWasAppended) {
  EXPECT_EQ(errorOf(layers(append + barrier + attend + barrier)), "");
}

TEST(InterpreterCache, Unwritten) {
  EXPECT_THAT(errorOf(layers(attend)),
              HasSubstr("'kvc.attention' in \"attend\": reads position 0 of "
                        "sequence 0 in layer 0, which nothing has written"));
  Runner runner(layers(append + barrier + attend + barrier));
  EXPECT_THAT(runner.run({{{1, 0, 0}, {2, 0, 2}}, {1}}),
              HasSubstr("reads position 1 of sequence 0"));
}

TEST(InterpreterCache, ReadBeforeThisStepHasWritten) {
  // Two programs, of which the second attends first: it would see positions
  // that a step before it has left.
  Runner runner(layers(append + barrier + attend + barrier) + R"(
      kvc.return
    }
    kvc.program @late(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch)
        attributes {phase = #kvc.phase<decode>} {
)" + layers(attend + barrier + append));
  EXPECT_EQ(runner.run(twoRows), "");
  EXPECT_THAT(runner.run({{{1, 0, 1}}, {0}}, 1),
              HasSubstr("reads position 1 of sequence 0 in layer 0 before this "
                        "step has written it"));
}

TEST(InterpreterCache, AppendedTwice) {
  EXPECT_THAT(errorOf(layers(append + barrier + append)),
              HasSubstr("writes position 0 of sequence 0 in layer 0 a second "
                        "time in one step"));
}

TEST(InterpreterCache, MissingBarrier) {
  EXPECT_THAT(errorOf(layers(append + attend)),
              HasSubstr("reads @kv, which \"append\" 1 writes: a kvc.barrier"));
}

TEST(InterpreterCache, Truncates) {
  Runner runner(layers(append + barrier + attend + barrier));
  EXPECT_EQ(runner.run({{{1, 0, 0}, {2, 0, 1}, {3, 0, 2}}, {2}}), "");
  runner.interpreter->truncate(0, 1);
  EXPECT_EQ(
      runner.interpreter->caches().begin()->second.entry(0, 0).positions(), 1);
  EXPECT_THAT(runner.run({{{1, 0, 2}}, {0}}),
              HasSubstr("reads position 1 of sequence 0"));
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

TEST(InterpreterSteps, AreChecked) {
  Runner runner(embed() + barrier + head());
  EXPECT_THAT(runner.run({{{1, 0, 8}}, {0}}),
              HasSubstr("position 8 lies beyond the model's max_context of 8"));
  EXPECT_THAT(runner.run({{{1, -1, 0}}, {0}}),
              HasSubstr("a row of sequence -1 at position 0"));
  EXPECT_THAT(runner.run({{{1, 0, 0}}, {1}}),
              HasSubstr("output row 1 of 1 rows"));
  auto program = *runner.model.getOps<ProgramOp>().begin();
  program.setPhase(Phase::Decode);
  EXPECT_THAT(runner.run(twoRows),
              HasSubstr("a decode step has one row a sequence, but 2 of "
                        "sequence 0"));
  EXPECT_EQ(runner.run({{{1, 0, 0}, {1, 1, 5}}, {0, 1}}), "");
}

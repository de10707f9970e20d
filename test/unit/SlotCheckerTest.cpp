//===- SlotCheckerTest.cpp - The checker finds what it is for -------------===//
#include "SlotChecker.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace kvc;

/// Dispatches of a program whose rows arena has 192 bytes a row. In `text`,
/// rN and wN read and write the slot at N as %x, and `--` is a barrier.
static std::string check(const std::string &text) {
  MLIRContext context;
  context.loadDialect<KvcDialect>();
  std::string body;
  llvm::raw_string_ostream out(body);
  const char *type = "tensor<?x16xf32, #kvc.rows>";
  int id = 0, value = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    int offset = i + 1 < text.size() ? 64 * (text[i + 1] - '0') : 0;
    std::string slot =
        llvm::formatv("slot<rows, offset = {0}, stride = 64, f32>", offset);
    switch (text[i]) {
    case '(':
      out << llvm::formatv("kvc.dispatch \"d\" {0} {{\n", id++);
      break;
    case 'L':
      out << "kvc.layers 2 {\n^bb0(%layer: index):\n";
      break;
    case ')':
    case 'E':
      out << "}\n";
      break;
    case '-':
      out << "kvc.barrier\n";
      break;
    case 'r':
      out << llvm::formatv("%v{0} = kvc.read {1} : {2}\n", ++value, slot, type);
      break;
    case 'w':
      out << llvm::formatv("kvc.write %v{0}, {1} : {2}\n", value, slot, type);
      break;
    case '+': // doubles the last value, element by element
      out << llvm::formatv("%v{0} = kvc.add %v{1}, %v{1} : {2}\n", value + 1,
                           value, type);
      ++value;
      break;
    case 'n': // norms the last value, from whole rows
      out << llvm::formatv("%v{0} = kvc.rms_norm %v{1}, @n {{eps = 1.0 : f64} "
                           ": {2}\n",
                           value + 1, value, type);
      ++value;
      break;
    case 'e':
      out << llvm::formatv("%v{0} = kvc.embed %t, @w : (tensor<?xi32, "
                           "#kvc.rows>) -> {1}\n",
                           ++value, type);
      break;
    default: // spaces and offsets
      break;
    }
  }
  auto module = parseSourceString<ModuleOp>(
      "kvc.model @m attributes {max_context = 8 : i64} {\n"
      "kvc.source @s {seed = 1 : i64}\n"
      "kvc.weight @w : !kvc.weight<1x8x16> = [#kvc.slice<@s, f32, 0, \"w\", "
      "[0.0, 1.0]>]\n"
      "kvc.weight @n : !kvc.weight<1x16> = [#kvc.slice<@s, f32, 0, \"n\", "
      "[0.0, 1.0]>]\n"
      "kvc.program @decode(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) "
      "attributes {phase = #kvc.phase<decode>, rows_bytes = 192 : i64} {\n" +
          body + "kvc.return\n}\n}\n",
      ParserConfig(&context));
  if (!module)
    return "does not parse:\n" + body;
  auto model = *module->getOps<ModelOp>().begin();
  return checkSlots(*model.getOps<ProgramOp>().begin());
}

static const char *const Overlap = "two values live in the same bytes at once";
static const char *const Barrier =
    "no barrier stands between dispatches that share a slot";

namespace {

TEST(SlotChecker, AcceptsWhatIsRight) {
  EXPECT_EQ(check("(e w0)-(r0 + w0)-(r0 n w1)-(r1 w0)"), "");
  EXPECT_EQ(check("(e w0)-L(r0 n w1)-(r1 n w0)-E(r0 w2)"), "");
  EXPECT_EQ(check("(e w0)(e w1)-(r0 w2)"), "");
}

TEST(SlotChecker, FindsWhatIsWrong) {
  EXPECT_EQ(check("(r0 w1)"), "a slot is read before it is written");
  EXPECT_EQ(check("(e w0)(r0 w1)"), Barrier);
  EXPECT_EQ(check("(e w0)-(r0 w1)(e w0)"), Barrier);
  EXPECT_EQ(check("(e w0)-(r0 n w0)"), Overlap);
  EXPECT_EQ(check("(e w3)"), "a slot lies outside its arena or is not aligned");
  // Only the second layer reads what the first overwrote.
  EXPECT_EQ(check("(e w0)-L(r0 n w1)-(r1 n w0)E"), Barrier);
}

} // namespace

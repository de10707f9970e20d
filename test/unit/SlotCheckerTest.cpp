//===- SlotCheckerTest.cpp - The checker finds what it is for -------------===//
#include "SlotChecker.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace kvc;

namespace {

/// Dispatches of a program whose rows arena has 192 bytes a row. In `text`,
/// rN and wN read and write the slot at N as %x, and `--` is a barrier.
std::string check(const std::string &text) {
  MLIRContext context;
  context.loadDialect<KvcDialect>();
  std::string body;
  int id = 0, value = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    std::string at = text[i] == 'r' || text[i] == 'w'
                         ? std::to_string(64 * (text[i + 1] - '0'))
                         : "";
    std::string slot = " slot<rows, offset = " + at + ", stride = 64, f32>";
    std::string type = " : tensor<?x16xf32, #kvc.rows>\n";
    switch (text[i]) {
    case '(':
      body += "kvc.dispatch \"d\" " + std::to_string(id++) + " {\n";
      break;
    case ')':
      body += "}\n";
      break;
    case '-':
      body += "kvc.barrier\n";
      break;
    case 'r':
      body += "%v" + std::to_string(++value) + " = kvc.read" + slot + type;
      break;
    case '+': { // doubles the last value, element by element
      std::string last = "%v" + std::to_string(value);
      body += "%v" + std::to_string(++value) + " = kvc.add " + last + ", " +
              last + type;
      break;
    }
    case 'n': { // norms the last value, from whole rows
      std::string last = "%v" + std::to_string(value);
      body += "%v" + std::to_string(++value) + " = kvc.rms_norm " + last +
              ", @n {eps = 1.0 : f64}" + type;
      break;
    }
    case 'e':
      body += "%v" + std::to_string(++value) +
              " = kvc.embed %t, @w : (tensor<?xi32, #kvc.rows>) -> "
              "tensor<?x16xf32, #kvc.rows>\n";
      break;
    case 'w':
      body += "kvc.write %v" + std::to_string(value) + "," + slot + type;
      break;
    case 'L':
      body += "kvc.layers 2 {\n^bb0(%layer: index):\n";
      break;
    case 'E':
      body += "}\n";
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

const char *const Overlap = "two values live in the same bytes at once";
const char *const Barrier =
    "no barrier stands between dispatches that share a slot";

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

// What PTX text is understood, and what is refused: by name and line.
#include "test/unit/SimFixture.h"

using namespace kvc::sim;

namespace {

std::string parseError(const std::string &text) {
  std::string error;
  std::unique_ptr<Module> module = Module::parse(text, error);
  EXPECT_EQ(module == nullptr, !error.empty());
  return error;
}

std::string inKernel(const std::string &body) {
  return header("sm_90", "8.0") +
         ".visible .entry k(.param .u64 a)\n{\n"
         ".reg .pred p, q; .reg .b16 h; .reg .b32 r, s; .reg .b64 x, y;\n"
         ".reg .f32 f; .reg .b128 w;\n" +
         body + "\nret;\n}\n";
}

TEST(SimParser, RefusedByName) {
  std::pair<const char *, const char *> cases[] = {
      {"tex.2d.v4.f32.f32 {f,f,f,f}, [x, {f,f}];", "'tex.2d.v4.f32.f32'"},
      {"add.u32.foo r, r, s;", "unknown modifier '.foo'"},
      {"add.u32 r, r;", "2 operands; it has 3"},
      {"add.u32 r, r, x;", "operand 'x' has 64 bits, the instruction 32"},
      {"add.u32 x, r, s;", "destination 'x' has 64 bits"},
      {"add.u32 r, r, z;", "nothing is called 'z'"},
      {"add.u32 5, r, s;", "is not a register"},
      {"add.u32 r, r, %foo;", "nothing is called '%foo'"},
      {"add.f32 f, f, 1;", "an integer constant for a floating operand"},
      {"mov.u32 r, %clock64;", "the register has 64 bits"},
      {"setp.u32 p, r, s;", "the comparison is missing"},
      {"fma.f32 f, f, f, f;", "the rounding is missing"},
      {"cvt.f16.f32 h, f;", "the rounding is missing"},
      {"cvt.s32.f32 r, f;", "the rounding (.rni, .rzi, .rmi, .rpi) is missing"},
      {"@r add.u32 r, r, s;", "the guard 'r' is not a predicate"},
      {"ld.global.b32 r, [s];", "the address 's' has 32 bits"},
      {"ld.global.b32 r, [a];", "not in the space the instruction names"},
      {"ld.global.v2.b32 {r, s, r}, [x];", "a vector of 3 elements"},
      {"st.const.b32 [x], r;", "stores to this space do not exist"},
      {"cp.async.cg.shared.global [r], [x], 8;", "a size of 8: .cg copies 16"},
      {"cp.async.bulk.shared.global [r], [x], 8;", "'cp.async.bulk"},
      {"mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {f,f,f,f},"
       " {r,r,r,r}, {r,r}, {f,f,f,f};",
       "only .row.col is known"},
      {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f,f,f,f},"
       " {r,r,r}, {r,r}, {f,f,f,f};",
       "operand 2 has 3 registers, the form 4"},
      {"shfl.bfly.b32 r, s, 1, 31;", ".sync is missing"},
      {"bra Nowhere;", "no label 'Nowhere'"},
      {"call foo;", "unknown instruction"},
      {"atom.global.add.f16 h, [x], h;", "does not exist for this type"},
      {"lop3.b32 r, r, r, r, 256;", "the table 256 has 8 bits"},
      {"wgmma.fence.sync.aligned;", "'wgmma.fence.sync.aligned'"},
      {"mov.b32 r, 0f3F80;", "8 or 16 digits"},
      {"mov.b32 r, #;", "a character that cannot stand here"},
      {".reg .b32 r;", "register 'r' is declared twice"},
      {"L: L: add.u32 r, r, s;", "label 'L' stands twice"},
      {"mov.b64 x, {{r, s}, r};", "a vector inside a vector"},
      {".local .b8 depot[600000]; mov.b64 x, depot;", "bytes of local"},
      {".shared .b8 big[300000]; mov.b64 x, big;", "300000 of shared memory"},
      {"add.u32 r, r, s", "';' was expected"},
  };
  for (auto [body, want] : cases) {
    std::string error = parseError(inKernel(body));
    EXPECT_NE(error.find(want), std::string::npos) << body << ": " << error;
    EXPECT_EQ(error.substr(0, 5), "line ") << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
  EXPECT_EQ(parseError(inKernel("add.u32 r, r, s;")), "");
}

TEST(SimParser, RefusedModules) {
  std::string start = header("sm_90", "8.0");
  std::pair<std::string, const char *> cases[] = {
      {"", ".target is missing"},
      {start + ".entry k(.param .u64 a) { ret;", "'}' is missing"},
      {start + ".entry k() { ret; } .entry k() { ret; }", "defined twice"},
      {start + ".global .b32 a; .global .b32 a;", "declared twice"},
      {start + ".global .b8 a[2] = {1, 2, 3};", "too many initialisers"},
      {start + ".extern .global .b32 a;", "there is no linker"},
      {start + ".global .b8 a[99999999999999999999];", "too large"},
      {start + ".global .b8 a[4][9223372036854775807];", "too large"},
      {start + ".func f() { ret; }", "'.func' is not known"},
      {start + ".entry k() .reqnctapercluster 2 { ret; }", "clusters"},
      {start + ".entry k() .foo 2 { ret; }", "'.foo' is not known"},
      {start + ".shared .b32 a = 5;", "cannot have an initialiser"},
      {start + "/* never closed", "a comment without an end"},
      {start + ".file 1 \"never closed", "a string without an end"},
      {start + ".global .b8 a[] = {{{{{{{{{{{1}}}}}}}}}}};", "8 levels"},
      {start + ".entry k(.param .b8 a[40000]) { ret; }", "of parameters"},
      {".version 8.0 .target sm_90 .address_size 32", "only .address_size 64"},
  };
  for (const auto &[text, want] : cases) {
    std::string error = parseError(text);
    EXPECT_NE(error.find(want), std::string::npos) << text << ": " << error;
  }
}

/// Cutting or doubling any piece of a text must not do more than be refused.
TEST(SimParser, DamagedTexts) {
  std::string text =
      header("sm_90", "8.0") +
      ".global .align 4 .b32 v[3] = {1, -2, 3};\n"
      ".extern .shared .align 16 .b8 s[];\n"
      ".visible .entry k(.param .u64 .ptr .global .align 16 a, .param .f32 b)\n"
      ".reqntid 32, 1, 1\n.minnctapersm 2\n{\n"
      ".reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<5>; .reg .f32 %f<3>; "
      ".reg .b16 %h<2>;\n"
      ".loc 1 2 3\nld.param.u64 %rd1, [a]; ld.param.f32 %f1, [b];\n"
      "mov.u32 %r1, %tid.x; setp.lt.u32 %p1|%p2, %r1, 0x10;\n"
      "@!%p1 bra $L2; add.f32 %f2, %f1, 0f3F800000;\n"
      "{ .reg .b32 t; mov.b32 t, {%h1, 5}; }\n"
      "$L2: ld.global.v2.b32 {%r2, _}, [%rd1+8];\n"
      "shfl.sync.bfly.b32 %r3|%p2, %r2, 1, 31, -1; bar.sync 0;\n"
      "st.shared.b32 [s+4], %r3; ret;\n}\n";
  EXPECT_EQ(parseError(text), "");
  for (size_t from = 0; from < text.size(); ++from)
    for (size_t length : {1, 2, 7}) {
      std::string cut = text, twice = text;
      cut.erase(from, length);
      twice.insert(from, text.substr(from, length));
      parseError(cut);
      parseError(twice);
      parseError(text.substr(0, from));
    }
}

TEST(SimParser, ScopesLabelsAndDebugInformation) {
  // Two blocks with the same register and label, as inline assembly has them.
  std::string block = "{ .reg.pred p; .reg .b32 n; mov.b32 n, 0;\n"
                      "WAIT: add.u32 n, n, 1; setp.lt.u32 p, n, 3;\n"
                      "@p bra WAIT; add.u32 t0, t0, n; }\n";
  Values got =
      evaluate1(".loc 1 2 3\n.pragma \"nounroll\";\nmov.b32 t0, i0;\n" + block +
                    block + "mov.b32 o0, t0;\n",
                {{32, Values(32, 4)}});
  EXPECT_EQ(got, Values(32, 10));
}

TEST(SimParser, ConstantsOfEveryForm) {
  struct {
    const char *Text;
    uint64_t Value;
  } cases[] = {{"mov.b32 o0, -1;", 0xFFFFFFFF},
               {"mov.b32 o0, 0x7fU;", 0x7F},
               {"mov.b32 o0, 0b101;", 5},
               {"mov.b32 o0, 017;", 15},
               {"mov.f32 o0, 1.5;", 0x3FC00000},
               {"mov.f32 o0, -2.5e-1;", 0xBE800000},
               {"mov.f32 o0, 0f40490FDB;", 0x40490FDB},
               {"mov.b32 o0, WARP_SZ;", 32},
               {"add.u32 o0, -8, 0x10;", 8}};
  for (const auto &test : cases)
    EXPECT_EQ(evaluate1(test.Text, {}), Values(32, test.Value)) << test.Text;
}

TEST(SimParser, KernelInformation) {
  std::string error;
  std::unique_ptr<Module> module = Module::parse(
      header("sm_80", "8.0") +
          ".extern .shared .align 128 .b8 pool[];\n.shared .b32 other;\n"
          ".entry k(.param .u8 a, .param .align 16 .b8 b[20], .param .u64 c)\n"
          ".maxntid 64, 2\n{\n.reg .b32 r; .local .align 8 .b8 d[24];\n"
          ".shared .align 64 .b8 own[10]; mov.b32 r, pool; ret;\n}\n",
      error);
  ASSERT_NE(module, nullptr) << error;
  EXPECT_EQ(module->target(), "sm_80");
  const KernelInfo *info = module->find("k");
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(module->find("l"), nullptr);
  ASSERT_EQ(info->Parameters.size(), 3u);
  EXPECT_EQ(info->Parameters[1].Offset, 16u);
  EXPECT_EQ(info->Parameters[2].Offset, 40u);
  EXPECT_EQ(info->ParameterBytes, 48u);
  EXPECT_EQ(info->MaxThreads, 128u);
  EXPECT_EQ(info->StaticShared, 10u) << "'other' is not used";
  EXPECT_EQ(info->Local, 24u);
  EXPECT_EQ(info->Registers, 1u);
  EXPECT_EQ(info->Instructions, 2u);
}

} // namespace

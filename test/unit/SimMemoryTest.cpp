// Loads and stores, matrices in shared memory, asynchronous copies, atomics.
#include "test/unit/SimFixture.h"

#include <algorithm>
#include <array>

using namespace kvc::sim;

namespace {

TEST(SimMemory, LoadsExtend) {
  Values v;
  std::mt19937_64 random(80);
  for (int i = 0; i != 64; ++i)
    v.push_back(random());
  std::vector<Input> inputs = {{64, v}};
  struct {
    const char *Type;
    unsigned Bits;
    bool Signed;
  } const types[] = {{"u8", 8, false},   {"s8", 8, true},   {"b8", 8, false},
                     {"u16", 16, false}, {"s16", 16, true}, {"b16", 16, false},
                     {"u32", 32, false}, {"s32", 32, true}, {"f32", 32, false},
                     {"b32", 32, false}};
  for (const auto &type : types)
    for (const char *form : {"ld.global", "ld.global.nc", "ld.volatile.global",
                             "ld.relaxed.gpu.global", "ld.acquire.gpu.global",
                             "ld.global.ca", "ld.global.cg"}) {
      // The register may be wider than the element.
      std::string op = std::string(form) + "." + type.Type;
      Values got = evaluate1(op + " o0, [base];", inputs);
      expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
        unsigned shift = 64 - type.Bits;
        return type.Signed ? uint32_t(int64_t(v[i] << shift) >> shift)
                           : uint32_t(v[i] << shift >> shift);
      });
    }
}

TEST(SimMemory, Vectors) {
  // Through shared memory with every vector width; `base` has 8 bytes a thread.
  struct {
    const char *Text;
    unsigned Bytes;
  } const forms[] = {
      {"st.shared.v2.b32 [t1], {i0, i1}; ld.shared.v2.b32 {o0, o1}, [t1];", 8},
      {"st.shared.v4.b32 [t1], {i0, i1, i0, i1};"
       "ld.shared.v4.b32 {t2, t3, o0, o1}, [t1];",
       16},
      {"mov.b64 w0, {i0, i1}; st.shared.v2.b64 [t1], {w0, w0};"
       "ld.shared.v2.b64 {w1, w2}, [t1]; mov.b64 {o0, o1}, w2;",
       16},
      {"cvt.u16.u32 h0, i0; cvt.u16.u32 h1, i1; shr.u32 t2, i0, 16;"
       "cvt.u16.u32 h2, t2; shr.u32 t2, i1, 16; cvt.u16.u32 h3, t2;"
       "st.shared.v4.b16 [t1], {h0, h2, h1, h3};"
       "ld.shared.v2.b32 {o0, o1}, [t1];",
       8},
      {"st.shared.b64 [t1], w0; st.shared.b32 [t1], i0;"
       "st.shared.b32 [t1+4], i1; ld.shared.v4.b16 {h0, h1, h2, h3}, [t1];"
       "mov.b32 o0, {h0, h1}; mov.b32 o1, {h2, h3};",
       8},
  };
  std::mt19937_64 random(81);
  Values a, b;
  for (int i = 0; i != 64; ++i) {
    a.push_back(random() >> 32);
    b.push_back(random() >> 32);
  }
  std::vector<Input> inputs = {{32, a}, {32, b}};
  Snippet snippet;
  snippet.Shared = 32 * 16;
  for (const auto &form : forms) {
    std::vector<Values> got =
        evaluate("mov.b64 w0, 0; mov.u32 t0, smem; mov.u32 t1, %tid.x;"
                 "mad.lo.u32 t1, t1, " +
                     std::to_string(form.Bytes) + ", t0;" + form.Text,
                 inputs, {32, 32}, snippet);
    EXPECT_EQ(got[0], a) << form.Text;
    EXPECT_EQ(got[1], b) << form.Text;
  }
}

TEST(SimMemory, GlobalVectorsAndHints) {
  std::mt19937_64 random(82);
  Values a;
  for (int i = 0; i != 64; ++i)
    a.push_back(random());
  std::vector<Input> inputs = {{64, a}};
  // Two threads read the same 16 bytes: an even thread its own, an odd one the
  // pair's.
  for (const char *op :
       {"ld.global.v4.b32", "ld.global.nc.v4.b32",
        "ld.global.nc.L1::no_allocate.v4.b32",
        "ld.global.L1::evict_last.v4.b32", "ld.global.nc.L2::128B.v4.b32"}) {
    std::vector<Values> got =
        evaluate(std::string("and.b64 w0, base, -16; ") + op +
                     " {t0, t1, t2, t3}, [w0]; mov.b64 o0, {t0, t1};"
                     "mov.b64 o1, {t2, t3};",
                 inputs, {64, 64});
    for (size_t i = 0; i != 64; ++i) {
      EXPECT_EQ(got[0][i], a[i & ~size_t(1)]) << op;
      EXPECT_EQ(got[1][i], a[i | 1]) << op;
    }
  }
}

TEST(SimMemory, GenericAddresses) {
  Values a;
  for (uint64_t i = 0; i != 32; ++i)
    a.push_back(i * 0x01010101);
  std::vector<Input> inputs = {{32, a}};
  Snippet snippet;
  snippet.Shared = 128;
  // A shared variable through its generic address, and back again.
  Values got = evaluate1(
      "mov.u32 t0, smem; cvt.u64.u32 w0, t0; cvta.shared.u64 w1, w0;"
      "mul.wide.u32 w2, index, 4; add.u64 w1, w1, w2; st.b32 [w1], i0;"
      "bar.warp.sync 0xffffffff; xor.b32 t1, index, 1; mul.wide.u32 w2, t1, 4;"
      "add.u64 w3, w0, w2; cvt.u32.u64 t2, w3; ld.shared.b32 o0, [t2];",
      inputs, 32, snippet);
  for (size_t i = 0; i != 32; ++i)
    EXPECT_EQ(got[i], a[i ^ 1]);
  // Global through generic.
  got = evaluate1("cvta.global.u64 w0, base; ld.b32 o0, [w0];", inputs);
  EXPECT_EQ(got, a);
  got = evaluate1("cvta.global.u64 w0, base; cvta.to.global.u64 w1, w0;"
                  "ld.global.b32 o0, [w1];",
                  inputs);
  EXPECT_EQ(got, a);
  std::vector<Values> both = evaluate(
      "mov.u32 t0, smem; cvt.u64.u32 w0, t0; cvta.shared.u64 w1, w0;"
      "cvta.global.u64 w2, base; isspacep.shared p0, w1; isspacep.global p1, "
      "w2;"
      "isspacep.shared p2, w2; selp.b32 o0, 1, 0, p0; selp.b32 o1, 1, 0, p1;"
      "selp.b32 o2, 1, 0, p2;",
      inputs, {32, 32, 32}, snippet);
  EXPECT_EQ(both[0], Values(32, 1));
  EXPECT_EQ(both[1], Values(32, 1));
  EXPECT_EQ(both[2], Values(32, 0));
}

/// 8x8 matrices of 16-bit numbers 256 * row + column, matrix m in bits 12-14.
constexpr const char *FillMatrices =
    "mov.u32 t0, smem; mov.u32 t1, %laneid; shl.b32 t2, t1, 4;"
    "add.u32 t2, t2, t0;"
    // Lane l writes row l % 8 of matrix l / 8 at 16 * l.
    "and.b32 t3, t1, 7; shr.u32 t4, t1, 3; shl.b32 t3, t3, 8;"
    "shl.b32 t4, t4, 12; or.b32 t3, t3, t4; mul.lo.u32 t4, t3, 0x10001;"
    "add.u32 t4, t4, 0x10000; add.u32 t5, t4, 0x20002; add.u32 t6, t5, 0x20002;"
    "add.u32 t7, t6, 0x20002; st.shared.v4.b32 [t2], {t4, t5, t6, t7};"
    "bar.warp.sync 0xffffffff;";

uint64_t matrixElement(unsigned matrix, unsigned row, unsigned column) {
  return matrix << 12 | row << 8 | column;
}

TEST(SimMemory, LoadMatrix) {
  Snippet snippet;
  snippet.Shared = 512;
  for (unsigned count : {1u, 2u, 4u})
    for (bool transposed : {false, true}) {
      std::string list = count == 1   ? "{o0}"
                         : count == 2 ? "{o0, o1}"
                                      : "{o0, o1, o2, o3}";
      std::string op = "ldmatrix.sync.aligned.m8n8.x" + std::to_string(count) +
                       (transposed ? ".trans" : "") + ".shared.b16";
      // Row addresses from the lanes in reverse: lane l gives row l ^ 7 (of
      // matrix l / 8, whose rows are mirrored).
      std::vector<Values> got = evaluate(
          std::string(FillMatrices) +
              "xor.b32 t8, t1, 7; shl.b32 t8, t8, 4; add.u32 t8, t8, t0;" + op +
              " " + list + ", [t8];",
          {}, std::vector<unsigned>(count, 32), snippet);
      for (unsigned m = 0; m != count; ++m)
        for (unsigned lane = 0; lane != 32; ++lane) {
          auto at = [&](unsigned row, unsigned column) {
            return matrixElement(m, 7 - row, column);
          };
          unsigned r = lane / 4, c = 2 * (lane % 4);
          uint64_t want = transposed ? at(c, r) | at(c + 1, r) << 16
                                     : at(r, c) | at(r, c + 1) << 16;
          EXPECT_EQ(got[m][lane], want) << op << " " << m << " " << lane;
        }
    }
}

TEST(SimMemory, StoreMatrix) {
  Snippet snippet;
  snippet.Shared = 512;
  for (unsigned count : {1u, 2u, 4u})
    for (bool transposed : {false, true}) {
      std::string list = count == 1   ? "{t2}"
                         : count == 2 ? "{t2, t3}"
                                      : "{t2, t3, t4, t5}";
      std::string op = "stmatrix.sync.aligned.m8n8.x" + std::to_string(count) +
                       (transposed ? ".trans" : "") + ".shared.b16";
      // Register m of lane l holds 4096 * m + 2 * l and the next number.
      std::vector<Values> got = evaluate(
          "mov.u32 t0, smem; mov.u32 t1, %laneid; mul.lo.u32 t2, t1, 0x20002;"
          "add.u32 t2, t2, 0x10000; add.u32 t3, t2, 0x10001000;"
          "add.u32 t4, t3, 0x10001000; add.u32 t5, t4, 0x10001000;"
          "shl.b32 t8, t1, 4; add.u32 t8, t8, t0; mov.b32 t9, 0;"
          "st.shared.v4.b32 [t8], {t9, t9, t9, t9}; bar.warp.sync 0xffffffff;" +
              op + " [t8], " + list +
              "; bar.warp.sync 0xffffffff;"
              "ld.shared.v4.b32 {o0, o1, o2, o3}, [t8];",
          {}, {32, 32, 32, 32}, snippet);
      for (unsigned lane = 0; lane != 32; ++lane)
        for (unsigned column = 0; column != 8; ++column) {
          unsigned m = lane / 8, row = lane % 8;
          unsigned r = transposed ? column : row, c = transposed ? row : column;
          // Element (r, c) is half c % 2 of lane 4r + c / 2.
          uint64_t want =
              m < count ? m * 4096 + 2 * (4 * r + c / 2) + c % 2 : 0;
          uint64_t word = got[column / 2][lane];
          EXPECT_EQ(word >> (16 * (column % 2)) & 0xFFFF, want)
              << op << " row " << lane << " column " << column;
        }
    }
}

TEST(SimMemory, MoveMatrix) {
  Values got = evaluate1("mov.u32 t1, %laneid; mul.lo.u32 t2, t1, 0x20002;"
                         "add.u32 t2, t2, 0x10000;"
                         "movmatrix.sync.aligned.m8n8.trans.b16 o0, t2;",
                         {});
  for (unsigned lane = 0; lane != 32; ++lane)
    for (unsigned half = 0; half != 2; ++half) {
      unsigned row = lane / 4, column = 2 * (lane % 4) + half;
      EXPECT_EQ(got[lane] >> (16 * half) & 0xFFFF, column * 8 + row);
    }
}

TEST(SimMemory, AsynchronousCopies) {
  std::mt19937_64 random(83);
  Values a;
  for (int i = 0; i != 64; ++i)
    a.push_back(random());
  std::vector<Input> inputs = {{64, a}};
  Snippet snippet;
  snippet.Shared = 512;
  struct {
    const char *Text;
    unsigned Bytes;
  } const forms[] = {
      {"cp.async.ca.shared.global [t1], [w0], 4;", 4},
      {"cp.async.ca.shared.global [t1], [w0], 8;", 8},
      {"cp.async.ca.shared.global [t1], [w0], 16;", 16},
      {"cp.async.cg.shared.global [t1], [w0], 16;", 16},
      {"cp.async.cg.shared.global.L2::128B [t1], [w0], 16;", 16},
      {"mov.b32 t3, 8; cp.async.ca.shared.global [t1], [w0], 16, t3;", 8},
      {"mov.b32 t3, 0; cp.async.cg.shared.global [t1], [w0], 16, t3;", 0},
      {"setp.ge.u32 p0, index, 0; cp.async.ca.shared.global [t1], [w0], 16, "
       "p0;",
       0},
  };
  for (const auto &form : forms)
    for (const char *wait : {"cp.async.wait_all;",
                             "cp.async.commit_group; cp.async.wait_group 0;"}) {
      // Each thread copies the 16 bytes of its pair; what is not copied was 7.
      bool ignored = std::strstr(form.Text, "p0") || form.Bytes == 0 ||
                     std::strstr(form.Text, "t3");
      std::vector<Values> got = evaluate(
          "and.b64 w0, base, -16; mov.u32 t0, smem; mov.u32 t1, %tid.x;"
          "shl.b32 t1, t1, 4; add.u32 t1, t1, t0; mov.b32 t2, 7;"
          "st.shared.v4.b32 [t1], {t2, t2, t2, t2};" +
              std::string(form.Text) + wait +
              "ld.shared.v2.b64 {o0, o1}, [t1];",
          inputs, {64, 64}, snippet);
      for (size_t i = 0; i != 64; ++i) {
        uint64_t source[2] = {a[i & ~size_t(1)], a[i | 1]};
        uint64_t want[2] = {0x700000007, 0x700000007};
        if (ignored)
          want[0] = want[1] = 0;
        std::memcpy(want, source, form.Bytes);
        EXPECT_EQ(got[0][i], want[0]) << form.Text << wait;
        EXPECT_EQ(got[1][i], want[1]) << form.Text << wait;
      }
    }
}

TEST(SimMemory, CopyGroups) {
  // Two groups in flight; the older one may be read after wait_group 1.
  Values a;
  for (uint64_t i = 0; i != 32; ++i)
    a.push_back(i * 3 + 1);
  std::vector<Input> inputs = {{32, a}, {32, a}};
  for (uint64_t &value : inputs[1].Value)
    value += 1000;
  Snippet snippet;
  snippet.Shared = 256;
  std::vector<Values> got = evaluate(
      "mov.u32 t0, smem; mov.u32 t1, %tid.x; shl.b32 t1, t1, 2;"
      "add.u32 t1, t1, t0;"
      "cp.async.ca.shared.global [t1], [base], 4; cp.async.commit_group;"
      "cp.async.ca.shared.global [t1+128], [base+256], 4;"
      "cp.async.commit_group; cp.async.wait_group 1; ld.shared.b32 o0, [t1];"
      "cp.async.wait_group 0; ld.shared.b32 o1, [t1+128];",
      inputs, {32, 32}, snippet);
  EXPECT_EQ(got[0], inputs[0].Value);
  EXPECT_EQ(got[1], inputs[1].Value);
}

/// 64 CTAs of 64 threads update one word; the result and what atom returned.
struct AtomicCase {
  const char *Op; // "add.u32"
  const char *Operand;
  uint64_t Start, End;
};

TEST(SimMemory, AtomicsOfManyCtas) {
  // t = 0 .. 4095; the operand is a function of it.
  const AtomicCase cases[] = {
      {"add.u32", "mov.b32 v, t;", 5, 5 + 4095 * 4096 / 2},
      {"add.s32", "neg.s32 v, t;", 5, uint32_t(5 - 4095 * 4096 / 2)},
      {"min.u32", "add.u32 v, t, 17;", 0xFFFFFFFF, 17},
      {"max.s32", "sub.u32 v, t, 5000;", 0x80000000, uint32_t(4095 - 5000)},
      {"min.s32", "sub.u32 v, t, 5000;", 7, uint32_t(-5000)},
      {"max.u32", "mov.b32 v, t;", 0, 4095},
      {"and.b32", "not.b32 v, t;", 0xFFFFFFFF, 0xFFFFF000},
      {"or.b32", "mov.b32 v, t;", 0x10000, 0x10FFF},
      {"xor.b32", "mov.b32 v, 1;", 3, 3},
      {"inc.u32", "mov.b32 v, 9;", 0, 4096 % 10},
      {"dec.u32", "mov.b32 v, 9;", 0, (10 - 4096 % 10) % 10},
      {"add.f32", "mov.b32 v, 0f3F800000;", 0x3F800000, 0x45800800},
  };
  for (const AtomicCase &test : cases)
    for (bool red : {false, true})
      for (bool shared : {false, true}) {
        std::string op = test.Op;
        std::string space = shared ? ".shared." : ".global.";
        std::string text =
            ".visible .entry k(.param .u64 data)\n{\n"
            ".reg .b32 t, s, n, v, d, a; .reg .b64 p; .reg .pred q;\n"
            ".shared .align 4 .b8 word[4];\n"
            "ld.param.u64 p, [data]; cvta.to.global.u64 p, p;\n"
            "mov.u32 t, %tid.x; mov.u32 s, %ctaid.x; mov.u32 n, %ntid.x;\n"
            "mad.lo.u32 t, s, n, t;\n" +
            std::string(test.Operand) + "\n";
        if (shared)
          // All threads of the one CTA, on a word that thread 0 has set.
          text += "setp.eq.u32 q, t, 0; mov.u32 a, word;\n"
                  "@q ld.global.b32 d, [p]; @q st.shared.b32 [a], d;\n"
                  "bar.sync 0;\n";
        std::string target = shared ? "[a]" : "[p]";
        if (red)
          text += "red" + space + op + " " + target + ", v;\n";
        else
          text += "atom" + space + op + " d, " + target + ", v;\n";
        if (shared)
          text += "bar.sync 0;\n@q ld.shared.b32 d, [a];\n"
                  "@q st.global.b32 [p], d;\n";
        text += "ret;\n}\n";
        KernelRun run(text);
        ASSERT_EQ(run.Error, "") << text;
        uint64_t buffer =
            run.filled("data", std::vector<uint32_t>{uint32_t(test.Start)});
        run.parameter(buffer);
        LaunchOptions options;
        options.Seed = 3;
        ASSERT_EQ(
            run.launch({shared ? 1u : 64u}, {shared ? 1024u : 64u}, 0, options),
            "")
            << text;
        if (shared) // as many threads as one CTA has
          continue;
        EXPECT_EQ(run.contents<uint32_t>(buffer, 1)[0], test.End) << test.Op;
      }
}

TEST(SimMemory, AtomicsReturnTheOldValue) {
  // Each of 4096 threads gets another ticket, and exch and cas hand them on.
  std::string text =
      ".visible .entry k(.param .u64 data, .param .u64 out)\n{\n"
      ".reg .b32 t, s, n, d; .reg .b64 p, o, x, y; \n"
      "ld.param.u64 p, [data]; cvta.to.global.u64 p, p;\n"
      "ld.param.u64 o, [out]; cvta.to.global.u64 o, o;\n"
      "mov.u32 t, %tid.x; mov.u32 s, %ctaid.x; mov.u32 n, %ntid.x;\n"
      "mad.lo.u32 t, s, n, t;\n"
      "atom.acq_rel.gpu.global.add.u32 d, [p], 1;\n"
      "mul.wide.u32 x, t, 16; add.u64 o, o, x;\n"
      "st.global.u32 [o], d;\n"
      "add.u32 d, t, 1; cvt.u64.u32 x, d;\n"
      "atom.global.exch.b64 y, [p+8], x; st.global.u64 [o+8], y;\n"
      "atom.global.cas.b32 d, [p+16], 0, 77;\n"
      "st.global.u32 [o+4], d;\n"
      "ret;\n}\n";
  KernelRun run(text);
  run.Recorded = false;
  ASSERT_EQ(run.Error, "");
  uint64_t data = run.filled("data", std::vector<uint64_t>(3, 0));
  uint64_t out = run.buffer("out", 4096 * 16);
  run.parameter(data).parameter(out);
  ASSERT_EQ(run.launch({64}, {64}), "");
  auto words = run.contents<uint64_t>(out, 2 * 4096);
  std::vector<uint64_t> tickets, chain;
  unsigned firsts = 0;
  for (size_t i = 0; i != 4096; ++i) {
    tickets.push_back(words[2 * i] & 0xFFFFFFFF);
    uint64_t old = words[2 * i] >> 32;
    EXPECT_TRUE(old == 0 || old == 77);
    firsts += old == 0;
    chain.push_back(words[2 * i + 1]);
  }
  EXPECT_EQ(firsts, 1u);
  chain.push_back(run.contents<uint64_t>(data, 2)[1]);
  std::sort(tickets.begin(), tickets.end());
  std::sort(chain.begin(), chain.end());
  for (size_t i = 0; i != 4096; ++i)
    EXPECT_EQ(tickets[i], i);
  for (size_t i = 0; i != 4097; ++i)
    EXPECT_EQ(chain[i], i);
}

TEST(SimMemory, VariablesAndConstants) {
  std::string text =
      ".const .align 4 .b32 table[4] = {11, 22, 33, 44};\n"
      ".global .align 8 .b64 counter = 1000;\n"
      ".visible .entry k(.param .u64 out)\n{\n"
      ".reg .b32 t, v; .reg .b64 o, x, y;\n"
      "ld.param.u64 o, [out]; cvta.to.global.u64 o, o;\n"
      "mov.u32 t, %tid.x; and.b32 t, t, 3; mul.wide.u32 x, t, 4;\n"
      "mov.u64 y, table; add.u64 x, x, y; ld.const.b32 v, [x];\n"
      "ld.const.b32 t, [table+8]; add.u32 v, v, t;\n"
      "mov.u32 t, %tid.x; mul.wide.u32 x, t, 4; add.u64 o, o, x;\n"
      "st.global.b32 [o], v;\n"
      "red.global.add.u64 [counter], 2;\n"
      "ret;\n}\n";
  KernelRun run(text);
  ASSERT_EQ(run.Error, "");
  uint64_t out = run.buffer("out", 32 * 4);
  run.parameter(out);
  ASSERT_EQ(run.launch({1}, {32}), "");
  auto got = run.contents<uint32_t>(out, 32);
  for (uint32_t i = 0; i != 32; ++i)
    EXPECT_EQ(got[i], 11 * (i % 4 + 1) + 33);
  uint64_t counter = run.Device.variable(*run.Code, "counter");
  ASSERT_NE(counter, 0u);
  EXPECT_EQ(run.contents<uint64_t>(counter, 1)[0], 1064u);
}

TEST(SimMemory, LocalMemory) {
  Values a;
  for (uint64_t i = 0; i != 64; ++i)
    a.push_back(i * 77);
  std::vector<Input> inputs = {{32, a}};
  Values got = evaluate1("{ .local .align 16 .b8 own[64]; mov.u32 t0, own;"
                         "and.b32 t1, index, 15; shl.b32 t1, t1, 2;"
                         "add.u32 t1, t1, t0; st.local.b32 [t1], i0;"
                         "ld.local.b32 o0, [t1]; }",
                         inputs);
  EXPECT_EQ(got, a);
}

TEST(SimMemory, DynamicShared) {
  std::string text =
      ".extern .shared .align 128 .b8 dynamic[];\n"
      ".visible .entry k(.param .u64 out)\n{\n"
      ".reg .b32 t, a, v; .reg .b64 o, x;\n"
      ".shared .align 4 .b8 fixed[256];\n"
      "ld.param.u64 o, [out]; cvta.to.global.u64 o, o;\n"
      "mov.u32 t, %tid.x; mov.u32 a, dynamic; mad.lo.u32 a, t, 8, a;\n"
      "st.shared.b32 [a+4], t; bar.sync 0; xor.b32 v, t, 32;\n"
      "mov.u32 a, dynamic; mad.lo.u32 a, v, 8, a;\n"
      "ld.shared.b32 v, [a+4]; mul.wide.u32 x, t, 4; add.u64 o, o, x;\n"
      "st.global.b32 [o], v;\nmov.u32 a, fixed; mad.lo.u32 a, t, 4, a;\n"
      "st.shared.b32 [a], 1;\n"
      "ret;\n}\n";
  KernelRun run(text);
  ASSERT_EQ(run.Error, "");
  uint64_t out = run.buffer("out", 64 * 4);
  run.parameter(out);
  ASSERT_EQ(run.launch({1}, {64}, 512), "");
  auto got = run.contents<uint32_t>(out, 64);
  for (uint32_t i = 0; i != 64; ++i)
    EXPECT_EQ(got[i], i ^ 32);
  EXPECT_NE(run.launch({1}, {64}, 508), "") << "eight bytes less";
}

} // namespace

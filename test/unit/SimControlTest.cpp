// Predication, divergence, barriers, and what the lanes of a warp exchange.
#include "test/unit/SimFixture.h"

#include <algorithm>
#include <functional>

using namespace kvc::sim;

namespace {

Values counted(size_t count, uint64_t scale = 1) {
  Values v;
  for (uint64_t i = 0; i != count; ++i)
    v.push_back(i * scale);
  return v;
}

TEST(SimControl, Predication) {
  std::vector<Input> inputs = {{32, counted(64, 5)}};
  std::vector<Values> got = evaluate(
      "and.b32 t0, index, 1; setp.ne.u32 p0, t0, 0; mov.b32 o0, i0;"
      "@p0 add.u32 o0, o0, 1; @!p0 mul.lo.u32 o0, o0, 3;"
      "mov.b32 o1, 9; not.pred p1, p0; and.pred p2, p0, p1; @p2 mov.b32 o1, 1;"
      "or.pred p2, p0, p1; @!p2 mov.b32 o1, 2; xor.pred p2, p0, p1;"
      "@p2 add.u32 o1, o1, 100;",
      inputs, {32, 32});
  for (size_t i = 0; i != 64; ++i) {
    EXPECT_EQ(got[0][i], i % 2 ? 5 * i + 1 : 15 * i);
    EXPECT_EQ(got[1][i], 109u);
  }
}

TEST(SimControl, IfElseReconverges) {
  // Both sides, then a shuffle that needs all lanes back together.
  std::vector<Values> got = evaluate(
      "setp.lt.u32 p0, index, 11; @p0 bra LESS; mul.lo.u32 t0, index, 10;"
      "bra.uni JOIN; LESS: add.u32 t0, index, 1000; JOIN:"
      "shfl.sync.bfly.b32 t1, t0, 16, 31, 0xffffffff; mov.b32 o0, t0;"
      "mov.b32 o1, t1;",
      {}, {32, 32});
  auto own = [](uint64_t i) { return i < 11 ? 1000 + i : 10 * i; };
  for (uint64_t i = 0; i != 32; ++i) {
    EXPECT_EQ(got[0][i], own(i));
    EXPECT_EQ(got[1][i], own(i ^ 16));
  }
}

TEST(SimControl, NestedLoopsOfDifferentLength) {
  // sum over i < lane of sum over j < i % 5 of (i ^ j), with an early exit of
  // the inner loop and a continue in the outer one.
  Values got = evaluate1(
      "mov.b32 o0, 0; mov.b32 t0, 0;"
      "OUTER: setp.ge.u32 p0, t0, index; @p0 bra DONE;"
      "add.u32 t1, t0, 1; and.b32 t2, t0, 3; setp.eq.u32 p1, t2, 3;"
      "@p1 bra NEXT; mov.b32 t3, 0; rem.u32 t4, t0, 5;"
      "INNER: setp.ge.u32 p1, t3, t4; @p1 bra NEXT;"
      "xor.b32 t5, t0, t3; setp.eq.u32 p2, t5, 7; @p2 bra NEXT;"
      "add.u32 o0, o0, t5; add.u32 t3, t3, 1; bra INNER;"
      "NEXT: mov.b32 t0, t1; bra OUTER; DONE:"
      "vote.sync.ballot.b32 t6, 1, 0xffffffff; xor.b32 t6, t6, 0xffffffff;"
      "add.u32 o0, o0, t6;",
      {});
  for (uint64_t lane = 0; lane != 32; ++lane) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < lane; ++i) {
      if (i % 4 == 3)
        continue;
      for (uint64_t j = 0; j < i % 5 && (i ^ j) != 7; ++j)
        sum += i ^ j;
    }
    EXPECT_EQ(got[lane], sum) << lane;
  }
}

TEST(SimControl, EarlyExit) {
  // Lanes that return do not hold up the barrier of the others.
  std::string text =
      ".visible .entry k(.param .u64 out)\n{\n"
      ".reg .b32 t, a, b, v; .reg .b64 o, x; .reg .pred p;\n"
      ".shared .align 4 .b8 words[512];\n"
      "ld.param.u64 o, [out]; cvta.to.global.u64 o, o;\n"
      "mov.u32 t, %tid.x; setp.ge.u32 p, t, 96; @p ret;\n"
      "mov.u32 a, words; mad.lo.u32 b, t, 4, a; st.shared.b32 [b], t;\n"
      "bar.sync 0; add.u32 v, t, 32; rem.u32 v, v, 96; mad.lo.u32 b, v, 4, a;\n"
      "ld.shared.b32 v, [b]; mul.wide.u32 x, t, 4; add.u64 o, o, x;\n"
      "st.global.b32 [o], v; exit;\n}\n";
  KernelRun run(text);
  ASSERT_EQ(run.Error, "");
  uint64_t out = run.buffer("out", 128 * 4);
  run.parameter(out);
  // Whole warps have gone: bar.sync counts the warps of the CTA, as the ISA
  // does, so this deadlocks with 128 threads, and runs with 96.
  ASSERT_EQ(run.launch({1}, {96}), "");
  auto got = run.contents<uint32_t>(out, 96);
  for (uint32_t i = 0; i != 96; ++i)
    EXPECT_EQ(got[i], (i + 32) % 96);
}

TEST(SimControl, IndexedBranch) {
  Values got = evaluate1("{ targets: .branchtargets A, B, C;"
                         "rem.u32 t0, index, 3; brx.idx t0, targets;"
                         "A: mov.b32 o0, 10; bra.uni END;"
                         "B: mov.b32 o0, 20; bra.uni END;"
                         "C: mov.b32 o0, 30; END: }",
                         {});
  for (uint64_t i = 0; i != 32; ++i)
    EXPECT_EQ(got[i], 10 * (i % 3 + 1));
}

TEST(SimControl, SpecialRegisters) {
  std::string text =
      ".visible .entry k(.param .u64 out)\n{\n"
      ".reg .b32 a<16>, i; .reg .b64 o, x;\n"
      "ld.param.u64 o, [out]; cvta.to.global.u64 o, o;\n"
      "mov.u32 a0, %tid.x; mov.u32 a1, %tid.y; mov.u32 a2, %tid.z;\n"
      "mov.u32 a3, %ctaid.x; mov.u32 a4, %ctaid.y; mov.u32 a5, %ctaid.z;\n"
      "mov.u32 a6, %ntid.x; mov.u32 a7, %ntid.y; mov.u32 a8, %ntid.z;\n"
      "mov.u32 a9, %nctaid.x; mov.u32 a10, %nctaid.y; mov.u32 a11, %nctaid.z;\n"
      "mov.u32 a12, %laneid; mov.u32 a13, %warpid;\n"
      "mov.u32 a14, %lanemask_lt; mov.u32 a15, %lanemask_ge;\n"
      "mad.lo.u32 i, a2, a7, a1; mad.lo.u32 i, i, a6, a0;\n"
      "mad.lo.u32 a0, a5, a10, a4; mad.lo.u32 a0, a0, a9, a3;\n"
      "mul.lo.u32 a1, a6, a7; mul.lo.u32 a1, a1, a8;\n"
      "mad.lo.u32 i, a0, a1, i; mul.wide.u32 x, i, 16; add.u64 o, o, x;\n"
      "st.global.v4.b32 [o], {a12, a13, a14, a15};\nret;\n}\n";
  KernelRun run(text);
  ASSERT_EQ(run.Error, "");
  uint64_t out = run.buffer("out", 24 * 48 * 16);
  run.parameter(out);
  ASSERT_EQ(run.launch({2, 3, 4}, {6, 4, 2}), "");
  auto got = run.contents<uint32_t>(out, 24 * 48 * 4);
  for (uint32_t cta = 0; cta != 24; ++cta)
    for (uint32_t i = 0; i != 48; ++i) {
      const uint32_t *values = &got[(cta * 48 + i) * 4];
      EXPECT_EQ(values[0], i % 32);
      EXPECT_EQ(values[1], i / 32);
      EXPECT_EQ(values[2], (1u << (i % 32)) - 1);
      EXPECT_EQ(values[3], ~((1u << (i % 32)) - 1));
    }
}

/// The source lane of shfl.sync, from the ISA's pseudocode.
int sourceLane(const std::string &mode, int lane, int b, int c, bool &valid) {
  int bval = b & 31, cval = c & 31, mask = c >> 8 & 31;
  int maxLane = (lane & mask) | (cval & ~mask);
  int minLane = lane & mask;
  int j = 0;
  if (mode == "up") {
    j = lane - bval;
    valid = j >= maxLane;
  } else if (mode == "down") {
    j = lane + bval;
    valid = j <= maxLane;
  } else if (mode == "bfly") {
    j = lane ^ bval;
    valid = j <= maxLane;
  } else {
    j = minLane | (bval & ~mask);
    valid = j <= maxLane;
  }
  return valid ? j : lane;
}

TEST(SimControl, Shuffles) {
  std::vector<Input> inputs = {{32, counted(32, 0x01234567)}};
  for (uint64_t &value : inputs[0].Value)
    value &= 0xFFFFFFFF;
  for (const char *mode : {"up", "down", "bfly", "idx"})
    for (int b : {0, 1, 2, 7, 16, 31, 33})
      // Clamps for segments of 32, 16, 8 and 4 lanes, and a clamp inside.
      for (int c : {0, 31, 0x101F, 0x181F, 0x1C1F, 0x1000, 0x1800, 20}) {
        std::string op = std::string("shfl.sync.") + mode + ".b32";
        std::vector<Values> got = evaluate(
            op + " o0|p0, i0, " + std::to_string(b) + ", " + std::to_string(c) +
                ", 0xffffffff; selp.b32 o1, 1, 0, p0;",
            inputs, {32, 32});
        for (int lane = 0; lane != 32; ++lane) {
          bool valid = false;
          int from = sourceLane(mode, lane, b, c, valid);
          EXPECT_EQ(got[0][size_t(lane)], inputs[0].Value[size_t(from)])
              << op << " " << lane << " " << b << " " << c;
          EXPECT_EQ(got[1][size_t(lane)], uint64_t(valid))
              << op << " " << lane << " " << b << " " << c;
        }
      }
  // Lanes differ in what they ask for.
  Values got = evaluate1("not.b32 t0, index; and.b32 t0, t0, 31;"
                         "shfl.sync.idx.b32 o0, i0, t0, 31, -1;",
                         inputs);
  for (size_t lane = 0; lane != 32; ++lane)
    EXPECT_EQ(got[lane], inputs[0].Value[31 - lane]);
}

TEST(SimControl, ShuffleOfSomeLanes) {
  Values got = evaluate1("mov.b32 o0, 7; setp.lt.u32 p0, index, 8; @!p0 bra S;"
                         "shfl.sync.bfly.b32 o0, index, 3, 31, 0xff; S:",
                         {});
  for (uint64_t lane = 0; lane != 32; ++lane)
    EXPECT_EQ(got[lane], lane < 8 ? lane ^ 3 : 7);
}

TEST(SimControl, Votes) {
  std::mt19937_64 random(90);
  Values v = {0, 0xFFFFFFFF, 1, 0x80000000, 0xFFFFFFFE};
  for (int i = 0; i != 20; ++i)
    v.push_back(random() >> 32);
  for (uint64_t bits : v) {
    Values lanes;
    for (unsigned lane = 0; lane != 32; ++lane)
      lanes.push_back(bits >> lane & 1);
    std::vector<Input> inputs = {{32, lanes}};
    std::vector<Values> got =
        evaluate("setp.ne.u32 p0, i0, 0; vote.sync.ballot.b32 o0, p0, -1;"
                 "vote.sync.any.pred p1, p0, -1; selp.b32 o1, 1, 0, p1;"
                 "vote.sync.all.pred p1, p0, -1; selp.b32 o2, 1, 0, p1;"
                 "vote.sync.uni.pred p1, p0, -1; selp.b32 o3, 1, 0, p1;"
                 "vote.sync.ballot.b32 o4, !p0, -1; activemask.b32 o5;",
                 inputs, std::vector<unsigned>(6, 32));
    bool all = bits == 0xFFFFFFFF, none = bits == 0;
    EXPECT_EQ(got[0], Values(32, bits));
    EXPECT_EQ(got[1], Values(32, !none));
    EXPECT_EQ(got[2], Values(32, all));
    EXPECT_EQ(got[3], Values(32, all || none));
    EXPECT_EQ(got[4], Values(32, bits ^ 0xFFFFFFFF));
    EXPECT_EQ(got[5], Values(32, 0xFFFFFFFF));
  }
}

TEST(SimControl, MatchReduxElect) {
  std::mt19937_64 random(91);
  Values lanes;
  for (unsigned lane = 0; lane != 32; ++lane)
    lanes.push_back(random() % 5 * 0x40000001);
  std::vector<Input> inputs = {{32, lanes}};
  std::vector<Values> got = evaluate(
      "match.any.sync.b32 o0, i0, -1; match.all.sync.b32 o1|p0, i0, -1;"
      "selp.b32 o2, 1, 0, p0; mov.b32 t0, 5;"
      "match.all.sync.b32 o3|p0, t0, -1; selp.b32 o4, 1, 0, p0;",
      inputs, std::vector<unsigned>(5, 32));
  for (unsigned lane = 0; lane != 32; ++lane) {
    uint64_t same = 0;
    for (unsigned other = 0; other != 32; ++other)
      same |= uint64_t(lanes[other] == lanes[lane]) << other;
    EXPECT_EQ(got[0][lane], same);
    EXPECT_EQ(got[1][lane], 0u);
    EXPECT_EQ(got[2][lane], 0u);
    EXPECT_EQ(got[3][lane], 0xFFFFFFFF);
    EXPECT_EQ(got[4][lane], 1u);
  }
  Values values;
  for (unsigned lane = 0; lane != 32; ++lane)
    values.push_back(random() >> 32);
  inputs = {{32, values}};
  struct {
    const char *Op;
    std::function<uint64_t(uint64_t, uint64_t)> Fold;
  } const reductions[] = {
      {"add.u32", [](uint64_t a, uint64_t b) { return a + b; }},
      {"add.s32", [](uint64_t a, uint64_t b) { return a + b; }},
      {"min.u32", [](uint64_t a, uint64_t b) { return std::min(a, b); }},
      {"max.u32", [](uint64_t a, uint64_t b) { return std::max(a, b); }},
      {"min.s32",
       [](uint64_t a, uint64_t b) {
         return uint64_t(uint32_t(std::min(int32_t(a), int32_t(b))));
       }},
      {"max.s32",
       [](uint64_t a, uint64_t b) {
         return uint64_t(uint32_t(std::max(int32_t(a), int32_t(b))));
       }},
      {"and.b32", [](uint64_t a, uint64_t b) { return a & b; }},
      {"or.b32", [](uint64_t a, uint64_t b) { return a | b; }},
      {"xor.b32", [](uint64_t a, uint64_t b) { return a ^ b; }},
  };
  for (const auto &reduction : reductions) {
    std::string op = std::string("redux.sync.") + reduction.Op;
    Values sum = evaluate1(op + " o0, i0, -1;", inputs);
    uint64_t want = values[0];
    for (unsigned lane = 1; lane != 32; ++lane)
      want = reduction.Fold(want, values[lane]);
    EXPECT_EQ(sum, Values(32, want & 0xFFFFFFFF)) << op;
  }
  Values elected = evaluate1("elect.sync _|p0, -1; selp.b32 o0, 1, 0, p0;", {});
  EXPECT_EQ(std::count(elected.begin(), elected.end(), 1u), 1);
}

TEST(SimControl, BarrierReductions) {
  Snippet snippet;
  snippet.Threads = 96;
  std::vector<Values> got =
      evaluate("setp.lt.u32 p0, index, 50; bar.red.popc.u32 o0, 0, p0;"
               "bar.red.and.pred p1, 0, p0; selp.b32 o1, 1, 0, p1;"
               "bar.red.or.pred p1, 0, p0; selp.b32 o2, 1, 0, p1;",
               {}, {32, 32, 32}, snippet);
  EXPECT_EQ(got[0], Values(96, 50));
  EXPECT_EQ(got[1], Values(96, 0));
  EXPECT_EQ(got[2], Values(96, 1));
}

TEST(SimControl, NamedBarriers) {
  // Warps 0 and 1 produce for 2 and 3 (barrier 1 of 128 threads), which answer
  // over barrier 2: bar.arrive does not wait.
  std::string text =
      ".visible .entry k(.param .u64 out)\n{\n"
      ".reg .b32 t, a, b, v; .reg .b64 o, x; .reg .pred p;\n"
      ".shared .align 4 .b8 words[512];\n"
      "ld.param.u64 o, [out]; cvta.to.global.u64 o, o;\n"
      "mov.u32 t, %tid.x; mov.u32 a, words; mad.lo.u32 b, t, 4, a;\n"
      "setp.ge.u32 p, t, 64; @p bra CONSUME;\n"
      "mul.lo.u32 v, t, 7; st.shared.b32 [b], v; bar.arrive 1, 128;\n"
      "bar.sync 2, 128; ld.shared.b32 v, [b+256]; bra.uni END;\n"
      "CONSUME: bar.sync 1, 128; ld.shared.b32 v, [b+-256];\n"
      "add.u32 v, v, 1; st.shared.b32 [b], v; bar.arrive 2, 128;\n"
      "END: mul.wide.u32 x, t, 4; add.u64 o, o, x; st.global.b32 [o], v;\n"
      "ret;\n}\n";
  KernelRun run(text);
  ASSERT_EQ(run.Error, "");
  uint64_t out = run.buffer("out", 128 * 4);
  run.parameter(out);
  for (uint64_t seed : {0, 1, 2}) {
    LaunchOptions options;
    options.Seed = seed;
    ASSERT_EQ(run.launch({1}, {128}, 0, options), "");
    auto got = run.contents<uint32_t>(out, 128);
    for (uint32_t i = 0; i != 128; ++i)
      EXPECT_EQ(got[i], i % 64 * 7 + 1);
  }
}

TEST(SimControl, BlockSumAcrossWarps) {
  // A block reduction by shuffles and shared memory, for several block sizes.
  for (uint32_t threads : {32u, 64u, 128u, 1024u}) {
    std::string text =
        ".visible .entry k(.param .u64 out)\n{\n"
        ".reg .b32 t, v, w, n, l, g, a, b; .reg .b64 o, x; .reg .pred p;\n"
        ".shared .align 4 .b8 sums[128];\n"
        "ld.param.u64 o, [out]; cvta.to.global.u64 o, o;\n"
        "mov.u32 t, %tid.x; mul.lo.u32 v, t, t; mov.u32 n, 16;\n"
        "LOOP: shfl.sync.bfly.b32 w, v, n, 31, -1; add.u32 v, v, w;\n"
        "shr.u32 n, n, 1; setp.ne.u32 p, n, 0; @p bra LOOP;\n"
        "and.b32 l, t, 31; shr.u32 g, t, 5; mov.u32 a, sums;\n"
        "setp.eq.u32 p, l, 0; mad.lo.u32 b, g, 4, a;\n"
        "@p st.shared.b32 [b], v; bar.sync 0;\n"
        "mov.u32 n, %ntid.x; shr.u32 n, n, 5; mov.b32 v, 0; mov.b32 g, 0;\n"
        "SUM: ld.shared.b32 w, [a]; add.u32 v, v, w; add.u32 a, a, 4;\n"
        "add.u32 g, g, 1; setp.lt.u32 p, g, n; @p bra SUM;\n"
        "mul.wide.u32 x, t, 4; add.u64 o, o, x; st.global.b32 [o], "
        "v;\nret;\n}\n";
    KernelRun run(text);
    ASSERT_EQ(run.Error, "");
    uint64_t out = run.buffer("out", threads * 4);
    run.parameter(out);
    ASSERT_EQ(run.launch({1}, {threads}), "");
    uint32_t want = 0;
    for (uint32_t i = 0; i != threads; ++i)
      want += i * i;
    for (uint32_t value : run.contents<uint32_t>(out, threads))
      EXPECT_EQ(value, want);
  }
}

TEST(SimControl, LastCtaOfACounter) {
  // The CTA that arrives last adds what the others have left: the pattern of
  // split attention. Every order of CTAs gives the same sum.
  std::string text =
      ".visible .entry k(.param .u64 data, .param .u64 counter, .param .u64 "
      "out)\n{\n"
      ".reg .b32 t, c, n, v, w, i; .reg .b64 d, k, o, x; .reg .pred p;\n"
      "ld.param.u64 d, [data]; ld.param.u64 k, [counter];\n"
      "ld.param.u64 o, [out]; mov.u32 c, %ctaid.x; mov.u32 n, %nctaid.x;\n"
      "mul.lo.u32 v, c, c; mul.wide.u32 x, c, 4; add.u64 x, d, x;\n"
      "mov.u32 t, %tid.x; setp.ne.u32 p, t, 0; @p ret;\n"
      "st.global.b32 [x], v; fence.acq_rel.gpu;\n"
      "atom.relaxed.gpu.global.add.u32 v, [k], 1; sub.u32 n, n, 1;\n"
      "setp.ne.u32 p, v, n; @p ret;\n"
      "fence.acq_rel.gpu; mov.b32 i, 0; mov.b32 v, 0;\n"
      "L: mul.wide.u32 x, i, 4; add.u64 x, d, x; ld.global.b32 w, [x];\n"
      "add.u32 v, v, w; add.u32 i, i, 1; setp.le.u32 p, i, n; @p bra L;\n"
      "st.global.b32 [o], v; st.global.b32 [k], 0;\nret;\n}\n";
  KernelRun run(text);
  ASSERT_EQ(run.Error, "");
  uint64_t data = run.buffer("data", 100 * 4);
  uint64_t counter = run.filled("counter", std::vector<uint32_t>{0});
  uint64_t out = run.buffer("out", 4);
  run.parameter(data).parameter(counter).parameter(out);
  for (uint64_t seed : {0, 1, 2, 3}) {
    LaunchOptions options;
    options.Seed = seed;
    ASSERT_EQ(run.launch({100}, {32}, 0, options), "");
    EXPECT_EQ(run.contents<uint32_t>(out, 1)[0], 99u * 100 * 199 / 6);
    EXPECT_EQ(run.contents<uint32_t>(counter, 1)[0], 0u);
  }
}

TEST(SimControl, SpinOnAFlagOfAnotherCta) {
  // CTA 1 waits for CTA 0, also where it is started first.
  std::string text =
      ".visible .entry k(.param .u64 flag, .param .u64 out)\n{\n"
      ".reg .b32 c, v; .reg .b64 f, o; .reg .pred p;\n"
      "ld.param.u64 f, [flag]; ld.param.u64 o, [out]; mov.u32 c, %ctaid.x;\n"
      "setp.ne.u32 p, c, 0; @p bra WAIT;\n"
      "st.global.b32 [o], 41; st.release.gpu.global.b32 [f], 1; ret;\n"
      "WAIT: ld.acquire.gpu.global.b32 v, [f]; setp.eq.u32 p, v, 0;\n"
      "@p nanosleep.u32 20; @p bra WAIT;\n"
      "ld.global.b32 v, [o]; add.u32 v, v, 1; st.global.b32 [o], v;\nret;\n}\n";
  for (uint64_t seed : {0, 1, 2, 3, 4, 5}) {
    KernelRun run(text);
    ASSERT_EQ(run.Error, "");
    uint64_t flag = run.filled("flag", std::vector<uint32_t>{0});
    uint64_t out = run.buffer("out", 4);
    run.parameter(flag).parameter(out);
    LaunchOptions options;
    options.Seed = seed;
    ASSERT_EQ(run.launch({2}, {1}, 0, options), "");
    EXPECT_EQ(run.contents<uint32_t>(out, 1)[0], 42u);
  }
}

TEST(SimControl, OrderOfCtasDoesNotShow) {
  // Results do not depend on the order of CTAs.
  Values sums[2];
  for (int run = 0; run != 2; ++run) {
    Snippet snippet;
    snippet.Options.Seed = uint64_t(run);
    sums[run] = evaluate1("cvt.rn.f32.u32 o0, index; mul.rn.f32 o0, o0, o0;",
                          {{32, counted(4096)}}, 32, snippet);
  }
  EXPECT_EQ(sums[0], sums[1]);
}

TEST(SimControl, MovesPackAndUnpack) {
  std::vector<Values> v = tuples(2, EdgesI64, 100, 64, 92);
  std::vector<Input> inputs = {{64, v[0]}, {64, v[1]}};
  std::vector<Values> got = evaluate(
      "mov.b64 {t0, t1}, i0; mov.b64 o0, {t1, t0}; mov.b32 {h0, h1}, t0;"
      "mov.b32 o1, {h1, h0}; mov.b64 {h0, h1, h2, h3}, i1;"
      "mov.b64 o2, {h3, h2, h1, h0}; mov.b64 {_, o3}, i1;",
      inputs, {64, 32, 64, 32});
  for (size_t i = 0; i != v[0].size(); ++i) {
    uint64_t a = v[0][i], b = v[1][i];
    EXPECT_EQ(got[0][i], a << 32 | a >> 32);
    EXPECT_EQ(got[1][i], (a & 0xFFFF) << 16 | (a >> 16 & 0xFFFF));
    uint64_t reversed = 0;
    for (unsigned n = 0; n != 4; ++n)
      reversed |= (b >> (16 * n) & 0xFFFF) << (48 - 16 * n);
    EXPECT_EQ(got[2][i], reversed);
    EXPECT_EQ(got[3][i], b >> 32);
  }
}

} // namespace

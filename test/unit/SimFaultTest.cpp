// Planted faults: each is found, by name, and the same kernel without it runs.
#include "test/unit/SimFixture.h"

using namespace kvc::sim;

namespace {

/// A kernel of 64 threads over `in` (64 words) and `out`, with 512 bytes of
/// shared memory: `a` is the thread's word of it, `i` and `o` its words.
std::string kernel(const std::string &body) {
  return ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
         ".reg .b32 t, a, b, u, v, w, base; .reg .b64 i, o, x, y;\n"
         ".reg .pred p, q;\n.shared .align 16 .b8 words[512];\n"
         "ld.param.u64 i, [in]; ld.param.u64 o, [out];\n"
         "cvta.to.global.u64 i, i; cvta.to.global.u64 o, o;\n"
         "mov.u32 t, %tid.x; mov.u32 base, words; mad.lo.u32 a, t, 4, base;\n"
         "mul.wide.u32 x, t, 4; add.u64 i, i, x; add.u64 o, o, x;\n" +
         body + "\nret;\n}\n";
}

struct Options {
  bool ReadOnlyOut = false, WrittenIn = true;
  uint32_t Threads = 64;
  LaunchOptions Launch;
};

std::string runIt(const std::string &body, const Options &options = {}) {
  KernelRun run(kernel(body));
  if (!run.Code)
    return run.Error;
  uint64_t in = run.buffer("input", 64 * 4);
  std::vector<uint32_t> values(64);
  for (uint32_t i = 0; i != 64; ++i)
    values[i] = i + 1;
  if (options.WrittenIn)
    run.Device.write(in, values.data(), 256);
  uint64_t out = run.buffer("output", 64 * 4, options.ReadOnlyOut);
  run.parameter(in).parameter(out);
  return run.launch({1}, {options.Threads}, 0, options.Launch);
}

/// Each of `words` is in the message, which is one line and names the kernel,
/// a line of the text and the CTA.
void expectFault(const std::string &message,
                 const std::vector<std::string> &words) {
  ASSERT_NE(message, "");
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  for (const char *word : {"'k'", "line ", "CTA (0,0,0)"})
    EXPECT_NE(message.find(word), std::string::npos) << word << ": " << message;
  for (const std::string &word : words)
    EXPECT_NE(message.find(word), std::string::npos) << word << ": " << message;
}

TEST(SimFault, MissingBarrier) {
  std::string start = "ld.global.b32 v, [i]; st.shared.b32 [a], v;";
  std::string end = "xor.b32 b, t, 63; mad.lo.u32 b, b, 4, base;"
                    "ld.shared.b32 v, [b]; st.global.b32 [o], v;";
  EXPECT_EQ(runIt(start + "bar.sync 0;" + end), "");
  // The reader runs after the writer has written, or before: both are found.
  expectFault(runIt(start + end), {"ld.shared.b32"});
  for (uint64_t seed : {0, 1, 2, 3}) {
    Options options;
    options.Launch.Seed = seed;
    std::string fault =
        runIt("st.shared.b32 [a], 1; bar.sync 0;" + start + end, options);
    expectFault(fault, {"race", "shared"});
  }
  Options unchecked;
  unchecked.Launch.Checks = false;
  EXPECT_EQ(runIt("st.shared.b32 [a], 1; bar.sync 0;" + start + end, unchecked),
            "");
}

TEST(SimFault, WriteAfterReadWithoutBarrier) {
  // Warp 1 comes last to the barrier and reads; then warp 0 writes.
  std::string start = "st.shared.b32 [a], t; bar.sync 0; xor.b32 b, t, 63;"
                      "mad.lo.u32 b, b, 4, base; setp.lt.u32 p, t, 32;"
                      "@!p ld.shared.b32 v, [b];";
  std::string end = "@p st.shared.b32 [a], t;";
  EXPECT_EQ(runIt(start + "bar.sync 0;" + end), "");
  expectFault(runIt(start + end), {"race", "may still read"});
}

TEST(SimFault, MissingWarpBarrier) {
  // Within a warp: bar.warp.sync orders, and so does bar.sync.
  std::string start = "st.shared.b32 [a], t;";
  std::string end = "xor.b32 b, t, 1; mad.lo.u32 b, b, 4, base;"
                    "ld.shared.b32 v, [b];";
  EXPECT_EQ(runIt(start + "bar.warp.sync 0xffffffff;" + end), "");
  EXPECT_EQ(runIt(start + "bar.sync 0;" + end), "");
  expectFault(runIt(start + end), {"race", "bar.warp.sync"});
  // A shuffle is no fence.
  expectFault(runIt(start + "shfl.sync.bfly.b32 v, t, 1, 31, -1;" + end),
              {"race"});
  // Half of the warp meets: enough for pairs inside the half, not across.
  std::string halves = "and.b32 u, t, 16; setp.ne.u32 p, u, 0; @p bra UPPER;"
                       "bar.warp.sync 0xffff; bra.uni JOIN;"
                       "UPPER: bar.warp.sync 0xffff0000; JOIN:";
  EXPECT_EQ(runIt(start + halves + end), "");
  expectFault(runIt(start + halves +
                    "xor.b32 b, t, 16; mad.lo.u32 b, b, 4, base;"
                    "ld.shared.b32 v, [b];"),
              {"race"});
}

TEST(SimFault, TwoLanesWriteOnePlace) {
  expectFault(runIt("and.b32 b, t, 0x3e; mad.lo.u32 b, b, 4, base;"
                    "st.shared.b32 [b], t;"),
              {"race"});
  // Halves of one word are two places.
  EXPECT_EQ(runIt("mad.lo.u32 b, t, 2, base; { .reg .b16 h; cvt.u16.u32 h, t;"
                  "st.shared.b16 [b], h; }"),
            "");
}

TEST(SimFault, NamedBarrierOfOtherWarps) {
  // 96 threads; warps 0 and 1 meet at barrier 1, warp 2 does not.
  std::string start = "setp.ge.u32 q, t, 64; @q bra THIRD;"
                      "st.shared.b32 [a], t; bar.sync 1, 64;"
                      "xor.b32 b, t, 63; mad.lo.u32 b, b, 4, base;"
                      "ld.shared.b32 v, [b]; THIRD:";
  Options options;
  options.Threads = 96;
  EXPECT_EQ(runIt(start, options), "");
  expectFault(runIt(start + "mov.u32 b, base; @q ld.shared.b32 v, [b];"
                            "@!q st.shared.b32 [a], t;",
                    options),
              {});
}

TEST(SimFault, AtomicsAndPlainAccesses) {
  std::string start = "setp.eq.u32 p, t, 0; @p st.shared.b32 [base], 0;"
                      "bar.sync 0; red.shared.add.u32 [base], 1;";
  EXPECT_EQ(runIt(start + "bar.sync 0; ld.shared.b32 v, [base];"), "");
  expectFault(runIt(start + "ld.shared.b32 v, [base];"), {"race"});
}

TEST(SimFault, OutOfBoundsGlobalStore) {
  expectFault(runIt("st.global.b32 [o+4], t;"),
              {"st.global.b32", "output", "thread (63,0,0)", "256"});
  expectFault(runIt("ld.global.b32 v, [i+-4];"), {"ld.global.b32"});
  expectFault(runIt("ld.global.v4.b32 {u, v, w, b}, [i+0];"), {});
}

TEST(SimFault, OutOfBoundsSharedStore) {
  EXPECT_EQ(runIt("st.shared.b32 [a+256], t;"), "");
  expectFault(runIt("st.shared.b32 [a+260], t;"),
              {"st.shared.b32", "shared", "512"});
  expectFault(runIt("mov.u32 b, 0xfffffff0; st.shared.b32 [b], t;"),
              {"shared"});
  // It does not begin at 0: a base that was left out shows.
  expectFault(runIt("mov.u32 b, 0; st.shared.b32 [b], t;"),
              {"shared address 0x0", "from 0x400 on"});
}

TEST(SimFault, OutOfBoundsLocal) {
  expectFault(runIt("{ .local .align 4 .b8 own[16]; mov.u32 b, own;"
                    "st.local.b32 [b+16], t; }"),
              {"local", "16"});
}

TEST(SimFault, MisalignedAccess) {
  expectFault(runIt("ld.global.v4.b32 {u, v, w, b}, [i];"),
              {"multiple of 16", "thread (1,0,0)"});
  expectFault(runIt("st.shared.v2.b32 [a+4], {t, t};"), {"multiple of 8"});
  expectFault(runIt("mov.b32 b, base; add.u32 b, b, 2; ld.shared.b32 v, [b];"),
              {"multiple of 4"});
}

const char *const CopyStart = "cp.async.ca.shared.global [a], [i], 4;";

TEST(SimFault, MissingCopyWait) {
  std::string end = "ld.shared.b32 v, [a]; st.global.b32 [o], v;";
  std::string start = CopyStart;
  EXPECT_EQ(runIt(start + "cp.async.wait_all;" + end), "");
  EXPECT_EQ(
      runIt(start + "cp.async.commit_group; cp.async.wait_group 0;" + end), "");
  expectFault(runIt(start + end), {"cp.async", "before its wait"});
  // A wait that leaves the group pending is none.
  expectFault(
      runIt(start + "cp.async.commit_group; cp.async.wait_group 1;" + end),
      {"before its wait"});
  // Nor is a wait for groups of a copy that no group has.
  expectFault(runIt(start + "cp.async.wait_group 0;" + end),
              {"before its wait"});
}

TEST(SimFault, CopyReadByAnotherThread) {
  std::string start = std::string(CopyStart) + "cp.async.wait_all;";
  std::string end = "xor.b32 b, t, 63; mad.lo.u32 b, b, 4, base;"
                    "ld.shared.b32 v, [b];";
  EXPECT_EQ(runIt(start + "bar.sync 0;" + end), "");
  expectFault(runIt(start + end), {});
  // The barrier has to come after the wait.
  expectFault(
      runIt(std::string(CopyStart) + "bar.sync 0; cp.async.wait_all;" + end),
      {});
}

TEST(SimFault, CopyOverwrites) {
  // A buffer that others may still read is no place for a copy.
  std::string start = "st.shared.b32 [a], t; bar.sync 0; xor.b32 b, t, 63;"
                      "mad.lo.u32 b, b, 4, base; ld.shared.b32 v, [b];";
  std::string end = std::string(CopyStart) + "cp.async.wait_all;";
  EXPECT_EQ(runIt(start + "bar.sync 0;" + end), "");
  expectFault(runIt(start + end), {"race"});
  expectFault(runIt(std::string(CopyStart) +
                    "st.shared.b32 [a], t; cp.async.wait_all;"),
              {"in flight"});
  // Its source may not change under it.
  expectFault(runIt(std::string(CopyStart) +
                    "st.global.b32 [i], t; cp.async.wait_all;"),
              {"global", "cp.async"});
}

TEST(SimFault, CopyNeverWaitedFor) {
  expectFault(runIt(CopyStart), {"cp.async", "exits"});
}

TEST(SimFault, UninitialisedReads) {
  Options options;
  options.WrittenIn = false;
  expectFault(runIt("ld.global.b32 v, [i];", options),
              {"never been written", "input"});
  expectFault(runIt("ld.shared.b32 v, [a];"), {"never written"});
  expectFault(
      runIt("st.shared.b32 [a], t; bar.sync 0; and.b32 b, t, 1;"
            "mad.lo.u32 b, b, 252, base; ld.shared.v2.b32 {u, v}, [b];"),
      {});
  expectFault(runIt("{ .local .align 4 .b8 own[16]; mov.u32 b, own;"
                    "ld.local.b32 v, [b]; }"),
              {"never been written"});
  // A half-written word.
  expectFault(runIt("{ .reg .b16 h; cvt.u16.u32 h, t; st.shared.b16 [a], h;"
                    "ld.shared.b32 v, [a]; }"),
              {"never written"});
}

TEST(SimFault, DivergentBarrier) {
  expectFault(runIt("and.b32 u, t, 1; setp.eq.u32 p, u, 0; @p bar.sync 0;"),
              {"bar.sync"});
  expectFault(runIt("and.b32 u, t, 1; setp.eq.u32 p, u, 0; @p bra ODD;"
                    "bar.sync 0; bra.uni END; ODD: bar.sync 0; END:"),
              {"bar.sync"});
}

TEST(SimFault, DivergentMatrix) {
  expectFault(runIt("st.shared.v4.b32 [base], {t, t, t, t};"),
              {"race"}); // all lanes at one address: not what is meant here
  expectFault(runIt("setp.lt.u32 p, t, 16;"
                    "@p mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                    "{u, v, w, b}, {t, t, t, t}, {t, t}, {t, t, t, t};"),
              {"mma.sync"});
  expectFault(runIt("setp.lt.u32 p, t, 16;"
                    "@p shfl.sync.idx.b32 v, t, 0, 31, -1;"),
              {"shfl.sync"});
}

TEST(SimFault, BarrierDeadlock) {
  expectFault(runIt("setp.lt.u32 p, t, 32; @p bra END; bar.sync 0; END:"),
              {"barrier 0", "has exited"});
  expectFault(runIt("setp.lt.u32 p, t, 32; @p bra A; bar.sync 1; bra.uni END;"
                    "A: bar.sync 2; END:"),
              {"waits at barrier"});
}

TEST(SimFault, EndlessLoop) {
  Options options;
  options.Launch.InstructionLimit = 100000;
  expectFault(runIt("L: bra.uni L;", options), {"endless loop"});
}

TEST(SimFault, WriteToReadOnlyMemory) {
  Options options;
  options.ReadOnlyOut = true;
  expectFault(runIt("st.global.b32 [o], t;", options), {"read-only", "output"});
  expectFault(runIt("red.global.add.u32 [o], t;", options), {"read-only"});
}

TEST(SimFault, MutableMemoryBeforeGridWait) {
  std::string load = "ld.global.b32 v, [i];";
  std::string wait = "griddepcontrol.wait;";
  EXPECT_EQ(runIt(wait + load + "griddepcontrol.launch_dependents;"), "");
  expectFault(runIt(load + wait), {"griddepcontrol.wait", "input"});
  expectFault(runIt("st.global.b32 [o], t;" + wait), {"griddepcontrol.wait"});
  // A kernel without it may be launched when nothing else runs, but not behind
  // a kernel that still does.
  Options dependent;
  dependent.Launch.Dependent = true;
  EXPECT_EQ(runIt(load), "");
  EXPECT_EQ(runIt(wait + load, dependent), "");
  expectFault(runIt(load, dependent), {"griddepcontrol.wait", "input"});
  expectFault(runIt("", dependent), {"the CTA ends without"});
}

TEST(SimFault, StoresOfTwoCtas) {
  auto run = [](const std::string &store) {
    KernelRun run(".visible .entry k(.param .u64 data)\n{\n"
                  ".reg .b32 c; .reg .b64 d, x; .reg .pred p;\n"
                  "ld.param.u64 d, [data]; cvta.to.global.u64 d, d;\n"
                  "mov.u32 c, %ctaid.x; mul.wide.u32 x, c, 4;\n"
                  "add.u64 x, x, d; setp.eq.u32 p, c, 3;\n" +
                  store + "ret;\n}\n");
    EXPECT_NE(run.Code, nullptr) << run.Error;
    uint64_t data = run.buffer("data", 128);
    return run.parameter(data).launch({8}, {32});
  };
  EXPECT_EQ(run("st.global.b32 [x], c;\n"), "");
  EXPECT_EQ(run("@p st.global.b32 [d], c;\n"), "");
  std::string error = run("st.global.b32 [d+4], c;\n");
  EXPECT_NE(error.find("of 'data' (offset 4): another CTA of this launch has "
                       "stored there, too"),
            std::string::npos)
      << error;
}

TEST(SimFault, MissingFence) {
  // The last of eight CTAs adds up what the others have left in memory.
  auto run = [](const std::string &fence, const std::string &count) {
    KernelRun run(".visible .entry k(.param .u64 data)\n{\n"
                  ".reg .b32 c, n, s, v, i; .reg .b64 d, x; .reg .pred p;\n"
                  "ld.param.u64 d, [data]; cvta.to.global.u64 d, d;\n"
                  "mov.u32 c, %ctaid.x; mul.wide.u32 x, c, 4;\n"
                  "add.u64 x, x, d; add.u32 v, c, 100;\n"
                  "st.global.b32 [x+64], v;\n" +
                  fence + count + "setp.ne.u32 p, n, 7; @p ret;\n" + fence +
                  "mov.b32 i, 0; mov.b32 s, 0;\n"
                  "L: mul.wide.u32 x, i, 4; add.u64 x, x, d;\n"
                  "ld.global.b32 v, [x+64]; add.u32 s, s, v;\n"
                  "add.u32 i, i, 1; setp.lt.u32 p, i, 8; @p bra L;\n"
                  "st.global.b32 [d+4], s; ret;\n}\n");
    EXPECT_NE(run.Code, nullptr) << run.Error;
    uint64_t data = run.buffer("data", 128);
    uint32_t zero = 0;
    run.Device.write(data, &zero, 4);
    std::string error = run.parameter(data).launch({8}, {1});
    if (error.empty()) {
      EXPECT_EQ(run.contents<uint32_t>(data + 4, 1)[0], 828u);
    }
    return error;
  };
  std::string relaxed = "atom.global.add.u32 n, [d], 1;\n";
  std::string released = "atom.acq_rel.gpu.global.add.u32 n, [d], 1;\n";
  EXPECT_EQ(run("membar.gl;\n", relaxed), "");
  EXPECT_EQ(run("fence.acq_rel.gpu;\n", relaxed), "");
  EXPECT_EQ(run("", released), "");
  for (const char *fence : {"", "membar.cta;\n"})
    EXPECT_NE(run(fence, relaxed).find("has not executed a fence"),
              std::string::npos);
}

TEST(SimFault, UnknownInstructions) {
  auto refused = [](const std::string &body, const std::string &word) {
    std::string error = KernelRun(kernel(body)).Error;
    EXPECT_NE(error.find(word), std::string::npos) << error;
    EXPECT_NE(error.find("line "), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  };
  refused("frobnicate.u32 v, t;", "frobnicate");
  refused("add.u33 v, t, t;", "add.u33");
  refused("add.sat.u32 v, t, t;", "add.sat.u32");
  refused("mma.sync.aligned.m16n8k17.row.col.f32.bf16.bf16.f32 {u, v, w, b}, "
          "{t, t, t, t}, {t, t}, {t, t, t, t};",
          "mma.sync");
  refused("add.u32 v, t;", "add.u32");
  refused("add.u32 v, t, undeclared;", "undeclared");
  refused("add.u32 x, t, t;", "x");
  refused("bra NOWHERE;", "NOWHERE");
  refused("mov.u32 v, %nonsense;", "%nonsense");
  refused("cvt.sat.s64.s32 x, t;", ".sat");
  refused("ex2.f32 v, t;", "ex2.f32");
  refused("div.f32 v, t, t;", "div.f32");
}

TEST(SimFault, Launches) {
  KernelRun run(kernel(""));
  ASSERT_EQ(run.Error, "");
  uint64_t in = run.buffer("input", 256), out = run.buffer("output", 256);
  run.parameter(in);
  EXPECT_NE(run.launch({1}, {64}), "") << "a parameter is missing";
  run.parameter(out);
  EXPECT_EQ(run.launch({1}, {64}), "");
  EXPECT_NE(run.launch({1}, {1025}), "") << "too many threads";
  EXPECT_NE(run.launch({0}, {32}), "") << "no CTAs";
}

} // namespace

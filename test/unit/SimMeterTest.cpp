// What the meter counts, and how the lanes of a warp and the warps of a CTA
// take turns.
#include "test/unit/SimFixture.h"

using namespace kvc::sim;

namespace {

/// One warp (or more) over `io`, 64 KiB of global memory, with 16 KiB of shared
/// memory at address 0: `t` is the thread, `g` the buffer.
struct Measured {
  Meter Counts;
  std::string Error;
};
Measured measure(const std::string &body, uint32_t threads = 32) {
  KernelRun run(".visible .entry k(.param .u64 io)\n{\n"
                ".reg .b32 t, a, v<4>, e<4>; .reg .b64 g, x; .reg .pred p;\n"
                ".reg .f32 f<4>;\n.shared .align 128 .b8 words[16384];\n"
                ".reg .b32 w;\n"
                "ld.param.u64 g, [io]; cvta.to.global.u64 g, g;\n"
                "mov.u32 t, %tid.x; mov.u32 w, words;\n" +
                body + "\nret;\n}\n");
  EXPECT_NE(run.Code, nullptr) << run.Error;
  std::vector<uint8_t> bytes(65536, 1);
  run.parameter(run.filled("io", bytes));
  Measured result;
  LaunchOptions options;
  options.Checks = false; // shared memory is read as it is
  result.Error = run.launch({1}, {threads}, 0, options);
  result.Counts = run.meter();
  return result;
}

/// Loads of 4 bytes whose lanes are `stride` bytes apart.
Meter strided(const std::string &space, uint32_t stride,
              const std::string &form = "b32 v0") {
  std::string type = form.substr(0, form.find(' '));
  std::string to = form.substr(form.find(' ') + 1);
  std::string scale = std::to_string(stride);
  Measured measured =
      space == "global"
          ? measure("mul.wide.u32 x, t, " + scale + "; add.u64 x, x, g;" +
                    "ld.global." + type + " " + to + ", [x];")
          : measure("mad.lo.u32 a, t, " + scale + ", w; ld.shared." + type +
                    " " + to + ", [a];");
  EXPECT_EQ(measured.Error, "");
  return measured.Counts;
}

TEST(SimMeter, Sectors) {
  EXPECT_EQ(strided("global", 4).LoadSectors, 4u);
  EXPECT_EQ(strided("global", 0).LoadSectors, 1u);
  EXPECT_EQ(strided("global", 8).LoadSectors, 8u);
  EXPECT_EQ(strided("global", 32).LoadSectors, 32u);
  EXPECT_EQ(strided("global", 512).LoadSectors, 32u);
  Meter wide = strided("global", 16, "v4.b32 {v0, v1, v2, v3}");
  EXPECT_EQ(wide.LoadSectors, 16u);
  EXPECT_EQ(wide.LoadBytes, 512u);
  EXPECT_EQ(wide.Loads, 1u);
  EXPECT_EQ(wide.Loads128, 1u);
  EXPECT_EQ(wide.SectorsByAllocation.at("io"), 16u);
  EXPECT_EQ(strided("global", 4).Loads128, 0u);
  // Lanes in any order: the sectors are the same.
  Meter mixed = measure("xor.b32 a, t, 21; mul.wide.u32 x, a, 4;"
                        "add.u64 x, x, g; ld.global.b32 v0, [x];"
                        "st.global.b32 [x], v0;")
                    .Counts;
  EXPECT_EQ(mixed.LoadSectors, 4u);
  EXPECT_EQ(mixed.StoreSectors, 4u);
  EXPECT_EQ(mixed.StoreBytes, 128u);
  EXPECT_EQ(mixed.Stores, 1u);
  // Lanes that a predicate stops ask for nothing.
  Meter some = measure("setp.lt.u32 p, t, 3; mul.wide.u32 x, t, 64;"
                       "add.u64 x, x, g; @p ld.global.b32 v0, [x];")
                   .Counts;
  EXPECT_EQ(some.LoadSectors, 3u);
  EXPECT_EQ(some.LoadBytes, 12u);
}

TEST(SimMeter, DistinctSectors) {
  // Three loads and two stores of the same 128 bytes, by two CTAs, twice.
  KernelRun run(".visible .entry k(.param .u64 io)\n{\n"
                ".reg .b32 t, v; .reg .b64 g, x;\n"
                "ld.param.u64 g, [io]; cvta.to.global.u64 g, g;\n"
                "mov.u32 t, %tid.x; mul.wide.u32 x, t, 4; add.u64 x, x, g;\n"
                "ld.global.b32 v, [x]; ld.global.b32 v, [x];\n"
                "ld.global.b32 v, [x+64]; st.global.b32 [x+512], t;\n"
                "st.global.b32 [x+512], t; ret;\n}\n");
  ASSERT_NE(run.Code, nullptr) << run.Error;
  run.parameter(run.filled("io", std::vector<uint8_t>(4096, 1)));
  ASSERT_EQ(run.launch({2}, {32}), "");
  EXPECT_EQ(run.meter().LoadSectors, 2u * 12);
  EXPECT_EQ(run.meter().DistinctLoadSectors, 6u);
  EXPECT_EQ(run.meter().DistinctStoreSectors, 4u);
  // Another launch has nothing in its cache.
  ASSERT_EQ(run.launch({2}, {32}), "");
  EXPECT_EQ(run.meter().DistinctLoadSectors, 12u);
  EXPECT_EQ(run.meter().DistinctLoads.at("io"), 12u);
  EXPECT_EQ(run.meter().DistinctStores.at("io"), 8u);
}

TEST(SimMeter, BankConflicts) {
  EXPECT_EQ(strided("shared", 4).SharedConflicts, 0u);
  EXPECT_EQ(strided("shared", 0).SharedConflicts, 0u) << "a broadcast";
  EXPECT_EQ(strided("shared", 8).SharedConflicts, 1u);
  EXPECT_EQ(strided("shared", 128).SharedConflicts, 31u);
  EXPECT_EQ(strided("shared", 132).SharedConflicts, 0u);
  // Quarter warps at a time.
  std::string four = "v4.b32 {v0, v1, v2, v3}";
  EXPECT_EQ(strided("shared", 16, four).SharedConflicts, 0u);
  EXPECT_EQ(strided("shared", 32, four).SharedConflicts, 4u);
  EXPECT_EQ(strided("shared", 128, four).SharedConflicts, 28u);
  auto matrix = [](const std::string &stride) {
    return measure("mad.lo.u32 a, t, " + stride +
                   ", w; ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
                   "{v0, v1, v2, v3}, [a];")
        .Counts;
  };
  EXPECT_EQ(matrix("16").SharedConflicts, 0u);
  EXPECT_EQ(matrix("80").SharedConflicts, 0u);
  EXPECT_EQ(matrix("64").SharedConflicts, 4u * 3);
  EXPECT_EQ(matrix("128").SharedConflicts, 4u * 7);
}

TEST(SimMeter, Opcodes) {
  Meter counts =
      measure("mov.b32 v0, 0; L: add.u32 v0, v0, 1; setp.lt.u32 p, v0, 10;"
              "@p bra L; bar.sync 0; atom.global.add.u32 v1, [g], 1;"
              "mov.f32 f0, 0f00000000; mov.f32 f1, f0; mov.f32 f2, f0;"
              "mov.f32 f3, f0;"
              "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
              "{f0, f1, f2, f3}, {v0, v0, v0, v0}, {v0, v0}, {f0, f1, f2, f3};",
              64)
          .Counts;
  EXPECT_EQ(counts.ByOpcode.at("add.u32"), 20u);
  EXPECT_EQ(counts.ByOpcode.at("bra"), 20u);
  EXPECT_EQ(counts.ByOpcode.at("bar.sync"), 2u);
  EXPECT_EQ(counts.Barriers, 2u);
  EXPECT_EQ(counts.Mma, 2u);
  EXPECT_EQ(counts.Atomics, 2u);
  EXPECT_EQ(counts.Ctas, 1u);
  EXPECT_EQ(counts.Launches, 1u);
  uint64_t sum = 0;
  for (const auto &[name, count] : counts.ByOpcode)
    sum += count;
  EXPECT_EQ(sum, counts.WarpInstructions);
}

TEST(SimMeter, DivergentPathsCountOnceEach) {
  // Both sides run, one after the other, and meet again before the last add.
  Meter counts = measure("setp.lt.u32 p, t, 7; @p bra Yes; add.u32 v0, t, 1;"
                         "bra Join; Yes: sub.u32 v0, t, 1; Join: xor.b32 v0, "
                         "v0, t;")
                     .Counts;
  EXPECT_EQ(counts.ByOpcode.at("add.u32"), 1u);
  EXPECT_EQ(counts.ByOpcode.at("sub.u32"), 1u);
  EXPECT_EQ(counts.ByOpcode.at("xor.b32"), 1u);
}

//===----------------------------------------------------------------------===//
// Turns
//===----------------------------------------------------------------------===//

TEST(SimTurns, LanesThatSpinLetOthersRun) {
  // Each lane takes a lock that another lane of its warp may hold.
  Measured measured =
      measure("mov.b32 v2, 0; st.global.b32 [g], 0; st.global.b32 [g+4], 0;"
              "bar.sync 0;"
              "Again: atom.global.cas.b32 v0, [g], 0, 1; setp.ne.u32 p, v0, 0;"
              "@p bra Again;"
              "ld.volatile.global.b32 v1, [g+4]; add.u32 v1, v1, 1;"
              "st.volatile.global.b32 [g+4], v1; membar.gl;"
              "atom.global.exch.b32 v0, [g], 0;"
              "bar.sync 0; ld.global.b32 v3, [g+4]; setp.ne.u32 p, v3, 64;"
              "@p trap;",
              64);
  EXPECT_EQ(measured.Error, "");
}

TEST(SimTurns, MbarrierPhases) {
  // Warp 0 fills a buffer four times, warp 1 empties it.
  std::string text =
      ".visible .entry k(.param .u64 out)\n{\n"
      ".reg .b32 t, v, i, ph, l, a; .reg .b64 g, s; .reg .pred p, w;\n"
      ".shared .align 8 .b64 full; .shared .align 8 .b64 empty;\n"
      ".shared .align 4 .b8 data[128];\n"
      "ld.param.u64 g, [out]; cvta.to.global.u64 g, g; mov.u32 t, %tid.x;\n"
      "and.b32 l, t, 31; mov.u32 a, data; mad.lo.u32 a, l, 4, a;\n"
      "setp.eq.u32 p, t, 0;\n"
      "@p mbarrier.init.shared.b64 [full], 32;\n"
      "@p mbarrier.init.shared.b64 [empty], 32;\n"
      "bar.sync 0; mov.b32 i, 0; setp.lt.u32 w, t, 32; @!w bra Consumer;\n"
      "Producer: setp.eq.u32 p, i, 0; @p bra Fill; sub.u32 ph, i, 1;\n"
      "and.b32 ph, ph, 1;\n"
      "W0: mbarrier.try_wait.parity.shared.b64 p, [empty], ph; @!p bra W0;\n"
      "Fill: mad.lo.u32 v, i, 100, l; st.shared.b32 [a], v;\n"
      "mbarrier.arrive.shared.b64 s, [full];\n"
      "add.u32 i, i, 1; setp.lt.u32 p, i, 4; @p bra Producer; ret;\n"
      "Consumer: and.b32 ph, i, 1;\n"
      "W1: mbarrier.try_wait.parity.shared.b64 p, [full], ph; @!p bra W1;\n"
      "ld.shared.b32 v, [a]; mbarrier.arrive.shared.b64 _, [empty];\n"
      "mad.lo.u32 t, i, 32, l; mul.wide.u32 s, t, 4; add.u64 s, s, g;\n"
      "st.global.b32 [s], v; add.u32 i, i, 1; setp.lt.u32 p, i, 4;\n"
      "@p bra Consumer; ret;\n}\n";
  for (uint64_t seed : {0, 1, 2}) {
    KernelRun run(text);
    ASSERT_NE(run.Code, nullptr) << run.Error;
    uint64_t out = run.buffer("out", 4 * 32 * 4);
    run.parameter(out);
    LaunchOptions options;
    options.Seed = seed;
    ASSERT_EQ(run.launch({1}, {64}, 0, options), "");
    std::vector<uint32_t> got = run.contents<uint32_t>(out, 128);
    for (uint32_t i = 0; i != 128; ++i)
      EXPECT_EQ(got[i], i / 32 * 100 + i % 32);
  }
  // Without the wait for the empty buffer, it is overwritten before it is read,
  // and the reader waits for a phase that has long passed.
  std::string hasty = text;
  hasty.replace(hasty.find("@p bra Fill;"), 12, "bra Fill;");
  KernelRun run(hasty);
  ASSERT_NE(run.Code, nullptr) << run.Error;
  run.parameter(run.buffer("out", 4 * 32 * 4));
  LaunchOptions options;
  options.InstructionLimit = 1 << 16;
  EXPECT_NE(run.launch({1}, {64}, 0, options), "");
}

TEST(SimTurns, MbarrierCounts) {
  Measured measured = measure("mbarrier.init.shared.b64 [words], 5;"
                              "mbarrier.arrive.shared.b64 x, [words], 6;",
                              1);
  EXPECT_NE(measured.Error.find("6 arrivals where the phase waits for 5"),
            std::string::npos)
      << measured.Error;
}

TEST(SimTurns, ThreadsOfTheHostDoNotShow) {
  // The same launch on one, two and five host threads, in three orders.
  std::string text =
      header("sm_90", "8.0") +
      ".visible .entry k(.param .u64 out)\n{\n.reg .b32 t, c, n;\n"
      ".reg .b64 g, x;\nld.param.u64 g, [out]; cvta.to.global.u64 g, g;\n"
      "mov.u32 t, %tid.x; mov.u32 c, %ctaid.x; mov.u32 n, %ntid.x;\n"
      "mad.lo.u32 t, c, n, t; mul.wide.u32 x, t, 4; add.u64 x, x, g;\n"
      "mul.lo.u32 t, t, t; st.global.b32 [x], t; ret;\n}\n";
  for (int threads : {1, 2, 5})
    for (uint64_t seed : {0, 1, 9}) {
      std::string error;
      std::unique_ptr<Module> module = Module::parse(text, error);
      ASSERT_NE(module, nullptr) << error;
      Machine machine(threads);
      uint64_t out = machine.allocate("out", 37 * 48 * 4);
      LaunchOptions options;
      options.Seed = seed;
      ASSERT_TRUE(machine.launch(*module, "k", {{37}, {48}, 0}, &out, 8,
                                 options, error))
          << error;
      std::vector<uint32_t> got(37 * 48);
      ASSERT_TRUE(machine.initialised(out, got.size() * 4));
      ASSERT_TRUE(machine.read(out, got.data(), got.size() * 4));
      for (uint32_t i = 0; i != got.size(); ++i)
        ASSERT_EQ(got[i], i * i);
      EXPECT_EQ(machine.meters().at("k").Ctas, 37u);
    }
}

} // namespace

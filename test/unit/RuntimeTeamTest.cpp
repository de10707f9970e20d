#include "runtime/Cpu.h"
#include "runtime/Team.h"

#include <gtest/gtest.h>
#include <vector>

using namespace kvc;

namespace {
// Shared by the step function below; plain memory, so that a barrier that does
// not order anything is a data race.
std::vector<int64_t> Cells;
int64_t Rounds = 0;

// Every worker adds what all cells held after the round before: wrong as soon
// as one runs ahead.
void addUp(const KvcBatch *, const KvcArenas *, void *team, int64_t worker,
           int64_t workers) {
  for (int64_t round = 0; round != Rounds; ++round) {
    int64_t sum = 0;
    for (int64_t cell : Cells)
      sum += cell;
    kvc_barrier(team, worker, 0);
    Cells[size_t(worker)] = sum % 1000003 + worker;
    kvc_barrier(team, worker, 1);
  }
  (void)workers;
}

std::vector<int64_t> expected(size_t workers, int64_t rounds) {
  std::vector<int64_t> cells(workers, 1);
  for (int64_t round = 0; round != rounds; ++round) {
    int64_t sum = 0;
    for (int64_t cell : cells)
      sum += cell;
    for (size_t i = 0; i != workers; ++i)
      cells[i] = sum % 1000003 + int64_t(i);
  }
  return cells;
}

class RuntimeTeam : public testing::TestWithParam<int> {};
} // namespace

TEST_P(RuntimeTeam, BarriersOrderEverything) {
  std::string error;
  auto team = Team::create(GetParam(), error);
  ASSERT_TRUE(team) << error;
  Cells.assign(size_t(GetParam()), 1);
  Rounds = 50;
  for (int step = 0; step != 40; ++step)
    team->run(addUp, nullptr, nullptr);
  EXPECT_EQ(Cells, expected(Cells.size(), 50 * 40));
}

// More workers than this machine has cores are in here too.
INSTANTIATE_TEST_SUITE_P(Workers, RuntimeTeam,
                         testing::Values(1, 2, 3, 4, 7, 16));

TEST(RuntimeTeam, SleepersWake) {
  std::string error;
  auto team = Team::create(2, error);
  ASSERT_TRUE(team) << error;
  Cells.assign(2, 1);
  Rounds = 1;
  for (int step = 0; step != 3; ++step) {
    // Long enough for the worker to have gone to sleep.
    timespec pause = {0, 20000000};
    nanosleep(&pause, nullptr);
    team->run(addUp, nullptr, nullptr);
  }
  EXPECT_EQ(Cells, expected(2, 3));
}

TEST(RuntimeTeam, ProfileChargesKernels) {
  std::string error;
  auto team = Team::create(2, error);
  ASSERT_TRUE(team) << error;
  Cells.assign(2, 1);
  Rounds = 10;
  // Kernel 1 is beyond the profile: not charged, not written anywhere.
  std::vector<KernelTime> times(1);
  team->setProfile(&times);
  team->run(addUp, nullptr, nullptr);
  EXPECT_EQ(times[0].Calls, 10);
  EXPECT_GT(times[0].Nanoseconds, 0);
  team->setProfile(nullptr);
  team->run(addUp, nullptr, nullptr);
  EXPECT_EQ(times[0].Calls, 10);
}

TEST(RuntimeCpu, NamesTheMissingFeature) {
  std::string error;
  EXPECT_TRUE(checkInstructionSets("sse2", "x86-64", error));
  EXPECT_TRUE(checkInstructionSets("", "x86-64", error));
  EXPECT_FALSE(checkInstructionSets("sse2,quantum", "future", error));
  EXPECT_EQ(error.substr(0, error.find(',')),
            "this program was compiled for future and needs quantum");
  // Only two laptop generations ever had it.
  if (!__builtin_cpu_supports("avx512vp2intersect")) {
    EXPECT_FALSE(
        checkInstructionSets("sse2,avx512vp2intersect", "tigerlake", error));
    EXPECT_NE(error.find("needs avx512vp2intersect, which this CPU (" +
                         cpuName() + ") does not have"),
              std::string::npos)
        << error;
    EXPECT_NE(error.find("--target-cpu=native"), std::string::npos);
  }
  EXPECT_GE(availableCores(), 1);
  EXPECT_GE(availableCpus(), availableCores());
}

#include "runtime/Team.h"
#include "runtime/Cpu.h"

#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>

namespace kvc {

// A pause takes 20 to 45 ns on the machines measured, so this is some 5 to
// 10 us: longer than workers of a balanced kernel drift apart, shorter than a
// scheduler's tick. A yield takes about a third of a microsecond when nobody
// else wants the core.
static constexpr int SpinPauses = 250;
static constexpr int YieldsBeforeSleep = 300;

int64_t nowNanoseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

static void futex(std::atomic<uint32_t> &word, int operation, uint32_t value) {
  static_assert(sizeof(word) == sizeof(uint32_t) &&
                    std::atomic<uint32_t>::is_always_lock_free,
                "a futex is a plain 32-bit word");
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), operation, value,
          nullptr, nullptr, 0);
}

// A sleeper first counts itself and then looks at the value; the raiser first
// stores the value and then looks for sleepers. Both in the one total order of
// seq_cst operations, so at least one of them sees the other.
void Signal::raise(uint32_t value) {
  Value.store(value, std::memory_order_seq_cst);
  if (Sleepers.load(std::memory_order_seq_cst) != 0)
    futex(Value, FUTEX_WAKE_PRIVATE, INT_MAX);
}

void Signal::await(uint32_t target, int spins) {
  auto reached = [target](uint32_t value) {
    return int32_t(value - target) >= 0;
  };
  for (int i = 0; i != spins; ++i) {
    if (reached(load()))
      return;
    __builtin_ia32_pause();
  }
  for (int i = 0; i != YieldsBeforeSleep; ++i) {
    if (reached(load()))
      return;
    sched_yield();
  }
  Sleepers.fetch_add(1, std::memory_order_seq_cst);
  for (;;) {
    uint32_t value = Value.load(std::memory_order_seq_cst);
    if (reached(value))
      break;
    futex(Value, FUTEX_WAIT_PRIVATE, value);
  }
  Sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

Team::Team(int workers, int spins) : Spins(spins), Workers(size_t(workers)) {}

std::unique_ptr<Team> Team::create(int workers, std::string &error) {
  // With more workers than cores, spinning takes the core from the very worker
  // that is waited for.
  int spins = workers > availableCpus() ? 0 : SpinPauses;
  std::unique_ptr<Team> team(new Team(workers, spins));
  for (int worker = 1; worker < workers; ++worker) {
    try {
      team->Threads.emplace_back(&Team::workerMain, team.get(), worker);
    } catch (const std::system_error &failure) {
      error = "cannot start worker " + std::to_string(worker) + " of " +
              std::to_string(workers) + ": " + failure.what();
      return nullptr; // the workers that did start are stopped by ~Team
    }
  }
  return team;
}

Team::~Team() {
  Stopping = true;
  Started.raise(++StartEpoch);
  for (std::thread &thread : Threads)
    thread.join();
}

void Team::workerMain(int worker) {
  for (uint32_t epoch = 1;; ++epoch) {
    Started.await(epoch, Spins);
    if (Stopping)
      return;
    Function(Batch, Arenas, this, worker, workers());
    barrier(worker);
  }
}

void Team::run(KvcStepFunction function, const KvcBatch *batch,
               const KvcArenas *arenas) {
  Function = function;
  Batch = batch;
  Arenas = arenas;
  if (Times)
    LastTime = nowNanoseconds();
  if (workers() > 1)
    Started.raise(++StartEpoch);
  function(batch, arenas, this, 0, workers());
  barrier(0);
}

void Team::barrier(int64_t worker) {
  size_t count = Workers.size();
  if (count == 1)
    return;
  Worker &own = Workers[size_t(worker)];
  uint32_t epoch = ++own.Epoch;
  if (count == 2) {
    own.Arrived.raise(epoch);
    Workers[size_t(1 - worker)].Arrived.await(epoch, Spins);
    return;
  }
  if (Waiting.fetch_add(1, std::memory_order_acq_rel) + 1 == count) {
    Waiting.store(0, std::memory_order_relaxed);
    Generation.raise(epoch);
    return;
  }
  Generation.await(epoch, Spins);
}

void Team::endKernel(int64_t worker, int64_t kernel) {
  barrier(worker);
  if (worker == 0 && Times)
    chargeTime(kernel);
  if (!Observer)
    return;
  if (worker == 0)
    Observer(kernel);
  barrier(worker);
}

void Team::chargeTime(int64_t kernel) {
  int64_t now = nowNanoseconds();
  if (kernel >= 0 && size_t(kernel) < Times->size()) {
    KernelTime &time = (*Times)[size_t(kernel)];
    ++time.Calls;
    time.Nanoseconds += now - LastTime;
  }
  LastTime = now;
}

} // namespace kvc

extern "C" void kvc_barrier(void *opaque, int64_t worker, int64_t kernel) {
  static_cast<kvc::Team *>(opaque)->endKernel(worker, kernel);
}

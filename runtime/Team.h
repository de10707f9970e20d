// The workers that run a program's step function together, and the barrier the
// program calls between its kernels.
#ifndef KVC_RUNTIME_TEAM_H
#define KVC_RUNTIME_TEAM_H

#include "runtime/Abi.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace kvc {

/// Runs and time of one kernel of a phase.
struct KernelTime {
  int64_t Calls = 0;
  int64_t Nanoseconds = 0;
};

/// A monotonic clock in nanoseconds.
int64_t nowNanoseconds();

/// A 32-bit value that one side raises and others wait for. Waiting spins for
/// some hundred nanoseconds to microseconds, then yields, then sleeps in the
/// kernel; it never spins without yielding.
class alignas(64) Signal {
public:
  uint32_t load() const { return Value.load(std::memory_order_acquire); }
  void raise(uint32_t value);
  /// Waits until the value is `target` or a later one (numbers wrap).
  void await(uint32_t target, int spins);

private:
  std::atomic<uint32_t> Value{0};
  std::atomic<uint32_t> Sleepers{0};
};

class Team {
public:
  /// Starts workers 1 .. workers-1; the thread that calls run() is worker 0.
  static std::unique_ptr<Team> create(int workers, std::string &error);
  Team(const Team &) = delete;
  Team &operator=(const Team &) = delete;
  ~Team();

  int workers() const { return int(Workers.size()); }

  /// One step: every worker calls `function`; returns when all have returned.
  void run(KvcStepFunction function, const KvcBatch *batch,
           const KvcArenas *arenas);

  /// Kernel times of the coming steps go to `times`, indexed by kernel number;
  /// nothing is measured while it is null.
  void setProfile(std::vector<KernelTime> *times) { Times = times; }

  /// Called by worker 0 with each kernel's number when all have done it and
  /// none has begun the next; null: nobody is.
  void setObserver(std::function<void(int64_t kernel)> observer) {
    Observer = std::move(observer);
  }

  void barrier(int64_t worker);
  /// The barrier that ends a kernel.
  void endKernel(int64_t worker, int64_t kernel);

private:
  explicit Team(int workers, int spins);
  void workerMain(int worker);
  void chargeTime(int64_t kernel);

  struct alignas(64) Worker {
    Signal Arrived;     // barriers this worker has reached
    uint32_t Epoch = 0; // the same, its own copy
  };

  int Spins;
  std::vector<Worker> Workers;
  std::vector<std::thread> Threads;

  // The step being run: written by worker 0 before Started is raised.
  KvcStepFunction Function = nullptr;
  const KvcBatch *Batch = nullptr;
  const KvcArenas *Arenas = nullptr;
  bool Stopping = false;
  uint32_t StartEpoch = 0;
  Signal Started;

  // Teams of three and more.
  alignas(64) std::atomic<uint32_t> Waiting{0};
  Signal Generation;

  std::vector<KernelTime> *Times = nullptr;
  int64_t LastTime = 0;
  std::function<void(int64_t kernel)> Observer;
};

} // namespace kvc

#endif // KVC_RUNTIME_TEAM_H

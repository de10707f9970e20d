// The state that instructions work on: warps, CTAs and the launch they belong
// to. Handlers (the Ops*.cpp files) see no more of the simulator than this.
#ifndef KVC_RUNTIME_SIM_EXEC_H
#define KVC_RUNTIME_SIM_EXEC_H

#include "runtime/sim/Checks.h"
#include "runtime/sim/Decode.h"
#include "runtime/sim/Memory.h"

#include <atomic>
#include <cstring>
#include <mutex>

namespace kvc::sim {

/// What all CTAs of one launch share.
struct Launch {
  const Program *Code = nullptr;
  const Kernel *Entry = nullptr;
  const AddressSpace *Memory = nullptr;
  LaunchConfig Config;
  LaunchOptions Options;
  const uint8_t *Parameters = nullptr;
  uint32_t ParameterBytes = 0;
  uint32_t SharedBytes = 0;        // static and dynamic
  std::vector<uint64_t> Constants; // values of Entry->Constants
  uint32_t Sms = 132;
  uint32_t Epoch = 0; // of the machine's launches, this one's number
  std::atomic<bool> Failed{false};

  /// Keeps the error of the first CTA in launch order.
  void fail(uint64_t cta, const std::string &text);
  const std::string &error() const { return Error; }

private:
  std::mutex Lock;
  uint64_t ErrorCta = 0;
  std::string Error;
};

/// Marks of bytes (see Allocation::Written) that a CTA has stored to.
struct StoredRange {
  uint8_t *First = nullptr;
  uint64_t Bytes = 0;
};

/// What one host thread counts during one launch.
struct Counters {
  Meter Sum;
  std::vector<uint64_t> Executed; // by instruction
  std::vector<uint64_t> Sectors;  // loaded, by allocation
  /// Sectors that this launch touches for the first time, by allocation.
  std::vector<uint64_t> Loaded, Stored;
  /// The allocation an instruction met last.
  std::vector<const Allocation *> Hits;
  /// Stores of CTAs that ended without a fence: settled when the launch ends.
  std::vector<StoredRange> Unfenced;
  void reset(const Launch &launch);
  void settle();
};

class Cta;

/// Why a warp stops stepping.
enum class Event : uint8_t {
  None,
  Regroup, // lanes went different ways
  Park,    // waits for other lanes of the warp at this instruction
  Barrier, // waits for other warps
  Yield,   // waits for something in memory: others should go on
  Exit,    // lanes of the running group have exited
  Fail,
};

struct Group {
  uint32_t Pc = 0;
  uint32_t Mask = 0;
  bool Parked = false;
};

struct Warp {
  uint8_t *File = nullptr;
  Cta *Block = nullptr;
  uint32_t Index = 0;
  uint32_t Initial = 0; // lanes that exist
  uint32_t Alive = 0;   // those that have not exited
  uint32_t Active = 0;  // the running group
  uint32_t Pc = 0;
  uint32_t Next = 0;
  /// Where the running group meets another one; it is always ahead of Pc.
  uint32_t MergePc = ~uint32_t(0);
  Event Raised = Event::None;
  bool AtBarrier = false;
  bool GridWaited = false;
  uint32_t BarrierId = 0;
  const Inst *BarrierInst = nullptr;
  uint32_t Turns = 0; // regroupings since the other groups last ran
  std::vector<Group> Others;

  template <class T> T *reg(uint32_t slot) {
    return reinterpret_cast<T *>(File + slot);
  }
  uint32_t &predicate(uint32_t slot) { return *reg<uint32_t>(slot); }

  /// True if all lanes of `needed` are here. Otherwise the group waits for the
  /// others to arrive at this instruction, and the handler does nothing.
  bool converged(const Inst &inst, uint32_t mask, uint32_t needed);
  /// The same for instructions that all lanes of the warp have to execute.
  bool aligned(const Inst &inst, uint32_t mask);

  /// Ends the launch. Lane 32: the warp as a whole.
  void fail(const Inst &inst, uint32_t lane, const std::string &what);
  void fail(const Inst &inst, const Finding &found);

  /// Steps until an event that the CTA has to handle, or `fuel` runs out.
  Event run(uint64_t &fuel);

private:
  Event handle(const Inst &inst);
  bool regroup();
};

struct Barrier {
  uint64_t Arrived = 0; // warps
  uint32_t Count = 0;   // warps it takes; 0: idle
  uint32_t Waiting = 0; // how many have arrived
  // bar.red: threads whose predicate is true, and whether it is for all.
  uint32_t True = 0;
  bool AllTrue = true;
};

class Cta {
public:
  Cta();
  Cta(const Cta &) = delete;
  Cta &operator=(const Cta &) = delete;
  ~Cta();

  /// Takes the sizes and constants of a launch.
  void prepare(Launch &launch, Counters &counters);
  void start(uint64_t linear);

  enum class Outcome : uint8_t { Done, Yielded, Failed };
  /// Runs the warps in turn until the CTA is done, or all of them yielded.
  Outcome run();

  /// bar.sync and its kin: `warps` is how many have to arrive (0: all).
  void arrive(Warp &warp, const Inst &inst, uint32_t id, uint32_t warps,
              bool wait);
  /// Names the thread and reports to the launch.
  void fail(const Warp &warp, const Inst &inst, uint32_t lane,
            const std::string &what);
  /// Warps that arrive at an mbarrier in shared memory, and one that has seen
  /// its phase complete: the checker takes them to have met.
  void noteArrival(uint64_t address, uint32_t warp);
  void noteWait(uint64_t address, uint32_t warp);
  /// A store to global memory, which other CTAs may read after a fence.
  void noteStore(uint8_t *written, uint64_t bytes);
  void fence();
  /// Leaves stores without a fence to the launch: the CTA has ended.
  void retire();
  uint32_t index(const Inst &inst) const;
  uint32_t warps() const { return uint32_t(Warps.size()); }
  /// "line 12 `st.shared...`"
  std::string place(uint32_t instruction) const;

  Launch *Run = nullptr;
  Counters *Count = nullptr;
  uint8_t *Shared = nullptr;
  uint32_t SharedBytes = 0;
  uint8_t *Local = nullptr; // [warp][lane][bytes]
  uint8_t *LocalWritten = nullptr;
  uint32_t LocalBytes = 0;
  bool Checks = true;
  Dim3 Id;
  uint64_t Linear = 0;
  uint64_t Executed = 0; // warp instructions
  uint8_t Tag = 1;       // of its stores; neither 0 nor Settled
  SharedChecker Checker;
  Barrier Barriers[16];

private:
  void release(uint32_t barrier);
  void setSpecials(Warp &warp);
  std::string deadlock() const;

  std::vector<StoredRange> Unfenced;
  std::map<uint64_t, uint64_t> Arrivals; // warps by mbarrier
  std::vector<Warp> Warps;
  std::vector<uint32_t> Order; // of the warps
  std::vector<uint8_t> FileStore, SharedStore, LocalStore;
  uint64_t FileStride = 0;
};

/// Copy: a write by cp.async, which the caller shows to the checker.
enum class Mode : uint8_t { Read, Write, Atomic, Copy };

/// Checks and counts one warp request; host[l] is where lane l's `bytes` are.
/// False after Warp::fail.
bool access(Warp &warp, const Inst &inst, uint32_t mask, Space space,
            const uint64_t *address, uint32_t bytes, Mode mode, uint8_t **host);
/// Which window a generic address is in.
Space spaceOf(uint64_t address);
/// The addresses of an operand: the register in Op[slot] plus Offset.
void addresses(Warp &warp, const Inst &inst, unsigned slot, uint64_t *address);

/// Calls f(lane) for the lanes of a mask, ascending.
template <class F> inline void forLanes(uint32_t mask, F f) {
  if (mask == FullMask) {
    for (uint32_t lane = 0; lane != Lanes; ++lane)
      f(lane);
    return;
  }
  for (; mask; mask &= mask - 1)
    f(uint32_t(__builtin_ctz(mask)));
}

/// A loop whose iterations touch the same lane of all registers: a destination
/// that is one of the sources is no reason against vector code.
#if defined(__clang__)
#define KVC_SIM_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define KVC_SIM_LANES _Pragma("GCC ivdep")
#endif

/// Stores a result in the lanes of a mask. Results are computed for all lanes
/// into an array of their own first, so that loops become vector code though a
/// destination may be one of the sources.
template <class T>
inline void commit(Warp &warp, uint32_t slot, const T (&value)[Lanes],
                   uint32_t mask) {
  T *to = warp.reg<T>(slot);
  if (mask == FullMask) {
    std::memcpy(to, value, sizeof(value));
    return;
  }
  for (uint32_t lane = 0; lane != Lanes; ++lane)
    to[lane] = mask >> lane & 1 ? value[lane] : to[lane];
}

inline void commitPredicate(Warp &warp, uint32_t slot, uint32_t bits,
                            uint32_t mask) {
  uint32_t &to = warp.predicate(slot);
  to = (to & ~mask) | (bits & mask);
}

inline uint32_t firstLane(uint32_t mask) {
  return uint32_t(__builtin_ctz(mask));
}

std::string hex(uint64_t value);

} // namespace kvc::sim

#endif // KVC_RUNTIME_SIM_EXEC_H

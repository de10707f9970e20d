// The checker of one CTA's shared memory and asynchronous copies. The executor
// calls it before it does what an instruction asks; bounds and alignment have
// been checked by then.
#ifndef KVC_RUNTIME_SIM_CHECKS_H
#define KVC_RUNTIME_SIM_CHECKS_H

#include <cstdint>
#include <memory>
#include <string>

namespace kvc::sim {

constexpr uint32_t NoInstruction = ~uint32_t(0);

/// What a check found. The executor adds the kernel, the PTX line, the CTA and
/// the thread, and the text of the other instruction where there is one.
struct Finding {
  uint32_t Lane = 0;
  std::string What; // "shared address 0x40 (4 bytes) ... : the rule"
  uint32_t Other = NoInstruction; // index of the instruction it conflicts with
  uint32_t OtherWarp = 0, OtherLane = 0;
};

/// One warp's request: lane l of `Mask` accesses `Bytes` bytes at Address[l].
/// Shared addresses count from 0.
struct Request {
  uint32_t Warp = 0;
  uint32_t Mask = 0;
  uint32_t Bytes = 0;
  uint32_t Instruction = 0;          // index, kept for the report of a conflict
  const uint64_t *Address = nullptr; // [32]
};

/// Shared memory of one CTA: reads of bytes never written, accesses by
/// different threads that no barrier orders (one of them a write), and cp.async
/// data used before the thread that asked for it has waited and the others have
/// met it at a barrier. All functions that return bool: false means `found` is
/// filled in. Happens-before comes from barrier() and warpSync() alone.
class SharedChecker {
public:
  SharedChecker();
  ~SharedChecker();

  /// A new CTA with `bytes` of shared memory (static and dynamic).
  void reset(uint32_t bytes, uint32_t warps);

  bool read(const Request &request, Finding &found);
  bool write(const Request &request, Finding &found);
  /// Atomics order themselves among each other, not with plain accesses.
  bool atomic(const Request &request, Finding &found);

  /// The named warps (bit i is warp i) met at a barrier.
  void barrier(uint64_t warps);
  /// Lanes of `mask` met at bar.warp.sync (or another .sync op).
  void warpSync(uint32_t warp, uint32_t mask);

  /// cp.async: request.Address are shared destinations, source[l] the global
  /// addresses, sourceBytes[l] how much is read of each (the rest is zero).
  bool copy(const Request &request, const uint64_t *source,
            const uint32_t *sourceBytes, Finding &found);
  void commit(uint32_t warp, uint32_t mask);
  /// All but the newest `pending` committed groups have completed.
  void waitGroup(uint32_t warp, uint32_t mask, uint32_t pending);
  /// Everything has completed, committed or not.
  void waitAll(uint32_t warp, uint32_t mask);
  /// True while any copy of this CTA is not known to have completed: global
  /// stores of the CTA are then shown to globalWrite().
  bool copiesPending() const { return Pending != 0; }
  /// A store to global memory: may not touch a pending copy's source.
  bool globalWrite(const Request &request, Finding &found);
  /// A warp's lanes of `mask` exit; a copy that was never waited for is found.
  bool exit(uint32_t warp, uint32_t mask, Finding &found);

private:
  struct State;
  std::unique_ptr<State> Self;
  uint32_t Pending = 0;
};

} // namespace kvc::sim

#endif // KVC_RUNTIME_SIM_CHECKS_H

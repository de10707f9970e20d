// Loads, stores, fences and hints.
#include "runtime/sim/Ops.h"

#include <atomic>
#include <type_traits>

namespace kvc::sim {

/// Sign-extended where the element is signed, through the register's own
/// signed type.
template <class R, class M> static R widened(M value) {
  if constexpr (std::is_signed_v<M>)
    return R(std::make_signed_t<R>(value));
  else
    return R(value);
}

/// Moves Count elements of M, sign- or zero-extended to registers of R.
template <class M, class R>
static void runLoad(Warp &warp, const Inst &inst, uint32_t mask) {
  uint64_t address[Lanes];
  addresses(warp, inst, 8, address);
  uint8_t *host[Lanes];
  if (!access(warp, inst, mask, inst.Where, address, sizeof(M) * inst.Count,
              Mode::Read, host))
    return;
  if (inst.Count == 1) {
    R *to = warp.reg<R>(inst.Op[0]);
    forLanes(mask, [&](uint32_t lane) {
      M value;
      std::memcpy(&value, host[lane], sizeof(M));
      to[lane] = widened<R>(value);
    });
    return;
  }
  for (uint32_t e = 0; e != inst.Count; ++e) {
    R *to = warp.reg<R>(inst.Op[e]);
    forLanes(mask, [&](uint32_t lane) {
      M value;
      std::memcpy(&value, host[lane] + e * sizeof(M), sizeof(M));
      to[lane] = widened<R>(value);
    });
  }
}

template <class M, class R>
static void runStore(Warp &warp, const Inst &inst, uint32_t mask) {
  if (inst.Releases)
    warp.Block->fence();
  uint64_t address[Lanes];
  addresses(warp, inst, 8, address);
  uint8_t *host[Lanes];
  if (!access(warp, inst, mask, inst.Where, address, sizeof(M) * inst.Count,
              Mode::Write, host))
    return;
  for (uint32_t e = 0; e != inst.Count; ++e) {
    const R *from = warp.reg<R>(inst.Op[e]);
    forLanes(mask, [&](uint32_t lane) {
      M value = M(from[lane]);
      std::memcpy(host[lane] + e * sizeof(M), &value, sizeof(M));
    });
  }
}

namespace {

struct Bits128 {
  uint64_t Half[2];
};

} // namespace

/// By the type in memory and the size of the registers.
template <template <class, class> class Pick>
static Handler byType(Type type, unsigned bytes) {
  switch (type) {
  case Type::B8:
  case Type::U8:
    return Pick<uint8_t, void>::run(bytes);
  case Type::S8:
    return Pick<int8_t, void>::run(bytes);
  case Type::S16:
    return Pick<int16_t, void>::run(bytes);
  case Type::S32:
    return Pick<int32_t, void>::run(bytes);
  default:
    break;
  }
  switch (bytesOf(type)) {
  case 2:
    return Pick<uint16_t, void>::run(bytes);
  case 4:
    return Pick<uint32_t, void>::run(bytes);
  case 8:
    return Pick<uint64_t, void>::run(bytes);
  default:
    return nullptr;
  }
}
namespace {

template <class M, class> struct PickLoad {
  static Handler run(unsigned bytes) {
    switch (bytes) {
    case 2:
      return runLoad<M, uint16_t>;
    case 4:
      return runLoad<M, uint32_t>;
    case 8:
      return runLoad<M, uint64_t>;
    default:
      return nullptr;
    }
  }
};
template <class M, class> struct PickStore {
  static Handler run(unsigned bytes) {
    switch (bytes) {
    case 2:
      return runStore<M, uint16_t>;
    case 4:
      return runStore<M, uint32_t>;
    case 8:
      return runStore<M, uint64_t>;
    default:
      return nullptr;
    }
  }
};

} // namespace

/// Semantics, scopes and cache hints: they order nothing here, because each
/// access is done where it stands. Returns how many operands they add.
static unsigned takeHints(Decoder &d) {
  for (const char *name :
       {"weak", "relaxed", "acquire", "release", "volatile", "mmio", "nc", "ca",
        "cg", "cs", "lu", "cv", "wb", "wt"}) {
    bool found = d.take(name);
    d.I.Releases |= found && std::string_view(name) == "release";
  }
  d.takeScope();
  for (const char *name :
       {"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first",
        "L1::evict_last", "L1::no_allocate", "L2::evict_first",
        "L2::evict_last", "L2::evict_normal", "L2::64B", "L2::128B",
        "L2::256B"})
    d.take(name);
  return d.take("L2::cache_hint") ? 1 : 0;
}

static unsigned takeVector(Decoder &d) {
  return d.take("v2") ? 2 : d.take("v4") ? 4 : d.take("v8") ? 8 : 1;
}

static bool decodeAccess(Decoder &d, bool load) {
  unsigned hints = takeHints(d);
  Space space = d.takeSpace();
  unsigned count = takeVector(d);
  Type type = d.takeType();
  if (!d.expect(2 + hints))
    return false;
  if (hints)
    d.src(2, Type::B64);
  if (bytesOf(type) == 0 || count * bytesOf(type) > 32)
    return false;
  std::vector<const Operand *> parts = d.elements(load ? 0 : 1);
  if (parts.size() != count)
    return d.fail("a vector of " + std::to_string(parts.size()) +
                  " elements where the type has " + std::to_string(count));
  d.I.Count = uint8_t(count);
  d.I.Bytes = uint8_t(bytesOf(type));
  d.address(load ? 1 : 0, 8, space);
  unsigned bytes = 0;
  for (unsigned e = 0; e != count; ++e) {
    unsigned wide = 0;
    d.I.Op[e] = load ? d.dstWide(*parts[e], type, wide)
                     : d.srcWide(*parts[e], type, wide);
    if (!d.ok())
      return false;
    // "_" has no size of its own.
    if (parts[e]->Is == Operand::Sink && bytes)
      d.I.Op[e] = d.Function.newSlot(wide = bytes);
    if (bytes && wide != bytes)
      return d.fail("elements in registers of different sizes");
    bytes = wide;
  }
  if (type == Type::B128)
    d.I.Run = count == 1 ? load ? runLoad<Bits128, Bits128>
                                : runStore<Bits128, Bits128>
                         : nullptr;
  else
    d.I.Run =
        load ? byType<PickLoad>(type, bytes) : byType<PickStore>(type, bytes);
  if (!load && (space == Space::Const || space == Space::Param))
    return d.fail("stores to this space do not exist");
  return true;
}

static void runNothing(Warp &, const Inst &, uint32_t) {}

/// Kind: 1 where the scope is more than the CTA.
static void runFence(Warp &warp, const Inst &inst, uint32_t) {
  if (inst.Kind)
    warp.Block->fence();
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

static void runZero64(Warp &warp, const Inst &inst, uint32_t mask) {
  uint64_t result[Lanes] = {};
  commit(warp, inst.Op[0], result, mask);
}

bool decodeLoad(Decoder &d) { return decodeAccess(d, true); }
bool decodeStore(Decoder &d) { return decodeAccess(d, false); }

/// prefetch, prefetchu, applypriority and discard: checked for their syntax.
bool decodePrefetch(Decoder &d) {
  Space space = d.takeSpace();
  for (const char *name : {"L1", "L2", "L2::evict_last", "L2::evict_normal"})
    d.take(name);
  bool sized = d.base() == "applypriority" || d.base() == "discard";
  if (!d.expect(sized ? 2 : 1))
    return false;
  d.address(0, 8, space);
  d.I.Run = runNothing;
  return true;
}

/// A policy is an opaque 64-bit value that hints take.
bool decodeCreatePolicy(Decoder &d) {
  if (!d.take("fractional"))
    return d.fail("only .fractional is known");
  for (const char *name : {"L2::evict_last", "L2::evict_normal",
                           "L2::evict_first", "L2::evict_unchanged"})
    d.take(name);
  d.take("L2::evict_unchanged");
  d.take("L2::evict_first");
  if (d.takeType() != Type::B64 || !d.expect(1, 2))
    return false;
  d.I.Op[0] = d.dst(0, Type::B64);
  if (d.operands() == 2)
    d.src(1, Type::F32);
  d.I.Run = runZero64;
  return true;
}

/// membar and fence. One thread of the host runs a CTA, and its accesses are
/// done in order; other CTAs may be on other threads.
bool decodeFence(Decoder &d) {
  d.I.Kind = !d.has("cta");
  if (d.base() == "membar") {
    bool known = d.take("cta") || d.take("gl") || d.take("sys");
    if (!known)
      return d.fail("the scope is missing");
  } else if (d.take("proxy")) {
    bool known = d.take("async") || d.take("alias");
    if (!known)
      return d.fail("the proxy is not known");
    d.takeSpace();
  } else if (d.take("mbarrier_init")) {
    d.take("release");
    d.takeScope();
  } else {
    bool known = d.take("sc") || d.take("acq_rel") || d.take("acquire") ||
                 d.take("release");
    (void)known; // fence.gpu is fence.acq_rel.gpu
    d.takeScope();
  }
  d.I.Run = runFence;
  return d.expect(0);
}

} // namespace kvc::sim

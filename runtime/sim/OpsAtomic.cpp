// atom and red.
#include "runtime/sim/Ops.h"

#include <algorithm>
#include <type_traits>

namespace kvc::sim {

namespace {

enum Operation : uint8_t { And, Or, Xor, Cas, Exch, Add, Inc, Dec, Min, Max };

} // namespace

template <class T>
static T integerResult(uint8_t op, bool isSign, T old, T b, T c) {
  using S = std::make_signed_t<T>;
  switch (op) {
  case And:
    return old & b;
  case Or:
    return old | b;
  case Xor:
    return old ^ b;
  case Cas:
    return old == b ? c : old;
  case Exch:
    return b;
  case Add:
    return T(old + b);
  case Inc:
    return old >= b ? 0 : T(old + 1);
  case Dec:
    return old == 0 || old > b ? b : T(old - 1);
  case Min:
    return isSign ? T(std::min(S(old), S(b))) : std::min(old, b);
  default:
    return isSign ? T(std::max(S(old), S(b))) : std::max(old, b);
  }
}

template <class T> static T result(const Inst &inst, T old, T b, T c) {
  Type type = Type(inst.Target);
  if constexpr (sizeof(T) == 8) {
    if (type == Type::F64)
      return bitsOf(addF64(doubleOf(old), doubleOf(b), Round::Nearest));
  } else if constexpr (sizeof(T) == 4) {
    switch (type) {
    case Type::F32:
      // The ISA: global memory flushes no subnormals; neither does this.
      return addF32(old, b, {});
    case Type::F16x2:
    case Type::BF16x2: {
      Half format = type == Type::F16x2 ? Half::F16 : Half::Bf16;
      auto half = [&](unsigned shift) {
        uint16_t x = uint16_t(old >> shift), y = uint16_t(b >> shift);
        return inst.Kind == Add   ? addHalf(format, x, y, {})
               : inst.Kind == Min ? minHalf(format, x, y, {})
                                  : maxHalf(format, x, y, {});
      };
      return pack16(half(0), half(16));
    }
    default:
      break;
    }
  } else {
    if (type == Type::F16 || type == Type::BF16)
      return addHalf(type == Type::F16 ? Half::F16 : Half::Bf16, old, b, {});
  }
  return integerResult(inst.Kind, isSigned(type), old, b, c);
}

/// Lanes one after the other. CTAs on other host threads may do the same.
template <class T>
static void runAtomic(Warp &warp, const Inst &inst, uint32_t mask) {
  if (inst.Releases)
    warp.Block->fence();
  uint64_t address[Lanes];
  addresses(warp, inst, 8, address);
  uint8_t *host[Lanes];
  if (!access(warp, inst, mask, inst.Where, address, sizeof(T), Mode::Atomic,
              host))
    return;
  const T *b = warp.reg<T>(inst.Op[1]);
  const T *c = warp.reg<T>(inst.Op[2]);
  T *d = inst.Op[0] == NoSlot ? nullptr : warp.reg<T>(inst.Op[0]);
  forLanes(mask, [&](uint32_t lane) {
    T *at = reinterpret_cast<T *>(host[lane]);
    T old = __atomic_load_n(at, __ATOMIC_RELAXED);
    T operand = b[lane], other = c[lane];
    while (!__atomic_compare_exchange_n(
        at, &old, result<T>(inst, old, operand, other), false, __ATOMIC_SEQ_CST,
        __ATOMIC_RELAXED)) {
    }
    if (d)
      d[lane] = old;
  });
}

static bool exists(uint8_t op, Type type) {
  switch (op) {
  case And:
  case Or:
  case Xor:
  case Exch:
    return type == Type::B32 || type == Type::B64;
  case Cas:
    return type == Type::B16 || type == Type::B32 || type == Type::B64;
  case Add:
    return type == Type::U32 || type == Type::S32 || type == Type::U64 ||
           type == Type::F32 || type == Type::F64 || type == Type::F16 ||
           type == Type::BF16 || type == Type::F16x2 || type == Type::BF16x2;
  case Inc:
  case Dec:
    return type == Type::U32;
  default:
    return type == Type::U32 || type == Type::S32 || type == Type::U64 ||
           type == Type::S64 || type == Type::F16x2 || type == Type::BF16x2;
  }
}

bool decodeAtomic(Decoder &d) {
  bool red = d.base() == "red";
  for (const char *name : {"relaxed", "acquire", "release", "acq_rel"})
    if (d.take(name)) {
      std::string_view semantics = name;
      d.I.Releases = semantics == "release" || semantics == "acq_rel";
      break;
    }
  d.takeScope();
  Space space = d.takeSpace();
  static constexpr std::pair<const char *, uint8_t> names[] = {
      {"and", And}, {"or", Or},   {"xor", Xor}, {"cas", Cas}, {"exch", Exch},
      {"add", Add}, {"inc", Inc}, {"dec", Dec}, {"min", Min}, {"max", Max}};
  bool found = false;
  for (auto [name, op] : names)
    if (!found && d.take(name)) {
      d.I.Kind = op;
      found = true;
    }
  if (!found)
    return d.fail("the operation is missing");
  bool unflushed = d.take("noftz");
  bool hint = d.take("L2::cache_hint");
  Type type = d.takeType();
  bool half = type == Type::F16 || type == Type::BF16 || type == Type::F16x2 ||
              type == Type::BF16x2;
  if (!exists(d.I.Kind, type) || half != unflushed ||
      (red && (d.I.Kind == Cas || d.I.Kind == Exch)))
    return d.fail("the operation does not exist for this type");
  if (space != Space::Generic && space != Space::Global &&
      space != Space::Shared)
    return d.fail("the space has no atomics");
  size_t at = red ? 0 : 1;
  bool cas = d.I.Kind == Cas;
  if (!d.expect(at + 2 + cas + hint))
    return false;
  d.I.Target = uint32_t(type);
  d.I.Bytes = uint8_t(bytesOf(type));
  d.I.Op[0] = red ? NoSlot : d.dst(0, type);
  d.address(at, 8, space);
  d.I.Op[1] = d.src(at + 1, type);
  d.I.Op[2] = cas ? d.src(at + 2, type) : d.I.Op[1];
  if (hint)
    d.src(at + 2 + cas, Type::B64);
  d.I.Run = bytesOf(type) == 2   ? runAtomic<uint16_t>
            : bytesOf(type) == 4 ? runAtomic<uint32_t>
                                 : runAtomic<uint64_t>;
  return true;
}

} // namespace kvc::sim

// Integer and bit instructions.
#include "runtime/sim/Numerics.h"

#include <algorithm>

namespace kvc::sim {

static uint64_t maskOf(unsigned bits) {
  return bits >= 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
}

static uint64_t extend(uint64_t value, unsigned bits, bool isSigned) {
  value &= maskOf(bits);
  if (isSigned && value >> (bits - 1) & 1)
    value |= ~maskOf(bits);
  return value;
}

uint32_t prmt(uint32_t a, uint32_t b, uint32_t selector, PrmtMode mode) {
  uint64_t bytes = uint64_t(b) << 32 | a;
  unsigned control = selector & 3;
  uint32_t result = 0;
  for (unsigned i = 0; i != 4; ++i) {
    unsigned index = 0;
    bool replicate = false;
    switch (mode) {
    case PrmtMode::Index:
      index = selector >> (4 * i) & 7;
      replicate = selector >> (4 * i) & 8;
      break;
    case PrmtMode::F4e:
      index = control + i;
      break;
    case PrmtMode::B4e:
      index = (control - i) & 7;
      break;
    case PrmtMode::Rc8:
      index = control;
      break;
    case PrmtMode::Ecl:
      index = std::max(i, control);
      break;
    case PrmtMode::Ecr:
      index = std::min(i, control);
      break;
    case PrmtMode::Rc16:
      index = (control & 1) * 2 + (i & 1);
      break;
    }
    uint32_t byte = uint32_t(bytes >> (8 * index)) & 0xFF;
    if (replicate)
      byte = byte & 0x80 ? 0xFF : 0;
    result |= byte << (8 * i);
  }
  return result;
}

uint64_t bfe(uint64_t a, uint32_t position, uint32_t length, unsigned bits,
             bool isSigned) {
  unsigned start = position & 0xFF, count = length & 0xFF;
  a &= maskOf(bits);
  uint64_t field = start < bits ? a >> start : 0;
  if (count == 0)
    return 0;
  unsigned last = std::min(start + count - 1, bits - 1);
  bool sign = isSigned && (a >> last & 1);
  // Bits beyond the field, or beyond the source, are the sign.
  unsigned present = start < bits ? std::min(count, bits - start) : 0;
  field &= maskOf(present);
  if (sign)
    field |= ~maskOf(present);
  return field & maskOf(bits);
}

uint64_t bfi(uint64_t a, uint64_t b, uint32_t position, uint32_t length,
             unsigned bits) {
  unsigned start = position & 0xFF, count = length & 0xFF;
  if (start >= bits || count == 0)
    return b & maskOf(bits);
  uint64_t mask = maskOf(std::min(count, bits - start)) << start;
  return ((b & ~mask) | (a << start & mask)) & maskOf(bits);
}

uint32_t bfind(uint64_t a, unsigned bits, bool isSigned, bool shiftAmount) {
  a = extend(a, bits, isSigned);
  if (isSigned && a >> 63)
    a = ~a;
  if (a == 0)
    return 0xFFFFFFFFu;
  unsigned top = 63 - unsigned(__builtin_clzll(a));
  return shiftAmount ? bits - 1 - top : top;
}

uint32_t shf(uint32_t low, uint32_t high, uint32_t shift, bool left,
             bool wrap) {
  unsigned count = wrap ? shift & 31 : std::min(shift, 32u);
  uint64_t value = uint64_t(high) << 32 | low;
  return left ? uint32_t(value >> (32 - count)) : uint32_t(value >> count);
}

uint32_t bmsk(uint32_t position, uint32_t width, bool clamp) {
  unsigned start = position & 31, count = width & 31;
  uint32_t from = ~0u << start;
  uint32_t past = start + count >= 32 ? 0 : ~0u << (start + count);
  if (clamp && position >= 32)
    from = 0;
  if (clamp && width >= 32)
    past = 0;
  return from & ~past;
}

uint32_t szext(uint32_t a, uint32_t bits, bool isSigned, bool clamp) {
  if (clamp && bits >= 32)
    return a;
  unsigned count = bits & 31;
  if (count == 0)
    return 0;
  return uint32_t(extend(a, count, isSigned));
}

uint64_t mulHi(uint64_t a, uint64_t b, unsigned bits, bool isSigned) {
  a = extend(a, bits, isSigned);
  b = extend(b, bits, isSigned);
  if (isSigned) {
    __int128 product = __int128(int64_t(a)) * int64_t(b);
    return uint64_t(product >> bits) & maskOf(bits);
  }
  unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return uint64_t(product >> bits) & maskOf(bits);
}

uint32_t mul24(uint32_t a, uint32_t b, bool isSigned, bool high) {
  uint64_t product = extend(a, 24, isSigned) * extend(b, 24, isSigned);
  return uint32_t(high ? product >> 16 : product);
}

uint64_t shiftLeft(uint64_t a, uint32_t shift, unsigned bits) {
  return shift >= bits ? 0 : a << shift & maskOf(bits);
}

uint64_t shiftRight(uint64_t a, uint32_t shift, unsigned bits, bool isSigned) {
  a = extend(a, bits, isSigned);
  if (!isSigned)
    return shift >= bits ? 0 : a >> shift;
  return uint64_t(int64_t(a) >> std::min(shift, bits - 1)) & maskOf(bits);
}

uint64_t divide(uint64_t a, uint64_t b, unsigned bits, bool isSigned) {
  a = extend(a, bits, isSigned);
  b = extend(b, bits, isSigned);
  if (b == 0)
    return maskOf(bits);
  if (!isSigned)
    return a / b;
  uint64_t quotient =
      b == ~uint64_t(0) ? 0 - a : uint64_t(int64_t(a) / int64_t(b));
  return quotient & maskOf(bits);
}

uint64_t remainder(uint64_t a, uint64_t b, unsigned bits, bool isSigned) {
  a = extend(a, bits, isSigned);
  b = extend(b, bits, isSigned);
  if (b == 0)
    return a & maskOf(bits);
  if (!isSigned)
    return a % b;
  if (b == ~uint64_t(0))
    return 0;
  return uint64_t(int64_t(a) % int64_t(b)) & maskOf(bits);
}

/// Byte `i` of a register.
static uint32_t byteOf(uint32_t value, unsigned i, bool isSigned) {
  return uint32_t(extend(value >> (8 * i), 8, isSigned));
}

uint32_t dp4a(uint32_t a, uint32_t b, uint32_t c, bool aSigned, bool bSigned) {
  for (unsigned i = 0; i != 4; ++i)
    c += byteOf(a, i, aSigned) * byteOf(b, i, bSigned);
  return c;
}

uint32_t dp2a(uint32_t a, uint32_t b, uint32_t c, bool aSigned, bool bSigned,
              bool high) {
  for (unsigned i = 0; i != 2; ++i)
    c += uint32_t(extend(a >> (16 * i), 16, aSigned)) *
         byteOf(b, i + (high ? 2 : 0), bSigned);
  return c;
}

uint32_t brev(uint32_t a) {
  uint32_t result = 0;
  for (unsigned bit = 0; bit != 32; ++bit)
    result |= (a >> bit & 1) << (31 - bit);
  return result;
}

} // namespace kvc::sim

// The arithmetic of PTX instructions as pure functions: what an instruction
// computes from bits, with no machine around it. Semantics are those of the PTX
// ISA; where it leaves room (approximations, sums of tensor cores, division by
// zero) the comment of the function says what is modelled here.
//
// NaN: every f32, f16 and bf16 result that is a NaN is the canonical one
// (0x7fffffff, 0x7fff), as the ISA says of the hardware; f64 keeps a payload.
#ifndef KVC_RUNTIME_SIM_NUMERICS_H
#define KVC_RUNTIME_SIM_NUMERICS_H

#include <cstdint>
#include <cstring>

namespace kvc::sim {

/// .rn .rz .rm .rp (and .rni .rzi .rmi .rpi); Away is .rna of cvt to tf32.
enum class Round : uint8_t { Nearest, Zero, Down, Up, Away };

inline uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
inline uint64_t bitsOf(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
inline float floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
inline double doubleOf(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

constexpr uint32_t CanonicalNan = 0x7FFFFFFF;
constexpr uint16_t CanonicalNan16 = 0x7FFF; // of f16 and of bf16

inline bool isNanBits(uint32_t bits) { return (bits << 1) > 0xFF000000u; }
inline uint32_t canonical(uint32_t bits) {
  return isNanBits(bits) ? CanonicalNan : bits;
}
/// .ftz: a subnormal becomes the zero of its sign, going in and coming out.
inline uint32_t flush(uint32_t bits) {
  return (bits & 0x7F800000u) == 0 ? bits & 0x80000000u : bits;
}
/// .sat: to [0, 1]; NaN and -0 become +0.
inline uint32_t saturate(uint32_t bits) {
  if (isNanBits(bits) || bits >> 31)
    return 0;
  return bits > 0x3F800000u ? 0x3F800000u : bits;
}

// f32 arithmetic, one rounding. Bits in, bits out.
struct F32Mode {
  Round round = Round::Nearest;
  bool ftz = false;
  bool sat = false;
};
uint32_t addF32(uint32_t a, uint32_t b, F32Mode mode);
uint32_t subF32(uint32_t a, uint32_t b, F32Mode mode);
uint32_t mulF32(uint32_t a, uint32_t b, F32Mode mode);
uint32_t fmaF32(uint32_t a, uint32_t b, uint32_t c, F32Mode mode);
uint32_t divF32(uint32_t a, uint32_t b, F32Mode mode);
uint32_t sqrtF32(uint32_t a, F32Mode mode);
uint32_t rcpF32(uint32_t a, F32Mode mode);

// The same for a whole warp with .rn and neither .ftz nor .sat, the common
// case, in vector registers; `out` may be one of the inputs.
void addF32Warp(const uint32_t *a, const uint32_t *b, uint32_t *out);
void subF32Warp(const uint32_t *a, const uint32_t *b, uint32_t *out);
void mulF32Warp(const uint32_t *a, const uint32_t *b, uint32_t *out);
void fmaF32Warp(const uint32_t *a, const uint32_t *b, const uint32_t *c,
                uint32_t *out);

// f64 arithmetic: any rounding, one rounding.
double addF64(double a, double b, Round round);
double mulF64(double a, double b, Round round);
double fmaF64(double a, double b, double c, Round round);
double divF64(double a, double b, Round round);
double sqrtF64(double a, Round round);

/// min and max: a NaN operand gives the other operand unless `nan` (.NaN) is
/// set, two give the canonical NaN; -0 is less than +0. xorsign: the smaller or
/// larger magnitude with the exclusive or of both signs.
struct MinMaxMode {
  bool ftz = false;
  bool nan = false;
  bool xorsign = false;
};
uint32_t minF32(uint32_t a, uint32_t b, MinMaxMode mode);
uint32_t maxF32(uint32_t a, uint32_t b, MinMaxMode mode);
double minF64(double a, double b);
double maxF64(double a, double b);

// Approximations: computed in double precision and rounded to nearest, which
// is within the ISA's stated error of each, but hardware's last bits differ.
// Special values are the ISA's. With ftz, subnormals are zeros on both sides;
// without it rcp, rsqrt, sqrt, ex2, lg2, div.approx take subnormals as they
// are; sin and cos always flush subnormal operands to signed zero.
uint32_t ex2Approx(uint32_t a, bool ftz);
uint32_t lg2Approx(uint32_t a, bool ftz);
uint32_t rcpApprox(uint32_t a, bool ftz);
uint32_t rsqrtApprox(uint32_t a, bool ftz);
uint32_t sqrtApprox(uint32_t a, bool ftz);
uint32_t sinApprox(uint32_t a, bool ftz);
uint32_t cosApprox(uint32_t a, bool ftz);
uint32_t tanhApprox(uint32_t a);
/// div.approx: 0 (NaN for an infinite a) where 2^126 < |b| < 2^128.
uint32_t divApprox(uint32_t a, uint32_t b, bool ftz);
/// div.full: defined over the whole range.
uint32_t divFull(uint32_t a, uint32_t b, bool ftz);

// Small formats. Widening is exact.
/// IEEE half and bfloat16.
enum class Half : uint8_t { F16, Bf16 };
uint32_t f16ToF32(uint16_t bits);
inline uint32_t bf16ToF32(uint16_t bits) { return uint32_t(bits) << 16; }
uint32_t e4m3ToF32(uint8_t bits); // 0x7f and 0xff are NaN, there is no infinity
uint32_t e5m2ToF32(uint8_t bits);
inline uint32_t halfToF32(Half format, uint16_t bits) {
  return format == Half::F16 ? f16ToF32(bits) : bf16ToF32(bits);
}

/// cvt from f32. relu: negative values (-0 too) become +0, NaN the canonical
/// NaN. satfinite: an infinity or overflow becomes the largest finite value
/// (fp8 conversions always saturate so; NaN stays NaN: 0x7f).
struct NarrowMode {
  Round round = Round::Nearest;
  bool relu = false;
  bool satfinite = false;
};
uint16_t f32ToF16(uint32_t bits, NarrowMode mode);
uint16_t f32ToBf16(uint32_t bits, NarrowMode mode);
inline uint16_t f32ToHalf(Half format, uint32_t bits, NarrowMode mode) {
  return format == Half::F16 ? f32ToF16(bits, mode) : f32ToBf16(bits, mode);
}
uint8_t f32ToE4m3(uint32_t bits, bool relu);
uint8_t f32ToE5m2(uint32_t bits, bool relu);
/// tf32 in an f32's bits: the low 13 bits are zero.
uint32_t f32ToTf32(uint32_t bits, NarrowMode mode);
uint16_t f64ToF16(double value, Round round);
uint32_t f64ToF32(double value, Round round, bool ftz);
/// A register with two results: `high` in bits 16..31 (of fp8: 8..15), which is
/// the first source operand of cvt .f16x2/.bf16x2/.e4m3x2/.e5m2x2.
inline uint32_t pack16(uint16_t low, uint16_t high) {
  return uint32_t(high) << 16 | low;
}
inline uint16_t pack8(uint8_t low, uint8_t high) {
  return uint16_t(high << 8 | low);
}

// f16 and bf16 arithmetic, one value; .rn. x2 forms apply it to both halves.
struct HalfMode {
  bool ftz = false;
  bool sat = false;
  bool relu = false; // of fma
};
uint16_t addHalf(Half format, uint16_t a, uint16_t b, HalfMode mode);
uint16_t subHalf(Half format, uint16_t a, uint16_t b, HalfMode mode);
uint16_t mulHalf(Half format, uint16_t a, uint16_t b, HalfMode mode);
uint16_t fmaHalf(Half format, uint16_t a, uint16_t b, uint16_t c,
                 HalfMode mode);
uint16_t minHalf(Half format, uint16_t a, uint16_t b, MinMaxMode mode);
uint16_t maxHalf(Half format, uint16_t a, uint16_t b, MinMaxMode mode);
/// ex2.approx and tanh.approx of f16/bf16; ex2.approx.ftz.bf16 flushes.
uint16_t ex2Half(Half format, uint16_t a, bool ftz);
uint16_t tanhHalf(Half format, uint16_t a);

/// cvt of a floating value to an integer of `bits` bits (8, 16, 32, 64): rounds
/// and clamps. NaN gives 0, or 1 << (bits - 1) where the source is f64 or the
/// destination has 64 bits (`wide`, as the ISA says). The result is sign- or
/// zero-extended to 64 bits.
uint64_t floatToInteger(double value, unsigned bits, bool isSigned, Round round,
                        bool sourceIsF64);
/// cvt of an integer (already extended to 64 bits) to a floating type.
uint32_t integerToF32(uint64_t value, bool isSigned, Round round);
double integerToF64(uint64_t value, bool isSigned, Round round);
uint16_t integerToHalf(Half format, uint64_t value, bool isSigned, Round round);
/// cvt.rXi.f32.f32 and the f64 form: to an integral value.
uint32_t roundToIntegral(uint32_t bits, Round round, bool ftz);
double roundToIntegralF64(double value, Round round);

// Integers.
enum class PrmtMode : uint8_t { Index, F4e, B4e, Rc8, Ecl, Ecr, Rc16 };
uint32_t prmt(uint32_t a, uint32_t b, uint32_t selector, PrmtMode mode);
inline uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint8_t table) {
  uint32_t result = 0;
  for (unsigned row = 0; row != 8; ++row)
    if (table >> row & 1)
      result |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
  return result;
}
uint64_t bfe(uint64_t a, uint32_t position, uint32_t length, unsigned bits,
             bool isSigned);
/// Inserts the low `length` bits of `a` into `b` at `position`.
uint64_t bfi(uint64_t a, uint64_t b, uint32_t position, uint32_t length,
             unsigned bits);
/// The most significant non-sign bit, or 0xffffffff; shiftAmount: the shift
/// that brings it to the top.
uint32_t bfind(uint64_t a, unsigned bits, bool isSigned, bool shiftAmount);
/// shf.l / shf.r of the 64 bits high:low; wrap: the shift modulo 32, otherwise
/// clamped to 32.
uint32_t shf(uint32_t low, uint32_t high, uint32_t shift, bool left, bool wrap);
uint32_t bmsk(uint32_t position, uint32_t width, bool clamp);
uint32_t szext(uint32_t a, uint32_t bits, bool isSigned, bool clamp);
uint64_t mulHi(uint64_t a, uint64_t b, unsigned bits, bool isSigned);
uint32_t mul24(uint32_t a, uint32_t b, bool isSigned, bool high);
/// Shifts clamp at the width: shl and shr.u give 0, shr.s the sign.
uint64_t shiftLeft(uint64_t a, uint32_t shift, unsigned bits);
uint64_t shiftRight(uint64_t a, uint32_t shift, unsigned bits, bool isSigned);
/// Division of integers extended to 64 bits. By zero, which the ISA leaves
/// unspecified, the quotient is all ones and the remainder the dividend, as
/// the hardware gives for u32; the smallest value by -1 is itself, remainder 0.
uint64_t divide(uint64_t a, uint64_t b, unsigned bits, bool isSigned);
uint64_t remainder(uint64_t a, uint64_t b, unsigned bits, bool isSigned);
uint32_t dp4a(uint32_t a, uint32_t b, uint32_t c, bool aSigned, bool bSigned);
uint32_t dp2a(uint32_t a, uint32_t b, uint32_t c, bool aSigned, bool bSigned,
              bool high);
uint32_t brev(uint32_t a);

// mma.sync.aligned.m16n8kK.row.col, a whole warp at once.
//
// Fragments are the ISA's: a[i], b[i], c[i], d[i] point at the 32 lanes of the
// operand's i-th register. With g = lane / 4, q = lane % 4 and 16-bit elements
// at k16: A's registers hold rows g, g+8, g, g+8 and k 2q, 2q+1 (+8 in the last
// two); B's k 2q, 2q+1 (+8) of column g; C's rows g, g, g+8, g+8 and columns
// 2q, 2q+1.
//
// Floating sums: products are exact, and every element of D is
//   d = C; for k ascending: d = fma(A[row][k], B[k][column], d)
// in f32, each step rounded to nearest even, subnormals kept. Hardware adds the
// products of a k-step aligned to the largest exponent with a few guard bits
// and truncates, in an order that NVIDIA does not document; both stay within
// K * 2^-23 * sum |a*b| + |c|, and results that are exact (small integers)
// agree bit by bit. With f16 accumulators the sum is kept in f32 and rounded
// once. NaN results are canonical. Integer sums are exact, modulo 2^32, or
// clamped with .satfinite.
enum class MmaElement : uint8_t { F16, Bf16, Tf32, E4m3, E5m2, S8, U8 };
enum class MmaSum : uint8_t { F32, F16, S32 };
struct Mma {
  MmaElement a = MmaElement::Bf16;
  MmaElement b = MmaElement::Bf16;
  MmaSum sum = MmaSum::F32;
  uint8_t k = 16;
  bool satfinite = false;

  /// Registers of each operand, 0 where the form does not exist.
  unsigned aRegisters() const;
  unsigned bRegisters() const;
  unsigned sumRegisters() const { return sum == MmaSum::F16 ? 2 : 4; }
};
/// Whether the ISA has the form.
bool mmaExists(const Mma &form);
/// d may be the same registers as c, or as a or b.
void mma(const Mma &form, const uint32_t *const *a, const uint32_t *const *b,
         const uint32_t *const *c, uint32_t *const *d);

} // namespace kvc::sim

#endif // KVC_RUNTIME_SIM_NUMERICS_H

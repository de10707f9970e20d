// mma.sync: fragments are unpacked to f32 (or s32) planes once, the sums run
// over columns of 16 rows, which is one AVX-512 register or two AVX2 ones.
#include "runtime/sim/Numerics.h"

#include <algorithm>
#include <iterator>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#if !defined(__clang__)
// g++ 12 takes its own _mm512_undefined_*() for a mistake.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#endif

// The same source is compiled for each instruction set and chosen at run time;
// a fused multiply-add is one rounding in all of them, so bits agree.
#if defined(__x86_64__)
#define KVC_SIM_X86 1
#define KVC_SIM_AVX2 __attribute__((target("avx2,fma")))
#define KVC_SIM_AVX512                                                         \
  __attribute__((target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")))
#else
#define KVC_SIM_X86 0
#endif
#define KVC_SIM_INLINE inline __attribute__((always_inline))

namespace kvc::sim {

static unsigned elementsOf(MmaElement element) {
  switch (element) {
  case MmaElement::F16:
  case MmaElement::Bf16:
    return 2;
  case MmaElement::Tf32:
    return 1;
  case MmaElement::E4m3:
  case MmaElement::E5m2:
  case MmaElement::S8:
  case MmaElement::U8:
    return 4;
  }
  return 0;
}

unsigned Mma::aRegisters() const { return 2 * bRegisters(); }
unsigned Mma::bRegisters() const { return k / (4 * elementsOf(a)); }

bool mmaExists(const Mma &form) {
  auto isFp8 = [](MmaElement element) {
    return element == MmaElement::E4m3 || element == MmaElement::E5m2;
  };
  auto isByte = [](MmaElement element) {
    return element == MmaElement::S8 || element == MmaElement::U8;
  };
  if (form.satfinite && form.sum != MmaSum::S32)
    return false;
  switch (form.sum) {
  case MmaSum::F16:
    return form.a == MmaElement::F16 && form.b == MmaElement::F16 &&
           (form.k == 8 || form.k == 16);
  case MmaSum::S32:
    return isByte(form.a) && isByte(form.b) && (form.k == 16 || form.k == 32);
  case MmaSum::F32:
    break;
  }
  if (isFp8(form.a))
    return isFp8(form.b) && form.k == 32;
  if (form.a != form.b || isByte(form.a))
    return false;
  if (form.a == MmaElement::Tf32)
    return form.k == 4 || form.k == 8;
  return form.k == 8 || form.k == 16;
}

namespace {

constexpr unsigned Rows = 16, Columns = 8, LargestK = 32;

/// A transposed to [k][row], B as [k][column], sums as [column][row].
template <class Element> struct Planes {
  alignas(64) Element A[LargestK][Rows];
  alignas(64) Element B[LargestK][Columns];
  alignas(64) Element Sum[Columns][Rows];
};

} // namespace

/// One element of a register as f32; branch-free where it can be, so that a
/// loop over lanes is vectorised.
template <MmaElement Kind>
static KVC_SIM_INLINE float element(uint32_t word, unsigned index) {
  if constexpr (Kind == MmaElement::Bf16) {
    return floatOf(index == 0 ? word << 16 : word & 0xFFFF0000u);
  } else if constexpr (Kind == MmaElement::F16) {
    uint32_t half = index == 0 ? word & 0xFFFF : word >> 16;
    uint32_t magnitude = half & 0x7FFF;
    uint32_t special = magnitude >= 0x7C00 ? 0x7F800000u : 0;
    uint32_t scaled = bitsOf(floatOf(magnitude << 13) * 0x1p112F);
    return floatOf(scaled | special | (half & 0x8000) << 16);
  } else if constexpr (Kind == MmaElement::Tf32) {
    // Hardware ignores the low 13 bits of an operand.
    return floatOf(word & 0xFFFFE000u);
  } else if constexpr (Kind == MmaElement::E4m3) {
    return floatOf(e4m3ToF32(uint8_t(word >> (8 * index))));
  } else {
    static_assert(Kind == MmaElement::E5m2);
    return floatOf(e5m2ToF32(uint8_t(word >> (8 * index))));
  }
}

template <MmaElement Kind> constexpr unsigned PerRegister = 2;
template <> constexpr unsigned PerRegister<MmaElement::Tf32> = 1;
template <> constexpr unsigned PerRegister<MmaElement::E4m3> = 4;
template <> constexpr unsigned PerRegister<MmaElement::E5m2> = 4;

/// Register `r` of A: rows g + 8 * (r % 2), k from (r / 2) * 4 * elements.
template <MmaElement Kind>
static KVC_SIM_INLINE void unpackA(const uint32_t *const *a, unsigned registers,
                                   Planes<float> &planes) {
  constexpr unsigned Elements = PerRegister<Kind>;
  for (unsigned r = 0; r != registers; ++r)
    for (unsigned e = 0; e != Elements; ++e) {
      alignas(64) float lanes[32];
      for (unsigned lane = 0; lane != 32; ++lane)
        lanes[lane] = element<Kind>(a[r][lane], e);
      for (unsigned q = 0; q != 4; ++q) {
        float *row = planes.A[(r / 2) * 4 * Elements + Elements * q + e];
        for (unsigned g = 0; g != 8; ++g)
          row[8 * (r % 2) + g] = lanes[4 * g + q];
      }
    }
}

template <MmaElement Kind>
static KVC_SIM_INLINE void unpackB(const uint32_t *const *b, unsigned registers,
                                   Planes<float> &planes) {
  constexpr unsigned Elements = PerRegister<Kind>;
  for (unsigned r = 0; r != registers; ++r)
    for (unsigned e = 0; e != Elements; ++e) {
      alignas(64) float lanes[32];
      for (unsigned lane = 0; lane != 32; ++lane)
        lanes[lane] = element<Kind>(b[r][lane], e);
      for (unsigned q = 0; q != 4; ++q) {
        float *row = planes.B[r * 4 * Elements + Elements * q + e];
        for (unsigned g = 0; g != 8; ++g)
          row[g] = lanes[4 * g + q];
      }
    }
}

// C and D: register r holds row g + 8 * (r / 2), column 2q + r % 2.
static KVC_SIM_INLINE void unpackSum(const uint32_t *const *c,
                                     Planes<float> &planes) {
  for (unsigned r = 0; r != 4; ++r)
    for (unsigned q = 0; q != 4; ++q)
      for (unsigned g = 0; g != 8; ++g)
        planes.Sum[2 * q + r % 2][8 * (r / 2) + g] = floatOf(c[r][4 * g + q]);
}

static KVC_SIM_INLINE void packSum(const Planes<float> &planes,
                                   uint32_t *const *d) {
  for (unsigned r = 0; r != 4; ++r)
    for (unsigned q = 0; q != 4; ++q)
      for (unsigned g = 0; g != 8; ++g)
        d[r][4 * g + q] =
            canonical(bitsOf(planes.Sum[2 * q + r % 2][8 * (r / 2) + g]));
}

// With f16 sums, register r holds row g + 8 * r, columns 2q and 2q + 1.
static KVC_SIM_INLINE void unpackHalfSum(const uint32_t *const *c,
                                         Planes<float> &planes) {
  for (unsigned r = 0; r != 2; ++r)
    for (unsigned lane = 0; lane != 32; ++lane)
      for (unsigned e = 0; e != 2; ++e)
        planes.Sum[2 * (lane % 4) + e][8 * r + lane / 4] =
            element<MmaElement::F16>(c[r][lane], e);
}

static void packHalfSum(const Planes<float> &planes, uint32_t *const *d) {
  for (unsigned r = 0; r != 2; ++r)
    for (unsigned lane = 0; lane != 32; ++lane) {
      uint16_t half[2];
      for (unsigned e = 0; e != 2; ++e)
        half[e] = f32ToF16(
            bitsOf(planes.Sum[2 * (lane % 4) + e][8 * r + lane / 4]), {});
      d[r][lane] = pack16(half[0], half[1]);
    }
}

using Accumulate = void (*)(Planes<float> &planes, unsigned k);

static void accumulatePortable(Planes<float> &planes, unsigned k) {
  for (unsigned i = 0; i != k; ++i)
    for (unsigned n = 0; n != Columns; ++n)
      for (unsigned row = 0; row != Rows; ++row)
        planes.Sum[n][row] = __builtin_fmaf(planes.A[i][row], planes.B[i][n],
                                            planes.Sum[n][row]);
}

#if KVC_SIM_X86
// Four columns at a time, so that their sums stay in registers.
KVC_SIM_AVX2 static void accumulateAvx2(Planes<float> &planes, unsigned k) {
  for (unsigned first = 0; first != Columns; first += 4) {
    __m256 sum[4][2];
    for (unsigned n = 0; n != 4; ++n)
      for (unsigned half = 0; half != 2; ++half)
        sum[n][half] = _mm256_load_ps(planes.Sum[first + n] + 8 * half);
    for (unsigned i = 0; i != k; ++i)
      for (unsigned n = 0; n != 4; ++n)
        for (unsigned half = 0; half != 2; ++half)
          sum[n][half] = _mm256_fmadd_ps(
              _mm256_load_ps(planes.A[i] + 8 * half),
              _mm256_broadcast_ss(&planes.B[i][first + n]), sum[n][half]);
    for (unsigned n = 0; n != 4; ++n)
      for (unsigned half = 0; half != 2; ++half)
        _mm256_store_ps(planes.Sum[first + n] + 8 * half, sum[n][half]);
  }
}

#endif

template <Accumulate Sum, MmaElement A, MmaElement B>
static KVC_SIM_INLINE void
multiply(const Mma &form, const uint32_t *const *a, const uint32_t *const *b,
         const uint32_t *const *c, uint32_t *const *d) {
  Planes<float> planes;
  unsigned registers = form.k / (4 * PerRegister<A>);
  unpackA<A>(a, 2 * registers, planes);
  unpackB<B>(b, registers, planes);
  if (form.sum == MmaSum::F16)
    unpackHalfSum(c, planes);
  else
    unpackSum(c, planes);
  Sum(planes, form.k);
  if (form.sum == MmaSum::F16)
    packHalfSum(planes, d);
  else
    packSum(planes, d);
}

template <Accumulate Sum>
static KVC_SIM_INLINE void
floatingMma(const Mma &form, const uint32_t *const *a, const uint32_t *const *b,
            const uint32_t *const *c, uint32_t *const *d) {
  using E = MmaElement;
  switch (form.a) {
  case E::Bf16:
    return multiply<Sum, E::Bf16, E::Bf16>(form, a, b, c, d);
  case E::F16:
    return multiply<Sum, E::F16, E::F16>(form, a, b, c, d);
  case E::Tf32:
    return multiply<Sum, E::Tf32, E::Tf32>(form, a, b, c, d);
  case E::E4m3:
    return form.b == E::E4m3
               ? multiply<Sum, E::E4m3, E::E4m3>(form, a, b, c, d)
               : multiply<Sum, E::E4m3, E::E5m2>(form, a, b, c, d);
  case E::E5m2:
    return form.b == E::E4m3
               ? multiply<Sum, E::E5m2, E::E4m3>(form, a, b, c, d)
               : multiply<Sum, E::E5m2, E::E5m2>(form, a, b, c, d);
  case E::S8:
  case E::U8:
    return;
  }
}

static KVC_SIM_INLINE void fmaLanes(const uint32_t *a, const uint32_t *b,
                                    const uint32_t *c, uint32_t *out) {
  for (int lane = 0; lane != 32; ++lane)
    out[lane] = canonical(bitsOf(
        __builtin_fmaf(floatOf(a[lane]), floatOf(b[lane]), floatOf(c[lane]))));
}

using MmaFunction = void (*)(const Mma &, const uint32_t *const *,
                             const uint32_t *const *, const uint32_t *const *,
                             uint32_t *const *);
using FmaFunction = void (*)(const uint32_t *, const uint32_t *,
                             const uint32_t *, uint32_t *);

static void mmaPortable(const Mma &form, const uint32_t *const *a,
                        const uint32_t *const *b, const uint32_t *const *c,
                        uint32_t *const *d) {
  floatingMma<accumulatePortable>(form, a, b, c, d);
}

static void fmaPortable(const uint32_t *a, const uint32_t *b, const uint32_t *c,
                        uint32_t *out) {
  fmaLanes(a, b, c, out);
}

#if KVC_SIM_X86

KVC_SIM_AVX2 static void mmaAvx2(const Mma &form, const uint32_t *const *a,
                                 const uint32_t *const *b,
                                 const uint32_t *const *c, uint32_t *const *d) {
  floatingMma<accumulateAvx2>(form, a, b, c, d);
}

KVC_SIM_AVX2 static void fmaAvx2(const uint32_t *a, const uint32_t *b,
                                 const uint32_t *c, uint32_t *out) {
  fmaLanes(a, b, c, out);
}

static bool haveFma() {
  static const bool Have =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return Have;
}

static bool haveAvx512() {
  static const bool Have = haveFma() && __builtin_cpu_supports("avx512f") &&
                           __builtin_cpu_supports("avx512bw") &&
                           __builtin_cpu_supports("avx512dq") &&
                           __builtin_cpu_supports("avx512vl");
  return Have;
}

// The 16-bit types with f32 sums, which is nearly all that kernels use, without
// memory in between. In an operand's register of 32 lanes, lane 4g + q has row
// (or column) g: `gather` brings the eight of each q together.

namespace {

/// The lanes of q = 2 * pair (low half) and q = 2 * pair + 1 of a register.
struct Gathered {
  __m512i Pair[2];
};

} // namespace

KVC_SIM_AVX512 static inline Gathered gather(const uint32_t *lanes) {
  const __m512i index = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9,
                                          13, 17, 21, 25, 29);
  const __m512i two = _mm512_set1_epi32(2);
  __m512i low = _mm512_loadu_si512(lanes);
  __m512i high = _mm512_loadu_si512(lanes + 16);
  return {{_mm512_permutex2var_epi32(low, index, high),
           _mm512_permutex2var_epi32(low, _mm512_add_epi32(index, two), high)}};
}

/// Rows 0..15 of q, from the registers of rows g and of rows g + 8.
KVC_SIM_AVX512 static inline __m512i rowsOf(const Gathered &upper,
                                            const Gathered &lower, unsigned q) {
  __m512i first = upper.Pair[q / 2], second = lower.Pair[q / 2];
  return q % 2 == 0 ? _mm512_shuffle_i64x2(first, second, 0x44)
                    : _mm512_shuffle_i64x2(first, second, 0xEE);
}

/// The low or high half of every word as f32.
template <bool IsBf16>
KVC_SIM_AVX512 static inline __m512 widen(__m512i words, bool high) {
  if (IsBf16)
    return _mm512_castsi512_ps(
        high ? _mm512_and_si512(words, _mm512_set1_epi32(int(0xFFFF0000)))
             : _mm512_slli_epi32(words, 16));
  return _mm512_cvtph_ps(
      _mm512_cvtepi32_epi16(high ? _mm512_srli_epi32(words, 16) : words));
}

KVC_SIM_AVX512 static inline __m512 canonicalSum(__m512 sum) {
  __mmask16 nan = _mm512_cmp_ps_mask(sum, sum, _CMP_UNORD_Q);
  return _mm512_castsi512_ps(_mm512_mask_mov_epi32(
      _mm512_castps_si512(sum), nan, _mm512_set1_epi32(int(CanonicalNan))));
}

/// The inverse of rowsOf: columns q = 0..3 to registers of rows g and g + 8.
KVC_SIM_AVX512 static inline void scatter(const __m512 columns[4],
                                          uint32_t *upper, uint32_t *lower) {
  const __m512i words =
      _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i pairs = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
  for (unsigned half = 0; half != 2; ++half) {
    __m512i rows = _mm512_add_epi32(words, _mm512_set1_epi32(int(8 * half)));
    __m512i even = _mm512_castps_si512(
        _mm512_permutex2var_ps(columns[0], rows, columns[1]));
    __m512i odd = _mm512_castps_si512(
        _mm512_permutex2var_ps(columns[2], rows, columns[3]));
    uint32_t *out = half == 0 ? upper : lower;
    _mm512_storeu_si512(out, _mm512_permutex2var_epi64(even, pairs, odd));
    __m512i rest = _mm512_add_epi64(pairs, _mm512_set1_epi64(4));
    _mm512_storeu_si512(out + 16, _mm512_permutex2var_epi64(even, rest, odd));
  }
}

template <bool IsBf16>
KVC_SIM_AVX512 static void
halfMmaAvx512(unsigned k, const uint32_t *const *a, const uint32_t *const *b,
              const uint32_t *const *c, uint32_t *const *d) {
  __m512 sum[Columns];
  for (unsigned h = 0; h != 2; ++h) {
    Gathered upper = gather(c[h]), lower = gather(c[2 + h]);
    for (unsigned q = 0; q != 4; ++q)
      sum[2 * q + h] = _mm512_castsi512_ps(rowsOf(upper, lower, q));
  }
  for (unsigned block = 0; block != k / 8; ++block) {
    // B's eight rows of this block: [half of the word][q][column].
    alignas(64) float columns[2][4][Columns];
    Gathered words = gather(b[block]);
    for (unsigned h = 0; h != 2; ++h)
      for (unsigned pair = 0; pair != 2; ++pair)
        _mm512_store_ps(columns[h][2 * pair],
                        widen<IsBf16>(words.Pair[pair], h != 0));
    Gathered upper = gather(a[2 * block]), lower = gather(a[2 * block + 1]);
    for (unsigned q = 0; q != 4; ++q) {
      __m512i rows = rowsOf(upper, lower, q);
      for (unsigned h = 0; h != 2; ++h) {
        __m512 value = widen<IsBf16>(rows, h != 0);
        for (unsigned n = 0; n != Columns; ++n)
          sum[n] =
              _mm512_fmadd_ps(value, _mm512_set1_ps(columns[h][q][n]), sum[n]);
      }
    }
  }
  for (unsigned h = 0; h != 2; ++h) {
    __m512 out[4];
    for (unsigned q = 0; q != 4; ++q)
      out[q] = canonicalSum(sum[2 * q + h]);
    scatter(out, d[h], d[2 + h]);
  }
}

KVC_SIM_AVX512 static void mmaAvx512(const Mma &form, const uint32_t *const *a,
                                     const uint32_t *const *b,
                                     const uint32_t *const *c,
                                     uint32_t *const *d) {
  if (form.sum == MmaSum::F32 && form.a == MmaElement::Bf16)
    return halfMmaAvx512<true>(form.k, a, b, c, d);
  if (form.sum == MmaSum::F32 && form.a == MmaElement::F16)
    return halfMmaAvx512<false>(form.k, a, b, c, d);
  mmaAvx2(form, a, b, c, d);
}
#endif

static MmaFunction chooseMma() {
#if KVC_SIM_X86
  if (haveFma())
    return haveAvx512() ? mmaAvx512 : mmaAvx2;
#endif
  return mmaPortable;
}

static FmaFunction chooseFma() {
#if KVC_SIM_X86
  if (haveFma())
    return fmaAvx2;
#endif
  return fmaPortable;
}

void fmaF32Warp(const uint32_t *a, const uint32_t *b, const uint32_t *c,
                uint32_t *out) {
  static const FmaFunction Function = chooseFma();
  Function(a, b, c, out);
}

static int32_t byteElement(MmaElement kind, uint32_t word, unsigned index) {
  uint8_t byte = uint8_t(word >> (8 * index));
  return kind == MmaElement::S8 ? int8_t(byte) : byte;
}

static void integerMma(const Mma &form, const uint32_t *const *a,
                       const uint32_t *const *b, const uint32_t *const *c,
                       uint32_t *const *d) {
  Planes<int32_t> planes;
  unsigned registers = form.bRegisters();
  for (unsigned r = 0; r != registers; ++r)
    for (unsigned lane = 0; lane != 32; ++lane)
      for (unsigned e = 0; e != 4; ++e) {
        unsigned k = 16 * r + 4 * (lane % 4) + e, g = lane / 4;
        planes.A[k][g] = byteElement(form.a, a[2 * r][lane], e);
        planes.A[k][g + 8] = byteElement(form.a, a[2 * r + 1][lane], e);
        planes.B[k][g] = byteElement(form.b, b[r][lane], e);
      }
  for (auto &column : planes.Sum)
    std::fill(std::begin(column), std::end(column), 0);
  for (unsigned k = 0; k != form.k; ++k)
    for (unsigned n = 0; n != Columns; ++n)
      for (unsigned row = 0; row != Rows; ++row)
        planes.Sum[n][row] += planes.A[k][row] * planes.B[k][n];
  for (unsigned r = 0; r != 4; ++r)
    for (unsigned lane = 0; lane != 32; ++lane) {
      int64_t sum =
          int64_t(planes.Sum[2 * (lane % 4) + r % 2][8 * (r / 2) + lane / 4]) +
          int32_t(c[r][lane]);
      if (form.satfinite)
        sum = std::clamp<int64_t>(sum, std::numeric_limits<int32_t>::min(),
                                  std::numeric_limits<int32_t>::max());
      d[r][lane] = uint32_t(sum);
    }
}

void mma(const Mma &form, const uint32_t *const *a, const uint32_t *const *b,
         const uint32_t *const *c, uint32_t *const *d) {
  if (form.sum == MmaSum::S32)
    return integerMma(form, a, b, c, d);
  static const MmaFunction Function = chooseMma();
  Function(form, a, b, c, d);
}

} // namespace kvc::sim

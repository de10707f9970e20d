// f32 and f64 arithmetic, minima and maxima, approximations.
#include "runtime/sim/SoftFloat.h"

#include <cfenv>

namespace kvc::sim {

// f32: the exact result as an odd-rounded double, then one rounding.

static uint32_t finish(double exact, F32Mode mode) {
  uint32_t bits = encodeF32(exact, mode.round);
  if (mode.ftz)
    bits = flush(bits);
  return mode.sat ? saturate(bits) : bits;
}

static double operand(uint32_t bits, F32Mode mode) {
  return floatOf(mode.ftz ? flush(bits) : bits);
}

uint32_t addF32(uint32_t a, uint32_t b, F32Mode mode) {
  return finish(addToOdd(operand(a, mode), operand(b, mode), mode.round), mode);
}

uint32_t subF32(uint32_t a, uint32_t b, F32Mode mode) {
  return addF32(a, b ^ 0x80000000u, mode);
}

// Two 24-bit significands: the product is exact in a double.
uint32_t mulF32(uint32_t a, uint32_t b, F32Mode mode) {
  return finish(operand(a, mode) * operand(b, mode), mode);
}

uint32_t fmaF32(uint32_t a, uint32_t b, uint32_t c, F32Mode mode) {
  double product = operand(a, mode) * operand(b, mode);
  return finish(addToOdd(product, operand(c, mode), mode.round), mode);
}

/// quotient is a / b rounded to nearest.
static double quotientToOdd(double quotient, double a, double b) {
  if (!std::isfinite(quotient) || quotient == 0)
    return quotient;
  double rest = std::fma(-quotient, b, a);
  return roundToOdd(quotient, std::signbit(b) ? -rest : rest);
}

uint32_t divF32(uint32_t a, uint32_t b, F32Mode mode) {
  double x = operand(a, mode), y = operand(b, mode);
  return finish(quotientToOdd(x / y, x, y), mode);
}

uint32_t rcpF32(uint32_t a, F32Mode mode) {
  return divF32(0x3F800000, a, mode);
}

uint32_t sqrtF32(uint32_t a, F32Mode mode) {
  double x = operand(a, mode);
  double root = std::sqrt(x);
  if (std::isfinite(root) && root != 0)
    root = roundToOdd(root, std::fma(-root, root, x));
  return finish(root, mode);
}

// Plain float arithmetic is .rn; only NaN needs a hand. Vectorised by the
// compiler.

void addF32Warp(const uint32_t *a, const uint32_t *b, uint32_t *out) {
  for (int lane = 0; lane != 32; ++lane)
    out[lane] = canonical(bitsOf(floatOf(a[lane]) + floatOf(b[lane])));
}

void subF32Warp(const uint32_t *a, const uint32_t *b, uint32_t *out) {
  for (int lane = 0; lane != 32; ++lane)
    out[lane] = canonical(bitsOf(floatOf(a[lane]) - floatOf(b[lane])));
}

void mulF32Warp(const uint32_t *a, const uint32_t *b, uint32_t *out) {
  for (int lane = 0; lane != 32; ++lane)
    out[lane] = canonical(bitsOf(floatOf(a[lane]) * floatOf(b[lane])));
}

// f64: the host's own rounding modes. The barriers keep the compiler from
// moving the operation out of the mode's scope or folding it.
namespace {

class RoundingScope {
public:
  explicit RoundingScope(Round round) : Saved(std::fegetround()) {
    int mode = round == Round::Zero   ? FE_TOWARDZERO
               : round == Round::Down ? FE_DOWNWARD
               : round == Round::Up   ? FE_UPWARD
                                      : FE_TONEAREST;
    std::fesetround(mode);
  }
  RoundingScope(const RoundingScope &) = delete;
  RoundingScope &operator=(const RoundingScope &) = delete;
  ~RoundingScope() { std::fesetround(Saved); }

private:
  int Saved;
};

} // namespace

template <class Compute> static double inMode(Round round, Compute compute) {
  if (round == Round::Nearest)
    return compute();
  RoundingScope scope(round);
  return compute();
}

double addF64(double a, double b, Round round) {
  volatile double x = a, y = b, result;
  return inMode(round, [&] { return result = x + y; });
}

double mulF64(double a, double b, Round round) {
  volatile double x = a, y = b, result;
  return inMode(round, [&] { return result = x * y; });
}

double fmaF64(double a, double b, double c, Round round) {
  volatile double x = a, y = b, z = c, result;
  return inMode(round, [&] { return result = std::fma(x, y, z); });
}

double divF64(double a, double b, Round round) {
  volatile double x = a, y = b, result;
  return inMode(round, [&] { return result = x / y; });
}

double sqrtF64(double a, Round round) {
  volatile double x = a, result;
  return inMode(round, [&] { return result = std::sqrt(x); });
}

// Minima and maxima. The key orders all but NaN, -0 below +0.

static int32_t orderKey(uint32_t bits) {
  return int32_t(bits ^ (uint32_t(int32_t(bits) >> 31) & 0x7FFFFFFFu));
}

static uint32_t choose(uint32_t a, uint32_t b, MinMaxMode mode, bool larger) {
  if (mode.ftz) {
    a = flush(a);
    b = flush(b);
  }
  uint32_t sign = (a ^ b) & 0x80000000u;
  if (mode.xorsign) {
    a &= 0x7FFFFFFFu;
    b &= 0x7FFFFFFFu;
  }
  bool aNan = isNanBits(a), bNan = isNanBits(b);
  if ((aNan && bNan) || (mode.nan && (aNan || bNan)))
    return CanonicalNan;
  uint32_t result;
  if (aNan || bNan)
    result = aNan ? b : a;
  else
    result = (orderKey(a) < orderKey(b)) == larger ? b : a;
  return mode.xorsign ? (result & 0x7FFFFFFFu) | sign : result;
}

uint32_t minF32(uint32_t a, uint32_t b, MinMaxMode mode) {
  return choose(a, b, mode, false);
}

uint32_t maxF32(uint32_t a, uint32_t b, MinMaxMode mode) {
  return choose(a, b, mode, true);
}

static double chooseF64(double a, double b, bool larger) {
  if (std::isnan(a))
    return b;
  if (std::isnan(b))
    return a;
  bool less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
  return less == larger ? b : a;
}

double minF64(double a, double b) { return chooseF64(a, b, false); }
double maxF64(double a, double b) { return chooseF64(a, b, true); }

// Approximations.

template <class Compute>
static uint32_t approximate(uint32_t a, bool ftz, Compute compute) {
  double result = compute(double(floatOf(ftz ? flush(a) : a)));
  uint32_t bits = encodeF32(result, Round::Nearest);
  return ftz ? flush(bits) : bits;
}

uint32_t ex2Approx(uint32_t a, bool ftz) {
  return approximate(a, ftz, [](double x) { return std::exp2(x); });
}

uint32_t lg2Approx(uint32_t a, bool ftz) {
  return approximate(a, ftz, [](double x) { return std::log2(x); });
}

uint32_t rcpApprox(uint32_t a, bool ftz) {
  return approximate(a, ftz, [](double x) { return 1 / x; });
}

uint32_t rsqrtApprox(uint32_t a, bool ftz) {
  return approximate(a, ftz, [](double x) { return 1 / std::sqrt(x); });
}

uint32_t sqrtApprox(uint32_t a, bool ftz) {
  return approximate(a, ftz, [](double x) { return std::sqrt(x); });
}

uint32_t sinApprox(uint32_t a, bool ftz) {
  return approximate(flush(a), ftz, [](double x) { return std::sin(x); });
}

uint32_t cosApprox(uint32_t a, bool ftz) {
  return approximate(flush(a), ftz, [](double x) { return std::cos(x); });
}

uint32_t tanhApprox(uint32_t a) {
  return approximate(a, false, [](double x) { return std::tanh(x); });
}

uint32_t divFull(uint32_t a, uint32_t b, bool ftz) {
  return divF32(a, b, {Round::Nearest, ftz, false});
}

uint32_t divApprox(uint32_t a, uint32_t b, bool ftz) {
  constexpr uint32_t LargestInverted = 0x7E800000; // 2^126
  uint32_t magnitude = b & 0x7FFFFFFFu;
  if (magnitude > LargestInverted && magnitude < 0x7F800000u) {
    uint32_t zero = b & 0x80000000u; // 1 / b underflows to zero
    return mulF32(a, zero, {Round::Nearest, ftz, false});
  }
  return divFull(a, b, ftz);
}

} // namespace kvc::sim

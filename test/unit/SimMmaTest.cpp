// mma.sync: fragments placed by the PTX ISA's formulas, sums in the order that
// Numerics.h states, and within its bound of the exact sum in any order.
#include "test/unit/SimFixture.h"
#include "test/unit/SimSoftFloat.h"

#include <array>
#include <functional>

using namespace kvc::sim;

namespace {

/// How an operand's elements sit in registers.
struct Element {
  const char *Name;
  unsigned Bits;
  std::function<double(uint32_t)> Decode;
};

double fromTf32(uint32_t bits) { return asFloat(bits & 0xFFFFE000); }

const Element F16 = {"f16", 16,
                     [](uint32_t b) { return f16Format().decode(b); }};
const Element Bf16 = {"bf16", 16,
                      [](uint32_t b) { return bf16Format().decode(b); }};
const Element Tf32 = {"tf32", 32, fromTf32};
const Element E4m3 = {"e4m3", 8,
                      [](uint32_t b) { return e4m3Format().decode(b); }};
const Element E5m2 = {"e5m2", 8,
                      [](uint32_t b) { return e5m2Format().decode(b); }};
const Element S8 = {"s8", 8, [](uint32_t b) { return double(int8_t(b)); }};
const Element U8 = {"u8", 8, [](uint32_t b) { return double(uint8_t(b)); }};

struct Place {
  unsigned Row, Column;
};

/// Element i of A (row, k) in a lane, from the tables of the ISA.
Place placeOfA(unsigned bits, unsigned k, unsigned lane, unsigned i) {
  unsigned group = lane / 4, thread = lane % 4;
  if (bits == 16 && k == 16)
    return {i < 2 || (i >= 4 && i < 6) ? group : group + 8,
            thread * 2 + (i & 1) + (i < 4 ? 0 : 8)};
  if (bits == 16)
    return {i < 2 ? group : group + 8, thread * 2 + (i & 1)};
  if (bits == 32 && k == 8)
    return {i == 0 || i == 2 ? group : group + 8, thread + (i < 2 ? 0 : 4)};
  if (bits == 32)
    return {i == 0 ? group : group + 8, thread};
  if (k == 32)
    return {i < 4 || (i >= 8 && i < 12) ? group : group + 8,
            thread * 4 + (i & 3) + (i < 8 ? 0 : 16)};
  return {i < 4 ? group : group + 8, thread * 4 + (i & 3)};
}

/// Element i of B (k, column).
Place placeOfB(unsigned bits, unsigned lane, unsigned i) {
  unsigned group = lane / 4, thread = lane % 4;
  if (bits == 16)
    return {thread * 2 + (i & 1) + (i < 2 ? 0 : 8), group};
  if (bits == 32)
    return {thread + (i == 0 ? 0 : 4), group};
  return {thread * 4 + (i & 3) + (i < 4 ? 0 : 16), group};
}

/// Element i of C and D.
Place placeOfC(unsigned lane, unsigned i) {
  return {i < 2 ? lane / 4 : lane / 4 + 8, lane % 4 * 2 + (i & 1)};
}

struct Tile {
  double A[16][32], B[32][8], C[16][8];
};

using Generator = std::function<uint64_t(std::mt19937_64 &)>;

/// Runs `count` random tiles; visit(tile, row, column, bits of D).
void check(const Element &a, const Element &b, const std::string &sum,
           unsigned k, const Generator &word, const Generator &sumWord,
           const std::function<void(const Tile &, unsigned, unsigned, uint64_t)>
               &visit,
           const std::string &modifier = "", const std::string &version = "8.0",
           unsigned count = 40) {
  unsigned perWord = 32 / a.Bits, bWords = k * a.Bits / 128,
           aWords = 2 * bWords;
  bool half = sum == "f16";
  unsigned sumWords = half ? 2 : 4;
  std::mt19937_64 random(70);
  std::vector<Input> inputs;
  for (unsigned n = 0; n != aWords + bWords + sumWords; ++n) {
    Values values;
    for (unsigned i = 0; i != 32 * count; ++i)
      values.push_back((n < aWords + bWords ? word(random) : sumWord(random)) &
                       0xFFFFFFFF);
    inputs.push_back({32, values});
  }
  auto list = [](const char *name, unsigned first, unsigned number) {
    std::string text = "{";
    for (unsigned n = first; n != first + number; ++n)
      text += (n == first ? "" : ", ") + std::string(name) + std::to_string(n);
    return text + "}";
  };
  std::string op = "mma.sync.aligned.m16n8k" + std::to_string(k) + ".row.col" +
                   modifier + "." + sum + "." + a.Name + "." + b.Name + "." +
                   sum;
  Snippet snippet;
  snippet.Version = version;
  std::vector<Values> got = evaluate(
      op + " " + list("o", 0, sumWords) + ", " + list("i", 0, aWords) + ", " +
          (bWords == 1 ? "{i" + std::to_string(aWords) + "}"
                       : list("i", aWords, bWords)) +
          ", " + list("i", aWords + bWords, sumWords) + ";",
      inputs, std::vector<unsigned>(sumWords, 32), snippet);
  auto element = [&](const Element &kind, unsigned first, unsigned i,
                     unsigned at) {
    uint64_t bits = inputs[first + i / perWord].Value[at];
    return kind.Decode(uint32_t(bits >> (kind.Bits * (i % perWord))) &
                       uint32_t((uint64_t(1) << kind.Bits) - 1));
  };
  for (unsigned tile = 0; tile != count; ++tile) {
    Tile values;
    for (unsigned lane = 0; lane != 32; ++lane) {
      unsigned at = 32 * tile + lane;
      for (unsigned i = 0; i != aWords * perWord; ++i) {
        Place place = placeOfA(a.Bits, k, lane, i);
        values.A[place.Row][place.Column] = element(a, 0, i, at);
      }
      for (unsigned i = 0; i != bWords * perWord; ++i) {
        Place place = placeOfB(b.Bits, lane, i);
        values.B[place.Row][place.Column] = element(b, aWords, i, at);
      }
      for (unsigned i = 0; i != 4; ++i) {
        Place place = placeOfC(lane, i);
        uint64_t bits = inputs[aWords + bWords + (half ? i / 2 : i)].Value[at];
        values.C[place.Row][place.Column] =
            half ? f16Format().decode(uint32_t(bits >> (16 * (i % 2)) & 0xFFFF))
            : sum == "s32" ? double(int32_t(bits))
                           : double(asFloat(bits));
      }
    }
    for (unsigned lane = 0; lane != 32; ++lane)
      for (unsigned i = 0; i != 4; ++i) {
        Place place = placeOfC(lane, i);
        uint64_t bits = got[half ? i / 2 : i][32 * tile + lane];
        visit(values, place.Row, place.Column,
              half ? bits >> (16 * (i % 2)) & 0xFFFF : bits);
        if (testing::Test::HasFailure()) {
          ADD_FAILURE() << op << " tile " << tile << " lane " << lane
                        << " element " << i;
          return;
        }
      }
  }
}

/// d = C; then fma over ascending k, each rounded to f32.
float inOrder(const Tile &tile, unsigned row, unsigned column, unsigned k) {
  float sum = float(tile.C[row][column]);
  for (unsigned i = 0; i != k; ++i)
    sum = std::fma(float(tile.A[row][i]), float(tile.B[i][column]), sum);
  return sum;
}

void expectSum(const Tile &tile, unsigned row, unsigned column, uint64_t bits,
               unsigned k) {
  float want = inOrder(tile, row, column, k);
  EXPECT_EQ(bits, std::isnan(want) ? 0x7FFFFFFF : bits32(want))
      << "row " << row << " column " << column;
  // The bound that holds for hardware's order, too.
  long double exact = tile.C[row][column], size = std::fabs(exact);
  for (unsigned i = 0; i != k; ++i) {
    exact += (long double)tile.A[row][i] * tile.B[i][column];
    size += std::fabs((long double)tile.A[row][i] * tile.B[i][column]);
  }
  if (std::isfinite(double(size)) && size < 0x1p120L && size > 0x1p-100L)
    EXPECT_LE(std::fabs(asFloat(bits) - exact), k * size * 0x1p-23L);
}

/// Random numbers of ordinary size in every element.
uint64_t ordinary(const Element &kind, std::mt19937_64 &random) {
  uint64_t word = 0;
  for (unsigned shift = 0; shift != 32; shift += kind.Bits) {
    double value = std::ldexp(double(int64_t(random())), -60);
    Exact exact;
    exact.Sum = value;
    uint64_t bits =
        std::strcmp(kind.Name, "f16") == 0    ? f16Format().encode(exact, 'n')
        : std::strcmp(kind.Name, "bf16") == 0 ? bf16Format().encode(exact, 'n')
        : std::strcmp(kind.Name, "e4m3") == 0 ? e4m3Format().encode(exact, 'n')
        : std::strcmp(kind.Name, "e5m2") == 0
            ? e5m2Format().encode(exact, 'n')
            : bits32(float(value)) & 0xFFFFE000;
    word |= bits << shift;
  }
  return word;
}

uint64_t anyWord(std::mt19937_64 &random) { return random() >> 32; }
uint64_t ordinaryF32(std::mt19937_64 &random) {
  return bits32(std::ldexp(float(int32_t(random())), -28));
}

void checkFloating(const Element &a, const Element &b, unsigned k,
                   const std::string &version = "8.0") {
  auto visit = [&](const Tile &tile, unsigned row, unsigned column,
                   uint64_t bits) { expectSum(tile, row, column, bits, k); };
  check(
      a, b, "f32", k, [&](auto &r) { return ordinary(a, r); }, ordinaryF32,
      visit, "", version);
  // Every bit pattern: infinities, NaN, subnormals and overflow.
  check(a, b, "f32", k, anyWord, anyWord, visit, "", version);
}

TEST(SimMma, Bf16) {
  checkFloating(Bf16, Bf16, 16);
  checkFloating(Bf16, Bf16, 8);
}
TEST(SimMma, F16) {
  checkFloating(F16, F16, 16);
  checkFloating(F16, F16, 8);
}
TEST(SimMma, Tf32) {
  checkFloating(Tf32, Tf32, 8);
  checkFloating(Tf32, Tf32, 4);
}
TEST(SimMma, Fp8) {
  for (const Element &a : {E4m3, E5m2})
    for (const Element &b : {E4m3, E5m2})
      checkFloating(a, b, 32, "8.4");
}

TEST(SimMma, F16Sums) {
  for (unsigned k : {8u, 16u}) {
    auto visit = [&](const Tile &tile, unsigned row, unsigned column,
                     uint64_t bits) {
      float sum = inOrder(tile, row, column, k);
      Exact exact;
      exact.Sum = sum;
      EXPECT_EQ(bits, std::isnan(sum) ? 0x7FFF : f16Format().encode(exact, 'n'))
          << "row " << row << " column " << column;
    };
    auto words = [](auto &r) { return ordinary(F16, r); };
    check(F16, F16, "f16", k, words, words, visit);
    check(F16, F16, "f16", k, anyWord, anyWord, visit);
  }
}

TEST(SimMma, Integers) {
  for (const Element &a : {S8, U8})
    for (const Element &b : {S8, U8})
      for (unsigned k : {16u, 32u})
        for (bool saturate : {false, true})
          check(
              a, b, "s32", k, anyWord, anyWord,
              [&](const Tile &tile, unsigned row, unsigned column,
                  uint64_t bits) {
                auto sum = int64_t(tile.C[row][column]);
                for (unsigned i = 0; i != k; ++i)
                  sum += int64_t(tile.A[row][i]) * int64_t(tile.B[i][column]);
                if (saturate)
                  sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
                EXPECT_EQ(bits, uint32_t(sum))
                    << "row " << row << " column " << column;
              },
              saturate ? ".satfinite" : "");
}

// D may be the registers of C: the usual accumulation.
TEST(SimMma, InPlace) {
  std::mt19937_64 random(71);
  std::vector<Input> inputs;
  for (unsigned n = 0; n != 10; ++n) {
    Values values;
    for (unsigned i = 0; i != 32; ++i)
      values.push_back(n < 6 ? ordinary(Bf16, random) : ordinaryF32(random));
    inputs.push_back({32, values});
  }
  std::string operands = "{i0, i1, i2, i3}, {i4, i5}, {i6, i7, i8, i9};";
  std::string op = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 ";
  std::string moves =
      " mov.b32 o0, i6; mov.b32 o1, i7; mov.b32 o2, i8; mov.b32 o3, i9;";
  std::vector<Values> apart =
      evaluate(op + "{o0, o1, o2, o3}, " + operands, inputs, {32, 32, 32, 32});
  std::vector<Values> same = evaluate(
      op + "{i6, i7, i8, i9}, " + operands + moves, inputs, {32, 32, 32, 32});
  EXPECT_EQ(apart, same);
}

} // namespace

#include "codegen/formats/HalfFloat.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace kvc;

namespace {

// The value by its definition, sign * mantissa * 2^exponent.
double halfByDefinition(uint16_t half) {
  int exponent = half >> 10 & 31;
  int mantissa = half & 1023;
  double magnitude = exponent == 0 ? std::ldexp(mantissa, -24)
                                   : std::ldexp(1024 + mantissa, exponent - 25);
  return half & 0x8000 ? -magnitude : magnitude;
}

TEST(HalfFloat, EveryHalfIsExactAndComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto half = static_cast<uint16_t>(bits);
    float value = floatFromHalf(half);
    if ((half & 0x7fff) > 0x7c00) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_EQ(halfFromFloat(value), half | 0x200);
      continue;
    }
    if ((half & 0x7fff) == 0x7c00)
      EXPECT_TRUE(std::isinf(value));
    else
      ASSERT_EQ(static_cast<double>(value), halfByDefinition(half)) << bits;
    ASSERT_EQ(halfFromFloat(value), half);
  }
}

TEST(HalfFloat, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    double low = halfByDefinition(static_cast<uint16_t>(bits));
    double high = halfByDefinition(static_cast<uint16_t>(bits + 1));
    auto middle = static_cast<float>((low + high) / 2); // exact
    uint32_t even = bits & 1 ? bits + 1 : bits;
    ASSERT_EQ(halfFromFloat(middle), even) << bits;
    ASSERT_EQ(halfFromFloat(-middle), even | 0x8000) << bits;
    ASSERT_EQ(halfFromFloat(std::nextafter(middle, -1.0f)), bits);
    ASSERT_EQ(halfFromFloat(std::nextafter(
                  middle, std::numeric_limits<float>::infinity())),
              bits + 1);
  }
  EXPECT_EQ(halfFromFloat(65519.996f), 0x7bff);
  EXPECT_EQ(halfFromFloat(65520.0f), 0x7c00);
  EXPECT_EQ(halfFromFloat(std::numeric_limits<float>::max()), 0x7c00);
  EXPECT_EQ(halfFromFloat(std::numeric_limits<float>::denorm_min()), 0);
}

TEST(HalfFloat, Bfloat) {
  EXPECT_EQ(bfloatFromFloat(1.0f), 0x3f80);
  EXPECT_EQ(bfloatFromFloat(floatFromBits(0x3f808000)), 0x3f80); // tie, to even
  EXPECT_EQ(bfloatFromFloat(floatFromBits(0x3f818000)), 0x3f82);
  EXPECT_EQ(bfloatFromFloat(floatFromBits(0x3f808001)), 0x3f81);
  EXPECT_EQ(bfloatFromFloat(floatFromBits(0x7f7fffff)), 0x7f80); // to infinity
  EXPECT_TRUE(
      std::isnan(floatFromBfloat(bfloatFromFloat(floatFromBits(0x7f800001)))));
  EXPECT_EQ(floatFromBfloat(0xc040), -3.0f);
}

TEST(HalfFloat, E8M0) {
  for (int e = 0; e < 256; ++e)
    EXPECT_EQ(floatFromE8M0Half(static_cast<uint8_t>(e)),
              std::ldexp(1.0, e - 128));
}

} // namespace

#include "codegen/formats/Seeded.h"
#include "codegen/formats/HalfFloat.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

using namespace kvc;

namespace {

// The table of docs/SPEC_WEIGHTS.md.
TEST(Seeded, MatchesTheDocument) {
  struct {
    const char *name;
    int64_t columns;
    double values[3];
  } cases[] = {
      {"token_embd.weight",
       64,
       {0.7522221803665161, 0.30528855323791504, -0.612755537033081}},
      {"blk.0.attn_q.weight",
       64,
       {-0.02407529391348362, 0.10550510138273239, -0.16800101101398468}},
      {"blk.1.ffn_down.bias",
       0,
       {0.017202461138367653, 0.09176180511713028, -0.04375825077295303}},
      {"output_norm.weight",
       0,
       {1.019042730331421, 1.0420271158218384, 1.0050146579742432}},
      {"blk.0.attn_norm.bias",
       0,
       {0.07415442168712616, -0.07413975894451141, 0.05476360395550728}},
  };
  for (const auto &entry : cases) {
    SeededRange range = seededRange(entry.name, entry.columns);
    float whole[3], part[2];
    seededValues(1, entry.name, range, 0, 3, whole);
    seededValues(1, entry.name, range, 1, 2, part);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(whole[i], static_cast<float>(entry.values[i])) << entry.name;
    EXPECT_EQ(part[0], whole[1]);
    EXPECT_EQ(part[1], whole[2]);
  }
}

// A stored element is the value rounded to nearest, ties to even, wherever the
// stretch that is asked for begins.
TEST(Seeded, StoresPlainFormats) {
  SeededRange range = {0.0, 1.0};
  constexpr int64_t Count = 3000;
  std::vector<float> values(Count), found(Count);
  seededValues(7, "token_embd.weight", range, 5, Count, values.data());
  for (Format format : {Format::F32, Format::F16, Format::BF16}) {
    int64_t bytes = formatInfo(format).blockBytes;
    std::vector<uint8_t> elements(Count * bytes), part(Count * bytes);
    seededElements(7, "token_embd.weight", range, 5, Count, format,
                   elements.data());
    dequantize(format, elements.data(), Count, found.data());
    for (int64_t i = 0; i < Count; ++i) {
      float value = values[i];
      if (format == Format::BF16)
        value = floatFromBfloat(bfloatFromFloat(value));
      else if (format == Format::F16)
        value = floatFromHalf(halfFromFloat(value));
      ASSERT_EQ(found[i], value) << i;
    }
    seededElements(7, "token_embd.weight", range, 1405, 1600, format,
                   part.data());
    ASSERT_EQ(
        std::memcmp(part.data(), elements.data() + 1400 * bytes, 1600 * bytes),
        0);
  }
}

} // namespace

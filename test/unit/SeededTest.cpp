#include "codegen/formats/Seeded.h"

#include <gtest/gtest.h>

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

} // namespace

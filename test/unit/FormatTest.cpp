#include "codegen/formats/Format.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

using namespace kvc;

namespace {

std::vector<uint8_t> fromHex(const std::string &text) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(
        static_cast<uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

class EveryFormat : public testing::TestWithParam<int> {
protected:
  Format format = static_cast<Format>(GetParam());
  const FormatInfo &info = formatInfo(format);
};

// Bit for bit: test/oracle/make_formats.py asked PyPI's gguf for the values.
TEST_P(EveryFormat, DequantizesAsRecorded) {
  std::string path =
      std::string(KVC_SOURCE_DIR "/test/oracle/formats/") + info.name + ".json";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  nlohmann::json record = nlohmann::json::parse(file);
  ASSERT_EQ(record["format"], info.name);
  ASSERT_EQ(record["blocks"].size(), record["values"].size());
  ASSERT_GE(record["blocks"].size(), 4u);
  for (size_t row = 0; row < record["blocks"].size(); ++row) {
    std::vector<uint8_t> block = fromHex(record["blocks"][row]);
    std::vector<uint8_t> bytes = fromHex(record["values"][row]);
    size_t n = bytes.size() / 4;
    ASSERT_EQ(static_cast<int64_t>(block.size()), info.rowBytes(n));
    std::vector<float> values(n);
    dequantize(format, block.data(), n, values.data());
    std::vector<double> doubles(n);
    dequantize(format, block.data(), n, doubles.data());
    for (size_t i = 0; i < n; ++i) {
      float expected;
      std::memcpy(&expected, bytes.data() + 4 * i, 4);
      uint32_t expectedBits, bits;
      std::memcpy(&expectedBits, &expected, 4);
      std::memcpy(&bits, &values[i], 4);
      ASSERT_EQ(bits, expectedBits)
          << info.name << " row " << row << " value " << i << ": " << values[i]
          << ", recorded " << expected;
      // The float form rounds scale, product and minimum; the minimum may
      // cancel, so the bound is relative to the largest magnitude of the row.
      ASSERT_NEAR(doubles[i], expected,
                  1e-6 * (std::abs(doubles[i]) + std::abs(expected)) + 1e-1);
    }
  }
}

TEST_P(EveryFormat, CanonicalFormGivesTheValues) {
  if (info.plain())
    GTEST_SKIP() << "no codes";
  std::vector<uint8_t> block(info.blockBytes);
  for (size_t i = 0; i < block.size(); ++i)
    block[i] = static_cast<uint8_t>(i * 37 + 11);
  BlockCodes codes;
  decodeBlock(format, block.data(), codes);
  std::vector<double> values(info.blockValues);
  dequantize(format, block.data(), info.blockValues, values.data());
  for (int i = 0; i < info.blockValues; ++i) {
    ASSERT_LT(codes.codes[i], 1 << info.codeBits);
    int j = i / info.subBlock;
    double scale = codes.d;
    if (info.scale == ScaleKind::HalfTimesSub)
      scale *= codes.subScale[j];
    double min = info.min == MinKind::None ? 0.0
                 : info.min == MinKind::Half
                     ? codes.m
                     : -static_cast<double>(codes.m) * codes.subMin[j];
    EXPECT_DOUBLE_EQ(values[i], scale * info.codeValue(codes.codes[i]) + min);
  }
}

TEST_P(EveryFormat, IsFoundByNameAndId) {
  EXPECT_EQ(formatFromName(info.name), format);
  EXPECT_EQ(formatFromGguf(info.ggufId), format);
  EXPECT_EQ(info.blockValues % info.subBlock, 0);
  EXPECT_LE(info.blockValues, MaxBlockValues);
  EXPECT_LE(info.plain() ? 1 : info.subBlocks(), MaxSubBlocks);
}

std::string formatName(const testing::TestParamInfo<int> &param) {
  return formatInfo(static_cast<Format>(param.param)).name;
}
INSTANTIATE_TEST_SUITE_P(Formats, EveryFormat, testing::Range(0, FormatCount),
                         formatName);

TEST(Format, UnknownNamesAndIds) {
  EXPECT_EQ(formatFromName("Q4_0"), std::nullopt);
  EXPECT_EQ(formatFromName(""), std::nullopt);
  EXPECT_EQ(formatFromGguf(4), std::nullopt); // the removed Q4_2
  EXPECT_EQ(formatFromGguf(0xffffffff), std::nullopt);
}

} // namespace

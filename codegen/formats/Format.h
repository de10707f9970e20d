// Weight formats, and the one canonical form every user of a quantised block
// (dequantiser, packer, code generator) shares:
//
//   value = scale[j] * T(q) + min[j]        j: the element's sub-block
//
//   q        an unsigned code of `codeBits` bits
//   T(q)     q - zero, or table[q] when the format has a table
//   scale[j] ScaleKind::Half           d
//            ScaleKind::HalfTimesSub   d * subScale[j]
//            ScaleKind::E8M0           2^(e - 128)
//   min[j]   MinKind::None             0
//            MinKind::Half             m
//            MinKind::HalfTimesSub     -(dmin * subMin[j])
//
// d, m and dmin are binary16 in the file, so they are exact in float; every
// sub-scale and sub-minimum is an integer that fits int8.
#ifndef KVC_CODEGEN_FORMATS_FORMAT_H
#define KVC_CODEGEN_FORMATS_FORMAT_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace kvc {

enum class Format : uint8_t {
  F32,
  F16,
  BF16,
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q8_0,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  IQ4_NL,
  IQ4_XS,
  MXFP4,
};
constexpr int FormatCount = 16;

enum class ScaleKind : uint8_t { None, Half, HalfTimesSub, E8M0 };
enum class MinKind : uint8_t { None, Half, HalfTimesSub };

struct FormatInfo {
  const char *name;    // lower case: "q4_1"
  uint32_t ggufId;     // the type id in GGUF files
  int blockValues;     // values a block of the file has; 1 for plain formats
  int blockBytes;      // bytes of such a block
  int subBlock;        // values that share a scale: 16 or 32; 1 for plain
  int codeBits;        // bits of a code; of an element for plain formats
  int zero;            // the code that means 0, formats without a table
  const int8_t *table; // 1 << codeBits entries, or null
  ScaleKind scale;
  MinKind min;
  bool signedSubScale; // sub-scales are int8 and may be negative

  /// Elements are numbers of their own (F32, F16, BF16), not codes.
  bool plain() const { return scale == ScaleKind::None; }
  /// Scales have two levels: a block is a superblock of sub-blocks.
  bool superBlock() const { return scale == ScaleKind::HalfTimesSub; }
  int subBlocks() const { return blockValues / subBlock; }
  /// The integer a code stands for: T(q).
  int codeValue(int code) const { return table ? table[code] : code - zero; }
  /// Bytes of a row of `values` values, a multiple of blockValues.
  int64_t rowBytes(int64_t values) const {
    return values / blockValues * blockBytes;
  }
};

const FormatInfo &formatInfo(Format format);

/// The format of a GGUF type id; none if it is not a weight format of ours.
std::optional<Format> formatFromGguf(uint32_t id);

/// The format of a name in lower case, "q4_1".
std::optional<Format> formatFromName(std::string_view name);

/// The largest blockValues and subBlocks() of any format.
constexpr int MaxBlockValues = 256;
constexpr int MaxSubBlocks = 16;

/// One block in canonical form. Fields that its format lacks are zero.
struct BlockCodes {
  uint8_t codes[MaxBlockValues]; // in element order
  int8_t subScale[MaxSubBlocks]; // Q3_K and IQ4_XS: already minus 32
  int8_t subMin[MaxSubBlocks];
  float d;          // d; MXFP4: the scale 2^(e-128)
  float m;          // m (MinKind::Half) or dmin (MinKind::HalfTimesSub)
  uint16_t dBits;   // d as the file has it
  uint16_t mBits;   // m or dmin as the file has it
  uint8_t exponent; // MXFP4's e
};

/// Takes a quantised block (not a plain format's) apart. `block` has
/// blockBytes bytes, of any alignment.
void decodeBlock(Format format, const uint8_t *block, BlockCodes &out);

/// The values of one row of `n` values, n a multiple of blockValues. Each
/// float is rounded as numpy's float32 would: scale, product, then minimum;
/// doubles carry the same formula in double.
void dequantize(Format format, const uint8_t *row, int64_t n, float *out);
void dequantize(Format format, const uint8_t *row, int64_t n, double *out);

} // namespace kvc

#endif // KVC_CODEGEN_FORMATS_FORMAT_H

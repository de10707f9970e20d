#include "codegen/formats/Format.h"
#include "codegen/formats/FormatFamily.h"

#include <cassert>

using namespace kvc;

// In the order of the enumeration.
static const FormatEntry *const entries[FormatCount] = {
    &f32Entry,  &f16Entry,    &bf16Entry,   &q4_0Entry, &q4_1Entry, &q5_0Entry,
    &q5_1Entry, &q8_0Entry,   &q2_KEntry,   &q3_KEntry, &q4_KEntry, &q5_KEntry,
    &q6_KEntry, &iq4_NLEntry, &iq4_XSEntry, &mxfp4Entry};

const FormatInfo &kvc::formatInfo(Format format) {
  return entries[static_cast<int>(format)]->info;
}

std::optional<Format> kvc::formatFromGguf(uint32_t id) {
  for (int i = 0; i < FormatCount; ++i)
    if (entries[i]->info.ggufId == id)
      return static_cast<Format>(i);
  return std::nullopt;
}

std::optional<Format> kvc::formatFromName(std::string_view name) {
  for (int i = 0; i < FormatCount; ++i)
    if (entries[i]->info.name == name)
      return static_cast<Format>(i);
  return std::nullopt;
}

void kvc::decodeBlock(Format format, const uint8_t *block, BlockCodes &out) {
  assert(!formatInfo(format).plain() && "plain formats have no codes");
  out = {};
  entries[static_cast<int>(format)]->decode(block, out);
}

static float plainValue(Format format, const uint8_t *element) {
  switch (format) {
  case Format::F16:
    return floatFromHalf(loadU16(element));
  case Format::BF16:
    return floatFromBfloat(loadU16(element));
  default:
    float value;
    std::memcpy(&value, element, sizeof(value));
    return value;
  }
}

template <typename Real>
static void dequantizeRow(Format format, const uint8_t *row, int64_t n,
                          Real *out) {
  const FormatInfo &info = formatInfo(format);
  assert(n % info.blockValues == 0 && "a row is whole blocks");
  if (info.plain()) {
    for (int64_t i = 0; i < n; ++i)
      out[i] = plainValue(format, row + i * info.blockBytes);
    return;
  }
  BlockCodes codes;
  for (int64_t block = 0; block < n / info.blockValues; ++block) {
    decodeBlock(format, row + block * info.blockBytes, codes);
    for (int j = 0; j < info.subBlocks(); ++j) {
      Real scale = codes.d;
      if (info.scale == ScaleKind::HalfTimesSub)
        scale *= codes.subScale[j];
      Real min = codes.m;
      if (info.min == MinKind::HalfTimesSub)
        min *= codes.subMin[j];
      const uint8_t *code = codes.codes + j * info.subBlock;
      for (int i = 0; i < info.subBlock; ++i) {
        Real value = scale * info.codeValue(code[i]);
        if (info.min == MinKind::Half)
          value = value + min;
        else if (info.min == MinKind::HalfTimesSub)
          value = value - min;
        *out++ = value;
      }
    }
  }
}

void kvc::dequantize(Format format, const uint8_t *row, int64_t n, float *out) {
  dequantizeRow(format, row, n, out);
}

void kvc::dequantize(Format format, const uint8_t *row, int64_t n,
                     double *out) {
  dequantizeRow(format, row, n, out);
}

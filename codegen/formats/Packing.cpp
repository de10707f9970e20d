#include "codegen/formats/Packing.h"
#include "codegen/formats/CodeBits.h"
#include "codegen/formats/HalfFloat.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>

using namespace kvc;

static constexpr int MaxLanes = 32;

static int64_t divideUp(int64_t a, int64_t b) { return a / b + (a % b != 0); }

static int64_t alignUp(int64_t value, int64_t alignment) {
  return divideUp(value, alignment) * alignment;
}

// A bound, not exact: twice the bytes of the file's form, plus 64 a row for
// a panel's padding, covers every layout.
static bool fitsInt64(const FormatInfo &info, int64_t n, int64_t k, int lanes,
                      int64_t unit) {
  constexpr int64_t max = std::numeric_limits<int64_t>::max();
  if (k / info.blockValues > (max / 2 - 64) / (2 * info.blockBytes + 4))
    return false;
  int64_t rowBytes = k / info.blockValues * (2 * info.blockBytes + 4) + 64;
  if (unit > max / 4 || n > max / 4)
    return false;
  int64_t unitRows = alignUp(unit, lanes);
  int64_t units = divideUp(n, unit);
  return unitRows <= max / rowBytes && units <= max / rowBytes / unitRows;
}

std::string kvc::packedLayoutError(Format format, int64_t n, int64_t k,
                                   int lanes, int64_t unit) {
  const FormatInfo &info = formatInfo(format);
  auto found = [](const char *what, int64_t value) {
    return std::string(what) + " = " + std::to_string(value);
  };
  if (n <= 0)
    return found("N", n) + " is not positive";
  if (k <= 0)
    return found("K", k) + " is not positive";
  if (unit <= 0)
    return found("unit", unit) + " is not positive";
  if (lanes < 4 || lanes > MaxLanes || (lanes & (lanes - 1)) != 0)
    return found("lanes", lanes) + " is not a power of two in 4 .. 32";
  if (k % info.blockValues != 0)
    return found("K", k) + " is not a multiple of " + info.name +
           "'s block of " + std::to_string(info.blockValues);
  if (!fitsInt64(info, n, k, lanes, unit))
    return found("N", n) + ", " + found("K", k) + ", " + found("unit", unit) +
           ": the packed size does not fit 64 bits";
  return {};
}

PackedLayout kvc::packedLayout(Format format, int64_t n, int64_t k, int lanes,
                               int64_t unit) {
  assert(packedLayoutError(format, n, k, lanes, unit).empty());
  const FormatInfo &info = formatInfo(format);
  PackedLayout layout = {};
  layout.format = format;
  layout.rows = n;
  layout.columns = k;
  layout.lanes = lanes;
  layout.unit = unit;
  layout.blockValues = info.blockValues;
  layout.subBlocks = info.subBlocks();
  layout.blocks = k / info.blockValues;
  layout.dOffset = layout.mOffset = layout.subScaleOffset = -1;
  layout.subMinOffset = layout.exponentOffset = -1;
  layout.lowOffset = layout.highOffset = -1;

  int64_t end = 0;
  auto plane = [&](int64_t bytes) {
    int64_t offset = end;
    end += bytes;
    return offset;
  };
  if (info.plain()) {
    layout.elementBytes = info.blockBytes;
    plane(layout.elementBytes * lanes);
    layout.codeAlignment = layout.elementBytes * lanes;
  } else {
    CodeBits bits = splitCodeBits(info.codeBits);
    layout.lowBits = bits.low;
    layout.highBits = bits.high;
    if (info.scale == ScaleKind::E8M0)
      layout.exponentOffset = plane(lanes);
    else
      layout.dOffset = plane(2 * lanes);
    if (info.min != MinKind::None)
      layout.mOffset = plane(2 * lanes);
    if (info.scale == ScaleKind::HalfTimesSub)
      layout.subScaleOffset = plane(layout.subBlocks * lanes);
    if (info.min == MinKind::HalfTimesSub)
      layout.subMinOffset = plane(layout.subBlocks * lanes);
    if (info.superBlock())
      end = alignUp(end, 4 * lanes);
    layout.headerBytes = end;
    layout.lowOffset = plane(info.blockValues * layout.lowBits / 8 * lanes);
    if (layout.highBits)
      layout.highOffset = plane(info.blockValues * layout.highBits / 8 * lanes);
    // The largest power of two that divides every register's offset.
    int64_t offsets = 4 * lanes | PanelAlignment | end | layout.lowOffset;
    if (layout.highBits)
      offsets |= layout.highOffset;
    layout.codeAlignment = offsets & -offsets;
  }
  layout.blockBytes = end;
  layout.panelBytes =
      alignUp(layout.blocks * layout.blockBytes, PanelAlignment);
  layout.panelsPerUnit = divideUp(unit, lanes);
  layout.units = divideUp(n, unit);
  layout.unitBytes = layout.panelsPerUnit * layout.panelBytes;
  layout.totalBytes = layout.units * layout.unitBytes;
  return layout;
}

// Bits shift .. shift+bits-1 of the codes, as a plane of registers.
static void packPlane(const PackedLayout &layout, const BlockCodes *codes,
                      int shift, int bits, uint8_t *plane) {
  int groupsPerRegister = 8 / bits;
  int registers = layout.blockValues / 4 / groupsPerRegister;
  uint32_t mask = UINT32_C(0x01010101) * ((1u << bits) - 1);
  for (int r = 0; r < registers; ++r)
    for (int lane = 0; lane < layout.lanes; ++lane) {
      const uint8_t *source = codes[lane].codes + r * groupsPerRegister * 4;
      uint32_t word = 0;
      for (int g = 0; g < groupsPerRegister; ++g) {
        uint32_t group;
        std::memcpy(&group, source + 4 * g, sizeof(group));
        word |= (group >> shift & mask) << bits * g;
      }
      std::memcpy(plane + (r * layout.lanes + lane) * 4, &word, sizeof(word));
    }
}

static void packHeader(const PackedLayout &layout, const BlockCodes *codes,
                       uint8_t *out) {
  for (int lane = 0; lane < layout.lanes; ++lane) {
    const BlockCodes &block = codes[lane];
    if (layout.dOffset >= 0)
      std::memcpy(out + layout.dOffset + 2 * lane, &block.dBits, 2);
    if (layout.mOffset >= 0)
      std::memcpy(out + layout.mOffset + 2 * lane, &block.mBits, 2);
    if (layout.exponentOffset >= 0)
      out[layout.exponentOffset + lane] = block.exponent;
    for (int j = 0; j < layout.subBlocks; ++j) {
      int64_t index = static_cast<int64_t>(j) * layout.lanes + lane;
      if (layout.subScaleOffset >= 0)
        out[layout.subScaleOffset + index] =
            static_cast<uint8_t>(block.subScale[j]);
      if (layout.subMinOffset >= 0)
        out[layout.subMinOffset + index] =
            static_cast<uint8_t>(block.subMin[j]);
    }
  }
}

static void packQuantisedPanel(const PackedLayout &layout,
                               const uint8_t *firstRow, int64_t rows,
                               uint8_t *out) {
  const FormatInfo &info = formatInfo(layout.format);
  int64_t rowBytes = layout.sourceRowBytes();
  BlockCodes codes[MaxLanes] = {}; // lanes without a row stay zero
  for (int64_t block = 0; block < layout.blocks; ++block) {
    for (int64_t lane = 0; lane < rows; ++lane)
      decodeBlock(layout.format,
                  firstRow + lane * rowBytes + block * info.blockBytes,
                  codes[lane]);
    uint8_t *start = out + block * layout.blockBytes;
    packHeader(layout, codes, start);
    packPlane(layout, codes, 0, layout.lowBits, start + layout.lowOffset);
    if (layout.highBits)
      packPlane(layout, codes, layout.lowBits, layout.highBits,
                start + layout.highOffset);
  }
}

template <typename Element>
static void packPlainPanel(const PackedLayout &layout, const uint8_t *firstRow,
                           int64_t rows, uint8_t *out) {
  int64_t rowBytes = layout.sourceRowBytes();
  // Lane by lane within a stretch that stays in the first-level cache.
  constexpr int64_t stretch = 256;
  for (int64_t begin = 0; begin < layout.columns; begin += stretch) {
    int64_t end = std::min(begin + stretch, layout.columns);
    for (int64_t lane = 0; lane < rows; ++lane) {
      const uint8_t *source = firstRow + lane * rowBytes;
      uint8_t *target = out + lane * sizeof(Element);
      for (int64_t k = begin; k < end; ++k)
        std::memcpy(target + k * layout.blockBytes,
                    source + k * sizeof(Element), sizeof(Element));
    }
  }
}

void kvc::packUnits(const PackedLayout &layout, const uint8_t *firstRow,
                    int64_t firstUnit, int64_t count, uint8_t *out) {
  assert(firstUnit >= 0 && count <= layout.units - firstUnit);
  std::memset(out, 0, count * layout.unitBytes);
  int64_t rowBytes = layout.sourceRowBytes();
  for (int64_t u = 0; u < count; ++u) {
    int64_t unitRow = (firstUnit + u) * layout.unit;
    int64_t unitRows = std::min(layout.unit, layout.rows - unitRow);
    for (int64_t row = 0; row < unitRows; row += layout.lanes) {
      int64_t rows = std::min<int64_t>(layout.lanes, unitRows - row);
      const uint8_t *source = firstRow + (u * layout.unit + row) * rowBytes;
      uint8_t *panel =
          out + u * layout.unitBytes + row / layout.lanes * layout.panelBytes;
      if (layout.elementBytes == 4)
        packPlainPanel<uint32_t>(layout, source, rows, panel);
      else if (layout.elementBytes == 2)
        packPlainPanel<uint16_t>(layout, source, rows, panel);
      else
        packQuantisedPanel(layout, source, rows, panel);
    }
  }
}

void kvc::packRows(const PackedLayout &layout, const uint8_t *source,
                   uint8_t *out) {
  packUnits(layout, source, 0, layout.units, out);
}

// The code at `k` of a block, read as Packing.h describes the planes.
static int planeBits(const uint8_t *plane, int bits, int lanes, int lane,
                     int k) {
  int group = k / 4;
  int groupsPerRegister = 8 / bits;
  const uint8_t *reg = plane + group / groupsPerRegister * 4 * lanes;
  return reg[4 * lane + k % 4] >> bits * (group % groupsPerRegister) &
         ((1 << bits) - 1);
}

void kvc::unpackRow(const PackedLayout &layout, const uint8_t *packed,
                    int64_t row, float *out) {
  const FormatInfo &info = formatInfo(layout.format);
  int lane = layout.lane(row);
  const uint8_t *panel = packed + layout.panelOffset(row);
  if (info.plain()) {
    for (int64_t k = 0; k < layout.columns; ++k)
      dequantize(layout.format,
                 panel + k * layout.blockBytes + lane * layout.elementBytes, 1,
                 out + k);
    return;
  }
  for (int64_t k = 0; k < layout.columns; ++k) {
    const uint8_t *block = panel + k / layout.blockValues * layout.blockBytes;
    int inBlock = static_cast<int>(k % layout.blockValues);
    int64_t sub =
        static_cast<int64_t>(inBlock / info.subBlock) * layout.lanes + lane;
    auto half = [&](int64_t offset) {
      uint16_t bits;
      std::memcpy(&bits, block + offset + 2 * lane, sizeof(bits));
      return floatFromHalf(bits);
    };
    float scale = layout.exponentOffset >= 0
                      ? floatFromE8M0Half(block[layout.exponentOffset + lane])
                      : half(layout.dOffset);
    if (layout.subScaleOffset >= 0)
      scale *= static_cast<int8_t>(block[layout.subScaleOffset + sub]);
    int code = planeBits(block + layout.lowOffset, layout.lowBits, layout.lanes,
                         lane, inBlock);
    if (layout.highBits)
      code |= planeBits(block + layout.highOffset, layout.highBits,
                        layout.lanes, lane, inBlock)
              << layout.lowBits;
    float value = scale * info.codeValue(code);
    if (info.min == MinKind::Half)
      value = value + half(layout.mOffset);
    else if (info.min == MinKind::HalfTimesSub)
      value = value - half(layout.mOffset) *
                          static_cast<int8_t>(block[layout.subMinOffset + sub]);
    out[k] = value;
  }
}

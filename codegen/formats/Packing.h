// The packed layout of a weight matrix: the contract between whoever writes the
// weights arena and the kernels that read it.
//
// A matrix has N rows (outputs) of K values. Rows are dealt into units of
// `unit` rows, a unit into panels of `lanes` rows:
//
//   row r is in unit r / unit, its panel (r % unit) / lanes, lane (r % unit) %
//   lanes
//
// A unit's last panel and the last unit may lack rows: those lanes are zero
// bytes throughout, which is the value zero in every format. Panel p of unit u
// starts at byte u * unitBytes + p * panelBytes, a multiple of 64. A panel is
// one sequential stream along K: packed block after packed block.
//
// Plain formats (F32, F16, BF16): a packed block is one k, `lanes` elements of
// the format's own type. Element (k, lane) is at byte
// k * blockBytes + lane * elementBytes.
//
// Quantised formats: a packed block is one block of the file (32 values, or a
// superblock of 256) for each lane: header planes, then code planes, at the
// byte offsets below, counted from the block's start. An absent plane has
// offset -1.
//
//   dOffset         f16 d[lanes]
//   mOffset         f16 m[lanes] or dmin[lanes]
//   subScaleOffset  i8 subScale[subBlocks][lanes] (Q2_K, Q4_K, Q5_K: never
//                   negative; Q3_K and IQ4_XS: already minus 32)
//   subMinOffset    i8 subMin[subBlocks][lanes], never negative
//   exponentOffset  u8 e[lanes], MXFP4: the scale is 2^(e-128)
//   lowOffset       codes, bits 0 .. lowBits-1
//   highOffset      codes, bits lowBits .. lowBits+highBits-1
//
// Code planes. A *group* is four consecutive k; group i of the block covers
// k = 4i .. 4i+3. A *register* is 4*lanes bytes: lane l is its 32-bit element
// l, and byte b of that element belongs to k = 4i+b. A plane of p bits
// (p = 1, 2, 4, 8) stores 8/p groups in each register:
//
//   bits p*(i % (8/p)) .. +p-1 of byte 4*l+b of register i / (8/p)
//     = plane's bits of lane l's code at k = 4i+b
//
// so group i of either plane is
//
//   (load(plane + (i / (8/p)) * 4*lanes) >> (p * (i % (8/p)))) & mask(p)
//
// with any integer shift of 8, 16 or 32-bit elements (the mask removes what a
// wide shift pulls in), mask(p) = (1 << p) - 1 in every byte, and the code is
// low | high << lowBits. Codes are as in Format.h: unsigned, value T(q); Q8_0
// is stored as q + 128.
//
//   bits        8     6      5      4    3      2
//   low, high   8,-   4,2    4,1    4,-  2,1    2,-
//
// In blocks of superblock formats every code plane starts at a multiple of
// 4*lanes and blockBytes is one too (at most 2*lanes bytes of padding after the
// header planes). The 32-value formats have no padding, since it would cost a
// tenth of the bandwidth: codeAlignment says what a register load may assume.
#ifndef KVC_CODEGEN_FORMATS_PACKING_H
#define KVC_CODEGEN_FORMATS_PACKING_H

#include "codegen/formats/Format.h"

#include <cstdint>
#include <string>

namespace kvc {

constexpr int64_t PanelAlignment = 64;

struct PackedLayout {
  Format format;
  int64_t rows;    // N
  int64_t columns; // K
  int lanes;
  int64_t unit;

  int blockValues;      // values a packed block has in each lane: 1, 32, 256
  int subBlocks;        // sub-scales a lane has in a block; 1 without any
  int64_t blocks;       // packed blocks of a panel: K / blockValues
  int64_t elementBytes; // plain formats; else 0
  int64_t headerBytes;  // from the block's start to the code planes
  int64_t dOffset;
  int64_t mOffset;
  int64_t subScaleOffset;
  int64_t subMinOffset;
  int64_t exponentOffset;
  int64_t lowOffset;
  int64_t highOffset;
  int lowBits;
  int highBits;
  int64_t codeAlignment; // of every register of every code plane
  int64_t blockBytes;
  int64_t panelBytes;    // blocks * blockBytes, padded to 64
  int64_t panelsPerUnit; // ceil(unit / lanes)
  int64_t units;         // ceil(N / unit)
  int64_t unitBytes;     // panelsPerUnit * panelBytes
  int64_t totalBytes;    // units * unitBytes

  /// Bytes of a row in the file.
  int64_t sourceRowBytes() const {
    return formatInfo(format).rowBytes(columns);
  }
  /// Where the panel that holds `row` starts, and the row's lane in it.
  int64_t panelOffset(int64_t row) const {
    return row / unit * unitBytes + row % unit / lanes * panelBytes;
  }
  int lane(int64_t row) const { return static_cast<int>(row % unit % lanes); }
};

/// Why no layout exists for these numbers ("K = 40 is not a multiple of q4_0's
/// block of 32"); empty if packedLayout may be called.
std::string packedLayoutError(Format format, int64_t n, int64_t k, int lanes,
                              int64_t unit);

/// The layout. N, K and unit are positive, lanes is a power of two in 4 .. 32,
/// K a multiple of the format's block and the total fits int64.
PackedLayout packedLayout(Format format, int64_t n, int64_t k, int lanes,
                          int64_t unit);

/// Packs units firstUnit .. firstUnit+count-1. `firstRow` is the file's row
/// firstUnit * unit; rows follow each other, sourceRowBytes() apart, as long as
/// the matrix has them. `out` receives Count * unitBytes bytes.
void packUnits(const PackedLayout &layout, const uint8_t *firstRow,
               int64_t firstUnit, int64_t count, uint8_t *out);

/// Packs the whole matrix: N rows of sourceRowBytes() at `source`, totalBytes
/// at `out`.
void packRows(const PackedLayout &layout, const uint8_t *source, uint8_t *out);

/// The values of one row read back from a packed matrix, as dequantize gives
/// them: what a kernel must compute, for tests.
void unpackRow(const PackedLayout &layout, const uint8_t *packed, int64_t row,
               float *out);

} // namespace kvc

#endif // KVC_CODEGEN_FORMATS_PACKING_H

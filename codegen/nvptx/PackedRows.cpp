//===- PackedRows.cpp - Single values of packed matrices ------------------===//
#include "codegen/nvptx/PackedRows.h"
#include "dialect/PackedWeights.h"

#include "llvm/ADT/StringExtras.h"

#include <functional>

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

static TilesLayout layoutOf(WeightOp weight) {
  return tilesOf(weight.getWeightType(), weight.getSlice(0).getFormat());
}

std::string kvc::nvptx::packedValuesError(ProgramOp program,
                                          FlatSymbolRefAttr symbol) {
  WeightOp weight = lookupWeight(program, symbol);
  if (!weight.getOffsets() ||
      !isa_and_nonnull<TilesAttr>(weight.getWeightType().getLayout()))
    return ("needs packed weights, but @" + symbol.getValue() +
            " has no layout of tiles; run kvc-pack-weights")
        .str();
  return "";
}

namespace {

/// One row of a matrix, found once.
class PackedRow {
public:
  PackedRow(KernelContext &context, FlatSymbolRefAttr symbol, Value row)
      : context(context), e(context.e),
        layout(layoutOf(lookupWeight(context.program, symbol))),
        info(formatInfo(layout.format)), name(symbol.getValue()) {
    Value inUnit = e.rem(row, layout.unit);
    half = e.div(e.rem(inUnit, 2 * layout.pair), layout.pair);
    Value pair = e.add(e.mul(e.div(inUnit, 2 * layout.pair), layout.pair),
                       e.rem(inUnit, layout.pair));
    Value tile = e.add(e.mul(e.div(row, layout.unit), layout.tilesPerUnit),
                       e.shr(pair, 3));
    slot = e.bitAnd(pair, 7);
    base = e.at(context.weight(symbol), e.mul(e.i64Of(tile), layout.tileBytes));
  }

  Values values(Value column, int width);

private:
  Values chunkValues(const TileChunk &size, Value chunk, Value block,
                     Value column, int width);
  Value pairWord(const CodePlane &plane, Value chunk, Value reg, Value lane);
  Value halfAt(Value chunk, int64_t offset, Value index);
  Value integerOf(Value code);

  KernelContext &context;
  Emitter &e;
  TilesLayout layout;
  const FormatInfo &info;
  StringRef name;
  Value base, slot, half;
};
} // namespace

Value PackedRow::halfAt(Value chunk, int64_t offset, Value index) {
  return e.widen(e.load(e.f16, e.at(e.at(chunk, offset), e.mul(index, 2)), 2));
}

/// The word of a plane that holds register `reg` of the chunk, shifted so that
/// the lower k's code starts at bit 0 and the upper's at bit 16.
Value PackedRow::pairWord(const CodePlane &plane, Value chunk, Value reg,
                          Value lane) {
  int perWord = plane.registersPerWord();
  Value byte = e.mul(e.div(reg, perWord), 4);
  Value piece = e.div(byte, plane.pieceBytes);
  Value at = e.add(e.mul(e.add(e.mul(piece, 32), lane), plane.pieceBytes),
                   e.rem(byte, plane.pieceBytes));
  Value word = e.load(e.i32, e.at(e.at(chunk, plane.offset), at), 4);
  Value shift = e.mul(e.rem(reg, perWord), plane.bits);
  return arith::ShRUIOp::create(e.b, e.loc, word, shift);
}

/// T(q).
Value PackedRow::integerOf(Value code) {
  if (!info.table)
    return e.sub(code, e.c(info.zero));
  SmallVector<int64_t> table(info.table, info.table + (1 << info.codeBits));
  return e.trunc(e.tableEntry(context.model.constants(
                                  std::string("table_") + info.name, table),
                              code),
                 e.i32);
}

Values PackedRow::chunkValues(const TileChunk &size, Value chunk, Value block,
                              Value column, int width) {
  Values result;
  Value inBlock = e.rem(column, TileBlock);
  Value step = e.add(e.mul(block, 2), e.div(inBlock, 16));
  Value inStep = e.rem(inBlock, 16);
  Value reg = e.add(e.add(e.mul(step, 4), e.mul(e.div(inStep, 8), 2)), half);
  Value lane = e.add(e.mul(slot, 4), e.div(e.rem(inStep, 8), 2));
  Value upper = e.rem(inStep, 2); // of a single value

  if (info.plain()) {
    int64_t bytes = layout.elementBytes, registers = 8 / bytes;
    Value at = e.add(e.mul(e.add(e.mul(e.div(reg, registers), 32), lane), 16),
                     e.mul(e.rem(reg, registers), 2 * bytes));
    Value first = e.at(e.at(chunk, size.elementOffset), at);
    Type element = layout.format == Format::F32   ? e.f32
                   : layout.format == Format::F16 ? e.f16
                                                  : e.bf16;
    for (int i = 0; i < width; ++i) {
      // The next lane's registers are 16 bytes on.
      Value from = width == 1 ? e.at(first, e.mul(upper, bytes))
                              : e.at(first, i / 2 * 16 + i % 2 * bytes);
      result.push_back(e.widen(e.load(element, from, static_cast<int>(bytes))));
    }
    return result;
  }

  Value index = slot;
  if (!info.superBlock())
    index = e.add(e.mul(slot, size.blocks), block);
  index = e.add(e.mul(index, 2), half);
  int64_t subBlocks = size.blocks * TileBlock / info.subBlock;
  Value inChunk = e.add(e.mul(block, TileBlock), inBlock);
  Value sub = e.add(
      e.mul(e.add(e.mul(slot, subBlocks), e.div(inChunk, info.subBlock)), 2),
      half);
  auto subFactor = [&](int64_t offset) {
    Value byte = e.load(e.i8, e.at(e.at(chunk, offset), sub), 1);
    return e.toFloat(e.sext(byte, e.i32));
  };
  Value scale;
  if (info.scale == ScaleKind::E8M0) {
    // 2^(x - 128), subnormal for the two smallest.
    Value x = e.zext(
        e.load(e.i8, e.at(e.at(chunk, size.scaleOffset), index), 1), e.i32);
    Value small = arith::ShLIOp::create(e.b, e.loc, e.c(0x00200000), x);
    scale = e.bitcast(
        e.select(e.less(x, 2), small, e.shl(e.sub(x, e.c(1)), 23)), e.f32);
  } else {
    scale = halfAt(chunk, size.scaleOffset, index);
  }
  if (size.subScaleOffset >= 0)
    scale = e.mulf(scale, subFactor(size.subScaleOffset));
  Value minimum;
  if (info.min != MinKind::None)
    minimum = halfAt(chunk, size.minOffset, index);
  if (info.min == MinKind::HalfTimesSub)
    minimum = e.negf(e.mulf(minimum, subFactor(size.subMinOffset)));

  for (int i = 0; i < width; i += 2) {
    Value at = e.add(lane, i / 2);
    Value low = pairWord(size.low, chunk, reg, at);
    Value high;
    if (size.high.bits)
      high = pairWord(size.high, chunk, reg, at);
    for (int j = 0; j < std::min(width, 2); ++j) {
      auto bits = [&](Value word, int count) {
        Value shifted = width == 1 ? Value(arith::ShRUIOp::create(
                                         e.b, e.loc, word, e.mul(upper, 16)))
                                   : e.shr(word, static_cast<int64_t>(j) * 16);
        return e.bitAnd(shifted, (int64_t(1) << count) - 1);
      };
      Value code = bits(low, size.low.bits);
      if (high)
        code = e.bitOr(code, e.shl(bits(high, size.high.bits), size.low.bits));
      Value value = e.mulf(e.toFloat(integerOf(code)), scale);
      result.push_back(minimum ? e.addf(value, minimum) : value);
    }
  }
  return result;
}

Values PackedRow::values(Value column, int width) {
  // Of each block of K: where its chunk starts, its number in the chunk, and
  // the chunk's size, as 64-bit constants.
  SmallVector<int64_t> table;
  SmallVector<int> sizes;
  for (const ChunkPlace &place : layout.chunkPlaces()) {
    for (int block = 0; block < place.blocks; ++block)
      table.push_back(place.offset * 256 + block * 16 + place.blocks);
    if (!llvm::is_contained(sizes, place.blocks))
      sizes.push_back(place.blocks);
  }
  Value entry =
      e.tableEntry(context.model.constants(("chunks_" + name).str(), table),
                   e.div(column, TileBlock));
  Value chunk = e.at(base, e.shr(entry, 8));
  Value block = e.bitAnd(e.trunc(e.shr(entry, 4), e.i32), 15);
  Value size = e.bitAnd(e.trunc(entry, e.i32), 15);
  std::function<Values(size_t)> choose = [&](size_t index) {
    auto own = [&] {
      return chunkValues(layout.chunk(sizes[index]), chunk, block, column,
                         width);
    };
    if (index + 1 == sizes.size())
      return own();
    return e.ifElse(e.equal(size, sizes[index]),
                    TypeRange(SmallVector<Type>(width, e.f32)), own,
                    [&] { return choose(index + 1); });
  };
  return choose(0);
}

Values kvc::nvptx::packedValues(KernelContext &context,
                                FlatSymbolRefAttr weight, Value row,
                                Value column, int width) {
  return PackedRow(context, weight, row).values(column, width);
}

//===- Fragments.cpp - Packed tiles as operands of the matrix unit --------===//
#include "codegen/nvptx/Fragments.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

/// Words of a lane that are in flight at once: what a thread has registers for
/// beside its sums.
static constexpr int WindowWords = 64;

std::vector<TilePart> kvc::nvptx::tileParts(const TilesLayout &layout,
                                            int blocks, int64_t offset) {
  int step = blocks;
  if (layout.elementBytes)
    step = std::min(blocks, WindowWords / (4 * layout.elementBytes));
  std::vector<TilePart> parts;
  for (int first = 0; first < blocks; first += step)
    parts.push_back({blocks, first, std::min(step, blocks - first), offset});
  return parts;
}

void LaneOffsets::require(bool byGroup, int bytes) {
  Value &offset = offsets[{byGroup, bytes}];
  if (offset)
    return;
  Value lane = e.lane();
  offset = e.zext(e.mul(byGroup ? e.shr(lane, 2) : lane, bytes), e.i64);
}

Value LaneOffsets::get(bool byGroup, int bytes) const {
  return offsets.at({byGroup, bytes});
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

TilePieces::TilePieces(const TilesLayout &layout, TilePart part)
    : layout(layout), info(formatInfo(layout.format)),
      chunk(layout.chunk(part.chunkBlocks)), part(part) {
  if (plain()) {
    // A step's registers are elementBytes / 2 pieces of 16 bytes a lane.
    int perStep = layout.elementBytes / 2;
    for (int step = 2 * part.firstBlock;
         step < 2 * (part.firstBlock + part.blocks); ++step)
      for (int piece = 0; piece < perStep; ++piece) {
        int number = step * perStep + piece;
        addPiece(Plane::Element, /*byGroup=*/false, 16,
                 chunk.elementOffset + number * 512, 16, 4 * number);
      }
    return;
  }
  bool super = info.superBlock();
  if (info.scale == ScaleKind::E8M0)
    addHeader(Plane::Scale, chunk.scaleOffset, 2, /*inAll=*/false);
  else
    addHeader(Plane::Scale, chunk.scaleOffset, 4, super);
  if (info.min != MinKind::None)
    addHeader(Plane::Min, chunk.minOffset, 4, super);
  if (chunk.subScaleOffset >= 0)
    addHeader(Plane::SubScale, chunk.subScaleOffset, 2 * subBlocks(), false);
  if (chunk.subMinOffset >= 0)
    addHeader(Plane::SubMin, chunk.subMinOffset, 2 * subBlocks(), false);
  addCodes(Plane::Low, chunk.low);
  if (chunk.high.bits)
    addCodes(Plane::High, chunk.high);
}

void TilePieces::addPiece(Plane plane, bool byGroup, int stride, int64_t offset,
                          int bytes, int index) {
  int lanesBytes = bytes * (byGroup ? 8 : 32);
  list.push_back({plane, byGroup, stride, offset, bytes / 4, index, wordCount,
                  sharedSize});
  wordCount += std::max(1, bytes / 4);
  sharedSize += static_cast<int64_t>(llvm::alignTo(lanesBytes, 16));
}

void TilePieces::addHeader(Plane plane, int64_t offset, int perBlock,
                           bool inAll) {
  int stride = inAll ? perBlock : perBlock * part.chunkBlocks;
  int first = inAll ? 0 : perBlock * part.firstBlock;
  int bytes = inAll ? perBlock : perBlock * part.blocks;
  for (int done = 0; done < bytes; done += 16)
    addPiece(plane, /*byGroup=*/true, stride, offset + first + done,
             std::min(16, bytes - done), (first + done) / 4);
}

void TilePieces::addCodes(Plane plane, const CodePlane &codes) {
  // A block has eight registers' codes in its plane.
  int perWord = codes.registersPerWord(), pieceWords = codes.pieceBytes / 4;
  int word = 8 * part.firstBlock / perWord;
  int end = llvm::divideCeil(8 * (part.firstBlock + part.blocks), perWord);
  while (word < end) {
    int piece = word / pieceWords, inside = word % pieceWords;
    int words = std::min(pieceWords - inside, end - word);
    addPiece(plane, /*byGroup=*/false, codes.pieceBytes,
             codes.offset +
                 static_cast<int64_t>(piece) * 32 * codes.pieceBytes +
                 4 * inside,
             4 * words, word);
    word += words;
  }
}

void TilePieces::requireOffsets(LaneOffsets &lanes) const {
  for (const Piece &piece : list)
    lanes.require(piece.byGroup, piece.stride);
}

void Fragments::load(int first, int last, const LaneOffsets &lanes, Value base,
                     Value predicate, Values &words) const {
  for (int index = first; index < last; ++index) {
    const Piece &piece = list[index];
    Value pointer = e.at(base, lanes.get(piece.byGroup, piece.stride));
    words.append(e.loadWeights(pointer, part.chunkOffset + piece.offset,
                               piece.words, predicate));
  }
}

void Fragments::bind(ValueRange newWords) {
  registers.assign(newWords.begin(), newWords.end());
  sharedPlace = Value();
  looked.clear();
}

void Fragments::bindShared(Value place) {
  registers.assign(wordCount, Value());
  sharedPlace = place;
  looked.clear();
}

/// Where the bytes of a lane, or of its row slot, start in a piece.
static Value inPiece(Emitter &e, bool byGroup, int bytes) {
  Value lane = e.lane();
  return e.mul(byGroup ? e.shr(lane, 2) : lane, bytes);
}

void Fragments::copyAsync(const LaneOffsets &lanes, Value base,
                          Value place) const {
  auto copy = [&](const Piece &piece) {
    Value from = e.at(e.at(base, lanes.get(piece.byGroup, piece.stride)),
                      part.chunkOffset + piece.offset);
    Value to = e.at(e.at(place, piece.sharedOffset),
                    inPiece(e, piece.byGroup, piece.bytes()));
    if (piece.words == 0) // too small for an asynchronous copy
      e.store(e.load(e.i16, from, 2), to, 2);
    else
      e.copyAsync(to, from, piece.bytes());
  };
  bool header = false;
  for (const Piece &piece : list) {
    header |= piece.byGroup;
    if (!piece.byGroup)
      copy(piece);
  }
  // One lane of the four that share a row slot.
  if (header)
    e.ifThen(e.equal(e.bitAnd(e.lane(), 3), 0), [&] {
      for (const Piece &piece : list)
        if (piece.byGroup)
          copy(piece);
    });
}

Value Fragments::word(Plane plane, int index) {
  for (const Piece &piece : list) {
    int inside = index - piece.index;
    if (piece.plane != plane || inside < 0 ||
        inside >= std::max(1, piece.words))
      continue;
    Value &result = registers[piece.firstWord + inside];
    if (!result) {
      Value at = e.at(e.at(sharedPlace, piece.sharedOffset),
                      inPiece(e, piece.byGroup, piece.bytes()));
      if (piece.words == 0) {
        registers[piece.firstWord] = e.zext(e.load(e.i16, at, 2), e.i32);
      } else {
        Values loaded = e.loadWords(at, piece.words);
        std::copy(loaded.begin(), loaded.end(),
                  registers.begin() + piece.firstWord);
      }
    }
    return registers[piece.firstWord + inside];
  }
  llvm_unreachable("a register that was loaded");
}

//===----------------------------------------------------------------------===//
// Scales and minimums
//===----------------------------------------------------------------------===//

Value Fragments::half(Plane plane, int index) {
  Value pair = word(plane, index / 2);
  return index % 2 ? e.high(e.f16, pair) : e.low(e.f16, pair);
}

Value Fragments::byte(Plane plane, int index) {
  Value shifted = e.shl(word(plane, index / 4), 24 - 8 * (index % 4));
  return e.toFloat(arith::ShRSIOp::create(e.b, e.loc, shifted, e.c(24)));
}

/// 2^(exponent - 128) of an exponent from 0 to 255; the two smallest are
/// denormal.
static Value powerOfTwo(Emitter &e, Value exponent) {
  Value denormal = arith::ShLIOp::create(e.b, e.loc, e.c(0x200000), exponent);
  Value normal = e.shl(e.sub(exponent, e.c(1)), 23);
  return e.bitcast(e.select(e.less(exponent, 2), denormal, normal), e.f32);
}

Value Fragments::scale(int block, int sub, int half) {
  int inChunk = part.firstBlock + block;
  switch (info.scale) {
  case ScaleKind::None:
    break;
  case ScaleKind::Half:
    return this->half(Plane::Scale, 2 * inChunk + half);
  case ScaleKind::E8M0: {
    int index = 2 * inChunk + half;
    Value bits = e.shr(word(Plane::Scale, index / 4), 8 * (index % 4));
    return powerOfTwo(e, e.bitAnd(bits, 0xff));
  }
  case ScaleKind::HalfTimesSub:
    return e.mulf(
        this->half(Plane::Scale, half),
        byte(Plane::SubScale, 2 * (inChunk * subBlocks() + sub) + half));
  }
  llvm_unreachable("elements have no scale");
}

Value Fragments::minimum(int block, int sub, int half) {
  int inChunk = part.firstBlock + block;
  switch (info.min) {
  case MinKind::None:
    return {};
  case MinKind::Half:
    return this->half(Plane::Min, 2 * inChunk + half);
  case MinKind::HalfTimesSub:
    return e.negf(
        e.mulf(this->half(Plane::Min, half),
               byte(Plane::SubMin, 2 * (inChunk * subBlocks() + sub) + half)));
  }
  llvm_unreachable("every kind has a minimum");
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// Two equal halves of a word.
static int64_t both(int64_t half) { return half << 16 | half; }

static constexpr int64_t OnePair = 0x3f803f80;

/// The bits of a small integer as bf16: exact up to 256.
static int64_t bfloatBits(int value) {
  auto single = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &single, sizeof(bits));
  return bits >> 16;
}

Value Fragments::codePair(int reg) {
  auto plane = [&](Plane which, const CodePlane &codes, int up) {
    int shift = codes.bits * (reg % codes.registersPerWord()) - up;
    Value bits = word(which, reg / codes.registersPerWord());
    bits = shift >= 0 ? e.shr(bits, shift) : e.shl(bits, -shift);
    return e.bitAnd(bits, both(((1 << codes.bits) - 1) << up));
  };
  Value code = plane(Plane::Low, chunk.low, 0);
  if (chunk.high.bits)
    code = e.bitOr(code, plane(Plane::High, chunk.high, chunk.low.bits));
  return code;
}

Value Fragments::fromBiasedBytes(Value pair) {
  // A byte c means c - 128. Its lower seven bits under the exponent of 128 are
  // 128 + (c & 127), from which 128 goes where bit 7 is set and 256 where not.
  Value lower = e.bitOr(e.bitAnd(pair, both(0x7f)), both(0x4300));
  Value less = e.bitXor(e.bitAnd(pair, both(0x80)), both(0xc380));
  return e.fmaPair(lower, e.c(OnePair), less);
}

Value Fragments::lookUp(int reg) {
  // A word holds four registers' nibbles: of the lower k in its lower half, of
  // the upper k in its upper. prmt looks eight bytes up by three bits of each
  // nibble, so the table's halves give two candidates and bit 3 chooses.
  auto &[lowerK, upperK] = looked[reg / 4];
  if (!lowerK) {
    int64_t table[4] = {};
    for (int code = 0; code < 16; ++code)
      table[code / 4] |= static_cast<int64_t>(info.table[code] + 128)
                         << (8 * (code % 4));
    Value nibbles = word(Plane::Low, reg / 4);
    auto bytes = [&](Value selectors) {
      Value index = e.bitAnd(selectors, 0x7777);
      Value low = e.permute(e.c(table[0]), e.c(table[1]), index);
      Value high = e.permute(e.c(table[2]), e.c(table[3]), index);
      Value choice = e.bitOr(e.bitAnd(e.shr(selectors, 1), 0x4444), 0x3210);
      return e.permute(low, high, choice);
    };
    lowerK = bytes(nibbles);
    upperK = bytes(e.shr(nibbles, 16));
  }
  int byte = reg % 4;
  int64_t selector = byte | byte << 4 | (4 + byte) << 8 | (4 + byte) << 12;
  return fromBiasedBytes(e.permute(lowerK, upperK, e.c(selector)));
}

Value Fragments::integerPair(int reg) {
  if (info.table)
    return lookUp(reg);
  Value code = codePair(reg);
  if (info.codeBits == 8)
    return fromBiasedBytes(code);
  // Under the exponent of 128 a code is 128 + code.
  int64_t less = bfloatBits(-(128 + info.zero));
  return e.fmaPair(e.bitOr(code, both(0x4300)), e.c(OnePair), e.c(both(less)));
}

llvm::SmallVector<Values> Fragments::operands(int block, int step) {
  Values registersOfStep;
  int first = 2 * (part.firstBlock + block) + step;
  if (!plain()) {
    for (int j = 0; j < 4; ++j)
      registersOfStep.push_back(
          integerPair(4 * (2 * (part.firstBlock + block) + step) + j));
    return {registersOfStep};
  }
  if (layout.format == Format::BF16) {
    for (int j = 0; j < 4; ++j)
      registersOfStep.push_back(word(Plane::Element, 4 * first + j));
    return {registersOfStep};
  }
  // high = rn(w), low = rn(w - high): 16 bits of a mantissa, all of an f16's.
  Values high, low;
  for (int j = 0; j < 4; ++j) {
    Value x, y;
    if (layout.format == Format::F16) {
      Value pair = word(Plane::Element, 4 * first + j);
      x = e.low(e.f16, pair);
      y = e.high(e.f16, pair);
    } else {
      x = e.bitcast(word(Plane::Element, 8 * first + 2 * j), e.f32);
      y = e.bitcast(word(Plane::Element, 8 * first + 2 * j + 1), e.f32);
    }
    Value upper = e.pack(e.bf16, x, y);
    high.push_back(upper);
    low.push_back(e.pack(e.bf16, e.subf(x, e.low(e.bf16, upper)),
                         e.subf(y, e.high(e.bf16, upper))));
  }
  return {high, low};
}

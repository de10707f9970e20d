//===- Weights.cpp --------------------------------------------------------===//
#include "codegen/emit/Weights.h"
#include "codegen/formats/Seeded.h"
#include "dialect/PackedWeights.h"

#include "llvm/ADT/STLExtras.h"

#include <thread>

using namespace kvc;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::Twine;

namespace {

/// What is packed at a time.
constexpr int64_t ChunkBytes = 8 << 20;
/// One unit is packed whole. No model comes near this.
constexpr int64_t MaxUnitBytes = int64_t(1) << 30;

/// One layer of a weight, at its place in the arena.
struct Place {
  int64_t offset;
  int64_t bytes;
  WeightOp weight;
  int64_t layer;
};

/// One layer's matrix as units of rows, each packed by itself.
struct MatrixUnits {
  MatrixUnits(WeightType type, WeightFormat format);

  /// Packs units first .. first+count-1, whose first row is at `firstRow`.
  void pack(const uint8_t *firstRow, int64_t first, int64_t count,
            uint8_t *out) const;

  std::optional<PackedLayout> panels;
  std::optional<TilesLayout> tiles;
  int64_t rows;
  int64_t columns;
  int64_t unit; // rows of one
  int64_t units;
  int64_t unitBytes;
  int64_t sourceRowBytes;
};

class WeightPacker {
public:
  WeightPacker(ModelOp model, SourceFiles &sources, WeightsSink sink)
      : model(model), sources(sources), sink(sink), symbols(model) {}

  Error run();

private:
  Expected<std::vector<Place>> collectPlaces();
  Error advanceTo(int64_t offset);
  Error emit(ArrayRef<uint8_t> bytes);
  Error packVector(Place place);
  Error packMatrix(Place place);
  SourceOp sourceOf(SliceAttr slice) {
    return symbols.lookup<SourceOp>(slice.getSource().getAttr());
  }

  ModelOp model;
  SourceFiles &sources;
  WeightsSink sink;
  mlir::SymbolTable symbols;
  int64_t position = 0;
  std::vector<uint8_t> buffer;
};

} // namespace

MatrixUnits::MatrixUnits(WeightType type, WeightFormat format)
    : rows(type.getRows()), columns(type.getColumns()),
      sourceRowBytes(
          formatInfo(static_cast<Format>(format)).rowBytes(columns)) {
  if (type.getTiles()) {
    tiles = tilesOf(type, format);
    unit = tiles->unit;
    units = tiles->units;
    unitBytes = tiles->tilesPerUnit * tiles->tileBytes;
  } else {
    panels = panelsOf(type, format);
    unit = panels->unit;
    units = panels->units;
    unitBytes = panels->unitBytes;
  }
}

void MatrixUnits::pack(const uint8_t *firstRow, int64_t first, int64_t count,
                       uint8_t *out) const {
  if (tiles)
    packTiles(*tiles, firstRow, first, count, out);
  else
    packUnits(*panels, firstRow, first, count, out);
}

static Error weightError(WeightOp weight, const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 "kvc.weight @" + weight.getSymName() + ": " +
                                     message);
}

Expected<std::vector<Place>> WeightPacker::collectPlaces() {
  std::vector<Place> places;
  for (auto weight : model.getOps<WeightOp>()) {
    auto offsets = weight.getOffsets();
    if (!offsets)
      continue; // no program uses it
    WeightType type = weight.getWeightType();
    for (auto [layer, offset] : llvm::enumerate(*offsets)) {
      WeightFormat format = weight.getSlice(layer).getFormat();
      if (type.isMatrix()) {
        std::string error = packingError(type, format);
        if (!error.empty())
          return weightError(weight, error);
      }
      int64_t bytes = packedBytes(type, format);
      places.push_back({offset, bytes, weight, static_cast<int64_t>(layer)});
    }
  }
  llvm::sort(places, [](const Place &a, const Place &b) {
    return a.offset < b.offset;
  });
  int64_t end = 0, total = *model.getWeightsBytes();
  for (Place &place : places) {
    if (place.offset < end || place.offset > total ||
        place.bytes > total - place.offset)
      return weightError(
          place.weight,
          "layer " + Twine(place.layer) + " takes " + Twine(place.bytes) +
              " bytes at " + Twine(place.offset) + ", rule: after byte " +
              Twine(end) + " and inside the arena's " + Twine(total));
    end = place.offset + place.bytes;
  }
  return places;
}

Error WeightPacker::emit(ArrayRef<uint8_t> bytes) {
  position += static_cast<int64_t>(bytes.size());
  return sink(bytes);
}

Error WeightPacker::advanceTo(int64_t offset) {
  static constexpr uint8_t zeros[4096] = {};
  while (position < offset) {
    int64_t count = std::min<int64_t>(offset - position, sizeof(zeros));
    if (Error error = emit(ArrayRef(zeros, count)))
      return error;
  }
  return Error::success();
}

/// The bytes of a slice in its file.
static Expected<const uint8_t *> sliceBytes(SourceFiles &sources,
                                            SourceOp source, SliceAttr slice,
                                            int64_t bytes) {
  Expected<const GgufFile *> file = sources.open(source);
  if (!file)
    return file.takeError();
  // The dialect has checked this against the source's size, which open()
  // compares with the file's.
  uint64_t size = (*file)->size();
  uint64_t offset = static_cast<uint64_t>(slice.getOffset());
  if (offset > size || static_cast<uint64_t>(bytes) > size - offset)
    return llvm::createStringError((*file)->path() + ": found " + Twine(size) +
                                   " bytes, rule: a slice ends at byte " +
                                   Twine(offset + bytes));
  return (*file)->header().data() + offset;
}

/// Elements of a generated weight in the slice's format.
static void generate(SourceOp source, SliceAttr slice, int64_t first,
                     int64_t count, uint8_t *out) {
  seededElements(*source.getSeed(), slice.getTensor().getValue(),
                 {slice.getCenter(), slice.getScale()},
                 slice.getOffset() + first, count,
                 static_cast<Format>(slice.getFormat()), out);
}

Error WeightPacker::packVector(Place place) {
  SliceAttr slice = place.weight.getSlice(place.layer);
  SourceOp source = sourceOf(slice);
  int64_t count = place.weight.getWeightType().getRows();
  std::vector<float> values(count);
  auto format = static_cast<Format>(slice.getFormat());
  if (source.getSeed()) {
    std::vector<uint8_t> elements(formatInfo(format).rowBytes(count));
    generate(source, slice, 0, count, elements.data());
    dequantize(format, elements.data(), count, values.data());
  } else {
    Expected<const uint8_t *> bytes =
        sliceBytes(sources, source, slice, formatInfo(format).rowBytes(count));
    if (!bytes)
      return bytes.takeError();
    dequantize(format, *bytes, count, values.data());
  }
  return emit(ArrayRef(reinterpret_cast<const uint8_t *>(values.data()),
                       values.size() * sizeof(float)));
}

/// Runs `body` on [0, count) in two halves at once.
static void inTwo(int64_t count,
                  llvm::function_ref<void(int64_t, int64_t)> body) {
  int64_t half = count / 2;
  if (half == 0)
    return body(0, count);
  std::thread other([&] { body(0, half); });
  body(half, count - half);
  other.join();
}

Error WeightPacker::packMatrix(Place place) {
  SliceAttr slice = place.weight.getSlice(place.layer);
  SourceOp source = sourceOf(slice);
  MatrixUnits layout(place.weight.getWeightType(), slice.getFormat());
  if (layout.unitBytes > MaxUnitBytes)
    return weightError(place.weight, "a unit takes " + Twine(layout.unitBytes) +
                                         " bytes, rule: at most " +
                                         Twine(MaxUnitBytes));
  const uint8_t *rows = nullptr;
  bool seeded = source.getSeed().has_value();
  if (!seeded) {
    Expected<const uint8_t *> bytes =
        sliceBytes(sources, source, slice, layout.rows * layout.sourceRowBytes);
    if (!bytes)
      return bytes.takeError();
    rows = *bytes;
  }
  int64_t step = std::max<int64_t>(1, ChunkBytes / layout.unitBytes);
  for (int64_t unit = 0; unit < layout.units; unit += step) {
    int64_t count = std::min(step, layout.units - unit);
    buffer.resize(count * layout.unitBytes);
    inTwo(count, [&](int64_t first, int64_t part) {
      uint8_t *out = buffer.data() + first * layout.unitBytes;
      int64_t firstRow = (unit + first) * layout.unit;
      if (!seeded)
        return layout.pack(rows + firstRow * layout.sourceRowBytes,
                           unit + first, part, out);
      int64_t rowCount = std::min(part * layout.unit, layout.rows - firstRow);
      std::vector<uint8_t> elements(rowCount * layout.sourceRowBytes);
      generate(source, slice, firstRow * layout.columns,
               rowCount * layout.columns, elements.data());
      layout.pack(elements.data(), unit + first, part, out);
    });
    if (Error error = emit(buffer))
      return error;
  }
  return Error::success();
}

Error WeightPacker::run() {
  if (!model.getWeightsBytes())
    return llvm::createStringError(
        "kvc.model @" + model.getSymName() +
        ": its weights have no places yet, rule: kvc-pack-weights comes first");
  Expected<std::vector<Place>> places = collectPlaces();
  if (!places)
    return places.takeError();
  for (Place &place : *places) {
    if (Error error = advanceTo(place.offset))
      return error;
    if (Error error = place.weight.getWeightType().isMatrix()
                          ? packMatrix(place)
                          : packVector(place))
      return error;
  }
  return advanceTo(*model.getWeightsBytes());
}

Error kvc::packWeights(ModelOp model, SourceFiles &sources, WeightsSink sink) {
  return WeightPacker(model, sources, sink).run();
}

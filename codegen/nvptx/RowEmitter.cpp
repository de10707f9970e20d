//===- RowEmitter.cpp - Values of a few columns of one row ----------------===//
#include "codegen/nvptx/RowEmitter.h"
#include "codegen/nvptx/PackedRows.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Values kvc::nvptx::loadFloats(Emitter &e, Type element, Value pointer,
                              int width) {
  int64_t bytes = elementBytes(element) * width;
  if (bytes < 4)
    return {e.widen(e.load(element, pointer, static_cast<int>(bytes)))};
  Values result;
  for (Value word : e.loadWords(pointer, static_cast<int>(bytes / 4))) {
    if (element.isF32()) {
      result.push_back(e.bitcast(word, e.f32));
    } else {
      result.push_back(e.low(element, word));
      result.push_back(e.high(element, word));
    }
  }
  return result;
}

void kvc::nvptx::storeFloats(Emitter &e, Type element, ValueRange values,
                             Value pointer) {
  if (elementBytes(element) * static_cast<int64_t>(values.size()) < 4) {
    e.store(e.narrow(element, values[0]), pointer, 2);
    return;
  }
  Values words;
  if (element.isF32())
    for (Value value : values)
      words.push_back(e.bitcast(value, e.i32));
  else
    for (size_t i = 0; i < values.size(); i += 2)
      words.push_back(e.pack(element, values[i], values[i + 1]));
  e.storeWords(words, pointer);
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

static void requireMultiple(int &width, int64_t count) {
  while (count % width != 0)
    width /= 2;
}

int RowEmitter::widthOf(ArrayRef<Operation *> ops) {
  int width = 4;
  auto include = [&](Type type) {
    // Heads are stored apart in the cache: a window is of one head.
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (tensor && tensor.getRank() > 1 &&
        !ShapedType::isDynamic(tensor.getShape().back()))
      requireMultiple(width, tensor.getShape().back());
  };
  for (Operation *op : ops) {
    for (Type type : op->getOperandTypes())
      include(type);
    for (Type type : op->getResultTypes())
      include(type);
    if (auto rope = dyn_cast<RopeOp>(op)) {
      auto pairs = static_cast<int64_t>(rope.getInvFreq().size());
      requireMultiple(width,
                      rope.getLayout() == RopeLayout::Half ? pairs : 2 * pairs);
    }
  }
  return width;
}

void RowEmitter::begin(Value row, Value column, int newWidth) {
  window = {row, column, /*window=*/true};
  width = newWidth;
  known.clear();
}

void RowEmitter::bind(Value value, ValueRange values) {
  known[value] = Values(values);
}

Values RowEmitter::values(Value value) { return valuesAt(value, window); }

Values RowEmitter::unsupported(Operation *op, StringRef why) {
  if (succeeded(outcome))
    op->emitOpError(why);
  outcome = failure();
  return Values(width, e.real(0.0));
}

Values RowEmitter::valuesAt(Value value, Place place) {
  if (place.window)
    if (auto it = known.find(value); it != known.end())
      return it->second;
  Operation *op = value.getDefiningOp();
  assert(op && "only tokens and the batch are arguments of a program");
  Values result =
      llvm::TypeSwitch<Operation *, Values>(op)
          .Case([&](ReadOp read) {
            Type element = context.element(read.getSlot());
            Value at = e.at(context.slotRow(read.getSlot(), place.row),
                            e.mul(place.column, elementBytes(element)));
            return loadFloats(e, element, at, width);
          })
          .Case(
              [&](StageOp stage) { return valuesAt(stage.getInput(), place); })
          .Case([&](EmbedOp embed) {
            std::string error =
                packedValuesError(context.program, embed.getWeightAttr());
            if (!error.empty())
              return unsupported(embed, error);
            return packedValues(context, embed.getWeightAttr(),
                                context.token(place.row), place.column, width);
          })
          .Case([&](AddPositionsOp add) {
            std::string error =
                packedValuesError(context.program, add.getWeightAttr());
            if (!error.empty())
              return unsupported(add, error);
            Values xs = valuesAt(add.getInput(), place);
            Values ys =
                packedValues(context, add.getWeightAttr(),
                             context.position(place.row), place.column, width);
            for (auto [x, y] : llvm::zip_equal(xs, ys))
              x = e.addf(x, y);
            return xs;
          })
          .Case([&](SelectRowsOp select) {
            Place from{context.outputRow(place.row), place.column,
                       /*window=*/false};
            return valuesAt(select.getInput(), from);
          })
          .Case<RmsNormOp, LayerNormOp>(
              [&](Operation *op) { return norm(op, place); })
          .Case<AddOp, MulOp, ActivationOp, SoftCapOp, RoundOp>(
              [&](Operation *op) { return elementwise(op, place); })
          .Case([&](RopeOp op) { return rope(op, place); })
          .Default([&](Operation *op) {
            return unsupported(op, "has no emitter for rows");
          });
  if (place.window)
    known[value] = result;
  return result;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Values RowEmitter::elementwise(Operation *op, Place place) {
  Values xs = valuesAt(op->getOperand(0), place), ys;
  if (op->getNumOperands() > 1)
    ys = valuesAt(op->getOperand(1), place);
  for (auto [index, x] : llvm::enumerate(xs)) {
    if (isa<AddOp>(op))
      x = e.addf(x, ys[index]);
    else if (isa<MulOp>(op))
      x = e.mulf(x, ys[index]);
    else
      x = e.mapped(op, x);
  }
  return xs;
}

Values RowEmitter::vectorAt(FlatSymbolRefAttr weight, Value column) {
  return loadFloats(e, e.f32, e.at(context.weight(weight), e.mul(column, 4)),
                    width);
}

Values RowEmitter::norm(Operation *op, Place place) {
  auto it = norms.find(op);
  if (it == norms.end())
    return unsupported(op, "has no emitter behind an anchor or a select_rows");
  Norm sums = it->second;
  Values xs = valuesAt(op->getOperand(0), place);
  auto rms = dyn_cast<RmsNormOp>(op);
  auto layerNorm = dyn_cast<LayerNormOp>(op);
  Values weights = vectorAt(
      rms ? rms.getWeightAttr() : layerNorm.getWeightAttr(), place.column);
  Values biases;
  if (layerNorm && layerNorm.getBiasAttr())
    biases = vectorAt(layerNorm.getBiasAttr(), place.column);
  for (auto [index, x] : llvm::enumerate(xs)) {
    if (sums.mean)
      x = e.subf(x, sums.mean);
    x = e.mulf(e.mulf(x, sums.factor), weights[index]);
    if (!biases.empty())
      x = e.addf(x, biases[index]);
  }
  return xs;
}

Values RowEmitter::rope(RopeOp op, Place place) {
  int64_t headDim = cast<RankedTensorType>(op.getType()).getDimSize(2);
  auto pairs = static_cast<int64_t>(op.getInvFreq().size());
  Value dim = e.rem(place.column, headDim);
  Value turned = e.less(dim, 2 * pairs);
  Value angles = context.ropeAngles(op, place.row);
  Values xs = valuesAt(op.getInput(), place);
  bool interleaved = op.getLayout() == RopeLayout::Interleaved;
  auto rotate = [&] {
    Values results;
    if (interleaved && width > 1) {
      for (int i = 0; i < width; i += 2) {
        Values angle =
            loadFloats(e, e.f32, e.at(e.at(angles, e.mul(dim, 4)), i * 4), 2);
        Value x = xs[i], y = xs[i + 1];
        results.push_back(e.fma(e.negf(y), angle[1], e.mulf(x, angle[0])));
        results.push_back(e.fma(x, angle[1], e.mulf(y, angle[0])));
      }
      return results;
    }
    // The pair's other value lies elsewhere; the first of a pair subtracts.
    Value second =
        interleaved ? e.equal(e.rem(dim, 2), 1) : e.notI1(e.less(dim, pairs));
    int64_t distance = interleaved ? 1 : pairs;
    Value away = e.select(second, e.c(-distance), e.c(distance));
    Values others =
        valuesAt(op.getInput(),
                 {place.row, e.add(place.column, away), /*window=*/false});
    Value pair = interleaved ? e.div(dim, 2)
                             : e.select(second, e.sub(dim, e.c(pairs)), dim);
    for (int i = 0; i < width; ++i) {
      Values angle =
          loadFloats(e, e.f32, e.at(e.at(angles, e.mul(pair, 8)), i * 8), 2);
      Value other = e.select(second, others[i], e.negf(others[i]));
      results.push_back(e.fma(other, angle[1], e.mulf(xs[i], angle[0])));
    }
    return results;
  };
  if (2 * pairs == headDim)
    return rotate();
  return e.ifElse(turned, TypeRange(SmallVector<Type>(width, e.f32)), rotate,
                  [&] { return xs; });
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

void RowEmitter::append(CacheAppendOp op) {
  CacheType cache = lookupCache(op, op.getCacheAttr()).getCacheType();
  Type element = cache.getType();
  Value position = context.position(window.row);
  Value page = context.page(cache, context.rowSequence(window.row),
                            e.div(position, cache.getPage()));
  Value head = e.div(window.column, cache.getHeadDim());
  Value inPlane =
      e.add(e.mul(e.rem(position, cache.getPage()), cache.getHeadDim()),
            e.rem(window.column, cache.getHeadDim()));
  for (bool isValue : {false, true}) {
    Values stored = values(isValue ? op.getValue() : op.getKey());
    Value plane = context.headPlane(cache, page, isValue, head);
    storeFloats(e, element, stored,
                e.at(plane, e.mul(inPlane, elementBytes(element))));
  }
}

/// Storing rounds: what a kvc.round to the slot's element rounds.
Value RowEmitter::storedValue(WriteOp op) {
  auto round = op.getInput().getDefiningOp<RoundOp>();
  bool same = round && round.getElement() == context.element(op.getSlot());
  return same ? round.getInput() : op.getInput();
}

void RowEmitter::pull(Operation *op) {
  if (auto write = dyn_cast<WriteOp>(op)) {
    values(storedValue(write));
    return;
  }
  for (Value operand :
       {cast<CacheAppendOp>(op).getKey(), cast<CacheAppendOp>(op).getValue()})
    values(operand);
}

LogicalResult RowEmitter::store(Operation *op) {
  if (auto appendOp = dyn_cast<CacheAppendOp>(op)) {
    append(appendOp);
    return outcome;
  }
  auto write = cast<WriteOp>(op);
  Values stored = values(storedValue(write));
  Type element = context.element(write.getSlot());
  Value at = e.at(context.slotRow(write.getSlot(), window.row),
                  e.mul(window.column, elementBytes(element)));
  storeFloats(e, element, stored, at);
  return outcome;
}

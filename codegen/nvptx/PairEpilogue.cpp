//===- PairEpilogue.cpp - A linear's epilogue on pairs of rows ------------===//
#include "codegen/nvptx/PairEpilogue.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

PairEpilogue::PairEpilogue(KernelContext &kernel, const LinearPlan &plan,
                           const LinearGroup &group)
    : kernel(kernel), e(kernel.e), plan(plan), group(group) {
  WeightOp weight = plan.segments[group.segments[0]].weight;
  WeightType type = weight.getWeightType();
  tiles = type.getTiles();
  rows = type.getRows();
  for (Operation *op : group.epilogue)
    for (Value operand : op->getOperands())
      if (operand.getDefiningOp<ReadOp>() &&
          !llvm::is_contained(reads, operand))
        reads.push_back(operand);
  findLimits();
}

LogicalResult PairEpilogue::check(const LinearPlan &plan,
                                  const LinearGroup &group) {
  WeightOp weight = plan.segments[group.segments[0]].weight;
  TilesAttr tiles = weight.getWeightType().getTiles();
  for (Operation *op : group.epilogue) {
    if (auto rope = dyn_cast<RopeOp>(op)) {
      auto pairs = static_cast<int64_t>(rope.getInvFreq().size());
      int64_t apart = rope.getLayout() == RopeLayout::Half ? pairs : 1;
      if (tiles.getPair() != apart)
        return op->emitOpError("rotates rows ")
               << apart << " apart, but the weight's tiles pair rows "
               << tiles.getPair() << " apart";
      auto heads = cast<RankedTensorType>(rope.getType());
      if (heads.getRank() != 3 || heads.getDimSize(2) != tiles.getUnit())
        return op->emitOpError("needs tiles of whole heads, found units of ")
               << tiles.getUnit() << " rows";
    } else if (!isa<AddOp, MulOp, ActivationOp, SoftCapOp, RoundOp, WriteOp,
                    CacheAppendOp>(op)) {
      return op->emitOpError("cannot run on the tiles of a linear on cuda");
    }
  }
  return success();
}

int64_t PairEpilogue::pairsOfUnit() const {
  int64_t unit = tiles.getUnit(), pair = tiles.getPair();
  return unit / (2 * pair) * pair + std::min(unit % (2 * pair), pair);
}

void PairEpilogue::findLimits() {
  int64_t unit = tiles.getUnit(), pair = tiles.getPair();
  int64_t slots = llvm::alignTo(pairsOfUnit(), 8);
  for (int64_t start = 0; start < rows; start += unit)
    for (int64_t slot = 0; slot < slots; ++slot)
      for (int half = 0; half < 2; ++half) {
        int64_t inUnit = slot / pair * 2 * pair + slot % pair + half * pair;
        leavesUnit[half] |= inUnit >= unit;
        leavesRows[half] |= start + inUnit >= rows;
      }
}

PairEpilogue::Place PairEpilogue::place(Value tile, Value slot, Value row) {
  int64_t unit = tiles.getUnit(), pair = tiles.getPair();
  int64_t pairs = pairsOfUnit();
  int64_t tilesPerUnit = llvm::divideCeil(pairs, 8);
  Place place;
  place.row = row;
  Value number = tile, first = slot;
  if (tilesPerUnit > 1) {
    number = e.div(tile, tilesPerUnit);
    first = e.add(e.mul(e.rem(tile, tilesPerUnit), 8), slot);
  }
  place.pairInUnit = first;
  Value low = first;
  // Slots beyond the last pair land beyond the unit.
  if (pair < pairs || pairs % 8 != 0)
    low = e.add(e.mul(e.div(first, pair), 2 * pair), e.rem(first, pair));
  for (int half = 0; half < 2; ++half) {
    Value inUnit = e.add(low, half * pair);
    Value column = e.add(e.mul(number, unit), inUnit);
    if (leavesUnit[half])
      place.valid[half] = e.less(inUnit, unit);
    if (leavesRows[half]) {
      Value inside = e.less(column, rows);
      place.valid[half] =
          place.valid[half] ? e.both(place.valid[half], inside) : inside;
      column = e.min(column, e.c(rows - 1));
    }
    place.columns[half] = column;
  }
  return place;
}

bool PairEpilogue::mine(Value value) { return known.count(value) != 0; }

Value PairEpilogue::columnAddress(SlotAttr slot, const Place &place, int half) {
  int64_t bytes = kernel.element(slot).getIntOrFloatBitWidth() / 8;
  return e.at(kernel.slotRow(slot, place.row),
              e.mul(place.columns[half], bytes));
}

SmallVector<Type> PairEpilogue::preparedTypes() {
  SmallVector<Type> types;
  for (int segment : group.segments)
    if (plan.segments[segment].bias)
      types.append(2, e.f32);
  types.append(2 * reads.size(), e.f32);
  for (Operation *op : group.epilogue) {
    if (isa<RopeOp>(op))
      types.append(2, e.f32);
    if (isa<CacheAppendOp>(op))
      types.append(1, e.global);
  }
  return types;
}

Values PairEpilogue::prepare(const Place &place) {
  Values result;
  for (int segment : group.segments)
    if (FlatSymbolRefAttr bias = plan.segments[segment].bias)
      for (Value column : place.columns)
        result.push_back(
            e.load(e.f32, e.at(kernel.weight(bias), e.mul(column, 4)), 4));
  for (Value value : reads) {
    SlotAttr slot = value.getDefiningOp<ReadOp>().getSlot();
    Type element = kernel.element(slot);
    int bytes = static_cast<int>(element.getIntOrFloatBitWidth() / 8);
    for (int half = 0; half < 2; ++half)
      result.push_back(
          e.widen(e.load(element, columnAddress(slot, place, half), bytes)));
  }
  for (Operation *op : group.epilogue) {
    if (auto rope = dyn_cast<RopeOp>(op)) {
      auto pairs = static_cast<int64_t>(rope.getInvFreq().size());
      Value pair = e.min(place.pairInUnit, e.c(pairs - 1));
      Value angles = kernel.ropeAngles(rope, place.row);
      for (Value word : e.loadWords(e.at(angles, e.mul(pair, 8)), 2))
        result.push_back(e.bitcast(word, e.f32));
    }
    if (auto append = dyn_cast<CacheAppendOp>(op)) {
      CacheType cache =
          lookupCache(plan.linear, append.getCacheAttr()).getCacheType();
      Value position = kernel.position(place.row);
      Value page = kernel.page(cache, kernel.rowSequence(place.row),
                               e.div(position, cache.getPage()));
      int64_t bytes =
          cache.getHeadDim() * (cache.getType().getIntOrFloatBitWidth() / 8);
      result.push_back(
          e.at(page, e.mul(e.rem(position, cache.getPage()), bytes)));
    }
  }
  return result;
}

void PairEpilogue::storePair(const Place &place, Type element, Pair values,
                             llvm::function_ref<Value(int)> address) {
  int bytes = static_cast<int>(element.getIntOrFloatBitWidth() / 8);
  Value both[2] = {values.first, values.second};
  for (int half = 0; half < 2; ++half) {
    auto store = [&] {
      e.store(e.narrow(element, both[half]), address(half), bytes);
    };
    if (place.valid[half])
      e.ifThen(place.valid[half], store);
    else
      store();
  }
}

void PairEpilogue::finish(const Place &place, ValueRange prepared,
                          ArrayRef<Pair> values) {
  known.clear();
  size_t next = 0;
  auto take = [&] { return prepared[next++]; };
  for (auto [segment, pair] : llvm::zip_equal(group.segments, values)) {
    Pair sums = pair;
    if (plan.segments[segment].bias) {
      sums.first = e.addf(sums.first, take());
      sums.second = e.addf(sums.second, take());
    }
    known[plan.segments[segment].result] = sums;
  }
  for (Value value : reads) {
    Value first = take(), second = take();
    known[value] = {first, second};
  }
  for (Operation *op : group.epilogue) {
    auto operand = [&](unsigned index) { return known[op->getOperand(index)]; };
    auto each = [&](llvm::function_ref<Value(Value)> function) {
      auto [x, y] = operand(0);
      known[op->getResult(0)] = {function(x), function(y)};
    };
    if (isa<AddOp, MulOp>(op)) {
      auto [a, b] = operand(0);
      auto [c, d] = operand(1);
      if (isa<AddOp>(op))
        known[op->getResult(0)] = {e.addf(a, c), e.addf(b, d)};
      else
        known[op->getResult(0)] = {e.mulf(a, c), e.mulf(b, d)};
    } else if (isa<ActivationOp, SoftCapOp, RoundOp>(op)) {
      each([&](Value x) { return e.mapped(op, x); });
    } else if (auto rope = dyn_cast<RopeOp>(op)) {
      auto [x, y] = operand(0);
      Value cos = take(), sin = take();
      Value first = e.fma(e.negf(y), sin, e.mulf(x, cos));
      Value second = e.fma(x, sin, e.mulf(y, cos));
      auto pairs = static_cast<int64_t>(rope.getInvFreq().size());
      if (2 * pairs < tiles.getUnit()) {
        Value turns = e.less(place.pairInUnit, pairs);
        first = e.select(turns, first, x);
        second = e.select(turns, second, y);
      }
      known[rope.getResult()] = {first, second};
    } else if (auto write = dyn_cast<WriteOp>(op)) {
      SlotAttr slot = write.getSlot();
      storePair(place, kernel.element(slot), operand(0),
                [&](int half) { return columnAddress(slot, place, half); });
    } else if (auto append = dyn_cast<CacheAppendOp>(op)) {
      CacheType cache =
          lookupCache(plan.linear, append.getCacheAttr()).getCacheType();
      int64_t bytes = cache.getType().getIntOrFloatBitWidth() / 8;
      Value line = take();
      auto keep = [&](Value which, bool isValue) {
        if (!mine(which))
          return;
        storePair(place, cache.getType(), known[which], [&](int half) {
          Value head = e.div(place.columns[half], cache.getHeadDim());
          Value dim = e.rem(place.columns[half], cache.getHeadDim());
          return e.at(kernel.headPlane(cache, line, isValue, head),
                      e.mul(dim, bytes));
        });
      };
      keep(append.getKey(), false);
      keep(append.getValue(), true);
    }
  }
}

//===- DispatchLinear.cpp - Row kernels and linears -----------------------===//
#include "codegen/LinearGroups.h"
#include "codegen/cpu/Dispatch.h"
#include "dialect/PackedWeights.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::cpu;

void kvc::cpu::forTiles(Emitter &e, Value count, ArrayRef<int> sizes,
                        llvm::function_ref<void(Value, int)> body) {
  Value done = e.c(0);
  for (int size : sizes) {
    Value left = e.sub(count, done);
    Value end = size == 1 ? count : e.add(done, e.mul(e.div(left, size), size));
    e.loop(done, end, size, [&](Value first) { body(first, size); });
    done = end;
  }
}

/// The type whose extent a dispatch runs over and whose row its ops work on.
static Type rowType(Operation *op) {
  return op->getNumResults() ? op->getResult(0).getType()
                             : op->getOperand(0).getType();
}

static int64_t staticRowElements(DispatchContext &context, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  if (tensor.getRank() == 3 && tensor.isDynamicDim(2))
    return tensor.getDimSize(1) * context.model.model.getMaxContext();
  return rowElements(type);
}

LogicalResult kvc::cpu::emitRows(DispatchContext &context,
                                 DispatchOp dispatch) {
  Emitter &e = context.e;
  Block &body = dispatch.getBody().front();
  Operation *last = nullptr;
  for (Operation &op : body.without_terminator())
    if (!isa<ReadOp>(op))
      last = &op;
  if (!last)
    return dispatch.emitOpError("does nothing");
  auto [low, high] = context.share(context.extent(rowType(last)));
  RowEmitter rows(context);
  LogicalResult result = success();
  e.loop(low, high, 1, [&](Value row) {
    Value zero = e.c(0);
    rows.begin(row, zero, 0);
    for (Operation &op : body.without_terminator()) {
      rows.setColumns(staticRowElements(context, rowType(&op)));
      // What follows may use what was not emitted.
      if (failed(rows.emit(&op))) {
        result = failure();
        return;
      }
    }
  });
  return result;
}

//===----------------------------------------------------------------------===//
// Linears
//===----------------------------------------------------------------------===//

namespace {

/// One weight of the linear, with what it needs to be multiplied.
struct Segment {
  Value result;
  WeightOp weight;
  PackedLayout layout; // of the first layer: all layers share the geometry
  FlatSymbolRefAttr bias;
  Value scratch; // [row tile][padded unit] f32
  int64_t paddedUnit() const { return layout.panelsPerUnit * layout.lanes; }
};

class LinearEmitter {
public:
  LinearEmitter(DispatchContext &context, DispatchOp dispatch, LinearOp linear)
      : context(context), e(context.e), dispatch(dispatch), linear(linear),
        rowEmitter(context) {}

  LogicalResult emit();

private:
  LogicalResult collectSegments();
  LogicalResult collectGroups();
  LogicalResult emitPrologue();
  void emitUnit(LinearGroup &group, Value unit, int64_t columns);
  void emitTile(LinearGroup &group, Value unit, int64_t columns, Value firstRow,
                int rows);
  void emitPanels(Segment &segment, Value unit, Value x, Value out,
                  Value outStride, int rows);

  DispatchContext &context;
  Emitter &e;
  DispatchOp dispatch;
  LinearOp linear;
  RowEmitter rowEmitter;
  SmallVector<Segment> segments;
  std::vector<LinearGroup> groups;
  SlotAttr input;
  Activations activations = Activations::F32;
  LogicalResult status = success();
};
} // namespace

LogicalResult LinearEmitter::collectSegments() {
  Operation *producer = linear.getInput().getDefiningOp();
  if (auto read = dyn_cast_or_null<ReadOp>(producer))
    input = read.getSlot();
  else if (auto stage = dyn_cast_or_null<StageOp>(producer))
    input = stage.getSlot();
  else
    return linear.emitOpError("needs its input in a slot");
  activations = input.getElement() == SlotElement::Q8 ? Activations::Q8
                                                      : Activations::F32;
  int maxRows = e.target.rowTiles().front();
  for (auto [index, symbol] :
       llvm::enumerate(linear.getWeights().getAsRange<FlatSymbolRefAttr>())) {
    Segment segment;
    segment.result = linear.getOutputs()[index];
    segment.weight = lookupWeight(linear, symbol);
    WeightType type = segment.weight.getWeightType();
    PanelsAttr panels = type.getPanels();
    if (!panels || !segment.weight.getOffsets())
      return linear.emitOpError("needs packed weights, but ")
             << symbol << " has no layout; run kvc-pack-weights";
    if (panels.getLanes() != e.lanes)
      return linear.emitOpError("needs panels of ")
             << e.lanes << " lanes, but " << symbol << " has "
             << panels.getLanes();
    for (auto slice : segment.weight.getSlices().getAsRange<SliceAttr>())
      if (activations == Activations::Q8 &&
          formatInfo(static_cast<Format>(slice.getFormat())).plain())
        return linear.emitOpError("multiplies quantized activations with ")
               << symbol << ", which is stored as "
               << stringifyWeightFormat(slice.getFormat());
    segment.layout = panelsOf(type, segment.weight.getSlice(0).getFormat());
    if (auto biases = linear.getBiases())
      segment.bias = dyn_cast<FlatSymbolRefAttr>((*biases)[index]);
    segment.scratch =
        e.stack(llvm::alignTo(maxRows * segment.paddedUnit() * 4, 64));
    segments.push_back(segment);
  }
  return success();
}

LogicalResult LinearEmitter::collectGroups() {
  FailureOr<std::vector<LinearGroup>> found = linearGroups(linear);
  if (failed(found))
    return failure();
  groups = std::move(*found);
  for (const LinearGroup &group : groups) {
    const PackedLayout &first = segments[group.segments[0]].layout;
    for (int segment : group.segments) {
      const PackedLayout &layout = segments[segment].layout;
      if (layout.unit != first.unit || layout.rows != first.rows)
        return linear.emitOpError("has segments that meet in the epilogue but "
                                  "differ in units: ")
               << first.rows << " rows by " << first.unit << " and "
               << layout.rows << " by " << layout.unit;
    }
  }
  return success();
}

LogicalResult LinearEmitter::emitPrologue() {
  SmallVector<Operation *> prologue;
  for (Operation &op : *linear->getBlock()) {
    if (&op == linear.getOperation())
      break;
    if (!isa<ReadOp>(op))
      prologue.push_back(&op);
  }
  if (prologue.empty())
    return success();
  LogicalResult result = success();
  Value count = context.extent(linear.getInput().getType());
  e.loop(e.c(0), count, 1, [&](Value row) {
    rowEmitter.begin(row, e.c(0), 0);
    for (Operation *op : prologue) {
      rowEmitter.setColumns(rowElements(rowType(op)));
      if (failed(rowEmitter.emit(op))) {
        result = failure();
        return;
      }
    }
  });
  return result;
}

void LinearEmitter::emitPanels(Segment &segment, Value unit, Value x, Value out,
                               Value outStride, int rows) {
  const PackedLayout &layout = segment.layout;
  Value base =
      context.weight(FlatSymbolRefAttr::get(segment.weight.getSymNameAttr()));
  auto emitFormat = [&](Format format) {
    WeightType type = segment.weight.getWeightType();
    PackedLayout own = packedLayout(format, type.getRows(), type.getColumns(),
                                    e.lanes, layout.unit);
    Value first = e.at(base, e.mul(unit, own.unitBytes));
    int count = PanelKernels::panelsAtOnce(own, activations, rows);
    func::FuncOp kernel =
        context.model.panels.get(own, activations, rows, count);
    e.loop(e.c(0), e.c(own.panelsPerUnit), count, [&](Value panel) {
      Value w = e.at(first, e.mul(panel, own.panelBytes));
      Value target = e.at(out, e.mul(panel, static_cast<int64_t>(e.lanes) * 4));
      func::CallOp::create(
          e.b, e.loc, kernel,
          ValueRange{w, x, e.c(input.getStride()), target, outStride});
    });
  };

  // A class is a set of layers that store the weight in one format: code grows
  // with classes, not with layers.
  SmallVector<int64_t> classOf, formats;
  for (auto slice : segment.weight.getSlices().getAsRange<SliceAttr>()) {
    auto format = static_cast<int64_t>(slice.getFormat());
    auto *it = llvm::find(formats, format);
    classOf.push_back(it - formats.begin());
    if (it == formats.end())
      formats.push_back(format);
  }
  if (formats.size() == 1) {
    emitFormat(static_cast<Format>(formats[0]));
    return;
  }
  LLVM::GlobalOp table = context.model.constants(
      ("classes." + segment.weight.getSymName()).str(), classOf);
  Value address =
      LLVM::AddressOfOp::create(e.b, e.loc, e.ptr, table.getSymNameAttr());
  Value number = e.load(e.i64, e.at(address, e.mul(context.layer, 8)), 8);
  for (size_t index = 0; index < formats.size(); ++index) {
    Value hit = arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::eq,
                                      number, e.c(static_cast<int64_t>(index)));
    e.ifThen(hit, [&] { emitFormat(static_cast<Format>(formats[index])); });
  }
}

void LinearEmitter::emitTile(LinearGroup &group, Value unit, int64_t columns,
                             Value firstRow, int rows) {
  Value firstColumn = e.mul(unit, segments[group.segments[0]].layout.unit);
  Value x = context.slotRow(input, firstRow);
  struct Place {
    Value base;
    Value stride;
    Operation *slot;
  };
  SmallVector<Place> places;
  for (int index : group.segments) {
    Segment &segment = segments[index];
    // Whole panels go to where the schedule wants them; padded ones must not.
    Operation *slot = RowEmitter::f32Slot(segment.result);
    Place place{segment.scratch, e.c(segment.paddedUnit() * 4), nullptr};
    if (slot && columns == segment.paddedUnit()) {
      SlotAttr attr = RowEmitter::slotOf(slot);
      place = {e.at(context.slotRow(attr, firstRow), e.mul(firstColumn, 4)),
               e.c(attr.getStride()), slot};
    }
    emitPanels(segment, unit, x, place.base, place.stride, rows);
    places.push_back(place);
  }
  bool work = false;
  for (Operation *op : group.epilogue)
    work |= !llvm::any_of(places, [&](Place &p) { return p.slot == op; });
  for (int index : group.segments)
    work |= segments[index].bias != nullptr;
  if (!work)
    return;
  e.loop(e.c(0), e.c(rows), 1, [&](Value tileRow) {
    Value row = e.add(firstRow, tileRow);
    rowEmitter.begin(row, firstColumn, columns);
    for (auto [index, place] : llvm::zip_equal(group.segments, places)) {
      Segment &segment = segments[index];
      Value window = e.at(place.base, e.mul(tileRow, place.stride));
      if (segment.bias) {
        Value bias = e.at(context.weight(segment.bias), e.mul(firstColumn, 4));
        e.forColumns(columns, [&](Value offset, Value mask) {
          Value sum = e.addf(e.loadColumns(window, offset, mask),
                             e.loadColumns(bias, offset, mask));
          e.storeColumns(sum, window, offset, mask);
        });
      }
      rowEmitter.bind(segment.result, window, place.slot);
    }
    for (Operation *op : group.epilogue)
      if (failed(rowEmitter.emit(op))) {
        status = failure();
        return;
      }
  });
}

void LinearEmitter::emitUnit(LinearGroup &group, Value unit, int64_t columns) {
  Value rows = context.extent(linear.getInput().getType());
  forTiles(e, rows, e.target.rowTiles(), [&](Value first, int size) {
    emitTile(group, unit, columns, first, size);
  });
}

LogicalResult LinearEmitter::emit() {
  if (failed(collectSegments()) || failed(collectGroups()) ||
      failed(emitPrologue()))
    return failure();
  int64_t total = 0;
  for (LinearGroup &group : groups)
    total += segments[group.segments[0]].layout.units;
  auto [low, high] = context.share(e.c(total));
  int64_t first = 0;
  for (LinearGroup &group : groups) {
    const PackedLayout &layout = segments[group.segments[0]].layout;
    int64_t whole = layout.rows / layout.unit;
    // This group's units are first .. first + units - 1 of the dispatch's.
    auto own = [&](Value bound, int64_t limit) {
      Value shifted = e.sub(bound, e.c(first));
      return e.max(e.c(0), e.min(shifted, e.c(limit)));
    };
    e.loop(own(low, whole), own(high, whole), 1,
           [&](Value unit) { emitUnit(group, unit, layout.unit); });
    if (whole < layout.units) {
      // The last unit lacks rows.
      e.loop(e.max(own(low, layout.units), e.c(whole)), own(high, layout.units),
             1, [&](Value unit) {
               emitUnit(group, unit, layout.rows - whole * layout.unit);
             });
    }
    first += layout.units;
  }
  return status;
}

LogicalResult kvc::cpu::emitLinear(DispatchContext &context,
                                   DispatchOp dispatch, LinearOp linear) {
  return LinearEmitter(context, dispatch, linear).emit();
}

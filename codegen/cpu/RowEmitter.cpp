//===- RowEmitter.cpp - Ops on a window of columns of one row -------------===//
#include "codegen/cpu/RowEmitter.h"
#include "dialect/PackedWeights.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::cpu;

void RowEmitter::begin(Value newRow, Value newFirstColumn, int64_t newColumns) {
  row = newRow;
  firstColumn = newFirstColumn;
  columns = newColumns;
  windows.clear();
  placed.clear();
}

LogicalResult RowEmitter::emit(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](ReadOp) { return success(); }) // an address only
      .Case<WriteOp, StageOp>([&](Operation *op) {
        emitCopy(op);
        return success();
      })
      .Case([&](EmbedOp op) { return emitEmbed(op), success(); })
      .Case([&](AddPositionsOp op) { return emitAddPositions(op), success(); })
      .Case([&](SelectRowsOp op) { return emitSelectRows(op); })
      .Case<RmsNormOp, LayerNormOp>(
          [&](Operation *op) { return emitNorm(op), success(); })
      .Case<AddOp, MulOp, ActivationOp, SoftCapOp, RoundOp>(
          [&](Operation *op) { return emitElementwise(op), success(); })
      .Case([&](QuantizeOp op) { return emitQuantize(op); })
      .Case([&](RopeOp op) { return emitRope(op), success(); })
      .Case([&](CacheAppendOp op) { return emitAppend(op), success(); })
      .Case([&](ScoresOp op) { return emitScores(op), success(); })
      .Case(
          [&](MaskedSoftmaxOp op) { return emitMaskedSoftmax(op), success(); })
      .Case([&](ContextOp op) { return emitContext(op), success(); })
      .Default([](Operation *op) {
        return op->emitOpError("has no emitter for rows");
      });
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

SlotAttr RowEmitter::slotOf(Operation *op) {
  if (auto write = dyn_cast<WriteOp>(op))
    return write.getSlot();
  return cast<StageOp>(op).getSlot();
}

Operation *RowEmitter::f32Slot(Value value) {
  for (Operation *user : value.getUsers())
    if (isa<WriteOp, StageOp>(user) &&
        slotOf(user).getElement() == SlotElement::F32)
      return user;
  return nullptr;
}

Value RowEmitter::slotWindow(SlotAttr slot, Value slotRow) {
  return e.at(context.slotRow(slot, slotRow), e.mul(firstColumn, 4));
}

Value RowEmitter::window(Value value) {
  if (auto it = windows.find(value); it != windows.end())
    return it->second;
  Value result;
  if (auto read = value.getDefiningOp<ReadOp>())
    result = slotWindow(read.getSlot(), row);
  else if (auto stage = value.getDefiningOp<StageOp>())
    result = slotWindow(stage.getSlot(), row);
  assert(result && "a value is emitted before it is used");
  windows[value] = result;
  return result;
}

Value RowEmitter::destination(Value value) {
  Operation *user = f32Slot(value);
  Value result;
  if (user) {
    result = slotWindow(slotOf(user), row);
  } else {
    Value &space = scratch[value];
    if (!space)
      space = e.stack(llvm::alignTo(columns * 4, 64));
    result = space;
  }
  bind(value, result, user);
  return result;
}

void RowEmitter::emitCopy(Operation *op) {
  Value value = op->getOperand(0);
  // A q8 slot is filled by the quantisation itself; a value that was computed
  // in its slot is there already.
  if (slotOf(op).getElement() == SlotElement::Q8 || placed.lookup(value) == op)
    return;
  Value source = window(value);
  Value target = slotWindow(slotOf(op), row);
  e.forColumns(columns, [&](Value offset, Value mask) {
    e.storeColumns(e.loadColumns(source, offset, mask), target, offset, mask);
  });
}

Value RowEmitter::reduce(Value init,
                         llvm::function_ref<Value(Value, Value, Value)> body) {
  int64_t whole = columns / e.lanes * e.lanes;
  Value sum = init;
  if (whole > 0)
    sum = e.loop(e.c(0), e.c(whole), e.lanes, {init},
                 [&](Value offset, ValueRange carried) {
                   return SmallVector<Value>{body(offset, {}, carried[0])};
                 })[0];
  if (whole < columns)
    sum = body(e.c(whole), e.tailMask(columns - whole), sum);
  return sum;
}

//===----------------------------------------------------------------------===//
// Gathers
//===----------------------------------------------------------------------===//

/// Calls `use(k, value)` for every value of row `index` of a packed matrix:
/// the scalar form of what panel kernels read a register at a time.
void RowEmitter::emitPanelRow(FlatSymbolRefAttr symbol, Value index,
                              llvm::function_ref<void(Value, Value)> use) {
  WeightOp weight = lookupWeight(context.program, symbol);
  WeightType type = weight.getWeightType();
  PackedLayout layout = panelsOf(type, weight.getSlice(0).getFormat());
  const FormatInfo &info = formatInfo(layout.format);
  int64_t lanes = layout.lanes;

  Value inUnit = e.rem(index, layout.unit);
  Value lane = e.rem(inUnit, lanes);
  Value panel = e.at(e.at(context.weight(symbol),
                          e.mul(e.div(index, layout.unit), layout.unitBytes)),
                     e.mul(e.div(inUnit, lanes), layout.panelBytes));

  if (info.plain()) {
    Type element = plainElement(e, layout.format);
    Value column = e.at(panel, e.mul(lane, layout.elementBytes));
    e.loop(e.c(0), e.c(layout.columns), 1, [&](Value k) {
      Value at = e.at(column, e.mul(k, layout.blockBytes));
      use(k, e.widen(e.load(element, at, 1)));
    });
    return;
  }

  Value words = e.mul(lane, 4);
  e.loop(e.c(0), e.c(layout.blocks), 1, [&](Value blockIndex) {
    Value block = e.at(panel, e.mul(blockIndex, layout.blockBytes));
    auto half = [&](int64_t offset) {
      Value at = e.at(e.at(block, offset), e.mul(lane, 2));
      return e.widen(e.load(e.f16, at, 2));
    };
    auto factor = [&](int64_t offset, Value sub) {
      Value at = e.at(e.at(block, offset), e.add(e.mul(sub, lanes), lane));
      return e.toFloat(e.sext(e.load(e.i8, at, 1), e.i32));
    };
    Value d;
    if (layout.dOffset >= 0) {
      d = half(layout.dOffset);
    } else {
      Value at = e.at(e.at(block, layout.exponentOffset), lane);
      d = powerOfTwo(e, e.zext(e.load(e.i8, at, 1), e.i32));
    }
    Value m = layout.mOffset >= 0 ? half(layout.mOffset) : Value();

    e.loop(e.c(0), e.c(layout.blockValues / 4), 1, [&](Value group) {
      Value sub = e.div(e.mul(group, 4), info.subBlock);
      Value scale = layout.subScaleOffset >= 0
                        ? e.mulf(d, factor(layout.subScaleOffset, sub))
                        : d;
      Value minimum = m;
      if (layout.subMinOffset >= 0)
        minimum = e.negf(e.mulf(m, factor(layout.subMinOffset, sub)));
      auto plane = [&](int64_t offset, int bits) {
        int64_t perRegister = 8 / bits;
        Value at =
            e.at(e.at(block, offset),
                 e.add(e.mul(e.div(group, perRegister), 4 * lanes), words));
        Value shift = e.trunc(e.mul(e.rem(group, perRegister), bits), e.i32);
        Value word =
            arith::ShRUIOp::create(e.b, e.loc, e.load(e.i32, at, 4), shift);
        return bits == 8 ? word
                         : e.bitAnd(word, ((1 << bits) - 1) * 0x01010101);
      };
      Value code = plane(layout.lowOffset, layout.lowBits);
      if (layout.highOffset >= 0)
        code = e.bitOr(code, e.shl(plane(layout.highOffset, layout.highBits),
                                   layout.lowBits));
      for (int byte = 0; byte < 4; ++byte) {
        Value q = e.bitAnd(e.shr(code, 8 * byte), 0xff);
        Value integer;
        if (info.table) {
          SmallVector<int64_t> table(info.table,
                                     info.table + (1 << info.codeBits));
          LLVM::GlobalOp global =
              context.model.constants(std::string("table.") + info.name, table);
          Value address = LLVM::AddressOfOp::create(e.b, e.loc, e.ptr,
                                                    global.getSymNameAttr());
          Value at = e.at(address, e.mul(e.zext(q, e.i64), 8));
          integer = e.trunc(e.load(e.i64, at, 8), e.i32);
        } else {
          integer = e.sub(q, e.integer(info.zero, e.i32));
        }
        Value value = e.mulf(e.toFloat(integer), scale);
        if (minimum)
          value = e.addf(value, minimum);
        Value k = e.add(e.mul(blockIndex, layout.blockValues),
                        e.add(e.mul(group, 4), byte));
        use(k, value);
      }
    });
  });
}

void RowEmitter::emitEmbed(EmbedOp op) {
  Value out = destination(op.getResult());
  emitPanelRow(
      op.getWeightAttr(), context.token(row),
      [&](Value k, Value value) { e.store(value, e.at(out, e.mul(k, 4)), 4); });
}

void RowEmitter::emitAddPositions(AddPositionsOp op) {
  Value in = window(op.getInput());
  Value out = destination(op.getResult());
  emitPanelRow(op.getWeightAttr(), context.position(row),
               [&](Value k, Value value) {
                 Value x = e.load(e.f32, e.at(in, e.mul(k, 4)), 4);
                 e.store(e.addf(x, value), e.at(out, e.mul(k, 4)), 4);
               });
}

LogicalResult RowEmitter::emitSelectRows(SelectRowsOp op) {
  auto read = op.getInput().getDefiningOp<ReadOp>();
  if (!read)
    return op.emitOpError("selects from a slot: its input must be a kvc.read");
  bind(op.getResult(), slotWindow(read.getSlot(), context.outputRow(row)));
  return success();
}

//===----------------------------------------------------------------------===//
// Arithmetic on rows
//===----------------------------------------------------------------------===//

void RowEmitter::emitNorm(Operation *op) {
  Value in = window(op->getOperand(0));
  Value out = destination(op->getResult(0));
  Value zero = e.splatReal(0.0);
  Value count = e.real(static_cast<double>(columns));
  auto weightAt = [&](FlatSymbolRefAttr symbol) {
    return context.weight(symbol);
  };
  auto squares = [&](Value center) {
    Value sum = reduce(zero, [&](Value offset, Value mask, Value sum) {
      Value x = e.loadColumns(in, offset, mask);
      if (center) {
        Value difference = e.subf(x, center);
        x = mask ? e.select(mask, difference, zero) : difference;
      }
      return e.fma(x, x, sum);
    });
    return e.divf(e.horizontal(sum, Emitter::Fold::Add), count);
  };
  auto inverseRoot = [&](Value variance, const APFloat &eps) {
    Value root = e.sqrt(e.addf(variance, e.real(eps.convertToDouble())));
    return e.broadcast(e.divf(e.real(1.0), root));
  };

  if (auto rms = dyn_cast<RmsNormOp>(op)) {
    Value factor = inverseRoot(squares({}), rms.getEps());
    Value weight = weightAt(rms.getWeightAttr());
    e.forColumns(columns, [&](Value offset, Value mask) {
      Value x = e.mulf(e.loadColumns(in, offset, mask), factor);
      e.storeColumns(e.mulf(x, e.loadColumns(weight, offset, mask)), out,
                     offset, mask);
    });
    return;
  }

  auto layerNorm = cast<LayerNormOp>(op);
  Value sum = reduce(zero, [&](Value offset, Value mask, Value sum) {
    return e.addf(sum, e.loadColumns(in, offset, mask));
  });
  Value mean =
      e.broadcast(e.divf(e.horizontal(sum, Emitter::Fold::Add), count));
  Value factor = inverseRoot(squares(mean), layerNorm.getEps());
  Value weight = weightAt(layerNorm.getWeightAttr());
  Value bias =
      layerNorm.getBiasAttr() ? weightAt(layerNorm.getBiasAttr()) : Value();
  e.forColumns(columns, [&](Value offset, Value mask) {
    Value x = e.subf(e.loadColumns(in, offset, mask), mean);
    x = e.mulf(e.mulf(x, factor), e.loadColumns(weight, offset, mask));
    if (bias)
      x = e.addf(x, e.loadColumns(bias, offset, mask));
    e.storeColumns(x, out, offset, mask);
  });
}

void RowEmitter::emitElementwise(Operation *op) {
  SmallVector<Value> ins;
  for (Value operand : op->getOperands())
    ins.push_back(window(operand));
  Value out = destination(op->getResult(0));
  e.forColumns(columns, [&](Value offset, Value mask) {
    SmallVector<Value> xs;
    for (Value in : ins)
      xs.push_back(e.loadColumns(in, offset, mask));
    Value result;
    if (isa<AddOp>(op)) {
      result = e.addf(xs[0], xs[1]);
    } else if (isa<MulOp>(op)) {
      result = e.mulf(xs[0], xs[1]);
    } else if (auto round = dyn_cast<RoundOp>(op)) {
      result = e.widen(e.narrow(xs[0], round.getElement()));
    } else if (auto cap = dyn_cast<SoftCapOp>(op)) {
      result = e.softCap(xs[0], cap.getCap().convertToDouble());
    } else {
      switch (cast<ActivationOp>(op).getKind()) {
      case ActivationKind::Silu:
        result = e.silu(xs[0]);
        break;
      case ActivationKind::Gelu:
        result = e.gelu(xs[0]);
        break;
      case ActivationKind::GeluTanh:
        result = e.geluTanh(xs[0]);
        break;
      }
    }
    e.storeColumns(result, out, offset, mask);
  });
}

LogicalResult RowEmitter::emitQuantize(QuantizeOp op) {
  Value in = window(op.getInput());
  Q8Row planes{rowElements(op.getType())};
  for (Operation *user : op->getUsers()) {
    if (!isa<WriteOp, StageOp>(user) ||
        slotOf(user).getElement() != SlotElement::Q8)
      return op.emitOpError("is stored in q8 slots only, but ")
             << user->getName() << " uses it";
    if (columns % 32 != 0)
      return op.emitOpError("needs tiles of whole blocks of 32, found ")
             << columns << " columns";
    Value out = context.slotRow(slotOf(user), row);
    Value codes = e.at(out, firstColumn);
    Value scales =
        e.at(e.at(out, planes.scales()), e.div(e.mul(firstColumn, 4), 32));
    Value sums =
        e.at(e.at(out, planes.sums()), e.div(e.mul(firstColumn, 4), 16));
    Value products =
        e.at(e.at(out, planes.products()), e.div(e.mul(firstColumn, 4), 32));
    e.loop(e.c(0), e.c(columns / 32), 1, [&](Value block) {
      Value x = e.at(in, e.mul(block, 128));
      SmallVector<Value> registers;
      Value largest;
      for (int offset = 0; offset < 32; offset += e.lanes) {
        registers.push_back(e.load(e.vec(e.f32), e.at(x, offset * 4), 4));
        Value magnitude = e.absf(registers.back());
        largest = largest ? e.maxf(largest, magnitude) : magnitude;
      }
      Value scale =
          e.divf(e.horizontal(largest, Emitter::Fold::Max), e.real(127.0));
      Value isZero = arith::CmpFOp::create(
          e.b, e.loc, arith::CmpFPredicate::OEQ, scale, e.real(0.0));
      Value inverse = e.broadcast(
          e.select(isZero, e.real(0.0), e.divf(e.real(1.0), scale)));
      e.store(scale, e.at(scales, e.mul(block, 4)), 4);
      SmallVector<Value> integers;
      for (auto [index, values] : llvm::enumerate(registers)) {
        Value q = e.toInt(e.roundEven(e.mulf(values, inverse)), e.i32);
        Value at = e.at(e.at(codes, e.mul(block, 32)),
                        static_cast<int64_t>(index) * e.lanes);
        e.store(e.trunc(q, e.i8), at, 1);
        integers.push_back(q);
      }
      Value all = e.concat(integers);
      Value total;
      for (int part = 0; part < 2; ++part) {
        Value sum =
            vector::ReductionOp::create(e.b, e.loc, vector::CombiningKind::ADD,
                                        e.slice(all, part * 16, 16));
        e.store(sum, e.at(e.at(sums, e.mul(block, 8)), part * 4), 4);
        total = total ? e.add(total, sum) : sum;
      }
      e.store(e.mulf(scale, e.toFloat(total)), e.at(products, e.mul(block, 4)),
              4);
    });
  }
  return success();
}

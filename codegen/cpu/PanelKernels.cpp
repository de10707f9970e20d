//===- PanelKernels.cpp - Rows of activations times one panel -------------===//
#include "codegen/cpu/PanelKernels.h"

#include <algorithm>

using namespace mlir;
using namespace kvc;
using namespace kvc::cpu;

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

Type kvc::cpu::plainElement(Emitter &e, Format format) {
  return format == Format::F32   ? e.f32
         : format == Format::F16 ? e.f16
                                 : e.b.getBF16Type();
}

Value kvc::cpu::powerOfTwo(Emitter &e, Value exponent) {
  // A normal f32 from exponent 2 on, below it two subnormals.
  Type words = exponent.getType();
  Value normal = e.shl(e.sub(exponent, e.integer(1, words)), 23);
  Value subnormal =
      arith::ShLIOp::create(e.b, e.loc, e.integer(0x200000, words), exponent);
  Value bits =
      e.select(e.less(exponent, e.integer(2, words)), subnormal, normal);
  return e.bitcast(bits, isa<VectorType>(words) ? Type(e.vec(e.f32)) : e.f32);
}

PanelBlock::PanelBlock(Emitter &e, const PackedLayout &layout, Value block)
    : e(e), layout(layout), info(formatInfo(layout.format)), block(block) {
  if (info.table) {
    // Table entries are stored plus a bias that makes them unsigned.
    int count = 1 << info.codeBits;
    int low = 0;
    for (int code = 0; code < count; ++code)
      low = std::min(low, info.codeValue(code));
    bias = -low;
    largest = 0;
    for (int code = 0; code < count; ++code) {
      table.push_back(static_cast<uint8_t>(info.codeValue(code) + bias));
      largest = std::max<int>(largest, table.back());
    }
  } else {
    bias = info.zero;
    largest = (1 << info.codeBits) - 1;
  }
  auto halves = [&](int64_t offset) {
    return e.loadFloats(e.f16, e.at(block, offset), 2);
  };
  if (layout.dOffset >= 0)
    d = halves(layout.dOffset);
  if (layout.mOffset >= 0)
    m = halves(layout.mOffset);
  if (layout.exponentOffset >= 0) {
    d = powerOfTwo(
        e, e.zext(e.load(e.vec(e.i8), e.at(block, layout.exponentOffset), 1),
                  e.i32));
  }
}

static Value subBlockFactor(Emitter &e, Value block, int64_t offset,
                            Value sub) {
  Value at = e.at(e.at(block, offset), e.mul(sub, e.lanes));
  return e.toFloat(e.sext(e.load(e.vec(e.i8), at, 1), e.i32));
}

Value PanelBlock::scale(Value sub) {
  if (layout.subScaleOffset < 0)
    return d;
  return e.mulf(d, subBlockFactor(e, block, layout.subScaleOffset, sub));
}

Value PanelBlock::minimum(Value sub) {
  if (layout.mOffset < 0)
    return {};
  if (layout.subMinOffset < 0)
    return m;
  return e.negf(e.mulf(m, subBlockFactor(e, block, layout.subMinOffset, sub)));
}

/// The group's bits of one code plane. 32 values are a whole number of
/// registers of every plane, so shifts do not depend on the chunk.
Value PanelBlock::plane(int64_t offset, int bits, Value chunk, int group) {
  int perRegister = 8 / bits;
  int64_t registerBytes = 4 * static_cast<int64_t>(e.lanes);
  int64_t chunkBytes = 8 / perRegister * registerBytes;
  Value at = e.at(e.at(block, offset + group / perRegister * registerBytes),
                  e.mul(chunk, chunkBytes));
  Value stored =
      e.load(e.vec(e.i32), at, static_cast<int>(layout.codeAlignment));
  Value shifted = e.shr(stored, bits * (group % perRegister));
  return bits == 8 ? stored : e.bitAnd(shifted, ((1 << bits) - 1) * 0x01010101);
}

Value PanelBlock::codes(Value chunk, int group) {
  Value codes = plane(layout.lowOffset, layout.lowBits, chunk, group);
  if (layout.highOffset >= 0) {
    Value high = plane(layout.highOffset, layout.highBits, chunk, group);
    codes = e.bitOr(codes, e.shl(high, layout.lowBits));
  }
  return table.empty() ? codes : e.lookup16(codes, table);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace {
/// The body of one panel function.
class PanelBody {
public:
  PanelBody(Emitter &e, const PackedLayout &layout, Activations activations,
            int rows, int count, ValueRange arguments)
      : e(e), layout(layout), info(formatInfo(layout.format)),
        activations(activations), rows(rows), count(count), w(arguments[0]),
        out(arguments[3]), outStride(arguments[4]) {
    for (int row = 0; row < rows; ++row)
      xRows.push_back(e.at(arguments[1], e.mul(arguments[2], row)));
  }

  void emit() {
    // Sums of panel p and row r: sums[p * rows + r].
    SmallVector<Value> sums(static_cast<size_t>(count * rows),
                            e.splatReal(0.0));
    sums = info.plain() ? emitPlain(sums) : emitBlocks(sums);
    for (int panel = 0; panel < count; ++panel)
      for (int row = 0; row < rows; ++row) {
        Value at = e.at(e.at(out, e.mul(outStride, row)),
                        static_cast<int64_t>(panel) * e.lanes * 4);
        e.store(sums[panel * rows + row], at, 4);
      }
  }

private:
  SmallVector<Value> emitPlain(SmallVector<Value> sums) {
    Type element = plainElement(e, layout.format);
    int align = static_cast<int>(layout.elementBytes * e.lanes);
    auto step = [&](Value k, ValueRange sums) {
      SmallVector<Value> next;
      for (int panel = 0; panel < count; ++panel) {
        Value at = e.at(e.at(w, panel * layout.panelBytes),
                        e.mul(k, layout.blockBytes));
        Value weights = e.loadFloats(element, at, align);
        for (int row = 0; row < rows; ++row)
          next.push_back(
              e.fma(activation(row, k), weights, sums[panel * rows + row]));
      }
      return next;
    };
    constexpr int64_t Unroll = 8;
    int64_t whole = layout.columns / Unroll * Unroll;
    sums = e.loop(e.c(0), e.c(whole), Unroll, sums,
                  [&](Value k, ValueRange carried) {
                    SmallVector<Value> next = llvm::to_vector(carried);
                    for (int64_t i = 0; i < Unroll; ++i)
                      next = step(e.add(k, i), next);
                    return next;
                  });
    for (int64_t k = whole; k < layout.columns; ++k)
      sums = step(e.c(k), sums);
    return sums;
  }

  SmallVector<Value> emitBlocks(ArrayRef<Value> sums) {
    int64_t chunks = info.blockValues / 32;
    return e.loop(
        e.c(0), e.c(layout.blocks), 1, sums,
        [&](Value index, ValueRange carried) {
          Value bytes = e.mul(index, layout.blockBytes);
          Value firstChunk = e.mul(index, chunks);
          SmallVector<Value> next;
          for (int panel = 0; panel < count; ++panel) {
            Value start = e.at(e.at(w, panel * layout.panelBytes), bytes);
            if (rows == 1)
              prefetchAhead(start);
            PanelBlock block(e, layout, start);
            ValueRange own = carried.slice(panel * rows, rows);
            if (chunks == 1)
              next.append(
                  emitChunk(block, e.c(0), firstChunk, llvm::to_vector(own)));
            else
              next.append(e.loop(e.c(0), e.c(chunks), 1, own,
                                 [&](Value chunk, ValueRange sums) {
                                   return emitChunk(block, chunk,
                                                    e.add(firstChunk, chunk),
                                                    llvm::to_vector(sums));
                                 }));
          }
          return next;
        });
  }

  /// One row streams the panel from memory: ask for the lines early.
  void prefetchAhead(Value block) {
    constexpr int64_t Distance = 4096;
    for (int64_t line = 0; line < layout.blockBytes; line += 64)
      e.prefetch(e.at(block, Distance + line));
  }

  /// 32 values: chunk `chunk` of its block, chunk `global` of the row.
  SmallVector<Value> emitChunk(PanelBlock &block, Value chunk, Value global,
                               SmallVector<Value> sums) {
    int subs = 32 / info.subBlock;
    int groups = 8 / subs;
    for (int sub = 0; sub < subs; ++sub) {
      Value index = e.add(e.mul(chunk, subs), sub);
      Value scale = block.scale(index), minimum = block.minimum(index);
      auto code = [&](int group) {
        return block.codes(chunk, sub * groups + group);
      };
      if (activations == Activations::F32)
        sums =
            emitFloat(block, groups, code, scale, minimum, global, sub, sums);
      else
        sums =
            emitInteger(block, groups, code, scale, minimum, global, sub, sums);
    }
    return sums;
  }

  SmallVector<Value> emitFloat(PanelBlock &block, int groups,
                               llvm::function_ref<Value(int)> code, Value scale,
                               Value minimum, Value global, int sub,
                               SmallVector<Value> sums) {
    // Formats with a zero have no minimum; zero * scale is exact in f32.
    if (block.zero() != 0)
      minimum = e.mulf(e.splatReal(-block.zero()), scale);
    for (int group = 0; group < groups; ++group) {
      Value codes = code(group);
      for (int byte = 0; byte < 4; ++byte) {
        Value word = e.shr(codes, 8 * byte);
        Value q = e.toFloat(byte == 3 ? word : e.bitAnd(word, 0xff));
        Value weights = minimum ? e.fma(q, scale, minimum) : e.mulf(q, scale);
        int64_t offset = sub * info.subBlock + 4 * group + byte;
        Value k = e.add(e.mul(global, 32), offset);
        for (int row = 0; row < rows; ++row)
          sums[row] = e.fma(activation(row, k), weights, sums[row]);
      }
    }
    return sums;
  }

  SmallVector<Value> emitInteger(PanelBlock &block, int groups,
                                 llvm::function_ref<Value(int)> code,
                                 Value scale, Value minimum, Value global,
                                 int sub, SmallVector<Value> sums) {
    Q8Row planes{layout.columns};
    // Element `index` of a plane of four-byte elements.
    auto element = [&](int row, int64_t plane, Value index, Type type) {
      return e.load(type, e.at(e.at(xRows[row], plane), e.mul(index, 4)), 4);
    };
    SmallVector<Value> xSums;
    for (int row = 0; row < rows; ++row) {
      auto sixteen = [&](int half) {
        return element(row, planes.sums(), e.add(e.mul(global, 2), half),
                       e.i32);
      };
      xSums.push_back(info.subBlock == 32 ? e.add(sixteen(0), sixteen(1))
                                          : sixteen(sub));
    }
    SmallVector<Value> dots = e.codeDots(
        groups, code, xSums,
        [&](size_t row, int group) {
          Value bytes = e.at(xRows[row], e.mul(global, 32));
          return e.broadcast(
              e.load(e.i32, e.at(bytes, sub * info.subBlock + 4 * group), 4));
        },
        block.maxCode(), block.zero());
    for (int row = 0; row < rows; ++row) {
      Value xScale = element(row, planes.scales(), global, e.f32);
      sums[row] = e.fma(e.toFloat(dots[row]),
                        e.mulf(scale, e.broadcast(xScale)), sums[row]);
      if (!minimum)
        continue;
      Value product = info.subBlock == 32
                          ? element(row, planes.products(), global, e.f32)
                          : e.mulf(xScale, e.toFloat(xSums[row]));
      sums[row] = e.fma(minimum, e.broadcast(product), sums[row]);
    }
    return sums;
  }

  Value activation(int row, Value k) {
    return e.broadcast(e.load(e.f32, e.at(xRows[row], e.mul(k, 4)), 4));
  }

  Emitter &e;
  const PackedLayout &layout;
  const FormatInfo &info;
  const Activations activations;
  const int rows, count;
  Value w, out, outStride;
  SmallVector<Value> xRows;
};
} // namespace

int PanelKernels::panelsAtOnce(const PackedLayout &layout,
                               Activations activations, int rows) {
  bool shortChains = rows == 1 && activations == Activations::F32;
  return shortChains && layout.panelsPerUnit % 2 == 0 ? 2 : 1;
}

func::FuncOp PanelKernels::get(const PackedLayout &layout,
                               Activations activations, int rows, int count) {
  std::string name = llvm::formatv(
      "panel.{0}.{1}.k{2}.{3}x{4}", formatInfo(layout.format).name,
      activations == Activations::F32 ? "f32" : "q8", layout.columns, rows,
      count);
  func::FuncOp &function = functions[name];
  if (function)
    return function;

  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  Location loc = module.getLoc();
  Type ptr = LLVM::LLVMPointerType::get(builder.getContext());
  Type i64 = builder.getI64Type();
  function = func::FuncOp::create(
      builder, loc, name,
      builder.getFunctionType({ptr, ptr, i64, ptr, i64}, {}));
  function.setPrivate();
  // Inlined into every caller it would multiply code and compile time.
  function->setAttr("passthrough", builder.getStrArrayAttr({"noinline"}));
  Block *entry = function.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  func::ReturnOp::create(builder, loc);
  builder.setInsertionPointToStart(entry);
  Emitter e(builder, loc, target);
  e.b.setInsertionPoint(entry->getTerminator());
  PanelBody(e, layout, activations, rows, count, function.getArguments())
      .emit();
  return function;
}

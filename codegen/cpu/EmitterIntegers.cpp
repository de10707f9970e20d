//===- EmitterIntegers.cpp - Products of 8-bit codes and activations ------===//
#include "codegen/cpu/Emitter.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::cpu;

Value Emitter::call(StringRef intrinsic, Type result, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(b, loc, result,
                                       b.getStringAttr(intrinsic), operands)
      .getResult(0);
}

Value Emitter::callNative(llvm::function_ref<std::string(int)> name,
                          VectorType result, ValueRange operands) {
  int bits =
      static_cast<int>(result.getDimSize(0) * result.getElementTypeBitWidth());
  int parts = std::max(1, bits / target.nativeBits);
  SmallVector<Value> results;
  VectorType partType =
      vec(result.getElementType(), result.getDimSize(0) / parts);
  for (int part = 0; part < parts; ++part) {
    SmallVector<Value> slices;
    for (Value operand : operands) {
      int64_t count = cast<VectorType>(operand.getType()).getDimSize(0) / parts;
      slices.push_back(parts == 1 ? operand
                                  : slice(operand, part * count, count));
    }
    results.push_back(call(name(bits / parts), partType, slices));
  }
  return concat(results);
}

static std::string byWidth(int bits, const char *sse, const char *avx2,
                           const char *avx512) {
  return bits == 512 ? avx512 : bits == 256 ? avx2 : sse;
}

SmallVector<Value> Emitter::codeDots(int groups,
                                     llvm::function_ref<Value(int)> code,
                                     ArrayRef<Value> xSums,
                                     llvm::function_ref<Value(size_t, int)> x,
                                     int maxCode, int zero) {
  VectorType words = vec(i32), bytes = vec(i8, 4 * lanes),
             pairs = vec(i16, 2 * lanes);
  size_t rows = xSums.size();
  // sum (code - zero) x = sum code x - zero * sum x.
  SmallVector<Value> sums;
  auto start = [&](int offset) {
    for (Value xSum : xSums)
      sums.push_back(offset == 0 ? integer(0, words)
                                 : broadcast(mul(xSum, integer(-offset, i32))));
  };

  // Groups outside, rows inside: a group's codes are unpacked once and die, and
  // the rows' sums are chains of their own.
  if (target.dot == DotKind::Vnni) {
    start(zero);
    std::string name = "llvm.x86.avx512.vpdpbusd." + std::to_string(lanes * 32);
    for (int group = 0; group < groups; ++group) {
      Value w = bitcast(code(group), bytes);
      for (size_t row = 0; row < rows; ++row)
        sums[row] =
            call(name, words, {sums[row], w, bitcast(x(row, group), bytes)});
    }
    return sums;
  }

  if (target.dot == DotKind::Generic) {
    start(zero);
    for (int group = 0; group < groups; ++group) {
      Value w = code(group);
      for (size_t row = 0; row < rows; ++row)
        for (int byte = 0; byte < 4; ++byte) {
          Value top = shl(x(row, group), 24 - 8 * byte);
          Value signedX =
              arith::ShRSIOp::create(b, loc, top, integer(24, words));
          Value wByte = bitAnd(shr(w, 8 * byte), 0xff);
          sums[row] = add(sums[row], mul(wByte, signedX));
        }
    }
    return sums;
  }

  auto maddubs = [&](Value unsignedBytes, Value signedBytes) {
    return callNative(
        [](int bits) {
          return byWidth(bits, "llvm.x86.ssse3.pmadd.ub.sw.128",
                         "llvm.x86.avx2.pmadd.ub.sw",
                         "llvm.x86.avx512.pmaddubs.w.512");
        },
        pairs, {unsignedBytes, signedBytes});
  };
  auto pairSums = [&](Value products) {
    return callNative(
        [](int bits) {
          return byWidth(bits, "llvm.x86.sse2.pmadd.wd",
                         "llvm.x86.avx2.pmadd.wd",
                         "llvm.x86.avx512.pmaddw.d.512");
        },
        words, {products, integer(1, pairs)});
  };

  if (2 * maxCode * 127 <= 32767) {
    // As many products as fit 16 bits are added before they are widened.
    start(zero);
    int most = 32767 / (2 * maxCode * 127);
    for (int first = 0; first < groups; first += most) {
      SmallVector<Value> products(rows);
      for (int group = first; group < std::min(first + most, groups); ++group) {
        Value w = bitcast(code(group), bytes);
        for (size_t row = 0; row < rows; ++row) {
          Value product = maddubs(w, bitcast(x(row, group), bytes));
          products[row] = products[row] ? add(products[row], product) : product;
        }
      }
      for (size_t row = 0; row < rows; ++row)
        sums[row] = add(sums[row], pairSums(products[row]));
    }
    return sums;
  }

  // Larger codes: |w| x sign(w) with w = code - 128, whose pairs fit 16 bits.
  // x where w > 0, -x where w < 0; where w = 0 the product is 0 either way.
  auto withSignOf = [&](Value x, Value w) {
    if (target.nativeBits <= 256)
      return callNative(
          [](int bits) {
            return byWidth(bits, "llvm.x86.ssse3.psign.b.128",
                           "llvm.x86.avx2.psign.b", "");
          },
          bytes, {x, w});
    Value isNegative = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                             w, integer(0, bytes));
    return select(isNegative, sub(integer(0, bytes), x), x);
  };
  start(zero - 128);
  for (int group = 0; group < groups; ++group) {
    Value w = bitXor(bitcast(code(group), bytes), 0x80);
    Value magnitude = math::AbsIOp::create(b, loc, w);
    for (size_t row = 0; row < rows; ++row) {
      Value turned = withSignOf(bitcast(x(row, group), bytes), w);
      sums[row] = add(sums[row], pairSums(maddubs(magnitude, turned)));
    }
  }
  return sums;
}

Value Emitter::lookup16(Value codes, ArrayRef<uint8_t> table) {
  VectorType words = vec(i32), bytes = vec(i8, 4 * lanes);
  Value indices = bitcast(codes, bytes);
  if (!target.byteShuffle) {
    Value result = integer(table[0], bytes);
    for (int code = 1; code < 16; ++code) {
      Value hit = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                        indices, integer(code, bytes));
      result = select(hit, integer(table[code], bytes), result);
    }
    return bitcast(result, words);
  }
  // pshufb looks up within each 16 bytes: the table is repeated in each.
  SmallVector<int8_t> repeated;
  for (int64_t i = 0; i < 4 * lanes; ++i)
    repeated.push_back(static_cast<int8_t>(table[i % 16]));
  Value tables = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(bytes, ArrayRef<int8_t>(repeated)));
  Value result = callNative(
      [](int bits) {
        return byWidth(bits, "llvm.x86.ssse3.pshuf.b.128",
                       "llvm.x86.avx2.pshuf.b", "llvm.x86.avx512.pshuf.b.512");
      },
      bytes, {tables, indices});
  return bitcast(result, words);
}

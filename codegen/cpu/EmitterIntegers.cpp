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

Value Emitter::codeDot(ArrayRef<Value> codes, ArrayRef<Value> xs, int maxCode,
                       int zero, Value xSum) {
  VectorType words = vec(i32), bytes = vec(i8, 4 * lanes),
             pairs = vec(i16, 2 * lanes);
  // sum (code - zero) x = sum code x - zero * sum x.
  auto correction = [&](int offset) {
    if (offset == 0)
      return splatInt(0, words);
    return broadcast(mul(xSum, integer(-offset, i32)));
  };

  if (target.dot == DotKind::Vnni) {
    Value sum = correction(zero);
    std::string name = "llvm.x86.avx512.vpdpbusd." + std::to_string(lanes * 32);
    for (auto [code, x] : llvm::zip_equal(codes, xs))
      sum = call(name, words, {sum, bitcast(code, bytes), bitcast(x, bytes)});
    return sum;
  }

  if (target.dot == DotKind::Maddubs) {
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
          words, {products, splatInt(1, pairs)});
    };
    // x where w > 0, -x where w < 0; where w = 0 the product is 0 either way.
    auto withSignOf = [&](Value x, Value w) {
      if (target.nativeBits <= 256)
        return callNative(
            [](int bits) {
              return byWidth(bits, "llvm.x86.ssse3.psign.b.128",
                             "llvm.x86.avx2.psign.b", "");
            },
            bytes, {x, w});
      Value isNegative = arith::CmpIOp::create(
          b, loc, arith::CmpIPredicate::slt, w, splatInt(0, bytes));
      return select(isNegative, sub(splatInt(0, bytes), x), x);
    };
    if (2 * maxCode * 127 <= 32767) {
      // As many products as fit 16 bits are added before they are widened.
      size_t group = 32767 / (2 * maxCode * 127);
      Value sum = correction(zero);
      for (size_t first = 0; first < codes.size(); first += group) {
        Value products;
        for (size_t i = first; i < std::min(first + group, codes.size()); ++i) {
          Value product =
              maddubs(bitcast(codes[i], bytes), bitcast(xs[i], bytes));
          products = products ? add(products, product) : product;
        }
        sum = add(sum, pairSums(products));
      }
      return sum;
    }
    // Larger codes: |w| x sign(w) with w = code - 128, whose pairs fit 16 bits.
    Value sum = correction(zero - 128);
    for (auto [code, x] : llvm::zip_equal(codes, xs)) {
      Value w = bitXor(bitcast(code, bytes), 0x80);
      Value magnitude = math::AbsIOp::create(b, loc, w);
      Value xBytes = bitcast(x, bytes);
      sum = add(sum, pairSums(maddubs(magnitude, withSignOf(xBytes, w))));
    }
    return sum;
  }

  Value sum = correction(zero);
  for (auto [code, x] : llvm::zip_equal(codes, xs))
    for (int byte = 0; byte < 4; ++byte) {
      Value w = bitAnd(shr(code, 8 * byte), 0xff);
      Value top = shl(x, 24 - 8 * byte);
      Value signedX = arith::ShRSIOp::create(b, loc, top, splatInt(24, words));
      sum = add(sum, mul(w, signedX));
    }
  return sum;
}

Value Emitter::lookup16(Value codes, ArrayRef<uint8_t> table) {
  VectorType words = vec(i32), bytes = vec(i8, 4 * lanes);
  Value indices = bitcast(codes, bytes);
  if (!target.byteShuffle) {
    Value result = splatInt(table[0], bytes);
    for (int code = 1; code < 16; ++code) {
      Value hit = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                        indices, splatInt(code, bytes));
      result = select(hit, splatInt(table[code], bytes), result);
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

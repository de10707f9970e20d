//===- TokenSampler.cpp - One block draws one token -----------------------===//
#include "codegen/nvptx/TokenSampler.h"

#include "runtime/Abi.h"

#include "llvm/Support/MathExtras.h"

#include <cstddef>

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

// Keys of special logits, and the ids that report them.
static constexpr int64_t InfinityKey = 0xff800000, NanKey = 0xffffffff,
                         MinusInfinityKey = 0x007fffff;
static constexpr int64_t NanId = -1, InfinityId = -2, NothingId = -3;
/// One, as a weight.
static constexpr double WeightUnit = 17592186044416.0; // 2^44

TokenSampler::TokenSampler(KernelContext &k, Value output, int64_t vocab)
    : k(k), e(k.e), vocab(vocab), output(output) {
  row = e.at(k.logits, e.mul(e.i64Of(output), vocab * 4));
  settings = e.at(k.sampling, e.mul(e.i64Of(output), sizeof(KvcSampling)));
  tokens = e.min(parameter(offsetof(KvcSampling, tokens), e.i32), e.c(vocab));
  bins = k.sharedMemory();
  sums = e.at(bins, Bins * 8);
  message = e.at(sums, static_cast<int64_t>(Threads) * 8);
}

Value TokenSampler::parameter(int64_t offset, Type type) {
  return e.load(type, e.at(settings, offset), 4);
}

Value TokenSampler::unsignedLess(Value x, Value y) {
  return arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::ult, x, y);
}

Value TokenSampler::keyOf(Value logit) {
  // Minus zero is zero: equal logits have equal keys.
  Value bits = e.bitcast(e.addf(logit, e.real(0.0)), e.i32);
  Value sign = arith::ShRSIOp::create(e.b, e.loc, bits, e.c(31));
  Value key = e.bitXor(bits, e.bitOr(sign, 0x80000000));
  Value isNan = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::UNO,
                                      logit, logit);
  return e.select(isNan, e.c(NanKey), key);
}

Value TokenSampler::logitOf(Value key) {
  Value positive = e.less(key, 0);
  return e.bitcast(
      e.select(positive, e.bitXor(key, 0x80000000), e.bitXor(key, -1)), e.f32);
}

Value TokenSampler::weightOf(Value logit, Value least) {
  // Sampler.cpp's exponential, operation by operation.
  Value x = e.mulf(e.subf(logit, largest), inverse);
  Value vanishes = e.lessf(x, e.real(-87.0));
  x = e.select(vanishes, e.real(-87.0), x);
  Value rounder = e.real(12582912.0);
  Value shifted = e.addf(e.mulf(x, e.real(1.44269504)), rounder);
  Value n = e.subf(shifted, rounder);
  Value r = e.subf(x, e.mulf(n, e.real(0.693359375)));
  r = e.subf(r, e.mulf(n, e.real(-2.12194440e-4)));
  Value p = e.addf(e.mulf(r, e.real(1.0f / 720)), e.real(1.0f / 120));
  for (float coefficient : {1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f})
    p = e.addf(e.mulf(p, r), e.real(coefficient));
  Value bits = e.add(e.bitcast(p, e.i32), e.shl(e.bitcast(shifted, e.i32), 23));
  Value weight = e.bitcast(bits, e.f32);
  if (least)
    vanishes = e.bitOr(vanishes, e.lessf(weight, least));
  weight = e.select(vanishes, e.real(0.0), weight);
  return arith::FPToUIOp::create(e.b, e.loc, e.i64,
                                 e.mulf(weight, e.real(WeightUnit)));
}

Value TokenSampler::part(Value x, Value fraction) {
  Value scaled = arith::FPToUIOp::create(
      e.b, e.loc, e.i64, e.mulf(fraction, e.real(4294967296.0)));
  Value high = e.mul(e.shr(x, 32), scaled);
  Value low = e.mul(e.bitAnd(x, 0xffffffff), scaled);
  return e.add(high, e.shr(low, 32));
}

std::pair<Value, Value> TokenSampler::scan(Value own) {
  Value slot = e.at(sums, e.mul(e.tid(), 8));
  e.barrier();
  e.store(own, slot, 8);
  e.barrier();
  e.loop(e.c(0), e.c(llvm::Log2_32(Threads)), 1, [&](Value round) {
    Value distance = arith::ShLIOp::create(e.b, e.loc, e.c(1), round);
    Value other = e.sub(e.tid(), distance);
    Value added = e.ifElse(
        e.less(other, 0), e.i64, [&] { return Values{e.c64(0)}; },
        [&] {
          return Values{e.load(e.i64, e.at(sums, e.mul(other, 8)), 8)};
        })[0];
    e.barrier();
    e.store(e.add(e.load(e.i64, slot, 8), added), slot, 8);
    e.barrier();
  });
  Value upTo = e.load(e.i64, slot, 8);
  return {e.sub(upTo, own), e.load(e.i64, e.at(sums, (Threads - 1) * 8), 8)};
}

Value TokenSampler::total(llvm::function_ref<Value(Value)> value) {
  Value own = e.loop(e.tid(), tokens, e.c(Threads), {e.c64(0)},
                     [&](Value id, ValueRange carried) -> Values {
                       return {e.add(carried[0], value(loadLogit(id)))};
                     })[0];
  return scan(own).second;
}

std::pair<Value, Value>
TokenSampler::descend(Value target, llvm::function_ref<Value(Value)> value) {
  constexpr int64_t PerThread = Bins / Threads;
  Values found = e.loop(
      e.c(0), e.c(3), e.c(1), {e.c(0), target},
      [&](Value level, ValueRange carried) -> Values {
        Value prefix = carried[0], left = carried[1];
        // Levels of 11, 11 and 10 bits.
        Value shift = e.select(e.equal(level, 0), e.c(21),
                               e.select(e.equal(level, 1), e.c(10), e.c(0)));
        Value bits = e.select(e.equal(level, 2), e.c(10), e.c(11));
        auto shr = [&](Value x, Value by) -> Value {
          return arith::ShRUIOp::create(e.b, e.loc, x, by);
        };
        e.barrier();
        for (int64_t i = 0; i < PerThread; ++i)
          e.store(e.c64(0),
                  e.at(e.at(bins, e.mul(e.tid(), 8)), i * Threads * 8), 8);
        e.barrier();
        e.loop(e.tid(), tokens, Threads, [&](Value id) {
          Value logit = loadLogit(id);
          Value key = keyOf(logit);
          // A shift by 32 is no shift.
          Value above =
              e.select(e.equal(level, 0), e.c(0), shr(key, e.add(shift, bits)));
          Value own = value(logit);
          Value counts =
              e.both(e.equal(above, prefix), e.notI1(e.equal(own, 0)));
          e.ifThen(counts, [&] {
            Value bin = e.bitAnd(
                shr(key, shift),
                e.sub(Value(arith::ShLIOp::create(e.b, e.loc, e.c(1), bits)),
                      e.c(1)));
            LLVM::AtomicRMWOp::create(
                e.b, e.loc, LLVM::AtomicBinOp::add, e.at(bins, e.mul(bin, 8)),
                own, LLVM::AtomicOrdering::monotonic, "block", /*alignment=*/8);
          });
        });
        e.barrier();
        // Thread 0 has the largest bins.
        Value top = e.sub(e.c(Bins - 1), e.mul(e.tid(), PerThread));
        Values own;
        Value sum;
        for (int64_t i = 0; i < PerThread; ++i) {
          own.push_back(
              e.load(e.i64, e.at(bins, e.mul(e.sub(top, e.c(i)), 8)), 8));
          sum = sum ? e.add(sum, own.back()) : own.back();
        }
        Value before = scan(sum).first;
        Value reaches = e.both(unsignedLess(before, left),
                               e.notI1(unsignedLess(e.add(before, sum), left)));
        e.ifThen(reaches, [&] {
          Value bin = top, rest = e.sub(left, before);
          for (int64_t i = 0; i + 1 < PerThread; ++i) {
            // Still beyond this bin and all above it.
            Value beyond = e.both(e.equal(bin, e.sub(top, e.c(i))),
                                  unsignedLess(own[i], rest));
            rest = e.select(beyond, e.sub(rest, own[i]), rest);
            bin = e.select(beyond, e.sub(bin, e.c(1)), bin);
          }
          e.store(rest, message, 8);
          e.store(bin, e.at(message, 8), 4);
        });
        e.barrier();
        Value rest = e.load(e.i64, message, 8);
        Value bin = e.load(e.i32, e.at(message, 8), 4);
        Value next = e.bitOr(
            Value(arith::ShLIOp::create(e.b, e.loc, prefix, bits)), bin);
        return {next, rest};
      });
  return {found[0], found[1]};
}

void TokenSampler::storeFirst(Value target,
                              llvm::function_ref<Value(Value)> value) {
  auto share = static_cast<int64_t>(llvm::divideCeil(vocab, Threads));
  Value first = e.mul(e.tid(), share);
  Value end = e.min(e.add(first, share), tokens);
  Value own = e.loop(first, end, e.c(1), {e.c64(0)},
                     [&](Value id, ValueRange carried) -> Values {
                       return {e.add(carried[0], value(loadLogit(id)))};
                     })[0];
  Value before = scan(own).first;
  Value reaches = e.both(unsignedLess(before, target),
                         e.notI1(unsignedLess(e.add(before, own), target)));
  e.ifThen(reaches, [&] {
    Value id = e.loop(first, end, e.c(1), {before, e.c(-1)},
                      [&](Value id, ValueRange carried) -> Values {
                        Value sum = e.add(carried[0], value(loadLogit(id)));
                        Value hit = e.both(e.less(carried[1], 0),
                                           e.notI1(unsignedLess(sum, target)));
                        return {sum, e.select(hit, id, carried[1])};
                      })[1];
    e.store(id, e.at(k.chosen, e.mul(e.i64Of(output), 4)), 4);
  });
}

void TokenSampler::sample(Value largestKey) {
  largest = logitOf(largestKey);
  Value topK = parameter(offsetof(KvcSampling, top_k), e.i32);
  Value topP = parameter(offsetof(KvcSampling, top_p), e.f32);
  Value minP = parameter(offsetof(KvcSampling, min_p), e.f32);
  Value uniform = parameter(offsetof(KvcSampling, uniform), e.f32);
  Value limitsCount = e.both(e.less(e.c(0), topK), e.less(topK, tokens));
  Value limitsSum = e.lessf(topP, e.real(1.0));

  // Three questions with one body, to keep the code small: what top-k keeps,
  // what top-p keeps of it, and which of those is drawn. Kept are the tokens
  // above `key`, and the first `ties` of those at it.
  Values state = e.loop(
      e.c(0), e.c(3), e.c(1), {e.c(0), e.c64(0), e.c64(0)},
      [&](Value question, ValueRange carried) -> Values {
        Value key = carried[0], ties = carried[1];
        Value isCount = e.equal(question, 0), isDraw = e.equal(question, 2);
        Value limited = e.notI1(e.equal(ties, 0));
        Value least = e.select(isDraw, minP, e.real(0.0));
        auto weight = [&](Value logit) { return weightOf(logit, least); };
        Value asks = e.select(isCount, limitsCount, e.bitOr(isDraw, limitsSum));
        return e.ifElse(
            asks, {e.i32, e.i64, e.i64},
            [&]() -> Values {
              Value target = e.ifElse(
                  isCount, e.i64, [&] { return Values{e.i64Of(topK)}; },
                  [&] {
                    Value sum = total([&](Value logit) {
                      Value kept = unsignedLess(key, keyOf(logit));
                      return e.select(kept, weight(logit), e.c64(0));
                    });
                    // Without a limit the key is no logit's.
                    sum = e.add(sum, e.select(limited,
                                              e.mul(ties, weight(logitOf(key))),
                                              e.c64(0)));
                    Value wanted = part(sum, e.select(isDraw, uniform, topP));
                    // The first sum above the draw's target; top-p keeps one
                    // token at least.
                    return Values{e.select(e.bitOr(isDraw, e.equal(wanted, 0)),
                                           e.add(wanted, 1), wanted)};
                  })[0];
              Value descends = e.bitOr(e.notI1(isDraw), limited);
              return e.ifElse(
                  descends, {e.i32, e.i64, e.i64},
                  [&]() -> Values {
                    auto [found, rest] = descend(target, [&](Value logit) {
                      return e.select(isCount, e.c64(1), weight(logit));
                    });
                    Value own =
                        e.select(isCount, e.c64(1), weight(logitOf(found)));
                    Value last = e.add(rest, e.sub(own, e.c64(1)));
                    Value count = arith::DivUIOp::create(e.b, e.loc, last, own);
                    return {found, count, target};
                  },
                  [&]() -> Values { return {key, ties, target}; });
            },
            [&]() -> Values { return {key, ties, carried[2]}; });
      });
  Value limited = e.notI1(e.equal(state[1], 0));
  storeFirst(e.select(limited, state[1], state[2]), [&](Value logit) {
    Value hit = e.zext(e.equal(keyOf(logit), state[0]), e.i64);
    return e.select(limited, hit, weightOf(logit, minP));
  });
}

void TokenSampler::emit(Value pair) {
  inverse = parameter(offsetof(KvcSampling, inverse_temperature), e.f32);
  Value key = e.trunc(e.shr(pair, 32), e.i32);
  Value id = e.bitXor(e.trunc(pair, e.i32), -1);
  Value result = e.select(e.equal(key, NanKey), e.c(NanId), id);
  result = e.select(e.equal(key, InfinityKey), e.c(InfinityId), result);
  result = e.select(e.equal(key, MinusInfinityKey), e.c(NothingId), result);
  Value draws =
      e.both(e.lessf(e.real(0.0), inverse), e.notI1(e.less(result, 0)));
  e.ifElse(
      draws, [&] { sample(key); },
      [&] {
        e.ifThen(e.equal(e.tid(), 0), [&] {
          e.store(result, e.at(k.chosen, e.mul(e.i64Of(output), 4)), 4);
        });
      });
}

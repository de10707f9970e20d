//===- TokenSampler.h - One block draws one token -------------------------===//
//
// The rules are those of runtime/Sampler.h: temperature, top-k, top-p, min-p,
// draw; ranks descend by logit and ascend by id. Weights are the runtime's
// polynomial, in f32, as integers of 2^-44: integer sums have no order, so
// any number of threads gets the same bits, and 2^19 tokens fit in 64 bits.
//
// A rank is found by its logit's key, whose unsigned order is the logits'
// order: three levels of a histogram, of counts or of weights, from the top.
// Without top-k and top-p a draw runs through the ids in ascending order, as
// the runtime's does.
//
//===----------------------------------------------------------------------===//
#ifndef KVC_CODEGEN_NVPTX_TOKENSAMPLER_H
#define KVC_CODEGEN_NVPTX_TOKENSAMPLER_H

#include "codegen/nvptx/ProgramContext.h"

namespace kvc::nvptx {

class TokenSampler {
public:
  static constexpr int Threads = 512;
  static constexpr int64_t Bins = 2048;
  /// Bins, a scan over threads, and what one thread tells the others.
  static constexpr int64_t SharedBytes = (Bins + Threads + 4) * 8;

  TokenSampler(KernelContext &k, Value output, int64_t vocab);

  Value logit(Value id) { return e.at(row, e.mul(e.i64Of(id), 4)); }
  /// i32; NaN is above all.
  Value keyOf(Value logit);

  /// Writes the output's id, `largest` being (key << 32) | ~id of the largest
  /// logit. All threads of the block call it.
  void emit(Value largest);

  Value tokens; // ids below it may be chosen

private:
  struct Token {
    Value key, weight; // weight: i64
  };
  Value parameter(int64_t offset, Type type);
  /// What a token of this logit weighs; 0 below `least`.
  Value weightOf(Value logit, Value least);
  Value logitOf(Value key);
  /// floor(x * fraction), fraction in [0, 1].
  Value part(Value x, Value fraction);
  /// Exclusive sum over the threads before, and the block's total.
  std::pair<Value, Value> scan(Value own);
  /// The sum of `value` over the tokens' ids.
  Value total(llvm::function_ref<Value(Value id)> value);
  /// From the largest key down: the key at which the sum of `value(id, key)`
  /// reaches `target`, and what of the target is left for that key's tokens.
  std::pair<Value, Value> descend(Value target,
                                  llvm::function_ref<Value(Value logit)> value);
  /// The first id, ascending, at which the sum of `value(logit)` reaches
  /// `target`; stored.
  void storeFirst(Value target, llvm::function_ref<Value(Value logit)> value);
  void sample(Value largestKey);
  Value loadLogit(Value id) { return e.load(e.f32, logit(id), 4); }
  Value unsignedLess(Value x, Value y);

  KernelContext &k;
  Emitter &e;
  int64_t vocab;
  Value output, row, settings;
  Value largest, inverse; // of the logits and of the temperature
  Value bins, sums, message;
};

} // namespace kvc::nvptx

#endif // KVC_CODEGEN_NVPTX_TOKENSAMPLER_H

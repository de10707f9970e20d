//===- DispatchChoose.cpp - Tokens chosen from logits ---------------------===//
//
// A few blocks find an output's largest logit; the one that arrives last
// writes its id, or draws from the distribution (TokenSampler). Ties go to the
// lowest id, and errors are ids below 0.
//
//===----------------------------------------------------------------------===//
#include "codegen/nvptx/Counters.h"
#include "codegen/nvptx/Dispatch.h"
#include "codegen/nvptx/TokenSampler.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

static constexpr int Threads = TokenSampler::Threads;

/// Columns of the logits; 0 where no program has any.
static int64_t vocabOf(ModelOp model) {
  int64_t vocab = 0;
  model.walk([&](WriteOp write) {
    if (write.getSlot().getSpace() == Space::Logits)
      vocab = rowElements(write.getInput().getType());
  });
  return vocab;
}

/// The block's largest (key, ~id) pair, in thread 0.
static Value largestPair(KernelContext &k, Value pair, Value space) {
  Emitter &e = k.e;
  auto larger = [&](Value x, Value y) -> Value {
    return arith::MaxUIOp::create(e.b, e.loc, x, y);
  };
  for (int mask = 16; mask; mask /= 2) {
    Value low = e.shuffleXor(e.trunc(pair, e.i32), mask);
    Value high = e.shuffleXor(e.trunc(e.shr(pair, 32), e.i32), mask);
    pair = larger(pair,
                  e.bitOr(e.shl(e.zext(high, e.i64), 32), e.zext(low, e.i64)));
  }
  Value own = e.at(space, e.mul(e.warp(), 8));
  e.ifThen(e.equal(e.lane(), 0), [&] { e.store(pair, own, 8); });
  e.barrier();
  for (int warp = 1; warp < Threads / 32; ++warp)
    pair = larger(pair, e.load(e.i64, e.at(space, warp * 8), 8));
  return pair;
}

/// This block's share of an output's logits: the largest key and its id.
static Value scanLogits(KernelContext &k, TokenSampler &sampler, Value part,
                        int64_t parts, int64_t vocab, Value tokens) {
  Emitter &e = k.e;
  int width = vocab % 4 == 0 ? 4 : 1;
  auto share = static_cast<int64_t>(llvm::alignTo(
      llvm::divideCeil(vocab, parts), static_cast<uint64_t>(width)));
  Value first = e.mul(part, share);
  Value end = e.min(e.add(first, share), tokens);
  Values best = e.loop(
      e.add(first, e.mul(e.tid(), width)), end, e.c(Threads * width),
      {e.c(0), e.c(0)}, [&](Value id, ValueRange carried) {
        Values state(carried);
        for (auto [i, word] :
             llvm::enumerate(e.loadWords(sampler.logit(id), width))) {
          Value own = e.add(id, static_cast<int64_t>(i));
          Value key = sampler.keyOf(e.bitcast(word, e.f32));
          // Ids ascend: an equal key comes too late.
          Value better = e.both(
              e.less(own, end),
              Value(arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::ugt,
                                          key, state[0])));
          state[0] = e.select(better, key, state[0]);
          state[1] = e.select(better, own, state[1]);
        }
        return state;
      });
  return e.bitOr(e.shl(e.zext(best[0], e.i64), 32),
                 e.zext(e.bitXor(best[1], -1), e.i64));
}

LogicalResult kvc::nvptx::emitChoose(ModelContext &model) {
  int64_t vocab = vocabOf(model.model);
  if (vocab == 0)
    return success();
  // Each block reads some 32 KiB.
  int64_t parts = std::clamp<int64_t>(vocab / 8192, 1, 16);
  model.lists.countersPerRow = countersPerRow(model.model);
  KernelContext k(model, ProgramOp(), "choose", model.model.getLoc(), Threads,
                  0);
  Emitter &e = k.e;
  e.waitForPrevious();
  e.launchNext();
  Value output = e.ctaid(1);
  TokenSampler sampler(k, output, vocab);
  Value warps = k.sharedMemory(TokenSampler::SharedBytes);
  Value shared = e.at(warps, Threads / 32 * 8);

  Value pair = largestPair(
      k, scanLogits(k, sampler, e.ctaid(0), parts, vocab, sampler.tokens),
      warps);
  Value counters =
      e.at(k.counters, e.mul(e.i64Of(output), 4 * model.lists.countersPerRow));
  e.ifThen(e.equal(e.tid(), 0), [&] {
    Value record = e.at(counters, 4 * ChoiceCounter);
    LLVM::AtomicRMWOp::create(e.b, e.loc, LLVM::AtomicBinOp::umax, record, pair,
                              LLVM::AtomicOrdering::monotonic, "device",
                              /*alignment=*/8);
    e.fence();
    Value arrivals = e.at(counters, 4 * ChoiceArrivals);
    Value before = e.atomicAdd(arrivals, e.c(1));
    Value last = e.equal(before, parts - 1);
    Value largest = e.ifElse(
        last, e.i64,
        [&] {
          e.fence();
          Value largest = e.load(e.i64, record, 8);
          e.store(e.c64(0), record, 8);
          e.store(e.c(0), arrivals, 4);
          return Values{largest};
        },
        // No pair is 0: every logit has a key above it.
        [&] { return Values{e.c64(0)}; })[0];
    e.store(largest, shared, 8);
  });
  e.barrier();
  Value largest = e.load(e.i64, shared, 8);
  e.ifThen(e.notI1(e.equal(largest, 0)), [&] { sampler.emit(largest); });

  Launch launch;
  launch.kernel = k.name;
  launch.threads = Threads;
  launch.sharedBytes = TokenSampler::SharedBytes + Threads / 32 * 8 + 16;
  launch.grid[0] = {Extent::Fixed, parts};
  launch.grid[1] = {Extent::Outputs, 1};
  model.lists.choose.push_back(launch);
  return success();
}

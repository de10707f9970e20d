//===- LinearMath.cpp - Products of packed tiles with activations ---------===//
#include "codegen/nvptx/LinearMath.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

void kvc::nvptx::multiplyBlock(Emitter &e, Fragments &tile, int block,
                               ArrayRef<Values> activations,
                               MutableArrayRef<Values> sums) {
  auto step = [&](size_t group, int number) {
    return ValueRange(activations[group]).slice(2 * number, 2);
  };
  if (tile.plain()) {
    for (int number = 0; number < 2; ++number)
      for (const Values &operand : tile.operands(block, number))
        for (size_t group = 0; group < sums.size(); ++group)
          sums[group] =
              e.mma(e.bf16, operand, step(group, number), sums[group]);
    return;
  }
  Value zero = e.real(0.0);
  Values zeros(4, zero);
  Values ones(4, e.c(0x3f803f80));
  int subs = tile.subBlocks(), steps = 2 / subs;
  for (int sub = 0; sub < subs; ++sub) {
    llvm::SmallVector<Values> operands;
    for (int number = sub * steps; number < (sub + 1) * steps; ++number)
      operands.push_back(tile.operands(block, number)[0]);
    Value scales[2], minimums[2];
    for (int half = 0; half < 2; ++half) {
      scales[half] = tile.scale(block, sub, half);
      minimums[half] = tile.minimum(block, sub, half);
    }
    for (size_t group = 0; group < sums.size(); ++group) {
      Values products = zeros, totals = zeros;
      for (int number = 0; number < steps; ++number) {
        ValueRange b = step(group, sub * steps + number);
        products = e.mma(e.bf16, operands[number], b, products);
        // A row of ones sums the activations.
        if (tile.hasMinimums())
          totals = e.mma(e.bf16, ones, b, totals);
      }
      for (int i = 0; i < 4; ++i) {
        Value &sum = sums[group][i];
        sum = e.fma(scales[i / 2], products[i], sum);
        if (tile.hasMinimums())
          sum = e.fma(minimums[i / 2], totals[i % 2], sum);
      }
    }
  }
}

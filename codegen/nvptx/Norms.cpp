//===- Norms.cpp - Sums of a row in one fixed order -----------------------===//
#include "codegen/nvptx/Norms.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

int64_t kvc::nvptx::normSliceColumns(int64_t columns) {
  // Whole rounds of a warp, so that only the last slice with work has a tail.
  return static_cast<int64_t>(
      llvm::alignTo(llvm::divideCeil(columns, NormSlices),
                    32 * static_cast<uint64_t>(normGroup(columns))));
}

Value kvc::nvptx::normSliceSum(Emitter &e, int64_t columns, Value slice,
                               bool squares,
                               llvm::function_ref<Values(Value)> load) {
  int64_t own = normSliceColumns(columns);
  int group = normGroup(columns);
  Value first = e.mul(slice, own);
  Value end = e.min(e.add(first, own), e.c(columns));
  first = e.add(first, e.mul(e.lane(), group));
  Value sum = e.loop(first, end, e.c(32 * group), e.real(0.0),
                     [&](Value column, ValueRange carried) {
                       Value sum = carried[0];
                       for (Value x : load(column))
                         sum = squares ? e.fma(x, x, sum) : e.addf(sum, x);
                       return Values{sum};
                     })[0];
  return e.sumLanes(sum);
}

Value kvc::nvptx::normTotal(Emitter &e, Value sliceSums) {
  Value total;
  for (int64_t half = 0; half < NormSlices / 4; ++half)
    for (Value word : e.loadWords(e.at(sliceSums, half * 16), 4)) {
      Value sum = e.bitcast(word, e.f32);
      total = total ? e.addf(total, sum) : sum;
    }
  return total;
}

Value kvc::nvptx::normFactor(Emitter &e, Value total, int64_t columns,
                             double eps) {
  // A correctly rounded division costs nothing here, once a row.
  Value mean = e.divf(total, e.real(static_cast<double>(columns)));
  return e.rsqrt(e.addf(mean, e.real(eps)));
}

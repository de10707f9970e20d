//===- DispatchRows.cpp - Kernels of rows without a matrix ----------------===//
//
// One block a row. Sums of norms come first, a slice a warp; then every op that
// stores pulls what it needs, column by column.
//
//===----------------------------------------------------------------------===//
#include "codegen/nvptx/Dispatch.h"
#include "codegen/nvptx/Norms.h"
#include "codegen/nvptx/RowAttention.h"
#include "codegen/nvptx/RowEmitter.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

static constexpr int Threads = 32 * NormSlices;

/// The sums of one norm over the row; every thread gets them.
static RowEmitter::Norm emitNorm(KernelContext &k, RowEmitter &rows, Value row,
                                 Operation *op, Value sliceSums) {
  Emitter &e = k.e;
  int64_t columns = rowElements(op->getResult(0).getType());
  int group = normGroup(columns);
  auto total = [&](bool squares, Value mean) {
    Value sum = normSliceSum(e, columns, e.warp(), squares, [&](Value column) {
      rows.begin(row, column, group);
      Values xs = rows.values(op->getOperand(0));
      if (mean)
        for (Value &x : xs)
          x = e.subf(x, mean);
      return xs;
    });
    // Sums of before have been read.
    e.barrier();
    Value own = e.at(sliceSums, e.mul(e.warp(), 4));
    e.ifThen(e.equal(e.lane(), 0), [&] { e.store(sum, own, 4); });
    e.barrier();
    return normTotal(e, sliceSums);
  };
  if (auto rms = dyn_cast<RmsNormOp>(op))
    return {Value(), normFactor(e, total(/*squares=*/true, Value()), columns,
                                rms.getEps().convertToDouble())};
  auto layerNorm = cast<LayerNormOp>(op);
  Value mean = e.divf(total(/*squares=*/false, Value()),
                      e.real(static_cast<double>(columns)));
  return {mean, normFactor(e, total(/*squares=*/true, mean), columns,
                           layerNorm.getEps().convertToDouble())};
}

LogicalResult kvc::nvptx::emitRows(DispatchContext &context) {
  SmallVector<Operation *> ops, sinks;
  for (Operation &op :
       context.dispatch.getBody().front().without_terminator()) {
    if (isa<ScoresOp, MaskedSoftmaxOp, ContextOp>(op))
      return emitRowAttention(context, &op);
    if (!isa<ReadOp>(op))
      ops.push_back(&op);
    if (isa<WriteOp, CacheAppendOp>(op))
      sinks.push_back(&op);
  }
  if (sinks.empty())
    return context.dispatch.emitOpError("does nothing");
  int width = RowEmitter::widthOf(ops);
  Extent extent = KernelContext::extentOf(sinks[0]->getOperand(0).getType());
  for (Operation *sink : sinks)
    if (KernelContext::extentOf(sink->getOperand(0).getType()) != extent)
      return sink->emitOpError("stores rows of another number than the "
                               "dispatch's first store");

  KernelContext k = context.begin("", Threads);
  Emitter &e = k.e;
  e.waitForPrevious();
  e.launchNext();
  Value row = e.ctaid(0);
  RowEmitter rows(k);
  int64_t sharedBytes = 0;
  for (Operation *op : ops)
    if (isa<RmsNormOp, LayerNormOp>(op)) {
      sharedBytes = 4 * NormSlices;
      rows.setNorm(op, emitNorm(k, rows, row, op, k.sharedMemory()));
    }
  // Stores of as many columns share a loop, and what they pull.
  for (auto *first = sinks.begin(), *last = first; first != sinks.end();
       first = last) {
    auto columnsOf = [](Operation *sink) {
      return rowElements(sink->getOperand(0).getType());
    };
    int64_t columns = columnsOf(*first);
    while (last != sinks.end() && columnsOf(*last) == columns)
      ++last;
    e.loop(e.mul(e.tid(), width), e.c(columns), Threads * width,
           [&](Value column) {
             rows.begin(row, column, width);
             // All of it before the first store, which may overwrite inputs.
             for (Operation *sink : llvm::make_range(first, last))
               rows.pull(sink);
             for (Operation *sink : llvm::make_range(first, last))
               (void)rows.store(sink);
           });
  }

  Launch &launch = context.launch(k);
  launch.sharedBytes = sharedBytes;
  launch.grid[0] = {extent, 1};
  return rows.status();
}

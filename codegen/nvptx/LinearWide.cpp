//===- LinearWide.cpp - Linears of many tokens ----------------------------===//
//
// A block computes a tile of weight rows times tokens (WideRun). Which shape of
// tile follows from the weights' formats and from how many blocks there are.
//
//===----------------------------------------------------------------------===//
#include "codegen/nvptx/WideRun.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

static LogicalResult emitShape(DispatchContext &context, const LinearPlan &plan,
                               const LinearClass &formats, StringRef name,
                               WideShape shape, int blocksPerSm,
                               int64_t atLeast, int64_t atMost) {
  std::vector<LinearRun> runs = plan.runs(formats);
  KernelContext kernel = context.begin(name, shape.threads(), blocksPerSm);
  Emitter &e = kernel.e;
  e.waitForPrevious();
  e.launchNext();
  Value firstToken = e.mul(e.ctaid(1), shape.tokens());
  Value total =
      plan.extent == Extent::Outputs ? kernel.outputs() : kernel.rows();
  Value rows = e.sub(total, firstToken);
  int64_t blocks = 0, sharedBytes = 0;
  for (LinearRun &run : runs) {
    blocks += wideBlocks(run, shape);
    sharedBytes = std::max(sharedBytes, wideSharedBytes(run, shape));
  }
  std::function<void(size_t, Value)> from = [&](size_t number, Value block) {
    LinearRun &run = runs[number];
    auto own = [&] {
      WideRun(kernel, plan, run, shape).emit(block, firstToken, rows);
    };
    if (number + 1 == runs.size())
      return own();
    int64_t count = wideBlocks(run, shape);
    e.ifElse(e.less(block, count), own,
             [&] { from(number + 1, e.add(block, -count)); });
  };
  from(0, e.ctaid(0));

  Launch &launch = context.launch(kernel, formats.layers);
  launch.sharedBytes = sharedBytes;
  launch.grid[0] = {Extent::Fixed, blocks};
  launch.grid[1] = {plan.extent, shape.tokens()};
  launch.when = plan.extent;
  launch.atLeast = atLeast;
  launch.atMost = atMost;
  return success();
}

LogicalResult kvc::nvptx::emitWideLinear(DispatchContext &context,
                                         const LinearPlan &plan,
                                         const LinearClass &formats,
                                         StringRef suffix) {
  std::vector<LinearRun> runs = plan.runs(formats);
  size_t most = 1;
  bool regular = true, plain = true;
  for (LinearRun &run : runs) {
    most = std::max(most, run.layouts.size());
    regular &= run.layouts[0].granule == MaxChunkBlocks;
    for (const TilesLayout &layout : run.layouts)
      plain &= layout.elementBytes != 0;
  }
  auto fits = [&](WideShape shape) {
    return llvm::all_of(runs, [&](LinearRun &run) {
      return shape.tiles % static_cast<int>(run.layouts.size()) == 0 &&
             wideSharedBytes(run, shape) <= context.model.target.sharedBytes;
    });
  };
  auto blocks = [&](WideShape shape) {
    int64_t count = 0;
    for (LinearRun &run : runs)
      count += wideBlocks(run, shape);
    return count;
  };
  // A step of few rows has one column of blocks: small ones, that there are
  // enough. What is unrolled over all of K is small, too.
  int fewest = regular || plain ? 2 : 1;
  WideShape small{1, 4, std::max(static_cast<int>(most), fewest), 2};
  // Codes need registers for their scales: a warp of theirs has fewer sums.
  WideShape medium{2, plain ? 2 : 4, static_cast<int>(most > 2 ? most : 2),
                   plain ? 4 : 2};
  WideShape large{2, 4, 4, plain ? 4 : 2};
  constexpr int64_t Sms = 128; // of a large GPU, about
  WideShape few =
      regular && blocks(medium) >= Sms && fits(medium) ? medium : small;
  if (!fits(few)) {
    LinearOp linear = plan.linear;
    return linear.emitOpError("has tiles that do not fit the shared memory of ")
           << context.model.target.chip << ", "
           << context.model.target.sharedBytes << " bytes";
  }
  // Large tiles once they fill the machine.
  int64_t from = Launch::NoLimit;
  if (regular && fits(large))
    from = std::max<int64_t>(
        65, (llvm::divideCeil(Sms, blocks(large)) - 1) * large.tokens() + 1);
  if (failed(emitShape(context, plan, formats, (suffix + "_wide").str(), few,
                       few.threads() > 128 ? 1
                       : !regular          ? 2
                       : few.groups == 4   ? 3
                                           : (plain ? 4 : 3),
                       NarrowTokens + 1,
                       from == Launch::NoLimit ? from : from - 1)))
    return failure();
  if (from == Launch::NoLimit)
    return success();
  return emitShape(context, plan, formats, (suffix + "_large").str(), large, 1,
                   from, Launch::NoLimit);
}

//===- LinearPrologue.cpp - The rows that a linear multiplies -------------===//
#include "codegen/nvptx/LinearKernels.h"
#include "codegen/nvptx/Norms.h"
#include "codegen/nvptx/RowEmitter.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

static Operation *normOf(const LinearPlan &plan) {
  for (Operation *op : plan.prologue)
    if (isa<RmsNormOp, LayerNormOp>(op))
      return op;
  return nullptr;
}

static bool isCentered(Operation *norm) { return isa<LayerNormOp>(norm); }

int64_t kvc::nvptx::prologueBytes(const LinearPlan &plan, int most) {
  Operation *norm = normOf(plan);
  if (!norm)
    return 0;
  return most * NormSlices * 4 * (isCentered(norm) ? 2 : 1);
}

LogicalResult kvc::nvptx::runPrologue(
    KernelContext &kernel, const LinearPlan &plan, Value count, int most,
    Value space, llvm::function_ref<Value(Value)> rowOf,
    llvm::function_ref<void(Value, Value, ValueRange)> store) {
  Emitter &e = kernel.e;
  RowEmitter rows(kernel);
  Operation *norm = normOf(plan);
  for (Operation *op : plan.prologue)
    if (op != norm && isa<RmsNormOp, LayerNormOp>(op))
      return op->emitOpError("follows another norm in one kernel: on cuda a "
                             "prologue has one");
  int64_t columns = norm ? rowElements(norm->getResult(0).getType()) : 0;
  Value squaresSpace = space;
  if (norm && isCentered(norm))
    squaresSpace = e.at(space, most * NormSlices * 4);
  auto of = [&](Value sums, Value place) {
    return e.at(sums, e.mul(place, NormSlices * 4));
  };
  auto meanOf = [&](Value place) {
    return e.divf(normTotal(e, of(space, place)),
                  e.real(static_cast<double>(columns)));
  };
  // Pairs of a row and a slice are dealt to the warps.
  auto sums = [&](bool squares, Value target) {
    e.loop(e.warp(), e.mul(count, NormSlices), kernel.threads / 32,
           [&](Value task) {
             Value place = e.div(task, NormSlices);
             Value row = rowOf(place);
             Value mean = squares && isCentered(norm) ? meanOf(place) : Value();
             Value sum =
                 normSliceSum(e, columns, e.rem(task, NormSlices), squares,
                              [&](Value column) {
                                rows.begin(row, column, normGroup(columns));
                                Values xs = rows.values(norm->getOperand(0));
                                if (mean)
                                  for (Value &x : xs)
                                    x = e.subf(x, mean);
                                return xs;
                              });
             e.ifThen(e.equal(e.lane(), 0),
                      [&] { e.store(sum, e.at(target, e.mul(task, 4)), 4); });
           });
    e.barrier();
  };
  if (norm) {
    if (isCentered(norm))
      sums(/*squares=*/false, space);
    sums(/*squares=*/true, squaresSpace);
  }

  LinearOp linear = plan.linear;
  int width = RowEmitter::widthOf(plan.prologue);
  e.loop(e.c(0), count, 1, [&](Value place) {
    Value row = rowOf(place);
    if (norm) {
      RowEmitter::Norm values;
      if (isCentered(norm))
        values.mean = meanOf(place);
      APFloat eps = isCentered(norm) ? cast<LayerNormOp>(norm).getEps()
                                     : cast<RmsNormOp>(norm).getEps();
      values.factor = normFactor(e, normTotal(e, of(squaresSpace, place)),
                                 columns, eps.convertToDouble());
      rows.setNorm(norm, values);
    }
    e.loop(e.mul(e.tid(), width), e.c(plan.columns), kernel.threads * width,
           [&](Value column) {
             rows.begin(row, column, width);
             if (succeeded(rows.status()))
               store(place, column, rows.values(linear.getInput()));
           });
  });
  return rows.status();
}

int64_t kvc::nvptx::stageRowBytes(const LinearPlan &plan) {
  return llvm::alignTo(plan.columns * 2, 64);
}

LogicalResult kvc::nvptx::emitStage(DispatchContext &context,
                                    const LinearPlan &plan, int64_t atLeast) {
  KernelContext kernel = context.begin("_stage", 256);
  Emitter &e = kernel.e;
  e.waitForPrevious();
  e.launchNext();
  Value row = e.ctaid(0);
  Value out = e.at(kernel.scratch, e.mul(e.i64Of(row), stageRowBytes(plan)));
  LogicalResult result = runPrologue(
      kernel, plan, e.c(1), /*most=*/1, kernel.sharedMemory(),
      [&](Value) { return row; },
      [&](Value, Value column, ValueRange values) {
        storeFloats(e, e.bf16, values, e.at(out, e.mul(column, 2)));
      });
  if (failed(result))
    return failure();
  Launch &launch = context.launch(kernel);
  launch.grid[0] = {plan.extent, 1};
  launch.sharedBytes = prologueBytes(plan, 1);
  launch.when = plan.extent;
  launch.atLeast = atLeast;
  int64_t &bytes = context.model.lists.stageBytes;
  bytes = std::max(bytes, stageRowBytes(plan));
  return success();
}

//===- LinearNarrow.cpp - Linears of up to eight tokens -------------------===//
//
// Bound by the bytes of the weights, so everything serves their stream
// (NarrowRun). The activations stand in shared memory as bf16, where they fit.
//
//===----------------------------------------------------------------------===//
#include "codegen/nvptx/NarrowRun.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

/// Bytes from token to token in shared memory: 16 more than whole lines, so
/// that eight rows of a matrix meet in no bank.
static int64_t tokenBytes(const LinearPlan &plan) {
  return llvm::alignTo(plan.columns, TileBlock) * 2 + 16;
}

int64_t kvc::nvptx::narrowSharedBytes(const LinearPlan &plan) {
  return llvm::alignTo(NarrowRun::sumBytes(plan) +
                           prologueBytes(plan, NarrowTokens),
                       128) +
         NarrowTokens * tokenBytes(plan);
}

LogicalResult kvc::nvptx::emitNarrowLinear(DispatchContext &context,
                                           const LinearPlan &plan,
                                           const LinearClass &formats,
                                           StringRef suffix, bool inKernel) {
  int threads = 32 * plan.splits;
  std::vector<LinearRun> runs = plan.runs(formats);
  bool irregular = llvm::any_of(runs, [](LinearRun &run) {
    return run.layouts[0].granule != MaxChunkBlocks;
  });
  // Two blocks of eight warps have 128 registers a thread; f32's two parts,
  // codes by table, minimums (but for q4_k's few) take more, and so do codes of
  // a whole segment, one behind the other without a loop, which are unpacked
  // far ahead.
  bool heavy = false, unrolled = false;
  for (Format format : formats.formats) {
    const FormatInfo &info = formatInfo(format);
    bool unpacksAhead = irregular && !info.plain();
    unrolled |= unpacksAhead;
    heavy |= format == Format::F32 || info.table ||
             (info.min != MinKind::None && format != Format::Q4_K) ||
             (unpacksAhead && info.codeBits > 4);
  }
  int blocks = threads < 256 ? (unrolled ? 256 : 384) / threads
               : heavy       ? 1
                             : 512 / threads;
  blocks = std::max(1, blocks);
  KernelContext kernel =
      context.begin((suffix + "_narrow").str(), threads, std::min(blocks, 8));
  Emitter &e = kernel.e;
  int64_t total = 0;
  for (LinearRun &run : runs)
    total += run.totalTiles();

  std::vector<std::unique_ptr<NarrowRun>> walks;
  walks.reserve(runs.size());
  for (LinearRun &run : runs)
    walks.push_back(std::make_unique<NarrowRun>(kernel, plan, run));
  walks[0]->begin(e.ctaid(0), /*certain=*/runs.size() == 1);

  // Tokens that the step does not have are zero, and so is what K lacks of
  // whole blocks. This needs no wait.
  bool staged = narrowSharedBytes(plan) <= kernel.model.target.sharedBytes;
  int64_t bytes = tokenBytes(plan), sharedBytes = NarrowRun::sumBytes(plan);
  Value sumSpace = kernel.sharedMemory(), stage;
  if (staged) {
    sharedBytes = narrowSharedBytes(plan);
    stage = kernel.sharedMemory(sharedBytes - NarrowTokens * bytes);
    Value zero = e.c(0);
    e.loop(e.mul(e.tid(), 16), e.c(NarrowTokens * bytes), threads * 16,
           [&](Value offset) {
             e.storeWords({zero, zero, zero, zero}, e.at(stage, offset));
           });
  }
  e.waitForPrevious();
  e.launchNext();
  Value rows =
      plan.extent == Extent::Outputs ? kernel.outputs() : kernel.rows();
  if (staged)
    e.barrier();
  Value source = kernel.scratch;
  int64_t stride = stageRowBytes(plan);
  if (plan.input) {
    source = kernel.slotBase(plan.input);
    stride = plan.input.getStride();
  }
  if (inKernel) {
    LogicalResult result = runPrologue(
        kernel, plan, rows, NarrowTokens,
        kernel.sharedMemory(NarrowRun::sumBytes(plan)),
        [](Value place) { return place; },
        [&](Value place, Value column, ValueRange values) {
          Value at = e.add(e.mul(place, bytes), e.mul(column, 2));
          Value pointer = e.at(stage, at);
          if (values.size() == 1)
            return e.store(e.narrow(e.bf16, values[0]), pointer, 2);
          Values words;
          for (size_t i = 0; i < values.size(); i += 2)
            words.push_back(e.pack(e.bf16, values[i], values[i + 1]));
          e.storeWords(words, pointer);
        });
    if (failed(result))
      return failure();
  } else if (staged) {
    int64_t pieces = llvm::divideCeil(plan.columns * 2, 16);
    e.loop(e.tid(), e.mul(rows, pieces), threads, [&](Value piece) {
      Value token = e.div(piece, pieces);
      Value offset = e.mul(e.rem(piece, pieces), 16);
      Value given;
      if (plan.columns % 8)
        given = e.min(e.c(16), e.sub(e.c(plan.columns * 2), offset));
      e.copyAsync(
          e.at(stage, e.add(e.mul(token, bytes), offset)),
          e.at(source, e.add(e.mul(e.i64Of(token), stride), e.i64Of(offset))),
          16, given);
    });
    e.commitCopies();
    e.waitCopies(0);
  }
  if (staged)
    e.barrier();

  Value lane = e.lane();
  Value fragment, valid;
  if (staged) {
    // Matrices of eight tokens by eight k, four for a block of 32.
    fragment = e.at(stage, e.add(e.mul(e.bitAnd(lane, 7), bytes),
                                 e.mul(e.shr(lane, 3), 16)));
  } else {
    Value token = e.shr(lane, 2);
    valid = e.less(token, rows);
    Value row = e.select(valid, token, e.c(0));
    fragment = e.at(source, e.add(e.mul(e.i64Of(row), stride),
                                  e.i64Of(e.mul(e.bitAnd(lane, 3), 4))));
  }
  auto activations = [&](Value from, int block) -> Values {
    Value at = e.at(fragment, e.mul(from, 64));
    if (staged)
      return e.ldmatrix4(at, block * 64);
    at = e.at(at, block * 64);
    Values words;
    for (int part = 0; part < 4; ++part) {
      Value word = e.load(e.i32, e.at(at, part * 16), 4);
      words.push_back(e.select(valid, word, e.c(0)));
    }
    return words;
  };
  walks[0]->walk(rows, activations, sumSpace);
  int64_t done = runs[0].totalTiles();
  for (size_t number = 1; number < walks.size(); ++number) {
    // Where the last run's tiles ended, the next one's go on.
    e.barrier();
    Value past = arith::RemUIOp::create(e.b, e.loc, e.c(done), e.nctaid(0));
    Value first = e.sub(e.ctaid(0), past);
    first = e.select(e.less(first, 0), e.add(first, e.nctaid(0)), first);
    walks[number]->begin(first, /*certain=*/false);
    walks[number]->walk(rows, activations, sumSpace);
    done += runs[number].totalTiles();
  }

  Launch &launch = context.launch(kernel, formats.layers);
  launch.sharedBytes = sharedBytes;
  launch.grid[0] = {Extent::Fixed, total};
  int64_t perSm = std::max<int64_t>(
      1, std::min<int64_t>(blocks, kernel.model.target.sharedBytes /
                                       (sharedBytes + 1024)));
  launch.blocksPerSm = perSm;
  launch.when = plan.extent;
  launch.atLeast = 1;
  launch.atMost = NarrowTokens;
  return success();
}

//===- DispatchAttention.cpp - Attention over pages, tile by tile ---------===//
//
// Decode: a block takes a few tiles of one sequence and kv head, a warp each;
// the partial (m, l, O) of every tile goes to scratch, and the block that
// arrives last merges them in ascending order.
//
// Prefill: a block takes the rows of a KvcRowTile, times the heads that share a
// kv head; its warps read tiles of K and V through shared memory and keep (m,
// l, O) in registers.
//
// Both do the arithmetic of AttentionTile.h for each tile and merge alike, so
// what a row gets does not depend on which of the two computed it.
//
//===----------------------------------------------------------------------===//
#include "codegen/nvptx/AttentionTile.h"
#include "codegen/nvptx/Counters.h"
#include "codegen/nvptx/Dispatch.h"
#include "codegen/nvptx/RowEmitter.h"

#include "runtime/Abi.h"

#include "llvm/Support/MathExtras.h"

#include <cstddef>

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

namespace {

class AttentionEmitter {
public:
  AttentionEmitter(DispatchContext &context, AttentionOp attention)
      : context(context), attention(attention),
        cache(lookupCache(attention, attention.getCacheAttr()).getCacheType()),
        shape(cache,
              cast<RankedTensorType>(attention.getType()).getDimSize(1)) {}

  LogicalResult emit();

private:
  LogicalResult check();
  LogicalResult emitDecode();
  LogicalResult emitPrefill();
  /// How prefill's blocks are made.
  struct Plan {
    int64_t warps, passes; // of 16 queries; over all queries of a row tile
    int64_t stages;        // of tiles of K and V in shared memory
    bool keepsQueries;     // in registers
  };
  /// Which queries are a thread's.
  struct Queries {
    Value tid, rowTile, kvHead;
    Value rows[2], heads[2];
    Value lastRow; // of the row tile
    Value any;     // whether the block has any, and the warp
    Value active;
  };
  /// `again`: from registers that are read anew, so that nothing of it lives
  /// in between.
  Queries locate(KernelContext &k, const Plan &plan, bool again);
  Value tileField(KernelContext &k, Value rowTile, int64_t offset) {
    return k.e.load(k.e.i32, k.e.at(rowTile, offset), 4);
  }
  void emitBlock(KernelContext &k, const Plan &plan, const Queries &first);
  void emitTile(KernelContext &k, AttentionTile &tile, Value row, Value kvHead,
                Value keys, Value values, Value split, Value last,
                bool waitForValues);
  void emitMerge(KernelContext &k, Value row, Value kvHead, Value tiles);
  /// True in the block that arrives last of `total`.
  Value arrivesLast(KernelContext &k, Value row, Value kvHead, Value total,
                    Value flag);
  /// Where the query of `head` lies.
  Value query(KernelContext &k, Value row, Value head);
  Value partial(KernelContext &k, Value row, Value split);
  /// Runs the epilogue on adjacent dimensions from `dim` on.
  void emitEpilogue(KernelContext &k, RowEmitter &rows, Value row, Value head,
                    Value dim, ValueRange values);
  LogicalResult checkShared(int64_t bytes);

  DispatchContext &context;
  AttentionOp attention;
  CacheType cache;
  AttentionShape shape;
  SlotAttr input;
  SmallVector<Operation *> epilogue;
  LogicalResult status = success();
};
} // namespace

LogicalResult AttentionEmitter::check() {
  if (!shape.element.isF16() && !shape.element.isBF16())
    return attention.emitOpError("needs a cache of f16 or bf16 on cuda, found ")
           << shape.element;
  if (cache.getPage() != TilePositions || cache.getSplit() != TilePositions)
    return attention.emitOpError("needs a cache of page = 64 and split = 64 "
                                 "on cuda, found page = ")
           << cache.getPage() << " and split = " << cache.getSplit();
  if (shape.headDim > 256)
    return attention.emitOpError("needs a head_dim of at most 256 on cuda, "
                                 "found ")
           << shape.headDim;
  for (Operation *op = attention->getPrevNode(); op; op = op->getPrevNode())
    if (!isa<ReadOp>(op))
      return op->emitOpError("stands before the kernel's attention, which "
                             "takes no prologue");
  auto read = attention.getQuery().getDefiningOp<ReadOp>();
  if (!read)
    return attention.emitOpError("needs its query in a slot");
  input = read.getSlot();
  if (stringifySlotElement(input.getElement()) !=
      (shape.element.isF16() ? "f16" : "bf16"))
    return attention.emitOpError("needs its query rounded to the cache's ")
           << shape.element << ", in a slot of it, found "
           << stringifySlotElement(input.getElement());
  for (Operation *op = attention->getNextNode();
       !op->hasTrait<OpTrait::IsTerminator>(); op = op->getNextNode())
    epilogue.push_back(op);
  return success();
}

LogicalResult AttentionEmitter::checkShared(int64_t bytes) {
  const NvptxTarget &target = context.model.target;
  if (bytes > target.sharedBytes)
    return attention.emitOpError("needs ")
           << bytes << " bytes of shared memory a block, " << target.chip
           << " has " << target.sharedBytes;
  return success();
}

Value AttentionEmitter::query(KernelContext &k, Value row, Value head) {
  return k.e.at(k.slotRow(input, row), k.e.mul(head, shape.headDim * 2));
}

Value AttentionEmitter::partial(KernelContext &k, Value row, Value split) {
  Emitter &e = k.e;
  Value index = e.add(e.mul(e.i64Of(row), k.maxSplits), e.i64Of(split));
  return e.at(k.scratch, e.mul(index, shape.partialBytes()));
}

void AttentionEmitter::emitEpilogue(KernelContext &k, RowEmitter &rows,
                                    Value row, Value head, Value dim,
                                    ValueRange values) {
  Emitter &e = k.e;
  int width =
      std::min(RowEmitter::widthOf(epilogue), static_cast<int>(values.size()));
  Value first = e.mul(head, shape.headDim);
  for (size_t i = 0; i < values.size(); i += width) {
    Value own = e.add(dim, static_cast<int64_t>(i));
    auto store = [&] {
      rows.begin(row, e.add(first, own), width);
      rows.bind(attention.getResult(), values.slice(i, width));
      for (Operation *op : epilogue)
        if (isa<WriteOp, CacheAppendOp>(op))
          if (failed(rows.store(op)))
            status = failure();
    };
    if (shape.padded == shape.headDim)
      store();
    else
      e.ifThen(e.less(own, shape.headDim), store);
  }
}

//===----------------------------------------------------------------------===//
// Decode
//===----------------------------------------------------------------------===//

/// One warp: the queries of `row` that share `kvHead` against tile `split`.
void AttentionEmitter::emitTile(KernelContext &k, AttentionTile &tile,
                                Value row, Value kvHead, Value keys,
                                Value values, Value split, Value last,
                                bool waitForValues) {
  Emitter &e = k.e;
  int64_t matrices = llvm::divideCeil(shape.group, 16);
  Value base = partial(k, row, split);
  // A small group has no heads for the lower eight rows of a matrix.
  int halves = shape.group > 8 ? 2 : 1;
  auto emitMatrix = [&](Value first) {
    // Rows beyond the group repeat its last head: they store the same bits in
    // the same places, and need no guard.
    Value heads[2], rows[2];
    for (int half = 0; half < halves; ++half) {
      Value index = e.add(e.add(first, tile.g), half * 8);
      index = e.min(index, e.c(shape.group - 1));
      heads[half] = e.add(e.mul(kvHead, shape.group), index);
      rows[half] = query(k, row, heads[half]);
    }
    Values s =
        tile.scores(keys, [&](int64_t step) { return tile.query(rows, step); });
    tile.scale(s);
    tile.hide(s, {last, last});
    TileWeights weights = tile.weigh(s, halves);
    if (waitForValues) {
      e.waitCopies(0);
      e.syncWarp();
    }
    Value outputs[2];
    for (int half = 0; half < halves; ++half) {
      outputs[half] =
          e.at(e.at(base, e.mul(heads[half], shape.partialHeadBytes())),
               e.mul(tile.q, 8));
      Value sums = e.at(e.at(base, shape.heads * shape.partialHeadBytes()),
                        e.mul(heads[half], 8));
      storeFloats(e, e.f32, {weights.maximum[half], weights.sum[half]}, sums);
    }
    tile.values(values, weights, [&](int64_t dimTile, const Values &sums) {
      for (int half = 0; half < halves; ++half)
        storeFloats(e, e.f32, ValueRange(sums).slice(2 * half, 2),
                    e.at(outputs[half], dimTile * 32));
    });
  };
  if (matrices == 1)
    emitMatrix(e.c(0));
  else
    e.loop(e.c(0), e.c(matrices * 16), 16, emitMatrix);
}

Value AttentionEmitter::arrivesLast(KernelContext &k, Value row, Value kvHead,
                                    Value total, Value flag) {
  Emitter &e = k.e;
  e.barrier();
  e.ifThen(e.equal(e.tid(), 0), [&] {
    Value alone = e.equal(total, 1);
    Value last = e.ifElse(
        alone, e.i32, [&] { return Values{e.c(1)}; },
        [&] {
          Value index =
              e.add(e.mul(e.i64Of(row), context.model.lists.countersPerRow),
                    e.i64Of(e.add(kvHead, AttentionCounters)));
          Value counter = e.at(k.counters, e.mul(index, 4));
          // The barrier and this fence make the block's partials visible
          // before its arrival; the one behind it, the others' afterwards.
          e.fence();
          Value before = e.atomicAdd(counter, e.c(1));
          Value last = e.equal(before, e.sub(total, e.c(1)));
          e.ifThen(last, [&] {
            e.fence();
            e.store(e.c(0), counter, 4);
          });
          return Values{e.zext(last, e.i32)};
        })[0];
    e.store(last, flag, 4);
  });
  e.barrier();
  return e.equal(e.load(e.i32, flag, 4), 1);
}

void AttentionEmitter::emitMerge(KernelContext &k, Value row, Value kvHead,
                                 Value tiles) {
  Emitter &e = k.e;
  int64_t quads = shape.padded / 4;
  RowEmitter rows(k);
  e.loop(e.tid(), e.c(shape.group * quads), k.threads, [&](Value item) {
    Value head = e.add(e.mul(kvHead, shape.group), e.div(item, quads));
    Value dim = e.mul(e.rem(item, quads), 4);
    Value first = partial(k, row, e.c(0));
    Value outputs =
        e.at(e.at(first, e.mul(head, shape.partialHeadBytes())), e.mul(dim, 4));
    Value sums = e.at(e.at(first, shape.heads * shape.partialHeadBytes()),
                      e.mul(head, 8));
    // Loads of a round come before its sums, which depend on each other.
    auto round = [&](Value tile, int64_t count, ValueRange carried) {
      SmallVector<Values> loaded;
      for (int64_t i = 0; i < count; ++i) {
        Value away = e.mul(e.i64Of(e.add(tile, i)), shape.partialBytes());
        Values own = loadFloats(e, e.f32, e.at(sums, away), 2);
        own.append(loadFloats(e, e.f32, e.at(outputs, away), 4));
        loaded.push_back(own);
      }
      Values state(carried);
      for (Values &own : loaded) {
        MergeFactors factors = mergeFactors(e, state[0], own[0]);
        state[0] = factors.maximum;
        for (size_t i = 1; i < state.size(); ++i)
          state[i] = merge(e, factors, state[i], own[i]);
      }
      return state;
    };
    constexpr int64_t Unroll = 8;
    Values state(6, e.real(0.0));
    state[0] = e.real(LowScore);
    Value whole = e.bitAnd(tiles, -Unroll);
    state = e.loop(e.c(0), whole, e.c(Unroll), state,
                   [&](Value tile, ValueRange carried) {
                     return round(tile, Unroll, carried);
                   });
    state = e.loop(whole, tiles, e.c(1), state,
                   [&](Value tile, ValueRange carried) {
                     return round(tile, 1, carried);
                   });
    emitEpilogue(k, rows, row, head, dim,
                 finish(e, state[1], ValueRange(state).drop_front(2)));
  });
}

LogicalResult AttentionEmitter::emitDecode() {
  // Tiles of K and V of a block take some 64 KiB, so that several blocks of a
  // processor overlap; all warps merge.
  constexpr int Threads = 128;
  int64_t warps = shape.padded <= 64 ? 4 : shape.padded <= 128 ? 2 : 1;
  int64_t flagOffset = warps * 2 * shape.tileBytes();
  int64_t sharedBytes = flagOffset + 16;
  if (failed(checkShared(sharedBytes)))
    return failure();

  LaunchLists &lists = context.model.lists;
  lists.partialBytes = std::max(lists.partialBytes, shape.partialBytes());
  lists.countersPerRow = countersPerRow(context.model.model);
  KernelContext k = context.begin("", Threads);
  Emitter &e = k.e;
  e.waitForPrevious();
  e.launchNext();
  Value kvHead = e.ctaid(1), row = e.ctaid(2);
  Value position = k.position(row);
  Value tiles = e.add(e.div(position, TilePositions), 1);
  Value first = e.mul(e.ctaid(0), warps);
  e.ifThen(e.less(first, tiles), [&] {
    Value warp = e.warp(), lane = e.lane();
    Value split = e.add(first, warp);
    Value works = e.both(e.less(warp, warps), e.less(split, tiles));
    e.ifThen(works, [&] {
      AttentionTile tile(e, shape, attention.getScale().convertToDouble());
      Value keys = e.at(k.sharedMemory(), e.mul(warp, 2 * shape.tileBytes()));
      Value values = e.at(keys, shape.tileBytes());
      Value last = e.sub(position, e.mul(split, TilePositions));
      Value valid = e.add(last, 1);
      Value page = k.page(cache, k.rowSequence(row), split);
      for (bool isValue : {false, true}) {
        tile.copy(isValue ? values : keys,
                  k.headPlane(cache, page, isValue, kvHead), e.c64(0), 0, valid,
                  lane, 32);
        e.commitCopies();
      }
      tile.clearPadding(keys, 2 * TilePositions, lane, 32);
      bool late = shape.group <= 16;
      e.waitCopies(late ? 1 : 0);
      e.syncWarp();
      emitTile(k, tile, row, kvHead, keys, values, split, last, late);
    });
    Value total = e.div(e.add(tiles, warps - 1), warps);
    Value last = arrivesLast(k, row, kvHead, total, k.sharedMemory(flagOffset));
    e.ifThen(last, [&] { emitMerge(k, row, kvHead, tiles); });
  });

  Launch &launch = context.launch(k);
  launch.sharedBytes = sharedBytes;
  launch.grid[0] = {Extent::Positions, warps * TilePositions};
  launch.grid[1] = {Extent::Fixed, shape.kvHeads};
  launch.grid[2] = {Extent::Sequences, 1};
  return success();
}

//===----------------------------------------------------------------------===//
// Prefill
//===----------------------------------------------------------------------===//

AttentionEmitter::Queries
AttentionEmitter::locate(KernelContext &k, const Plan &plan, bool again) {
  Emitter &e = k.e;
  auto special = [&](const char *name, Value known) {
    if (!again)
      return known;
    return e.inlinePtx("mov.u32 $0, %" + std::string(name) + ";", {e.i32}, {},
                       /*pure=*/false)[0];
  };
  Queries result;
  result.tid = special("tid.x", e.tid());
  Value x = special("ctaid.x", e.ctaid(0)), y = special("ctaid.y", e.ctaid(1));
  Value blocks = special("nctaid.x", e.nctaid(0));
  Value firstQuery = e.c(0);
  result.kvHead = y;
  if (plan.passes > 1) {
    firstQuery = e.mul(e.rem(y, plan.passes), plan.warps * 16);
    result.kvHead = e.div(y, plan.passes);
  }
  // The last rows of a prompt see the most: they start first.
  result.rowTile = k.rowTile(e.sub(e.sub(blocks, e.c(1)), x));
  Value firstRow =
      tileField(k, result.rowTile, offsetof(KvcRowTile, first_row));
  Value count = e.mul(tileField(k, result.rowTile, offsetof(KvcRowTile, rows)),
                      shape.group);
  Value warpFirst = e.add(firstQuery, e.mul(e.shr(result.tid, 5), 16));
  Value g = e.bitAnd(e.shr(result.tid, 2), 7);
  // Queries beyond the tile's repeat its last one, which stores the same bits
  // in the same places.
  Value last = e.sub(count, e.c(1));
  for (int half = 0; half < 2; ++half) {
    Value index = e.min(e.add(e.add(warpFirst, g), half * 8), last);
    result.rows[half] = e.add(firstRow, e.div(index, shape.group));
    result.heads[half] =
        e.add(e.mul(result.kvHead, shape.group), e.rem(index, shape.group));
  }
  result.lastRow = e.add(firstRow, e.div(last, shape.group));
  result.any = e.less(firstQuery, count);
  result.active = e.less(warpFirst, count);
  return result;
}

void AttentionEmitter::emitBlock(KernelContext &k, const Plan &plan,
                                 const Queries &own) {
  Emitter &e = k.e;
  AttentionTile tile(e, shape, attention.getScale().convertToDouble());
  int64_t stageBytes = 2 * shape.tileBytes();
  Value thread = e.tid();

  Value positions[2], queries[2];
  for (int half = 0; half < 2; ++half) {
    positions[half] = k.position(own.rows[half]);
    queries[half] = query(k, own.rows[half], own.heads[half]);
  }
  // Positions ascend with rows.
  Value least = e.shuffleFrom(positions[0], e.c(0));
  Value most = e.shuffleFrom(positions[1], e.c(31));
  Value end = k.position(own.lastRow);
  Value sequence = tileField(k, own.rowTile, offsetof(KvcRowTile, sequence));
  Value tiles = e.add(e.div(end, TilePositions), 1);

  // Queries stay in registers where the totals leave room.
  SmallVector<Values> kept;
  if (plan.keepsQueries)
    for (int64_t step = 0; step < shape.steps(); ++step)
      kept.push_back(tile.query(queries, step));
  auto queryStep = [&](int64_t step) {
    return plan.keepsQueries ? kept[step] : tile.query(queries, step);
  };

  auto pageOf = [&](Value index) {
    return k.pageNumber(sequence, e.min(index, e.sub(tiles, e.c(1))));
  };
  Value planes = k.headPlane(cache, k.kv, false, own.kvHead);
  auto keysOf = [&](Value index) {
    Value stage = e.rem(index, plan.stages);
    return e.at(k.sharedMemory(), e.mul(stage, stageBytes));
  };
  auto copy = [&](Value index, Value page) {
    Value keys = keysOf(index);
    Value valid = e.sub(e.add(end, 1), e.mul(index, TilePositions));
    // V's plane lies behind the K of all heads: one address for both.
    Value away = e.mul(e.i64Of(page), cache.getPageBytes());
    int64_t allKeys = shape.kvHeads * TilePositions * shape.headDim * 2;
    for (int64_t isValue : {0, 1})
      tile.copy(e.at(keys, isValue * shape.tileBytes()), planes, away,
                isValue * allKeys, valid, thread, k.threads);
    e.commitCopies();
  };

  auto compute = [&](Value index, ValueRange state) {
    Value keys = keysOf(index);
    Value start = e.mul(index, TilePositions);
    Values s = tile.scores(keys, queryStep);
    tile.scale(s);
    Value partly = e.less(least, e.add(start, TilePositions - 1));
    s = e.ifElse(
        partly, TypeRange(ValueRange(s)),
        [&] {
          Values hidden(s);
          tile.hide(hidden,
                    {e.sub(positions[0], start), e.sub(positions[1], start)});
          return hidden;
        },
        [&] { return s; });
    TileWeights weights = tile.weigh(s);
    Values next(state);
    MergeFactors factors[2];
    for (int half = 0; half < 2; ++half) {
      factors[half] = mergeFactors(e, state[half], weights.maximum[half]);
      next[half] = factors[half].maximum;
      next[2 + half] =
          merge(e, factors[half], state[2 + half], weights.sum[half]);
    }
    tile.values(e.at(keys, shape.tileBytes()), weights,
                [&](int64_t dimTile, const Values &sums) {
                  for (int64_t i = 0; i < 4; ++i) {
                    Value &total = next[4 + 4 * dimTile + i];
                    total = merge(e, factors[i / 2], total, sums[i]);
                  }
                });
    return next;
  };

  tile.clearPadding(k.sharedMemory(), plan.stages * 2 * TilePositions, thread,
                    k.threads);
  copy(e.c(0), pageOf(e.c(0)));
  Values state(4 + 4 * shape.dimTiles(), e.real(0.0));
  state[0] = state[1] = e.real(LowScore);
  // The next tile's page is looked up a round before it is needed.
  state.push_back(pageOf(e.c(1)));
  state = e.loop(
      e.c(0), tiles, e.c(1), state, [&](Value counter, ValueRange carried) {
        // Opaque: LLVM would carry a register for each value derived from it.
        Value index =
            e.inlinePtx("mov.b32 $0, $1;", {e.i32}, counter, /*pure=*/true)[0];
        Value next = e.add(index, 1), page = carried.back();
        ValueRange sums = carried.drop_back();
        e.waitCopies(0);
        e.barrier();
        auto copyNext = [&] {
          e.ifThen(e.less(next, tiles), [&] { copy(next, page); });
        };
        // Every warp is past the tile before: its stage is free.
        if (plan.stages > 1)
          copyNext();
        Value afterNext = pageOf(e.add(index, 2));
        Value sees = e.less(e.mul(index, TilePositions), e.add(most, 1));
        Values result = e.ifElse(
            e.both(own.active, sees), sums.getTypes(),
            [&] { return compute(index, sums); }, [&] { return Values(sums); });
        if (plan.stages == 1) {
          e.barrier();
          copyNext();
        }
        result.push_back(afterNext);
        return result;
      });

  // Kept through the loop they would cost registers that it needs.
  Queries same = locate(k, plan, /*again=*/true);
  Value q = e.bitAnd(same.tid, 3);
  RowEmitter rowEmitter(k);
  e.ifThen(same.active, [&] {
    for (int half = 0; half < 2; ++half) {
      Values outputs;
      for (int64_t i = 0; i < shape.dimTiles(); ++i)
        for (int64_t j = 0; j < 2; ++j)
          outputs.push_back(state[4 + 4 * i + 2 * half + j]);
      outputs = finish(e, state[2 + half], outputs);
      for (int64_t i = 0; i < shape.dimTiles(); ++i)
        emitEpilogue(k, rowEmitter, same.rows[half], same.heads[half],
                     e.add(e.mul(q, 2), i * 8),
                     ValueRange(outputs).slice(2 * i, 2));
    }
  });
}

LogicalResult AttentionEmitter::emitPrefill() {
  // The more queries a block has, the more share each byte of K and V; their
  // totals have to fit its registers.
  int64_t mostWarps = shape.padded <= 64 ? 8 : 4;
  int64_t tileRows = std::max<int64_t>(mostWarps / shape.group, 1) * 16;
  LaunchLists &lists = context.model.lists;
  lists.attentionRows = std::max(lists.attentionRows, tileRows);

  int64_t matrices = tileRows * shape.group / 16;
  Plan plan;
  plan.passes = llvm::divideCeil(matrices, mostWarps);
  plan.warps = llvm::divideCeil(matrices, plan.passes);
  plan.keepsQueries = shape.padded <= 128;
  plan.stages = plan.keepsQueries ? 2 : 1;
  int64_t sharedBytes = plan.stages * 2 * shape.tileBytes();
  if (failed(checkShared(sharedBytes)))
    return failure();

  // Registers that totals, scores and queries need, more where copies do not
  // deal out evenly; blocks of a processor hide each other's waits. Registers
  // are given to groups of four warps.
  int64_t threads = 32 * plan.warps;
  int64_t perRow = shape.headDim * 2 / shape.copyBytes;
  bool even = TilePositions * perRow % threads == 0 && threads % perRow == 0;
  int64_t registers = !plan.keepsQueries   ? 255
                      : !even              ? 200
                      : shape.padded <= 64 ? 128
                                           : 168;
  int64_t blocks = std::min<int64_t>(
      65536 / (static_cast<int64_t>(llvm::alignTo(threads, 128)) * registers),
      context.model.target.sharedBytes / (sharedBytes + 1024));
  KernelContext k =
      context.begin("", static_cast<int>(threads), static_cast<int>(blocks));
  Emitter &e = k.e;
  e.waitForPrevious();
  e.launchNext();
  Queries first = locate(k, plan, /*again=*/false);
  e.ifThen(first.any, [&] { emitBlock(k, plan, first); });

  Launch &launch = context.launch(k);
  launch.sharedBytes = sharedBytes;
  launch.grid[0] = {Extent::Tiles, 1};
  launch.grid[1] = {Extent::Fixed, shape.kvHeads * plan.passes};
  return success();
}

LogicalResult AttentionEmitter::emit() {
  if (failed(check()))
    return failure();
  LogicalResult result = context.program.getPhase() == Phase::Decode
                             ? emitDecode()
                             : emitPrefill();
  return success(succeeded(result) && succeeded(status));
}

LogicalResult kvc::nvptx::emitAttention(DispatchContext &context,
                                        AttentionOp attention) {
  return AttentionEmitter(context, attention).emit();
}

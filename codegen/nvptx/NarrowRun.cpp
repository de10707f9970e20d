//===- NarrowRun.cpp ------------------------------------------------------===//
//
// A warp takes one segment of K of one tile after another, its next registers'
// worth of weights always in flight while it multiplies; the first are loaded
// before the kernel waits for the one before it. Warps' sums meet in shared
// memory and are added in ascending order.
//
//===----------------------------------------------------------------------===//
#include "codegen/nvptx/NarrowRun.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

static constexpr int ItemsPerTile = 8 * NarrowTokens; // pairs of rows x tokens
static constexpr int64_t ItemBytes = 8;               // two f32

int64_t NarrowRun::sumBytes(const LinearPlan &plan) {
  size_t most = 1; // segments of a group
  for (const LinearGroup &group : plan.groups)
    most = std::max(most, group.segments.size());
  return 2 * static_cast<int64_t>(most) * plan.splits * ItemsPerTile *
         ItemBytes;
}

NarrowRun::NarrowRun(KernelContext &kernel, const LinearPlan &plan,
                     LinearRun run)
    : kernel(kernel), e(kernel.e), plan(plan), run(std::move(run)), lanes(e) {
  const TilesLayout &layout = this->run.layouts[0];
  std::vector<int64_t> counts;
  for (int segment = 0; segment < layout.splits; ++segment) {
    int64_t count = layout.cut(segment + 1) - layout.cut(segment);
    if (!llvm::is_contained(counts, count))
      counts.push_back(count);
  }
  llvm::sort(counts);
  SmallVector<int64_t> offsets(this->run.layouts.size(), 0);
  if (layout.granule == MaxChunkBlocks && counts.back() > MaxChunkBlocks) {
    Path &path = paths.emplace_back(Path{counts.back(), /*repeats=*/true, {}});
    addItems(path, MaxChunkBlocks, 0, offsets);
    return;
  }
  for (int64_t count : counts) {
    Path &path = paths.emplace_back(Path{count, /*repeats=*/false, {}});
    std::fill(offsets.begin(), offsets.end(), 0);
    int64_t done = 0;
    for (int size = MaxChunkBlocks; size; size /= 2)
      for (; count - done >= size; done += size)
        addItems(path, size, done, offsets);
  }
}

void NarrowRun::addItems(Path &path, int blocks, int64_t firstBlock,
                         MutableArrayRef<int64_t> offsets) {
  if (firstBlocks.size() < paths.size())
    firstBlocks.emplace_back();
  for (auto [segment, layout] : llvm::enumerate(run.layouts)) {
    for (TilePart part : tileParts(layout, blocks, offsets[segment])) {
      path.items.push_back(
          {static_cast<int>(segment), Fragments(e, layout, part)});
      firstBlocks.back().push_back(static_cast<int>(firstBlock) +
                                   part.firstBlock);
    }
    offsets[segment] += layout.chunk(blocks).bytes;
  }
}

std::vector<Value> NarrowRun::tileBases(Value tile) {
  // Groups' tiles follow each other; every segment of a group has as many.
  size_t last = run.contiguous ? 0 : run.groups.size() - 1;
  std::vector<Value> bases(weights[last]);
  int64_t start = run.contiguous ? 0 : run.totalTiles() - run.tiles.back();
  Value from = e.c(start);
  for (size_t group = last; group-- > 0;) {
    Value inside = e.less(tile, start);
    start -= run.tiles[group];
    from = e.select(inside, e.c(start), from);
    for (auto [base, other] : llvm::zip_equal(bases, weights[group]))
      base = e.select(inside, other, base);
  }
  Value local = e.i64Of(e.sub(tile, from));
  for (auto [segment, base] : llvm::enumerate(bases))
    base = e.at(e.at(base, e.mul(local, run.layouts[segment].tileBytes)),
                segmentOffsets[segment]);
  return bases;
}

void NarrowRun::begin(Value firstTile, bool certain) {
  const TilesLayout &layout = run.layouts[0];
  first = firstTile;
  Value warp = e.warp();
  auto cut = [&](Value segment) {
    int64_t granules = layout.blocks / layout.granule;
    return e.mul(e.div(e.mul(segment, granules), layout.splits),
                 layout.granule);
  };
  segmentBlock = cut(warp);
  // The last segment takes what the granules leave.
  Value end = e.select(e.equal(warp, layout.splits - 1), e.c(layout.blocks),
                       cut(e.add(warp, 1)));
  segmentBlocks = e.sub(end, segmentBlock);
  auto chunkBytes = [&](const TilesLayout &of, int64_t blocks) {
    int64_t bytes = 0;
    for (int size = MaxChunkBlocks; size; size /= 2)
      for (; blocks >= size; blocks -= size)
        bytes += of.chunk(size).bytes;
    return bytes;
  };
  for (const TilesLayout &of : run.layouts) {
    // Segments have `least` blocks or, where paths differ, one more.
    int64_t least = paths[0].repeats ? MaxChunkBlocks : paths[0].blocks;
    Value bytes;
    if (layout.granule == MaxChunkBlocks) {
      bytes = e.mul(e.div(segmentBlock, MaxChunkBlocks),
                    of.chunk(MaxChunkBlocks).bytes);
    } else {
      bytes = e.mul(warp, chunkBytes(of, least));
      Value more = e.sub(segmentBlock, e.mul(warp, least));
      if (paths.size() > 1)
        bytes = e.add(bytes, e.mul(more, chunkBytes(of, least + 1) -
                                             chunkBytes(of, least)));
    }
    segmentOffsets.push_back(e.i64Of(bytes));
  }
  for (int number : run.groups) {
    const LinearGroup &group = plan.groups[number];
    std::vector<Value> &bases = weights.emplace_back();
    for (int segment : group.segments) {
      WeightOp weight = plan.segments[segment].weight;
      bases.push_back(
          kernel.weight(FlatSymbolRefAttr::get(weight.getSymNameAttr())));
    }
    epilogues.emplace_back(kernel, plan, group);
  }
  size_t words = 0;
  for (Path &path : paths) {
    words =
        std::max(words, static_cast<size_t>(path.items[0].fragments.words()));
    for (Item &item : path.items)
      item.fragments.requireOffsets(lanes);
  }
  Value valid = certain ? Value() : e.less(first, run.totalTiles());
  Value tile = certain ? first : e.select(valid, first, e.c(0));
  std::vector<Value> bases = tileBases(tile);
  auto load = [&](Path &path) {
    Values loaded;
    Fragments &fragments = path.items[0].fragments;
    fragments.load(0, fragments.pieces(), lanes, bases[0], valid, loaded);
    loaded.resize(words, e.unused(e.i32));
    return loaded;
  };
  if (paths.size() == 1) {
    window = load(paths[0]);
    return;
  }
  window = e.ifElse(
      e.equal(segmentBlocks, paths[0].blocks),
      TypeRange(SmallVector<Type>(words, e.i32)),
      [&] { return load(paths[0]); }, [&] { return load(paths[1]); });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Values NarrowRun::runItems(Path &path, ArrayRef<Value> bases, Value from,
                           ValueRange window, Value next, Value nextValid,
                           ActivationsOf activations,
                           std::vector<Values> &sums) {
  size_t number = &path - paths.data();
  Values words(window);
  for (auto [index, item] : llvm::enumerate(path.items)) {
    bool last = index + 1 == path.items.size();
    Item &following = path.items[last ? 0 : index + 1];
    Value base = last ? next : bases[following.segment];
    item.fragments.bind(ValueRange(words).take_front(item.fragments.words()));
    Values loaded;
    int blocks = item.fragments.blocks(), done = 0;
    for (int block = 0; block < blocks; ++block) {
      // ptxas would unpack the codes of many blocks ahead, and spill.
      if (!item.fragments.plain())
        e.syncWarp();
      Values x = activations(from, firstBlocks[number][index] + block);
      multiplyBlock(e, item.fragments, block, ArrayRef<Values>(x),
                    MutableArrayRef<Values>(sums[item.segment]));
      // What comes next takes the registers that this block has freed.
      int until = following.fragments.piecesBy(block + 1, blocks);
      following.fragments.load(done, until, lanes, base,
                               last ? nextValid : Value(), loaded);
      done = until;
    }
    words = loaded;
  }
  return words;
}

Values NarrowRun::runPath(Path &path, ArrayRef<Value> bases, ValueRange window,
                          Value next, Value nextValid,
                          ActivationsOf activations,
                          std::vector<Values> &sums) {
  if (!path.repeats)
    return runItems(path, bases, segmentBlock, window, next, nextValid,
                    activations, sums);
  Values carried(window);
  for (Values &sum : sums)
    carried.append(sum);
  Values results = e.loop(
      e.c(0), e.div(segmentBlocks, MaxChunkBlocks), e.c(1), carried,
      [&](Value chunk, ValueRange values) {
        std::vector<Value> here;
        for (auto [segment, base] : llvm::enumerate(bases))
          here.push_back(e.at(
              base, e.mul(e.i64Of(chunk),
                          run.layouts[segment].chunk(MaxChunkBlocks).bytes)));
        Value more =
            e.less(e.add(chunk, 1), e.div(segmentBlocks, MaxChunkBlocks));
        Value after = e.select(
            more, e.at(here[0], run.layouts[0].chunk(MaxChunkBlocks).bytes),
            next);
        std::vector<Values> inner;
        inner.reserve(sums.size());
        for (size_t segment = 0; segment < sums.size(); ++segment)
          inner.emplace_back(values.slice(window.size() + 4 * segment, 4));
        Values words =
            runItems(path, here, e.add(segmentBlock, e.mul(chunk, 8)),
                     values.take_front(window.size()), after,
                     e.bitOr(more, nextValid), activations, inner);
        for (Values &sum : inner)
          words.append(sum);
        return words;
      });
  for (auto [segment, sum] : llvm::enumerate(sums))
    sum.assign(results.begin() + window.size() + 4 * segment,
               results.begin() + window.size() + 4 * (segment + 1));
  results.resize(window.size());
  return results;
}

Values NarrowRun::runTile(ArrayRef<Value> bases, ValueRange window, Value next,
                          Value nextValid, ActivationsOf activations,
                          std::vector<Values> &sums) {
  if (paths.size() == 1)
    return runPath(paths[0], bases, window, next, nextValid, activations, sums);
  auto run = [&](Path &path) {
    std::vector<Values> inner = sums;
    Values words =
        runPath(path, bases, window, next, nextValid, activations, inner);
    words.resize(window.size(), e.unused(e.i32));
    for (Values &sum : inner)
      words.append(sum);
    return words;
  };
  SmallVector<Type> types(window.size(), e.i32);
  types.append(4 * sums.size(), e.f32);
  Values results = e.ifElse(
      e.equal(segmentBlocks, paths[0].blocks), types,
      [&] { return run(paths[0]); }, [&] { return run(paths[1]); });
  for (auto [segment, sum] : llvm::enumerate(sums))
    sum.assign(results.begin() + window.size() + 4 * segment,
               results.begin() + window.size() + 4 * (segment + 1));
  results.resize(window.size());
  return results;
}

//===----------------------------------------------------------------------===//
// Sums to results
//===----------------------------------------------------------------------===//

void NarrowRun::forGroup(Value tile,
                         llvm::function_ref<void(size_t, Value)> body) {
  std::function<void(size_t, int64_t)> from = [&](size_t group, int64_t start) {
    Value local = e.add(tile, -start);
    if (group + 1 == run.groups.size())
      return body(group, local);
    int64_t end = start + run.tiles[group];
    e.ifElse(
        e.less(tile, end), [&] { body(group, local); },
        [&] { from(group + 1, end); });
  };
  from(0, 0);
}

Values NarrowRun::prepare(Value tile, Value slot, Value row) {
  auto of = [&](size_t group, Value local) {
    PairEpilogue &epilogue = epilogues[group];
    return epilogue.prepare(epilogue.place(local, slot, row));
  };
  if (epilogues.size() == 1)
    return of(0, tile);
  // One list of values, each group's at its place in it.
  SmallVector<Type> types;
  std::vector<size_t> starts;
  for (PairEpilogue &epilogue : epilogues) {
    starts.push_back(types.size());
    types.append(epilogue.preparedTypes());
  }
  std::function<Values(size_t, int64_t)> from = [&](size_t group,
                                                    int64_t start) -> Values {
    auto own = [&] {
      Values all;
      Values mine = of(group, e.add(tile, -start));
      for (auto [index, type] : llvm::enumerate(types)) {
        size_t at = index - starts[group];
        if (index >= starts[group] && at < mine.size())
          all.push_back(mine[at]);
        else
          all.push_back(e.unused(type));
      }
      return all;
    };
    if (group + 1 == epilogues.size())
      return own();
    int64_t end = start + run.tiles[group];
    return e.ifElse(e.less(tile, end), TypeRange(types), own,
                    [&] { return from(group + 1, end); });
  };
  return from(0, 0);
}

void NarrowRun::finish(Value tile, Value slot, Value row, ValueRange prepared,
                       Value sums) {
  SmallVector<PairEpilogue::Pair> values;
  for (size_t segment = 0; segment < run.layouts.size(); ++segment) {
    PairEpilogue::Pair total;
    for (int split = 0; split < plan.splits; ++split) {
      int64_t buffer =
          (static_cast<int64_t>(segment) * plan.splits + split) * ItemsPerTile;
      Values words = e.loadWords(e.at(sums, buffer * ItemBytes), 2);
      Value x = e.bitcast(words[0], e.f32), y = e.bitcast(words[1], e.f32);
      total = split ? PairEpilogue::Pair{e.addf(total.first, x),
                                         e.addf(total.second, y)}
                    : PairEpilogue::Pair{x, y};
    }
    values.push_back(total);
  }
  size_t start = 0;
  SmallVector<ValueRange> parts;
  for (PairEpilogue &epilogue : epilogues) {
    size_t count = epilogue.preparedTypes().size();
    parts.push_back(prepared.slice(start, count));
    start += count;
  }
  forGroup(tile, [&](size_t group, Value local) {
    PairEpilogue &epilogue = epilogues[group];
    epilogue.finish(epilogue.place(local, slot, row), parts[group], values);
  });
}

void NarrowRun::walk(Value rows, ActivationsOf activations, Value sumSpace) {
  Value lane = e.lane(), warp = e.warp(), tid = e.tid();
  Value step = e.nctaid(0), count = e.c(run.totalTiles());
  int segments = static_cast<int>(run.layouts.size());
  int64_t bufferBytes = sumBytes(plan) / 2;
  int passes = kernel.threads < ItemsPerTile ? 2 : 1;
  // A pair of a tile is (parity of the token, lane), as the products lie.
  struct Pass {
    Value slot, token, row, item, mine;
  };
  SmallVector<Pass> items;
  for (int number = 0; number < passes; ++number) {
    Pass pass;
    Value parity = passes == 2 ? e.c(number) : e.bitAnd(e.shr(tid, 5), 1);
    pass.slot = e.shr(lane, 2);
    pass.token = e.add(e.mul(e.bitAnd(lane, 3), 2), parity);
    pass.row = e.min(pass.token, e.sub(rows, e.c(1)));
    pass.item = e.mul(e.add(e.mul(parity, 32), lane), ItemBytes);
    pass.mine = e.less(pass.token, rows);
    if (kernel.threads > ItemsPerTile)
      pass.mine = e.both(pass.mine, e.less(tid, ItemsPerTile));
    items.push_back(pass);
  }
  Values carried(window);
  carried.push_back(e.c(0));
  e.loop(first, count, step, carried, [&](Value tile, ValueRange values) {
    ValueRange words = values.drop_back();
    Value buffer = e.at(sumSpace, values.back());
    Value following = e.add(tile, step);
    Value valid = e.less(following, count);
    Value next = tileBases(e.select(valid, following, tile))[0];
    SmallVector<Values> prepared;
    for (Pass &pass : items)
      prepared.push_back(prepare(tile, pass.slot, pass.row));

    std::vector<Values> sums(segments, Values(4, e.real(0.0)));
    // The first segment's base is the last turn's next.
    std::vector<Value> bases = tileBases(tile);
    for (size_t segment = 1; segment < bases.size(); ++segment)
      bases[segment] = e.opaque(bases[segment]);
    Values loaded =
        runTile(bases, words, e.opaque(next), valid, activations, sums);
    for (auto [segment, sum] : llvm::enumerate(sums)) {
      Value own = e.at(buffer, e.add(e.mul(warp, ItemsPerTile * ItemBytes),
                                     e.mul(lane, ItemBytes)));
      for (int parity = 0; parity < 2; ++parity)
        e.storeWords(
            {e.bitcast(sum[parity], e.i32), e.bitcast(sum[2 + parity], e.i32)},
            e.at(own,
                 (static_cast<int64_t>(segment) * plan.splits * ItemsPerTile +
                  parity * 32) *
                     ItemBytes));
    }
    // A single warp's lanes read what they wrote themselves.
    if (plan.splits > 1)
      e.barrier();
    for (size_t number = 0; number < items.size(); ++number) {
      const Pass &pass = items[number];
      e.ifThen(pass.mine, [&] {
        finish(tile, pass.slot, pass.row, prepared[number],
               e.at(buffer, pass.item));
      });
    }
    loaded.push_back(e.sub(e.c(bufferBytes), values.back()));
    return loaded;
  });
}

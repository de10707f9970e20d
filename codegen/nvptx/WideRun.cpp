//===- WideRun.cpp --------------------------------------------------------===//
//
// Both operands come through shared memory in a ring of stages of at most 64 k:
// the weights as they are packed, the activations as rows of bf16, copied
// asynchronously three stages ahead. Segments of K are summed one after the
// other and added in ascending order, as the warps of a narrow kernel do it.
//
//===----------------------------------------------------------------------===//
#include "codegen/nvptx/WideRun.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

static constexpr int Stages = 4;
static constexpr int StageBlocks = 2;
static constexpr int64_t TokenBytes = StageBlocks * TileBlock * 2;

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

/// Shared memory that a stage of one tile needs.
static int64_t partBytes(const TilesLayout &layout) {
  int64_t most = 0;
  for (int blocks : {8, 4, 2, 1}) {
    if (blocks < 8 && layout.granule == MaxChunkBlocks)
      break;
    TilePart part{blocks, 0, std::min(blocks, StageBlocks), 0};
    most = std::max(most, TilePieces(layout, part).sharedBytes());
  }
  return most;
}

static int64_t tileStageBytes(const LinearRun &run, WideShape shape) {
  int64_t bytes = 0;
  for (const TilesLayout &layout : run.layouts)
    bytes += partBytes(layout) * shape.blockTiles() /
             static_cast<int64_t>(run.layouts.size());
  return llvm::alignTo(bytes, 128);
}

static int64_t stageBytes(const LinearRun &run, WideShape shape) {
  return tileStageBytes(run, shape) + shape.tokens() * TokenBytes;
}

/// Results in shared memory: pairs, with a pair's space behind every eight so
/// that a warp's tokens meet in fewer banks.
static constexpr int64_t ResultBytes = 9 * 8;

static int64_t resultBytes(WideShape shape) {
  return shape.blockTiles() * shape.tokens() * ResultBytes;
}

int64_t kvc::nvptx::wideSharedBytes(const LinearRun &run, WideShape shape) {
  return std::max(Stages * stageBytes(run, shape), resultBytes(shape));
}

static std::vector<WideStage> chunkStages(int blocks, int64_t firstBlock,
                                          int64_t offset) {
  std::vector<WideStage> stages;
  for (int first = 0; first < blocks; first += StageBlocks)
    stages.push_back(
        {{blocks, first, std::min(StageBlocks, blocks - first), offset},
         firstBlock + first,
         false});
  return stages;
}

/// All stages of K, of a layout whose segments are not whole chunks of 8. The
/// offsets are those of the layout.
static std::vector<WideStage> allStages(const TilesLayout &layout) {
  std::vector<WideStage> stages;
  for (const ChunkPlace &place : layout.chunkPlaces()) {
    std::vector<WideStage> more =
        chunkStages(place.blocks, place.firstBlock, place.offset);
    more.back().endsSegment =
        place.firstBlock + place.blocks == layout.cut(place.segment + 1);
    stages.insert(stages.end(), more.begin(), more.end());
  }
  return stages;
}

WideRun::WideRun(KernelContext &kernel, const LinearPlan &plan,
                 const LinearRun &run, WideShape shape)
    : kernel(kernel), e(kernel.e), plan(plan), run(run), shape(shape),
      lanes(e) {}

static int64_t blocksOf(const LinearRun &run, WideShape shape, int64_t tiles) {
  return llvm::divideCeil(tiles, shape.blockTiles() /
                                     static_cast<int64_t>(run.layouts.size()));
}

int64_t kvc::nvptx::wideBlocks(const LinearRun &run, WideShape shape) {
  int64_t blocks = 0;
  for (int64_t tiles : run.tiles)
    blocks += blocksOf(run, shape, tiles);
  return blocks;
}

bool WideRun::fills(ArrayRef<int64_t> tiles) const {
  return llvm::all_of(
      tiles, [&](int64_t count) { return count % segmentTiles() == 0; });
}

Value WideRun::slotPlace(int slot, int64_t offset) {
  return e.at(ring, slot * stageBytes(run, shape) + offset);
}

int64_t WideRun::tilePlace(int segment) const {
  int64_t bytes = 0;
  for (int before = 0; before < segment; ++before)
    bytes += partBytes(run.layouts[before]) * segmentTiles();
  return bytes;
}

void WideRun::choosePlaces(Value block) {
  // Groups' blocks follow each other.
  auto weightsOf = [&](size_t number) {
    std::vector<Value> bases;
    for (int segment : plan.groups[run.groups[number]].segments) {
      WeightOp weight = plan.segments[segment].weight;
      bases.push_back(
          kernel.weight(FlatSymbolRefAttr::get(weight.getSymNameAttr())));
    }
    return bases;
  };
  size_t last = run.groups.size() - 1;
  std::vector<Value> bases = weightsOf(last);
  int64_t start =
      wideBlocks(run, shape) - blocksOf(run, shape, run.tiles[last]);
  Value from = e.c(start), limit = e.c(run.tiles[last]);
  group = e.c(static_cast<int64_t>(last));
  for (size_t number = last; number-- > 0;) {
    Value inside = e.less(block, start);
    start -= blocksOf(run, shape, run.tiles[number]);
    from = e.select(inside, e.c(start), from);
    limit = e.select(inside, e.c(run.tiles[number]), limit);
    group = e.select(inside, e.c(static_cast<int64_t>(number)), group);
    std::vector<Value> others = weightsOf(number);
    for (auto [base, other] : llvm::zip_equal(bases, others))
      base = e.select(inside, other, base);
  }
  groupTile = e.mul(e.sub(block, from), segmentTiles());

  // Warp w copies tiles w, w + warps, ... of all segments' tiles in a row.
  for (int done = 0; done < shape.blockTiles(); done += shape.warps())
    for (int segment = 0; segment < segments(); ++segment) {
      int low = segment * segmentTiles(), high = low + segmentTiles();
      if (low >= done + shape.warps() || high <= done)
        continue;
      Copy copy{segment, e.add(warp, done - low), {}, {}};
      if (low > done)
        copy.valid = e.less(e.c(-1), copy.tile);
      if (high < done + shape.warps()) {
        Value below = e.less(copy.tile, segmentTiles());
        copy.valid = copy.valid ? e.both(copy.valid, below) : below;
      }
      // Tiles past the last one are computed and not stored.
      Value tile =
          e.add(groupTile, copy.valid ? e.max(copy.tile, e.c(0)) : copy.tile);
      if (!fills(run.tiles))
        tile = e.min(tile, e.sub(limit, e.c(1)));
      copy.base = e.at(bases[segment],
                       e.mul(e.i64Of(tile), run.layouts[segment].tileBytes));
      copies.push_back(copy);
    }
  groupTiles = limit;

  Value piece = e.rem(tid, TokenBytes / 16);
  copyPiece = piece;
  copyRow = e.div(tid, TokenBytes / 16);
  copyFrom =
      e.at(source, e.add(e.mul(e.i64Of(e.add(firstToken, copyRow)), stride),
                         e.i64Of(e.mul(piece, 16))));
  Value swizzled = e.bitXor(piece, e.bitAnd(copyRow, 7));
  copyTo =
      e.at(ring, e.add(e.add(e.mul(copyRow, TokenBytes), e.mul(swizzled, 16)),
                       tileStageBytes(run, shape)));
}

void WideRun::issue(const std::vector<WideStage> &stages, int slot,
                    const WideTurn *turn) {
  // Where K is written out, its addresses are not to be made ahead.
  for (const Copy &copy : copies) {
    const TilesLayout &layout = run.layouts[copy.segment];
    Fragments part(e, layout, stages[copy.segment].part);
    part.requireOffsets(lanes);
    Value base = turn ? e.at(copy.base, e.mul(e.i64Of(turn->number),
                                              turn->bytes[copy.segment]))
                      : e.opaque(copy.base);
    auto run = [&] {
      part.copyAsync(lanes, base,
                     e.at(slotPlace(slot, tilePlace(copy.segment)),
                          e.mul(copy.tile, partBytes(layout))));
    };
    if (copy.valid)
      e.ifThen(copy.valid, run);
    else
      run();
  }
  const WideStage &stage = stages[0];
  auto copyRows = [&] {
    int perPass = shape.threads() / (TokenBytes / 16);
    Value from = e.at(turn ? copyFrom : e.opaque(copyFrom),
                      stage.firstBlock * TileBlock * 2);
    if (turn)
      from = e.at(from,
                  e.mul(e.i64Of(turn->number), turn->blocks * TileBlock * 2));
    int64_t left = (plan.columns - stage.firstBlock * TileBlock) * 2;
    for (int first = 0; first < shape.tokens(); first += perPass) {
      Value whole = e.c(16);
      // What K lacks of a whole block is zero.
      if (!turn && left < stage.part.blocks * TileBlock * 2)
        whole =
            e.max(e.c(0), e.min(whole, e.sub(e.c(left), e.mul(copyPiece, 16))));
      Value given =
          e.select(e.less(e.add(copyRow, first), rows), whole, e.c(0));
      e.copyAsync(
          e.at(copyTo, slot * stageBytes(run, shape) + first * TokenBytes),
          e.at(from, first * stride), 16, given);
    }
  };
  if (stage.part.blocks == StageBlocks)
    copyRows();
  else
    e.ifThen(e.less(copyPiece, stage.part.blocks * 4), copyRows);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void WideRun::multiply(const std::vector<WideStage> &stages, int slot,
                       MutableArrayRef<Values> sums) {
  Value warpRow = e.div(warp, shape.warpColumns);
  Value warpColumn = e.rem(warp, shape.warpColumns);
  std::vector<Fragments> tiles;
  for (int segment = 0; segment < segments(); ++segment)
    for (int tile = 0; tile < ownTiles(); ++tile) {
      const TilesLayout &layout = run.layouts[segment];
      Fragments &part = tiles.emplace_back(e, layout, stages[segment].part);
      Value number = e.add(e.mul(warpRow, ownTiles()), tile);
      part.bindShared(e.at(slotPlace(slot, tilePlace(segment)),
                           e.mul(number, partBytes(layout))));
    }
  Value row = e.add(e.mul(warpColumn, 8 * shape.groups), e.bitAnd(lane, 7));
  for (int block = 0; block < stages[0].part.blocks; ++block) {
    // As in narrow kernels: codes are not to be unpacked far ahead.
    if (!tiles[0].plain())
      e.syncWarp();
    Value piece = e.bitXor(e.add(e.shr(lane, 3), 4 * block), e.bitAnd(lane, 7));
    Value at = e.at(ring, e.add(e.mul(row, TokenBytes), e.mul(piece, 16)));
    int64_t offset = slot * stageBytes(run, shape) + tileStageBytes(run, shape);
    std::vector<Values> activations;
    activations.reserve(static_cast<size_t>(shape.groups));
    for (int group = 0; group < shape.groups; ++group)
      activations.push_back(e.ldmatrix4(at, offset + group * 8 * TokenBytes));
    for (auto [number, tile] : llvm::enumerate(tiles))
      multiplyBlock(e, tile, block, activations,
                    sums.slice(number * shape.groups, shape.groups));
  }
}

void WideRun::addSegment(MutableArrayRef<Values> sums) {
  for (auto [total, sum] : llvm::zip_equal(totals, sums))
    for (int i = 0; i < 4; ++i)
      total[i] = e.addf(total[i], sum[i]);
}

static Values flatten(ArrayRef<Values> sums) {
  Values all;
  for (const Values &sum : sums)
    all.append(sum);
  return all;
}

static std::vector<Values> unflatten(ValueRange all) {
  std::vector<Values> sums;
  for (size_t index = 0; index < all.size(); index += 4)
    sums.emplace_back(all.slice(index, 4));
  return sums;
}

void WideRun::awaitStage() {
  e.waitCopies(Stages - 2);
  e.barrier();
}

void WideRun::multiplyAll() {
  size_t count = static_cast<size_t>(shape.tiles) * shape.groups;
  // The neutral element: 0 would change a sum of -0.
  totals.assign(count, Values(4, e.real(-0.0)));
  const TilesLayout &first = run.layouts[0];
  if (first.granule == MaxChunkBlocks && first.blocks > MaxChunkBlocks)
    multiplyChunks();
  else
    multiplyList();
}

/// Segments of whole chunks of 8 blocks: each is four stages, one turn of the
/// ring.
void WideRun::multiplyChunks() {
  std::vector<Values> zeros(totals.size(), Values(4, e.real(0.0)));
  const TilesLayout &first = run.layouts[0];
  std::vector<WideStage> list = chunkStages(MaxChunkBlocks, 0, 0);
  auto stage = [&](int number) {
    return std::vector<WideStage>(segments(), list[number % Stages]);
  };
  WideTurn turn{e.c(0), MaxChunkBlocks, {}};
  for (const TilesLayout &layout : run.layouts)
    turn.bytes.push_back(layout.chunk(MaxChunkBlocks).bytes);
  int64_t chunks = first.blocks / MaxChunkBlocks;
  lastSlot = Stages - 1;
  for (int number = 0; number < Stages - 1; ++number) {
    issue(stage(number), number, &turn);
    e.commitCopies();
  }
  auto runChunk = [&](Value chunk, std::vector<Values> &sums) {
    for (int number = 0; number < Stages; ++number) {
      awaitStage();
      int ahead = number + Stages - 1;
      turn.number = e.add(chunk, ahead / Stages);
      auto start = [&] { issue(stage(ahead), ahead % Stages, &turn); };
      if (ahead < Stages)
        start();
      else
        e.ifThen(e.less(turn.number, chunks), start);
      e.commitCopies();
      multiply(stage(number), number, sums);
    }
  };
  bool single = first.splits == chunks;
  Values results =
      e.loop(e.c(0), e.c(first.splits), e.c(1), flatten(totals),
             [&](Value segment, ValueRange carried) {
               totals = unflatten(carried);
               std::vector<Values> sums = zeros;
               if (single) {
                 runChunk(segment, sums);
               } else {
                 auto cut = [&](Value number) {
                   return e.div(e.mul(number, chunks), first.splits);
                 };
                 sums = unflatten(
                     e.loop(cut(segment), cut(e.add(segment, 1)), e.c(1),
                            flatten(sums), [&](Value chunk, ValueRange inner) {
                              std::vector<Values> here = unflatten(inner);
                              runChunk(chunk, here);
                              return flatten(here);
                            }));
               }
               addSegment(sums);
               return flatten(totals);
             });
  totals = unflatten(results);
}

/// Stages of any sizes, written out one by one. Only the first segments, where
/// they are alike and whole turns of the ring, are a loop; the last of them is
/// written out, too, since it starts the copies of what is different.
void WideRun::multiplyList() {
  std::vector<Values> zeros(totals.size(), Values(4, e.real(0.0)));
  // One list for each segment of a group: parts are the same, offsets not.
  std::vector<std::vector<WideStage>> lists;
  lists.reserve(run.layouts.size());
  for (const TilesLayout &layout : run.layouts)
    lists.push_back(allStages(layout));
  size_t total = lists[0].size();
  lastSlot = static_cast<int>((total - 1) % Stages);
  size_t period = 1;
  while (!lists[0][period - 1].endsSegment)
    ++period;
  WideTurn turn{Value(), 0, {}};
  if (period < total)
    for (const std::vector<WideStage> &list : lists) {
      turn.blocks = list[period].firstBlock - list[0].firstBlock;
      turn.bytes.push_back(list[period].part.chunkOffset -
                           list[0].part.chunkOffset);
    }
  auto comesAgain = [&](size_t number) {
    for (auto [segment, list] : llvm::enumerate(lists)) {
      const WideStage &now = list[number], &before = list[number - period];
      if (now.part.chunkBlocks != before.part.chunkBlocks ||
          now.part.firstBlock != before.part.firstBlock ||
          now.part.blocks != before.part.blocks ||
          now.endsSegment != before.endsSegment ||
          now.firstBlock - before.firstBlock != turn.blocks ||
          now.part.chunkOffset - before.part.chunkOffset != turn.bytes[segment])
        return false;
    }
    return true;
  };
  size_t alike = period;
  while (period % Stages == 0 && alike < total && comesAgain(alike))
    ++alike;
  size_t turns = alike / period - 1;

  auto stage = [&](size_t number) {
    std::vector<WideStage> stages;
    stages.reserve(lists.size());
    for (std::vector<WideStage> &list : lists)
      stages.push_back(list[number]);
    return stages;
  };
  auto start = [&](size_t number) {
    if (number < total)
      issue(stage(number), static_cast<int>(number % Stages));
    e.commitCopies();
  };
  for (size_t number = 0; number + 1 < Stages; ++number)
    start(number);
  std::vector<Values> sums = zeros;
  auto add = [&](size_t number) {
    if (!lists[0][number].endsSegment)
      return;
    addSegment(sums);
    sums = zeros;
  };
  if (turns != 0)
    totals = unflatten(e.loop(
        e.c(0), e.c(static_cast<int64_t>(turns)), e.c(1), flatten(totals),
        [&](Value number, ValueRange carried) {
          totals = unflatten(carried);
          for (size_t own = 0; own < period; ++own) {
            awaitStage();
            size_t ahead = own + Stages - 1;
            turn.number = e.add(number, static_cast<int64_t>(ahead / period));
            issue(stage(ahead % period), static_cast<int>(ahead % Stages),
                  &turn);
            e.commitCopies();
            multiply(stage(own), static_cast<int>(own % Stages), sums);
            add(own);
          }
          return flatten(totals);
        }));
  for (size_t number = turns * period; number < total; ++number) {
    awaitStage();
    if (number + 1 < total)
      start(number + Stages - 1);
    multiply(stage(number), static_cast<int>(number % Stages), sums);
    add(number);
  }
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void WideRun::storeResults() {
  Value warpRow = e.div(warp, shape.warpColumns);
  Value warpColumn = e.rem(warp, shape.warpColumns);
  Value token =
      e.add(e.mul(warpColumn, 8 * shape.groups), e.mul(e.bitAnd(lane, 3), 2));
  Value own =
      e.at(ring, e.add(e.mul(token, ResultBytes), e.mul(e.shr(lane, 2), 8)));
  for (int segment = 0; segment < segments(); ++segment)
    for (int tile = 0; tile < ownTiles(); ++tile) {
      Value number =
          e.add(e.mul(warpRow, ownTiles()), segment * segmentTiles() + tile);
      Value at = e.at(own, e.mul(number, shape.tokens() * ResultBytes));
      for (int group = 0; group < shape.groups; ++group) {
        Values &sum =
            totals[(segment * ownTiles() + tile) * shape.groups + group];
        for (int parity = 0; parity < 2; ++parity)
          e.storeWords({e.bitcast(sum[parity], e.i32),
                        e.bitcast(sum[2 + parity], e.i32)},
                       e.at(at, (8 * group + parity) * ResultBytes));
      }
    }
}

void WideRun::finishGroup(size_t number) {
  PairEpilogue epilogue(kernel, plan, plan.groups[run.groups[number]]);
  int count = shape.tokens() * segmentTiles() * 8 / shape.threads();
  // So many at a time that what they load comes together.
  int together = std::min(count, 8);
  bool whole = fills(run.tiles[number]);
  e.loop(
      tid, e.c(static_cast<int64_t>(count) * shape.threads()),
      together * shape.threads(), [&](Value first) {
        struct Item {
          Value tile, token, valid;
          PairEpilogue::Place place;
          Values prepared;
        };
        std::vector<Item> items;
        for (int i = 0; i < together; ++i) {
          Value index = e.add(first, i * shape.threads());
          Item item;
          Value slot = e.bitAnd(index, 7);
          item.tile = e.rem(e.shr(index, 3), segmentTiles());
          item.token = e.div(e.shr(index, 3), segmentTiles());
          Value tile = e.add(groupTile, item.tile);
          item.valid = e.less(item.token, rows);
          if (!whole) {
            item.valid = e.both(item.valid, e.less(tile, groupTiles));
            tile = e.min(tile, e.sub(groupTiles, e.c(1)));
          }
          Value row = e.add(firstToken, e.min(item.token, e.sub(rows, e.c(1))));
          item.place = epilogue.place(tile, slot, row);
          item.prepared = epilogue.prepare(item.place);
          items.push_back(item);
        }
        for (int i = 0; i < together; ++i) {
          Item &item = items[i];
          Value slot = e.bitAnd(e.add(first, i * shape.threads()), 7);
          e.ifThen(item.valid, [&] {
            SmallVector<PairEpilogue::Pair> values;
            Value own = e.at(
                ring,
                e.add(e.mul(e.add(e.mul(item.tile, shape.tokens()), item.token),
                            ResultBytes),
                      e.mul(slot, 8)));
            for (int segment = 0; segment < segments(); ++segment) {
              Values words = e.loadWords(
                  e.at(own, static_cast<int64_t>(segment) * segmentTiles() *
                                shape.tokens() * ResultBytes),
                  2);
              values.emplace_back(e.bitcast(words[0], e.f32),
                                  e.bitcast(words[1], e.f32));
            }
            epilogue.finish(item.place, item.prepared, values);
          });
        }
      });
}

void WideRun::emit(Value block, Value newFirstToken, Value newRows) {
  ring = kernel.sharedMemory();
  firstToken = newFirstToken;
  rows = newRows;
  lane = e.lane();
  warp = e.warp();
  tid = e.tid();
  source = kernel.scratch;
  stride = stageRowBytes(plan);
  if (plan.input) {
    source = kernel.slotBase(plan.input);
    stride = plan.input.getStride();
  }
  choosePlaces(block);
  requireLanes();
  multiplyAll();
  // The barrier ahead of the last stage leaves no copy under way, and no reader
  // but those of that stage.
  if (resultBytes(shape) > lastSlot * stageBytes(run, shape))
    e.barrier();
  storeResults();
  e.barrier();
  std::function<void(size_t)> from = [&](size_t number) {
    if (number + 1 == run.groups.size())
      return finishGroup(number);
    e.ifElse(
        e.equal(group, static_cast<int64_t>(number)),
        [&] { finishGroup(number); }, [&] { from(number + 1); });
  };
  from(0);
}

void WideRun::requireLanes() {
  // Made here, so that they stand ahead of every loop.
  for (const TilesLayout &layout : run.layouts)
    for (int blocks : {8, 4, 2, 1}) {
      if (blocks < 8 && layout.granule == MaxChunkBlocks)
        break;
      for (int first = 0; first < blocks; first += StageBlocks)
        TilePieces(layout,
                   {blocks, first, std::min(StageBlocks, blocks - first), 0})
            .requireOffsets(lanes);
    }
}

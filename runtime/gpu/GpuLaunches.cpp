#include "runtime/gpu/GpuLaunches.h"
#include "runtime/Checked.h"

#include <algorithm>
#include <limits>

namespace kvc {

int64_t roundPositions(int64_t positions) {
  int64_t rounded = 256;
  while (rounded < positions)
    rounded *= 2;
  return rounded;
}

GpuExtents::GpuExtents(const KvcBatch &batch)
    : Rows(batch.rows), Outputs(batch.outputs), Tiles(batch.tiles),
      Sequences(batch.sequences) {
  int32_t last = 0;
  for (int64_t row = 0; row != batch.rows; ++row)
    last = std::max(last, batch.positions[row]);
  Positions = roundPositions(int64_t(last) + 1);
}

int64_t GpuExtents::value(int32_t extent) const {
  switch (extent) {
  case KVC_ROWS:
    return Rows;
  case KVC_OUTPUTS:
    return Outputs;
  case KVC_TILES:
    return Tiles;
  case KVC_SEQUENCES:
    return Sequences;
  case KVC_POSITIONS:
    return Positions;
  default:
    return 1;
  }
}

static bool checkLaunch(const KvcLaunch &launch, const std::string &where,
                        std::string &error) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  return checkRanges(where + ":",
                     {{"id", launch.id, 0, most},
                      {"layer", launch.layer, 0, most},
                      {"threads", launch.threads, 1, 1024},
                      {"shared_bytes", launch.shared_bytes, 0, most},
                      {"extent[0]", launch.extent[0], KVC_FIXED, KVC_POSITIONS},
                      {"extent[1]", launch.extent[1], KVC_FIXED, KVC_POSITIONS},
                      {"extent[2]", launch.extent[2], KVC_FIXED, KVC_POSITIONS},
                      {"per[0]", launch.per[0], 1, most},
                      {"per[1]", launch.per[1], 1, 65535},
                      {"per[2]", launch.per[2], 1, 65535},
                      {"blocks_per_sm", launch.blocks_per_sm, 0, 64},
                      {"when", launch.when, KVC_FIXED, KVC_POSITIONS}},
                     error);
}

bool checkLaunches(const KvcDeviceCode &code, std::string &error) {
  struct List {
    const char *Name;
    const KvcLaunch *Launches;
    int64_t Count;
  };
  for (const List &list : {List{"prefill", code.prefill, code.prefill_count},
                           List{"decode", code.decode, code.decode_count},
                           List{"choose", code.choose, code.choose_count}}) {
    std::string name = std::string("the program's ") + list.Name + " launches";
    if (list.Count < 0 || (list.Count != 0 && !list.Launches)) {
      error = name + ": their count is " + std::to_string(list.Count);
      return false;
    }
    for (int64_t i = 0; i != list.Count; ++i) {
      const KvcLaunch &launch = list.Launches[i];
      std::string where = name + "[" + std::to_string(i) + "]";
      if (!launch.kernel || !*launch.kernel) {
        error = where + ": names no kernel";
        return false;
      }
      where += std::string(" (") + launch.kernel + ")";
      if (!checkLaunch(launch, where, error))
        return false;
    }
  }
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  if (!checkRanges("the program's device code:",
                   {{"ptx_bytes", code.ptx_bytes, 1, most},
                    {"cubin_bytes", code.cubin_bytes, 0, most},
                    {"stage_bytes", code.stage_bytes, 0, most},
                    {"partial_bytes", code.partial_bytes, 0, most},
                    {"split", code.split, 1, most},
                    {"counters_per_row", code.counters_per_row, 0, most}},
                   error))
    return false;
  if (code.ptx && code.chip && (code.cubin || code.cubin_bytes == 0))
    return true;
  error = "the program's device code has no text, chip or machine code";
  return false;
}

void resolveLaunches(const KvcLaunch *list, int64_t count,
                     const std::vector<int32_t> &kernels,
                     const GpuExtents &extents, int64_t processors,
                     std::vector<GpuLaunch> &launches) {
  for (int64_t i = 0; i != count; ++i) {
    const KvcLaunch &source = list[i];
    if (source.when != KVC_FIXED) {
      int64_t value = extents.value(source.when);
      if (value < source.at_least || value > source.at_most)
        continue;
    }
    GpuLaunch launch;
    launch.Source = &source;
    launch.Kernel = kernels[size_t(i)];
    bool empty = false;
    for (int axis = 0; axis != 3; ++axis) {
      int64_t blocks =
          source.extent[axis] == KVC_FIXED
              ? source.per[axis]
              : divideUp(extents.value(source.extent[axis]), source.per[axis]);
      if (axis == 0 && source.blocks_per_sm != 0)
        blocks = std::min(blocks, source.blocks_per_sm * processors);
      launch.Grid[axis] = uint32_t(blocks);
      empty |= blocks == 0;
    }
    // A step without outputs has nothing to do for the head.
    if (!empty)
      launches.push_back(launch);
  }
}

} // namespace kvc

// A step's numbers turn a launch list into grids.
#ifndef KVC_RUNTIME_GPU_GPULAUNCHES_H
#define KVC_RUNTIME_GPU_GPULAUNCHES_H

#include "runtime/gpu/GpuBackend.h"

namespace kvc {

/// The values of KvcExtent in one step.
struct GpuExtents {
  int64_t Rows = 0;
  int64_t Outputs = 0;
  int64_t Tiles = 0;
  int64_t Sequences = 0;
  int64_t Positions = 0; // rounded up

  explicit GpuExtents(const KvcBatch &batch);
  GpuExtents() = default;
  int64_t value(int32_t extent) const;
};

/// Lengths are rounded up to 256 * 2^n, so that a growing sequence meets few
/// different grids.
int64_t roundPositions(int64_t positions);

/// Refuses lists with impossible numbers, naming the entry.
bool checkLaunches(const KvcDeviceCode &code, std::string &error);

/// Appends the launches of this step. `kernels` are their handles, in the order
/// of the list.
void resolveLaunches(const KvcLaunch *list, int64_t count,
                     const std::vector<int32_t> &kernels,
                     const GpuExtents &extents, int64_t processors,
                     std::vector<GpuLaunch> &launches);

} // namespace kvc

#endif // KVC_RUNTIME_GPU_GPULAUNCHES_H

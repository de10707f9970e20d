// The fake program's kernels for a GPU, as functions of the host's: they read
// their parameters as PTX would, so that what a device hands to kernels is
// tested without any.
#ifndef KVC_TEST_UNIT_FAKEGPU_H
#define KVC_TEST_UNIT_FAKEGPU_H

#include "runtime/gpu/GpuBackend.h"

namespace kvc::fake {

/// Launch lists whose kernels are named below. `create` is left null.
KvcDeviceCode gpuCode();

/// The same kernels in PTX.
const std::string &gpuPtx();

/// The fake program with that code instead of its functions.
KvcProgramInfo gpuProgram(const KvcDeviceCode &code);

/// Runs one block of a kernel; false where no kernel has the name. Addresses
/// are the host's.
bool runBlock(const std::string &kernel, const GpuParameters &parameters,
              const uint32_t block[3], const uint32_t grid[3]);

} // namespace kvc::fake

#endif // KVC_TEST_UNIT_FAKEGPU_H

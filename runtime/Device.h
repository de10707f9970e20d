// Where programs run. A device owns all memory a program works on and runs
// whole steps; the engine above it owns sequences and batches and is the same
// for every device.
#ifndef KVC_RUNTIME_DEVICE_H
#define KVC_RUNTIME_DEVICE_H

#include "runtime/Abi.h"
#include "runtime/Plan.h"
#include "runtime/Profile.h"
#include "runtime/Sequences.h"

#include <cstdint>
#include <string>

namespace kvc {

/// The sizes a device reserves memory for, fixed before the first step.
struct DeviceLimits {
  int64_t Pages = 0;   // of the KV cache
  int64_t Rows = 0;    // most rows of a step
  int64_t Outputs = 0; // most outputs of a step
};

class Device : public PageStorage {
public:
  /// Takes a program and its weights, both of which outlive the device, and
  /// reserves everything that steps within `limits` need.
  virtual bool load(const KvcProgramInfo &program, const Plan &plan,
                    const uint8_t *weights, const DeviceLimits &limits,
                    std::string &error) = 0;
  /// Runs one step to its end. The batch stays within the limits.
  virtual void step(Phase phase, const KvcBatch &batch) = 0;
  /// Output i of the last step, readable by the host until the next step.
  virtual const float *logits(int64_t output) const = 0;
  virtual int workers() const = 0;
  virtual const Profile &profile() const = 0;
};

} // namespace kvc

#endif // KVC_RUNTIME_DEVICE_H

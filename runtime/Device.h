// Where programs run. A device owns all memory a program works on and runs
// whole steps; the engine above it owns sequences and batches and is the same
// for every device.
#ifndef KVC_RUNTIME_DEVICE_H
#define KVC_RUNTIME_DEVICE_H

#include "runtime/Abi.h"
#include "runtime/Plan.h"
#include "runtime/Profile.h"
#include "runtime/Sequences.h"
#include "runtime/Trace.h"

#include <cstdint>
#include <string>

namespace kvc {

/// The sizes a device reserves memory for, fixed before the first step.
struct DeviceLimits {
  int64_t Pages = 0;     // of the KV cache
  int64_t Rows = 0;      // most rows of a step
  int64_t Outputs = 0;   // most outputs of a step
  int64_t Sequences = 0; // most sequences of a step
  int64_t Tokens = 0;    // most tokens of a sequence
};

/// What a device tells about itself and its work, for reports.
struct DeviceFacts {
  std::string Kind = "cpu"; // as --device names it
  std::string Name;         // "NVIDIA H200"
  /// Time that steps took by the device's own clock, by phase; negative where
  /// it has none.
  int64_t StepNanoseconds[2] = {-1, -1};
  int64_t Steps[2] = {0, 0};
  std::string KernelsJson; // times by kernel where profiled, one JSON value
  std::string StepsJson;   // times by step where kept, one JSON value
  std::string MeterJson;   // what the interpreter counted, one JSON value
  std::string MeterTable;  // the same for people
};

class Device : public PageStorage {
public:
  /// Memory that a program's arenas may take in all; known before load().
  virtual int64_t memoryBytes() const = 0;
  /// Takes a program and its weights, both of which outlive the device, and
  /// reserves everything that steps within `limits` need. `weights` is null for
  /// a program with random ranges: the device makes them.
  virtual bool load(const KvcProgramInfo &program, const Plan &plan,
                    const uint8_t *weights, const DeviceLimits &limits,
                    std::string &error) = 0;
  /// Whether steps can choose tokens: `sampling` and chosen().
  virtual bool choosesTokens() const { return false; }
  /// Runs one step to its end. The batch stays within the limits. `sampling`
  /// has an entry an output where tokens are to be chosen, else it is null.
  virtual bool step(Phase phase, const KvcBatch &batch,
                    const KvcSampling *sampling, std::string &error) = 0;
  /// Output i of the last step, readable by the host until the next step. Null
  /// where the device fails to hand it over.
  virtual const float *logits(int64_t output, std::string &error) = 0;
  /// The token chosen for output i of the last step; negative where its logits
  /// admit none.
  virtual int32_t chosen(int64_t /*output*/) const { return -1; }
  /// A step of more sequences than this gains nothing: every weight is already
  /// read once for many rows.
  virtual int64_t maxSequences() const = 0;
  virtual int workers() const = 0;
  virtual const Profile &profile() const = 0;
  virtual DeviceFacts facts() const { return {}; }

  /// The kernels of coming steps are traced, while it is not null.
  void setTrace(Trace *trace) { Tracer = trace; }

protected:
  Trace *Tracer = nullptr;
};

} // namespace kvc

#endif // KVC_RUNTIME_DEVICE_H

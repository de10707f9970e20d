// The compiler's plan as a program carries it: names, stop ids and the cost of
// each kernel. The schema is in docs/RUNTIME.md.
#ifndef KVC_RUNTIME_PLAN_H
#define KVC_RUNTIME_PLAN_H

#include <cstdint>
#include <string>
#include <vector>

namespace kvc {

enum class Phase { Prefill, Decode };

inline const char *phaseName(Phase phase) {
  return phase == Phase::Prefill ? "prefill" : "decode";
}

/// A slot that a kernel writes: `Stride` bytes a row at `Offset` times the most
/// rows, or outputs, of a step; the first `Bytes` of them hold its values.
struct PlanWrite {
  enum class Arena { Rows, Outputs, Logits } In = Arena::Rows;
  enum class Element { F32, BF16, F16, Q8 } Of = Element::F32;
  int64_t Offset = 0;
  int64_t Stride = 0;
  int64_t Bytes = 0;
  int64_t Values = 0; // of a row
};

/// What one kernel costs a step, summed over its runs in that step.
struct PlanKernel {
  int64_t Id = 0; // what the program hands to kvc_barrier
  Phase In = Phase::Decode;
  std::string Name;
  int64_t Runs = 1;             // a step
  int64_t BytesFixed = 0;       // weights
  int64_t BytesPerRow = 0;      // activations, appended K and V
  int64_t BytesPerOutput = 0;   // for rows whose logits are wanted
  int64_t BytesPerPosition = 0; // K and V, for each position a row tile reads
  int64_t FlopsPerRow = 0;
  int64_t FlopsPerOutput = 0;
  int64_t FlopsPerPosition = 0; // for each position a row reads
  std::vector<PlanWrite> Writes;
};

/// A buffer of the workspace: `Bytes` a row at `Offset` times the most rows.
struct PlanSlot {
  enum class Arena { Rows, Outputs, Worker } In = Arena::Rows;
  int64_t Offset = 0;
  int64_t Bytes = 0;
};

struct PlanCache {
  int64_t Layers = 0;
  int64_t KvHeads = 0;
  int64_t HeadDim = 0;
  std::string Type;
  int64_t PageTokens = 0;
  int64_t Split = 0;
  int64_t PageBytes = 0;
};

struct Plan {
  std::string Model;
  std::string Activations;
  std::vector<int32_t> StopIds;
  int64_t MaxContext = 0;
  PlanCache Cache;
  std::vector<PlanKernel> Kernels;
  std::vector<PlanSlot> Slots;

  /// One more than the largest kernel number.
  int64_t kernelNumbers() const;
};

bool parsePlan(const char *json, Plan &plan, std::string &error);

} // namespace kvc

#endif // KVC_RUNTIME_PLAN_H

// What steps did and how long they took, by phase and kernel.
#ifndef KVC_RUNTIME_PROFILE_H
#define KVC_RUNTIME_PROFILE_H

#include "runtime/Plan.h"
#include "runtime/Team.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kvc {

struct PhaseProfile {
  int64_t Steps = 0;
  int64_t Rows = 0;
  int64_t Outputs = 0;
  int64_t TilePositions = 0; // positions read, summed over row tiles
  int64_t RowPositions = 0;  // positions read, summed over rows
  int64_t Nanoseconds = 0;   // inside steps
  std::vector<KernelTime> Kernels;

  /// Adds a step's numbers, not its time.
  void count(const KvcBatch &batch);
};

struct Profile {
  PhaseProfile Phases[2];
  PhaseProfile &operator[](Phase phase) { return Phases[int(phase)]; }
  const PhaseProfile &operator[](Phase phase) const {
    return Phases[int(phase)];
  }
};

/// Bytes that a kernel of the plan moves in a phase's steps.
double planBytes(const PlanKernel &kernel, const PhaseProfile &steps);

/// The table --profile prints: measured time beside the plan's bytes and FLOPs.
std::string formatProfile(const Plan &plan, const Profile &profile);

} // namespace kvc

#endif // KVC_RUNTIME_PROFILE_H

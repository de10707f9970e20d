#include "runtime/Profile.h"
#include "runtime/Format.h"

#include <algorithm>
#include <cstdio>

namespace kvc {

void PhaseProfile::count(const KvcBatch &batch) {
  ++Steps;
  Rows += batch.rows;
  Outputs += batch.outputs;
  for (int64_t i = 0; i != batch.tiles; ++i) {
    const KvcRowTile &tile = batch.row_tiles[i];
    TilePositions += batch.positions[tile.first_row + tile.rows - 1] + 1;
  }
  for (int64_t i = 0; i != batch.rows; ++i)
    RowPositions += batch.positions[i] + 1;
}

double planBytes(const PlanKernel &kernel, const PhaseProfile &steps) {
  return double(kernel.BytesFixed) * double(steps.Steps) +
         double(kernel.BytesPerRow) * double(steps.Rows) +
         double(kernel.BytesPerOutput) * double(steps.Outputs) +
         double(kernel.BytesPerPosition) * double(steps.TilePositions);
}

static void appendRow(std::string &text, const char *name, int64_t calls,
                      int64_t nanoseconds, int64_t phaseNanoseconds,
                      double bytes, double flops) {
  double seconds = double(nanoseconds) * 1e-9;
  double share = phaseNanoseconds == 0
                     ? 0
                     : 100.0 * double(nanoseconds) / double(phaseNanoseconds);
  text += formatText("  %-34.34s %9lld %11.3f %6.1f", name, (long long)calls,
                     seconds * 1e3, share);
  if (seconds > 0 && (bytes > 0 || flops > 0))
    text += formatText(" %10.1f %9.2f %10.1f %9.2f\n", bytes * 1e-6,
                       bytes / seconds * 1e-9, flops * 1e-6,
                       flops / seconds * 1e-9);
  else
    text += formatText(" %10s %9s %10s %9s\n", "-", "-", "-", "-");
}

static void appendPhase(std::string &text, const Plan &plan, Phase phase,
                        const PhaseProfile &profile) {
  text += formatText("%s: %lld steps, %lld rows, %lld outputs, %.3f ms\n",
                     phaseName(phase), (long long)profile.Steps,
                     (long long)profile.Rows, (long long)profile.Outputs,
                     double(profile.Nanoseconds) * 1e-6);
  text += formatText("  %-34s %9s %11s %6s %10s %9s %10s %9s\n", "kernel",
                     "calls", "ms", "%", "plan MB", "GB/s", "MFLOP", "GFLOP/s");
  int64_t charged = 0;
  double allBytes = 0;
  double allFlops = 0;
  for (const PlanKernel &kernel : plan.Kernels) {
    if (kernel.In != phase)
      continue;
    KernelTime time;
    if (size_t(kernel.Id) < profile.Kernels.size())
      time = profile.Kernels[size_t(kernel.Id)];
    double bytes = planBytes(kernel, profile);
    double flops =
        double(kernel.FlopsPerRow) * double(profile.Rows) +
        double(kernel.FlopsPerOutput) * double(profile.Outputs) +
        double(kernel.FlopsPerPosition) * double(profile.RowPositions);
    appendRow(text, kernel.Name.c_str(), time.Calls, time.Nanoseconds,
              profile.Nanoseconds, bytes, flops);
    charged += time.Nanoseconds;
    allBytes += bytes;
    allFlops += flops;
  }
  appendRow(text, "outside kernels", profile.Steps,
            std::max<int64_t>(0, profile.Nanoseconds - charged),
            profile.Nanoseconds, 0, 0);
  appendRow(text, "all", profile.Steps, profile.Nanoseconds,
            profile.Nanoseconds, allBytes, allFlops);
}

std::string formatProfile(const Plan &plan, const Profile &profile) {
  std::string text;
  for (Phase phase : {Phase::Prefill, Phase::Decode})
    if (profile[phase].Steps != 0)
      appendPhase(text, plan, phase, profile[phase]);
  return text;
}

} // namespace kvc

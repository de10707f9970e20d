// Tables of what the interpreter counted. Bytes of the plan count everything
// once; the interpreter's count each request, so what many blocks read (an
// activation) is in there once for each; "once" counts what a launch touches
// once, as if a cache kept the rest. Weights and KV are read once by both,
// and are compared by their allocation.
#include "runtime/Format.h"
#include "runtime/gpu/SimBackend.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

namespace kvc {

using Json = nlohmann::ordered_json;

/// Bytes that requests to global memory moved.
static uint64_t movedBytes(const sim::Meter &meter) {
  return (meter.LoadSectors + meter.StoreSectors) * 32;
}

/// What of it a cache that keeps everything for a launch would not serve.
static uint64_t distinctBytes(const sim::Meter &meter) {
  return (meter.DistinctLoadSectors + meter.DistinctStoreSectors) * 32;
}

/// The names of the kernels that do a plan's kernel's work.
static std::set<std::string> kernelsOf(const KvcDeviceCode &code,
                                       const PlanKernel &kernel) {
  bool decode = kernel.In == Phase::Decode;
  const KvcLaunch *launches = decode ? code.decode : code.prefill;
  int64_t count = decode ? code.decode_count : code.prefill_count;
  std::set<std::string> names;
  for (int64_t i = 0; i != count; ++i)
    if (launches[i].id == kernel.Id)
      names.insert(launches[i].kernel);
  return names;
}

static double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * double(part) / double(whole);
}

static double perSecond(const sim::Meter &meter) {
  return meter.Nanoseconds == 0
             ? 0
             : double(meter.WarpInstructions) * 1e9 / double(meter.Nanoseconds);
}

static sim::Meter sum(const std::map<std::string, sim::Meter> &meters,
                      const std::set<std::string> &names) {
  sim::Meter total;
  for (const std::string &name : names) {
    auto found = meters.find(name);
    if (found != meters.end())
      total.add(found->second);
  }
  return total;
}

static Json byAllocation(const std::map<std::string, uint64_t> &sectors) {
  Json bytes = Json::object();
  for (const auto &[name, count] : sectors)
    bytes[name] = count * 32;
  return bytes;
}

static Json toJson(const sim::Meter &meter) {
  return {
      {"launches", meter.Launches},
      {"ctas", meter.Ctas},
      {"warp_instructions", meter.WarpInstructions},
      {"load_bytes", meter.LoadBytes},
      {"store_bytes", meter.StoreBytes},
      {"load_sectors", meter.LoadSectors},
      {"store_sectors", meter.StoreSectors},
      {"distinct_bytes", distinctBytes(meter)},
      {"distinct_loaded_bytes_by_allocation",
       byAllocation(meter.DistinctLoads)},
      {"distinct_stored_bytes_by_allocation",
       byAllocation(meter.DistinctStores)},
      {"loads", meter.Loads},
      {"loads_128", meter.Loads128},
      {"stores", meter.Stores},
      {"shared_requests", meter.SharedRequests},
      {"shared_conflicts", meter.SharedConflicts},
      {"mma", meter.Mma},
      {"barriers", meter.Barriers},
      {"atomics", meter.Atomics},
      {"ns", meter.Nanoseconds},
      {"warp_instructions_per_s", perSecond(meter)},
      {"loaded_bytes_by_allocation", byAllocation(meter.SectorsByAllocation)}};
}

/// Lines of the PTX text that were executed: [first, last] of each run of
/// lines, in which lines without an instruction are left out.
static Json lines(const sim::Meter &meter) {
  Json runs = Json::array();
  uint32_t last = 0;
  for (const auto &[line, count] : meter.ByLine) {
    if (runs.empty() || line != last + 1)
      runs.push_back({line, line});
    else
      runs.back()[1] = line;
    last = line;
  }
  return runs;
}

std::string simMeterJson(const GpuMeterInput &input,
                         const std::map<std::string, sim::Meter> &meters) {
  Json kernels = Json::object();
  sim::Meter all;
  for (const auto &[name, meter] : meters) {
    kernels[name] = toJson(meter);
    kernels[name]["lines"] = lines(meter);
    all.add(meter);
  }
  Json plan = Json::array();
  for (const PlanKernel &kernel : input.Schedule.Kernels) {
    const PhaseProfile &steps = input.Steps[kernel.In];
    if (steps.Steps == 0)
      continue;
    sim::Meter meter = sum(meters, kernelsOf(input.Code, kernel));
    plan.push_back(
        {{"phase", phaseName(kernel.In)},
         {"kernel", kernel.Name},
         {"plan_bytes", planBytes(kernel, steps)},
         {"plan_fixed_bytes", double(kernel.BytesFixed) * double(steps.Steps)},
         {"moved_bytes", movedBytes(meter)},
         {"distinct_bytes", distinctBytes(meter)},
         {"weight_bytes_loaded", meter.SectorsByAllocation["weights"] * 32}});
  }
  return Json({{"all", toJson(all)}, {"plan", plan}, {"kernels", kernels}})
      .dump();
}

static void appendRow(std::string &text, const char *name,
                      const sim::Meter &meter, double plan) {
  char planned[32] = "-";
  if (plan >= 0)
    snprintf(planned, sizeof(planned), "%.3f", plan * 1e-6);
  text += formatText(
      "  %-34.34s %8llu %12llu %9.3f %9.3f %9.3f %9s %6.1f %9llu %9llu %8.2f\n",
      name, (unsigned long long)meter.Launches,
      (unsigned long long)meter.WarpInstructions,
      double(movedBytes(meter)) * 1e-6,
      double(meter.LoadBytes + meter.StoreBytes) * 1e-6,
      double(distinctBytes(meter)) * 1e-6, planned,
      share(meter.Loads128, meter.Loads), (unsigned long long)meter.Mma,
      (unsigned long long)meter.SharedConflicts, perSecond(meter) * 1e-6);
}

std::string simMeterTable(const GpuMeterInput &input,
                          const std::map<std::string, sim::Meter> &meters) {
  std::string text;
  text +=
      formatText("  %-34s %8s %12s %9s %9s %9s %9s %6s %9s %9s %8s\n", "kernel",
                 "launches", "warp instr", "moved MB", "asked MB", "once MB",
                 "plan MB", "128 %", "mma", "conflicts", "Minstr/s");
  std::set<std::string> listed;
  sim::Meter all;
  for (const PlanKernel &kernel : input.Schedule.Kernels) {
    const PhaseProfile &steps = input.Steps[kernel.In];
    if (steps.Steps == 0)
      continue;
    // The plan's bytes stand beside the first of a kernel's variants.
    double plan = planBytes(kernel, steps);
    for (const std::string &name : kernelsOf(input.Code, kernel)) {
      auto found = meters.find(name);
      if (found == meters.end() || !listed.insert(name).second)
        continue;
      appendRow(text, name.c_str(), found->second, plan);
      plan = -1;
    }
  }
  for (const auto &[name, meter] : meters) {
    all.add(meter);
    if (listed.insert(name).second)
      appendRow(text, name.c_str(), meter, -1);
  }
  appendRow(text, "all", all, -1);
  return text;
}

} // namespace kvc

//===- PlanTable.cpp - A plan for so many sequences and positions ---------===//
#include "codegen/emit/SchedulePlan.h"
#include "codegen/emit/TimeModel.h"

#include "llvm/Support/Format.h"

#include <nlohmann/json.hpp>

using namespace kvc;
using llvm::StringRef;

namespace {

/// How much one step does.
struct StepWork {
  double rows = 0;
  double outputs = 0;
  double tilePositions = 0; // positions that row tiles read
  double rowPositions = 0;  // positions that rows attend to
};

/// One kernel's or one phase's step. Real numbers: products of large requests
/// pass 2^63.
struct StepCost {
  double launches = 0;
  double weightBytes = 0;
  double valueBytes = 0;
  double kvBytes = 0;
  double flops = 0;
  double seconds = 0; // predicted

  double bytes() const { return weightBytes + valueBytes + kvBytes; }
  double intensity() const { return bytes() > 0 ? flops / bytes() : 0; }
  void add(const StepCost &other) {
    launches += other.launches;
    seconds += other.seconds;
    weightBytes += other.weightBytes;
    valueBytes += other.valueBytes;
    kvBytes += other.kvBytes;
    flops += other.flops;
  }
};

} // namespace

/// More rows than this run a GPU's prologues as kernels of their own.
static constexpr double MostStagedRows = 8;

static PlanRequest completed(const SchedulePlan &plan, PlanRequest request) {
  if (request.context == 0)
    request.context = plan.maxContext;
  request.prompt = std::min(request.prompt, request.context);
  return request;
}

static StepWork workOf(const SchedulePlan &plan, Phase phase,
                       const PlanRequest &request) {
  StepWork work;
  double batch = static_cast<double>(request.batch);
  if (phase == Phase::Decode) {
    work.rows = work.outputs = batch;
    work.tilePositions = work.rowPositions =
        batch * static_cast<double>(request.context);
    return work;
  }
  double prompt = static_cast<double>(request.prompt);
  work.rows = batch * prompt;
  work.outputs = batch;
  work.rowPositions = batch * prompt * (prompt + 1) / 2;
  for (int64_t row = 0; row < request.prompt; row += plan.tileRows)
    work.tilePositions +=
        batch *
        static_cast<double>(std::min(row + plan.tileRows, request.prompt));
  return work;
}

static StepCost costOf(const KernelCost &kernel, const StepWork &work,
                       const Gpu *gpu) {
  StepCost cost;
  // The head's prologue runs on output rows, every other on rows.
  double staged = kernel.bytesPerRow > 0 && kernel.flopsPerOutput > 0
                      ? work.outputs
                      : work.rows;
  cost.launches = static_cast<double>(kernel.runs) *
                  (kernel.staged && staged > MostStagedRows ? 2 : 1);
  cost.weightBytes = static_cast<double>(kernel.weightBytes);
  cost.valueBytes = static_cast<double>(kernel.bytesPerRow) * work.rows +
                    static_cast<double>(kernel.bytesPerOutput) * work.outputs;
  cost.kvBytes =
      static_cast<double>(kernel.kvBytesPerPosition) * work.tilePositions;
  cost.flops = static_cast<double>(kernel.flopsPerRow) * work.rows +
               static_cast<double>(kernel.flopsPerOutput) * work.outputs +
               static_cast<double>(kernel.flopsPerPosition) * work.rowPositions;
  if (gpu)
    cost.seconds =
        predictSeconds(*gpu, cost.launches, cost.bytes(), cost.flops);
  return cost;
}

/// What follows a step on a GPU: each output's token is chosen from its logits.
static StepCost chooseCost(const SchedulePlan &plan, const StepWork &work,
                           const Gpu &gpu) {
  StepCost cost;
  cost.launches = 1;
  cost.valueBytes = static_cast<double>(plan.vocab) * 4 * work.outputs;
  cost.seconds = predictSeconds(gpu, cost.launches, cost.bytes(), 0);
  return cost;
}

/// Bytes of the workspace for steps of `rows` rows and `outputs` outputs.
static double workspaceBytes(const SchedulePlan &plan, double rows,
                             double outputs, double workers) {
  return static_cast<double>(plan.rowsBytes) * rows +
         static_cast<double>(plan.outputsBytes) * outputs +
         static_cast<double>(plan.workerBytes) * rows * workers +
         static_cast<double>(plan.vocab) * 4 * outputs;
}

static double kvBytes(const SchedulePlan &plan, int64_t batch,
                      int64_t context) {
  return static_cast<double>(batch) * static_cast<double>(context) *
         static_cast<double>(plan.kvBytesPerToken);
}

/// 1234567 as "1,234,567".
static std::string grouped(double value) {
  std::string digits;
  llvm::raw_string_ostream(digits) << llvm::format("%.0f", value);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(at, ",");
  return digits;
}

static void printRow(llvm::raw_ostream &os, StringRef name, StringRef runs,
                     const StepCost &cost, const Gpu *gpu) {
  os << llvm::format(
      "  %-14s %5s %20s %18s %18s %22s %10.2f", name.str().c_str(),
      runs.str().c_str(), grouped(cost.weightBytes).c_str(),
      grouped(cost.valueBytes).c_str(), grouped(cost.kvBytes).c_str(),
      grouped(cost.flops).c_str(), cost.intensity());
  if (gpu)
    os << llvm::format(" %12.1f", cost.seconds * 1e6);
  os << "\n";
}

namespace {
/// A phase's kernels, in order, and their sum.
struct PhaseCost {
  std::vector<std::pair<std::string, StepCost>> kernels;
  std::vector<int64_t> runs;
  StepCost total;
};
} // namespace

static PhaseCost phaseCost(const SchedulePlan &plan, Phase phase,
                           const PlanRequest &request, const Gpu *gpu) {
  StepWork work = workOf(plan, phase, request);
  PhaseCost result;
  auto add = [&](const std::string &name, int64_t runs, const StepCost &cost) {
    result.kernels.push_back({name, cost});
    result.runs.push_back(runs);
    result.total.add(cost);
  };
  for (const KernelCost &kernel : plan.kernels)
    if (kernel.phase == phase)
      add(kernel.name, kernel.runs, costOf(kernel, work, gpu));
  if (gpu)
    add("choose", 1, chooseCost(plan, work, *gpu));
  return result;
}

static void printPhase(const SchedulePlan &plan, Phase phase,
                       const PlanRequest &request, const Gpu *gpu,
                       llvm::raw_ostream &os) {
  os << "\n"
     << (phase == Phase::Decode ? "decode: one token for each of "
                                : "prefill: a prompt for each of ")
     << grouped(static_cast<double>(request.batch))
     << (request.batch == 1 ? " sequence" : " sequences") << ", "
     << grouped(static_cast<double>(phase == Phase::Decode ? request.context
                                                           : request.prompt))
     << (phase == Phase::Decode ? " positions each\n" : " tokens each\n");
  os << llvm::format("  %-14s %5s %20s %18s %18s %22s %10s", "kernel", "runs",
                     "weight bytes", "value bytes", "KV bytes", "FLOPs",
                     "FLOPs/byte");
  if (gpu)
    os << llvm::format(" %12s", "predicted us");
  os << "\n";
  PhaseCost cost = phaseCost(plan, phase, request, gpu);
  for (auto [kernel, runs] : llvm::zip_equal(cost.kernels, cost.runs))
    printRow(os, kernel.first, std::to_string(runs), kernel.second, gpu);
  printRow(os, "total", "", cost.total, gpu);
}

/// Batches whose decode steps are compared.
static constexpr int64_t Batches[] = {1, 8, 64};

/// What to expect of the GPU: steps of several batches, and the constants.
static void printPrediction(const SchedulePlan &plan, PlanRequest request,
                            const Gpu &gpu, llvm::raw_ostream &os) {
  os << "\npredicted on " << gpu.name << ": the slower of bytes and FLOPs, and "
     << "the gaps between kernels\n";
  os << llvm::format("  memory  %.2f TB/s: %s\n",
                     gpu.bytesPerSecond.value / 1e12,
                     gpu.bytesPerSecond.source);
  os << llvm::format("  bf16    %.0f TFLOP/s: %s\n",
                     gpu.flopsPerSecond.value / 1e12,
                     gpu.flopsPerSecond.source);
  os << llvm::format("  gap     %.1f us: %s\n", gpu.launchGap.value * 1e6,
                     gpu.launchGap.source);
  for (int64_t batch : Batches) {
    request.batch = batch;
    StepCost step = phaseCost(plan, Phase::Decode, request, &gpu).total;
    os << llvm::format("  decode of %2d at %s positions: %10.1f us a step, "
                       "%10.1f tokens/s, %4.0f launches\n",
                       static_cast<int>(batch),
                       grouped(static_cast<double>(request.context)).c_str(),
                       step.seconds * 1e6,
                       static_cast<double>(batch) / step.seconds,
                       step.launches);
  }
  request.batch = 1;
  StepCost prompt = phaseCost(plan, Phase::Prefill, request, &gpu).total;
  os << llvm::format("  prefill of %s tokens: %10.1f us, %10.1f tokens/s, "
                     "%6.1f TFLOP/s\n",
                     grouped(static_cast<double>(request.prompt)).c_str(),
                     prompt.seconds * 1e6,
                     static_cast<double>(request.prompt) / prompt.seconds,
                     prompt.flops / prompt.seconds / 1e12);
}

void kvc::printPlan(const SchedulePlan &plan, PlanRequest request,
                    llvm::raw_ostream &os) {
  request = completed(plan, request);
  os << plan.model << ": " << plan.targetCpu << ", activations "
     << plan.activations << ", KV " << plan.kvType << "\n\n";
  os << "weights    " << grouped(static_cast<double>(plan.weightsBytes))
     << " bytes\n";
  os << "KV         " << grouped(static_cast<double>(plan.kvBytesPerToken))
     << " bytes a token (" << plan.layers << " layers x K and V x "
     << plan.kvHeads << " heads x " << plan.headDim << " x " << plan.kvType
     << "), pages of " << plan.page << " tokens\n";
  // The request's first; then one sequence at some lengths, to compare.
  std::vector<std::pair<int64_t, int64_t>> sizes = {
      {request.batch, request.context}};
  for (int64_t context : {int64_t(4096), plan.maxContext})
    if (context <= plan.maxContext &&
        !llvm::is_contained(sizes, std::make_pair(int64_t(1), context)))
      sizes.push_back({1, context});
  for (auto [batch, context] : sizes)
    os << "           " << grouped(kvBytes(plan, batch, context))
       << " bytes for " << grouped(static_cast<double>(batch))
       << (batch == 1 ? " sequence" : " sequences") << " of "
       << grouped(static_cast<double>(context)) << " tokens\n";
  StepWork prefill = workOf(plan, Phase::Prefill, request);
  os << "workspace  " << grouped(static_cast<double>(plan.rowsBytes))
     << " bytes a row, " << grouped(static_cast<double>(plan.outputsBytes))
     << " an output, " << grouped(static_cast<double>(plan.workerBytes))
     << " a row and worker; "
     << grouped(workspaceBytes(plan, prefill.rows, prefill.outputs, 1))
     << " bytes for the prefill below and one worker, logits included\n";
  const Gpu *gpu = findGpu(request.gpu);
  printPhase(plan, Phase::Prefill, request, gpu, os);
  printPhase(plan, Phase::Decode, request, gpu, os);
  if (gpu)
    printPrediction(plan, request, *gpu, os);
}

/// A whole number where it fits one.
static nlohmann::ordered_json number(double value) {
  if (value < 0x1p62)
    return static_cast<int64_t>(value);
  return value;
}

std::string kvc::requestJson(const SchedulePlan &plan, PlanRequest request) {
  using json = nlohmann::ordered_json;
  request = completed(plan, request);
  json root = json::parse(planJson(plan), nullptr, /*allow_exceptions=*/false);
  StepWork prefill = workOf(plan, Phase::Prefill, request);
  json spelled = {
      {"batch", request.batch},
      {"ctx", request.context},
      {"prompt", request.prompt},
      {"kv_bytes_per_token", plan.kvBytesPerToken},
      {"kv_bytes", number(kvBytes(plan, request.batch, request.context))},
      {"workspace_bytes",
       number(workspaceBytes(plan, prefill.rows, prefill.outputs, 1))}};
  const Gpu *gpu = findGpu(request.gpu);
  if (gpu) {
    auto constant = [](const GpuConstant &known) {
      return json{{"value", known.value}, {"source", known.source}};
    };
    spelled["gpu"] = {{"name", gpu->name},
                      {"bytes_per_second", constant(gpu->bytesPerSecond)},
                      {"flops_per_second", constant(gpu->flopsPerSecond)},
                      {"launch_gap_seconds", constant(gpu->launchGap)}};
  }
  auto entry = [&](StringRef name, const StepCost &cost) {
    json made = {{"name", name.str()},
                 {"weight_bytes", number(cost.weightBytes)},
                 {"value_bytes", number(cost.valueBytes)},
                 {"kv_bytes", number(cost.kvBytes)},
                 {"flops", number(cost.flops)},
                 {"flops_per_byte", cost.intensity()}};
    if (gpu) {
      made["launches"] = number(cost.launches);
      made["predicted_us"] = cost.seconds * 1e6;
    }
    return made;
  };
  for (Phase phase : {Phase::Prefill, Phase::Decode}) {
    PhaseCost cost = phaseCost(plan, phase, request, gpu);
    json kernels = json::array();
    for (const auto &[name, kernel] : cost.kernels)
      kernels.push_back(entry(name, kernel));
    spelled[stringifyPhase(phase).str()] = {
        {"kernels", kernels}, {"total", entry("total", cost.total)}};
  }
  root["request"] = std::move(spelled);
  return root.dump(2, ' ', /*ensure_ascii=*/true,
                   json::error_handler_t::replace);
}

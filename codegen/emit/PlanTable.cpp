//===- PlanTable.cpp - A plan for so many sequences and positions ---------===//
#include "codegen/emit/SchedulePlan.h"

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
  double weightBytes = 0;
  double valueBytes = 0;
  double kvBytes = 0;
  double flops = 0;

  double bytes() const { return weightBytes + valueBytes + kvBytes; }
  double intensity() const { return bytes() > 0 ? flops / bytes() : 0; }
  void add(const StepCost &other) {
    weightBytes += other.weightBytes;
    valueBytes += other.valueBytes;
    kvBytes += other.kvBytes;
    flops += other.flops;
  }
};

} // namespace

/// Rows of a prompt that read K and V together.
static constexpr int64_t TileRows = 16;

static PlanRequest completed(const SchedulePlan &plan, PlanRequest request) {
  if (request.context == 0)
    request.context = plan.maxContext;
  request.prompt = std::min(request.prompt, request.context);
  return request;
}

static StepWork workOf(Phase phase, const PlanRequest &request) {
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
  for (int64_t row = 0; row < request.prompt; row += TileRows)
    work.tilePositions +=
        batch * static_cast<double>(std::min(row + TileRows, request.prompt));
  return work;
}

static StepCost costOf(const KernelCost &kernel, const StepWork &work) {
  StepCost cost;
  cost.weightBytes = static_cast<double>(kernel.weightBytes);
  cost.valueBytes = static_cast<double>(kernel.bytesPerRow) * work.rows +
                    static_cast<double>(kernel.bytesPerOutput) * work.outputs;
  cost.kvBytes =
      static_cast<double>(kernel.kvBytesPerPosition) * work.tilePositions;
  cost.flops = static_cast<double>(kernel.flopsPerRow) * work.rows +
               static_cast<double>(kernel.flopsPerOutput) * work.outputs +
               static_cast<double>(kernel.flopsPerPosition) * work.rowPositions;
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
                     const StepCost &cost) {
  os << llvm::format(
      "  %-14s %5s %20s %18s %18s %22s %10.2f\n", name.str().c_str(),
      runs.str().c_str(), grouped(cost.weightBytes).c_str(),
      grouped(cost.valueBytes).c_str(), grouped(cost.kvBytes).c_str(),
      grouped(cost.flops).c_str(), cost.intensity());
}

static void printPhase(const SchedulePlan &plan, Phase phase,
                       const PlanRequest &request, llvm::raw_ostream &os) {
  StepWork work = workOf(phase, request);
  os << "\n"
     << (phase == Phase::Decode ? "decode: one token for each of "
                                : "prefill: a prompt for each of ")
     << grouped(static_cast<double>(request.batch))
     << (request.batch == 1 ? " sequence" : " sequences") << ", "
     << grouped(static_cast<double>(phase == Phase::Decode ? request.context
                                                           : request.prompt))
     << (phase == Phase::Decode ? " positions each\n" : " tokens each\n");
  os << llvm::format("  %-14s %5s %20s %18s %18s %22s %10s\n", "kernel", "runs",
                     "weight bytes", "value bytes", "KV bytes", "FLOPs",
                     "FLOPs/byte");
  StepCost total;
  for (const KernelCost &kernel : plan.kernels) {
    if (kernel.phase != phase)
      continue;
    StepCost cost = costOf(kernel, work);
    total.add(cost);
    printRow(os, kernel.name, std::to_string(kernel.runs), cost);
  }
  printRow(os, "total", "", total);
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
  StepWork prefill = workOf(Phase::Prefill, request);
  os << "workspace  " << grouped(static_cast<double>(plan.rowsBytes))
     << " bytes a row, " << grouped(static_cast<double>(plan.outputsBytes))
     << " an output, " << grouped(static_cast<double>(plan.workerBytes))
     << " a row and worker; "
     << grouped(workspaceBytes(plan, prefill.rows, prefill.outputs, 1))
     << " bytes for the prefill below and one worker, logits included\n";
  printPhase(plan, Phase::Prefill, request, os);
  printPhase(plan, Phase::Decode, request, os);
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
  StepWork prefill = workOf(Phase::Prefill, request);
  json spelled = {
      {"batch", request.batch},
      {"ctx", request.context},
      {"prompt", request.prompt},
      {"kv_bytes_per_token", plan.kvBytesPerToken},
      {"kv_bytes", number(kvBytes(plan, request.batch, request.context))},
      {"workspace_bytes",
       number(workspaceBytes(plan, prefill.rows, prefill.outputs, 1))}};
  for (Phase phase : {Phase::Prefill, Phase::Decode}) {
    StepWork work = workOf(phase, request);
    StepCost total;
    json kernels = json::array();
    auto entry = [](StringRef name, const StepCost &cost) {
      return json{{"name", name.str()},
                  {"weight_bytes", number(cost.weightBytes)},
                  {"value_bytes", number(cost.valueBytes)},
                  {"kv_bytes", number(cost.kvBytes)},
                  {"flops", number(cost.flops)},
                  {"flops_per_byte", cost.intensity()}};
    };
    for (const KernelCost &kernel : plan.kernels) {
      if (kernel.phase != phase)
        continue;
      StepCost cost = costOf(kernel, work);
      total.add(cost);
      kernels.push_back(entry(kernel.name, cost));
    }
    spelled[stringifyPhase(phase).str()] = {{"kernels", kernels},
                                            {"total", entry("total", total)}};
  }
  root["request"] = std::move(spelled);
  return root.dump(2, ' ', /*ensure_ascii=*/true,
                   json::error_handler_t::replace);
}

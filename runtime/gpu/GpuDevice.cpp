#include "runtime/gpu/GpuDevice.h"
#include "runtime/RandomWeights.h"
#include "runtime/gpu/GpuLaunches.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace kvc {

GpuBackend::~GpuBackend() = default;

/// What is made and sent at a time where weights are random.
static constexpr int64_t ChunkBytes = 64 << 20;

bool GpuDevice::load(const KvcProgramInfo &program, const Plan &plan,
                     const uint8_t *weights, const DeviceLimits &limits,
                     std::string &error) {
  Program = &program;
  Schedule = plan;
  Limits = limits;
  int64_t upload = 0;
  if (!checkLaunches(Code, error) || !checkRandomRanges(program, error) ||
      !Sizes.compute(program, limits, Backend->memoryBytes(), error))
    return false;
  for (Phase phase : {Phase::Prefill, Phase::Decode}) {
    bool decode = phase == Phase::Decode;
    GpuStepLayout &layout = Layouts[int(phase)];
    if (!layout.create(program, decode ? limits.Sequences : limits.Rows,
                       decode ? limits.Sequences : limits.Outputs,
                       limits.Sequences, Sizes.PagesStride, error))
      return false;
    upload = std::max(upload, layout.bytes());
  }
  if (!Backend->allocate("step", upload, /*readOnly=*/false, Upload, error))
    return false;
  Staging = Backend->hostMemory(upload, error);
  ChosenIds = Staging ? Backend->hostMemory(Sizes.Chosen, error) : nullptr;
  if (!ChosenIds || !allocate(error) || !prepareKernels(error) ||
      !placeWeights(weights, error))
    return false;
  // What no step has written must not look like tokens or pages.
  std::memset(Staging, 0xFF, size_t(upload));
  if (Options.Profile)
    for (PhaseProfile &phase : Times.Phases)
      phase.Kernels.resize(size_t(plan.kernelNumbers()));
  return true;
}

bool GpuDevice::allocate(std::string &error) {
  Parameters.MaxRows = Limits.Rows;
  Parameters.MaxOutputs = Limits.Outputs;
  Parameters.MaxSplits = Sizes.MaxSplits;
  struct Arena {
    const char *Name;
    int64_t Bytes;
    GpuAddress &Address;
  };
  for (const Arena &arena :
       {Arena{"rows", Sizes.Rows, Parameters.RowsArena},
        Arena{"outputs", Sizes.Outputs, Parameters.OutputsArena},
        Arena{"logits", Sizes.Logits, Parameters.Logits},
        Arena{"scratch", Sizes.Scratch, Parameters.Scratch},
        Arena{"counters", Sizes.Counters, Parameters.Counters},
        Arena{"chosen", Sizes.Chosen, Parameters.Chosen}})
    if (!Backend->allocate(arena.Name, std::max<int64_t>(arena.Bytes, 1),
                           /*readOnly=*/false, arena.Address, error))
      return false;
  // Kernels leave the counters as they find them.
  return Backend->fill(Parameters.Counters, 0,
                       std::max<int64_t>(Sizes.Counters, 1), error) &&
         Backend->reserve("kv", std::max<int64_t>(Sizes.Kv, 1), Parameters.Kv,
                          error);
}

bool GpuDevice::placeWeights(const uint8_t *weights, std::string &error) {
  int64_t bytes = Program->weights_bytes;
  if (Program->random_ranges == 0)
    return Backend->placeWeights(weights, bytes, Parameters.Weights, error);
  if (!Backend->allocate("weights", std::max<int64_t>(bytes, 1),
                         /*readOnly=*/true, Parameters.Weights, error))
    return false;
  int64_t chunk = std::min(bytes, ChunkBytes);
  uint8_t *memory = Backend->hostMemory(std::max<int64_t>(chunk, 1), error);
  if (!memory)
    return false;
  for (int64_t at = 0; at < bytes; at += chunk) {
    int64_t count = std::min(chunk, bytes - at);
    fillRandomWeights(*Program, at, count, memory);
    if (!Backend->write(Parameters.Weights + GpuAddress(at), memory, count,
                        error))
      return false;
  }
  return true;
}

bool GpuDevice::prepareKernels(std::string &error) {
  Lists[int(Phase::Prefill)] = {Code.prefill, Code.prefill_count, {}};
  Lists[int(Phase::Decode)] = {Code.decode, Code.decode_count, {}};
  Choose = {Code.choose, Code.choose_count, {}};
  for (LaunchList *list : {&Lists[0], &Lists[1], &Choose}) {
    list->Kernels.resize(size_t(list->Count));
    for (int64_t i = 0; i != list->Count; ++i)
      if (!Backend->prepareKernel(list->Launches[i], list->Kernels[size_t(i)],
                                  error))
        return false;
  }
  return true;
}

bool GpuDevice::poisonWorkspace(std::string &error) {
  struct Arena {
    GpuAddress Address;
    int64_t Bytes;
  };
  for (const Arena &arena : {Arena{Parameters.RowsArena, Sizes.Rows},
                             Arena{Parameters.OutputsArena, Sizes.Outputs},
                             Arena{Parameters.Logits, Sizes.Logits},
                             Arena{Parameters.Scratch, Sizes.Scratch},
                             Arena{Parameters.Chosen, Sizes.Chosen}}) {
    if (arena.Bytes == 0)
      continue;
    if (Options.Poison &&
        !Backend->fill(arena.Address, 0xFF, arena.Bytes, error))
      return false;
    Backend->forget(arena.Address, arena.Bytes);
  }
  return true;
}

bool GpuDevice::step(Phase phase, const KvcBatch &batch,
                     const KvcSampling *sampling, std::string &error) {
  if (!PageError.empty()) {
    error = PageError;
    return false;
  }
  std::chrono::steady_clock::time_point begin =
      std::chrono::steady_clock::now();
  LogitsHere = false;
  Outputs = batch.outputs;
  if (!poisonWorkspace(error))
    return false;
  const GpuStepLayout &layout = Layouts[int(phase)];
  if (Options.Poison)
    std::memset(Staging, 0xFF, size_t(layout.bytes()));

  GpuExtents extents(batch);
  bool chooses = sampling && choosesTokens() && batch.outputs != 0;
  Work.Phase = phaseName(phase);
  Work.Parameters = Parameters;
  layout.place(Upload, Work.Parameters);
  Work.UploadTo = Upload;
  Work.UploadFrom = Staging;
  Work.UploadBytes = layout.pack(batch, sampling, Staging);
  Work.Launches.clear();
  const LaunchList &list = Lists[int(phase)];
  resolveLaunches(list.Launches, list.Count, list.Kernels, extents,
                  Backend->processors(), Work.Launches);
  size_t choosing = Work.Launches.size();
  if (chooses)
    resolveLaunches(Choose.Launches, Choose.Count, Choose.Kernels, extents,
                    Backend->processors(), Work.Launches);
  Work.DownloadFrom = Parameters.Chosen;
  Work.DownloadTo = ChosenIds;
  Work.DownloadBytes = chooses ? batch.outputs * int64_t(sizeof(int32_t)) : 0;
  Work.Key.clear();
  Work.AfterLaunch = nullptr;
  if (Tracer)
    Work.AfterLaunch = [this, choosing](size_t launch, std::string &error) {
      return launch >= choosing || traceLaunch(launch, choosing, error);
    };
  if (phase == Phase::Decode && !Options.Profile && !Options.Synchronise &&
      !Tracer)
    Work.Key = {extents.Rows,  extents.Outputs,   extents.Sequences,
                extents.Tiles, extents.Positions, int64_t(chooses)};

  GpuTimes times;
  if (!Backend->run(Work, Options.Profile, times, error)) {
    error += std::string(" (a ") + Work.Phase + " step of " +
             std::to_string(batch.rows) + " rows)";
    return false;
  }
  if (Options.StepTimes)
    StepTimes.push_back({phase, batch.rows, times.StepNanoseconds, begin,
                         std::chrono::steady_clock::now()});
  Times[phase].count(batch);
  HasClock &= times.StepNanoseconds >= 0;
  StepNanoseconds[int(phase)] += times.StepNanoseconds;
  Times[phase].Nanoseconds += std::max<int64_t>(0, times.StepNanoseconds);
  if (Options.Profile)
    chargeTimes(phase, choosing, times);
  return true;
}

/// A kernel of the plan may be several launches: its last one is looked behind.
bool GpuDevice::traceLaunch(size_t launch, size_t end, std::string &error) {
  const KvcLaunch &source = *Work.Launches[launch].Source;
  if (launch + 1 != end) {
    const KvcLaunch &next = *Work.Launches[launch + 1].Source;
    if (next.id == source.id && next.layer == source.layer)
      return true;
  }
  return Tracer->afterKernel(
      source.id,
      [this](const PlanWrite &write, int64_t rows,
             std::string &error) -> const uint8_t * {
        GpuAddress from = Parameters.Logits;
        if (write.In == PlanWrite::Arena::Rows)
          from = Parameters.RowsArena + GpuAddress(write.Offset * Limits.Rows);
        else if (write.In == PlanWrite::Arena::Outputs)
          from = Parameters.OutputsArena +
                 GpuAddress(write.Offset * Limits.Outputs);
        // What lies between rows nobody wrote, and it is not to be read.
        Traced.resize(size_t(rows * write.Stride));
        for (int64_t at = 0; at != rows * write.Stride; at += write.Stride)
          if (!Backend->read(Traced.data() + at, from + GpuAddress(at),
                             write.Bytes, error))
            return nullptr;
        return Traced.data();
      },
      error);
}

void GpuDevice::chargeTimes(Phase phase, size_t choosing,
                            const GpuTimes &times) {
  for (size_t i = 0; i != times.LaunchNanoseconds.size(); ++i) {
    const KvcLaunch &launch = *Work.Launches[i].Source;
    KernelRecord &record = KernelTimes[int(phase)][launch.kernel];
    ++record.Calls;
    record.Nanoseconds += times.LaunchNanoseconds[i];
    std::vector<KernelTime> &kernels = Times[phase].Kernels;
    // Choosing tokens is no kernel of the plan's.
    if (i >= choosing || size_t(launch.id) >= kernels.size())
      continue;
    ++kernels[size_t(launch.id)].Calls;
    kernels[size_t(launch.id)].Nanoseconds += times.LaunchNanoseconds[i];
  }
}

const float *GpuDevice::logits(int64_t output, std::string &error) {
  if (!LogitsCopy) {
    LogitsCopy = Backend->hostMemory(Sizes.Logits, error);
    if (!LogitsCopy)
      return nullptr;
  }
  if (!LogitsHere) {
    int64_t bytes = Outputs * Program->vocab * int64_t(sizeof(float));
    if (!Backend->read(LogitsCopy, Parameters.Logits, bytes, error))
      return nullptr;
    LogitsHere = true;
  }
  return reinterpret_cast<const float *>(LogitsCopy) + output * Program->vocab;
}

int32_t GpuDevice::chosen(int64_t output) const {
  int32_t id;
  std::memcpy(&id, ChosenIds + output * int64_t(sizeof(id)), sizeof(id));
  return id;
}

bool GpuDevice::preparePage(int32_t page, std::string &error) {
  int64_t bytes = Program->page_bytes;
  if (bytes == 0)
    return true;
  if (!Backend->grow((page + int64_t(1)) * bytes, error))
    return false;
  GpuAddress address = Parameters.Kv + GpuAddress(page * bytes);
  if (Options.Poison && !Backend->fill(address, 0xFF, bytes, error))
    return false;
  Backend->forget(address, bytes);
  return true;
}

void GpuDevice::copyPage(int32_t from, int32_t to) {
  int64_t bytes = Program->page_bytes;
  std::string error;
  if (bytes != 0 &&
      !Backend->copy(Parameters.Kv + GpuAddress(to * bytes),
                     Parameters.Kv + GpuAddress(from * bytes), bytes, error))
    PageError = error;
}

void GpuDevice::retirePage(int32_t page) {
  int64_t bytes = Program->page_bytes;
  if (bytes != 0)
    Backend->forget(Parameters.Kv + GpuAddress(page * bytes), bytes);
}

std::string GpuDevice::kernelsJson() const {
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (Phase phase : {Phase::Prefill, Phase::Decode})
    for (const auto &[name, record] : KernelTimes[int(phase)])
      kernels.push_back({{"kernel", name},
                         {"phase", phaseName(phase)},
                         {"calls", record.Calls},
                         {"ns", record.Nanoseconds}});
  return kernels.dump();
}

/// The host's time of a step is that until the next one begins: what a token
/// takes in all.
std::string GpuDevice::stepsJson() const {
  using Microseconds = std::chrono::duration<double, std::micro>;
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (size_t i = 0; i != StepTimes.size(); ++i) {
    const StepRecord &record = StepTimes[i];
    auto end = i + 1 == StepTimes.size() ? record.End : StepTimes[i + 1].Begin;
    nlohmann::ordered_json step = {
        {"phase", phaseName(record.In)},
        {"rows", record.Rows},
        {"host_us", Microseconds(end - record.Begin).count()}};
    if (record.Nanoseconds >= 0)
      step["device_us"] = double(record.Nanoseconds) * 1e-3;
    steps.push_back(std::move(step));
  }
  return steps.dump();
}

DeviceFacts GpuDevice::facts() const {
  DeviceFacts facts;
  facts.Kind = Backend->kind();
  facts.Name = Backend->name();
  if (HasClock)
    std::copy_n(StepNanoseconds, 2, facts.StepNanoseconds);
  for (Phase phase : {Phase::Prefill, Phase::Decode})
    facts.Steps[int(phase)] = Times[phase].Steps;
  if (Options.Profile)
    facts.KernelsJson = kernelsJson();
  if (Options.StepTimes)
    facts.StepsJson = stepsJson();
  GpuMeterInput input{Code, Schedule, Times};
  facts.MeterJson = Backend->meterJson(input);
  facts.MeterTable = Backend->meterTable(input);
  return facts;
}

} // namespace kvc

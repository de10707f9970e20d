#include "runtime/gpu/CudaBackend.h"
#include "runtime/Checked.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

namespace kvc {

/// Graphs that are kept; a run of one batch needs a handful.
static constexpr size_t MaxGraphs = 256;
/// What KV memory grows by where the pages are smaller.
static constexpr int64_t GrowthBytes = 32 << 20;
/// Dynamic shared memory that every kernel may have unasked.
static constexpr int64_t PlainSharedBytes = 48 << 10;

int chipCapability(const std::string &chip, bool &exactly) {
  exactly = false;
  if (chip.compare(0, 3, "sm_") != 0)
    return 0;
  int number = 0;
  for (size_t i = 3; i != chip.size(); ++i) {
    if (std::isdigit((unsigned char)chip[i])) {
      if (i > 6)
        return 0;
      number = number * 10 + (chip[i] - '0');
    } else if (chip[i] == 'a' && i + 1 == chip.size()) {
      exactly = true;
    } else {
      return 0;
    }
  }
  return number;
}

static std::string capabilityName(int capability) {
  return std::to_string(capability / 10) + "." +
         std::to_string(capability % 10);
}

std::unique_ptr<GpuBackend> createCudaBackend(const KvcDeviceCode &code,
                                              const GpuOptions &options,
                                              std::string &error) {
  auto backend = std::make_unique<CudaBackend>(code, options);
  if (!backend->open(error))
    return nullptr;
  return backend;
}

CudaBackend::~CudaBackend() {
  // Memory, module and graphs go with the context.
  if (HasContext)
    Driver.ReleaseContext(Device);
}

bool CudaBackend::check(cuda::Result result, const std::string &what,
                        std::string &error) {
  if (result == cuda::Success)
    return true;
  error = "GPU " + std::to_string(Options.Gpu) + ": " + what + ": " +
          Driver.describe(result);
  return false;
}

bool CudaBackend::open(std::string &error) {
  return Driver.open(error) && openGpu(error) && checkChip(error) &&
         loadModule(error);
}

bool CudaBackend::openGpu(std::string &error) {
  int count = 0;
  if (!check(Driver.DeviceCount(&count), "cuDeviceGetCount", error))
    return false;
  if (Options.Gpu >= count) {
    error = "--gpu is " + std::to_string(Options.Gpu) +
            ", this machine has GPUs 0 to " + std::to_string(count - 1);
    return false;
  }
  char name[256] = "";
  int major = 0, minor = 0, processors = 0;
  if (!check(Driver.GetDevice(&Device, Options.Gpu), "cuDeviceGet", error) ||
      !check(Driver.DeviceName(name, sizeof(name), Device), "cuDeviceGetName",
             error))
    return false;
  struct Attribute {
    cuda::DeviceAttribute Which;
    int &Value;
  };
  for (const Attribute &attribute :
       {Attribute{cuda::CapabilityMajor, major},
        Attribute{cuda::CapabilityMinor, minor},
        Attribute{cuda::Multiprocessors, processors},
        Attribute{cuda::SharedBytesOptIn, SharedBytesMost}})
    if (!check(Driver.GetAttribute(&attribute.Value, attribute.Which, Device),
               "cuDeviceGetAttribute", error))
      return false;
  Name = name;
  Capability = major * 10 + minor;
  Processors = processors;
  return true;
}

bool CudaBackend::checkChip(std::string &error) {
  bool exactly;
  int wanted = chipCapability(Code.chip, exactly);
  if (wanted == 0) {
    error = std::string("the program was compiled for '") + Code.chip +
            "', which names no GPU chip";
    return false;
  }
  if (exactly ? Capability == wanted : Capability >= wanted)
    return true;
  error = "GPU " + std::to_string(Options.Gpu) + " (" + Name +
          ") has compute capability " + capabilityName(Capability) +
          ", the program was compiled for " + Code.chip + " and needs " +
          capabilityName(wanted) + (exactly ? "" : " or newer") +
          ": compile it with --chip=sm_" + std::to_string(Capability);
  return false;
}

// Machine code runs on its own chip's major version from its minor version on.
static bool cubinRuns(int chip, bool exactly, int capability) {
  return exactly ? chip == capability
                 : chip / 10 == capability / 10 && chip <= capability;
}

bool CudaBackend::loadModule(std::string &error) {
  cuda::Context context = nullptr;
  if (!check(Driver.RetainContext(&context, Device), "cuDevicePrimaryCtxRetain",
             error))
    return false;
  HasContext = true;
  size_t free = 0, total = 0;
  if (!check(Driver.SetContext(context), "cuCtxSetCurrent", error) ||
      !check(Driver.CreateStream(&Stream, cuda::StreamNonBlocking),
             "cuStreamCreate", error))
    return false;

  char log[8192] = "";
  cuda::JitOption options[] = {cuda::ErrorLog, cuda::ErrorLogBytes};
  // The driver takes the buffer's size in the bytes of a pointer.
  void *values[] = {log, nullptr};
  size_t logBytes = sizeof(log);
  std::memcpy(static_cast<void *>(&values[1]), &logBytes, sizeof(logBytes));
  bool exactly;
  int chip = chipCapability(Code.chip, exactly);
  cuda::Result result;
  if (Code.cubin && cubinRuns(chip, exactly, Capability))
    result = Driver.LoadModule(&Module, Code.cubin, 0, nullptr, nullptr);
  else
    result = Driver.LoadModule(&Module, Code.ptx, 2, options, values);
  if (result != cuda::Success) {
    log[sizeof(log) - 1] = 0;
    std::string text = log;
    std::replace(text.begin(), text.end(), '\n', ' ');
    return check(result,
                 "its driver cannot load the program's code for " +
                     std::string(Code.chip) +
                     (text.empty() ? "" : " (" + text + ")"),
                 error);
  }
  // What the module took is gone already.
  if (!check(Driver.MemoryInfo(&free, &total), "cuMemGetInfo", error))
    return false;
  FreeBytes = int64_t(free);
  return true;
}

bool CudaBackend::prepareKernel(const KvcLaunch &launch, int32_t &kernel,
                                std::string &error) {
  std::string name = launch.kernel;
  auto known = KernelNumbers.find(name);
  if (known == KernelNumbers.end()) {
    cuda::Function function = nullptr;
    if (!check(Driver.GetFunction(&function, Module, launch.kernel),
               "the program's code has no kernel " + name, error))
      return false;
    known = KernelNumbers.emplace(name, int32_t(Kernels.size())).first;
    Kernels.push_back({launch.kernel, function, PlainSharedBytes});
  }
  kernel = known->second;
  Kernel &entry = Kernels[size_t(kernel)];
  int threads = 0;
  if (!check(Driver.GetFunctionAttribute(&threads, cuda::FunctionMaxThreads,
                                         entry.Handle),
             "kernel " + name + ": cuFuncGetAttribute", error))
    return false;
  if (launch.threads > threads) {
    error = "kernel " + name + ": a block has " +
            std::to_string(launch.threads) + " threads, GPU " +
            std::to_string(Options.Gpu) + " runs it with at most " +
            std::to_string(threads);
    return false;
  }
  if (launch.shared_bytes <= entry.SharedBytes)
    return true;
  if (launch.shared_bytes > SharedBytesMost) {
    error = "kernel " + name + ": a block needs " +
            std::to_string(launch.shared_bytes) +
            " bytes of shared memory, GPU " + std::to_string(Options.Gpu) +
            " has at most " + std::to_string(SharedBytesMost);
    return false;
  }
  entry.SharedBytes = launch.shared_bytes;
  return check(
      Driver.SetFunctionAttribute(
          entry.Handle, cuda::FunctionDynamicSharedBytes, launch.shared_bytes),
      "kernel " + name + ": cuFuncSetAttribute of " +
          std::to_string(launch.shared_bytes) + " bytes of shared memory",
      error);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static std::string memoryName(const char *what, int64_t bytes) {
  return std::to_string(bytes) + " bytes for " + what;
}

bool CudaBackend::allocate(const char *what, int64_t bytes, bool /*readOnly*/,
                           GpuAddress &address, std::string &error) {
  cuda::Address memory = 0;
  if (!check(Driver.Allocate(&memory, size_t(bytes)),
             "cuMemAlloc of " + memoryName(what, bytes), error))
    return false;
  address = memory;
  return true;
}

bool CudaBackend::reserve(const char *what, int64_t bytes, GpuAddress &address,
                          std::string &error) {
  GrowingBytes = bytes;
  int supported = 0;
  size_t granularity = 0;
  cuda::AllocationProperties properties;
  properties.Location.Number = Device;
  if (!check(Driver.GetAttribute(&supported, cuda::VirtualMemory, Device),
             "cuDeviceGetAttribute", error))
    return false;
  if (!supported) {
    if (!allocate(what, bytes, /*readOnly=*/false, address, error))
      return false;
    GrowingBase = address;
    return true;
  }
  if (!check(Driver.Granularity(&granularity, &properties, /*minimum*/ 0),
             "cuMemGetAllocationGranularity", error))
    return false;
  Granularity = int64_t(granularity);
  GrowingBytes = divideUp(bytes, Granularity) * Granularity;
  cuda::Address base = 0;
  if (!check(Driver.ReserveAddresses(&base, size_t(GrowingBytes), 0, 0, 0),
             "cuMemAddressReserve of " + memoryName(what, GrowingBytes), error))
    return false;
  GrowingBase = address = base;
  return true;
}

bool CudaBackend::grow(int64_t bytes, std::string &error) {
  if (Granularity == 0 || bytes <= Mapped)
    return true;
  int64_t wanted = std::max(bytes - Mapped, GrowthBytes);
  wanted = divideUp(wanted, Granularity) * Granularity;
  wanted = std::min(wanted, GrowingBytes - Mapped);
  cuda::AllocationProperties properties;
  properties.Location.Number = Device;
  cuda::AccessDescription access;
  access.Location.Number = Device;
  cuda::AllocationHandle handle = 0;
  cuda::Address at = GrowingBase + GpuAddress(Mapped);
  std::string what = memoryName("KV pages", wanted);
  if (!check(Driver.CreateAllocation(&handle, size_t(wanted), &properties, 0),
             "cuMemCreate of " + what, error) ||
      !check(Driver.Map(at, size_t(wanted), 0, handle, 0),
             "cuMemMap of " + what, error) ||
      !check(Driver.SetAccess(at, size_t(wanted), &access, 1),
             "cuMemSetAccess of " + what, error))
    return false;
  Mapped += wanted;
  return true;
}

uint8_t *CudaBackend::hostMemory(int64_t bytes, std::string &error) {
  void *memory = nullptr;
  if (!check(
          Driver.AllocateHost(&memory, size_t(std::max<int64_t>(bytes, 1)), 0),
          "cuMemHostAlloc of " + memoryName("copies", bytes), error))
    return nullptr;
  return static_cast<uint8_t *>(memory);
}

bool CudaBackend::placeWeights(const uint8_t *weights, int64_t bytes,
                               GpuAddress &address, std::string &error) {
  return allocate("weights", std::max<int64_t>(bytes, 1), /*readOnly=*/true,
                  address, error) &&
         write(address, weights, bytes, error);
}

bool CudaBackend::write(GpuAddress to, const void *from, int64_t bytes,
                        std::string &error) {
  return check(Driver.CopyIn(to, from, size_t(bytes), Stream),
               "cuMemcpyHtoDAsync", error) &&
         check(Driver.Synchronize(Stream), "cuStreamSynchronize after a copy",
               error);
}

bool CudaBackend::read(void *to, GpuAddress from, int64_t bytes,
                       std::string &error) {
  return check(Driver.CopyOut(to, from, size_t(bytes), Stream),
               "cuMemcpyDtoHAsync", error) &&
         check(Driver.Synchronize(Stream), "cuStreamSynchronize after a copy",
               error);
}

bool CudaBackend::fill(GpuAddress to, uint8_t value, int64_t bytes,
                       std::string &error) {
  return check(Driver.Fill(to, value, size_t(bytes), Stream), "cuMemsetD8Async",
               error);
}

bool CudaBackend::copy(GpuAddress to, GpuAddress from, int64_t bytes,
                       std::string &error) {
  return check(Driver.CopyWithin(to, from, size_t(bytes), Stream),
               "cuMemcpyDtoDAsync of a KV page", error);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

bool CudaBackend::event(size_t index, cuda::Event &event, std::string &error) {
  while (Events.size() <= index) {
    Events.push_back(nullptr);
    if (!check(Driver.CreateEvent(&Events.back(), 0), "cuEventCreate", error))
      return false;
  }
  event = Events[index];
  return true;
}

bool CudaBackend::launch(const GpuWork &work, size_t index,
                         std::string &error) {
  const GpuLaunch &launch = work.Launches[index];
  const Kernel &kernel = Kernels[size_t(launch.Kernel)];
  GpuParameters values = work.Parameters;
  values.Layer = launch.Source->layer;
  void *parameters[GpuParameterCount];
  for (int i = 0; i != GpuParameterCount; ++i)
    parameters[i] = reinterpret_cast<uint8_t *>(&values) + i * 8;

  cuda::LaunchConfig config;
  std::copy_n(launch.Grid, 3, config.Grid);
  config.Block[0] = unsigned(launch.Source->threads);
  config.SharedBytes = unsigned(launch.Source->shared_bytes);
  config.On = Stream;
  // The first kernel comes after a copy, which it must not overtake.
  cuda::LaunchAttribute attribute;
  attribute.Value.Allowed = 1;
  if (Code.programmatic_launch && index != 0) {
    config.Attributes = &attribute;
    config.AttributeCount = 1;
  }
  auto where = [&] {
    return std::string("kernel ") + kernel.Name + " (layer " +
           std::to_string(values.Layer) + ")";
  };
  cuda::Result result =
      Driver.Launch(&config, kernel.Handle, parameters, nullptr);
  if (result != cuda::Success)
    return check(result,
                 where() + ": cuLaunchKernelEx of " +
                     std::to_string(launch.Grid[0]) + " x " +
                     std::to_string(launch.Grid[1]) + " x " +
                     std::to_string(launch.Grid[2]) + " blocks of " +
                     std::to_string(launch.Source->threads) + " threads",
                 error);
  if (!Options.Synchronise)
    return true;
  result = Driver.Synchronize(Stream);
  return result == cuda::Success || check(result, where(), error);
}

bool CudaBackend::enqueue(const GpuWork &work, bool timeLaunches,
                          std::string &error) {
  if (!check(Driver.CopyIn(work.UploadTo, work.UploadFrom,
                           size_t(work.UploadBytes), Stream),
             "cuMemcpyHtoDAsync of a step", error))
    return false;
  cuda::Event mark = nullptr;
  for (size_t i = 0; i != work.Launches.size(); ++i) {
    if (timeLaunches &&
        (!event(2 + i, mark, error) ||
         !check(Driver.RecordEvent(mark, Stream), "cuEventRecord", error)))
      return false;
    if (!launch(work, i, error) ||
        (work.AfterLaunch && !work.AfterLaunch(i, error)))
      return false;
  }
  if (timeLaunches &&
      (!event(2 + work.Launches.size(), mark, error) ||
       !check(Driver.RecordEvent(mark, Stream), "cuEventRecord", error)))
    return false;
  return work.DownloadBytes == 0 ||
         check(Driver.CopyOut(work.DownloadTo, work.DownloadFrom,
                              size_t(work.DownloadBytes), Stream),
               "cuMemcpyDtoHAsync of chosen tokens", error);
}

/// The work as a graph: made the first time, found again after.
bool CudaBackend::graphOf(const GpuWork &work, cuda::GraphExec &graph,
                          std::string &error) {
  auto known = Graphs.find(work.Key);
  if (known != Graphs.end()) {
    graph = known->second;
    return true;
  }
  if (Graphs.size() == MaxGraphs) {
    for (auto &[key, old] : Graphs)
      Driver.DestroyGraphExec(old);
    Graphs.clear();
  }
  cuda::Graph captured = nullptr;
  if (!check(Driver.BeginCapture(Stream, cuda::CaptureThreadLocal),
             "cuStreamBeginCapture", error))
    return false;
  bool enqueued = enqueue(work, /*timeLaunches=*/false, error);
  cuda::Result ended = Driver.EndCapture(Stream, &captured);
  if (!enqueued || !check(ended, "cuStreamEndCapture", error))
    return false;
  cuda::Result made = Driver.Instantiate(&graph, captured, 0);
  Driver.DestroyGraph(captured);
  if (!check(made, "cuGraphInstantiate", error))
    return false;
  Graphs.emplace(work.Key, graph);
  return true;
}

bool CudaBackend::finish(const GpuWork &work, std::string &error) {
  cuda::Result result = Driver.Synchronize(Stream);
  if (result == cuda::Success)
    return true;
  check(result, std::string("cuStreamSynchronize after ") + work.Phase, error);
  if (!Options.Synchronise)
    error += "; KVC_SYNC=1 names the kernel";
  return false;
}

bool CudaBackend::run(const GpuWork &work, bool timeLaunches, GpuTimes &times,
                      std::string &error) {
  cuda::Event start = nullptr, end = nullptr;
  cuda::GraphExec graph = nullptr;
  bool asGraph = !work.Key.empty() && !timeLaunches && !Options.Synchronise;
  if (!event(0, start, error) || !event(1, end, error) ||
      (asGraph && !graphOf(work, graph, error)) ||
      !check(Driver.RecordEvent(start, Stream), "cuEventRecord", error))
    return false;
  if (asGraph) {
    if (!check(Driver.LaunchGraph(graph, Stream), "cuGraphLaunch", error))
      return false;
  } else if (!enqueue(work, timeLaunches, error)) {
    return false;
  }
  if (!check(Driver.RecordEvent(end, Stream), "cuEventRecord", error) ||
      !finish(work, error))
    return false;

  auto between = [&](cuda::Event from, cuda::Event to, int64_t &nanoseconds) {
    float milliseconds = 0;
    if (!check(Driver.ElapsedTime(&milliseconds, from, to),
               "cuEventElapsedTime", error))
      return false;
    nanoseconds = std::llround(double(milliseconds) * 1e6);
    return true;
  };
  if (!between(start, end, times.StepNanoseconds))
    return false;
  if (!timeLaunches)
    return true;
  times.LaunchNanoseconds.resize(work.Launches.size());
  for (size_t i = 0; i != work.Launches.size(); ++i)
    if (!between(Events[2 + i], Events[3 + i], times.LaunchNanoseconds[i]))
      return false;
  return true;
}

} // namespace kvc

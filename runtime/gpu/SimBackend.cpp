#include "runtime/gpu/SimBackend.h"
#include "runtime/Arena.h"
#include "runtime/Cpu.h"
#include "runtime/Team.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <sstream>

namespace kvc {

/// Multiprocessors that launches are cut for: few enough that loops over tiles
/// run more than once even in small models.
static constexpr int64_t Processors = 1;
/// Dynamic shared memory of a block on the chips that there are.
static constexpr int64_t MostSharedBytes = 227 << 10;

std::unique_ptr<GpuBackend> createSimBackend(const KvcDeviceCode &code,
                                             const GpuOptions &options,
                                             std::string &error) {
  auto backend = std::make_unique<SimBackend>(code, options);
  if (!backend->open(error))
    return nullptr;
  return backend;
}

static bool readText(const std::string &path, std::string &text,
                     std::string &error) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  if (file)
    content << file.rdbuf();
  if (file && content) {
    text = content.str();
    return true;
  }
  error = path + ": cannot read: " + std::strerror(errno ? errno : EIO);
  return false;
}

bool SimBackend::open(std::string &error) {
  std::string_view text(Code.ptx, size_t(Code.ptx_bytes));
  if (!Options.PtxFile.empty()) {
    if (!readText(Options.PtxFile, Text, error))
      return false;
    text = Text;
  }
  Module = sim::Module::parse(text, error);
  if (Module)
    return true;
  error = (Options.PtxFile.empty() ? "the program's PTX" : Options.PtxFile) +
          ": " + error;
  return false;
}

std::string SimBackend::name() const {
  return "PTX interpreter on " + cpuName();
}

int64_t SimBackend::processors() const { return Processors; }

int64_t SimBackend::memoryBytes() const { return memoryLimitBytes(); }

bool SimBackend::prepareKernel(const KvcLaunch &launch, int32_t &kernel,
                               std::string &error) {
  std::string name = launch.kernel;
  const sim::KernelInfo *info = Module->find(name);
  if (!info) {
    error = "the program's PTX has no kernel " + name;
    return false;
  }
  if (info->ParameterBytes != GpuParameterBytes) {
    error = "kernel " + name + ": its parameters have " +
            std::to_string(info->ParameterBytes) + " bytes, they must have " +
            std::to_string(GpuParameterBytes);
    return false;
  }
  int64_t shared = int64_t(info->StaticShared) + launch.shared_bytes;
  if (shared > MostSharedBytes) {
    error = "kernel " + name + ": a block needs " + std::to_string(shared) +
            " bytes of shared memory, a GPU has at most " +
            std::to_string(MostSharedBytes);
    return false;
  }
  auto known = std::find(Kernels.begin(), Kernels.end(), name);
  kernel = int32_t(known - Kernels.begin());
  if (known == Kernels.end())
    Kernels.push_back(name);
  return true;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

bool SimBackend::allocate(const char *what, int64_t bytes, bool readOnly,
                          GpuAddress &address, std::string &error) {
  address = Machine.allocate(what, uint64_t(bytes), readOnly);
  if (address != 0)
    return true;
  error = "cannot allocate " + std::to_string(bytes) + " bytes for " + what;
  return false;
}

bool SimBackend::reserve(const char *what, int64_t bytes, GpuAddress &address,
                         std::string &error) {
  return allocate(what, bytes, /*readOnly=*/false, address, error);
}

uint8_t *SimBackend::hostMemory(int64_t bytes, std::string &error) {
  size_t size = size_t(std::max<int64_t>(bytes, 1));
  HostMemory.emplace_back(new (std::nothrow) uint8_t[size]);
  if (!HostMemory.back())
    error = "cannot allocate " + std::to_string(size) + " bytes for copies";
  return HostMemory.back().get();
}

bool SimBackend::placeWeights(const uint8_t *weights, int64_t bytes,
                              GpuAddress &address, std::string &error) {
  if (bytes == 0)
    return allocate("weights", 1, /*readOnly=*/true, address, error);
  address = Machine.adopt("weights", weights, uint64_t(bytes));
  if (address != 0)
    return true;
  error = "cannot map " + std::to_string(bytes) + " bytes of weights";
  return false;
}

static bool outside(GpuAddress at, int64_t bytes, std::string &error) {
  error = "a copy of " + std::to_string(bytes) + " bytes at " +
          std::to_string(at) + " leaves its allocation";
  return false;
}

bool SimBackend::write(GpuAddress to, const void *from, int64_t bytes,
                       std::string &error) {
  return bytes == 0 || Machine.write(to, from, uint64_t(bytes)) ||
         outside(to, bytes, error);
}

bool SimBackend::read(void *to, GpuAddress from, int64_t bytes,
                      std::string &error) {
  if (bytes == 0)
    return true;
  if (Options.SimChecks && !Machine.initialised(from, uint64_t(bytes))) {
    error = "the step left some of the " + std::to_string(bytes) +
            " bytes unwritten that are read from it";
    return false;
  }
  return Machine.read(from, to, uint64_t(bytes)) || outside(from, bytes, error);
}

bool SimBackend::fill(GpuAddress to, uint8_t value, int64_t bytes,
                      std::string &error) {
  return bytes == 0 || Machine.fill(to, value, uint64_t(bytes)) ||
         outside(to, bytes, error);
}

// Bytes that nobody has written stay so in the copy: a page is rarely full.
bool SimBackend::copy(GpuAddress to, GpuAddress from, int64_t bytes,
                      std::string &error) {
  constexpr int64_t whole = 64;
  uint8_t buffer[whole];
  for (int64_t at = 0; at < bytes;) {
    int64_t count = std::min(whole, bytes - at);
    if (!Machine.initialised(from + GpuAddress(at), uint64_t(count)))
      count = 1;
    bool written = Machine.initialised(from + GpuAddress(at), uint64_t(count));
    if (written &&
        (!Machine.read(from + GpuAddress(at), buffer, uint64_t(count)) ||
         !Machine.write(to + GpuAddress(at), buffer, uint64_t(count))))
      return outside(to, bytes, error);
    at += count;
  }
  return true;
}

void SimBackend::forget(GpuAddress at, int64_t bytes) {
  if (Options.SimChecks)
    Machine.poison(at, uint64_t(bytes));
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

bool SimBackend::run(const GpuWork &work, bool timeLaunches, GpuTimes &times,
                     std::string &error) {
  int64_t start = nowNanoseconds();
  if (!write(work.UploadTo, work.UploadFrom, work.UploadBytes, error))
    return false;
  if (timeLaunches)
    times.LaunchNanoseconds.resize(work.Launches.size());
  for (size_t i = 0; i != work.Launches.size(); ++i) {
    const GpuLaunch &launch = work.Launches[i];
    GpuParameters parameters = work.Parameters;
    parameters.Layer = launch.Source->layer;
    sim::LaunchConfig config;
    config.Grid = {launch.Grid[0], launch.Grid[1], launch.Grid[2]};
    config.Block = {uint32_t(launch.Source->threads), 1, 1};
    config.DynamicShared = uint32_t(launch.Source->shared_bytes);
    sim::LaunchOptions options;
    // A seed gives every launch an order of its own.
    options.Seed = Options.SimSeed == 0 ? 0 : Options.SimSeed + Launches;
    options.Checks = Options.SimChecks;
    options.Dependent = Code.programmatic_launch != 0;
    ++Launches;
    int64_t before = nowNanoseconds();
    if (!Machine.launch(*Module, Kernels[size_t(launch.Kernel)], config,
                        &parameters, uint64_t(GpuParameterBytes), options,
                        error))
      return false;
    if (timeLaunches)
      times.LaunchNanoseconds[i] = nowNanoseconds() - before;
    if (work.AfterLaunch && !work.AfterLaunch(i, error))
      return false;
  }
  if (work.DownloadBytes != 0 &&
      !read(work.DownloadTo, work.DownloadFrom, work.DownloadBytes, error))
    return false;
  times.StepNanoseconds = nowNanoseconds() - start;
  return true;
}

std::string SimBackend::meterJson(const GpuMeterInput &input) const {
  return Options.SimMeter ? simMeterJson(input, Machine.meters()) : "";
}

std::string SimBackend::meterTable(const GpuMeterInput &input) const {
  return Options.SimMeter ? simMeterTable(input, Machine.meters()) : "";
}

} // namespace kvc

// What GPU programs run on: memory, copies and launches, whether by the CUDA
// driver or by the PTX interpreter. Everything is done in the order it is asked
// for. Functions return false and set one line of `error`.
#ifndef KVC_RUNTIME_GPU_GPUBACKEND_H
#define KVC_RUNTIME_GPU_GPUBACKEND_H

#include "runtime/Abi.h"
#include "runtime/GpuOptions.h"
#include "runtime/Plan.h"
#include "runtime/Profile.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kvc {

using GpuAddress = uint64_t;

/// The parameters that every kernel has, as they lie in its parameter block.
struct GpuParameters {
  GpuAddress Weights;
  GpuAddress Kv;
  GpuAddress RowsArena;
  GpuAddress OutputsArena;
  GpuAddress Logits;
  GpuAddress Scratch;
  GpuAddress Counters;
  int64_t MaxRows;
  int64_t MaxOutputs;
  int64_t MaxSplits;
  GpuAddress Step;
  GpuAddress Tokens;
  GpuAddress Positions;
  GpuAddress RowSequence;
  GpuAddress OutputRows;
  GpuAddress RowTiles;
  GpuAddress Pages;
  int64_t PagesStride;
  GpuAddress Rope;
  GpuAddress Chosen;
  GpuAddress Sampling;
  int32_t Layer;
};

constexpr int GpuParameterCount = 22;
/// Without the padding that the struct has at its end.
constexpr int64_t GpuParameterBytes =
    offsetof(GpuParameters, Layer) + sizeof(int32_t);
static_assert(GpuParameterBytes == 172, "21 of 8 bytes, one of 4");

/// One launch, its grid resolved.
struct GpuLaunch {
  const KvcLaunch *Source = nullptr;
  int32_t Kernel = 0; // what prepareKernel returned
  uint32_t Grid[3] = {1, 1, 1};
};

/// A step as a backend runs it: one copy in, kernels, one copy out.
struct GpuWork {
  const char *Phase = "";
  GpuParameters Parameters = {}; // but for the layer
  GpuAddress UploadTo = 0;
  const uint8_t *UploadFrom = nullptr; // memory of hostMemory()
  int64_t UploadBytes = 0;
  std::vector<GpuLaunch> Launches;
  GpuAddress DownloadFrom = 0;
  uint8_t *DownloadTo = nullptr; // memory of hostMemory()
  int64_t DownloadBytes = 0;
  /// Work with the same key is the same work, but for the bytes copied. Empty:
  /// it is not worth remembering.
  std::vector<int64_t> Key;
  /// Called behind each launch, may read(); launches are then neither timed nor
  /// part of a graph. Null: nobody is.
  std::function<bool(size_t launch, std::string &error)> AfterLaunch;
};

struct GpuTimes {
  /// Of the whole step by the device's clock; negative where it has none.
  int64_t StepNanoseconds = -1;
  /// Of each launch, where they were asked for.
  std::vector<int64_t> LaunchNanoseconds;
};

/// What a meter is compared with.
struct GpuMeterInput {
  const KvcDeviceCode &Code;
  const Plan &Schedule;
  const Profile &Steps; // that were run, with their rows and positions
};

class GpuBackend {
public:
  virtual ~GpuBackend();

  virtual const char *kind() const = 0; // as --device names it
  virtual std::string name() const = 0;
  virtual int64_t processors() const = 0;
  /// Bytes that allocations may take in all.
  virtual int64_t memoryBytes() const = 0;

  /// The handle of a kernel that is about to be launched like this.
  virtual bool prepareKernel(const KvcLaunch &launch, int32_t &kernel,
                             std::string &error) = 0;

  /// Kernels write no memory that is read-only.
  virtual bool allocate(const char *what, int64_t bytes, bool readOnly,
                        GpuAddress &address, std::string &error) = 0;
  /// Address space for one region that grows beneath a fixed address.
  virtual bool reserve(const char *what, int64_t bytes, GpuAddress &address,
                       std::string &error) = 0;
  /// At least the region's first `bytes` bytes are usable from now on.
  virtual bool grow(int64_t bytes, std::string &error) = 0;
  /// Memory of the host's that copies of steps go through.
  virtual uint8_t *hostMemory(int64_t bytes, std::string &error) = 0;

  /// The weights arena, from the host's memory, which outlives the backend.
  virtual bool placeWeights(const uint8_t *weights, int64_t bytes,
                            GpuAddress &address, std::string &error) = 0;
  /// Copies that are done when they return.
  virtual bool write(GpuAddress to, const void *from, int64_t bytes,
                     std::string &error) = 0;
  virtual bool read(void *to, GpuAddress from, int64_t bytes,
                    std::string &error) = 0;
  /// In the order of steps, but perhaps later.
  virtual bool fill(GpuAddress to, uint8_t value, int64_t bytes,
                    std::string &error) = 0;
  virtual bool copy(GpuAddress to, GpuAddress from, int64_t bytes,
                    std::string &error) = 0;
  /// Nothing there is worth reading any more; a checking backend sees to it.
  virtual void forget(GpuAddress, int64_t /*bytes*/) {}

  /// Runs the work to its end.
  virtual bool run(const GpuWork &work, bool timeLaunches, GpuTimes &times,
                   std::string &error) = 0;

  /// What was counted, beside the plan's bytes; empty where nothing is.
  virtual std::string meterJson(const GpuMeterInput &) const { return ""; }
  virtual std::string meterTable(const GpuMeterInput &) const { return ""; }
};

/// A GPU by the CUDA driver's API, and the PTX interpreter. Null and one line
/// of error where they cannot run the code.
std::unique_ptr<GpuBackend> createCudaBackend(const KvcDeviceCode &code,
                                              const GpuOptions &options,
                                              std::string &error);
std::unique_ptr<GpuBackend> createSimBackend(const KvcDeviceCode &code,
                                             const GpuOptions &options,
                                             std::string &error);

} // namespace kvc

#endif // KVC_RUNTIME_GPU_GPUBACKEND_H

// What all GPUs share as a device: arenas, the step's upload, launch lists,
// pages, logits and chosen tokens. What differs is below, in GpuBackend.
#ifndef KVC_RUNTIME_GPU_GPUDEVICE_H
#define KVC_RUNTIME_GPU_GPUDEVICE_H

#include "runtime/Device.h"
#include "runtime/gpu/GpuBackend.h"
#include "runtime/gpu/GpuLayout.h"

#include <chrono>
#include <map>
#include <memory>

namespace kvc {

class GpuDevice : public Device {
public:
  GpuDevice(const KvcDeviceCode &code, std::unique_ptr<GpuBackend> backend,
            const GpuOptions &options)
      : Code(code), Backend(std::move(backend)), Options(options) {}

  bool load(const KvcProgramInfo &program, const Plan &plan,
            const uint8_t *weights, const DeviceLimits &limits,
            std::string &error) override;
  bool choosesTokens() const override { return Code.choose_count != 0; }
  bool step(Phase phase, const KvcBatch &batch, const KvcSampling *sampling,
            std::string &error) override;
  const float *logits(int64_t output, std::string &error) override;
  int32_t chosen(int64_t output) const override;
  int64_t memoryBytes() const override { return Backend->memoryBytes(); }
  int64_t maxSequences() const override { return 256; }
  int workers() const override { return 1; }
  const Profile &profile() const override { return Times; }
  DeviceFacts facts() const override;

  bool preparePage(int32_t page, std::string &error) override;
  void copyPage(int32_t from, int32_t to) override;
  void retirePage(int32_t page) override;

private:
  /// The launches of a phase, and their kernels' handles.
  struct LaunchList {
    const KvcLaunch *Launches = nullptr;
    int64_t Count = 0;
    std::vector<int32_t> Kernels;
  };
  struct KernelRecord {
    int64_t Calls = 0;
    int64_t Nanoseconds = 0;
  };
  struct StepRecord {
    Phase In;
    int64_t Rows;
    int64_t Nanoseconds; // by the device's clock
    std::chrono::steady_clock::time_point Begin, End;
  };
  bool allocate(std::string &error);
  bool placeWeights(const uint8_t *weights, std::string &error);
  bool prepareKernels(std::string &error);
  bool poisonWorkspace(std::string &error);
  bool traceLaunch(size_t launch, size_t end, std::string &error);
  void chargeTimes(Phase phase, size_t choosing, const GpuTimes &times);
  std::string kernelsJson() const;
  std::string stepsJson() const;

  const KvcDeviceCode &Code;
  std::unique_ptr<GpuBackend> Backend;
  GpuOptions Options;
  const KvcProgramInfo *Program = nullptr;
  DeviceLimits Limits;
  Plan Schedule;
  GpuSizes Sizes;
  GpuStepLayout Layouts[2]; // by phase
  GpuParameters Parameters = {};
  GpuAddress Upload = 0;
  uint8_t *Staging = nullptr;
  uint8_t *ChosenIds = nullptr;
  uint8_t *LogitsCopy = nullptr;
  LaunchList Lists[2];
  LaunchList Choose;
  GpuWork Work;
  std::vector<uint8_t> Traced;

  int64_t Outputs = 0; // of the last step
  bool LogitsHere = false;
  std::string PageError; // of copyPage, which cannot say so
  Profile Times;
  int64_t StepNanoseconds[2] = {0, 0};
  bool HasClock = true;
  std::map<std::string, KernelRecord> KernelTimes[2]; // by phase
  std::vector<StepRecord> StepTimes;
};

} // namespace kvc

#endif // KVC_RUNTIME_GPU_GPUDEVICE_H

// A GPU through the CUDA driver.
#ifndef KVC_RUNTIME_GPU_CUDABACKEND_H
#define KVC_RUNTIME_GPU_CUDABACKEND_H

#include "runtime/gpu/CudaDriver.h"
#include "runtime/gpu/GpuBackend.h"

#include <map>

namespace kvc {

class CudaBackend : public GpuBackend {
public:
  explicit CudaBackend(const KvcDeviceCode &code, const GpuOptions &options)
      : Code(code), Options(options) {}
  ~CudaBackend() override;

  bool open(std::string &error);

  const char *kind() const override { return "cuda"; }
  std::string name() const override { return Name; }
  int64_t processors() const override { return Processors; }
  int64_t memoryBytes() const override { return FreeBytes; }

  bool prepareKernel(const KvcLaunch &launch, int32_t &kernel,
                     std::string &error) override;
  bool allocate(const char *what, int64_t bytes, bool readOnly,
                GpuAddress &address, std::string &error) override;
  bool reserve(const char *what, int64_t bytes, GpuAddress &address,
               std::string &error) override;
  bool grow(int64_t bytes, std::string &error) override;
  uint8_t *hostMemory(int64_t bytes, std::string &error) override;
  bool placeWeights(const uint8_t *weights, int64_t bytes, GpuAddress &address,
                    std::string &error) override;
  bool write(GpuAddress to, const void *from, int64_t bytes,
             std::string &error) override;
  bool read(void *to, GpuAddress from, int64_t bytes,
            std::string &error) override;
  bool fill(GpuAddress to, uint8_t value, int64_t bytes,
            std::string &error) override;
  bool copy(GpuAddress to, GpuAddress from, int64_t bytes,
            std::string &error) override;
  bool run(const GpuWork &work, bool timeLaunches, GpuTimes &times,
           std::string &error) override;

private:
  struct Kernel {
    const char *Name;
    cuda::Function Handle;
    int64_t SharedBytes; // that it may have now
  };
  bool check(cuda::Result result, const std::string &what, std::string &error);
  bool openGpu(std::string &error);
  bool checkChip(std::string &error);
  bool loadModule(std::string &error);
  bool event(size_t index, cuda::Event &event, std::string &error);
  bool launch(const GpuWork &work, size_t index, std::string &error);
  bool enqueue(const GpuWork &work, bool timeLaunches, std::string &error);
  bool graphOf(const GpuWork &work, cuda::GraphExec &graph, std::string &error);
  bool finish(const GpuWork &work, std::string &error);

  const KvcDeviceCode &Code;
  GpuOptions Options;
  cuda::Driver Driver;
  cuda::DeviceNumber Device = 0;
  bool HasContext = false;
  int Capability = 0; // 90 for 9.0
  int SharedBytesMost = 0;
  int64_t Processors = 0;
  int64_t FreeBytes = 0;
  std::string Name;
  cuda::Module Module = nullptr;
  cuda::Stream Stream = nullptr;
  std::vector<Kernel> Kernels;
  std::map<std::string, int32_t> KernelNumbers;
  std::vector<cuda::Event> Events;
  std::map<std::vector<int64_t>, cuda::GraphExec> Graphs;

  // The region that grows.
  GpuAddress GrowingBase = 0;
  int64_t GrowingBytes = 0;
  int64_t Mapped = 0;
  int64_t Granularity = 0; // 0: it is all there
};

/// The oldest compute capability that runs code of a chip, and whether only
/// that one does: "sm_90a" is 90, true. 0 for what is no chip.
int chipCapability(const std::string &chip, bool &exactly);

} // namespace kvc

#endif // KVC_RUNTIME_GPU_CUDABACKEND_H

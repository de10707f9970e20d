// The PTX interpreter as a GPU.
#ifndef KVC_RUNTIME_GPU_SIMBACKEND_H
#define KVC_RUNTIME_GPU_SIMBACKEND_H

#include "runtime/gpu/GpuBackend.h"
#include "runtime/sim/Sim.h"

namespace kvc {

class SimBackend : public GpuBackend {
public:
  SimBackend(const KvcDeviceCode &code, const GpuOptions &options)
      : Code(code), Options(options), Machine(options.Threads) {}

  bool open(std::string &error);

  const char *kind() const override { return "sim"; }
  std::string name() const override;
  int64_t processors() const override;
  int64_t memoryBytes() const override;

  bool prepareKernel(const KvcLaunch &launch, int32_t &kernel,
                     std::string &error) override;
  bool allocate(const char *what, int64_t bytes, bool readOnly,
                GpuAddress &address, std::string &error) override;
  bool reserve(const char *what, int64_t bytes, GpuAddress &address,
               std::string &error) override;
  bool grow(int64_t, std::string &) override { return true; }
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
  void forget(GpuAddress at, int64_t bytes) override;
  bool run(const GpuWork &work, bool timeLaunches, GpuTimes &times,
           std::string &error) override;
  std::string meterJson(const GpuMeterInput &input) const override;
  std::string meterTable(const GpuMeterInput &input) const override;

private:
  const KvcDeviceCode &Code;
  GpuOptions Options;
  sim::Machine Machine;
  std::string Text; // of Options.PtxFile
  std::unique_ptr<sim::Module> Module;
  std::vector<std::string> Kernels;
  std::vector<std::unique_ptr<uint8_t[]>> HostMemory;
  uint64_t Launches = 0; // of this run: each has an order of its own
};

/// What the interpreter counted, by kernel, and its bytes beside the plan's.
std::string simMeterJson(const GpuMeterInput &input,
                         const std::map<std::string, sim::Meter> &meters);
std::string simMeterTable(const GpuMeterInput &input,
                          const std::map<std::string, sim::Meter> &meters);

} // namespace kvc

#endif // KVC_RUNTIME_GPU_SIMBACKEND_H

// The CPU as a device: one arena, one team of workers.
#ifndef KVC_RUNTIME_CPUDEVICE_H
#define KVC_RUNTIME_CPUDEVICE_H

#include "runtime/Arena.h"
#include "runtime/Device.h"
#include "runtime/Team.h"

#include <memory>

namespace kvc {

struct CpuOptions {
  int Workers = 0;      // 0: one for each physical core
  bool Poison = false;  // fill memory with 0xFF, a NaN in every float type,
                        // before a program may write it
  bool Profile = false; // time every kernel
};

class CpuDevice : public Device {
public:
  explicit CpuDevice(const CpuOptions &options) : Options(options) {}
  ~CpuDevice() override;

  bool load(const KvcProgramInfo &program, const Plan &plan,
            const uint8_t *weights, const DeviceLimits &limits,
            std::string &error) override;
  bool step(Phase phase, const KvcBatch &batch, const KvcSampling *sampling,
            std::string &error) override;
  const float *logits(int64_t output, std::string & /*error*/) override {
    return Arenas.logits + output * Program->vocab;
  }
  int64_t memoryBytes() const override { return memoryLimitBytes(); }
  int64_t maxSequences() const override { return 64; }
  int workers() const override { return Workers->workers(); }
  const Profile &profile() const override { return Times; }

  bool preparePage(int32_t page, std::string &error) override;
  void copyPage(int32_t from, int32_t to) override;
  void retirePage(int32_t page) override;

  /// A page's bytes, for tests.
  const uint8_t *page(int32_t page) const {
    return Arenas.kv + page * Program->page_bytes;
  }

private:
  enum Region : size_t {
    Kv,
    Rows,
    Outputs,
    Worker,
    Logits,
    Weights, // random ones
    RegionCount
  };
  bool traceStep(KvcStepFunction function, const KvcBatch &batch,
                 std::string &error);
  void poisonWorkspace();
  void guardWorkspace(const KvcBatch &batch);

  CpuOptions Options;
  const KvcProgramInfo *Program = nullptr;
  std::vector<PlanSlot> Slots;
  Arena Memory;
  KvcArenas Arenas = {};
  std::unique_ptr<Team> Workers;
  Profile Times;
};

} // namespace kvc

#endif // KVC_RUNTIME_CPUDEVICE_H

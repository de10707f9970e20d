// Runs the kernels of one scheduled module on the PTX interpreter, a launch
// list at a time, with arenas that a test fills and reads itself.
#ifndef KVC_TEST_UNIT_KERNELRUNNER_H
#define KVC_TEST_UNIT_KERNELRUNNER_H

#include "codegen/emit/Ptx.h"
#include "runtime/Abi.h"
#include "runtime/sim/Sim.h"

#include <memory>
#include <string>
#include <vector>

namespace kvc {

/// What KvcBatch holds, and what the kernels' parameters add to it.
struct TestBatch {
  int64_t sequences = 1;
  std::vector<int32_t> tokens, positions, rowSequence, outputRows;
  std::vector<KvcRowTile> tiles;
  std::vector<int32_t> pages; // [sequences][pagesStride]
  int64_t pagesStride = 1;
  std::vector<float> rope;
  std::vector<KvcSampling> sampling;

  /// Appends rows of one sequence at positions first .. first+count-1, and
  /// their tiles of at most `tileRows` rows.
  void addRows(int32_t sequence, int32_t first, int32_t count,
               int64_t tileRows);
};

class KernelRunner {
public:
  /// Null and an error where the module is refused.
  static std::unique_ptr<KernelRunner> create(const std::string &module,
                                              std::string &error);

  /// Device memory that stays until the runner goes; poisoned.
  uint64_t allocate(const char *name, uint64_t bytes);
  template <typename T>
  uint64_t upload(const char *name, const std::vector<T> &data) {
    uint64_t address = allocate(name, data.size() * sizeof(T) + 4);
    machine.write(address, data.data(), data.size() * sizeof(T));
    return address;
  }
  template <typename T>
  std::vector<T> download(uint64_t address, uint64_t count) {
    std::vector<T> data(count);
    if (!machine.read(address, data.data(), count * sizeof(T)))
      data.clear();
    return data;
  }

  /// Runs the launches; false and one line in `error` otherwise.
  bool run(const std::vector<nvptx::Launch> &launches, const TestBatch &batch,
           std::string &error);

  DeviceCode code;
  sim::Machine machine{2};
  sim::LaunchOptions options;
  // Addresses of the arenas; a test sets those that its kernels use.
  uint64_t weights = 0, kv = 0, rows = 0, outputs = 0, logits = 0, scratch = 0,
           counters = 0, chosen = 0;
  int64_t maxRows = 1, maxOutputs = 1, maxSplits = 1;

private:
  std::unique_ptr<sim::Module> parsed;
};

/// f32 to and from the bits of f16 or bf16, to nearest even.
uint16_t toBits(float value, bool bf16);
float fromBits(uint16_t bits, bool bf16);

} // namespace kvc

#endif // KVC_TEST_UNIT_KERNELRUNNER_H

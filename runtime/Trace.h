// What every kernel of a run wrote, row by row: the file of --trace, where two
// runs can be compared to find the first kernel whose bits differ.
// docs/RUNTIME.md has the schema.
#ifndef KVC_RUNTIME_TRACE_H
#define KVC_RUNTIME_TRACE_H

#include "runtime/Abi.h"
#include "runtime/Plan.h"
#include "runtime/WholeFile.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kvc {

class Trace {
public:
  /// Hands over what a kernel wrote, `write.Stride` bytes from row to row,
  /// valid until the next call; null with one line of error.
  using Reader = std::function<const uint8_t *(
      const PlanWrite &write, int64_t rows, std::string &error)>;

  /// The plan outlives the trace.
  Trace(std::string path, const Plan &plan)
      : File(std::move(path)), Schedule(plan) {}

  /// Refuses a program whose plan says nothing of what kernels write, or has
  /// them write outside of their arenas.
  bool open(const KvcProgramInfo &program, std::string &error);

  /// The kernels of one step follow. `requests` are the numbers, in the run, of
  /// the batch's sequences. The batch stays as it is until the next step.
  void beginStep(Phase phase, const KvcBatch &batch,
                 std::vector<int64_t> requests);
  /// Kernel `id` of the step's phase has run for the next of its layers.
  bool afterKernel(int64_t id, const Reader &read, std::string &error);

  /// Gives the file its name.
  bool finish(std::string &error) { return File.finish(error); }

private:
  bool addRows(const PlanKernel &kernel, int64_t layer, size_t write,
               const Reader &read, std::string &error);

  WholeFile File;
  const Plan &Schedule;
  int64_t Step = -1;
  Phase In = Phase::Prefill;
  const KvcBatch *Batch = nullptr;
  std::vector<int64_t> Requests;
  std::vector<int64_t> Layers; // next one, by kernel number
};

} // namespace kvc

#endif // KVC_RUNTIME_TRACE_H

// Where things lie in a GPU's memory: sizes of the arenas from the program's
// numbers and the limits, and the arrays of a step in its one upload.
#ifndef KVC_RUNTIME_GPU_GPULAYOUT_H
#define KVC_RUNTIME_GPU_GPULAYOUT_H

#include "runtime/Device.h"
#include "runtime/gpu/GpuBackend.h"

namespace kvc {

/// The arrays of a step, one behind the other. Those that are longest come
/// last, so that a copy of the first bytes is enough for a small step.
class GpuStepLayout {
public:
  /// False with an error where a size overflows.
  bool create(const KvcProgramInfo &program, int64_t rows, int64_t outputs,
              int64_t sequences, int64_t pagesStride, std::string &error);

  int64_t bytes() const { return End; }
  /// Points the parameters into the upload at `base`.
  void place(GpuAddress base, GpuParameters &parameters) const;
  /// Writes a step that fits and returns how many bytes are of use. `sampling`
  /// may be null.
  int64_t pack(const KvcBatch &batch, const KvcSampling *sampling,
               uint8_t *out) const;

private:
  int64_t PagesStride = 0;
  int64_t RopeFloats = 0;
  int64_t Sampling = 0; // the KvcGpuStep is at 0
  int64_t OutputRows = 0;
  int64_t Tokens = 0;
  int64_t Positions = 0;
  int64_t RowSequence = 0;
  int64_t RowTiles = 0;
  int64_t Pages = 0;
  int64_t Rope = 0;
  int64_t End = 0;
};

/// Bytes of everything that a program needs beside its weights.
struct GpuSizes {
  int64_t Kv = 0;
  int64_t Rows = 0;
  int64_t Outputs = 0;
  int64_t Logits = 0;
  int64_t Scratch = 0;
  int64_t Counters = 0;
  int64_t Chosen = 0;
  int64_t MaxSplits = 0;
  int64_t PagesStride = 0;
  int64_t Total = 0; // with the weights and `upload`

  /// False with an error where the sum overflows or is above `memory`.
  bool compute(const KvcProgramInfo &program, const DeviceLimits &limits,
               int64_t memory, std::string &error);
};

} // namespace kvc

#endif // KVC_RUNTIME_GPU_GPULAYOUT_H

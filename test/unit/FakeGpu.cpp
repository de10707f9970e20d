#include "FakeGpu.h"
#include "FakeProgram.h"

#include <cmath>
#include <cstring>

namespace kvc::fake {

static const char Ptx[] = "// no PTX: kernels are functions of the host's\n";

// A list for each way of cutting a grid: by rows, tiles, outputs, with a limit
// by processors, and with variants for few and many rows.
static const KvcLaunch Prefill[] = {
    {"append", 0, 5, 32, 0, {KVC_ROWS, 0, 0}, {1, 1, 1}, 0, 0, 0, 0},
    {"attention",
     1,
     5,
     64,
     60000,
     {0, KVC_TILES, 0},
     {1, 1, 1},
     0,
     KVC_ROWS,
     1,
     INT32_MAX},
    {"head", 2, 0, 32, 0, {KVC_OUTPUTS, 0, 0}, {1, 1, 1}, 2, 0, 0, 0},
};
static const KvcLaunch Decode[] = {
    {"append", 0, 5, 32, 0, {KVC_ROWS, 0, 0}, {2, 1, 1}, 0, 0, 0, 0},
    {"attention",
     1,
     5,
     64,
     60000,
     {0, 0, KVC_SEQUENCES},
     {1, 1, 1},
     0,
     KVC_POSITIONS,
     1,
     INT32_MAX},
    {"head", 2, 0, 32, 0, {KVC_OUTPUTS, 0, 0}, {1, 1, 1}, 1, KVC_ROWS, 1, 8},
    {"head_wide",
     2,
     0,
     32,
     0,
     {KVC_OUTPUTS, 0, 0},
     {4, 1, 1},
     0,
     KVC_ROWS,
     9,
     INT32_MAX},
};
static const KvcLaunch Choose[] = {
    {"choose", 0, 0, 32, 0, {KVC_OUTPUTS, 0, 0}, {1, 1, 1}, 0, 0, 0, 0}};

KvcDeviceCode gpuCode() {
  KvcDeviceCode code = {};
  code.chip = "sm_90";
  code.ptx = Ptx;
  code.ptx_bytes = sizeof(Ptx) - 1;
  code.prefill = Prefill;
  code.prefill_count = 3;
  code.decode = Decode;
  code.decode_count = 4;
  code.choose = Choose;
  code.choose_count = 1;
  code.partial_bytes = 16;
  code.stage_bytes = 64;
  code.split = 8;
  code.counters_per_row = 2;
  code.programmatic_launch = 1;
  return code;
}

KvcProgramInfo gpuProgram(const KvcDeviceCode &code) {
  KvcProgramInfo program = kvc_program;
  program.prefill = program.decode = nullptr;
  program.device_code = &code;
  return program;
}

namespace {
template <typename T> T *at(GpuAddress address, int64_t index = 0) {
  // Addresses are the host's. NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<T *>(address) + index;
}

struct Kernel {
  const GpuParameters &P;

  int32_t page(int64_t sequence, int64_t position) const {
    return at<int32_t>(
        P.Pages)[sequence * P.PagesStride + position / PageTokens];
  }
  uint8_t *entry(int64_t sequence, int64_t position) const {
    return at<uint8_t>(P.Kv) +
           (page(sequence, position) * PageTokens + position % PageTokens) *
               int64_t(sizeof(Entry));
  }
  uint64_t *slot(int64_t row) const {
    return at<uint64_t>(P.RowsArena + GpuAddress(row * RowSlot));
  }
  const KvcGpuStep &step() const { return *at<KvcGpuStep>(P.Step); }

  void append(int64_t row) const {
    // A layer that is not the list's gets other results.
    int32_t token = at<int32_t>(P.Tokens)[row] + (P.Layer - 5);
    Entry value = {token, at<float>(P.Rope)[row * 4 + 3]};
    std::memcpy(
        entry(at<int32_t>(P.RowSequence)[row], at<int32_t>(P.Positions)[row]),
        &value, sizeof(value));
  }
  void attend(int64_t tile) const {
    const KvcRowTile &rows = at<KvcRowTile>(P.RowTiles)[tile];
    for (int32_t row = rows.first_row; row != rows.first_row + rows.rows;
         ++row) {
      uint64_t state = FirstState;
      for (int32_t i = 0; i <= at<int32_t>(P.Positions)[row]; ++i) {
        Entry value;
        std::memcpy(&value, entry(rows.sequence, i), sizeof(value));
        state = mixEntry(state, value);
      }
      *slot(row) = state;
    }
  }
  void head(int64_t output) const {
    uint64_t state = *slot(at<int32_t>(P.OutputRows)[output]);
    for (int64_t id = 0; id != Vocab; ++id)
      at<float>(P.Logits)[output * Vocab + id] =
          logit(state, id, at<uint8_t>(P.Weights));
  }
  void choose(int64_t output) const {
    const KvcSampling &sampling = at<KvcSampling>(P.Sampling)[output];
    const float *logits = at<float>(P.Logits) + output * Vocab;
    int32_t best = 0;
    for (int32_t id = 0; id != sampling.tokens; ++id) {
      if (std::isnan(logits[id])) {
        best = -1;
        break;
      }
      if (logits[id] > logits[best])
        best = id;
    }
    at<int32_t>(P.Chosen)[output] = best;
  }
};
} // namespace

bool runBlock(const std::string &name, const GpuParameters &parameters,
              const uint32_t block[3], const uint32_t grid[3]) {
  Kernel kernel{parameters};
  const KvcGpuStep &step = kernel.step();
  if (name == "append") {
    // One or two rows a block.
    int64_t per = (step.rows + grid[0] - 1) / grid[0];
    for (int64_t row = block[0] * per;
         row < std::min(step.rows, (block[0] + 1) * per); ++row)
      kernel.append(row);
  } else if (name == "attention") {
    kernel.attend(std::max(block[1], block[2]));
  } else if (name == "head" || name == "head_wide") {
    for (int64_t output = block[0]; output < step.outputs; output += grid[0])
      kernel.head(output);
  } else if (name == "choose") {
    kernel.choose(block[0]);
  } else {
    return false;
  }
  return true;
}

} // namespace kvc::fake

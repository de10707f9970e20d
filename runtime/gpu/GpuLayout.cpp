#include "runtime/gpu/GpuLayout.h"
#include "runtime/Checked.h"

#include <algorithm>
#include <cstring>

namespace kvc {

/// Arrays start where an access of any width may.
static constexpr int64_t Alignment = 64;

bool GpuStepLayout::create(const KvcProgramInfo &program, int64_t rows,
                           int64_t outputs, int64_t sequences,
                           int64_t pagesStride, std::string &error) {
  PagesStride = pagesStride;
  RopeFloats = program.rope_floats;
  CheckedSize end(int64_t(sizeof(KvcGpuStep)));
  auto place = [&](int64_t &offset, CheckedSize count, int64_t bytes) {
    offset = divideUp(end.value(), Alignment) * Alignment;
    end = CheckedSize(offset) + count * bytes;
    return end.valid();
  };
  constexpr int64_t id = sizeof(int32_t);
  if (place(Sampling, outputs, sizeof(KvcSampling)) &&
      place(OutputRows, outputs, id) && place(Tokens, rows, id) &&
      place(Positions, rows, id) && place(RowSequence, rows, id) &&
      place(RowTiles, rows, sizeof(KvcRowTile)) &&
      place(Pages, CheckedSize(sequences) * pagesStride, id) &&
      place(Rope, CheckedSize(rows) * RopeFloats, sizeof(float))) {
    End = end.value();
    return true;
  }
  error = "the arrays of a step of " + std::to_string(rows) + " rows and " +
          std::to_string(sequences) + " sequences overflow 63 bits";
  return false;
}

void GpuStepLayout::place(GpuAddress base, GpuParameters &parameters) const {
  parameters.Step = base;
  parameters.Sampling = base + GpuAddress(Sampling);
  parameters.OutputRows = base + GpuAddress(OutputRows);
  parameters.Tokens = base + GpuAddress(Tokens);
  parameters.Positions = base + GpuAddress(Positions);
  parameters.RowSequence = base + GpuAddress(RowSequence);
  parameters.RowTiles = base + GpuAddress(RowTiles);
  parameters.Pages = base + GpuAddress(Pages);
  parameters.Rope = base + GpuAddress(Rope);
  parameters.PagesStride = PagesStride;
}

int64_t GpuStepLayout::pack(const KvcBatch &batch, const KvcSampling *sampling,
                            uint8_t *out) const {
  auto put = [&](int64_t offset, const void *from, int64_t count,
                 int64_t bytes) {
    if (count != 0)
      std::memcpy(out + offset, from, size_t(count * bytes));
  };
  KvcGpuStep step = {batch.rows, batch.sequences, batch.outputs, batch.tiles};
  constexpr int64_t id = sizeof(int32_t);
  put(0, &step, 1, sizeof(step));
  if (sampling)
    put(Sampling, sampling, batch.outputs, sizeof(KvcSampling));
  put(OutputRows, batch.output_rows, batch.outputs, id);
  put(Tokens, batch.tokens, batch.rows, id);
  put(Positions, batch.positions, batch.rows, id);
  put(RowSequence, batch.row_sequence, batch.rows, id);
  put(RowTiles, batch.row_tiles, batch.tiles, sizeof(KvcRowTile));
  // Entries past a sequence's end are no pages in the wider table either.
  int64_t listed = std::min(batch.pages_stride, PagesStride);
  for (int64_t i = 0; i != batch.sequences; ++i) {
    int64_t row = Pages + i * PagesStride * id;
    put(row, batch.pages + i * batch.pages_stride, listed, id);
    std::memset(out + row + listed * id, 0xFF,
                size_t((PagesStride - listed) * id));
  }
  put(Rope, batch.rope, batch.rows * RopeFloats, sizeof(float));
  return Rope + batch.rows * RopeFloats * int64_t(sizeof(float));
}

static CheckedSize largest(CheckedSize a, CheckedSize b) {
  return !a.valid() || (b.valid() && a.value() >= b.value()) ? a : b;
}

bool GpuSizes::compute(const KvcProgramInfo &program,
                       const DeviceLimits &limits, int64_t memory,
                       std::string &error) {
  const KvcDeviceCode &code = *program.device_code;
  MaxSplits = divideUp(limits.Tokens, code.split);
  PagesStride = divideUp(limits.Tokens, program.page_tokens);
  constexpr int64_t word = sizeof(int32_t);
  CheckedSize kv = CheckedSize(limits.Pages) * program.page_bytes;
  CheckedSize rows = CheckedSize(program.rows_bytes) * limits.Rows;
  CheckedSize outputs = CheckedSize(program.outputs_bytes) * limits.Outputs;
  CheckedSize logits = CheckedSize(program.vocab) * limits.Outputs * word;
  // Partial results are a decode step's: one row a sequence. Staged rows are
  // those of a decode step, or the outputs of any.
  CheckedSize scratch =
      largest(CheckedSize(code.partial_bytes) * MaxSplits * limits.Sequences,
              CheckedSize(code.stage_bytes) *
                  std::max(limits.Sequences, limits.Outputs));
  // A row's or an output's.
  CheckedSize counters = CheckedSize(code.counters_per_row) *
                         std::max(limits.Rows, limits.Outputs) * word;
  CheckedSize chosen = CheckedSize(limits.Outputs) * word;
  CheckedSize workspace = rows + outputs + logits + scratch + counters + chosen;
  CheckedSize total = kv + workspace + program.weights_bytes;
  if (!total.valid() || total.value() > memory) {
    auto print = [](CheckedSize size) {
      return size.valid() ? std::to_string(size.value())
                          : std::string("more than 2^63");
    };
    error = "this run needs " + std::to_string(program.weights_bytes) +
            " bytes of weights, " + print(kv) + " of KV cache (" +
            std::to_string(limits.Pages) + " pages) and " + print(workspace) +
            " of workspace, the device grants " + std::to_string(memory) +
            ": ask for fewer tokens or sequences, or a smaller "
            "--prefill-chunk";
    return false;
  }
  Kv = kv.value();
  Rows = rows.value();
  Outputs = outputs.value();
  Logits = logits.value();
  Scratch = scratch.value();
  Counters = counters.value();
  Chosen = chosen.value();
  Total = total.value();
  return true;
}

} // namespace kvc

#include "FakeProgram.h"
#include "runtime/Payload.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kvc::fake {

static const double InverseFrequencies[] = {1.0, 0.25};
constexpr double AngleScale = 1.5;

std::vector<uint8_t> weights() {
  std::vector<uint8_t> bytes(WeightsBytes);
  for (size_t i = 0; i != bytes.size(); ++i)
    bytes[i] = uint8_t(i * 131 + i / 256);
  return bytes;
}

static uint64_t mix(uint64_t state, uint64_t value) {
  state = (state ^ value) * 0x9E3779B97F4A7C15u;
  return state ^ (state >> 29);
}

uint64_t mixEntry(uint64_t state, const Entry &entry) {
  uint32_t bits;
  std::memcpy(&bits, &entry.Angle, sizeof(bits));
  return mix(mix(state, uint32_t(entry.Token)), bits);
}

float logit(uint64_t state, int64_t id, const uint8_t *weights) {
  uint64_t value = mix(state, uint64_t(id) * 251 + weights[id * 100]);
  return float(value >> 40) * 0x1p-20f - 8.0f;
}

std::vector<float> logits(const std::vector<int32_t> &tokens) {
  uint64_t state = FirstState;
  for (size_t i = 0; i != tokens.size(); ++i)
    state = mixEntry(
        state, {tokens[i], float(std::sin(double(i) * 0.25) * AngleScale)});
  std::vector<uint8_t> data = weights();
  std::vector<float> result;
  for (int64_t id = 0; id != Vocab; ++id)
    result.push_back(logit(state, id, data.data()));
  return result;
}

std::vector<int32_t> continuation(std::vector<int32_t> tokens, int64_t count,
                                  bool ignoreStop) {
  std::vector<int32_t> result;
  while (int64_t(result.size()) != count) {
    std::vector<float> values = logits(tokens);
    int32_t id = int32_t(std::max_element(values.begin(), values.end()) -
                         values.begin());
    tokens.push_back(id);
    result.push_back(id);
    if (id == StopId && !ignoreStop)
      break;
  }
  return result;
}

static void step(const KvcBatch *batch, const KvcArenas *arenas, void *team,
                 int64_t worker, int64_t workers) {
  auto entry = [&](int64_t sequence, int64_t position) {
    int32_t page =
        batch->pages[sequence * batch->pages_stride + position / PageTokens];
    return arenas->kv +
           (page * PageTokens + position % PageTokens) * int64_t(sizeof(Entry));
  };
  auto slot = [&](int64_t row) {
    return reinterpret_cast<uint64_t *>(arenas->rows_arena + row * RowSlot);
  };

  for (int64_t row = worker; row < batch->rows; row += workers) {
    Entry value = {batch->tokens[row], batch->rope[row * 4 + 3]};
    std::memcpy(entry(batch->row_sequence[row], batch->positions[row]), &value,
                sizeof(value));
  }
  kvc_barrier(team, worker, 0);

  for (int64_t i = worker; i < batch->tiles; i += workers) {
    const KvcRowTile &tile = batch->row_tiles[i];
    for (int32_t row = tile.first_row; row != tile.first_row + tile.rows;
         ++row) {
      uint64_t state = FirstState;
      for (int32_t position = 0; position <= batch->positions[row];
           ++position) {
        Entry value;
        std::memcpy(&value, entry(tile.sequence, position), sizeof(value));
        state = mixEntry(state, value);
      }
      *slot(row) = state;
    }
  }
  kvc_barrier(team, worker, 1);

  for (int64_t i = 0; i != batch->outputs; ++i)
    for (int64_t id = worker; id < Vocab; id += workers)
      arenas->logits[i * Vocab + id] =
          logit(*slot(batch->output_rows[i]), id, arenas->weights);
  kvc_barrier(team, worker, 2);
}

// Decode promises one row a sequence: a step that breaks it gets other logits.
static void decodeStep(const KvcBatch *batch, const KvcArenas *arenas,
                       void *team, int64_t worker, int64_t workers) {
  step(batch, arenas, team, worker, workers);
  if (batch->rows == batch->sequences && batch->tiles == batch->rows)
    return;
  for (int64_t i = worker; i < batch->outputs * Vocab; i += workers)
    arenas->logits[i] = -float(i);
}

static uint64_t weightsDigest() {
  std::vector<uint8_t> bytes = weights();
  PayloadHash hash;
  hash.update(bytes.data(), bytes.size());
  return hash.finish();
}

static const char *const PlanJson = R"({
  "model": "fake", "eos": [7], "max_context": 96, "activations": "f32",
  "kv_type": "f32",
  "kv": {"layers": 1, "kv_heads": 1, "head_dim": 2, "type": "f32", "page": 4,
         "split": 8, "page_bytes": 32},
  "kernels": [
    {"id": 0, "phase": "prefill", "name": "append", "bytes_per_row": 8},
    {"id": 1, "phase": "prefill", "name": "attention",
     "kv_bytes_per_position": 8, "flops_per_position": 2,
     "writes": [{"arena": "rows", "offset": 0, "stride": 64, "bytes": 8,
                 "element": "f32", "values": 2}]},
    {"id": 2, "phase": "prefill", "name": "head", "bytes_fixed": 5000,
     "bytes_per_output": 148, "flops_per_output": 74,
     "writes": [{"arena": "logits", "offset": 0, "stride": 148, "bytes": 148,
                 "element": "f32", "values": 37}]},
    {"id": 0, "phase": "decode", "name": "append", "bytes_per_row": 8},
    {"id": 1, "phase": "decode", "name": "attention",
     "kv_bytes_per_position": 8, "flops_per_position": 2,
     "writes": [{"arena": "rows", "offset": 0, "stride": 64, "bytes": 8,
                 "element": "f32", "values": 2}]},
    {"id": 2, "phase": "decode", "name": "head", "bytes_fixed": 5000,
     "bytes_per_output": 148, "flops_per_output": 74,
     "writes": [{"arena": "logits", "offset": 0, "stride": 148, "bytes": 148,
                 "element": "f32", "values": 37}]}],
  "slots": [{"arena": "rows", "offset": 0, "bytes": 64}]
})";

static const KvcRopeTable RopeTables[] = {{2, AngleScale, InverseFrequencies}};

} // namespace kvc::fake

using namespace kvc::fake;

const KvcProgramInfo kvc_program = {
    KVC_ABI_VERSION,
    sizeof(KvcBatch),
    sizeof(KvcArenas),
    sizeof(KvcProgramInfo),
    "x86-64",
    "sse2",
    PlanJson,
    step,
    decodeStep,
    WeightsBytes,
    weightsDigest(),
    PageTokens *int64_t(sizeof(Entry)),
    PageTokens,
    RowSlot,
    /*outputs_bytes=*/64,
    /*worker_bytes=*/64,
    /*attention_rows=*/3,
    Vocab,
    Context,
    /*rope_floats=*/4,
    /*rope_tables=*/1,
    RopeTables,
    /*device_code=*/nullptr,
    /*random_ranges=*/0,
    /*random_range=*/nullptr,
};

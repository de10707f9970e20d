#include "runtime/Trace.h"
#include "runtime/Payload.h"

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

namespace kvc {

static float decode(PlanWrite::Element element, const uint8_t *at) {
  uint32_t bits = 0;
  float value;
  if (element == PlanWrite::Element::F32) {
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  uint16_t half;
  std::memcpy(&half, at, sizeof(half));
  if (element == PlanWrite::Element::BF16) {
    bits = uint32_t(half) << 16;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  _Float16 number;
  std::memcpy(&number, &half, sizeof(number));
  return float(number);
}

/// Bytes that a value takes at least.
static int64_t elementBytes(PlanWrite::Element element) {
  switch (element) {
  case PlanWrite::Element::F32:
    return 4;
  case PlanWrite::Element::BF16:
  case PlanWrite::Element::F16:
    return 2;
  case PlanWrite::Element::Q8:
    break;
  }
  return 1;
}

/// The size of a row's finite values, so that runs whose bits differ anyway can
/// be compared, too.
static void addNumbers(const PlanWrite &write, const uint8_t *row,
                       nlohmann::ordered_json &record) {
  if (write.Of == PlanWrite::Element::Q8)
    return;
  int64_t size = elementBytes(write.Of);
  double squares = 0, largest = 0;
  int64_t strange = 0;
  for (int64_t i = 0; i != write.Values; ++i) {
    double value = double(decode(write.Of, row + i * size));
    if (!std::isfinite(value)) {
      ++strange;
      continue;
    }
    squares += value * value;
    largest = std::max(largest, std::fabs(value));
  }
  record["rms"] = std::sqrt(squares / double(write.Values));
  record["max"] = largest;
  record["not_finite"] = strange;
}

static std::string hashOf(const uint8_t *bytes, int64_t count) {
  PayloadHash hash;
  hash.update(bytes, uint64_t(count));
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx",
                static_cast<unsigned long long>(hash.finish()));
  return text;
}

/// The plan travels as text and is checked like any other input.
static bool checkWrites(const KvcProgramInfo &program, const Plan &plan,
                        std::string &error) {
  bool any = false;
  for (const PlanKernel &kernel : plan.Kernels)
    for (size_t i = 0; i != kernel.Writes.size(); ++i) {
      const PlanWrite &write = kernel.Writes[i];
      any = true;
      int64_t arena = write.In == PlanWrite::Arena::Rows ? program.rows_bytes
                      : write.In == PlanWrite::Arena::Outputs
                          ? program.outputs_bytes
                          : program.vocab * int64_t(sizeof(float));
      if (write.Values >= 1 &&
          write.Bytes / elementBytes(write.Of) >= write.Values &&
          write.Stride >= write.Bytes && write.Offset <= arena &&
          write.Stride <= arena - write.Offset)
        continue;
      error = "the program's plan: kernel " + kernel.Name + "'s writes[" +
              std::to_string(i) + "] has " + std::to_string(write.Values) +
              " values in " + std::to_string(write.Bytes) + " of " +
              std::to_string(write.Stride) + " bytes at " +
              std::to_string(write.Offset) + ", its arena has " +
              std::to_string(arena) + " a row";
      return false;
    }
  if (!any)
    error = "the program's plan does not say what its kernels write, --trace "
            "wants a program of this kvc";
  return any;
}

bool Trace::open(const KvcProgramInfo &program, std::string &error) {
  return checkWrites(program, Schedule, error) && File.open(error);
}

void Trace::beginStep(Phase phase, const KvcBatch &batch,
                      std::vector<int64_t> requests) {
  ++Step;
  In = phase;
  Batch = &batch;
  Requests = std::move(requests);
  Layers.assign(size_t(Schedule.kernelNumbers()), 0);
}

/// A phase's second kernel of the name norm is norm.1.
static std::string uniqueName(const Plan &plan, const PlanKernel &kernel) {
  int64_t before = 0;
  for (const PlanKernel &other : plan.Kernels) {
    if (&other == &kernel)
      break;
    before += other.In == kernel.In && other.Name == kernel.Name;
  }
  return before == 0 ? kernel.Name : kernel.Name + "." + std::to_string(before);
}

bool Trace::afterKernel(int64_t id, const Reader &read, std::string &error) {
  for (const PlanKernel &kernel : Schedule.Kernels) {
    if (kernel.In != In || kernel.Id != id)
      continue;
    int64_t layer = Layers[size_t(id)]++;
    for (size_t write = 0; write != kernel.Writes.size(); ++write)
      if (!addRows(kernel, layer, write, read, error))
        return false;
    return true;
  }
  error = "--trace: kernel " + std::to_string(id) + " is not in the plan";
  return false;
}

bool Trace::addRows(const PlanKernel &kernel, int64_t layer, size_t index,
                    const Reader &read, std::string &error) {
  const PlanWrite &write = kernel.Writes[index];
  bool outputs = write.In != PlanWrite::Arena::Rows;
  int64_t rows = outputs ? Batch->outputs : Batch->rows;
  if (rows == 0)
    return true;
  const uint8_t *bytes = read(write, rows, error);
  if (!bytes)
    return false;
  std::string name = uniqueName(Schedule, kernel);
  for (int64_t i = 0; i != rows; ++i) {
    int64_t row = outputs ? Batch->output_rows[i] : i;
    const uint8_t *values = bytes + i * write.Stride;
    nlohmann::ordered_json record = {
        {"step", Step},
        {"phase", phaseName(In)},
        {"kernel", name},
        {"layer", layer},
        {"write", index},
        {"sequence", Requests[size_t(Batch->row_sequence[row])]},
        {"position", Batch->positions[row]},
        {"values", write.Values},
        {"hash", hashOf(values, write.Bytes)}};
    addNumbers(write, values, record);
    std::string line = record.dump() + "\n";
    if (!File.write(line.data(), line.size(), error))
      return false;
  }
  return true;
}

} // namespace kvc

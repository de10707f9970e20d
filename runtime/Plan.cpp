#include "runtime/Plan.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace kvc {

using nlohmann::json;

// Kernel numbers index the profile, so they are not to be taken on trust.
static constexpr int64_t MaxKernelNumber = 1 << 16;

namespace {
// Reads fields of one object; a field may be absent, but not of another type.
class Fields {
public:
  Fields(const json &object, std::string where, std::string &error)
      : Object(object), Where(std::move(where)), Error(error) {
    if (!Object.is_object())
      fail("", "must be an object");
  }

  void read(const char *key, int64_t &value,
            int64_t most = std::numeric_limits<int64_t>::max()) {
    const json *field = find(key);
    if (!field)
      return;
    bool fits = field->is_number_integer() &&
                !(field->is_number_unsigned() &&
                  field->get<uint64_t>() > uint64_t(most)) &&
                field->get<int64_t>() >= 0 && field->get<int64_t>() <= most;
    if (!fits)
      return fail(key, "is " + field->dump() +
                           ", it must be an integer of 0 to " +
                           std::to_string(most));
    value = field->get<int64_t>();
  }

  void read(const char *key, std::string &value) {
    const json *field = find(key);
    if (!field)
      return;
    if (!field->is_string())
      return fail(key, "is " + field->dump() + ", it must be a string");
    value = field->get<std::string>();
  }

  const json *array(const char *key) {
    const json *field = find(key);
    if (field && !field->is_array()) {
      fail(key, "must be an array");
      return nullptr;
    }
    return field;
  }

  void fail(const std::string &key, const std::string &rule) {
    if (Error.empty())
      Error = "the program's plan: " + Where + key + " " + rule;
  }

private:
  const json *find(const char *key) {
    if (!Error.empty())
      return nullptr;
    auto field = Object.find(key);
    return field == Object.end() || field->is_null() ? nullptr : &*field;
  }

  const json &Object;
  std::string Where;
  std::string &Error;
};
} // namespace

static PlanWrite readWrite(const json &object, const std::string &where,
                           std::string &error) {
  PlanWrite write;
  Fields fields(object, where, error);
  std::string arena = "rows";
  std::string element = "f32";
  fields.read("arena", arena);
  fields.read("offset", write.Offset);
  fields.read("stride", write.Stride);
  fields.read("bytes", write.Bytes);
  fields.read("values", write.Values);
  fields.read("element", element);
  if (arena == "outputs")
    write.In = PlanWrite::Arena::Outputs;
  else if (arena == "logits")
    write.In = PlanWrite::Arena::Logits;
  else if (arena != "rows")
    fields.fail("arena",
                "is '" + arena + "', it must be rows, outputs or logits");
  if (element == "bf16")
    write.Of = PlanWrite::Element::BF16;
  else if (element == "f16")
    write.Of = PlanWrite::Element::F16;
  else if (element == "q8")
    write.Of = PlanWrite::Element::Q8;
  else if (element != "f32")
    fields.fail("element",
                "is '" + element + "', it must be f32, bf16, f16 or q8");
  return write;
}

static PlanKernel readKernel(const json &object, size_t index,
                             std::string &error) {
  PlanKernel kernel;
  std::string where = "kernels[" + std::to_string(index) + "].";
  Fields fields(object, where, error);
  std::string phase = "decode";
  fields.read("id", kernel.Id, MaxKernelNumber);
  fields.read("phase", phase);
  fields.read("name", kernel.Name);
  fields.read("layers", kernel.Runs);
  fields.read("bytes_fixed", kernel.BytesFixed);
  fields.read("bytes_per_row", kernel.BytesPerRow);
  fields.read("bytes_per_output", kernel.BytesPerOutput);
  fields.read("kv_bytes_per_position", kernel.BytesPerPosition);
  fields.read("flops_per_row", kernel.FlopsPerRow);
  fields.read("flops_per_output", kernel.FlopsPerOutput);
  fields.read("flops_per_position", kernel.FlopsPerPosition);
  if (const json *writes = fields.array("writes"))
    for (const json &write : *writes)
      kernel.Writes.push_back(readWrite(
          write,
          where + "writes[" + std::to_string(kernel.Writes.size()) + "].",
          error));
  if (phase == "prefill")
    kernel.In = Phase::Prefill;
  else if (phase != "decode")
    fields.fail("phase", "is '" + phase + "', it must be prefill or decode");
  return kernel;
}

static PlanSlot readSlot(const json &object, size_t index, std::string &error) {
  PlanSlot slot;
  Fields fields(object, "slots[" + std::to_string(index) + "].", error);
  std::string arena = "rows";
  fields.read("arena", arena);
  fields.read("offset", slot.Offset);
  fields.read("bytes", slot.Bytes);
  if (arena == "outputs")
    slot.In = PlanSlot::Arena::Outputs;
  else if (arena == "worker")
    slot.In = PlanSlot::Arena::Worker;
  else if (arena != "rows")
    fields.fail("arena",
                "is '" + arena + "', it must be rows, outputs or worker");
  return slot;
}

int64_t Plan::kernelNumbers() const {
  int64_t count = 0;
  for (const PlanKernel &kernel : Kernels)
    count = std::max(count, kernel.Id + 1);
  return count;
}

bool parsePlan(const char *text, Plan &plan, std::string &error) {
  error.clear();
  json root;
  try {
    root = json::parse(text ? text : "");
  } catch (const json::exception &failure) {
    error = std::string("the program's plan is not JSON: ") + failure.what();
    return false;
  }
  Fields fields(root, "", error);
  fields.read("model", plan.Model);
  fields.read("activations", plan.Activations);
  fields.read("kv_type", plan.Cache.Type);
  fields.read("max_context", plan.MaxContext);
  if (const json *ids = fields.array("eos")) {
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    for (const json &id : *ids) {
      json wrapped = {{"id", id}};
      int64_t value = 0;
      Fields(wrapped, "eos.", error).read("id", value, most);
      plan.StopIds.push_back(int32_t(value));
    }
  }
  if (auto cache = root.find("kv"); error.empty() && cache != root.end()) {
    Fields kv(*cache, "kv.", error);
    kv.read("layers", plan.Cache.Layers);
    kv.read("kv_heads", plan.Cache.KvHeads);
    kv.read("head_dim", plan.Cache.HeadDim);
    kv.read("type", plan.Cache.Type);
    kv.read("page", plan.Cache.PageTokens);
    kv.read("split", plan.Cache.Split);
    kv.read("page_bytes", plan.Cache.PageBytes);
  }
  if (const json *kernels = fields.array("kernels"))
    for (const json &kernel : *kernels)
      plan.Kernels.push_back(readKernel(kernel, plan.Kernels.size(), error));
  if (const json *slots = fields.array("slots"))
    for (const json &slot : *slots)
      plan.Slots.push_back(readSlot(slot, plan.Slots.size(), error));
  return error.empty();
}

} // namespace kvc

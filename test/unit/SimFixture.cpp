#include "test/unit/SimFixture.h"

#include <cstdlib>
#include <fstream>
#include <functional>

namespace kvc::sim {

const Values EdgesF32 = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF,
    0x807FFFFF, 0x00800000, 0x80800000, 0x3F800000, 0xBF800000,
    0x3F800001, 0x3F7FFFFF, 0x3F000000, 0xBF000000, 0x40490FDB,
    0xC0490FDB, 0x4B000001, 0xCB000001, 0x7F7FFFFF, 0xFF7FFFFF,
    0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF};
const Values EdgesF64 = {
    0x0000000000000000, 0x8000000000000000, 0x0000000000000001,
    0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x3FF0000000000000,
    0xBFF0000000000000, 0x3FF0000000000001, 0x400921FB54442D18,
    0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000,
    0xFFF0000000000000, 0x7FF8000000000000};
const Values EdgesI32 = {
    0,          1,          2,         3,          7,          31,
    32,         33,         0x7F,      0x80,       0xFF,       0x7FFF,
    0x8000,     0xFFFF,     0x10000,   0x00FFFFFF, 0x7FFFFFFF, 0x80000000,
    0x80000001, 0xFFFFFFFE, 0xFFFFFFFF};
const Values EdgesI64 = {0,
                         1,
                         2,
                         63,
                         64,
                         65,
                         0x7FFFFFFF,
                         0x80000000,
                         0xFFFFFFFF,
                         0x100000000,
                         0x001FFFFFFFFFFFFF,
                         0x0020000000000001,
                         0x7FFFFFFFFFFFFFFF,
                         0x8000000000000000,
                         0xFFFFFFFFFFFFFFFE,
                         0xFFFFFFFFFFFFFFFF};
// Of f16 and of bf16.
const Values EdgesHalf = {0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x007F,
                          0x0080, 0x0400, 0x3C00, 0xBC00, 0x3F80, 0xBF80,
                          0x3555, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7F7F,
                          0xFF7F, 0x7F80, 0xFF80, 0x7FFF, 0x7E00, 0x7FC0};

std::string header(const std::string &target, const std::string &version) {
  return ".version " + version + "\n.target " + target + "\n.address_size 64\n";
}

/// With KVC_SIM_PTX set, every text that is run is kept in that folder, once:
/// a test has ptxas assemble them.
static void keep(const std::string &text) {
  const char *folder = std::getenv("KVC_SIM_PTX");
  if (!folder)
    return;
  std::string name = std::to_string(std::hash<std::string>()(text));
  std::ofstream(std::string(folder) + "/" + name + ".ptx") << text;
}

KernelRun::KernelRun(const std::string &text, const std::string &target,
                     const std::string &version) {
  Text = header(target, version) + text;
  Code = Module::parse(Text, Error);
  if (!Code)
    return;
  keep(Text);
  Name = Code->kernels().front()->Name;
}

uint64_t KernelRun::buffer(const std::string &name, uint64_t bytes,
                           bool readOnly) {
  uint64_t address = Device.allocate(name, bytes, readOnly);
  EXPECT_NE(address, 0u);
  Buffers.push_back({address, bytes});
  return address;
}

static const char *recordFolder() {
  const testing::TestInfo *test =
      testing::UnitTest::GetInstance()->current_test_info();
  // Faults are for the simulator alone.
  if (test && std::string(test->test_suite_name()) == "SimFault")
    return nullptr;
  return std::getenv("KVC_SIM_RECORD");
}

static void appendHex(std::string &text, const uint8_t *bytes, size_t count) {
  static const char Digits[] = "0123456789abcdef";
  for (size_t i = 0; i != count; ++i) {
    text += Digits[bytes[i] >> 4];
    text += Digits[bytes[i] & 15];
  }
}

/// Bytes that were never written count as zero.
std::string KernelRun::hexOf(uint64_t address, uint64_t bytes) const {
  std::vector<uint8_t> data(bytes);
  Device.read(address, data.data(), bytes);
  for (uint64_t i = 0; i != bytes; ++i)
    if (!Device.initialised(address + i, 1))
      data[i] = 0;
  std::string text;
  appendHex(text, data.data(), data.size());
  return text;
}

static std::string dims(Dim3 dim) {
  return "[" + std::to_string(dim.X) + ", " + std::to_string(dim.Y) + ", " +
         std::to_string(dim.Z) + "]";
}

void KernelRun::record(Dim3 grid, Dim3 block, uint32_t shared,
                       const std::vector<std::string> &before) const {
  static unsigned number = 0;
  const testing::TestInfo *test =
      testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(test->test_suite_name()) + "." + test->name() +
                     "." + std::to_string(number++);
  std::string escaped;
  for (char c : Text)
    escaped += c == '\n'               ? std::string("\\n")
               : c == '"' || c == '\\' ? std::string("\\") + c
                                       : std::string(1, c);
  std::string json =
      "{\"name\": \"" + name + "\", \"kernel\": \"" + Name + "\", \"ptx\": \"" +
      escaped + "\", \"grid\": " + dims(grid) + ", \"block\": " + dims(block) +
      ", \"shared\": " + std::to_string(shared) +
      ", \"approximate\": " + (Element == "bits" ? "false" : "true") +
      ", \"parameters\": [";
  size_t offset = 0;
  for (size_t i = 0; i != ParameterSizes.size(); ++i) {
    size_t size = ParameterSizes[i];
    offset = (offset + size - 1) / size * size;
    json += i == 0 ? "\n" : ",\n";
    uint64_t value = 0;
    std::memcpy(&value, &Parameters[offset], size);
    bool found = false;
    for (size_t b = 0; b != Buffers.size() && !found; ++b) {
      found = size == 8 && Buffers[b].Address == value;
      if (found)
        json += "{\"kind\": \"buffer\", \"element\": \"" + Element +
                "\", \"before\": \"" + before[b] + "\", \"after\": \"" +
                hexOf(value, Buffers[b].Bytes) + "\"}";
    }
    if (!found) {
      json += "{\"kind\": \"value\", \"bytes\": \"";
      appendHex(json, &Parameters[offset], size);
      json += "\"}";
    }
    offset += size;
  }
  std::ofstream(std::string(recordFolder()) + "/" + name + ".json")
      << json << "]}\n";
}

std::string KernelRun::launch(Dim3 grid, Dim3 block, uint32_t shared,
                              const LaunchOptions &options) {
  if (!Code)
    return Error;
  LaunchConfig config;
  config.Grid = grid;
  config.Block = block;
  config.DynamicShared = shared;
  std::string error;
  std::vector<std::string> before;
  bool recorded = Recorded && recordFolder();
  if (recorded)
    for (const Buffer &buffer : Buffers)
      before.push_back(hexOf(buffer.Address, buffer.Bytes));
  if (Device.launch(*Code, Name, config, Parameters.data(), Parameters.size(),
                    options, error)) {
    if (recorded)
      record(grid, block, shared, before);
    return "";
  }
  return error.empty() ? "a failure without an error" : error;
}

/// What hardware may do with the last bits of: "bits" is nothing.
static std::string elementOf(const std::string &body,
                             const std::vector<unsigned> &outputs) {
  bool open = body.find(".approx") != std::string::npos ||
              body.find(".full") != std::string::npos ||
              (body.find("mma.sync") != std::string::npos &&
               body.find("s32") == std::string::npos);
  if (!open)
    return "bits";
  bool brain = body.find("bf16") != std::string::npos;
  return outputs[0] == 32   ? "f32"
         : outputs[0] == 64 ? "f64"
         : brain            ? "bf16"
                            : "f16";
}

static std::vector<Values> evaluate(const std::string &body,
                                    const std::vector<Input> &inputs,
                                    const std::vector<unsigned> &outputs,
                                    const Snippet &snippet, bool recorded) {
  size_t count = snippet.Threads;
  for (const Input &input : inputs)
    count = std::max(count, input.Value.size());
  size_t ctas = (count + snippet.Threads - 1) / snippet.Threads;
  size_t threads = ctas * snippet.Threads;

  auto registers = [](const char *name, unsigned n, unsigned bits) {
    return "  .reg .b" + std::to_string(bits) + " " + name + std::to_string(n) +
           ";\n";
  };
  auto address = [&](size_t n) {
    return "[base+" + std::to_string(n * threads * 8) + "]";
  };
  std::string text = ".visible .entry k(.param .u64 data)\n{\n"
                     "  .reg .b32 index, cta, size, t<16>;\n"
                     "  .reg .b64 base, place, w<8>;\n"
                     "  .reg .b16 h<8>;\n  .reg .pred p<4>;\n";
  if (snippet.Shared)
    text += "  .shared .align 128 .b8 smem[" + std::to_string(snippet.Shared) +
            "];\n";
  for (unsigned n = 0; n != inputs.size(); ++n)
    text += registers("i", n, inputs[n].Bits);
  for (unsigned n = 0; n != outputs.size(); ++n)
    text += registers("o", n, outputs[n]);
  text += "  mov.u32 index, %tid.x;\n  mov.u32 cta, %ctaid.x;\n"
          "  mov.u32 size, %ntid.x;\n"
          "  mad.lo.u32 index, cta, size, index;\n"
          "  ld.param.u64 base, [data];\n  cvta.to.global.u64 base, base;\n"
          "  mul.wide.u32 place, index, 8;\n  add.u64 base, base, place;\n";
  for (unsigned n = 0; n != inputs.size(); ++n)
    text += "  ld.global.b" + std::to_string(inputs[n].Bits) + " i" +
            std::to_string(n) + ", " + address(n) + ";\n";
  text += "  " + body + "\n";
  for (unsigned n = 0; n != outputs.size(); ++n)
    text += "  st.global.b" + std::to_string(outputs[n]) + " " +
            address(inputs.size() + n) + ", o" + std::to_string(n) + ";\n";
  text += "  ret;\n}\n";

  std::vector<Values> results(outputs.size(), Values(count));
  KernelRun run(text, snippet.Target, snippet.Version);
  if (!run.Code) {
    ADD_FAILURE() << body << "\n" << run.Error;
    return results;
  }
  run.Recorded = recorded;
  run.Element = elementOf(body, outputs);
  size_t rows = inputs.size() + outputs.size();
  std::vector<uint64_t> data(rows * threads);
  for (size_t n = 0; n != inputs.size(); ++n)
    for (size_t i = 0; i != threads; ++i)
      data[n * threads + i] = inputs[n].Value[i % inputs[n].Value.size()];
  uint64_t buffer = run.filled("data", data);
  run.parameter(buffer);
  std::string error =
      run.launch({uint32_t(ctas)}, {snippet.Threads}, 0, snippet.Options);
  if (!error.empty()) {
    ADD_FAILURE() << body << "\n" << error;
    return results;
  }
  data = run.contents<uint64_t>(buffer, data.size());
  for (size_t n = 0; n != outputs.size(); ++n)
    for (size_t i = 0; i != count; ++i)
      results[n][i] = data[(inputs.size() + n) * threads + i];
  return results;
}

std::vector<Values> evaluate(const std::string &body,
                             const std::vector<Input> &inputs,
                             const std::vector<unsigned> &outputs,
                             const Snippet &snippet) {
  if (recordFolder()) {
    // A sample, so that the records of all tests are a few megabytes; whole
    // warps of it where the lanes work together.
    constexpr size_t most = 128;
    std::vector<Input> some = inputs;
    bool together = body.find(".sync") != std::string::npos;
    for (Input &input : some) {
      size_t size = input.Value.size();
      if (size <= most)
        continue;
      Values sample;
      for (size_t i = 0; i != most; ++i)
        sample.push_back(input.Value[together ? i : i * size / most]);
      input.Value = sample;
    }
    evaluate(body, some, outputs, snippet, true);
  }
  return evaluate(body, inputs, outputs, snippet, false);
}

Values evaluate1(const std::string &body, const std::vector<Input> &inputs,
                 unsigned bits, const Snippet &snippet) {
  return evaluate(body, inputs, {bits}, snippet)[0];
}

std::vector<Values> tuples(unsigned n, const Values &edges, size_t random,
                           unsigned bits, uint64_t seed) {
  std::vector<Values> result(n);
  size_t count = 1;
  for (unsigned i = 0; i != n; ++i)
    count *= edges.size();
  for (size_t i = 0; i != count; ++i)
    for (size_t rest = i, j = 0; j != n; ++j, rest /= edges.size())
      result[j].push_back(edges[rest % edges.size()]);
  std::mt19937_64 engine(seed);
  for (size_t i = 0; i != random; ++i)
    for (Values &values : result)
      values.push_back(engine() >> (64 - bits));
  return result;
}

} // namespace kvc::sim

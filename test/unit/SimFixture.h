// Runs PTX text on the simulator for the Sim*Test.cpp: whole kernels, and
// kernels that are made around one instruction.
#ifndef KVC_TEST_UNIT_SIMFIXTURE_H
#define KVC_TEST_UNIT_SIMFIXTURE_H

#include "runtime/sim/Sim.h"

#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

namespace kvc::sim {

using Values = std::vector<uint64_t>;

/// An operand of the instruction under test, one value a thread. Bits is 16, 32
/// or 64; the register of input n is in, that of output n is on.
struct Input {
  unsigned Bits;
  Values Value;
};

struct Snippet {
  std::string Target = "sm_90";
  std::string Version = "8.0";
  unsigned Threads = 32; // of a CTA
  uint32_t Shared = 0;   // bytes of `smem`, static
  LaunchOptions Options;
};

/// A kernel around `body`, for as many threads as the inputs have values (at
/// least one warp). Fails the test, and returns zeros, where it does not run.
/// The body may use: the inputs and outputs, %tid.x, `index` (u32, the thread
/// of the launch), registers t0-t15 (b32), w0-w7 (b64), h0-h7 (b16), p0-p3.
std::vector<Values> evaluate(const std::string &body,
                             const std::vector<Input> &inputs,
                             const std::vector<unsigned> &outputs,
                             const Snippet &snippet = {});

/// One output of 32 or other bits, the common case.
Values evaluate1(const std::string &body, const std::vector<Input> &inputs,
                 unsigned bits = 32, const Snippet &snippet = {});

/// A kernel on a machine of its own, with the parameters in a row.
class KernelRun {
public:
  explicit KernelRun(const std::string &text,
                     const std::string &target = "sm_90",
                     const std::string &version = "8.0");
  uint64_t buffer(const std::string &name, uint64_t bytes,
                  bool readOnly = false);
  template <class T>
  uint64_t filled(const std::string &name, const std::vector<T> &values,
                  bool readOnly = false) {
    uint64_t address = buffer(name, values.size() * sizeof(T), readOnly);
    Device.write(address, values.data(), values.size() * sizeof(T));
    return address;
  }
  template <class T>
  std::vector<T> contents(uint64_t address, size_t count) const {
    std::vector<T> values(count);
    EXPECT_TRUE(Device.read(address, values.data(), count * sizeof(T)));
    return values;
  }
  template <class T> KernelRun &parameter(T value) {
    ParameterSizes.push_back(sizeof(T));
    Parameters.resize((Parameters.size() + sizeof(T) - 1) / sizeof(T) *
                      sizeof(T));
    Parameters.resize(Parameters.size() + sizeof(T));
    std::memcpy(Parameters.data() + Parameters.size() - sizeof(T), &value,
                sizeof(T));
    return *this;
  }
  /// The error, or an empty string. Runs the only kernel.
  std::string launch(Dim3 grid, Dim3 block, uint32_t shared = 0,
                     const LaunchOptions &options = {});

  /// False where what a kernel leaves depends on the order of CTAs or threads:
  /// no hardware record is made of it.
  bool Recorded = true;
  /// How its results may differ from hardware's: see record().
  std::string Element = "bits";

  Machine Device{2};
  std::unique_ptr<Module> Code;
  std::string Error; // of parsing
  const Meter &meter() const { return Device.meters().at(Name); }

private:
  struct Buffer {
    uint64_t Address, Bytes;
  };
  std::string hexOf(uint64_t address, uint64_t bytes) const;
  /// With KVC_SIM_RECORD set, a kernel, its parameters and what it leaves in
  /// memory are kept in that folder, for bench/device to run on a GPU.
  void record(Dim3 grid, Dim3 block, uint32_t shared,
              const std::vector<std::string> &before) const;

  std::string Name, Text;
  std::vector<uint8_t> Parameters;
  std::vector<size_t> ParameterSizes;
  std::vector<Buffer> Buffers;
};

/// The text before a kernel.
std::string header(const std::string &target, const std::string &version);

/// Every n-tuple of `edges`, then `random` tuples of random bits: n vectors.
std::vector<Values> tuples(unsigned n, const Values &edges, size_t random,
                           unsigned bits, uint64_t seed = 1);

extern const Values EdgesF32, EdgesF64, EdgesI32, EdgesI64, EdgesHalf;

inline float asFloat(uint64_t bits) {
  uint32_t low = uint32_t(bits);
  float value;
  std::memcpy(&value, &low, sizeof(value));
  return value;
}
inline uint64_t bits32(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
inline double asDouble(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
inline uint64_t bits64(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// Compares all of `got` with expected(i), and names inputs of the first few
/// that differ.
template <class Expected>
void expectAll(const std::string &what, const std::vector<Input> &inputs,
               const Values &got, Expected expected) {
  unsigned shown = 0;
  for (size_t i = 0; i != got.size(); ++i) {
    uint64_t want = expected(i);
    if (got[i] == want)
      continue;
    std::string text;
    char number[32];
    for (const Input &input : inputs) {
      std::snprintf(number, sizeof(number), " %llx",
                    static_cast<unsigned long long>(input.Value[i]));
      text += number;
    }
    ADD_FAILURE() << what << " of" << text << " is " << std::hex << got[i]
                  << ", not " << want;
    if (++shown == 5)
      return;
  }
}

} // namespace kvc::sim

#endif // KVC_TEST_UNIT_SIMFIXTURE_H

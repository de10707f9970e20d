#include "runtime/RandomWeights.h"
#include "runtime/Cpu.h"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

namespace kvc {

bool checkRandomRanges(const KvcProgramInfo &program, std::string &error) {
  int64_t end = 0;
  for (int64_t i = 0; i != program.random_ranges; ++i) {
    const KvcWeightRange &range = program.random_range[i];
    if (range.offset >= end && range.offset <= program.weights_bytes &&
        range.offset % 4 == 0 && range.bytes >= 0 &&
        range.bytes <= program.weights_bytes - range.offset &&
        range.kind >= KVC_WEIGHT_F32 && range.kind <= KVC_WEIGHT_CODES8) {
      end = range.offset + range.bytes;
      continue;
    }
    error = "the program's random range " + std::to_string(i) + " has " +
            std::to_string(range.bytes) + " bytes of kind " +
            std::to_string(range.kind) + " at " + std::to_string(range.offset) +
            ", it must lie after byte " + std::to_string(end) +
            " and inside the arena's " + std::to_string(program.weights_bytes);
    return false;
  }
  return true;
}

/// Eight random bytes that depend on a counter alone.
static uint64_t hash(uint64_t counter) {
  uint64_t value = (counter + 1) * 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

namespace {
/// The bits of i / 4096 for each byte i: exact in every type.
struct Values {
  uint32_t F32[256];
  uint16_t F16[256];
  uint16_t Bf16[256];

  Values() {
    for (int i = 0; i != 256; ++i) {
      float value = float(i - 128) * 0x1p-12f;
      std::memcpy(&F32[i], &value, sizeof(value));
      Bf16[i] = uint16_t(F32[i] >> 16);
      // f16's exponent is biased by 15 instead of 127; none is subnormal here.
      uint32_t exponent = (F32[i] >> 23) & 0xFF;
      F16[i] = exponent == 0 ? 0
                             : uint16_t((F32[i] >> 16 & 0x8000) |
                                        ((exponent - 112) << 10) |
                                        (F32[i] >> 13 & 0x3FF));
    }
  }
};
} // namespace

// Four bytes of a range, those of word `word` of the arena.
static uint32_t wordOf(const Values &values, int64_t kind, int64_t word) {
  uint64_t random = hash(uint64_t(word));
  uint8_t first = uint8_t(random), second = uint8_t(random >> 8);
  switch (kind) {
  case KVC_WEIGHT_F32:
    return values.F32[first];
  case KVC_WEIGHT_F16:
    return values.F16[first] | uint32_t(values.F16[second]) << 16;
  case KVC_WEIGHT_BF16:
    return values.Bf16[first] | uint32_t(values.Bf16[second]) << 16;
  case KVC_WEIGHT_CODES16:
    // Any two bytes that may be a scale are below 2^-11 as f16.
    return uint32_t(random) & 0x8FFF8FFF;
  default:
    // Any byte that may be an exponent is of 2^-15 to 1.
    return (uint32_t(random) & 0x0F0F0F0F) | 0x70707070;
  }
}

static void fillPart(const KvcProgramInfo &program, const Values &values,
                     int64_t offset, int64_t bytes, uint8_t *out) {
  std::memset(out, 0, size_t(bytes));
  const KvcWeightRange *ranges = program.random_range;
  const KvcWeightRange *end = ranges + program.random_ranges;
  const KvcWeightRange *range =
      std::partition_point(ranges, end, [&](const KvcWeightRange &each) {
        return each.offset + each.bytes <= offset;
      });
  for (; range != end && range->offset < offset + bytes; ++range) {
    int64_t at = std::max(offset, range->offset);
    int64_t stop = std::min(offset + bytes, range->offset + range->bytes);
    for (; at < stop; at += 4) {
      uint32_t word = wordOf(values, range->kind, at / 4);
      std::memcpy(out + (at - offset), &word,
                  size_t(std::min<int64_t>(4, stop - at)));
    }
  }
}

void fillRandomWeights(const KvcProgramInfo &program, int64_t offset,
                       int64_t bytes, uint8_t *out) {
  static const Values values;
  constexpr int64_t least = 1 << 20; // what a thread is worth
  int64_t parts =
      std::clamp<int64_t>(bytes / least, 1, std::max(1, availableCores()));
  int64_t step = (bytes / parts + 3) / 4 * 4;
  std::vector<std::thread> threads;
  for (int64_t at = step; at < bytes; at += step) {
    auto part = [&program, offset, at, out,
                 count = std::min(step, bytes - at)] {
      fillPart(program, values, offset + at, count, out + at);
    };
    try {
      threads.emplace_back(part);
    } catch (const std::system_error &) {
      part();
    }
  }
  fillPart(program, values, offset, std::min(step, bytes), out);
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace kvc

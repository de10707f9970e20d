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

/// What is made at a time: the bytes of one place whose offset it divides.
static constexpr int64_t GroupBytes = 16;

// The bytes of group number `group` of the arena.
template <int64_t Kind>
static void makeGroup(const Values &values, int64_t group, uint8_t *out) {
  uint64_t random = hash(uint64_t(group) * 2);
  if constexpr (Kind == KVC_WEIGHT_F32) {
    uint32_t words[4];
    for (int i = 0; i != 4; ++i)
      words[i] = values.F32[random >> 8 * i & 0xFF];
    std::memcpy(out, words, sizeof(words));
  } else if constexpr (Kind == KVC_WEIGHT_F16 || Kind == KVC_WEIGHT_BF16) {
    const uint16_t *table = Kind == KVC_WEIGHT_F16 ? values.F16 : values.Bf16;
    uint16_t words[8];
    for (int i = 0; i != 8; ++i)
      words[i] = table[random >> 8 * i & 0xFF];
    std::memcpy(out, words, sizeof(words));
  } else {
    // Any two bytes that may be a scale are below 2^-11 as f16; any byte that
    // may be an exponent is of 2^-15 to 1.
    constexpr bool halves = Kind == KVC_WEIGHT_CODES16;
    uint64_t mask = halves ? 0x8FFF8FFF8FFF8FFF : 0x0F0F0F0F0F0F0F0F;
    uint64_t set = halves ? 0 : 0x7070707070707070;
    uint64_t words[2] = {(random & mask) | set,
                         (hash(uint64_t(group) * 2 + 1) & mask) | set};
    std::memcpy(out, words, sizeof(words));
  }
}

// Bytes [at, stop) of the arena; `out` is where byte `at` goes.
template <int64_t Kind>
static void fillRange(const Values &values, int64_t at, int64_t stop,
                      uint8_t *out) {
  while (at < stop) {
    int64_t group = at / GroupBytes;
    int64_t first = at % GroupBytes;
    int64_t count = std::min(GroupBytes - first, stop - at);
    if (count == GroupBytes) {
      makeGroup<Kind>(values, group, out);
    } else {
      uint8_t whole[GroupBytes];
      makeGroup<Kind>(values, group, whole);
      std::memcpy(out, whole + first, size_t(count));
    }
    at += count;
    out += count;
  }
}

static void fillPart(const KvcProgramInfo &program, const Values &values,
                     int64_t offset, int64_t bytes, uint8_t *out) {
  const KvcWeightRange *ranges = program.random_range;
  const KvcWeightRange *end = ranges + program.random_ranges;
  const KvcWeightRange *range =
      std::partition_point(ranges, end, [&](const KvcWeightRange &each) {
        return each.offset + each.bytes <= offset;
      });
  int64_t done = offset; // what lies between ranges is zero
  for (; range != end && range->offset < offset + bytes; ++range) {
    int64_t at = std::max(offset, range->offset);
    int64_t stop = std::min(offset + bytes, range->offset + range->bytes);
    std::memset(out + (done - offset), 0, size_t(at - done));
    auto fill = range->kind == KVC_WEIGHT_F32    ? fillRange<KVC_WEIGHT_F32>
                : range->kind == KVC_WEIGHT_F16  ? fillRange<KVC_WEIGHT_F16>
                : range->kind == KVC_WEIGHT_BF16 ? fillRange<KVC_WEIGHT_BF16>
                : range->kind == KVC_WEIGHT_CODES16
                    ? fillRange<KVC_WEIGHT_CODES16>
                    : fillRange<KVC_WEIGHT_CODES8>;
    fill(values, at, stop, out + (at - offset));
    done = stop;
  }
  std::memset(out + (done - offset), 0, size_t(offset + bytes - done));
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

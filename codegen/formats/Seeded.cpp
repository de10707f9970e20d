#include "codegen/formats/Seeded.h"
#include "codegen/formats/HalfFloat.h"

#include <algorithm>
#include <cassert>
#include <cmath>

using namespace kvc;

static uint64_t fnv1a64(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (unsigned char byte : text)
    hash = (hash ^ byte) * 0x100000001B3u;
  return hash;
}

static bool endsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         text.substr(text.size() - end.size()) == end;
}

SeededRange kvc::seededRange(std::string_view name, int64_t columns) {
  if (endsWith(name, "norm.weight"))
    return {1.0, 0.1};
  if (endsWith(name, ".bias"))
    return {0.0, 0.1};
  if (endsWith(name, "_embd.weight"))
    return {0.0, 1.0};
  return {0.0, std::sqrt(3.0 / static_cast<double>(columns))};
}

void kvc::seededValues(uint64_t seed, std::string_view name, SeededRange range,
                       int64_t first, int64_t count, float *out) {
  uint64_t state = fnv1a64(name) ^ seed;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t x =
        state + (static_cast<uint64_t>(first + i) + 1) * 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    x = x ^ (x >> 31);
    double t = 2.0 * (static_cast<double>(x >> 40) * 0x1p-24) - 1.0;
    out[i] = static_cast<float>(range.center + range.scale * t);
  }
}

void kvc::seededElements(uint64_t seed, std::string_view name,
                         SeededRange range, int64_t first, int64_t count,
                         Format format, uint8_t *out) {
  assert(formatInfo(format).plain());
  // Stretches that stay in the first-level cache.
  constexpr int64_t stretch = 1024;
  float values[stretch];
  uint16_t halves[stretch];
  for (int64_t done = 0; done < count; done += stretch) {
    int64_t part = std::min(stretch, count - done);
    seededValues(seed, name, range, first + done, part, values);
    if (format == Format::F32) {
      std::memcpy(out + done * 4, values, part * 4);
      continue;
    }
    std::transform(values, values + part, halves, [&](float value) {
      return format == Format::BF16 ? bfloatFromFloat(value)
                                    : halfFromFloat(value);
    });
    std::memcpy(out + done * 2, halves, part * 2);
  }
}

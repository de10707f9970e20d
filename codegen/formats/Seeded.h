// The generated weights of a spec: docs/SPEC_WEIGHTS.md in code. Any part of a
// weight can be made by itself.
#ifndef KVC_CODEGEN_FORMATS_SEEDED_H
#define KVC_CODEGEN_FORMATS_SEEDED_H

#include "codegen/formats/Format.h"

#include <cstdint>
#include <string_view>

namespace kvc {

/// A weight's values are uniform in [center - scale, center + scale).
struct SeededRange {
  double center;
  double scale;
};

/// The range that docs/SPEC_WEIGHTS.md gives the weight `name`
/// ("blk.0.attn_q.weight"), whose matrix has `columns` input features; of no
/// meaning for a vector.
SeededRange seededRange(std::string_view name, int64_t columns);

/// Elements first .. first+count-1, in row-major order, of the weight `name`.
void seededValues(uint64_t seed, std::string_view name, SeededRange range,
                  int64_t first, int64_t count, float *out);

/// The same, stored as elements of a plain format, rounded to nearest, ties to
/// even.
void seededElements(uint64_t seed, std::string_view name, SeededRange range,
                    int64_t first, int64_t count, Format format, uint8_t *out);

} // namespace kvc

#endif // KVC_CODEGEN_FORMATS_SEEDED_H

// The generated weights of a spec: docs/SPEC_WEIGHTS.md in code. Any part of a
// weight can be made by itself.
#ifndef KVC_CODEGEN_FORMATS_SEEDED_H
#define KVC_CODEGEN_FORMATS_SEEDED_H

#include <cstdint>
#include <string_view>

namespace kvc {

/// Elements first .. first+count-1, in row-major order, of the weight `name`
/// (as docs/SPEC_WEIGHTS.md spells it, "blk.0.attn_q.weight"), whose matrix has
/// `columns` input features; of no meaning for a vector.
void seededValues(uint64_t seed, std::string_view name, int64_t columns,
                  int64_t first, int64_t count, float *out);

} // namespace kvc

#endif // KVC_CODEGEN_FORMATS_SEEDED_H

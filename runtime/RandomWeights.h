// Weights of programs that have none: numbers that mean nothing, for
// measurements of shapes whose files are not at hand.
#ifndef KVC_RUNTIME_RANDOMWEIGHTS_H
#define KVC_RUNTIME_RANDOMWEIGHTS_H

#include "runtime/Abi.h"

#include <cstdint>
#include <string>

namespace kvc {

/// Refuses ranges that overlap, leave the arena or have no such kind.
bool checkRandomRanges(const KvcProgramInfo &program, std::string &error);

/// Writes the arena's bytes [offset, offset + bytes) to `out`, on several
/// cores. A byte depends on its place alone. Numbers are uniform in [-1/32,
/// 1/32); bytes outside the ranges are zero.
void fillRandomWeights(const KvcProgramInfo &program, int64_t offset,
                       int64_t bytes, uint8_t *out);

} // namespace kvc

#endif // KVC_RUNTIME_RANDOMWEIGHTS_H

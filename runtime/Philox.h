// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw,
// "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011): ten rounds that turn
// a 128-bit counter and a 64-bit key into 128 random bits. It has no state, so
// a token's random number depends on nothing but its place.
#ifndef KVC_RUNTIME_PHILOX_H
#define KVC_RUNTIME_PHILOX_H

#include <array>
#include <cstdint>

namespace kvc {

inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter,
                                      std::array<uint32_t, 2> key) {
  for (int round = 0; round != 10; ++round) {
    uint64_t first = uint64_t(0xD2511F53u) * counter[0];
    uint64_t second = uint64_t(0xCD9E8D57u) * counter[2];
    counter = {uint32_t(second >> 32) ^ counter[1] ^ key[0], uint32_t(second),
               uint32_t(first >> 32) ^ counter[3] ^ key[1], uint32_t(first)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// A number of [0, 1) with 53 random bits for one position of one sequence.
inline double uniformAt(uint64_t seed, uint64_t sequence, uint64_t position) {
  std::array<uint32_t, 4> words =
      philox({uint32_t(position), uint32_t(position >> 32), uint32_t(sequence),
              uint32_t(sequence >> 32)},
             {uint32_t(seed), uint32_t(seed >> 32)});
  uint64_t bits = (uint64_t(words[0]) << 32 | words[1]) >> 11;
  return double(bits) * 0x1p-53;
}

} // namespace kvc

#endif // KVC_RUNTIME_PHILOX_H

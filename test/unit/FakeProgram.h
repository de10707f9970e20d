// A program that a compiler might have made, written by hand: its logits are a
// hash of every token, position and rope angle that it reads back from the KV
// pages, so that a mistake of the runtime anywhere changes them all.
#ifndef KVC_TEST_UNIT_FAKEPROGRAM_H
#define KVC_TEST_UNIT_FAKEPROGRAM_H

#include "runtime/Abi.h"

#include <cstdint>
#include <vector>

namespace kvc::fake {

constexpr int64_t Vocab = 37;
constexpr int64_t Context = 96;
constexpr int64_t PageTokens = 4;
constexpr int64_t WeightsBytes = 5000;
constexpr int32_t StopId = 7;

/// A page holds one entry a token.
struct Entry {
  int32_t Token;
  float Angle;
};
constexpr int64_t RowSlot = 64; // bytes a row has in the workspace

/// The pieces that the program's steps are made of, for other devices: the
/// state of no tokens, of one more, and a logit of a state.
constexpr uint64_t FirstState = 1;
uint64_t mixEntry(uint64_t state, const Entry &entry);
float logit(uint64_t state, int64_t id, const uint8_t *weights);

/// The weights the program was "compiled" with.
std::vector<uint8_t> weights();

/// What the program must compute for the last of these tokens.
std::vector<float> logits(const std::vector<int32_t> &tokens);

/// What greedy generation must append to these tokens, the stop id included.
std::vector<int32_t> continuation(std::vector<int32_t> tokens, int64_t count,
                                  bool ignoreStop = false);

} // namespace kvc::fake

#endif // KVC_TEST_UNIT_FAKEPROGRAM_H

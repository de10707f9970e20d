//===- CacheState.cpp -----------------------------------------------------===//
#include "dialect/reference/CacheState.h"

#include <limits>

using namespace kvc;

CacheEntry &CacheState::entry(int64_t layer, int64_t sequence) {
  if (sequence >= sequences())
    for (auto &entries : layers)
      entries.resize(sequence + 1);
  return layers[layer][sequence];
}

void CacheState::grow(CacheEntry &entry, int64_t position) const {
  if (position < entry.positions())
    return;
  constexpr double poison = std::numeric_limits<double>::quiet_NaN();
  entry.keys.resize((position + 1) * width(), poison);
  entry.values.resize((position + 1) * width(), poison);
  entry.writtenIn.resize(position + 1, -1);
}

void CacheState::truncate(int64_t sequence, int64_t length) {
  if (sequence >= sequences())
    return;
  for (auto &entries : layers) {
    CacheEntry &entry = entries[sequence];
    if (length >= entry.positions())
      continue;
    entry.keys.resize(length * width());
    entry.values.resize(length * width());
    entry.writtenIn.resize(length);
  }
}

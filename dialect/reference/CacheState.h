//===- CacheState.h - The interpreter's KV cache ----------------*- C++ -*-===//
#ifndef KVC_DIALECT_REFERENCE_CACHESTATE_H
#define KVC_DIALECT_REFERENCE_CACHESTATE_H

#include "dialect/KvcDialect.h"

#include <vector>

namespace kvc {

/// K and V of one sequence in one layer, [position][kv_head][head_dim].
/// Positions nobody wrote hold NaN.
struct CacheEntry {
  std::vector<double> keys;
  std::vector<double> values;
  /// The step that last wrote each position, -1 for none.
  std::vector<int64_t> writtenIn;

  int64_t positions() const { return writtenIn.size(); }
  bool written(int64_t position) const {
    return position < positions() && writtenIn[position] >= 0;
  }
};

/// The contents of one kvc.cache. Sequences come into being when first used.
class CacheState {
public:
  explicit CacheState(CacheType type) : type(type), layers(type.getLayers()) {}

  CacheType getType() const { return type; }
  int64_t width() const { return type.getKvHeads() * type.getHeadDim(); }
  int64_t sequences() const { return layers.empty() ? 0 : layers[0].size(); }
  /// The entry of a sequence, made if need be.
  CacheEntry &entry(int64_t layer, int64_t sequence);
  const CacheEntry &entry(int64_t layer, int64_t sequence) const {
    return layers[layer][sequence];
  }
  /// Room for `position`, poisoned.
  void grow(CacheEntry &entry, int64_t position) const;
  /// Forgets what a sequence holds from `length` on.
  void truncate(int64_t sequence, int64_t length);

private:
  CacheType type;
  std::vector<std::vector<CacheEntry>> layers; // [layer][sequence]
};

} // namespace kvc

#endif // KVC_DIALECT_REFERENCE_CACHESTATE_H

//===- Counters.cpp -------------------------------------------------------===//
#include "codegen/nvptx/Counters.h"

#include "llvm/Support/MathExtras.h"

using namespace kvc;

int64_t kvc::nvptx::countersPerRow(ModelOp model) {
  int64_t kvHeads = 0;
  for (CacheOp cache : model.getBody().front().getOps<CacheOp>())
    kvHeads = std::max(kvHeads, cache.getCacheType().getKvHeads());
  return static_cast<int64_t>(
      llvm::alignTo(static_cast<uint64_t>(AttentionCounters + kvHeads), 2));
}

//===- Counters.h - Who counts where --------------------------------------===//
//
// A row of KvcArenas' counters: i32 words that are zero between kernels, so
// kernels of one step may share them.
//
//===----------------------------------------------------------------------===//
#ifndef KVC_CODEGEN_NVPTX_COUNTERS_H
#define KVC_CODEGEN_NVPTX_COUNTERS_H

#include "dialect/KvcDialect.h"

namespace kvc::nvptx {

/// Of an output: the largest (logit, id) so far, 64 bits, and arrivals.
constexpr int64_t ChoiceCounter = 0;
constexpr int64_t ChoiceArrivals = 2;
/// Of a row and kv head: arrivals of blocks with partial attention.
constexpr int64_t AttentionCounters = 4;

/// An even number, so that every row's first counters have 8-byte alignment.
int64_t countersPerRow(ModelOp model);

} // namespace kvc::nvptx

#endif // KVC_CODEGEN_NVPTX_COUNTERS_H

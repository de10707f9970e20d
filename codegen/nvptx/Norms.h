//===- Norms.h - Sums of a row in one fixed order -------------------------===//
//
// A norm's sums have one order that follows from the row's length alone,
// whatever kernel computes them with however many warps: the row is cut into
// NormSlices slices; a warp sums a slice, lane by lane over groups of columns
// and then by a butterfly; the slices' sums are added in ascending order. A
// row kernel gives each slice a warp of its own; a linear's prologue deals
// (row, slice) pairs to the warps it has.
//
//===----------------------------------------------------------------------===//
#ifndef KVC_CODEGEN_NVPTX_NORMS_H
#define KVC_CODEGEN_NVPTX_NORMS_H

#include "codegen/nvptx/Emitter.h"

namespace kvc::nvptx {

constexpr int64_t NormSlices = 8;

/// Adjacent columns that a lane reads at once: 4 where the row is a multiple.
inline int normGroup(int64_t columns) { return columns % 4 == 0 ? 4 : 1; }

/// Columns of every slice but the last ones, which may have less or none.
int64_t normSliceColumns(int64_t columns);

/// The sum over slice `slice` (i32, the same in all lanes) of the f32 values,
/// or where `squares` of their squares; the same bits in every lane. All lanes
/// call it together. `load(column)` gives normGroup(columns) values from
/// `column` (i32) on.
Value normSliceSum(Emitter &e, int64_t columns, Value slice, bool squares,
                   llvm::function_ref<Values(Value column)> load);

/// The sum of a row's NormSlices slice sums, f32 in shared memory, 16-byte
/// aligned.
Value normTotal(Emitter &e, Value sliceSums);

/// 1 / sqrt(total / columns + eps).
Value normFactor(Emitter &e, Value total, int64_t columns, double eps);

} // namespace kvc::nvptx

#endif // KVC_CODEGEN_NVPTX_NORMS_H

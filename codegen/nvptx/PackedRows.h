//===- PackedRows.h - Single values of packed matrices --------------------===//
#ifndef KVC_CODEGEN_NVPTX_PACKEDROWS_H
#define KVC_CODEGEN_NVPTX_PACKEDROWS_H

#include "codegen/nvptx/ProgramContext.h"

namespace kvc::nvptx {

/// `width` (1, or an even number up to 8) values of row `row` of a matrix in
/// `#kvc.tiles`, from `column` (a multiple of width) on: exactly what the
/// format means, as f32.
Values packedValues(KernelContext &context, mlir::FlatSymbolRefAttr weight,
                    Value row, Value column, int width);

/// Why the weight has no values to gather; empty if it has.
std::string packedValuesError(ProgramOp program,
                              mlir::FlatSymbolRefAttr weight);

} // namespace kvc::nvptx

#endif // KVC_CODEGEN_NVPTX_PACKEDROWS_H

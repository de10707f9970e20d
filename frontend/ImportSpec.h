//===- ImportSpec.h - JSON specs to L1 ------------------------------------===//
#ifndef KVC_FRONTEND_IMPORTSPEC_H
#define KVC_FRONTEND_IMPORTSPEC_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

namespace kvc {

/// The model that a spec states, as L1, with weights from its seed or from its
/// GGUF file. docs/SPEC_WEIGHTS.md defines both.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importSpec(llvm::StringRef path, mlir::MLIRContext *context);

} // namespace kvc

#endif // KVC_FRONTEND_IMPORTSPEC_H

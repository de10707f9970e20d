//===- ImportGguf.h - GGUF files to L1 ------------------------------------===//
#ifndef KVC_FRONTEND_IMPORTGGUF_H
#define KVC_FRONTEND_IMPORTGGUF_H

#include "frontend/Gguf.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

namespace kvc {

/// The model of a GGUF file of architecture `llama`, as L1. Any other
/// architecture, and anything in the file that would change the results and is
/// not known here, is refused by its name.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importGguf(llvm::StringRef path, mlir::MLIRContext *context);

/// What `kvc.source` records of a file's header, and what whoever reads weights
/// later compares.
uint64_t ggufHeaderDigest(const GgufFile &file);

} // namespace kvc

#endif // KVC_FRONTEND_IMPORTGGUF_H

//===- ImportRope.h - A GGUF file's rotary embedding ----------------------===//
#ifndef KVC_FRONTEND_IMPORTROPE_H
#define KVC_FRONTEND_IMPORTROPE_H

#include "frontend/Gguf.h"
#include "frontend/ImportModel.h"

namespace kvc {

/// Frequencies and factor of the rotary embedding that the keys under
/// `architecture` and the tensor rope_freqs.weight describe, all scaling
/// applied. The layout is left to the importer. Scalings that depend on a
/// sequence's length, and unknown ones, are refused by name.
llvm::Expected<RopeDescription> importRope(const GgufFile &file,
                                           llvm::StringRef architecture,
                                           int64_t headDim, int64_t maxContext);

} // namespace kvc

#endif // KVC_FRONTEND_IMPORTROPE_H

// The tokenizer that a GGUF file carries in its metadata.
#ifndef KVC_FRONTEND_GGUFTOKENIZER_H
#define KVC_FRONTEND_GGUFTOKENIZER_H

#include "runtime/TokenizerData.h"

#include "llvm/Support/Error.h"

namespace kvc {

class GgufFile;

/// Reads the keys `tokenizer.ggml.*`, checked.
llvm::Expected<TokenizerData> tokenizerFromGguf(const GgufFile &file);

} // namespace kvc

#endif // KVC_FRONTEND_GGUFTOKENIZER_H

//===- SourceFiles.h - The model files that weights come from -------------===//
#ifndef KVC_CODEGEN_EMIT_SOURCEFILES_H
#define KVC_CODEGEN_EMIT_SOURCEFILES_H

#include "dialect/KvcDialect.h"
#include "frontend/Gguf.h"

#include "llvm/ADT/StringMap.h"

namespace kvc {

/// Opens the files of a model's kvc.source ops, each once, and checks that they
/// are still the ones that were imported.
class SourceFiles {
public:
  /// `directory`: where the IR's file lies. A relative path is looked up there,
  /// then in the working directory.
  explicit SourceFiles(llvm::StringRef directory = "")
      : directory(directory.str()) {}

  /// The file of a source that has a path.
  llvm::Expected<const GgufFile *> open(SourceOp source);

  /// The model's tokenizer, laid out for its program; empty if it has none.
  llvm::Expected<std::vector<uint8_t>> tokenizerBlob(ModelOp model);

private:
  std::string directory;
  llvm::StringMap<std::unique_ptr<GgufFile>> files; // by symbol
};

} // namespace kvc

#endif // KVC_CODEGEN_EMIT_SOURCEFILES_H

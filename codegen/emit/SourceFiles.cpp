//===- SourceFiles.cpp ----------------------------------------------------===//
#include "codegen/emit/SourceFiles.h"
#include "frontend/GgufTokenizer.h"
#include "frontend/ImportGguf.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace kvc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

static Error changed(StringRef path, const Twine &found, const Twine &rule) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 path + ": found " + found + ", rule: " + rule +
                                     "; the file has changed since it was "
                                     "imported");
}

Expected<const GgufFile *> SourceFiles::open(SourceOp source) {
  std::unique_ptr<GgufFile> &file = files[source.getSymName()];
  if (file)
    return file.get();
  StringRef path = *source.getPath();
  llvm::SmallString<256> beside(directory);
  llvm::sys::path::append(beside, path);
  bool found = !directory.empty() && llvm::sys::path::is_relative(path) &&
               llvm::sys::fs::exists(beside);
  Expected<std::unique_ptr<GgufFile>> opened =
      GgufFile::open(found ? StringRef(beside) : path);
  if (!opened)
    return opened.takeError();
  uint64_t size = *source.getSize();
  if ((*opened)->size() != size)
    return changed((*opened)->path(), Twine((*opened)->size()) + " bytes",
                   Twine(size) + " bytes");
  if (auto digest = source.getHeaderDigest())
    if (ggufHeaderDigest(**opened) != static_cast<uint64_t>(*digest))
      return changed((*opened)->path(), "another header",
                     "the header that the kvc.source records");
  file = std::move(*opened);
  return file.get();
}

Expected<std::vector<uint8_t>> SourceFiles::tokenizerBlob(ModelOp model) {
  std::vector<uint8_t> blob;
  mlir::FlatSymbolRefAttr symbol = model.getTokenizerAttr();
  if (!symbol)
    return blob;
  auto source =
      llvm::cast<SourceOp>(mlir::SymbolTable::lookupSymbolIn(model, symbol));
  if (!source.getPath())
    return blob;
  Expected<const GgufFile *> file = open(source);
  if (!file)
    return file.takeError();
  Expected<TokenizerData> tokenizer = tokenizerFromGguf(**file);
  if (!tokenizer)
    return tokenizer.takeError();
  return serialize(*tokenizer);
}

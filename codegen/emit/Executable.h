//===- Executable.h - Native programs -------------------------------------===//
#ifndef KVC_CODEGEN_EMIT_EXECUTABLE_H
#define KVC_CODEGEN_EMIT_EXECUTABLE_H

#include "codegen/emit/Object.h"
#include "codegen/emit/OutputFile.h"
#include "codegen/emit/SourceFiles.h"

#include <functional>

namespace kvc {

/// Where the runtime that programs carry is, and what links it.
struct LinkTools {
  std::string driver;  // a C++ compiler
  std::string library; // the folder of libKvcRuntime.a and its kin
  std::string pcre;    // libpcre2-8.a

  /// Looks in the build or install tree that the running tool is in.
  /// `toolPath` is its argv[0].
  static llvm::Expected<LinkTools> find(const char *toolPath);
};

/// Behind the program's image, in PROG.weights beside it, or nowhere: the
/// program makes numbers that mean nothing when it starts, for measurements.
enum class WeightsPlace { Embed, Sidecar, Random };

struct ExecutableOptions {
  CodeOptions code;
  WeightsPlace weights = WeightsPlace::Embed;
  LinkTools tools;
  /// Told the name of each long step when it starts.
  std::function<void(llvm::StringRef)> progress;
};

/// Writes a program and, if they are not embedded, its weights beside it.
/// Nothing is left behind on failure.
llvm::Error writeExecutable(mlir::ModuleOp module, SourceFiles &sources,
                            llvm::StringRef path,
                            const ExecutableOptions &options);

/// Writes the tokenizer and the packed weights, as a program looks for them in
/// PROG.weights, and says their digest.
llvm::Expected<uint64_t> writePayload(ModelOp model, SourceFiles &sources,
                                      OutputFile &output);

/// The digest of the packed weights, which are made and thrown away.
llvm::Expected<uint64_t> weightsDigest(ModelOp model, SourceFiles &sources);

} // namespace kvc

#endif // KVC_CODEGEN_EMIT_EXECUTABLE_H

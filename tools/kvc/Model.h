//===- Model.h - From a model's path to its schedule ----------------------===//
#ifndef KVC_TOOLS_KVC_MODEL_H
#define KVC_TOOLS_KVC_MODEL_H

#include "codegen/emit/Executable.h"
#include "tools/kvc/Options.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <chrono>

namespace kvc {

/// Says on stderr what took long, and how long. What fails has no line: its
/// error has.
class ProgressLines {
public:
  explicit ProgressLines(bool quiet) : quiet(quiet) {}
  /// Ends the step before and starts this one.
  void step(llvm::StringRef name);
  /// Ends the last step.
  void finish();

private:
  bool quiet;
  std::string current;
  std::chrono::steady_clock::time_point start;
};

/// Reads a model in whatever form and runs the pipeline on it.
class ModelCompiler {
public:
  ModelCompiler(const CompileChoices &choices, ProgressLines &progress);

  /// The schedule (L4) of the model at `path`. IR that is a schedule already is
  /// taken as it is.
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
  schedule(llvm::StringRef path);

  /// Writes the model's program.
  llvm::Error writeProgram(llvm::StringRef path, llvm::StringRef output,
                           const char *toolPath);

private:
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
  import(llvm::StringRef path);

  const CompileChoices &choices;
  ProgressLines &progress;
  mlir::MLIRContext context;
};

/// What kind of model a file holds, told by its first bytes.
enum class ModelKind { Gguf, Spec, IR };
llvm::Expected<ModelKind> modelKind(llvm::StringRef path);

} // namespace kvc

#endif // KVC_TOOLS_KVC_MODEL_H

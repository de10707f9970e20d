//===- Model.cpp ----------------------------------------------------------===//
#include "tools/kvc/Model.h"
#include "codegen/emit/Ptxas.h"
#include "frontend/ImportGguf.h"
#include "frontend/ImportSpec.h"
#include "passes/Passes.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace kvc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Progress
//===----------------------------------------------------------------------===//

/// Seconds from which a step is worth a line.
static constexpr double Shown = 0.05;

void ProgressLines::step(StringRef name) {
  finish();
  current = name.str();
  start = std::chrono::steady_clock::now();
}

void ProgressLines::finish() {
  if (current.empty())
    return;
  std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - start;
  if (!quiet && taken.count() >= Shown)
    llvm::errs() << "kvc: " << current
                 << llvm::format(": %.2f s\n", taken.count());
  current.clear();
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

static Error modelError(StringRef path, const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 path + ": " + message);
}

Expected<ModelKind> kvc::modelKind(StringRef path) {
  if (Error error = checkInputFile(path))
    return std::move(error);
  auto start = llvm::MemoryBuffer::getFileSlice(path, 64, 0);
  if (!start) {
    // Shorter than that, or not to be read; the message is the same file's.
    start = llvm::MemoryBuffer::getFile(path);
    if (!start)
      return modelError(path, start.getError().message());
  }
  StringRef bytes = (*start)->getBuffer();
  if (bytes.starts_with("GGUF"))
    return ModelKind::Gguf;
  if (bytes.ltrim().starts_with("{"))
    return ModelKind::Spec;
  if (llvm::sys::path::extension(path) == ".mlir")
    return ModelKind::IR;
  return modelError(path, "is no model, rule: a GGUF file, a JSON spec or a "
                          ".mlir file");
}

ModelCompiler::ModelCompiler(const CompileChoices &choices,
                             ProgressLines &progress)
    : choices(choices), progress(progress),
      context(MLIRContext::Threading::DISABLED) {
  DialectRegistry registry;
  registerEmissionDialects(registry);
  context.appendDialectRegistry(registry);
}

Expected<OwningOpRef<ModuleOp>> ModelCompiler::import(StringRef path) {
  Expected<ModelKind> kind = modelKind(path);
  if (!kind)
    return kind.takeError();
  switch (*kind) {
  case ModelKind::Gguf:
    return importGguf(path, &context);
  case ModelKind::Spec:
    return importSpec(path, &context);
  case ModelKind::IR:
    break;
  }
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(path, &context);
  if (!module)
    return modelError(path, "not valid IR");
  return module;
}

Expected<OwningOpRef<ModuleOp>> ModelCompiler::schedule(StringRef path) {
  progress.step(("reading " + path).str());
  Expected<OwningOpRef<ModuleOp>> module = import(path);
  if (!module)
    return module.takeError();
  if (failed(verify(**module)))
    return modelError(path, "its IR is not valid");
  bool scheduled = false;
  (*module)->walk([&](DispatchOp) { scheduled = true; });
  if (scheduled)
    return module;
  progress.step("planning");
  PipelineOptions options;
  options.target = choices.target;
  bool cuda = choices.target == "cuda";
  options.targetCpu = cuda ? choices.chip : choices.targetCpu;
  options.vectorWidth = choices.vectorWidth;
  options.kvType = choices.kvType;
  options.activations = choices.activations;
  options.ptxVersion = choices.ptxVersion;
  options.ctx = choices.ctx;
  if (Error error = runPasses(**module, [&](OpPassManager &manager) {
        buildPipeline(manager, options);
      }))
    return modelError(path, llvm::toString(std::move(error)));
  return module;
}

Error ModelCompiler::writeProgram(StringRef path, StringRef output,
                                  const char *toolPath) {
  ExecutableOptions options;
  Expected<LinkTools> tools = LinkTools::find(toolPath);
  if (!tools)
    return tools.takeError();
  options.tools = std::move(*tools);
  options.weights = choices.weights == "sidecar"  ? WeightsPlace::Sidecar
                    : choices.weights == "random" ? WeightsPlace::Random
                                                  : WeightsPlace::Embed;
  options.code.ptxVersion = static_cast<int>(choices.ptxVersion);
  options.code.ptxas = findPtxas();
  options.code.sanitizer = choices.sanitize == "address"  ? Sanitizer::Address
                           : choices.sanitize == "thread" ? Sanitizer::Thread
                                                          : Sanitizer::None;
  options.progress = [&](StringRef name) { progress.step(name); };
  Expected<OwningOpRef<ModuleOp>> module = schedule(path);
  if (!module)
    return module.takeError();
  SourceFiles sources(llvm::sys::path::parent_path(path));
  Error error = writeExecutable(**module, sources, output, options);
  progress.finish();
  return error;
}

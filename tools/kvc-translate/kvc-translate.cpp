//===- kvc-translate.cpp - Models to IR, IR to what comes out -------------===//
//
// Its own main: the upstream translation driver hands out bare streams, but
// models are paths (a file is mapped, a spec names other files) and outputs
// must appear whole or not at all.
#include "codegen/emit/OutputFile.h"
#include "dialect/KvcDialect.h"
#include "frontend/ImportGguf.h"
#include "frontend/ImportSpec.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace kvc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
namespace cl = llvm::cl;

namespace {
enum class Action { None, ImportGguf, ImportSpec };
} // namespace

static cl::OptionCategory category("kvc-translate");
static cl::opt<Action> action(
    cl::desc("What to do:"), cl::init(Action::None), cl::cat(category),
    cl::values(clEnumValN(Action::ImportGguf, "import-gguf",
                          "a GGUF model file to L1 IR"),
               clEnumValN(Action::ImportSpec, "import-spec",
                          "a JSON spec (docs/SPEC_WEIGHTS.md) to L1 IR")));
static cl::opt<std::string> inputPath(cl::Positional, cl::desc("INPUT"),
                                      cl::cat(category));
static cl::opt<std::string>
    outputPath("o", cl::desc("the file to write (standard output if absent)"),
               cl::value_desc("FILE"), cl::init("-"), cl::cat(category));

/// Writes a module and checks it first: what an importer made must verify.
static Error writeModule(Expected<OwningOpRef<ModuleOp>> module) {
  if (!module)
    return module.takeError();
  if (failed(verify(**module)))
    return llvm::createStringError(inputPath +
                                   ": the importer made IR that is not valid");
  Expected<OutputFile> output = OutputFile::create(outputPath);
  if (!output)
    return output.takeError();
  (*module)->print(output->os());
  output->os() << "\n";
  return output->commit();
}

static Error run(MLIRContext &context) {
  if (action == Action::None)
    return llvm::createStringError(
        "nothing to do: give one of the actions that --help lists");
  if (inputPath.empty())
    return llvm::createStringError("no input file");
  if (Error error = checkInputFile(inputPath))
    return error;
  switch (action) {
  case Action::None:
    break;
  case Action::ImportGguf:
    return writeModule(importGguf(inputPath, &context));
  case Action::ImportSpec:
    return writeModule(importSpec(inputPath, &context));
  }
  llvm_unreachable("every action returns");
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "kvc-translate: models to IR, IR to programs\n");
  DialectRegistry registry;
  registry.insert<KvcDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  if (Error error = run(context)) {
    llvm::errs() << "kvc: " << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  return 0;
}

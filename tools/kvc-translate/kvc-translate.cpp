//===- kvc-translate.cpp - Models to IR, IR to what comes out -------------===//
//
// Its own main: the upstream translation driver hands out bare streams, but
// models are paths (a file is mapped, a spec names other files) and outputs
// must appear whole or not at all.
#include "codegen/emit/Executable.h"
#include "codegen/emit/Ptx.h"
#include "codegen/emit/Ptxas.h"
#include "dialect/KvcDialect.h"
#include "dialect/reference/Interpret.h"
#include "frontend/ImportGguf.h"
#include "frontend/ImportSpec.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace kvc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
namespace cl = llvm::cl;

namespace {
enum class Action {
  None,
  ImportGguf,
  ImportSpec,
  Interpret,
  ToLLVMIR,
  ToAssembly,
  ToObject,
  ToWeights,
  ToExecutable,
  ToPlan,
  ToPtx
};
} // namespace

static cl::OptionCategory category("kvc-translate");
static cl::opt<Action> action(
    cl::desc("What to do:"), cl::init(Action::None), cl::cat(category),
    cl::values(clEnumValN(Action::ImportGguf, "import-gguf",
                          "a GGUF model file to L1 IR"),
               clEnumValN(Action::ImportSpec, "import-spec",
                          "a JSON spec (docs/SPEC_WEIGHTS.md) to L1 IR"),
               clEnumValN(Action::Interpret, "interpret",
                          "runs IR of any level in the f64 interpreter"),
               clEnumValN(Action::ToLLVMIR, "kvc-to-llvmir",
                          "a schedule (L4) to the LLVM IR of its program"),
               clEnumValN(Action::ToAssembly, "kvc-to-assembly",
                          "a schedule to the program's assembly"),
               clEnumValN(Action::ToObject, "kvc-to-object",
                          "a schedule to the program's object file"),
               clEnumValN(Action::ToWeights, "kvc-to-weights",
                          "a schedule to the program's tokenizer and packed "
                          "weights, what it reads as PROG.weights"),
               clEnumValN(Action::ToExecutable, "kvc-to-executable",
                          "a schedule to a native program"),
               clEnumValN(Action::ToPlan, "kvc-to-plan",
                          "a schedule to its plan: bytes and FLOPs by kernel, "
                          "as JSON"),
               clEnumValN(Action::ToPtx, "kvc-to-ptx",
                          "a schedule to the PTX of its kernels (cuda)")));
static cl::opt<std::string> inputPath(cl::Positional, cl::desc("INPUT"),
                                      cl::cat(category));
static cl::opt<std::string>
    outputPath("o", cl::desc("the file to write (standard output if absent)"),
               cl::value_desc("FILE"), cl::init("-"), cl::cat(category));

static cl::OptionCategory emitCategory("Options of --kvc-to-*");
static cl::opt<WeightsPlace>
    weightsPlace("weights", cl::desc("where the weights of an executable go:"),
                 cl::values(clEnumValN(WeightsPlace::Embed, "embed",
                                       "behind its image (the default)"),
                            clEnumValN(WeightsPlace::Sidecar, "sidecar",
                                       "into PROG.weights beside it"),
                            clEnumValN(WeightsPlace::Random, "random",
                                       "nowhere: numbers that mean nothing, "
                                       "for measurements")),
                 cl::init(WeightsPlace::Embed), cl::cat(emitCategory));
static cl::opt<Sanitizer> sanitizer(
    "sanitize", cl::desc("have the program check itself while it runs:"),
    cl::values(clEnumValN(Sanitizer::None, "none", "not at all (the default)"),
               clEnumValN(Sanitizer::Address, "address",
                          "accesses outside of buffers"),
               clEnumValN(Sanitizer::Thread, "thread",
                          "races between workers")),
    cl::init(Sanitizer::None), cl::cat(emitCategory));
static cl::opt<bool> optimizeCode(
    "optimize",
    cl::desc("run LLVM's optimisations (true); false shows what goes in"),
    cl::init(true), cl::cat(emitCategory));
static cl::opt<std::string>
    chip("chip",
         cl::desc("the GPU that --kvc-to-ptx is for (the target's own)"),
         cl::value_desc("sm_90"), cl::cat(emitCategory));
static cl::opt<int>
    ptxVersion("ptx-version",
               cl::desc("PTX ISA version times ten (the target's own)"),
               cl::value_desc("80"), cl::init(0), cl::cat(emitCategory));
static cl::OptionCategory interpretCategory("Options of --interpret");
static cl::list<std::string>
    promptIds("ids",
              cl::desc("a sequence's prompt, 1,2,3; again for each sequence"),
              cl::value_desc("IDS"), cl::cat(interpretCategory));
static cl::list<std::string> decodeIds(
    "decode-ids",
    cl::desc("tokens fed one by one after the prompt; once a sequence"),
    cl::value_desc("IDS"), cl::cat(interpretCategory));
static cl::opt<bool> rounded(
    "rounded",
    cl::desc("apply the cache's element type and kvc.quantize's rounding"),
    cl::cat(interpretCategory));
static cl::opt<bool> allLogits("all-logits",
                               cl::desc("logits of every row of the prompts"),
                               cl::cat(interpretCategory));
static cl::opt<std::string>
    logitsPath("logits", cl::desc("write the logits, float64 [rows, vocab]"),
               cl::value_desc("FILE.npy"), cl::cat(interpretCategory));
static cl::opt<std::string>
    cachePath("cache", cl::desc("write the cache, an array a layer and side"),
              cl::value_desc("FILE.npz"), cl::cat(interpretCategory));
static cl::opt<std::string>
    against("against",
            cl::desc("run this IR, too: logits and cache must be the same"),
            cl::value_desc("FILE.mlir"), cl::cat(interpretCategory));
static cl::opt<double>
    tolerance("tolerance",
              cl::desc("the relative error that --against allows (1e-12)"),
              cl::init(1e-12), cl::cat(interpretCategory));

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

static Expected<OwningOpRef<ModuleOp>> readModule(StringRef path,
                                                  MLIRContext &context) {
  if (Error error = checkInputFile(path))
    return std::move(error);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(path, &context);
  if (!module)
    return llvm::createStringError(path + ": not valid IR");
  return module;
}

static Expected<std::vector<std::vector<int32_t>>>
parseIds(const cl::list<std::string> &lists) {
  std::vector<std::vector<int32_t>> result;
  for (StringRef list : lists) {
    std::vector<int32_t> &ids = result.emplace_back();
    SmallVector<StringRef> items;
    list.split(items, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/!list.empty());
    for (StringRef item : items)
      if (item.getAsInteger(10, ids.emplace_back()))
        return llvm::createStringError("--" + lists.ArgStr + "=" + list +
                                       ": '" + item + "' is not a token id");
  }
  return result;
}

static Error interpretFile(MLIRContext &context) {
  auto module = readModule(inputPath, context);
  if (!module)
    return module.takeError();
  InterpretOptions options;
  auto ids = parseIds(promptIds), forced = parseIds(decodeIds);
  if (!ids || !forced)
    return llvm::joinErrors(ids.takeError(), forced.takeError());
  options.ids = std::move(*ids);
  options.decodeIds = std::move(*forced);
  options.rounded = rounded;
  options.allLogits = allLogits;
  options.sourceDirectory = llvm::sys::path::parent_path(inputPath);
  options.logitsPath = logitsPath;
  options.cachePath = cachePath;
  if (against.empty())
    return interpret(**module, options, llvm::outs());

  auto other = readModule(against, context);
  if (!other)
    return other.takeError();
  Expected<Comparison> comparison = compareModules(**module, **other, options);
  if (!comparison)
    return comparison.takeError();
  std::string largest = llvm::formatv("{0:e3}", comparison->error());
  if (comparison->error() > tolerance)
    return llvm::createStringError(
        inputPath + " and " + against + " differ by " + largest + " (" +
        comparison->worst + "); " +
        llvm::formatv("{0:e1}", tolerance.getValue()).str() + " is allowed");
  llvm::outs() << "largest relative error: " << largest << "\n";
  return Error::success();
}

/// Puts the input's name before an error that does not name a file.
static Error inInput(Error error) {
  std::string message = llvm::toString(std::move(error));
  if (!outputPath.empty() && StringRef(message).starts_with(outputPath))
    return llvm::createStringError(message);
  return llvm::createStringError(inputPath + ": " + message);
}

static Error writeCode(ModuleOp module, SourceFiles &sources) {
  CodeOptions options;
  options.sanitizer = sanitizer;
  options.optimize = optimizeCode;
  std::optional<uint64_t> digest;
  if (action == Action::ToObject) {
    // Whoever links the object puts the weights beside it: they must match.
    Expected<ModelOp> model = findScheduledModel(module);
    if (!model)
      return inInput(model.takeError());
    Expected<uint64_t> known = weightsDigest(*model, sources);
    if (!known)
      return inInput(known.takeError());
    digest = *known;
  }
  Expected<ProgramCode> code = ProgramCode::create(module, options, digest);
  if (!code)
    return inInput(code.takeError());
  Expected<OutputFile> output = OutputFile::create(outputPath);
  if (!output)
    return output.takeError();
  if (action == Action::ToLLVMIR) {
    code->module().print(output->os(), nullptr);
    return output->commit();
  }
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  if (Error error = code->write(os, action == Action::ToObject
                                        ? llvm::CodeGenFileType::ObjectFile
                                        : llvm::CodeGenFileType::AssemblyFile))
    return inInput(std::move(error));
  output->os() << os.str();
  return output->commit();
}

static Error writePtx(ModuleOp module) {
  PtxOptions options;
  options.chip = chip;
  options.ptxVersion = ptxVersion;
  options.optimize = optimizeCode;
  Expected<DeviceCode> code = DeviceCode::create(module, options);
  if (!code)
    return inInput(code.takeError());
  Expected<OutputFile> output = OutputFile::create(outputPath);
  if (!output)
    return output.takeError();
  output->os() << code->ptx;
  return output->commit();
}

static Error writePlan(ModuleOp module) {
  Expected<ModelOp> model = findScheduledModel(module);
  if (!model)
    return inInput(model.takeError());
  Expected<SchedulePlan> plan = makeSchedulePlan(*model);
  if (!plan)
    return inInput(plan.takeError());
  Expected<OutputFile> output = OutputFile::create(outputPath);
  if (!output)
    return output.takeError();
  output->os() << planJson(*plan, /*indent=*/2) << "\n";
  return output->commit();
}

static Error writeWeights(ModuleOp module, SourceFiles &sources) {
  Expected<ModelOp> model = findScheduledModel(module);
  if (!model)
    return inInput(model.takeError());
  Expected<OutputFile> output = OutputFile::create(outputPath);
  if (!output)
    return output.takeError();
  Expected<uint64_t> digest = writePayload(*model, sources, *output);
  if (!digest)
    return inInput(digest.takeError());
  return output->commit();
}

static Error emitFile(MLIRContext &context, const char *toolPath) {
  auto module = readModule(inputPath, context);
  if (!module)
    return module.takeError();
  SourceFiles sources(llvm::sys::path::parent_path(inputPath));
  switch (action) {
  case Action::ToPlan:
    return writePlan(**module);
  case Action::ToPtx:
    return writePtx(**module);
  case Action::ToWeights:
    return writeWeights(**module, sources);
  case Action::ToExecutable: {
    if (outputPath == "-")
      return llvm::createStringError("a program needs a name: give -o PROG");
    ExecutableOptions options;
    options.code.sanitizer = sanitizer;
    options.code.chip = chip;
    options.code.ptxVersion = ptxVersion;
    options.code.ptxas = findPtxas();
    options.weights = weightsPlace;
    Expected<LinkTools> tools = LinkTools::find(toolPath);
    if (!tools)
      return tools.takeError();
    options.tools = std::move(*tools);
    if (Error error = writeExecutable(**module, sources, outputPath, options))
      return inInput(std::move(error));
    return Error::success();
  }
  default:
    return writeCode(**module, sources);
  }
}

static Error run(MLIRContext &context, const char *toolPath) {
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
  case Action::Interpret:
    return interpretFile(context);
  default:
    return emitFile(context, toolPath);
  }
  llvm_unreachable("every action returns");
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions({&category, &emitCategory, &interpretCategory});
  cl::ParseCommandLineOptions(argc, argv,
                              "kvc-translate: models to IR, IR to programs\n");
  DialectRegistry registry;
  registerEmissionDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  if (Error error = run(context, argv[0])) {
    llvm::errs() << "kvc: " << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  return 0;
}

//===- kvc.cpp - The driver: compile, run, plan, bench --------------------===//
#include "codegen/emit/KernelTable.h"
#include "codegen/emit/SchedulePlan.h"
#include "codegen/emit/TimeModel.h"
#include "tools/kvc/Bench.h"
#include "tools/kvc/Model.h"
#include "tools/kvc/Options.h"
#include "tools/kvc/ProgramCache.h"

#include "llvm/Support/InitLLVM.h"

#include <cerrno>
#include <unistd.h>

using namespace kvc;
using llvm::Error;
using llvm::Expected;

/// Becomes the program; returns only where that fails.
static Error run(const CommandLine &line, const char *toolPath) {
  std::string program;
  {
    ProgressLines progress(line.quiet);
    Expected<std::string> cached =
        cachedProgram(line.model, line.choices, progress, toolPath);
    if (!cached)
      return cached.takeError();
    program = std::move(*cached);
  }
  std::vector<char *> arguments = {program.data()};
  for (const std::string &argument : line.programArguments)
    arguments.push_back(const_cast<char *>(argument.c_str()));
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  return llvm::createStringError(llvm::errnoAsErrorCode(),
                                 program + ": cannot be run");
}

static Expected<SchedulePlan> planOf(const CommandLine &line) {
  ProgressLines progress(/*quiet=*/true);
  ModelCompiler compiler(line.choices, progress);
  auto module = compiler.schedule(line.model);
  if (!module)
    return module.takeError();
  Expected<ModelOp> model = findScheduledModel(**module);
  if (!model)
    return model.takeError();
  return makeSchedulePlan(*model);
}

static Error plan(const CommandLine &line) {
  Expected<SchedulePlan> plan = planOf(line);
  if (!plan)
    return plan.takeError();
  PlanRequest request;
  request.batch = line.batch;
  request.context = line.choices.ctx;
  request.prompt = line.prompt;
  request.gpu = line.gpu;
  if (plan->arch != "cuda" && !line.gpu.empty())
    return llvm::createStringError("--gpu=" + line.gpu +
                                   ": times are predicted for target cuda, "
                                   "found " +
                                   plan->arch);
  if (plan->arch == "cuda" && line.gpu.empty())
    request.gpu = usualGpu(plan->targetCpu).str();
  if (line.json)
    llvm::outs() << requestJson(*plan, request) << "\n";
  else
    printPlan(*plan, request, llvm::outs());
  return Error::success();
}

/// What a program's kernels take on their chip, and what they do.
static Error dumpKernels(const CommandLine &line) {
  ProgressLines progress(/*quiet=*/true);
  ModelCompiler compiler(line.choices, progress);
  auto module = compiler.schedule(line.model);
  if (!module)
    return module.takeError();
  PtxOptions options;
  options.ptxVersion = static_cast<int>(line.choices.ptxVersion);
  Expected<DeviceCode> code = DeviceCode::create(**module, options);
  if (!code)
    return code.takeError();
  if (Error error = printKernelTable(*code, findPtxas(), llvm::outs()))
    return error;
  llvm::outs() << "\n";
  return plan(line);
}

static Error compile(const CommandLine &line, const char *toolPath) {
  if (llvm::sys::fs::equivalent(line.model, line.output))
    return llvm::createStringError(line.output +
                                   ": is the model itself, rule: a program is "
                                   "another file");
  ProgressLines progress(line.quiet);
  ModelCompiler compiler(line.choices, progress);
  if (line.dumpKernels && line.choices.target != "cuda")
    return llvm::createStringError(
        "--dump-kernels: rule: the target is cuda, found " +
        line.choices.target);
  if (Error error = compiler.writeProgram(line.model, line.output, toolPath))
    return error;
  return line.dumpKernels ? dumpKernels(line) : Error::success();
}

static Error bench(const CommandLine &line, const char *toolPath) {
  ProgressLines progress(line.quiet);
  Expected<std::string> program =
      cachedProgram(line.model, line.choices, progress, toolPath);
  if (!program)
    return program.takeError();
  Expected<SchedulePlan> plan = planOf(line);
  if (!plan)
    return plan.takeError();
  return benchProgram(*program, *plan, line, progress);
}

static Error runCommand(const CommandLine &line, const char *toolPath) {
  switch (line.command) {
  case CommandLine::Command::Compile:
    return compile(line, toolPath);
  case CommandLine::Command::Run:
    return run(line, toolPath);
  case CommandLine::Command::Plan:
    return plan(line);
  case CommandLine::Command::Bench:
    return bench(line, toolPath);
  }
  llvm_unreachable("every command returns");
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  CommandLine line;
  if (std::optional<int> status = parseCommandLine(argc, argv, line))
    return *status;
  if (Error error = runCommand(line, argv[0])) {
    llvm::errs() << "kvc: " << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  return 0;
}

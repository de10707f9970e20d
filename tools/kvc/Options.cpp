//===- Options.cpp --------------------------------------------------------===//
#include "tools/kvc/Options.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <iostream>
#include <limits>

using namespace kvc;

static const char Usage[] =
    "kvc compiles a language model into a program of its own.\n"
    "\n"
    "  kvc compile MODEL -o PROG   makes the program\n"
    "  kvc run MODEL --prompt TEXT makes it once, keeps it in a cache folder, "
    "runs it\n"
    "  kvc plan MODEL              says what it takes and does, kernel by "
    "kernel\n"
    "  kvc bench MODEL             measures it\n"
    "\n"
    "MODEL is a GGUF file, a JSON spec (docs/SPEC_WEIGHTS.md) or kvc's IR "
    "(.mlir).\n"
    "kvc COMMAND --help lists a command's options.\n";

namespace {
constexpr int64_t Most = std::numeric_limits<int32_t>::max();
constexpr int WrongCommandLine = 2;
} // namespace

static void addCompileOptions(CLI::App &app, CompileChoices &choices,
                              bool withPlace) {
  const char *group = "What to compile for";
  app.add_option("--target", choices.target, "Architecture")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--target-cpu", choices.targetCpu,
                 "Processor: native (this machine's), x86-64-v3, x86-64-v4, "
                 "or any name of LLVM's")
      ->capture_default_str()
      ->group(group);
  app.add_option("--chip", choices.chip,
                 "cuda: the GPU's chip, sm_80, sm_89, sm_90, sm_90a or sm_100")
      ->check(CLI::IsMember({"sm_80", "sm_89", "sm_90", "sm_90a", "sm_100"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--ptx-version", choices.ptxVersion,
                 "cuda: version of the PTX times ten, 80 for 8.0; 0: one that "
                 "fits the chip")
      ->check(CLI::Range(int64_t(0), int64_t(999)))
      ->capture_default_str()
      ->group(group);
  app.add_option("--vector-width", choices.vectorWidth,
                 "Bits of the registers that code is written for; 0: the "
                 "processor's widest")
      ->check(CLI::Range(int64_t(0), Most))
      ->capture_default_str()
      ->group(group);
  app.add_option("--kv-type", choices.kvType, "Element type of the KV cache")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--activations", choices.activations,
                 "What weights are multiplied with (default: int8 on the cpu, "
                 "for quantised weights; bf16 on cuda)")
      ->check(CLI::IsMember({"f32", "bf16", "int8"}))
      ->group(group);
  app.add_option("--sanitize", choices.sanitize,
                 "Have the program check itself while it runs")
      ->check(CLI::IsMember({"none", "address", "thread"}))
      ->capture_default_str()
      ->group(group);
  if (!withPlace)
    return;
  app.add_option("--weights", choices.weights,
                 "embed: behind the program's image; sidecar: in PROG.weights; "
                 "random: none, numbers that mean nothing, to measure with")
      ->check(CLI::IsMember({"embed", "sidecar", "random"}))
      ->capture_default_str()
      ->group(group);
}

static void addContext(CLI::App &app, CompileChoices &choices,
                       const char *text) {
  app.add_option("--ctx", choices.ctx, text)
      ->check(CLI::Range(int64_t(1), Most));
}

/// `kvc run` takes its own options wherever they stand; MODEL is the first
/// argument that is not an option, all others are the program's.
static void splitRunArguments(CLI::App &app, std::vector<std::string> &own,
                              std::vector<std::string> &rest) {
  std::vector<std::string> all;
  std::swap(all, own);
  bool haveModel = false;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string &argument = all[i];
    if (argument.empty() || argument.front() != '-') {
      (haveModel ? rest : own).push_back(argument);
      haveModel = true;
      continue;
    }
    std::string name = argument.substr(0, argument.find('='));
    bool mine = app.get_option_no_throw(name) != nullptr;
    // Before MODEL nothing can be the program's but the start of a mistake,
    // which the parser will name. An own option's value comes along; a value
    // of the program's is never taken for an option of ours.
    if (!mine && haveModel) {
      rest.push_back(argument);
      if (name == argument && i + 1 < all.size())
        rest.push_back(all[++i]);
      continue;
    }
    own.push_back(argument);
    bool takesValue =
        mine && app.get_option_no_throw(name)->get_items_expected_max() > 0;
    if (takesValue && name == argument && i + 1 < all.size())
      own.push_back(all[++i]);
  }
}

static std::optional<int> parse(CLI::App &app, const std::string &command,
                                std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end()); // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp &) {
    std::cout << app.help();
    return 0;
  } catch (const CLI::ParseError &error) {
    std::cerr << "kvc: " << error.what() << " (kvc " << command
              << " --help says what there is)\n";
    return WrongCommandLine;
  }
  return std::nullopt;
}

std::optional<int> kvc::parseCommandLine(int argc, char **argv,
                                         CommandLine &line) {
  std::string command = argc > 1 ? argv[1] : "";
  if (command == "--help" || command == "-h" || command == "help") {
    std::cout << Usage;
    return 0;
  }
  if (command == "--version") {
    std::cout << "kvc " KVC_VERSION "\n";
    return 0;
  }
  std::vector<std::string> arguments(argv + std::min(argc, 2), argv + argc);
  CLI::App app("", "kvc " + command);
  app.get_formatter()->column_width(34);
  app.add_option("MODEL", line.model, "GGUF file, JSON spec or .mlir")
      ->required();
  bool place = command == "compile";
  if (command == "compile") {
    line.command = CommandLine::Command::Compile;
    app.description("Makes a program of a model.");
    app.add_option("-o,--output", line.output, "The program to write")
        ->required();
    addContext(app, line.choices,
               "Positions to compile for, instead of the model's");
    app.add_flag("-q,--quiet", line.quiet, "No lines about progress");
    app.add_flag("--dump-kernels", line.dumpKernels,
                 "cuda: print each kernel's launches, registers, shared memory "
                 "and spills, and the plan with the times to expect");
  } else if (command == "run") {
    line.command = CommandLine::Command::Run;
    app.description(
        "Makes a program of a model, once, and runs it. All "
        "options that are not listed here\nare the program's "
        "(--prompt TEXT, --max-new-tokens N, --threads N, ...).\nPrograms "
        "are kept in $XDG_CACHE_HOME/kvc, or ~/.cache/kvc: remove "
        "them at any time.");
    app.add_flag("-q,--quiet", line.quiet, "No lines about progress");
  } else if (command == "plan") {
    line.command = CommandLine::Command::Plan;
    app.description("Says what a model's program takes and does: bytes by "
                    "arena; bytes, FLOPs and arithmetic\nintensity of each "
                    "kernel in prefill and decode.");
    app.add_option("--batch", line.batch, "Sequences")
        ->check(CLI::Range(int64_t(1), Most))
        ->capture_default_str();
    addContext(app, line.choices,
               "Positions each sequence may have, instead of the model's");
    app.add_option("--prompt", line.prompt, "Tokens of each prompt")
        ->check(CLI::Range(int64_t(1), Most))
        ->capture_default_str();
    app.add_option("--gpu", line.gpu,
                   "cuda: predict times on this GPU (default: the chip's "
                   "usual one)")
        ->check(CLI::IsMember({"h200", "h100", "a100"}));
    app.add_flag("--json", line.json, "Machine-readable");
  } else if (command == "bench") {
    line.command = CommandLine::Command::Bench;
    app.description("Measures prefill of 512 tokens and decode of 128 more, "
                    "medians of several runs.");
    app.add_option("--threads", line.threads,
                   "Numbers of threads to measure with: 1,2")
        ->delimiter(',')
        ->check(CLI::Range(int64_t(1), int64_t(4096)));
    app.add_option("--repetitions", line.repetitions, "Runs of each kind")
        ->check(CLI::Range(int64_t(1), int64_t(1000)))
        ->capture_default_str();
    app.add_flag("--json", line.json, "Machine-readable");
    app.add_flag("-q,--quiet", line.quiet, "No lines about progress");
  } else {
    std::cerr << "kvc: "
              << (command.empty() ? "no command"
                                  : "unknown command '" + command + "'")
              << ", one of compile, run, plan and bench is expected (kvc "
                 "--help says more)\n";
    return WrongCommandLine;
  }
  addCompileOptions(app, line.choices, place);
  if (line.command == CommandLine::Command::Run)
    splitRunArguments(app, arguments, line.programArguments);
  return parse(app, command, std::move(arguments));
}

//===- Options.h - The command line of kvc --------------------------------===//
//
// Apart from the rest of the driver: CLI11 throws, and what includes MLIR is
// compiled without exceptions.
#ifndef KVC_TOOLS_KVC_OPTIONS_H
#define KVC_TOOLS_KVC_OPTIONS_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kvc {

/// The choices of one compilation.
struct CompileChoices {
  std::string target = "cpu";
  std::string targetCpu = "native";
  std::string chip = "sm_90";
  int64_t ptxVersion = 0;  // 0: one that fits the chip
  int64_t vectorWidth = 0; // 0: the processor's widest
  std::string kvType = "f16";
  std::string activations; // empty: the target's usual
  int64_t ctx = 0;         // 0: the model's
  std::string weights = "embed";
  std::string sanitize = "none";
};

struct CommandLine {
  enum class Command { Compile, Run, Plan, Bench };

  Command command = Command::Compile;
  std::string model;
  CompileChoices choices;
  bool quiet = false;
  bool json = false;

  std::string output;                        // compile
  std::vector<std::string> programArguments; // run
  int64_t batch = 1;                         // plan
  int64_t prompt = 512;                      // plan
  bool dumpKernels = false;                  // compile
  std::string gpu;                           // plan; empty: the chip's usual
  std::vector<int64_t> threads;              // bench; empty: the program's own
  int64_t repetitions = 5;                   // bench
};

/// Reads the command line. Returns an exit status where the program ends here:
/// help was asked for, or something was wrong and has been said.
std::optional<int> parseCommandLine(int argc, char **argv, CommandLine &line);

} // namespace kvc

#endif // KVC_TOOLS_KVC_OPTIONS_H

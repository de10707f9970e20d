// The command line of a generated program.
#ifndef KVC_RUNTIME_OPTIONS_H
#define KVC_RUNTIME_OPTIONS_H

#include "runtime/GpuOptions.h"
#include "runtime/Sampler.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kvc {

/// Exit statuses of a generated program.
enum ExitStatus : int { ExitSuccess = 0, ExitFailure = 1, ExitUsage = 2 };

struct ProgramOptions {
  std::optional<std::string> Prompt;
  std::optional<std::string> PromptFile;
  std::optional<std::vector<int32_t>> PromptIds;
  std::optional<std::string> PromptsFile;
  std::optional<int64_t> MaxNewTokens;
  SamplingOptions Sampling;
  uint64_t Seed = 0;
  bool IgnoreEos = false;
  int Threads = 0; // 0: one for each physical core
  std::optional<int64_t> Context;
  int64_t PrefillChunk = 512;
  std::vector<int32_t> ForcedIds;
  std::optional<std::string> LogitsFile;
  std::optional<std::string> TraceFile;
  bool NoCache = false;
  bool Json = false;
  bool Profile = false;
  bool Info = false;
  std::string Device; // empty: what the program was compiled for
  GpuOptions Gpu;     // but for what the environment says
};

/// Reads the command line. When the program is to end at once, prints the help
/// or one line of error and returns the exit status.
std::optional<int> parseOptions(int argc, const char *const *argv,
                                ProgramOptions &options);

/// Reads "1,2,3"; false with an error naming `where` and what was found.
bool parseIds(const std::string &text, const std::string &where,
              std::vector<int32_t> &ids, std::string &error);

} // namespace kvc

#endif // KVC_RUNTIME_OPTIONS_H

// From prompts to completions: admission, prefill, the decode loop, stopping,
// and the figures that are reported.
#ifndef KVC_RUNTIME_GENERATE_H
#define KVC_RUNTIME_GENERATE_H

#include "runtime/Engine.h"
#include "runtime/Sampler.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kvc {

struct Request {
  std::vector<int32_t> Prompt;
  int64_t MaxNewTokens = 0;
  uint64_t Number = 0; // names the sequence to the random generator
};

struct GenerationOptions {
  SamplingOptions Sampling;
  uint64_t Seed = 0;
  int64_t Tokens = 0;             // ids from here on are never chosen
  std::vector<int32_t> StopIds;   // empty with --ignore-eos
  std::vector<int32_t> ForcedIds; // fed instead of the first chosen tokens
  bool NoCache = false; // run the whole sequence again for every token
};

enum class FinishReason { Stop, Length };

inline const char *finishName(FinishReason reason) {
  return reason == FinishReason::Stop ? "stop" : "length";
}

struct Completion {
  std::vector<int32_t> Ids;       // with the stop id, where one ended it
  std::vector<int32_t> ChosenIds; // what was chosen where ids were forced
  FinishReason Finish = FinishReason::Length;
  int64_t FirstTokenNanoseconds = 0; // since the run's start
  int64_t PrefillNanoseconds = 0;    // since its admission
  int64_t DecodeNanoseconds = 0;     // from the first token to the last
  int64_t KvBytes = 0;               // of its pages, at its end
  int64_t ProjectedRows = 0;         // its token rows through the model
};

/// What generation tells while it runs. Any function may be absent; one that
/// returns false ends the run with the error it set.
struct GenerationEvents {
  /// Before a token is chosen: the logits it is chosen from.
  std::function<bool(size_t request, const float *logits, std::string &error)>
      OnLogits;
  /// A token was added; `stops` when it is the stop id.
  std::function<bool(size_t request, int32_t id, bool stops,
                     std::string &error)>
      OnToken;
  std::function<bool(size_t request, const Completion &completion,
                     std::string &error)>
      OnFinish;
};

/// Checks what can be checked before any work: empty prompts, ids outside the
/// vocabulary, and lengths that do not fit the context.
bool checkRequests(const std::vector<Request> &requests,
                   const GenerationOptions &options, int64_t context,
                   int64_t vocab, std::string &error);

/// The limits an engine needs for these requests: as many at once as the
/// memory and the device allow, the others wait for pages to return.
Engine::Limits planLimits(const KvcProgramInfo &program,
                          const std::vector<Request> &requests,
                          const GenerationOptions &options, int64_t context,
                          int64_t chunk, int64_t memoryBytes,
                          int64_t maxSequences);

/// Runs checked requests to their ends; completions are in their order.
bool generate(Engine &engine, const std::vector<Request> &requests,
              const GenerationOptions &options, const GenerationEvents &events,
              std::vector<Completion> &completions, std::string &error);

} // namespace kvc

#endif // KVC_RUNTIME_GENERATE_H

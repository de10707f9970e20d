#include "runtime/Options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace kvc {

bool parseIds(const std::string &text, const std::string &where,
              std::vector<int32_t> &ids, std::string &error) {
  ids.clear();
  size_t next = 0;
  while (next <= text.size()) {
    size_t comma = std::min(text.find(',', next), text.size());
    std::string word = text.substr(next, comma - next);
    word.erase(0, std::min(word.find_first_not_of(" \t\n"), word.size()));
    word.erase(word.find_last_not_of(" \t\n") + 1);
    bool digits = !word.empty() && word.size() <= 10 &&
                  word.find_first_not_of("0123456789") == std::string::npos;
    uint64_t value = digits ? std::stoull(word) : 0;
    if (!digits || value > uint64_t(std::numeric_limits<int32_t>::max())) {
      error = where;
      error += ": '" + word +
               "' is no token id, write numbers with commas between them";
      return false;
    }
    ids.push_back(int32_t(value));
    next = comma + 1;
  }
  return true;
}

// CLI11 takes -1 for the largest unsigned number.
static bool parseSeed(const std::string &text, uint64_t &seed) {
  errno = 0;
  char *end = nullptr;
  seed = std::strtoull(text.c_str(), &end, 10);
  return errno == 0 && !text.empty() && *end == 0 &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

static int usageError(const char *program, std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::fprintf(stderr, "%s: error: %s (see --help)\n", program,
               message.c_str());
  return ExitUsage;
}

namespace {
// What CLI11 fills as text and the program reads more strictly afterwards.
struct RawOptions {
  std::string Prompt, PromptFile, PromptIds, PromptsFile;
  std::string ForcedIds, LogitsFile, TraceFile, Seed, SimSeed;
  int64_t MaxNewTokens = 0;
  int64_t Context = 0;
};
} // namespace

static void declare(CLI::App &app, RawOptions &raw, ProgramOptions &options) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  app.add_option("--prompt", raw.Prompt,
                 "Text to continue; special tokens written in it are "
                 "recognised, BOS follows the model file")
      ->type_name("TEXT");
  app.add_option("--prompt-file", raw.PromptFile,
                 "File that holds the text to continue, byte for byte")
      ->type_name("FILE");
  app.add_option("--prompt-ids", raw.PromptIds, "Token ids to continue: 1,2,3")
      ->type_name("IDS");
  app.add_option("--prompts", raw.PromptsFile,
                 "A batch in one run: a JSON object a line, with \"prompt\" or "
                 "\"prompt_ids\"")
      ->type_name("FILE.jsonl");
  app.add_option("--max-new-tokens", raw.MaxNewTokens,
                 "Tokens to generate (default: 128, or what the context leaves "
                 "where that is less)")
      ->type_name("N")
      ->check(CLI::Range(int64_t(1), most));
  app.add_option("--temperature", options.Sampling.Temperature,
                 "Divides the logits; 0, the default, takes the largest logit. "
                 "Sampling runs in this order: temperature, top-k, top-p, "
                 "min-p, draw; ties go to the lowest id")
      ->type_name("T")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--top-k", options.Sampling.TopK,
                 "Keep the K largest logits (default: 0, all)")
      ->type_name("K")
      ->check(CLI::Range(int64_t(0), most));
  app.add_option("--top-p", options.Sampling.TopP,
                 "Keep the fewest tokens that reach probability P together, "
                 "the one that crosses it included (default: 1, all)")
      ->type_name("P")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--min-p", options.Sampling.MinP,
                 "Keep tokens with at least P times the probability of the "
                 "likeliest (default: 0, all)")
      ->type_name("P")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--seed", raw.Seed,
                 "Key of the random numbers, Philox4x32-10 over the sequence's "
                 "number and the token's position (default: 0)")
      ->type_name("S");
  app.add_flag("--ignore-eos", options.IgnoreEos,
               "Go on after an end-of-text token");
  app.add_option("--threads", options.Threads,
                 "Worker threads (default: the physical cores available)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  app.add_option("--ctx", raw.Context,
                 "Most tokens of a sequence, prompt included (default: what "
                 "the program was compiled for)")
      ->type_name("N")
      ->check(CLI::Range(int64_t(1), most));
  app.add_option("--prefill-chunk", options.PrefillChunk,
                 "Most token rows of a prefill step (default: 512)")
      ->type_name("N")
      ->check(CLI::Range(int64_t(1), most));
  app.add_option("--force-ids", raw.ForcedIds,
                 "Feed these ids instead of the tokens that are chosen, to "
                 "compare with other implementations")
      ->type_name("IDS");
  app.add_option("--logits", raw.LogitsFile,
                 "Write the logits each token is chosen from, float32 [tokens, "
                 "vocabulary]; with --prompts a prefix: P.0.npy, P.1.npy, ...")
      ->type_name("F.npy");
  CLI::Option *trace =
      app.add_option(
             "--trace", raw.TraceFile,
             "Write what each kernel wrote, a JSON object for each row: "
             "a hash of its bits, the size of its values")
          ->type_name("F.jsonl");
  app.add_flag("--no-cache", options.NoCache,
               "Run the whole sequence again for every token");
  app.add_flag("--json", options.Json,
               "Print one JSON object a sequence instead of text");
  app.add_flag("--profile", options.Profile,
               "Print each kernel's time beside the plan's bytes and FLOPs, "
               "to stderr")
      ->excludes(trace);
  app.add_option("--device", options.Device,
                 "Where to run: cpu; or, for programs compiled for GPUs, cuda "
                 "(the default) and sim, which interprets their PTX on the CPU")
      ->type_name("DEVICE")
      ->check(CLI::IsMember({"cpu", "cuda", "sim"}));
  app.add_option("--gpu", options.Gpu.Gpu, "Number of the GPU (default: 0)")
      ->type_name("N")
      ->check(CLI::Range(0, 1023));
  app.add_option("--sim-seed", raw.SimSeed,
                 "sim: the order in which blocks run, from a seed; 0, the "
                 "default, is ascending")
      ->type_name("S");
  app.add_option("--sim-checks", options.Gpu.SimChecks,
                 "sim: look for races, uninitialised reads and asynchronous "
                 "copies that are read too early (default: on)")
      ->type_name("on|off");
  app.add_flag("--sim-meter", options.Gpu.SimMeter,
               "sim: print each kernel's instructions, bytes and bank "
               "conflicts beside the plan's bytes, to stderr and in --json");
  app.add_option("--ptx", options.Gpu.PtxFile,
                 "sim: run this PTX instead of the program's")
      ->type_name("FILE");
  app.add_flag("--info", options.Info, "Print what this program is, and end");
}

std::optional<int> parseOptions(int argc, const char *const *argv,
                                ProgramOptions &options) {
  const char *program = argc > 0 ? argv[0] : "program";
  RawOptions raw;
  CLI::App app("Generates text with the language model compiled into this "
               "program.",
               program);
  declare(app, raw, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &) {
    std::fputs(app.help().c_str(), stdout);
    return ExitSuccess;
  } catch (const CLI::ParseError &failure) {
    return usageError(program, failure.what());
  }

  auto given = [&app](const char *name) { return app.count(name) != 0; };
  if (given("--prompt"))
    options.Prompt = raw.Prompt;
  if (given("--prompt-file"))
    options.PromptFile = raw.PromptFile;
  if (given("--prompts"))
    options.PromptsFile = raw.PromptsFile;
  if (given("--logits"))
    options.LogitsFile = raw.LogitsFile;
  if (given("--trace"))
    options.TraceFile = raw.TraceFile;
  if (given("--max-new-tokens"))
    options.MaxNewTokens = raw.MaxNewTokens;
  if (given("--ctx"))
    options.Context = raw.Context;
  std::string error;
  struct Seed {
    const char *Name;
    const std::string &Text;
    uint64_t &Value;
  };
  for (const Seed &seed :
       {Seed{"--seed", raw.Seed, options.Seed},
        Seed{"--sim-seed", raw.SimSeed, options.Gpu.SimSeed}})
    if (given(seed.Name) && !parseSeed(seed.Text, seed.Value))
      return usageError(program, std::string(seed.Name) + ": '" + seed.Text +
                                     "' is no integer of 0 to " +
                                     std::to_string(UINT64_MAX));
  for (const char *name :
       {"--sim-seed", "--sim-checks", "--sim-meter", "--ptx"})
    if (given(name) && options.Device != "sim")
      return usageError(program,
                        std::string(name) + " is an option of --device=sim");
  if (given("--prompt-ids")) {
    options.PromptIds.emplace();
    if (!parseIds(raw.PromptIds, "--prompt-ids", *options.PromptIds, error))
      return usageError(program, error);
  }
  if (given("--force-ids") &&
      !parseIds(raw.ForcedIds, "--force-ids", options.ForcedIds, error))
    return usageError(program, error);

  const SamplingOptions &sampling = options.Sampling;
  if (std::isnan(sampling.Temperature) || std::isnan(sampling.TopP) ||
      std::isnan(sampling.MinP))
    return usageError(program, "NaN is no setting of the sampler");
  if (sampling.TopP == 0)
    return usageError(program, "--top-p is 0, it must be above 0 to keep any "
                               "token");
  if (options.Info)
    return std::nullopt;
  int sources =
      int(options.Prompt.has_value()) + int(options.PromptFile.has_value()) +
      int(options.PromptIds.has_value()) + int(options.PromptsFile.has_value());
  if (sources != 1)
    return usageError(program,
                      std::to_string(sources) +
                          " prompts given, exactly one of --prompt, "
                          "--prompt-file, --prompt-ids and --prompts is "
                          "wanted");
  return std::nullopt;
}

} // namespace kvc

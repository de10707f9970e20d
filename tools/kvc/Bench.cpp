//===- Bench.cpp ----------------------------------------------------------===//
#include "tools/kvc/Bench.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Program.h"

#include <nlohmann/json.hpp>

using namespace kvc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using nlohmann::ordered_json;

namespace {

constexpr int64_t PrefillTokens = 512;
constexpr int64_t DecodeTokens = 128;

struct Rates {
  double prefill = 0; // tokens a second
  double decode = 0;
};

/// What a run of a program said.
struct Output {
  int status = 0;
  std::string out;
  std::string firstErrorLine;
};

} // namespace

static Expected<Output> runProgram(StringRef program,
                                   const std::vector<std::string> &arguments) {
  llvm::SmallString<128> out, err;
  if (std::error_code code =
          llvm::sys::fs::createTemporaryFile("kvc-bench", "out", out))
    return llvm::createStringError(code, "cannot write temporary files");
  llvm::FileRemover removeOut(out);
  if (std::error_code code =
          llvm::sys::fs::createTemporaryFile("kvc-bench", "err", err))
    return llvm::createStringError(code, "cannot write temporary files");
  llvm::FileRemover removeErr(err);
  std::vector<StringRef> views = {program};
  views.insert(views.end(), arguments.begin(), arguments.end());
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(out),
                                          StringRef(err)};
  Output result;
  std::string message;
  result.status = llvm::sys::ExecuteAndWait(program, views, std::nullopt,
                                            redirects, 0, 0, &message);
  if (auto buffer = llvm::MemoryBuffer::getFile(out))
    result.out = (*buffer)->getBuffer().str();
  if (auto buffer = llvm::MemoryBuffer::getFile(err))
    result.firstErrorLine =
        (*buffer)->getBuffer().ltrim().split('\n').first.str();
  if (result.status != 0)
    return llvm::createStringError(
        program + ": ended with status " + llvm::Twine(result.status) + ": " +
        (message.empty() ? result.firstErrorLine : message));
  return result;
}

static Expected<Rates> measure(StringRef program, int64_t threads,
                               int64_t prompt, int64_t fresh, int64_t vocab) {
  // Ids of no meaning: speed does not depend on them.
  std::string ids;
  uint64_t state = 1;
  for (int64_t i = 0; i < prompt; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    ids += (i ? "," : "") +
           std::to_string((state >> 33) % static_cast<uint64_t>(vocab));
  }
  std::vector<std::string> arguments = {
      "--prompt-ids", ids,     "--max-new-tokens", std::to_string(fresh),
      "--ignore-eos", "--json"};
  if (threads)
    arguments.insert(arguments.end(), {"--threads", std::to_string(threads)});
  Expected<Output> output = runProgram(program, arguments);
  if (!output)
    return output.takeError();
  auto root = ordered_json::parse(output->out, nullptr,
                                  /*allow_exceptions=*/false);
  auto stats = root.is_object() ? root.find("stats") : root.end();
  Rates rates;
  for (auto [name, value] : {std::pair{"prefill_tps", &rates.prefill},
                             std::pair{"decode_tps", &rates.decode}}) {
    if (!root.is_object() || stats == root.end() || !stats->is_object() ||
        !stats->contains(name) || !(*stats)[name].is_number())
      return llvm::createStringError(program + ": its --json has no stats." +
                                     name);
    *value = (*stats)[name].get<double>();
  }
  return rates;
}

static double median(std::vector<double> values) {
  llvm::sort(values);
  size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle]
                           : (values[middle - 1] + values[middle]) / 2;
}

Error kvc::benchProgram(StringRef program, const SchedulePlan &plan,
                        const CommandLine &line, ProgressLines &progress) {
  int64_t prompt =
      std::clamp<int64_t>(plan.maxContext * 4 / 5, 1, PrefillTokens);
  // The first new token belongs to the prefill.
  int64_t fresh =
      std::clamp<int64_t>(plan.maxContext - prompt, 1, DecodeTokens + 1);

  std::vector<int64_t> threadCounts = line.threads;
  if (threadCounts.empty())
    threadCounts.push_back(0);
  ordered_json results = ordered_json::array();
  for (int64_t threads : threadCounts) {
    std::vector<double> prefills, decodes;
    for (int64_t run = 0; run <= line.repetitions; ++run) {
      progress.step(("run " + llvm::Twine(run) + " of " +
                     llvm::Twine(line.repetitions) +
                     (run == 0 ? " (not counted)" : ""))
                        .str());
      Expected<Rates> rates =
          measure(program, threads, prompt, fresh, plan.vocab);
      if (!rates)
        return rates.takeError();
      if (run == 0)
        continue;
      prefills.push_back(rates->prefill);
      decodes.push_back(rates->decode);
    }
    progress.finish();
    results.push_back({{"threads", threads},
                       {"prefill_tokens", prompt},
                       {"decode_tokens", fresh - 1},
                       {"repetitions", line.repetitions},
                       {"prefill_tps", median(prefills)},
                       {"decode_tps", median(decodes)}});
    if (!line.json)
      llvm::outs() << (threads ? llvm::Twine(threads).str() + " threads"
                               : std::string("default threads"))
                   << ": prefill of " << prompt << " "
                   << llvm::format("%.1f", median(prefills))
                   << " tok/s, decode of " << fresh - 1 << " "
                   << llvm::format("%.1f", median(decodes)) << " tok/s\n";
  }
  if (line.json)
    llvm::outs() << ordered_json{{"model", line.model}, {"runs", results}}.dump(
                        2, ' ', /*ensure_ascii=*/true,
                        ordered_json::error_handler_t::replace)
                 << "\n";
  return Error::success();
}

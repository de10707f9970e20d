#include "runtime/Generate.h"
#include "runtime/Checked.h"
#include "runtime/Philox.h"
#include "runtime/Team.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvc {

bool checkRequests(const std::vector<Request> &requests,
                   const GenerationOptions &options, int64_t context,
                   int64_t vocab, std::string &error) {
  auto name = [&](size_t index) {
    return requests.size() == 1 ? std::string("the prompt")
                                : "prompt " + std::to_string(index);
  };
  auto checkIds = [&](const std::vector<int32_t> &ids,
                      const std::string &where) {
    for (int32_t id : ids) {
      if (id >= 0 && id < vocab)
        continue;
      error = where + " holds token id " + std::to_string(id) +
              ", ids must be 0 to " + std::to_string(vocab - 1);
      return false;
    }
    return true;
  };
  if (!checkIds(options.ForcedIds, "--force-ids"))
    return false;
  for (size_t i = 0; i != requests.size(); ++i) {
    const Request &request = requests[i];
    int64_t length = int64_t(request.Prompt.size());
    if (length == 0) {
      error = name(i) + " has no tokens: there is nothing to continue";
      return false;
    }
    if (!checkIds(request.Prompt, name(i)))
      return false;
    int64_t wanted = request.MaxNewTokens;
    if (length > context || wanted > context - length) {
      error = name(i) + " has " + std::to_string(length) + " tokens and " +
              std::to_string(wanted) +
              " new ones are asked for, the context holds " +
              std::to_string(context) +
              ": shorten the prompt or --max-new-tokens";
      return false;
    }
    if (int64_t(options.ForcedIds.size()) > wanted) {
      error = "--force-ids has " + std::to_string(options.ForcedIds.size()) +
              " ids, more than the " + std::to_string(wanted) +
              " of --max-new-tokens";
      return false;
    }
  }
  return true;
}

// The last token is never fed, but a page for it costs nothing to promise.
static int64_t pagesOf(const Request &request, int64_t pageTokens) {
  return divideUp(int64_t(request.Prompt.size()) + request.MaxNewTokens,
                  pageTokens);
}

Engine::Limits planLimits(const KvcProgramInfo &program,
                          const std::vector<Request> &requests,
                          const GenerationOptions &options, int64_t context,
                          int64_t chunk, int64_t memoryBytes,
                          int64_t maxSequences) {
  int64_t pages = 0;
  int64_t largest = 1;
  int64_t tokens = 0;
  int64_t longest = 1;
  for (const Request &request : requests) {
    int64_t wanted = pagesOf(request, program.page_tokens);
    pages += wanted;
    largest = std::max(largest, wanted);
    longest = std::max(longest,
                       int64_t(request.Prompt.size()) + request.MaxNewTokens);
    tokens += int64_t(request.Prompt.size()) +
              (options.NoCache ? request.MaxNewTokens : 0);
  }
  // Half of what the weights leave: the workspace and the rest of the machine
  // want memory too. One request always gets its pages, or the device refuses.
  if (program.page_bytes > 0) {
    int64_t budget =
        std::max<int64_t>(0, memoryBytes - program.weights_bytes) / 2;
    pages = std::min(pages, budget / program.page_bytes);
  }
  Engine::Limits limits;
  // Page tables and partial results are as wide as the longest sequence.
  limits.Context = std::min(context, longest);
  limits.Pages = std::min<int64_t>(std::max(pages, largest),
                                   std::numeric_limits<int32_t>::max());
  limits.Sequences = std::min<int64_t>(int64_t(requests.size()), maxSequences);
  limits.Rows = std::max(limits.Sequences, std::min(chunk, tokens));
  limits.Outputs = limits.Sequences;
  return limits;
}

namespace {
class Generation {
public:
  Generation(Engine &engine, const std::vector<Request> &requests,
             const GenerationOptions &options, const GenerationEvents &events,
             std::vector<Completion> &completions, std::string &error)
      : Model(engine), Requests(requests), Options(options), Events(events),
        Results(completions), Error(error),
        Chooser(options.Sampling, options.Tokens) {}

  bool run();

private:
  struct Active {
    size_t Request;
    int32_t Sequence;
    int64_t Pages;    // promised to it
    int64_t Admitted; // when
    int64_t FirstToken;
    bool Finished;
    std::vector<int32_t> Tokens; // prompt and completion
  };
  void admit();
  double uniformOf(const Active &active) const;
  std::optional<KvcSampling> samplingOf(const Active &active) const;
  bool takeOutput(Active &active, const StepOutput &output);
  int32_t chooseToken(const Active &active, const StepOutput &output,
                      const float *logits);
  bool firstTokens(size_t firstNew);
  bool nextTokens();
  bool retire();
  Engine::OutputFunction choose(size_t first);

  Engine &Model;
  const std::vector<Request> &Requests;
  const GenerationOptions &Options;
  const GenerationEvents &Events;
  std::vector<Completion> &Results;
  std::string &Error;
  Sampler Chooser;
  std::vector<Active> Running;
  std::vector<Engine::Feed> Feeds;
  size_t Next = 0; // the first request that has not been admitted
  int64_t PromisedPages = 0;
  int64_t Start = 0;
};
} // namespace

// Admission is in order and exact: a request starts when all pages it can ever
// need are free, so that it never fails half-way.
void Generation::admit() {
  int64_t pageTokens = Model.program().page_tokens;
  while (Next != Requests.size() &&
         int64_t(Running.size()) < Model.limits().Sequences) {
    const Request &request = Requests[Next];
    int64_t pages = pagesOf(request, pageTokens);
    if (pages > Model.limits().Pages - PromisedPages)
      return;
    PromisedPages += pages;
    int64_t now = nowNanoseconds();
    Running.push_back(
        {Next, Model.sequences().add(), pages, now, 0, false, request.Prompt});
    Running.back().Tokens.reserve(request.Prompt.size() +
                                  size_t(request.MaxNewTokens));
    ++Next;
  }
}

double Generation::uniformOf(const Active &active) const {
  return Options.Sampling.Temperature == 0
             ? 0
             : uniformAt(Options.Seed, Requests[active.Request].Number,
                         active.Tokens.size());
}

std::optional<KvcSampling> Generation::samplingOf(const Active &active) const {
  if (!Model.device().choosesTokens())
    return std::nullopt;
  const SamplingOptions &options = Options.Sampling;
  KvcSampling sampling = {};
  if (options.Temperature != 0)
    sampling.inverse_temperature = float(1 / options.Temperature);
  sampling.top_k = int32_t(options.TopK);
  sampling.top_p = float(options.TopP);
  sampling.min_p = float(options.MinP);
  // Rounding up must not reach 1, which no draw may be.
  sampling.uniform =
      std::min(float(uniformOf(active)), std::nextafter(1.0f, 0.0f));
  sampling.tokens = int32_t(Options.Tokens);
  return sampling;
}

/// The token, or -1 with an error. What the device chose stands whether or not
/// the logits are wanted, so that asking for them changes nothing; only where
/// it could choose none are they looked at, to say why.
int32_t Generation::chooseToken(const Active &active, const StepOutput &output,
                                const float *logits) {
  int32_t id = -1;
  if (Model.device().choosesTokens()) {
    id = output.chosen();
    if (id >= 0 && id < Options.Tokens)
      return id;
    if (!logits)
      logits = output.logits(Error);
    if (!logits)
      return -1;
    if (Chooser.chooseGreedy(logits, Error) >= 0)
      Error = "the device chose token " + std::to_string(id) + ", it must be " +
              "0 to " + std::to_string(Options.Tokens - 1);
    id = -1;
  } else {
    id = Chooser.choose(logits, uniformOf(active), Error);
  }
  if (id < 0)
    Error += " (sequence " + std::to_string(active.Request) + ", position " +
             std::to_string(active.Tokens.size()) + ")";
  return id;
}

bool Generation::takeOutput(Active &active, const StepOutput &output) {
  const Request &request = Requests[active.Request];
  Completion &result = Results[active.Request];
  const float *logits = nullptr;
  if (Events.OnLogits || !Model.device().choosesTokens()) {
    logits = output.logits(Error);
    if (!logits)
      return false;
  }
  if (Events.OnLogits && !Events.OnLogits(active.Request, logits, Error))
    return false;

  size_t index = result.Ids.size();
  int32_t id = chooseToken(active, output, logits);
  if (id < 0)
    return false;
  bool forced = index < Options.ForcedIds.size();
  if (forced) {
    result.ChosenIds.push_back(id);
    id = Options.ForcedIds[index];
  }
  bool stops = !forced &&
               std::find(Options.StopIds.begin(), Options.StopIds.end(), id) !=
                   Options.StopIds.end();
  if (index == 0) {
    active.FirstToken = nowNanoseconds();
    result.FirstTokenNanoseconds = active.FirstToken - Start;
    result.PrefillNanoseconds = active.FirstToken - active.Admitted;
  }
  result.Ids.push_back(id);
  active.Tokens.push_back(id);
  if (Events.OnToken && !Events.OnToken(active.Request, id, stops, Error))
    return false;
  if (stops || int64_t(result.Ids.size()) == request.MaxNewTokens) {
    result.Finish = stops ? FinishReason::Stop : FinishReason::Length;
    result.DecodeNanoseconds = nowNanoseconds() - active.FirstToken;
    active.Finished = true;
  }
  return true;
}

// Feed i belongs to Running[first + i].
Engine::OutputFunction Generation::choose(size_t first) {
  return [this, first](size_t feed, int64_t, const StepOutput &output) {
    return takeOutput(Running[first + feed], output);
  };
}

bool Generation::firstTokens(size_t firstNew) {
  Feeds.clear();
  for (size_t i = firstNew; i != Running.size(); ++i) {
    const std::vector<int32_t> &prompt = Requests[Running[i].Request].Prompt;
    Feeds.push_back({Running[i].Sequence, prompt.data(), int64_t(prompt.size()),
                     Outputs::Last, samplingOf(Running[i]),
                     int64_t(Running[i].Request)});
    Results[Running[i].Request].ProjectedRows += int64_t(prompt.size());
  }
  return Model.prefill(Feeds, choose(firstNew), Error);
}

bool Generation::nextTokens() {
  Feeds.clear();
  for (Active &active : Running) {
    int64_t length = int64_t(active.Tokens.size());
    if (Options.NoCache) {
      Model.sequences().truncate(active.Sequence, 0);
      Feeds.push_back({active.Sequence, active.Tokens.data(), length});
    } else {
      Feeds.push_back({active.Sequence, &active.Tokens.back(), 1});
    }
    Feeds.back().Sampling = samplingOf(active);
    Feeds.back().Request = int64_t(active.Request);
    Results[active.Request].ProjectedRows += Feeds.back().Count;
  }
  return Options.NoCache ? Model.prefill(Feeds, choose(0), Error)
                         : Model.decode(Feeds, choose(0), Error);
}

// Pages return at once, so that a waiting request can start with the next step.
bool Generation::retire() {
  for (Active &active : Running) {
    if (!active.Finished)
      continue;
    Completion &result = Results[active.Request];
    result.KvBytes = int64_t(Model.sequences().pages(active.Sequence).size()) *
                     Model.program().page_bytes;
    Model.sequences().remove(active.Sequence);
    PromisedPages -= active.Pages;
    if (Events.OnFinish && !Events.OnFinish(active.Request, result, Error))
      return false;
  }
  Running.erase(
      std::remove_if(Running.begin(), Running.end(),
                     [](const Active &active) { return active.Finished; }),
      Running.end());
  return true;
}

bool Generation::run() {
  Results.assign(Requests.size(), Completion());
  Start = nowNanoseconds();
  for (;;) {
    size_t firstNew = Running.size();
    admit();
    if (Running.size() != firstNew && (!firstTokens(firstNew) || !retire()))
      return false;
    if (Running.empty()) {
      if (Next == Requests.size())
        return true;
      if (PromisedPages == 0 &&
          pagesOf(Requests[Next], Model.program().page_tokens) >
              Model.limits().Pages) {
        Error = "prompt " + std::to_string(Next) +
                " needs more KV pages than the engine has";
        return false;
      }
      continue;
    }
    if (!nextTokens() || !retire())
      return false;
  }
}

bool generate(Engine &engine, const std::vector<Request> &requests,
              const GenerationOptions &options, const GenerationEvents &events,
              std::vector<Completion> &completions, std::string &error) {
  return Generation(engine, requests, options, events, completions, error)
      .run();
}

} // namespace kvc

#include "runtime/Report.h"
#include "runtime/Checked.h"
#include "runtime/Cpu.h"
#include "runtime/Format.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <sys/resource.h>

namespace kvc {

using Json = nlohmann::ordered_json;

static int64_t peakResidentBytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t(usage.ru_maxrss) * 1024;
}

static double perSecond(int64_t count, int64_t nanoseconds) {
  return nanoseconds > 0 ? double(count) * 1e9 / double(nanoseconds) : 0;
}

// The CPU has no clock and meter of its own; what it has is there already.
static void addDevice(const DeviceFacts &facts, Json &stats) {
  stats["device"] = facts.Kind;
  if (!facts.Name.empty())
    stats["device_name"] = facts.Name;
  // Of the whole run, not of the sequence: steps are shared.
  if (facts.StepNanoseconds[0] >= 0) {
    stats["prefill_device_ms"] = double(facts.StepNanoseconds[0]) * 1e-6;
    stats["decode_device_ms"] = double(facts.StepNanoseconds[1]) * 1e-6;
    stats["prefill_steps"] = facts.Steps[0];
    stats["decode_steps"] = facts.Steps[1];
  }
  if (!facts.KernelsJson.empty())
    stats["kernels"] = Json::parse(facts.KernelsJson, nullptr, false);
  if (!facts.StepsJson.empty())
    stats["steps"] = Json::parse(facts.StepsJson, nullptr, false);
  if (!facts.MeterJson.empty())
    stats["meter"] = Json::parse(facts.MeterJson, nullptr, false);
}

std::string formatJson(const Request &request, const Completion &completion,
                       const std::string &text, bool forced,
                       const RunFacts &facts) {
  int64_t prompt = int64_t(request.Prompt.size());
  int64_t generated = int64_t(completion.Ids.size());
  Json stats;
  stats["prompt_tokens"] = prompt;
  stats["generated_tokens"] = generated;
  stats["load_ms"] = facts.LoadMilliseconds;
  stats["ttft_ms"] = double(completion.FirstTokenNanoseconds) * 1e-6;
  stats["prefill_tps"] = perSecond(prompt, completion.PrefillNanoseconds);
  stats["decode_tps"] = perSecond(generated - 1, completion.DecodeNanoseconds);
  stats["prefill_ms"] = double(completion.PrefillNanoseconds) * 1e-6;
  stats["decode_ms"] = double(completion.DecodeNanoseconds) * 1e-6;
  stats["peak_rss"] = peakResidentBytes();
  stats["kv_bytes"] = completion.KvBytes;
  stats["projected_rows"] = completion.ProjectedRows;
  stats["threads"] = facts.Threads;
  stats["isa"] = facts.Isa;
  stats["seed"] = facts.Seed;
  addDevice(facts.Device, stats);

  Json object;
  object["prompt_ids"] = request.Prompt;
  object["ids"] = completion.Ids;
  if (forced)
    object["chosen_ids"] = completion.ChosenIds;
  object["text"] = text;
  object["finish_reason"] = finishName(completion.Finish);
  object["stats"] = std::move(stats);
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string formatFigures(const std::vector<Request> &requests,
                          const std::vector<Completion> &completions,
                          const RunFacts &facts) {
  int64_t prompt = 0;
  int64_t generated = 0;
  int64_t kvBytes = 0;
  int64_t firstToken = 0;
  int64_t end = 0;
  for (size_t i = 0; i != requests.size(); ++i) {
    const Completion &completion = completions[i];
    prompt += int64_t(requests[i].Prompt.size());
    generated += int64_t(completion.Ids.size());
    kvBytes += completion.KvBytes;
    firstToken = i == 0
                     ? completion.FirstTokenNanoseconds
                     : std::min(firstToken, completion.FirstTokenNanoseconds);
    end = std::max(end, completion.FirstTokenNanoseconds +
                            completion.DecodeNanoseconds);
  }
  std::string rates;
  if (requests.size() == 1)
    rates = formatText(
        "%s; time to first token %.1f ms, prefill %.1f tok/s, decode %.1f "
        "tok/s",
        finishName(completions[0].Finish), double(firstToken) * 1e-6,
        perSecond(prompt, completions[0].PrefillNanoseconds),
        perSecond(generated - 1, completions[0].DecodeNanoseconds));
  else
    rates = formatText(
        "%zu sequences; time to first token %.1f ms, %.1f tok/s in "
        "all",
        requests.size(), double(firstToken) * 1e-6, perSecond(generated, end));
  return formatText("%lld prompt tokens, %lld generated, ", (long long)prompt,
                    (long long)generated) +
         rates +
         formatText("; %lld KV bytes, load %.1f ms, %d threads, %lld bytes of "
                    "memory at most",
                    (long long)kvBytes, facts.LoadMilliseconds, facts.Threads,
                    (long long)peakResidentBytes());
}

static int64_t kernelCount(const KvcDeviceCode &code) {
  std::set<std::string> names;
  struct List {
    const KvcLaunch *Launches;
    int64_t Count;
  };
  for (const List &list : {List{code.prefill, code.prefill_count},
                           List{code.decode, code.decode_count},
                           List{code.choose, code.choose_count}})
    for (int64_t i = 0; i < list.Count; ++i)
      names.insert(list.Launches[i].kernel);
  return int64_t(names.size());
}

std::string formatInfo(const KvcProgramInfo &program, const Plan &plan,
                       const std::string &payloadPath, int64_t tokens) {
  std::string text;
  auto line = [&text](const char *name, const std::string &value) {
    text += formatText("%-14s", name) + value + "\n";
  };
  auto number = [](int64_t value) { return std::to_string(value); };
  int64_t pages = divideUp(program.max_context, program.page_tokens);
  CheckedSize cache = CheckedSize(pages) * program.page_bytes;
  std::string stops;
  for (int32_t id : plan.StopIds)
    stops += (stops.empty() ? "" : ",") + number(id);

  line("model", plan.Model.empty() ? "(unnamed)" : plan.Model);
  line("target", std::string(program.target_cpu ? program.target_cpu : "") +
                     " (" + (program.isa ? program.isa : "") + ")");
  if (const KvcDeviceCode *code = program.device_code)
    line("chip", std::string(code->chip) + ", " + number(kernelCount(*code)) +
                     " kernels, " + number(code->prefill_count) +
                     " launches a prefill step, " + number(code->decode_count) +
                     " a decode step, " +
                     (code->cubin ? "machine code and PTX" : "PTX"));
  line("this CPU", cpuName() + ", " + number(availableCores()) + " cores");
  line("ABI", number(program.abi_version));
  line("vocabulary",
       number(program.vocab) + " logits, " +
           (tokens < 0 ? "no tokenizer" : number(tokens) + " tokens"));
  line("stop ids", stops.empty() ? "none" : stops);
  line("context", number(program.max_context) + " tokens");
  if (!plan.Activations.empty())
    line("activations", plan.Activations);
  line("KV cache",
       (plan.Cache.Type.empty() ? "" : plan.Cache.Type + ", ") +
           number(program.page_bytes) + " bytes a page of " +
           number(program.page_tokens) + " tokens, " +
           (cache.valid() ? number(cache.value()) : "more than 2^63") +
           " bytes at the full context");
  line("workspace", number(program.rows_bytes) + " bytes a row, " +
                        number(program.outputs_bytes) + " an output, " +
                        number(program.worker_bytes) + " a row and worker");
  line("weights", number(program.weights_bytes) + " bytes " +
                      (program.random_ranges == 0
                           ? "in " + payloadPath
                           : "of random numbers, for measurements only"));
  return text;
}

} // namespace kvc

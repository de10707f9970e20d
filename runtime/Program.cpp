#include "runtime/Program.h"
#include "runtime/Arena.h"
#include "runtime/Cpu.h"
#include "runtime/CpuDevice.h"
#include "runtime/Engine.h"
#include "runtime/Generate.h"
#include "runtime/Npy.h"
#include "runtime/Options.h"
#include "runtime/Payload.h"
#include "runtime/Prompts.h"
#include "runtime/RandomWeights.h"
#include "runtime/Report.h"
#include "runtime/Tokenizer.h"
#include "runtime/Trace.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace kvc {

static constexpr int64_t DefaultNewTokens = 128;

namespace {
/// One run of a generated program, in the order things happen.
class Run {
public:
  Run(const KvcProgramInfo &program, const ProgramOptions &options)
      : Program(program), Options(options), Start(nowNanoseconds()) {}

  bool load(std::string &error);
  bool prepare(std::string &error);
  bool generateAll(std::string &error);
  void printInfo() const;

private:
  std::unique_ptr<Device> makeDevice(std::string &error) const;
  bool openLogits(std::string &error);
  bool openTrace(std::string &error);
  bool takeToken(size_t request, int32_t id, bool stops, std::string &error);
  bool finishRequest(size_t request, std::string &error);
  bool printResults(std::string &error);
  bool print(const std::string &text, std::string &error) const;
  bool streams() const { return !Options.Json && Requests.size() == 1; }

  const KvcProgramInfo &Program;
  const ProgramOptions &Options;
  int64_t Start;
  Plan Schedule;
  Payload Data;
  std::unique_ptr<Tokenizer> Words;
  std::vector<Request> Requests;
  GenerationOptions Generation;
  std::unique_ptr<Engine> Model;
  RunFacts Facts;
  std::vector<std::unique_ptr<NpyWriter>> Logits;
  std::unique_ptr<Trace> Kernels;
  std::vector<std::string> Texts;
  std::vector<TextStream> Streams;
  std::vector<Completion> Completions;
};
} // namespace

bool Run::load(std::string &error) {
  if (!checkProgram(Program, error) ||
      !checkInstructionSets(Program.isa, Program.target_cpu, error) ||
      !parsePlan(Program.plan_json, Schedule, error) ||
      !checkRandomRanges(Program, error) ||
      !Data.openForThisProgram(
          Program.random_ranges == 0 ? uint64_t(Program.weights_bytes) : 0,
          Program.weights_digest, error))
    return false;
  if (Data.tokenizerBytes() != 0) {
    Words = Tokenizer::create(Data.tokenizer(), Data.tokenizerBytes(), error);
    if (!Words) {
      error = Data.path() + ": " + error;
      return false;
    }
  }
  return true;
}

void Run::printInfo() const {
  std::fputs(formatInfo(Program, Schedule, Data.path(),
                        Words ? int64_t(Words->size()) : -1)
                 .c_str(),
             stdout);
}

bool Run::openLogits(std::string &error) {
  if (!Options.LogitsFile)
    return true;
  for (size_t i = 0; i != Requests.size(); ++i) {
    std::string path = *Options.LogitsFile;
    if (Options.PromptsFile)
      path += "." + std::to_string(i) + ".npy";
    Logits.push_back(std::make_unique<NpyWriter>(path, Program.vocab));
    if (!Logits.back()->open(error))
      return false;
  }
  return true;
}

bool Run::openTrace(std::string &error) {
  if (!Options.TraceFile)
    return true;
  Kernels = std::make_unique<Trace>(*Options.TraceFile, Schedule);
  Model->setTrace(Kernels.get());
  return Kernels->open(Program, error);
}

bool Run::prepare(std::string &error) {
  int64_t context = Options.Context.value_or(Program.max_context);
  if (context > Program.max_context) {
    error = "--ctx is " + std::to_string(context) +
            ", the program was compiled for at most " +
            std::to_string(Program.max_context);
    return false;
  }
  std::vector<std::vector<int32_t>> prompts;
  if (!readPrompts(Options, Words.get(), prompts, error))
    return false;

  Generation.Sampling = Options.Sampling;
  Generation.Seed = Options.Seed;
  Generation.Tokens =
      Words ? std::min(int64_t(Words->size()), Program.vocab) : Program.vocab;
  Generation.ForcedIds = Options.ForcedIds;
  Generation.NoCache = Options.NoCache;
  if (!Options.IgnoreEos) {
    Generation.StopIds = Schedule.StopIds;
    if (Words)
      Generation.StopIds.insert(Generation.StopIds.end(),
                                Words->stopIds().begin(),
                                Words->stopIds().end());
  }
  for (std::vector<int32_t> &prompt : prompts) {
    Request request;
    // Unless a number was asked for, the context's end is no error.
    int64_t room = context - int64_t(prompt.size());
    int64_t wanted = Options.ForcedIds.empty()
                         ? std::min(DefaultNewTokens, room)
                         : int64_t(Options.ForcedIds.size());
    request.MaxNewTokens =
        Options.MaxNewTokens.value_or(std::max<int64_t>(1, wanted));
    request.Number = Requests.size();
    request.Prompt = std::move(prompt);
    Requests.push_back(std::move(request));
  }
  if (!checkRequests(Requests, Generation, context, Program.vocab, error))
    return false;

  std::unique_ptr<Device> device = makeDevice(error);
  if (!device)
    return false;
  Engine::Limits limits =
      planLimits(Program, Requests, Generation, context, Options.PrefillChunk,
                 device->memoryBytes(), device->maxSequences());
  const uint8_t *weights =
      Program.random_ranges == 0 ? Data.weights() : nullptr;
  Model = Engine::create(Program, Schedule, weights, limits, std::move(device),
                         error);
  if (!Model || !openLogits(error) || !openTrace(error))
    return false;
  Facts.LoadMilliseconds = double(nowNanoseconds() - Start) * 1e-6;
  Facts.Threads = Model->device().workers();
  Facts.Isa = Program.isa ? Program.isa : "";
  Facts.Seed = Options.Seed;
  return true;
}

static bool isSet(const char *variable) {
  const char *value = std::getenv(variable);
  return value && std::strcmp(value, "1") == 0;
}

std::unique_ptr<Device> Run::makeDevice(std::string &error) const {
  const KvcDeviceCode *code = Program.device_code;
  const char *usual = code ? "cuda" : "cpu";
  const std::string &kind = Options.Device.empty() ? usual : Options.Device;
  if ((kind == "cpu") != (code == nullptr)) {
    error = "--device is " + kind + ", this program was compiled for " +
            (code ? std::string("cuda or sim (") + code->chip + ")"
                  : std::string("the cpu"));
    return nullptr;
  }
  if (!code) {
    CpuOptions options;
    options.Workers = Options.Threads;
    options.Profile = Options.Profile;
    options.Poison = isSet("KVC_POISON");
    return std::make_unique<CpuDevice>(options);
  }
  GpuOptions options = Options.Gpu;
  options.Simulate = kind == "sim";
  options.Threads = Options.Threads;
  options.Profile = Options.Profile;
  options.Poison = isSet("KVC_POISON");
  options.Synchronise = isSet("KVC_SYNC");
  options.StepTimes = isSet("KVC_STEP_TIMES");
  return std::unique_ptr<Device>(
      static_cast<Device *>(code->create(code, &options, &error)));
}

bool Run::print(const std::string &text, std::string &error) const {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
      std::fflush(stdout) == 0)
    return true;
  error = std::string("cannot write to stdout: ") + std::strerror(errno);
  return false;
}

bool Run::takeToken(size_t request, int32_t id, bool stops,
                    std::string &error) {
  std::string piece;
  if (!Words)
    piece = (Texts[request].empty() ? "" : ",") + std::to_string(id);
  else if (!stops)
    Words->appendPiece(id, piece);
  Texts[request] += piece;
  if (!streams())
    return true;
  std::string whole = Streams[request].push(piece);
  return whole.empty() || print(whole, error);
}

bool Run::finishRequest(size_t request, std::string &error) {
  if (streams() && !print(Streams[request].finish() + "\n", error))
    return false;
  return Logits.empty() || Logits[request]->finish(error);
}

bool Run::printResults(std::string &error) {
  if (Options.Profile)
    std::fputs(formatProfile(Schedule, Model->device().profile()).c_str(),
               stderr);
  Facts.Device = Model->device().facts();
  std::fputs(Facts.Device.MeterTable.c_str(), stderr);
  if (Options.Json) {
    for (size_t i = 0; i != Requests.size(); ++i) {
      // Ids stand in for text only where they are all there is to stream.
      std::string text = Words ? Texts[i] : "";
      if (!print(formatJson(Requests[i], Completions[i], text,
                            !Options.ForcedIds.empty(), Facts) +
                     "\n",
                 error))
        return false;
    }
    return true;
  }
  if (!streams())
    for (size_t i = 0; i != Requests.size(); ++i)
      if (!print("--- " + std::to_string(i) + "\n" + Texts[i] + "\n", error))
        return false;
  std::fprintf(stderr, "%s\n",
               formatFigures(Requests, Completions, Facts).c_str());
  return true;
}

bool Run::generateAll(std::string &error) {
  Texts.resize(Requests.size());
  Streams.resize(Requests.size());
  GenerationEvents events;
  if (!Logits.empty())
    events.OnLogits = [this](size_t request, const float *logits,
                             std::string &error) {
      return Logits[request]->addRow(logits, error);
    };
  events.OnToken = [this](size_t request, int32_t id, bool stops,
                          std::string &error) {
    return takeToken(request, id, stops, error);
  };
  events.OnFinish = [this](size_t request, const Completion &,
                           std::string &error) {
    return finishRequest(request, error);
  };
  return generate(*Model, Requests, Generation, events, Completions, error) &&
         (!Kernels || Kernels->finish(error)) && printResults(error);
}

int runProgram(const KvcProgramInfo &program, int argc,
               const char *const *argv) {
  ProgramOptions options;
  if (std::optional<int> status = parseOptions(argc, argv, options))
    return *status;
  std::string error;
  Run run(program, options);
  bool done = run.load(error);
  if (done && options.Info)
    run.printInfo();
  else
    done = done && run.prepare(error) && run.generateAll(error);
  if (done)
    return ExitSuccess;
  std::fprintf(stderr, "%s: error: %s\n", argc > 0 ? argv[0] : "program",
               error.c_str());
  return ExitFailure;
}

} // namespace kvc

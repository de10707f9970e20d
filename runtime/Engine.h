// A loaded model: sequences on a device, stepped by the program's two
// functions. The engine cuts work into steps; it never looks at tokens.
#ifndef KVC_RUNTIME_ENGINE_H
#define KVC_RUNTIME_ENGINE_H

#include "runtime/Batch.h"
#include "runtime/Device.h"
#include "runtime/Sequences.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kvc {

/// Refuses a program of another ABI or with impossible numbers. Reads nothing
/// behind the version and size fields before those have been compared.
bool checkProgram(const KvcProgramInfo &program, std::string &error);

/// One wanted row of a step, valid while it is handed out.
class StepOutput {
public:
  StepOutput(Device &device, int64_t index) : Source(device), Index(index) {}
  /// Its logits; null where the device fails to hand them over.
  const float *logits(std::string &error) const {
    return Source.logits(Index, error);
  }
  /// The token chosen for it, where the feed asked for one.
  int32_t chosen() const { return Source.chosen(Index); }

private:
  Device &Source;
  int64_t Index;
};

class Engine {
public:
  struct Limits {
    int64_t Context = 0;   // most tokens of a sequence
    int64_t Pages = 0;     // KV pages in all
    int64_t Rows = 0;      // most rows of a step: prefill's chunk
    int64_t Sequences = 0; // most sequences of a step
    int64_t Outputs = 0;   // most outputs of a step; at least Sequences
  };

  /// New tokens of one sequence. The tokens stay the caller's.
  struct Feed {
    int32_t Sequence;
    const int32_t *Tokens;
    int64_t Count;
    Outputs Wanted = Outputs::Last;
    /// How the device is to choose a token for each wanted row, if at all: all
    /// feeds of a call or none, and only if the device chooses tokens.
    std::optional<KvcSampling> Sampling = std::nullopt;
    /// The sequence's number in a trace.
    int64_t Request = 0;
  };

  /// Receives each wanted row: the feed's index, the row's index within the
  /// feed, the row. False stops the work.
  using OutputFunction =
      std::function<bool(size_t feed, int64_t row, const StepOutput &output)>;

  /// The program has passed checkProgram; program and weights outlive the
  /// engine.
  static std::unique_ptr<Engine>
  create(const KvcProgramInfo &program, const Plan &plan,
         const uint8_t *weights, const Limits &limits,
         std::unique_ptr<Device> device, std::string &error);

  /// Appends the feeds' tokens to their sequences in steps of at most
  /// Limits::Rows rows, ragged over sequences. Every feed has one token or
  /// more, each of a different sequence.
  bool prefill(const std::vector<Feed> &feeds, const OutputFunction &output,
               std::string &error);
  /// One token a feed, through the decode program, in as few steps as
  /// Limits::Sequences allows.
  bool decode(const std::vector<Feed> &feeds, const OutputFunction &output,
              std::string &error);

  /// The kernels of all coming steps are traced. The trace stays the caller's.
  void setTrace(Trace *trace) {
    Tracer = trace;
    Target->setTrace(trace);
  }

  Sequences &sequences() { return Store; }
  const KvcProgramInfo &program() const { return Program; }
  const Limits &limits() const { return Bounds; }
  Device &device() { return *Target; }
  /// Token rows pushed through the model so far.
  int64_t projectedRows() const { return ProjectedRows; }

private:
  Engine(const KvcProgramInfo &program, const Limits &limits,
         std::unique_ptr<Device> device);
  struct Piece {
    size_t Feed;
    int64_t Offset;
    int64_t Count;
    Outputs Wanted;
  };
  bool runStep(Phase phase, const std::vector<Feed> &feeds,
               const OutputFunction &output, std::string &error);

  const KvcProgramInfo &Program;
  Limits Bounds;
  std::unique_ptr<Device> Target;
  Sequences Store;
  BatchBuilder Builder;
  std::vector<Piece> Pieces; // of the step being built
  std::vector<KvcSampling> Samplings;
  int64_t ProjectedRows = 0;
  Trace *Tracer = nullptr;
};

} // namespace kvc

#endif // KVC_RUNTIME_ENGINE_H

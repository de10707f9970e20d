#include "runtime/Engine.h"
#include "runtime/Checked.h"

#include <algorithm>
#include <limits>

namespace kvc {

bool checkProgram(const KvcProgramInfo &program, std::string &error) {
  if (program.abi_version != KVC_ABI_VERSION) {
    error = "the program has ABI version " +
            std::to_string(program.abi_version) + ", this runtime has " +
            std::to_string(KVC_ABI_VERSION) +
            ": compile it again with this kvc";
    return false;
  }
  struct Size {
    const char *Name;
    uint32_t Program;
    size_t Runtime;
  };
  for (const Size &size :
       {Size{"KvcBatch", program.batch_bytes, sizeof(KvcBatch)},
        Size{"KvcArenas", program.arenas_bytes, sizeof(KvcArenas)},
        Size{"KvcProgramInfo", program.info_bytes, sizeof(KvcProgramInfo)}}) {
    if (size.Program == size.Runtime)
      continue;
    error = std::string("the program's ") + size.Name + " has " +
            std::to_string(size.Program) + " bytes, this runtime's has " +
            std::to_string(size.Runtime) + ": compile it again with this kvc";
    return false;
  }

  if (!program.device_code && (!program.prefill || !program.decode)) {
    error = "the program has neither functions nor device code";
    return false;
  }
  constexpr int64_t most32 = std::numeric_limits<int32_t>::max();
  constexpr int64_t most64 = std::numeric_limits<int64_t>::max();
  if (!checkRanges("the program's",
                   {{"weights_bytes", program.weights_bytes, 0, most64},
                    {"page_bytes", program.page_bytes, 0, most64},
                    {"page_tokens", program.page_tokens, 1, most32},
                    {"rows_bytes", program.rows_bytes, 0, most64},
                    {"outputs_bytes", program.outputs_bytes, 0, most64},
                    {"worker_bytes", program.worker_bytes, 0, most64},
                    {"attention_rows", program.attention_rows, 1, most32},
                    {"vocab", program.vocab, 1, most32},
                    {"max_context", program.max_context, 1, most32},
                    {"random_ranges", program.random_ranges, 0, most32},
                    {"rope_tables", program.rope_tables, 0, 1024}},
                   error))
    return false;
  int64_t floats = 0;
  for (int64_t i = 0; i != program.rope_tables; ++i) {
    int64_t pairs = program.rope_table[i].pairs;
    if (pairs < 0 || pairs > most32) {
      error = "the program's rope table " + std::to_string(i) + " has " +
              std::to_string(pairs) + " pairs";
      return false;
    }
    floats += 2 * pairs;
  }
  if (floats != program.rope_floats) {
    error = "the program's rope tables have " + std::to_string(floats) +
            " floats a row, it states " + std::to_string(program.rope_floats);
    return false;
  }
  return true;
}

Engine::Engine(const KvcProgramInfo &program, const Limits &limits,
               std::unique_ptr<Device> device)
    : Program(program), Bounds(limits), Target(std::move(device)),
      Store(int32_t(limits.Pages), program.page_tokens, limits.Context,
            *Target),
      Builder(program, limits.Rows, limits.Outputs) {}

std::unique_ptr<Engine> Engine::create(const KvcProgramInfo &program,
                                       const Plan &plan, const uint8_t *weights,
                                       const Limits &limits,
                                       std::unique_ptr<Device> device,
                                       std::string &error) {
  if (limits.Context < 1 || limits.Context > program.max_context) {
    error = "a context of " + std::to_string(limits.Context) +
            " tokens was asked for, the program was compiled for 1 to " +
            std::to_string(program.max_context);
    return nullptr;
  }
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  if (limits.Pages < 1 || limits.Pages > most || limits.Rows < 1 ||
      limits.Rows > most || limits.Sequences < 1 ||
      limits.Sequences > limits.Rows || limits.Outputs < limits.Sequences ||
      limits.Outputs > most) {
    error = "impossible limits: " + std::to_string(limits.Pages) + " pages, " +
            std::to_string(limits.Rows) + " rows, " +
            std::to_string(limits.Sequences) + " sequences, " +
            std::to_string(limits.Outputs) + " outputs";
    return nullptr;
  }
  CheckedSize rope =
      CheckedSize(limits.Rows) * program.rope_floats * int64_t(sizeof(float));
  if (!rope.valid()) {
    error = "the rope angles of " + std::to_string(limits.Rows) +
            " rows overflow 63 bits";
    return nullptr;
  }
  DeviceLimits sizes;
  sizes.Pages = limits.Pages;
  sizes.Rows = limits.Rows;
  sizes.Outputs = limits.Outputs;
  sizes.Sequences = limits.Sequences;
  sizes.Tokens = limits.Context;
  if (!device->load(program, plan, weights, sizes, error))
    return nullptr;
  return std::unique_ptr<Engine>(
      new Engine(program, limits, std::move(device)));
}

bool Engine::runStep(Phase phase, const std::vector<Feed> &feeds,
                     const OutputFunction &output, std::string &error) {
  Builder.clear();
  Samplings.clear();
  for (const Piece &piece : Pieces) {
    const Feed &feed = feeds[piece.Feed];
    int64_t first = Store.length(feed.Sequence);
    if (!Store.append(feed.Sequence, piece.Count, error))
      return false;
    Builder.add(feed.Tokens + piece.Offset, piece.Count, first,
                Store.pages(feed.Sequence), piece.Wanted);
    if (feed.Sampling)
      Samplings.resize(size_t(Builder.outputs()), *feed.Sampling);
  }
  if (Tracer) {
    std::vector<int64_t> requests;
    requests.reserve(Pieces.size());
    for (const Piece &piece : Pieces)
      requests.push_back(feeds[piece.Feed].Request);
    Tracer->beginStep(phase, Builder.batch(), std::move(requests));
  }
  const KvcSampling *sampling = Samplings.empty() ? nullptr : Samplings.data();
  if (!Target->step(phase, Builder.batch(), sampling, error))
    return false;
  ProjectedRows += Builder.rows();

  int64_t next = 0; // outputs are in the order of rows
  for (const Piece &piece : Pieces) {
    if (piece.Wanted == Outputs::None)
      continue;
    int64_t row = piece.Wanted == Outputs::Last ? piece.Count - 1 : 0;
    for (; row != piece.Count; ++row)
      if (!output(piece.Feed, piece.Offset + row, StepOutput(*Target, next++)))
        return false;
  }
  return true;
}

bool Engine::prefill(const std::vector<Feed> &feeds,
                     const OutputFunction &output, std::string &error) {
  Pieces.clear();
  int64_t rows = 0;
  int64_t outputs = 0;
  auto flush = [&] {
    bool done = Pieces.empty() || runStep(Phase::Prefill, feeds, output, error);
    Pieces.clear();
    rows = outputs = 0;
    return done;
  };
  for (size_t index = 0; index != feeds.size(); ++index) {
    const Feed &feed = feeds[index];
    for (int64_t offset = 0; offset != feed.Count;) {
      int64_t room = Bounds.Rows - rows;
      if (feed.Wanted == Outputs::All)
        room = std::min(room, Bounds.Outputs - outputs);
      else if (outputs == Bounds.Outputs)
        room = 0;
      if (room == 0 || int64_t(Pieces.size()) == Bounds.Sequences) {
        if (!flush())
          return false;
        continue;
      }
      int64_t count = std::min(room, feed.Count - offset);
      bool last = offset + count == feed.Count;
      Outputs wanted =
          feed.Wanted == Outputs::Last && !last ? Outputs::None : feed.Wanted;
      Pieces.push_back({index, offset, count, wanted});
      rows += count;
      outputs += wanted == Outputs::None   ? 0
                 : wanted == Outputs::Last ? 1
                                           : count;
      offset += count;
    }
  }
  return flush();
}

bool Engine::decode(const std::vector<Feed> &feeds,
                    const OutputFunction &output, std::string &error) {
  for (size_t first = 0; first < feeds.size();
       first += size_t(Bounds.Sequences)) {
    size_t end = std::min(feeds.size(), first + size_t(Bounds.Sequences));
    Pieces.clear();
    for (size_t index = first; index != end; ++index)
      Pieces.push_back({index, 0, 1, feeds[index].Wanted});
    if (!runStep(Phase::Decode, feeds, output, error))
      return false;
  }
  return true;
}

} // namespace kvc

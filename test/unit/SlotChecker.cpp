//===- SlotChecker.cpp - An independent look at a schedule ----------------===//
#include "SlotChecker.h"

#include <optional>
#include <vector>

using namespace mlir;
using namespace kvc;

namespace {

/// A read or a write of a slot, of one run of one dispatch.
struct Event {
  SlotAttr slot;
  bool writes;
  int64_t dispatch; // counts runs
  int64_t group;    // counts barriers
  Operation *op;
};

struct CacheEvent {
  bool writes;
  int64_t dispatch, group;
};

struct Recorder {
  std::vector<Event> slots;
  std::vector<CacheEvent> cache;
  int64_t dispatches = 0, groups = 0;

  void run(Block &block) {
    for (Operation &op : block) {
      if (isa<BarrierOp>(op))
        ++groups;
      if (auto layers = dyn_cast<LayersOp>(op))
        for (int64_t i = 0, n = std::min<int64_t>(3, layers.getCount()); i < n;
             ++i)
          run(layers.getBody().front());
      if (auto dispatch = dyn_cast<DispatchOp>(op)) {
        for (Operation &inner : dispatch.getBody().front())
          record(&inner);
        ++dispatches;
      }
    }
  }

  void record(Operation *op) {
    if (auto read = dyn_cast<ReadOp>(op))
      slots.push_back({read.getSlot(), false, dispatches, groups, op});
    if (auto write = dyn_cast<WriteOp>(op))
      slots.push_back({write.getSlot(), true, dispatches, groups, op});
    if (isa<CacheAppendOp>(op))
      cache.push_back({true, dispatches, groups});
    if (isa<ScoresOp, ContextOp, AttentionOp>(op))
      cache.push_back({false, dispatches, groups});
  }
};

/// A value: from its write to the last read before the next write of its bytes.
struct Lifetime {
  SlotAttr slot;
  int64_t from, to; // dispatches
  Event write;
  std::optional<Event> last;
};

} // namespace

static bool overlap(SlotAttr a, SlotAttr b) {
  return a.getSpace() == b.getSpace() &&
         a.getOffset() < b.getOffset() + b.getStride() &&
         b.getOffset() < a.getOffset() + a.getStride();
}

/// Every use of the read value is the sum, product or activation whose result
/// is what the write stores.
static bool elementwise(Event read, Event write) {
  if (read.slot != write.slot)
    return false;
  auto value = cast<ReadOp>(read.op).getResult();
  Operation *maker = cast<WriteOp>(write.op).getInput().getDefiningOp();
  if (!isa_and_present<AddOp, MulOp, ActivationOp, SoftCapOp>(maker))
    return false;
  return llvm::all_of(value.getUsers(),
                      [&](Operation *user) { return user == maker; });
}

static std::string checkBounds(ProgramOp program) {
  std::string error;
  program.walk([&](Operation *op) {
    SlotAttr slot;
    if (auto read = dyn_cast<ReadOp>(op))
      slot = read.getSlot();
    else if (auto write = dyn_cast<WriteOp>(op))
      slot = write.getSlot();
    else if (auto stage = dyn_cast<StageOp>(op))
      slot = stage.getSlot();
    if (!slot || slot.getSpace() == Space::Logits)
      return;
    std::optional<uint64_t> bytes =
        slot.getSpace() == Space::Rows      ? program.getRowsBytes()
        : slot.getSpace() == Space::Outputs ? program.getOutputsBytes()
                                            : program.getWorkerBytes();
    int64_t end = slot.getOffset() + slot.getStride();
    if (!bytes || end > static_cast<int64_t>(*bytes) ||
        slot.getOffset() % 64 != 0 || slot.getStride() % 64 != 0)
      error = "a slot lies outside its arena or is not aligned";
  });
  return error;
}
std::string checkSlots(ProgramOp program) {
  if (std::string error = checkBounds(program); !error.empty())
    return error;
  Recorder recorder;
  recorder.run(program.getBody().front());
  const std::vector<Event> &events = recorder.slots;

  std::vector<Lifetime> values;
  for (size_t i = 0; i < events.size(); ++i) {
    const Event &event = events[i];
    if (event.writes) {
      values.push_back({event.slot, event.dispatch, event.dispatch, event, {}});
      continue;
    }
    // The last write of any of these bytes must be of this very slot.
    Lifetime *producer = nullptr;
    for (Lifetime &value : values)
      if (overlap(value.slot, event.slot))
        producer = &value;
    if (!producer)
      return "a slot is read before it is written";
    if (producer->slot != event.slot)
      return "a slot is read that another one overwrote";
    producer->to = event.dispatch;
    producer->last = event;
  }
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t j = i + 1; j < values.size(); ++j) {
      const Lifetime &a = values[i], &b = values[j];
      if (!overlap(a.slot, b.slot) || b.from > a.to)
        continue;
      if (a.last && b.from == a.to && a.from < b.from &&
          elementwise(*a.last, b.write))
        continue;
      return "two values live in the same bytes at once";
    }

  for (size_t i = 0; i < events.size(); ++i)
    for (size_t j = i + 1; j < events.size(); ++j) {
      const Event &a = events[i], &b = events[j];
      if (a.dispatch != b.dispatch && a.group == b.group &&
          (a.writes || b.writes) && overlap(a.slot, b.slot))
        return "no barrier stands between dispatches that share a slot";
    }
  for (const CacheEvent &a : recorder.cache)
    for (const CacheEvent &b : recorder.cache)
      if (a.dispatch != b.dispatch && a.group == b.group &&
          (a.writes || b.writes))
        return "no barrier stands between dispatches that share the cache";
  return {};
}

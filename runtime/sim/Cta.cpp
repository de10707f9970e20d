#include "runtime/sim/Exec.h"

#include <algorithm>
#include <random>

namespace kvc::sim {

void Launch::fail(uint64_t cta, const std::string &text) {
  std::lock_guard<std::mutex> hold(Lock);
  if (Error.empty() || cta < ErrorCta) {
    Error = text;
    ErrorCta = cta;
  }
  Failed.store(true, std::memory_order_relaxed);
}

void Counters::reset(const Launch &launch) {
  Sum = Meter();
  Executed.assign(launch.Entry->Code.size(), 0);
  Hits.assign(launch.Entry->Code.size(), nullptr);
  Sectors.assign(launch.Memory->names().size(), 0);
  Loaded = Stored = Sectors;
}

static void settle(std::vector<StoredRange> &ranges) {
  for (const StoredRange &range : ranges)
    std::memset(range.First, Settled, range.Bytes);
  ranges.clear();
}

void Counters::settle() { sim::settle(Unfenced); }

void Cta::noteStore(uint8_t *written, uint64_t bytes) {
  if (!Unfenced.empty()) {
    StoredRange &last = Unfenced.back();
    if (last.First + last.Bytes == written) {
      last.Bytes += bytes;
      return;
    }
  }
  Unfenced.push_back({written, bytes});
}

/// Any thread's fence is taken to be for all that the CTA has stored: a barrier
/// before it makes it so, and shared memory's checker sees to barriers.
void Cta::fence() { settle(Unfenced); }

void Cta::retire() {
  // Their number is bounded, at the price of what is found later.
  constexpr size_t most = 1 << 22;
  if (Count->Unfenced.size() > most)
    Count->settle();
  Count->Unfenced.insert(Count->Unfenced.end(), Unfenced.begin(),
                         Unfenced.end());
  Unfenced.clear();
}

Cta::Cta() = default;
Cta::~Cta() = default;

uint32_t Cta::index(const Inst &inst) const {
  return uint32_t(&inst - Run->Entry->Code.data());
}

std::string Cta::place(uint32_t instruction) const {
  const Inst &inst = Run->Entry->Code[instruction];
  std::string text;
  if (inst.Line && inst.Line <= Run->Code->Lines.size())
    text = Run->Code->Lines[inst.Line - 1];
  return "line " + std::to_string(inst.Line) + " `" + text + "`";
}

void Cta::fail(const Warp &warp, const Inst &inst, uint32_t lane,
               const std::string &what) {
  auto dims = [](Dim3 d) {
    return "(" + std::to_string(d.X) + "," + std::to_string(d.Y) + "," +
           std::to_string(d.Z) + ")";
  };
  std::string text = "kernel '" + Run->Entry->Info.Name + "', " +
                     place(index(inst)) + ", CTA " + dims(Id) + ", warp " +
                     std::to_string(warp.Index);
  if (lane < Lanes) {
    uint32_t thread = warp.Index * Lanes + lane;
    Dim3 block = Run->Config.Block;
    text += " lane " + std::to_string(lane) + ", thread " +
            dims({thread % block.X, thread / block.X % block.Y,
                  thread / block.X / block.Y});
  }
  Run->fail(Linear, text + ": " + what);
}

void Cta::prepare(Launch &launch, Counters &counters) {
  Run = &launch;
  Count = &counters;
  Checks = launch.Options.Checks;
  const Kernel &kernel = *launch.Entry;
  uint32_t threads = uint32_t(launch.Config.Block.count());
  Warps.resize((threads + Lanes - 1) / Lanes);
  Order.resize(Warps.size());

  // A stride that is a power of two would put the same register of all warps
  // into the same set of the host's caches.
  FileStride = kernel.FileBytes + 64;
  FileStore.resize(FileStride * Warps.size() + 64);
  uint8_t *files = FileStore.data();
  files += -reinterpret_cast<uintptr_t>(files) & 63;
  // What reads a register before it is written gets the same value each time.
  std::memset(files, 0xFB, FileStride * Warps.size());
  for (uint32_t w = 0; w != Warps.size(); ++w) {
    Warp &warp = Warps[w];
    warp.File = files + w * FileStride;
    warp.Block = this;
    warp.Index = w;
    uint32_t lanes = std::min(threads - w * Lanes, Lanes);
    warp.Initial = lanes == Lanes ? FullMask : (1u << lanes) - 1;
    for (size_t c = 0; c != kernel.Constants.size(); ++c) {
      const Constant &constant = kernel.Constants[c];
      uint64_t value = launch.Constants[c];
      if (constant.Bytes == 0)
        warp.predicate(constant.Slot) = uint32_t(value);
      else
        for (uint32_t lane = 0; lane != Lanes; ++lane)
          std::memcpy(warp.File + constant.Slot + lane * constant.Bytes, &value,
                      constant.Bytes);
    }
  }

  SharedBytes = launch.SharedBytes;
  SharedStore.resize(SharedBytes + 1024);
  Shared = SharedStore.data();
  Shared += -reinterpret_cast<uintptr_t>(Shared) & 1023;
  LocalBytes = (kernel.Info.Local + 15) / 16 * 16;
  uint64_t local = uint64_t(LocalBytes) * Warps.size() * Lanes;
  LocalStore.resize(2 * local + 16);
  Local = LocalStore.data();
  Local += -reinterpret_cast<uintptr_t>(Local) & 15;
  LocalWritten = Local + local;
}

void Cta::setSpecials(Warp &warp) {
  Dim3 block = Run->Config.Block, grid = Run->Config.Grid;
  uint32_t base = warp.Index * Lanes;
  for (const SpecialRegister &special : Run->Entry->Specials)
    for (uint32_t lane = 0; lane != Lanes; ++lane) {
      uint32_t thread = base + lane, bit = 1u << lane;
      uint64_t value = 0;
      switch (special.Which) {
      case Special::TidX:
        value = thread % block.X;
        break;
      case Special::TidY:
        value = thread / block.X % block.Y;
        break;
      case Special::TidZ:
        value = thread / block.X / block.Y;
        break;
      case Special::NtidX:
        value = block.X;
        break;
      case Special::NtidY:
        value = block.Y;
        break;
      case Special::NtidZ:
        value = block.Z;
        break;
      case Special::CtaidX:
        value = Id.X;
        break;
      case Special::CtaidY:
        value = Id.Y;
        break;
      case Special::CtaidZ:
        value = Id.Z;
        break;
      case Special::NctaidX:
        value = grid.X;
        break;
      case Special::NctaidY:
        value = grid.Y;
        break;
      case Special::NctaidZ:
        value = grid.Z;
        break;
      case Special::LaneId:
        value = lane;
        break;
      case Special::WarpId:
        value = warp.Index;
        break;
      case Special::NwarpId:
        value = Warps.size();
        break;
      case Special::SmId:
        value = Linear % Run->Sms;
        break;
      case Special::NsmId:
        value = Run->Sms;
        break;
      case Special::LanemaskEq:
        value = bit;
        break;
      case Special::LanemaskLt:
        value = bit - 1;
        break;
      case Special::LanemaskLe:
        value = bit | (bit - 1);
        break;
      case Special::LanemaskGt:
        value = ~(bit | (bit - 1));
        break;
      case Special::LanemaskGe:
        value = ~(bit - 1);
        break;
      case Special::DynamicSharedSize:
        value = Run->Config.DynamicShared;
        break;
      case Special::TotalSharedSize:
        value = SharedBytes;
        break;
      case Special::GridId:
      case Special::Zero:
        break;
      case Special::One:
        value = 1;
        break;
      }
      std::memcpy(warp.File + special.Slot + lane * special.Bytes, &value,
                  special.Bytes);
    }
}

void Cta::start(uint64_t linear) {
  Linear = linear;
  Dim3 grid = Run->Config.Grid;
  Id = {uint32_t(linear % grid.X), uint32_t(linear / grid.X % grid.Y),
        uint32_t(linear / grid.X / grid.Y)};
  Executed = 0;
  Tag = uint8_t(linear % (Settled - 1) + 1);
  bool waited = !Checks || !(Run->Entry->GridWait || Run->Options.Dependent);
  for (Warp &warp : Warps) {
    warp.Alive = warp.Active = warp.Initial;
    warp.Pc = 0;
    warp.MergePc = ~uint32_t(0);
    warp.Raised = Event::None;
    warp.AtBarrier = false;
    warp.GridWaited = waited;
    warp.Turns = 0;
    warp.Others.clear();
    setSpecials(warp);
    Order[warp.Index] = warp.Index;
  }
  if (Run->Options.Seed) {
    std::mt19937_64 random(Run->Options.Seed * 0x9E3779B97F4A7C15u + linear);
    std::shuffle(Order.begin(), Order.end(), random);
  }
  for (Barrier &barrier : Barriers)
    barrier = Barrier();
  Arrivals.clear();
  // Not a number in every format: what is read before it is written shows, even
  // where checks are off.
  std::memset(Shared, 0xFF, SharedBytes);
  if (LocalBytes)
    std::memset(LocalWritten, 0, uint64_t(LocalBytes) * Warps.size() * Lanes);
  if (Checks)
    Checker.reset(SharedBase + SharedBytes, warps());
}

void Cta::arrive(Warp &warp, const Inst &inst, uint32_t id, uint32_t count,
                 bool wait) {
  Barrier &barrier = Barriers[id];
  if (count == 0)
    count = warps();
  if (barrier.Count && barrier.Count != count) {
    warp.fail(inst, Lanes,
              "barrier " + std::to_string(id) + " with " +
                  std::to_string(count * Lanes) + " threads, but others have " +
                  "arrived at it with " +
                  std::to_string(barrier.Count * Lanes));
    return;
  }
  ++Count->Sum.Barriers;
  barrier.Count = count;
  barrier.Arrived |= uint64_t(1) << warp.Index;
  ++barrier.Waiting;
  if (wait) {
    warp.AtBarrier = true;
    warp.BarrierId = id;
    warp.BarrierInst = &inst;
  }
  if (barrier.Waiting == count)
    release(id);
  if (warp.AtBarrier)
    warp.Raised = Event::Barrier;
}

void Cta::noteArrival(uint64_t address, uint32_t warp) {
  Arrivals[address] |= uint64_t(1) << warp;
}

void Cta::noteWait(uint64_t address, uint32_t warp) {
  if (Checks)
    Checker.barrier(Arrivals[address] | uint64_t(1) << warp);
}

void Cta::release(uint32_t id) {
  Barrier &barrier = Barriers[id];
  if (Checks)
    Checker.barrier(barrier.Arrived);
  for (Warp &warp : Warps) {
    if (!warp.AtBarrier || warp.BarrierId != id)
      continue;
    warp.AtBarrier = false;
    // bar.red: Kind says which reduction, 0 is none.
    const Inst &inst = *warp.BarrierInst;
    if (inst.Kind == 1)
      commitPredicate(warp, inst.Op[0], barrier.AllTrue ? FullMask : 0,
                      warp.Initial);
    else if (inst.Kind == 2)
      commitPredicate(warp, inst.Op[0], barrier.True ? FullMask : 0,
                      warp.Initial);
    else if (inst.Kind == 3)
      std::fill_n(warp.reg<uint32_t>(inst.Op[0]), Lanes, barrier.True);
  }
  barrier = Barrier();
}

std::string Cta::deadlock() const {
  std::string text = "the CTA cannot go on: ";
  const char *separator = "";
  for (const Warp &warp : Warps) {
    text += separator;
    separator = ", ";
    text += "warp " + std::to_string(warp.Index);
    if (warp.AtBarrier) {
      const Barrier &barrier = Barriers[warp.BarrierId];
      text += " waits at barrier " + std::to_string(warp.BarrierId) +
              " (line " + std::to_string(warp.BarrierInst->Line) + ", " +
              std::to_string(barrier.Waiting) + " of " +
              std::to_string(barrier.Count) + " warps)";
    } else {
      text += " has exited";
    }
  }
  return text + ": every barrier needs all of its warps";
}

Cta::Outcome Cta::run() {
  // Long enough to keep a warp's registers in the host's cache, short enough
  // for warps that wait for each other in memory.
  constexpr uint64_t fuel = 1 << 15;
  constexpr unsigned rounds = 64;
  for (unsigned round = 0; round != rounds; ++round) {
    bool anyRan = false, anyAlive = false, anyProgress = false;
    for (uint32_t w : Order) {
      Warp &warp = Warps[w];
      if (!warp.Alive)
        continue;
      anyAlive = true;
      if (warp.AtBarrier)
        continue;
      anyRan = true;
      uint64_t left = fuel;
      Event event = warp.run(left);
      Executed += fuel - left;
      if (event == Event::Fail)
        return Outcome::Failed;
      anyProgress |= event != Event::Yield;
    }
    if (!anyAlive && Run->Options.Dependent &&
        std::none_of(Warps.begin(), Warps.end(),
                     [](const Warp &w) { return w.GridWaited; })) {
      fail(Warps[0], Run->Entry->Code[Warps[0].Pc - 1], Lanes,
           "the CTA ends without griddepcontrol.wait: kernels after this one "
           "may start before the one before it has ended");
      return Outcome::Failed;
    }
    if (!anyAlive) {
      Count->Sum.Ctas += 1;
      retire();
      return Outcome::Done;
    }
    const Warp &first =
        *std::find_if(Warps.begin(), Warps.end(),
                      [](const Warp &warp) { return warp.Alive != 0; });
    if (!anyRan) {
      fail(first, *first.BarrierInst, Lanes, deadlock());
      return Outcome::Failed;
    }
    if (Executed > Run->Options.InstructionLimit) {
      fail(first, Run->Entry->Code[first.Pc], Lanes,
           "the CTA has executed " + std::to_string(Executed) +
               " warp instructions, more than the limit: an endless loop");
      return Outcome::Failed;
    }
    if (!anyProgress || Run->Failed.load(std::memory_order_relaxed))
      break;
  }
  return Outcome::Yielded;
}

} // namespace kvc::sim

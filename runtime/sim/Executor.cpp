#include "runtime/sim/Exec.h"

#include <algorithm>

namespace kvc::sim {

std::string hex(uint64_t value) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  do
    text.insert(text.begin(), digits[value & 15]);
  while (value >>= 4);
  return "0x" + text;
}

void Warp::fail(const Inst &inst, uint32_t lane, const std::string &what) {
  Block->fail(*this, inst, lane, what);
  Raised = Event::Fail;
}

void Warp::fail(const Inst &inst, const Finding &found) {
  std::string what = found.What;
  if (found.Other != NoInstruction)
    what += "; the other access: warp " + std::to_string(found.OtherWarp) +
            " lane " + std::to_string(found.OtherLane) + " at " +
            Block->place(found.Other);
  fail(inst, found.Lane, what);
}

bool Warp::converged(const Inst &inst, uint32_t mask, uint32_t needed) {
  needed &= Alive;
  if ((mask & needed) == needed)
    return true;
  uint32_t skipping = Active & ~mask & needed;
  if (skipping)
    fail(inst, firstLane(skipping),
         "a predicate keeps this lane from an instruction that lanes " +
             hex(needed) + " have to execute together");
  else
    Raised = Event::Park;
  return false;
}

bool Warp::aligned(const Inst &inst, uint32_t mask) {
  if (mask == Initial)
    return true;
  if (Initial & ~Alive) {
    fail(inst, firstLane(Initial & ~Alive),
         "this lane has exited, but all lanes of the warp have to execute the "
         "instruction together");
    return false;
  }
  return converged(inst, mask, Initial);
}

/// Puts the running group among the others, merges those that stand at the same
/// instruction and picks the one to run: the one that is behind. False if all
/// of them wait.
bool Warp::regroup() {
  if (Active)
    Others.push_back({Pc, Active, false});
  Active = 0;
  std::sort(Others.begin(), Others.end(), [](const Group &a, const Group &b) {
    return a.Pc != b.Pc ? a.Pc < b.Pc : a.Mask < b.Mask;
  });
  size_t kept = 0;
  for (size_t i = 1; i < Others.size(); ++i) {
    if (Others[i].Pc != Others[kept].Pc) {
      Others[++kept] = Others[i];
      continue;
    }
    Others[kept].Mask |= Others[i].Mask;
    Others[kept].Parked = false;
  }
  Others.resize(kept + 1);
  // A group that spins until another one has done something would keep it from
  // running for ever if it is the one behind: from time to time the one that is
  // ahead has its turn.
  constexpr uint32_t turn = 4096;
  bool ahead = ++Turns / turn % 2 != 0;
  size_t pick = Others.size();
  for (size_t i = 0; i != Others.size(); ++i)
    if (!Others[i].Parked && (pick == Others.size() || ahead))
      pick = i;
  if (pick == Others.size())
    return false;
  Active = Others[pick].Mask;
  Pc = Others[pick].Pc;
  Others.erase(Others.begin() + ptrdiff_t(pick));
  MergePc = ~uint32_t(0);
  if (Others.empty())
    Turns = 0;
  for (const Group &other : Others)
    if (other.Pc > Pc)
      MergePc = std::min(MergePc, other.Pc);
  return true;
}

Event Warp::handle(const Inst &inst) {
  Event event = Raised;
  Raised = Event::None;
  switch (event) {
  case Event::None:
  case Event::Regroup:
    Pc = Next;
    regroup();
    return Event::None;
  case Event::Park: {
    --Block->Count->Executed[Pc];
    uint32_t here = Active;
    Others.push_back({Pc, Active, true});
    Active = 0;
    if (regroup())
      return Event::None;
    fail(inst, firstLane(Alive & ~here),
         "lanes " + hex(here) +
             " wait at this instruction for others, but this lane waits at " +
             Block->place(Others.back().Mask & ~here ? Others.back().Pc
                                                     : Others.front().Pc) +
             ": an instruction that lanes execute together stands in divergent "
             "code");
    return Event::Fail;
  }
  case Event::Exit:
    Pc = Next;
    if (Active == 0 && Others.empty())
      return Event::Exit;
    if (!regroup()) {
      const Group &group = Others.front();
      const Inst &waiting = Block->Run->Entry->Code[group.Pc];
      fail(waiting, firstLane(Initial & ~group.Mask),
           "this lane has exited, but lanes " + hex(group.Mask) +
               " wait for it at this instruction");
      return Event::Fail;
    }
    return Event::None;
  case Event::Yield:
    Pc = Next;
    if (!Others.empty())
      regroup();
    return Event::Yield;
  case Event::Barrier:
    Pc = Next;
    return Event::Barrier;
  case Event::Fail:
    return Event::Fail;
  }
  return Event::Fail;
}

Event Warp::run(uint64_t &fuel) {
  const Inst *code = Block->Run->Entry->Code.data();
  uint64_t *executed = Block->Count->Executed.data();
  while (fuel) {
    const Inst &inst = code[Pc];
    uint32_t mask = Active;
    if (inst.Guard != NoSlot)
      mask &=
          inst.GuardNegated ? ~predicate(inst.Guard) : predicate(inst.Guard);
    ++executed[Pc];
    --fuel;
    Next = Pc + 1;
    if (mask)
      inst.Run(*this, inst, mask);
    if (Raised != Event::None || Next >= MergePc) {
      Event event = handle(inst);
      if (event != Event::None)
        return event;
      continue;
    }
    Pc = Next;
  }
  return Event::None;
}

} // namespace kvc::sim

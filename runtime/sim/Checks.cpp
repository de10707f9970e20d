// Shared memory has a shadow of records: who wrote last, who has read since,
// and when. A record covers 16 bytes as long as accesses are 16-byte aligned
// ones (cp.async, ldmatrix), and is split into words and then bytes where finer
// accesses come.
//
// Time is a counter of the CTA that every barrier and bar.warp.sync advances.
// What a warp did before time t happens before another warp's present if the
// two have met, directly or through others, at a barrier that set the other's
// Seen[] to t or more; the same holds for the lanes of a warp and Known[].
#include "runtime/sim/Checks.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

namespace kvc::sim {

namespace {

constexpr uint32_t MaxWarps = 32, WarpLanes = 32;
constexpr uint32_t ChunkBytes = 16;

enum Flag : uint8_t {
  Initialised = 1,
  InFlight = 2, // by a cp.async that has not been waited for
  Atomic = 4,   // the last write was one
};

struct Record {
  uint32_t WriteTime = 0;
  uint32_t WriteInstruction = 0;
  uint32_t ReadTime = 0;
  uint32_t ReadInstruction = 0;
  uint32_t ReadWarps = 0; // since the last write
  uint32_t ReadLanes = 0; // of ReadWarp, which was the last to read
  uint16_t WriteThread = 0;
  uint8_t ReadWarp = 0;
  uint8_t Flags = 0;
};

/// What a warp asked of cp.async in one instruction; lanes of Mask have not
/// waited for it yet.
struct Copy {
  uint32_t Mask = 0;
  uint32_t Bytes = 0;
  uint32_t Instruction = 0;
  uint64_t FirstSource = ~uint64_t(0), LastSource = 0; // of all lanes
  std::array<uint32_t, WarpLanes> Address;
  std::array<uint32_t, WarpLanes> Group;
  std::array<uint32_t, WarpLanes> SourceBytes;
  std::array<uint64_t, WarpLanes> Source;
};

struct WarpState {
  uint32_t Together = 0; // the last time all lanes met
  bool Partial = false;  // some met since: Known says which
  std::array<uint32_t, MaxWarps> Seen;
  std::array<std::array<uint32_t, WarpLanes>, WarpLanes> Known;
  std::array<uint32_t, WarpLanes> Committed; // groups of cp.async
  std::vector<Copy> Copies;
};

enum class Access : uint8_t { Read, Write, Atomic, Copy };

} // namespace

static std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx",
                static_cast<unsigned long long>(value));
  return text;
}

static std::string threadName(uint32_t warp, uint32_t lane) {
  return "warp " + std::to_string(warp) + " lane " + std::to_string(lane);
}

struct SharedChecker::State {
  uint32_t Now = 1;
  uint32_t AllSeen = 0; // the last time that all warps met
  uint32_t Warps = 0;
  std::vector<uint8_t> Level; // of a chunk: 0 whole, 1 words, 2 bytes
  std::vector<Record> Whole, Words, Bytes;
  std::vector<WarpState> Warp;

  bool sameWarpOrdered(uint32_t warp, uint32_t lane, uint32_t otherLane,
                       uint32_t time) const;
  bool ordered(uint32_t warp, uint32_t lane, uint32_t thread,
               uint32_t time) const;
  void refine(uint32_t chunk, uint8_t level);
  template <class Visit>
  bool visit(uint32_t address, uint32_t bytes, Visit &&visit);
  template <Access Kind> bool access(const Request &request, Finding &found);
  template <Access Kind>
  bool check(Record &record, const Request &request, uint32_t lane,
             Finding &found);
  bool checkReaders(const Record &record, const Request &request, uint32_t lane,
                    Finding &found) const;
  bool fail(const Request &request, uint32_t lane, const std::string &what,
            Finding &found) const;
  void complete(Copy &copy, uint32_t lanes);
  uint32_t wait(WarpState &warp, uint32_t mask, bool everything,
                uint32_t pending);
};

bool SharedChecker::State::sameWarpOrdered(uint32_t warp, uint32_t lane,
                                           uint32_t otherLane,
                                           uint32_t time) const {
  const WarpState &state = Warp[warp];
  return lane == otherLane || time < state.Together ||
         (state.Partial && time < state.Known[lane][otherLane]);
}

/// Whether what `thread` did at `time` happens before the lane's present.
bool SharedChecker::State::ordered(uint32_t warp, uint32_t lane,
                                   uint32_t thread, uint32_t time) const {
  if (time < AllSeen)
    return true;
  uint32_t other = thread / WarpLanes;
  if (other == warp)
    return sameWarpOrdered(warp, lane, thread % WarpLanes, time);
  return time < Warp[warp].Seen[other];
}

void SharedChecker::State::refine(uint32_t chunk, uint8_t level) {
  if (Level[chunk] == 0 && level >= 1)
    std::fill_n(&Words[size_t(chunk) * 4], 4, Whole[chunk]);
  if (level == 2)
    for (uint32_t i = 0; i != ChunkBytes; ++i)
      Bytes[size_t(chunk) * ChunkBytes + i] = Words[size_t(chunk) * 4 + i / 4];
  Level[chunk] = level;
}

/// Calls visit(record) for every record of the range until one returns false.
template <class Visit>
bool SharedChecker::State::visit(uint32_t address, uint32_t bytes,
                                 Visit &&visit) {
  while (bytes != 0) {
    uint32_t chunk = address / ChunkBytes, start = address % ChunkBytes;
    uint32_t count = std::min(bytes, ChunkBytes - start);
    uint8_t needed = count == ChunkBytes                ? 0
                     : start % 4 == 0 && count % 4 == 0 ? 1
                                                        : 2;
    if (Level[chunk] < needed)
      refine(chunk, needed);
    if (Level[chunk] == 0) {
      if (!visit(Whole[chunk]))
        return false;
    } else if (Level[chunk] == 1) {
      Record *words = &Words[size_t(chunk) * 4];
      for (uint32_t i = start / 4; i != (start + count) / 4; ++i)
        if (!visit(words[i]))
          return false;
    } else {
      Record *single = &Bytes[size_t(chunk) * ChunkBytes];
      for (uint32_t i = start; i != start + count; ++i)
        if (!visit(single[i]))
          return false;
    }
    address += count;
    bytes -= count;
  }
  return true;
}

bool SharedChecker::State::fail(const Request &request, uint32_t lane,
                                const std::string &what, Finding &found) const {
  found.Lane = lane;
  found.What = "shared address " + hex(request.Address[lane]) + " (" +
               std::to_string(request.Bytes) + " bytes) " + what;
  return false;
}

/// A write must come after every read of the bytes.
bool SharedChecker::State::checkReaders(const Record &record,
                                        const Request &request, uint32_t lane,
                                        Finding &found) const {
  const WarpState &state = Warp[request.Warp];
  for (uint32_t rest = record.ReadWarps & ~(1u << request.Warp); rest != 0;
       rest &= rest - 1) {
    uint32_t other = uint32_t(__builtin_ctz(rest));
    if (record.ReadTime < state.Seen[other])
      continue;
    found.Other = record.ReadInstruction;
    found.OtherWarp = other;
    found.OtherLane = other == record.ReadWarp
                          ? uint32_t(__builtin_ctz(record.ReadLanes))
                          : 0;
    return fail(request, lane,
                "is written while warp " + std::to_string(other) +
                    " may still read it: a race, no barrier orders the two",
                found);
  }
  if (record.ReadWarp != request.Warp || record.ReadWarps == 0)
    return true;
  for (uint32_t rest = record.ReadLanes & ~(1u << lane); rest != 0;
       rest &= rest - 1) {
    uint32_t other = uint32_t(__builtin_ctz(rest));
    if (sameWarpOrdered(request.Warp, lane, other, record.ReadTime))
      continue;
    found.Other = record.ReadInstruction;
    found.OtherWarp = request.Warp;
    found.OtherLane = other;
    return fail(request, lane,
                "is written while " + threadName(request.Warp, other) +
                    " may still read it: a race, no barrier or bar.warp.sync "
                    "orders the two",
                found);
  }
  return true;
}

template <Access Kind>
bool SharedChecker::State::check(Record &record, const Request &request,
                                 uint32_t lane, Finding &found) {
  bool reads = Kind == Access::Read || Kind == Access::Atomic;
  auto conflict = [&](const std::string &what) {
    found.Other = record.WriteInstruction;
    found.OtherWarp = record.WriteThread / WarpLanes;
    found.OtherLane = record.WriteThread % WarpLanes;
    return fail(request, lane, what, found);
  };
  if (record.Flags & InFlight) {
    std::string owner = threadName(record.WriteThread / WarpLanes,
                                   record.WriteThread % WarpLanes);
    if (reads)
      return conflict("is read while cp.async of " + owner +
                      " is in flight: cp.async data is read before its wait");
    return conflict("is written while cp.async of " + owner +
                    " is in flight: a race");
  }
  if (reads && !(record.Flags & Initialised))
    return fail(request, lane,
                "is read but was never written: an "
                "uninitialised read",
                found);
  bool settled = record.WriteTime < AllSeen;
  if (!settled && (record.Flags & Initialised) &&
      !(Kind == Access::Atomic && (record.Flags & Atomic)) &&
      !ordered(request.Warp, lane, record.WriteThread, record.WriteTime))
    return conflict(
        std::string(Kind == Access::Read ? "is read" : "is written") +
        " after " +
        threadName(record.WriteThread / WarpLanes,
                   record.WriteThread % WarpLanes) +
        " wrote it: a race, no barrier" +
        (record.WriteThread / WarpLanes == request.Warp ? " or bar.warp.sync"
                                                        : "") +
        " orders the two");
  if (Kind == Access::Read) {
    uint32_t bit = 1u << request.Warp;
    // Older reads that happen before this one need not be kept.
    bool fresh = record.ReadWarps == 0 || record.ReadTime < AllSeen;
    if (!fresh && record.ReadTime != Now) {
      fresh = true;
      for (uint32_t rest = record.ReadWarps; rest != 0 && fresh;
           rest &= rest - 1) {
        uint32_t other = uint32_t(__builtin_ctz(rest));
        fresh = other == request.Warp
                    ? record.ReadTime < Warp[other].Together
                    : record.ReadTime < Warp[request.Warp].Seen[other];
      }
    }
    if (fresh) {
      record.ReadTime = Now;
      record.ReadWarps = bit;
      record.ReadLanes = 1u << lane;
    } else if (record.ReadWarp == request.Warp) {
      record.ReadLanes |= 1u << lane;
    } else {
      record.ReadWarps |= bit;
      record.ReadLanes = 1u << lane;
    }
    record.ReadWarp = uint8_t(request.Warp);
    record.ReadInstruction = request.Instruction;
    return true;
  }
  if (record.ReadWarps != 0 && record.ReadTime >= AllSeen &&
      !checkReaders(record, request, lane, found))
    return false;
  record.WriteTime = Now;
  record.WriteInstruction = request.Instruction;
  record.WriteThread = uint16_t(request.Warp * WarpLanes + lane);
  record.ReadWarps = 0;
  record.Flags = uint8_t(Initialised | (Kind == Access::Copy ? InFlight : 0) |
                         (Kind == Access::Atomic ? Atomic : 0));
  return true;
}

template <Access Kind>
bool SharedChecker::State::access(const Request &request, Finding &found) {
  for (uint32_t rest = request.Mask; rest != 0; rest &= rest - 1) {
    uint32_t lane = uint32_t(__builtin_ctz(rest));
    auto address = uint32_t(request.Address[lane]);
    if (!visit(address, request.Bytes, [&](Record &record) {
          return check<Kind>(record, request, lane, found);
        }))
      return false;
    // One writer of a whole chunk: one record again.
    if (Kind != Access::Read && address % ChunkBytes == 0 &&
        request.Bytes == ChunkBytes) {
      uint32_t chunk = address / ChunkBytes;
      if (Level[chunk] == 1)
        Whole[chunk] = Words[size_t(chunk) * 4];
      else if (Level[chunk] == 2)
        Whole[chunk] = Bytes[size_t(chunk) * ChunkBytes];
      Level[chunk] = 0;
    }
  }
  return true;
}

/// The lanes' copies have landed: from now on they are their threads' writes.
void SharedChecker::State::complete(Copy &copy, uint32_t lanes) {
  for (uint32_t rest = lanes & copy.Mask; rest != 0; rest &= rest - 1) {
    auto lane = uint32_t(__builtin_ctz(rest));
    visit(copy.Address[lane], copy.Bytes, [&](Record &record) {
      record.Flags &= uint8_t(~InFlight);
      record.WriteTime = Now;
      return true;
    });
  }
  copy.Mask &= ~lanes;
}

/// The number of copies that are no longer pending.
uint32_t SharedChecker::State::wait(WarpState &warp, uint32_t mask,
                                    bool everything, uint32_t pending) {
  if (warp.Copies.empty())
    return 0;
  for (Copy &copy : warp.Copies) {
    uint32_t lanes = 0;
    for (uint32_t rest = copy.Mask & mask; rest != 0; rest &= rest - 1) {
      auto lane = uint32_t(__builtin_ctz(rest));
      if (everything ||
          uint64_t(copy.Group[lane]) + pending < warp.Committed[lane])
        lanes |= 1u << lane;
    }
    complete(copy, lanes);
  }
  auto done = std::remove_if(warp.Copies.begin(), warp.Copies.end(),
                             [](const Copy &copy) { return copy.Mask == 0; });
  auto count = uint32_t(warp.Copies.end() - done);
  warp.Copies.erase(done, warp.Copies.end());
  return count;
}

SharedChecker::SharedChecker() : Self(std::make_unique<State>()) {}
SharedChecker::~SharedChecker() = default;

void SharedChecker::reset(uint32_t bytes, uint32_t warps) {
  State &state = *Self;
  size_t chunks = (size_t(bytes) + ChunkBytes - 1) / ChunkBytes;
  state.Now = 1;
  state.AllSeen = 0;
  state.Warps = warps;
  state.Level.assign(chunks, 0);
  state.Whole.assign(chunks, Record());
  // Their contents are copied from the whole chunk's when it is split.
  state.Words.resize(chunks * 4);
  state.Bytes.resize(chunks * ChunkBytes);
  state.Warp.resize(warps);
  for (WarpState &warp : state.Warp) {
    warp.Together = 0;
    warp.Partial = false;
    warp.Seen.fill(0);
    warp.Committed.fill(0);
    warp.Copies.clear();
  }
  Pending = 0;
}

bool SharedChecker::read(const Request &request, Finding &found) {
  return Self->access<Access::Read>(request, found);
}

bool SharedChecker::write(const Request &request, Finding &found) {
  return Self->access<Access::Write>(request, found);
}

bool SharedChecker::atomic(const Request &request, Finding &found) {
  return Self->access<Access::Atomic>(request, found);
}

void SharedChecker::barrier(uint64_t warps) {
  State &state = *Self;
  uint32_t now = ++state.Now;
  uint64_t all =
      state.Warps >= 64 ? ~uint64_t(0) : (uint64_t(1) << state.Warps) - 1;
  if ((warps & all) == all) {
    state.AllSeen = now;
    for (WarpState &warp : state.Warp) {
      warp.Together = now;
      warp.Partial = false;
    }
    return;
  }
  std::array<uint32_t, MaxWarps> seen;
  seen.fill(0);
  for (uint32_t w = 0; w != state.Warps; ++w)
    if (warps >> w & 1) {
      for (uint32_t other = 0; other != MaxWarps; ++other)
        seen[other] = std::max(seen[other], state.Warp[w].Seen[other]);
      seen[w] = now;
    }
  for (uint32_t w = 0; w != state.Warps; ++w)
    if (warps >> w & 1) {
      // What one member has seen, all have; their own latest deeds included.
      for (uint32_t other = 0; other != MaxWarps; ++other)
        state.Warp[w].Seen[other] =
            std::max(seen[other], state.Warp[w].Seen[other]);
      state.Warp[w].Together = now;
      state.Warp[w].Partial = false;
    }
}

void SharedChecker::warpSync(uint32_t warp, uint32_t mask) {
  State &state = *Self;
  WarpState &self = state.Warp[warp];
  uint32_t now = ++state.Now;
  if (mask == ~uint32_t(0)) {
    self.Together = now;
    self.Partial = false;
    return;
  }
  if (!self.Partial) {
    for (auto &row : self.Known)
      row.fill(0);
    self.Partial = true;
  }
  std::array<uint32_t, WarpLanes> known;
  known.fill(0);
  for (uint32_t lane = 0; lane != WarpLanes; ++lane)
    if (mask >> lane & 1) {
      for (uint32_t other = 0; other != WarpLanes; ++other)
        known[other] = std::max(known[other], self.Known[lane][other]);
      known[lane] = now;
    }
  for (uint32_t lane = 0; lane != WarpLanes; ++lane)
    if (mask >> lane & 1)
      for (uint32_t other = 0; other != WarpLanes; ++other)
        self.Known[lane][other] =
            std::max(known[other], self.Known[lane][other]);
}

bool SharedChecker::copy(const Request &request, const uint64_t *source,
                         const uint32_t *sourceBytes, Finding &found) {
  if (request.Mask == 0)
    return true;
  if (!Self->access<Access::Copy>(request, found))
    return false;
  WarpState &warp = Self->Warp[request.Warp];
  Copy &copy = warp.Copies.emplace_back();
  copy.Mask = request.Mask;
  copy.Bytes = request.Bytes;
  copy.Instruction = request.Instruction;
  copy.Group = warp.Committed;
  for (uint32_t lane = 0; lane != WarpLanes; ++lane) {
    if (!(request.Mask >> lane & 1))
      continue;
    copy.Address[lane] = uint32_t(request.Address[lane]);
    copy.Source[lane] = source[lane];
    copy.SourceBytes[lane] = sourceBytes[lane];
    if (sourceBytes[lane] == 0)
      continue;
    copy.FirstSource = std::min(copy.FirstSource, source[lane]);
    copy.LastSource =
        std::max(copy.LastSource, source[lane] + sourceBytes[lane] - 1);
  }
  ++Pending;
  return true;
}

void SharedChecker::commit(uint32_t warp, uint32_t mask) {
  WarpState &state = Self->Warp[warp];
  for (uint32_t lane = 0; lane != WarpLanes; ++lane)
    state.Committed[lane] += mask >> lane & 1;
}

void SharedChecker::waitGroup(uint32_t warp, uint32_t mask, uint32_t pending) {
  Pending -= Self->wait(Self->Warp[warp], mask, false, pending);
}

void SharedChecker::waitAll(uint32_t warp, uint32_t mask) {
  Pending -= Self->wait(Self->Warp[warp], mask, true, 0);
}

bool SharedChecker::globalWrite(const Request &request, Finding &found) {
  for (uint32_t w = 0; w != Self->Warps; ++w)
    for (const Copy &copy : Self->Warp[w].Copies)
      for (uint32_t rest = request.Mask; rest != 0; rest &= rest - 1) {
        auto lane = uint32_t(__builtin_ctz(rest));
        uint64_t first = request.Address[lane];
        uint64_t last = first + request.Bytes - 1;
        if (first > copy.LastSource || last < copy.FirstSource)
          continue;
        for (uint32_t other = 0; other != WarpLanes; ++other) {
          if (!(copy.Mask >> other & 1) || copy.SourceBytes[other] == 0 ||
              first >= copy.Source[other] + copy.SourceBytes[other] ||
              last < copy.Source[other])
            continue;
          found.Lane = lane;
          found.What = "global address " + hex(first) + " (" +
                       std::to_string(request.Bytes) +
                       " bytes) is written while cp.async of " +
                       threadName(w, other) +
                       " may still read it: a race, its wait has to come first";
          found.Other = copy.Instruction;
          found.OtherWarp = w;
          found.OtherLane = other;
          return false;
        }
      }
  return true;
}

bool SharedChecker::exit(uint32_t warp, uint32_t mask, Finding &found) {
  for (const Copy &copy : Self->Warp[warp].Copies) {
    if ((copy.Mask & mask) == 0)
      continue;
    auto lane = uint32_t(__builtin_ctz(copy.Mask & mask));
    found.Lane = lane;
    found.What = "exits while its cp.async to shared address " +
                 hex(copy.Address[lane]) +
                 " is in flight: every copy needs a wait";
    found.Other = copy.Instruction;
    found.OtherWarp = warp;
    found.OtherLane = lane;
    return false;
  }
  return true;
}

} // namespace kvc::sim

// Every access to memory: where the bytes are, whether the lanes may touch
// them, and what the request costs.
#include "runtime/sim/Exec.h"

#include <algorithm>

namespace kvc::sim {

static const char *verb(Mode mode) {
  return mode == Mode::Read    ? "read"
         : mode == Mode::Write ? "write"
         : mode == Mode::Copy  ? "copy"
                               : "atomic access";
}

static std::string range(const char *space, uint64_t address, uint32_t bytes,
                         Mode mode) {
  return std::string(verb(mode)) + " of " + std::to_string(bytes) +
         " bytes at " + space + " address " + hex(address);
}

/// Where lanes' bytes are; what other lanes have as an address means nothing.
static void place(uint8_t *base, uint64_t from, const uint64_t *address,
                  uint32_t mask, uint8_t **host) {
  for (uint32_t lane = 0; lane != Lanes; ++lane)
    host[lane] = base + (mask >> lane & 1 ? address[lane] - from : 0);
}

namespace {

struct Extent {
  uint64_t Low = ~uint64_t(0), High = 0, Or = 0;
};

} // namespace

static Extent extent(const uint64_t *address, uint32_t mask) {
  Extent all;
  if (mask == FullMask) {
    for (uint32_t lane = 0; lane != Lanes; ++lane) {
      all.Low = std::min(all.Low, address[lane]);
      all.High = std::max(all.High, address[lane]);
      all.Or |= address[lane];
    }
    return all;
  }
  forLanes(mask, [&](uint32_t lane) {
    all.Low = std::min(all.Low, address[lane]);
    all.High = std::max(all.High, address[lane]);
    all.Or |= address[lane];
  });
  return all;
}

static bool misaligned(Warp &warp, const Inst &inst, uint32_t mask,
                       const char *space, const uint64_t *address,
                       uint32_t bytes, Mode mode) {
  uint32_t lane = firstLane(mask);
  forLanes(mask, [&](uint32_t other) {
    if (address[other] % bytes && address[lane] % bytes == 0)
      lane = other;
  });
  warp.fail(inst, lane,
            range(space, address[lane], bytes, mode) +
                ": the address has to be a multiple of " +
                std::to_string(bytes));
  return false;
}

static bool unmapped(Warp &warp, const Inst &inst, uint32_t lane,
                     uint64_t address, uint32_t bytes, Mode mode) {
  std::string what = range("global", address, bytes, mode);
  const Allocation *near = warp.Block->Run->Memory->below(address);
  if (!near)
    what += ": below all allocations";
  else
    what += ": outside '" + near->Name + "', which has " +
            std::to_string(near->Bytes) + " bytes from " + hex(near->Base) +
            " (offset " + std::to_string(address - near->Base) + ")";
  warp.fail(inst, lane, what);
  return false;
}

/// 32-byte sectors of a request. Addresses mostly ascend with the lanes; where
/// they do not, equal sectors are found by sorting.
static uint32_t sectors(const uint64_t *address, uint32_t mask, uint32_t bytes,
                        uint64_t (&list)[2 * Lanes]) {
  uint32_t count = 0;
  bool ascending = true;
  forLanes(mask, [&](uint32_t lane) {
    uint64_t last = (address[lane] + bytes - 1) / 32;
    for (uint64_t sector = address[lane] / 32; sector <= last; ++sector) {
      if (count && sector == list[count - 1])
        continue;
      ascending &= !count || sector > list[count - 1];
      list[count++] = sector;
    }
  });
  if (ascending)
    return count;
  std::sort(list, list + count);
  return uint32_t(std::unique(list, list + count) - list);
}

/// How many of the sectors the launch has not touched before: what a GPU whose
/// cache keeps everything would move.
static uint32_t distinct(uint32_t *touched, uint32_t epoch,
                         const Allocation &allocation, const uint64_t *list,
                         uint32_t count) {
  uint32_t fresh = 0;
  for (uint32_t i = 0; i != count; ++i) {
    uint32_t *mark = touched + (list[i] - allocation.Base / 32);
    // CTAs on other host threads mark as well; a sector counts for one of them.
    if (__atomic_load_n(mark, __ATOMIC_RELAXED) != epoch)
      fresh += __atomic_exchange_n(mark, epoch, __ATOMIC_RELAXED) != epoch;
  }
  return fresh;
}

/// The banks that an access of a lane needs, as bits: each of the 32 banks
/// serves one 4-byte word a wavefront, to as many lanes as want it.
static uint32_t banks(uint64_t address, uint32_t bytes) {
  uint32_t words = bytes > 4 ? bytes / 4 : 1;
  return ((words == Lanes ? 0 : 1u << words) - 1) << (address / 4 % Lanes);
}

/// Whether no bank is wanted twice, or all lanes want the same word.
static bool conflictFree(const uint64_t *address, uint32_t mask,
                         uint32_t bytes) {
  uint32_t seen = 0, twice = 0, word = uint32_t(address[firstLane(mask)] / 4);
  uint32_t different = 0;
  for (; mask; mask &= mask - 1) {
    uint64_t at = address[firstLane(mask)];
    uint32_t wanted = banks(at, bytes);
    twice |= seen & wanted;
    seen |= wanted;
    different |= word ^ uint32_t(at / 4);
  }
  return twice == 0 || different == 0;
}

/// Wavefronts beyond one for lanes [first, last).
static uint32_t conflicts(const uint64_t *address, uint32_t mask,
                          uint32_t bytes, uint32_t first, uint32_t last) {
  uint32_t part = mask >> first << first;
  if (last != Lanes)
    part &= (1u << last) - 1;
  if (part == 0 || conflictFree(address, part, bytes))
    return 0;
  uint64_t words[Lanes][Lanes];
  uint8_t count[Lanes] = {};
  uint8_t most = 1;
  for (uint32_t lane = first; lane != last; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    for (uint64_t word = address[lane] / 4;
         word <= (address[lane] + bytes - 1) / 4; ++word) {
      uint32_t bank = word % Lanes;
      uint8_t &used = count[bank];
      bool known = false;
      for (uint8_t i = 0; i != used; ++i)
        known |= words[bank][i] == word;
      if (!known && used != Lanes)
        words[bank][used++] = word;
      most = std::max(most, used);
    }
  }
  return most - 1;
}

static bool notWritten(Warp &warp, const Inst &inst, uint32_t lane,
                       const char *space, const std::string &where,
                       uint64_t address, uint32_t bytes,
                       const uint8_t *written) {
  uint32_t byte = uint32_t(std::find(written, written + bytes, 0) - written);
  warp.fail(inst, lane,
            range(space, address, bytes, Mode::Read) + where + ": byte " +
                std::to_string(byte) + " of it has never been written");
  return false;
}

static bool allSettled(const uint8_t *written, uint32_t bytes) {
  for (; bytes >= 8; bytes -= 8, written += 8) {
    uint64_t value;
    std::memcpy(&value, written, sizeof(value));
    if (value != ~uint64_t(0))
      return false;
  }
  uint8_t all = Settled;
  for (uint32_t byte = 0; byte != bytes; ++byte)
    all &= written[byte];
  return all == Settled;
}

/// Whether another CTA has stored there and has not fenced since.
static bool othersStored(const Warp &warp, const uint8_t *written,
                         uint32_t bytes) {
  uint8_t own = warp.Block->Tag;
  return std::any_of(written, written + bytes, [own](uint8_t mark) {
    return mark != 0 && mark != Settled && mark != own;
  });
}

/// A read of bytes that are not all settled: those of the CTA itself are fine.
static bool readable(Warp &warp, const Inst &inst, uint32_t lane,
                     const char *space, const std::string &where,
                     uint64_t address, uint32_t bytes, const uint8_t *written) {
  if (std::find(written, written + bytes, 0) != written + bytes)
    return notWritten(warp, inst, lane, space, where, address, bytes, written);
  if (!othersStored(warp, written, bytes))
    return true;
  warp.fail(inst, lane,
            range(space, address, bytes, Mode::Read) + where +
                ": another CTA of this launch has stored there and has not "
                "executed a fence of scope gpu since");
  return false;
}

/// What holds for an allocation as a whole.
static bool permitted(Warp &warp, const Inst &inst, uint32_t lane,
                      uint64_t address, const Allocation &allocation,
                      Space space, uint32_t bytes, Mode mode) {
  if (mode != Mode::Read && allocation.ReadOnly) {
    warp.fail(inst, lane,
              range("global", address, bytes, mode) + ": '" + allocation.Name +
                  "' is read-only");
    return false;
  }
  if (allocation.Constant != (space == Space::Const)) {
    warp.fail(inst, lane,
              range("global", address, bytes, mode) + ": '" + allocation.Name +
                  (allocation.Constant ? "' is a .const variable, the "
                                         "instruction accesses .global"
                                       : "' is not a .const variable"));
    return false;
  }
  if (!warp.GridWaited && !allocation.ReadOnly) {
    warp.fail(inst, lane,
              range("global", address, bytes, mode) + " of '" +
                  allocation.Name +
                  "' before griddepcontrol.wait: the kernel before may still "
                  "be running");
    return false;
  }
  return true;
}

static bool globalLane(Warp &warp, const Inst &inst, uint32_t lane,
                       uint64_t address, const Allocation &allocation,
                       uint32_t bytes, Mode mode, uint8_t **host) {
  uint64_t offset = address - allocation.Base;
  host[lane] = allocation.Host + offset;
  if (!allocation.Written)
    return true;
  uint8_t *written = allocation.Written + offset;
  if (mode != Mode::Write && warp.Block->Checks &&
      !allSettled(written, bytes) &&
      !readable(warp, inst, lane, "global",
                " of '" + allocation.Name + "' (offset " +
                    std::to_string(offset) + ")",
                address, bytes, written))
    return false;
  if (mode == Mode::Write && warp.Block->Checks) {
    if (!allSettled(written, bytes) && othersStored(warp, written, bytes)) {
      warp.fail(inst, lane,
                range("global", address, bytes, mode) + " of '" +
                    allocation.Name + "' (offset " + std::to_string(offset) +
                    "): another CTA of this launch has stored there, too, and "
                    "has not executed a fence of scope gpu since: either value "
                    "may stay");
      return false;
    }
    std::memset(written, warp.Block->Tag, bytes);
    warp.Block->noteStore(written, bytes);
  } else if (mode != Mode::Read) {
    // Atomics are how CTAs talk to each other.
    std::memset(written, Settled, bytes);
  }
  return true;
}

static void countGlobal(Warp &warp, const uint64_t *address, uint32_t mask,
                        uint32_t bytes, Mode mode,
                        const Allocation &allocation) {
  Counters &count = *warp.Block->Count;
  uint64_t asked = uint64_t(__builtin_popcount(mask)) * bytes;
  uint64_t list[2 * Lanes];
  uint32_t touched = sectors(address, mask, bytes, list);
  uint32_t epoch = warp.Block->Run->Epoch;
  if (mode == Mode::Read) {
    ++count.Sum.Loads;
    count.Sum.Loads128 += bytes >= 16;
    count.Sum.LoadBytes += asked;
    count.Sum.LoadSectors += touched;
    count.Sectors[allocation.Index] += touched;
    count.Loaded[allocation.Index] +=
        distinct(allocation.Loaded, epoch, allocation, list, touched);
  } else if (mode == Mode::Write) {
    ++count.Sum.Stores;
    count.Sum.StoreBytes += asked;
    count.Sum.StoreSectors += touched;
    count.Stored[allocation.Index] +=
        distinct(allocation.Stored, epoch, allocation, list, touched);
  } else {
    ++count.Sum.Atomics;
  }
}

static bool accessGlobal(Warp &warp, const Inst &inst, uint32_t mask,
                         Space space, const uint64_t *address, uint32_t bytes,
                         Mode mode, uint8_t **host) {
  Cta &cta = *warp.Block;
  Extent all = extent(address, mask);
  if (all.Or & (bytes - 1))
    return misaligned(warp, inst, mask, "global", address, bytes, mode);
  const Allocation *&hit = cta.Count->Hits[cta.index(inst)];
  if (!hit || !hit->holds(all.Low, bytes) || !hit->holds(all.High, bytes)) {
    const Allocation *found = cta.Run->Memory->find(all.Low, bytes);
    // Lanes in different allocations: one after the other.
    bool apart = !found || !found->holds(all.High, bytes);
    for (uint32_t rest = apart ? mask : 0; rest; rest &= rest - 1) {
      uint32_t lane = firstLane(rest);
      const Allocation *own = cta.Run->Memory->find(address[lane], bytes);
      if (!own)
        return unmapped(warp, inst, lane, address[lane], bytes, mode);
      if (!permitted(warp, inst, lane, address[lane], *own, space, bytes,
                     mode) ||
          !globalLane(warp, inst, lane, address[lane], *own, bytes, mode, host))
        return false;
      countGlobal(warp, address, 1u << lane, bytes, mode, *own);
      found = own;
    }
    hit = found;
    if (apart)
      return true;
  }
  const Allocation &allocation = *hit;
  if ((mode != Mode::Read && allocation.ReadOnly) ||
      (!warp.GridWaited && !allocation.ReadOnly) || allocation.Constant ||
      space == Space::Const) {
    uint32_t lane = firstLane(mask);
    if (!permitted(warp, inst, lane, address[lane], allocation, space, bytes,
                   mode))
      return false;
  }
  if (allocation.Written) {
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      uint32_t lane = firstLane(rest);
      if (!globalLane(warp, inst, lane, address[lane], allocation, bytes, mode,
                      host))
        return false;
    }
  } else {
    place(allocation.Host, allocation.Base, address, mask, host);
  }
  countGlobal(warp, address, mask, bytes, mode, allocation);
  if (mode != Mode::Read && cta.Checks && cta.Checker.copiesPending()) {
    Request request{warp.Index, mask, bytes, cta.index(inst), address};
    Finding found;
    if (!cta.Checker.globalWrite(request, found)) {
      warp.fail(inst, found);
      return false;
    }
  }
  return true;
}

static bool accessShared(Warp &warp, const Inst &inst, uint32_t mask,
                         const uint64_t *address, uint32_t bytes, Mode mode,
                         uint8_t **host) {
  Cta &cta = *warp.Block;
  Extent all = extent(address, mask);
  if (all.Or & (bytes - 1))
    return misaligned(warp, inst, mask, "shared", address, bytes, mode);
  uint64_t end = uint64_t(SharedBase) + cta.SharedBytes;
  if (all.Low < SharedBase || all.High >= end || end - all.High < bytes) {
    uint64_t beyond = all.Low < SharedBase ? all.Low : all.High;
    uint32_t lane = firstLane(mask);
    forLanes(mask, [&](uint32_t other) {
      if (address[other] == beyond)
        lane = other;
    });
    warp.fail(inst, lane,
              range("shared", beyond, bytes, mode) + ": the CTA has " +
                  std::to_string(cta.SharedBytes) + " bytes from " +
                  hex(SharedBase) + " on");
    return false;
  }
  if (cta.Checks) {
    Request request{warp.Index, mask, bytes, cta.index(inst), address};
    Finding found;
    bool ok = mode == Mode::Read     ? cta.Checker.read(request, found)
              : mode == Mode::Write  ? cta.Checker.write(request, found)
              : mode == Mode::Atomic ? cta.Checker.atomic(request, found)
                                     : true;
    if (!ok) {
      warp.fail(inst, found);
      return false;
    }
  }
  place(cta.Shared, SharedBase, address, mask, host);
  Meter &sum = cta.Count->Sum;
  ++sum.SharedRequests;
  sum.Atomics += mode == Mode::Atomic;
  // 8 and 16 bytes a lane are served to half and quarter warps at a time.
  uint32_t step = bytes >= 16 ? 8 : bytes == 8 ? 16 : Lanes;
  for (uint32_t lane = 0; lane != Lanes; lane += step)
    sum.SharedConflicts += conflicts(address, mask, bytes, lane, lane + step);
  return true;
}

static bool accessLocal(Warp &warp, const Inst &inst, uint32_t mask,
                        const uint64_t *address, uint32_t bytes, Mode mode,
                        uint8_t **host) {
  Cta &cta = *warp.Block;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    uint32_t lane = firstLane(rest);
    if (address[lane] % bytes)
      return misaligned(warp, inst, mask, "local", address, bytes, mode);
    uint32_t size = warp.Block->Run->Entry->Info.Local;
    if (address[lane] >= size || size - address[lane] < bytes) {
      warp.fail(inst, lane,
                range("local", address[lane], bytes, mode) +
                    ": the thread has " + std::to_string(size) + " bytes");
      return false;
    }
    uint64_t at =
        (uint64_t(warp.Index) * Lanes + lane) * cta.LocalBytes + address[lane];
    host[lane] = cta.Local + at;
    uint8_t *written = cta.LocalWritten + at;
    if (mode != Mode::Write && cta.Checks && !allSettled(written, bytes))
      return notWritten(warp, inst, lane, "local", "", address[lane], bytes,
                        written);
    if (mode != Mode::Read)
      std::memset(written, 0xFF, bytes);
  }
  return true;
}

static bool accessParameters(Warp &warp, const Inst &inst, uint32_t mask,
                             const uint64_t *address, uint32_t bytes, Mode mode,
                             uint8_t **host) {
  const Launch &launch = *warp.Block->Run;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    uint32_t lane = firstLane(rest);
    if (address[lane] % bytes)
      return misaligned(warp, inst, mask, "parameter", address, bytes, mode);
    uint32_t size = launch.ParameterBytes;
    if (mode != Mode::Read || address[lane] >= size ||
        size - address[lane] < bytes) {
      warp.fail(inst, lane,
                range("parameter", address[lane], bytes, mode) +
                    ": the kernel has " + std::to_string(size) +
                    " bytes of parameters, which are read-only");
      return false;
    }
    host[lane] = const_cast<uint8_t *>(launch.Parameters) + address[lane];
  }
  return true;
}

void addresses(Warp &warp, const Inst &inst, unsigned slot, uint64_t *address) {
  if (inst.WideAddress) {
    const uint64_t *base = warp.reg<uint64_t>(inst.Op[slot]);
    for (uint32_t lane = 0; lane != Lanes; ++lane)
      address[lane] = base[lane] + uint64_t(inst.Offset);
    return;
  }
  const uint32_t *base = warp.reg<uint32_t>(inst.Op[slot]);
  for (uint32_t lane = 0; lane != Lanes; ++lane)
    address[lane] = base[lane] + uint64_t(inst.Offset);
}

Space spaceOf(uint64_t address) {
  auto in = [&](uint64_t window) { return address - window < WindowBytes; };
  return in(SharedWindow)  ? Space::Shared
         : in(LocalWindow) ? Space::Local
         : in(ParamWindow) ? Space::Param
         : in(ConstWindow) ? Space::Const
                           : Space::Global;
}

bool access(Warp &warp, const Inst &inst, uint32_t mask, Space space,
            const uint64_t *address, uint32_t bytes, Mode mode,
            uint8_t **host) {
  uint64_t inside[Lanes];
  switch (space) {
  case Space::Const:
    for (uint32_t lane = 0; lane != Lanes; ++lane)
      inside[lane] = ConstWindow + address[lane];
    address = inside;
    [[fallthrough]];
  case Space::Global:
    return accessGlobal(warp, inst, mask, space, address, bytes, mode, host);
  case Space::Shared:
    return accessShared(warp, inst, mask, address, bytes, mode, host);
  case Space::Local:
    return accessLocal(warp, inst, mask, address, bytes, mode, host);
  case Space::Param:
    return accessParameters(warp, inst, mask, address, bytes, mode, host);
  case Space::Generic:
    break;
  }
  // One request for each space that lanes point into.
  while (mask) {
    Space where = spaceOf(address[firstLane(mask)]);
    uint64_t window = where == Space::Shared  ? SharedWindow
                      : where == Space::Local ? LocalWindow
                      : where == Space::Param ? ParamWindow
                      : where == Space::Const ? ConstWindow
                                              : 0;
    uint32_t same = 0;
    forLanes(mask, [&](uint32_t lane) {
      if (spaceOf(address[lane]) == where) {
        same |= 1u << lane;
        inside[lane] = address[lane] - window;
      }
    });
    uint8_t *part[Lanes];
    bool ok = access(warp, inst, same, where, inside, bytes, mode, part);
    if (!ok)
      return false;
    forLanes(same, [&](uint32_t lane) { host[lane] = part[lane]; });
    mask &= ~same;
  }
  return true;
}

} // namespace kvc::sim

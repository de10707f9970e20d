// The device's global memory: allocations in one 64-bit address map, with gaps
// between them so that an address that leaves one is in none.
#ifndef KVC_RUNTIME_SIM_MEMORY_H
#define KVC_RUNTIME_SIM_MEMORY_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kvc::sim {

// Windows of the generic address space. Whatever is in none is global. A
// space's own addresses count from its window's begin, and fit 32 bits.
constexpr uint64_t SharedWindow = uint64_t(0x1000) << 32;
/// Where a CTA's shared memory begins in its window: not at 0, so that a base
/// that is left out shows.
constexpr uint32_t SharedBase = 1024;
constexpr uint64_t LocalWindow = uint64_t(0x2000) << 32;
constexpr uint64_t ParamWindow = uint64_t(0x3000) << 32;
constexpr uint64_t ConstWindow = uint64_t(0x4000) << 32;
constexpr uint64_t WindowBytes = uint64_t(1) << 32;
constexpr uint64_t GlobalBase = uint64_t(0x7000) << 32;

constexpr uint8_t Settled = 0xFF;

struct Allocation {
  std::string Name;
  uint64_t Base = 0;
  uint64_t Bytes = 0;
  uint8_t *Host = nullptr;
  /// One byte for each: 0 where the byte has never been written, Settled where
  /// all may read it, else the tag of the CTA that wrote it and has not fenced
  /// since. Null: all are settled.
  uint8_t *Written = nullptr;
  /// Of each 32-byte sector, the launch that loaded or stored it last.
  uint32_t *Loaded = nullptr;
  uint32_t *Stored = nullptr;
  bool ReadOnly = false;
  bool Constant = false; // .const variables
  bool Adopted = false;  // Host belongs to somebody else
  uint32_t Index = 0;    // among the allocations ever made

  bool holds(uint64_t address, uint64_t bytes) const {
    return address >= Base && bytes <= Bytes && address - Base <= Bytes - bytes;
  }
};

class AddressSpace {
public:
  AddressSpace() = default;
  AddressSpace(const AddressSpace &) = delete;
  AddressSpace &operator=(const AddressSpace &) = delete;
  ~AddressSpace();

  /// Null where the host has no memory.
  Allocation *allocate(const std::string &name, uint64_t bytes, bool readOnly,
                       bool constant = false);
  Allocation *adopt(const std::string &name, const void *data, uint64_t bytes);
  bool free(uint64_t address);

  /// The last allocation that begins at or below the address, or null.
  Allocation *below(uint64_t address) const;
  /// The allocation that holds the whole range, or null.
  Allocation *find(uint64_t address, uint64_t bytes) const;

  bool write(uint64_t address, const void *data, uint64_t bytes);
  bool fill(uint64_t address, uint8_t value, uint64_t bytes);
  bool read(uint64_t address, void *data, uint64_t bytes) const;
  bool poison(uint64_t address, uint64_t bytes);
  bool initialised(uint64_t address, uint64_t bytes) const;

  /// Names of all allocations ever made, by Index.
  const std::vector<std::string> &names() const { return Names; }

private:
  Allocation *insert(const std::string &name, uint64_t bytes, bool constant);
  static bool markWritten(Allocation &allocation, uint64_t offset,
                          uint64_t bytes);
  static bool addMarks(Allocation &allocation);
  Allocation *keep(Allocation *allocation);
  static void release(Allocation &allocation);

  std::vector<std::unique_ptr<Allocation>> Sorted; // by Base
  std::vector<std::string> Names;
  uint64_t Next = GlobalBase, NextConst = ConstWindow;
};

} // namespace kvc::sim

#endif // KVC_RUNTIME_SIM_MEMORY_H

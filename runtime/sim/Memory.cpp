#include "runtime/sim/Memory.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace kvc::sim {

/// Fresh zero pages, which cost nothing until they are touched: a KV arena is
/// reserved for its longest sequence.
static uint8_t *pages(uint64_t bytes) {
  void *memory =
      mmap(nullptr, std::max<uint64_t>(bytes, 1), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<uint8_t *>(memory);
}

static void unmap(uint8_t *memory, uint64_t bytes) {
  if (memory)
    munmap(memory, std::max<uint64_t>(bytes, 1));
}

static uint64_t markBytes(const Allocation &allocation) {
  return (allocation.Bytes / 32 + 1) * sizeof(uint32_t);
}

bool AddressSpace::addMarks(Allocation &allocation) {
  uint64_t bytes = markBytes(allocation);
  allocation.Loaded = reinterpret_cast<uint32_t *>(pages(bytes));
  allocation.Stored = reinterpret_cast<uint32_t *>(pages(bytes));
  return allocation.Loaded && allocation.Stored;
}

AddressSpace::~AddressSpace() {
  for (auto &allocation : Sorted)
    release(*allocation);
}

void AddressSpace::release(Allocation &allocation) {
  if (!allocation.Adopted)
    unmap(allocation.Host, allocation.Bytes);
  unmap(allocation.Written, allocation.Bytes);
  unmap(reinterpret_cast<uint8_t *>(allocation.Loaded), markBytes(allocation));
  unmap(reinterpret_cast<uint8_t *>(allocation.Stored), markBytes(allocation));
  allocation.Host = allocation.Written = nullptr;
}

Allocation *AddressSpace::insert(const std::string &name, uint64_t bytes,
                                 bool constant) {
  auto allocation = std::make_unique<Allocation>();
  allocation->Name = name;
  uint64_t &next = constant ? NextConst : Next;
  allocation->Base = next;
  allocation->Constant = constant;
  allocation->Bytes = bytes;
  allocation->Index = uint32_t(Names.size());
  Names.push_back(name);
  // Addresses are never used again: a freed allocation's stay invalid. The gap
  // is larger than any offset an instruction's immediate is likely to have.
  constexpr uint64_t unit = 512, gap = uint64_t(1) << 20;
  next += (bytes + unit - 1) / unit * unit + gap;
  Allocation *result = allocation.get();
  Sorted.insert(std::upper_bound(Sorted.begin(), Sorted.end(), result->Base,
                                 [](uint64_t base, const auto &entry) {
                                   return base < entry->Base;
                                 }),
                std::move(allocation));
  return result;
}

Allocation *AddressSpace::allocate(const std::string &name, uint64_t bytes,
                                   bool readOnly, bool constant) {
  uint8_t *host = pages(bytes);
  uint8_t *written = pages(bytes);
  if (!host || !written) {
    unmap(host, bytes);
    unmap(written, bytes);
    return nullptr;
  }
  Allocation *allocation = insert(name, bytes, constant);
  allocation->Host = host;
  allocation->Written = written;
  allocation->ReadOnly = readOnly;
  return keep(allocation);
}

Allocation *AddressSpace::adopt(const std::string &name, const void *data,
                                uint64_t bytes) {
  Allocation *allocation = insert(name, bytes, /*constant=*/false);
  // Never written: stores to read-only allocations are refused.
  allocation->Host = static_cast<uint8_t *>(const_cast<void *>(data));
  allocation->ReadOnly = true;
  allocation->Adopted = true;
  return keep(allocation);
}

/// Null, and nothing kept, where the host has no memory for the marks.
Allocation *AddressSpace::keep(Allocation *allocation) {
  if (addMarks(*allocation))
    return allocation;
  free(allocation->Base);
  return nullptr;
}

bool AddressSpace::free(uint64_t address) {
  auto it = std::find_if(Sorted.begin(), Sorted.end(), [&](const auto &entry) {
    return entry->Base == address;
  });
  if (it == Sorted.end())
    return false;
  release(**it);
  Sorted.erase(it);
  return true;
}

Allocation *AddressSpace::below(uint64_t address) const {
  auto it = std::upper_bound(Sorted.begin(), Sorted.end(), address,
                             [](uint64_t value, const auto &allocation) {
                               return value < allocation->Base;
                             });
  return it == Sorted.begin() ? nullptr : std::prev(it)->get();
}

Allocation *AddressSpace::find(uint64_t address, uint64_t bytes) const {
  Allocation *allocation = below(address);
  return allocation && allocation->holds(address, bytes) ? allocation : nullptr;
}

bool AddressSpace::markWritten(Allocation &allocation, uint64_t offset,
                               uint64_t bytes) {
  if (allocation.Adopted)
    return false;
  if (!allocation.Written)
    return true;
  if (bytes == allocation.Bytes) {
    unmap(allocation.Written, allocation.Bytes);
    allocation.Written = nullptr;
    return true;
  }
  std::memset(allocation.Written + offset, 0xFF, bytes);
  return true;
}

bool AddressSpace::write(uint64_t address, const void *data, uint64_t bytes) {
  Allocation *allocation = find(address, bytes);
  if (!allocation ||
      !markWritten(*allocation, address - allocation->Base, bytes))
    return false;
  if (bytes)
    std::memcpy(allocation->Host + (address - allocation->Base), data, bytes);
  return true;
}

bool AddressSpace::fill(uint64_t address, uint8_t value, uint64_t bytes) {
  Allocation *allocation = find(address, bytes);
  if (!allocation ||
      !markWritten(*allocation, address - allocation->Base, bytes))
    return false;
  std::memset(allocation->Host + (address - allocation->Base), value, bytes);
  return true;
}

bool AddressSpace::read(uint64_t address, void *data, uint64_t bytes) const {
  const Allocation *allocation = find(address, bytes);
  if (!allocation)
    return false;
  if (bytes)
    std::memcpy(data, allocation->Host + (address - allocation->Base), bytes);
  return true;
}

bool AddressSpace::poison(uint64_t address, uint64_t bytes) {
  Allocation *allocation = find(address, bytes);
  if (!allocation || allocation->Adopted)
    return false;
  if (!allocation->Written) {
    allocation->Written = pages(allocation->Bytes);
    if (!allocation->Written)
      return false;
    std::memset(allocation->Written, 0xFF, allocation->Bytes);
  }
  std::memset(allocation->Written + (address - allocation->Base), 0, bytes);
  return true;
}

bool AddressSpace::initialised(uint64_t address, uint64_t bytes) const {
  const Allocation *allocation = find(address, bytes);
  if (!allocation)
    return false;
  if (!allocation->Written)
    return true;
  const uint8_t *first = allocation->Written + (address - allocation->Base);
  return std::all_of(first, first + bytes, [](uint8_t byte) { return byte; });
}

} // namespace kvc::sim

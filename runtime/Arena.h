// All memory a program works on: one reservation of address space, made once,
// cut into regions. Memory is committed as it is needed and base addresses
// never move, so that the program may keep pointers.
#ifndef KVC_RUNTIME_ARENA_H
#define KVC_RUNTIME_ARENA_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvc {

class Arena {
public:
  Arena() = default;
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;
  ~Arena();

  /// Reserves a region of each size. Regions are page-aligned and have an
  /// inaccessible page on both sides: a program that leaves its region faults.
  bool reserve(const std::vector<int64_t> &regionBytes, std::string &error);

  /// Makes the first `bytes` of a region readable and writable; what was
  /// committed stays. Fresh memory reads as zero.
  bool commit(size_t region, int64_t bytes, std::string &error);

  uint8_t *base(size_t region) const { return Regions[region].Base; }
  int64_t reservedBytes(size_t region) const { return Regions[region].Bytes; }
  int64_t committedBytes(size_t region) const {
    return Regions[region].Committed;
  }

private:
  struct Region {
    uint8_t *Base = nullptr;
    int64_t Bytes = 0;     // asked for
    int64_t Mapped = 0;    // Bytes rounded up to pages
    int64_t Committed = 0; // readable, whole pages
  };
  std::vector<Region> Regions;
  void *Mapping = nullptr;
  int64_t MappingBytes = 0;
};

/// Bytes of memory this process may use: the machine's, or its control group's
/// where that is less.
int64_t memoryLimitBytes();

} // namespace kvc

#endif // KVC_RUNTIME_ARENA_H

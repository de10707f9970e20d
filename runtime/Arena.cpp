#include "runtime/Arena.h"
#include "runtime/Checked.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <sys/mman.h>
#include <unistd.h>

namespace kvc {

// The program's own unit for commits: x86-64 pages, and a step large enough
// that growing a cache does not become a system call a token.
static constexpr int64_t MemoryPage = 4096;
static constexpr int64_t CommitStep = int64_t(1) << 20;

Arena::~Arena() {
  if (Mapping)
    munmap(Mapping, size_t(MappingBytes));
}

bool Arena::reserve(const std::vector<int64_t> &regionBytes,
                    std::string &error) {
  CheckedSize total(MemoryPage);
  for (int64_t bytes : regionBytes) {
    CheckedSize rounded =
        CheckedSize(bytes) + CheckedSize(MemoryPage - 1); // at most one page
    total = total + rounded + CheckedSize(MemoryPage);
  }
  if (!total.valid() ||
      total.value() > std::numeric_limits<int64_t>::max() / 2) {
    error = "the memory plan's sizes overflow 63 bits";
    return false;
  }
  int64_t mappingBytes = divideUp(total.value(), MemoryPage) * MemoryPage;
  void *mapping = mmap(nullptr, size_t(mappingBytes), PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    error = "cannot reserve " + std::to_string(mappingBytes) +
            " bytes of address space: " + std::strerror(errno);
    return false;
  }
  Mapping = mapping;
  MappingBytes = mappingBytes;
  uint8_t *next = static_cast<uint8_t *>(mapping) + MemoryPage;
  for (int64_t bytes : regionBytes) {
    Region region;
    region.Base = next;
    region.Bytes = bytes;
    region.Mapped = divideUp(bytes, MemoryPage) * MemoryPage;
    Regions.push_back(region);
    next += region.Mapped + MemoryPage;
  }
  return true;
}

bool Arena::commit(size_t index, int64_t bytes, std::string &error) {
  Region &region = Regions[index];
  if (bytes < 0 || bytes > region.Bytes) {
    error = "a region of " + std::to_string(region.Bytes) +
            " bytes cannot commit " + std::to_string(bytes);
    return false;
  }
  if (bytes <= region.Committed)
    return true;
  int64_t target =
      std::min(divideUp(bytes, CommitStep) * CommitStep, region.Mapped);
  if (mprotect(region.Base + region.Committed,
               size_t(target - region.Committed),
               PROT_READ | PROT_WRITE) != 0) {
    error = "cannot commit " + std::to_string(target - region.Committed) +
            " bytes of memory: " + std::strerror(errno);
    return false;
  }
  region.Committed = target;
  return true;
}

// A control group's limit is a number or the word "max".
static int64_t readLimit(const char *path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word))
    return std::numeric_limits<int64_t>::max();
  char *end = nullptr;
  errno = 0;
  long long value = std::strtoll(word.c_str(), &end, 10);
  if (errno != 0 || end == word.c_str() || value <= 0)
    return std::numeric_limits<int64_t>::max();
  return value;
}

int64_t memoryLimitBytes() {
  int64_t limit = std::numeric_limits<int64_t>::max();
  long pages = sysconf(_SC_PHYS_PAGES);
  long pageBytes = sysconf(_SC_PAGESIZE);
  if (pages > 0 && pageBytes > 0) {
    CheckedSize physical = CheckedSize(pages) * CheckedSize(pageBytes);
    if (physical.valid())
      limit = physical.value();
  }
  limit = std::min(limit, readLimit("/sys/fs/cgroup/memory.max"));
  limit =
      std::min(limit, readLimit("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
  return limit;
}

} // namespace kvc

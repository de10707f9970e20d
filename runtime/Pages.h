// Which KV pages are in use and by how many sequences. Holds numbers, no bytes.
#ifndef KVC_RUNTIME_PAGES_H
#define KVC_RUNTIME_PAGES_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvc {

class PageAllocator {
public:
  explicit PageAllocator(int32_t capacity) : Capacity(capacity) {}

  /// A page with one reference, or -1 when all are in use. A page that was
  /// used before is preferred, so that memory in use stays small and warm.
  int32_t allocate();
  void retain(int32_t page) { ++References[size_t(page)]; }
  /// Drops one reference; true when that was the last and the page is free.
  bool release(int32_t page);

  int32_t references(int32_t page) const {
    return size_t(page) < References.size() ? References[size_t(page)] : 0;
  }
  int64_t capacity() const { return Capacity; }
  int64_t used() const {
    return int64_t(References.size()) - int64_t(Free.size());
  }
  int64_t available() const { return Capacity - used(); }

private:
  int32_t Capacity;
  std::vector<int32_t> References; // of every page ever used
  std::vector<int32_t> Free;       // used before, free now; last in, first out
};

} // namespace kvc

#endif // KVC_RUNTIME_PAGES_H

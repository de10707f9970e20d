#include "runtime/Pages.h"

namespace kvc {

int32_t PageAllocator::allocate() {
  if (!Free.empty()) {
    int32_t page = Free.back();
    Free.pop_back();
    References[size_t(page)] = 1;
    return page;
  }
  if (int64_t(References.size()) == Capacity)
    return -1;
  References.push_back(1);
  return int32_t(References.size()) - 1;
}

bool PageAllocator::release(int32_t page) {
  if (--References[size_t(page)] != 0)
    return false;
  Free.push_back(page);
  return true;
}

} // namespace kvc

// Sequences of different lengths over shared KV pages: page tables, forks that
// share pages until one side writes, and pages that return at once.
#ifndef KVC_RUNTIME_SEQUENCES_H
#define KVC_RUNTIME_SEQUENCES_H

#include "runtime/Pages.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvc {

/// Where the pages' bytes lie: a device.
class PageStorage {
public:
  virtual ~PageStorage();
  /// The page is about to be written: its memory must be there.
  virtual bool preparePage(int32_t page, std::string &error) = 0;
  virtual void copyPage(int32_t from, int32_t to) = 0;
  /// Nobody reads the page any more.
  virtual void retirePage(int32_t page) = 0;
};

class Sequences {
public:
  Sequences(int32_t pageCapacity, int64_t pageTokens, int64_t maxTokens,
            PageStorage &storage)
      : Pages(pageCapacity), PageTokens(pageTokens), MaxTokens(maxTokens),
        Storage(storage) {}

  /// An empty sequence. Numbers of removed sequences are used again.
  int32_t add();
  /// Makes room for `tokens` more positions. A last page that is partly full
  /// and shared is copied first. On failure nothing has changed.
  bool append(int32_t sequence, int64_t tokens, std::string &error);
  /// A second sequence with the same contents, sharing every page.
  int32_t fork(int32_t sequence);
  /// Forgets all positions from `length` on and returns their pages.
  void truncate(int32_t sequence, int64_t length);
  /// Forgets the sequence and returns its pages.
  void remove(int32_t sequence);

  bool isLive(int32_t sequence) const {
    return sequence >= 0 && size_t(sequence) < Entries.size() &&
           Entries[size_t(sequence)].Live;
  }
  int64_t length(int32_t sequence) const {
    return Entries[size_t(sequence)].Length;
  }
  /// The pages of positions 0, pageTokens, 2 * pageTokens, ...
  const std::vector<int32_t> &pages(int32_t sequence) const {
    return Entries[size_t(sequence)].Pages;
  }
  const PageAllocator &allocator() const { return Pages; }
  int64_t pageTokens() const { return PageTokens; }
  int64_t maxTokens() const { return MaxTokens; }
  int64_t pagesFor(int64_t tokens) const;

private:
  struct Entry {
    bool Live = false;
    int64_t Length = 0;
    std::vector<int32_t> Pages;
  };
  int32_t newEntry();
  void releasePage(int32_t page);

  PageAllocator Pages;
  int64_t PageTokens;
  int64_t MaxTokens;
  PageStorage &Storage;
  std::vector<Entry> Entries;
  std::vector<int32_t> FreeEntries;
};

} // namespace kvc

#endif // KVC_RUNTIME_SEQUENCES_H

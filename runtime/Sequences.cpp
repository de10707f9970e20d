#include "runtime/Sequences.h"
#include "runtime/Checked.h"

#include <cassert>

namespace kvc {

PageStorage::~PageStorage() = default;

int64_t Sequences::pagesFor(int64_t tokens) const {
  return divideUp(tokens, PageTokens);
}

int32_t Sequences::newEntry() {
  int32_t sequence;
  if (!FreeEntries.empty()) {
    sequence = FreeEntries.back();
    FreeEntries.pop_back();
  } else {
    sequence = int32_t(Entries.size());
    Entries.emplace_back();
  }
  Entries[size_t(sequence)].Live = true;
  return sequence;
}

void Sequences::releasePage(int32_t page) {
  if (Pages.release(page))
    Storage.retirePage(page);
}

int32_t Sequences::add() { return newEntry(); }

bool Sequences::append(int32_t sequence, int64_t tokens, std::string &error) {
  assert(isLive(sequence) && "append to a removed sequence");
  Entry &entry = Entries[size_t(sequence)];
  if (tokens < 0 || tokens > MaxTokens - entry.Length) {
    error = "a sequence of " + std::to_string(entry.Length) +
            " tokens cannot take " + std::to_string(tokens) +
            " more: the context holds " + std::to_string(MaxTokens);
    return false;
  }
  if (tokens == 0)
    return true;

  bool partial = entry.Length % PageTokens != 0;
  bool copies = partial && Pages.references(entry.Pages.back()) > 1;
  int64_t grown = pagesFor(entry.Length + tokens) - int64_t(entry.Pages.size());
  int64_t wanted = grown + (copies ? 1 : 0);
  if (wanted > Pages.available()) {
    error = "the KV cache is full: " + std::to_string(wanted) +
            " more pages needed, " + std::to_string(Pages.available()) +
            " of " + std::to_string(Pages.capacity()) + " free";
    return false;
  }

  // All pages first, so that a failure leaves the sequence as it was.
  size_t firstNew = entry.Pages.size();
  for (int64_t i = 0; i != wanted; ++i) {
    int32_t page = Pages.allocate();
    if (Storage.preparePage(page, error)) {
      entry.Pages.push_back(page);
    } else {
      Pages.release(page);
      while (entry.Pages.size() != firstNew) {
        releasePage(entry.Pages.back());
        entry.Pages.pop_back();
      }
      return false;
    }
  }
  if (copies) {
    int32_t shared = entry.Pages[firstNew - 1];
    int32_t own = entry.Pages[firstNew];
    Storage.copyPage(shared, own);
    entry.Pages.erase(entry.Pages.begin() + ptrdiff_t(firstNew) - 1);
    releasePage(shared);
  }
  entry.Length += tokens;
  return true;
}

int32_t Sequences::fork(int32_t sequence) {
  assert(isLive(sequence) && "fork of a removed sequence");
  int32_t copy = newEntry();
  const Entry &from = Entries[size_t(sequence)];
  Entry &to = Entries[size_t(copy)];
  to.Length = from.Length;
  to.Pages = from.Pages;
  for (int32_t page : to.Pages)
    Pages.retain(page);
  return copy;
}

void Sequences::truncate(int32_t sequence, int64_t length) {
  assert(isLive(sequence) && "truncation of a removed sequence");
  Entry &entry = Entries[size_t(sequence)];
  assert(length >= 0 && length <= entry.Length && "truncation cannot grow");
  int64_t kept = pagesFor(length);
  while (int64_t(entry.Pages.size()) > kept) {
    releasePage(entry.Pages.back());
    entry.Pages.pop_back();
  }
  entry.Length = length;
}

void Sequences::remove(int32_t sequence) {
  truncate(sequence, 0);
  Entries[size_t(sequence)].Live = false;
  FreeEntries.push_back(sequence);
}

} // namespace kvc

#include "runtime/Arena.h"
#include "runtime/Sequences.h"

#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace kvc;

namespace {

constexpr int64_t PageTokens = 4;

// Pages of int32 tokens in a real arena.
class TokenPages : public PageStorage {
public:
  explicit TokenPages(int64_t pages) {
    std::string error;
    Reserved = Memory.reserve({pages * PageBytes}, error);
  }
  bool preparePage(int32_t page, std::string &error) override {
    if (FailNext) {
      error = "no memory";
      return false;
    }
    if (!Memory.commit(0, (page + 1) * PageBytes, error))
      return false;
    std::memset(tokens(page), 0xFF, PageBytes);
    return true;
  }
  void copyPage(int32_t from, int32_t to) override {
    ++Copies;
    std::memcpy(tokens(to), tokens(from), PageBytes);
  }
  void retirePage(int32_t page) override {
    ++Retired;
    std::memset(tokens(page), 0xFF, PageBytes);
  }
  int32_t *tokens(int32_t page) {
    return reinterpret_cast<int32_t *>(Memory.base(0) + page * PageBytes);
  }

  static constexpr int64_t PageBytes = PageTokens * int64_t(sizeof(int32_t));
  Arena Memory;
  bool Reserved = false;
  bool FailNext = false;
  int64_t Copies = 0;
  int64_t Retired = 0;
};

// What the runtime must hold, in the plainest form.
using Ledger = std::map<int32_t, std::vector<int32_t>>;

int32_t &tokenAt(Sequences &store, TokenPages &pages, int32_t sequence,
                 int64_t position) {
  int32_t page = store.pages(sequence)[size_t(position / PageTokens)];
  return pages.tokens(page)[position % PageTokens];
}

void write(Sequences &store, TokenPages &pages, int32_t sequence,
           const std::vector<int32_t> &tokens) {
  std::string error;
  int64_t first = store.length(sequence);
  ASSERT_TRUE(store.append(sequence, int64_t(tokens.size()), error)) << error;
  for (size_t i = 0; i != tokens.size(); ++i)
    tokenAt(store, pages, sequence, first + int64_t(i)) = tokens[i];
}

void compare(Sequences &store, TokenPages &pages, const Ledger &ledger) {
  std::map<int32_t, int32_t> references;
  for (const auto &[sequence, tokens] : ledger) {
    ASSERT_TRUE(store.isLive(sequence));
    ASSERT_EQ(store.length(sequence), int64_t(tokens.size()));
    ASSERT_EQ(int64_t(store.pages(sequence).size()),
              store.pagesFor(int64_t(tokens.size())));
    for (int32_t page : store.pages(sequence))
      ++references[page];
    for (size_t i = 0; i != tokens.size(); ++i)
      ASSERT_EQ(tokenAt(store, pages, sequence, int64_t(i)), tokens[i]);
  }
  ASSERT_EQ(store.allocator().used(), int64_t(references.size()));
  for (auto [page, count] : references)
    ASSERT_EQ(store.allocator().references(page), count);
}

} // namespace

TEST(RuntimeSequences, RandomStepsAgainstLedger) {
  constexpr int32_t Capacity = 60;
  constexpr int64_t MaxTokens = 50;
  TokenPages pages(Capacity);
  ASSERT_TRUE(pages.Reserved);
  Sequences store(Capacity, PageTokens, MaxTokens, pages);
  Ledger ledger;
  std::mt19937 random(20240607);
  auto below = [&](size_t n) { return size_t(random() % n); };
  int32_t nextToken = 0;
  int refused = 0;
  for (int round = 0; round != 10000; ++round) {
    size_t kind = below(10);
    if (ledger.empty() || (kind == 0 && ledger.size() < 12)) {
      int32_t sequence = store.add();
      ASSERT_EQ(ledger.count(sequence), 0u);
      ledger[sequence];
    } else {
      auto chosen = std::next(ledger.begin(), ptrdiff_t(below(ledger.size())));
      auto &[sequence, tokens] = *chosen;
      if (kind <= 5) {
        size_t count = below(12);
        size_t before = size_t(store.allocator().used());
        std::string error;
        if (store.append(sequence, int64_t(count), error)) {
          for (size_t i = 0; i != count; ++i) {
            tokens.push_back(nextToken);
            tokenAt(store, pages, sequence, int64_t(tokens.size()) - 1) =
                nextToken++;
          }
        } else {
          ++refused;
          ASSERT_FALSE(error.empty());
          ASSERT_EQ(size_t(store.allocator().used()), before);
        }
      } else if (kind == 6 && ledger.size() < 12) {
        int32_t copy = store.fork(sequence);
        std::vector<int32_t> same = tokens;
        ledger[copy] = same;
      } else if (kind <= 8) {
        size_t length = below(tokens.size() + 1);
        store.truncate(sequence, int64_t(length));
        tokens.resize(length);
      } else {
        store.remove(sequence);
        ASSERT_FALSE(store.isLive(sequence));
        ledger.erase(chosen);
      }
    }
    compare(store, pages, ledger);
    if (HasFatalFailure())
      FAIL() << "round " << round;
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(pages.Copies, 100);
  while (!ledger.empty()) {
    store.remove(ledger.begin()->first);
    ledger.erase(ledger.begin());
  }
  EXPECT_EQ(store.allocator().used(), 0);
}

TEST(RuntimeSequences, ForkCopiesOnlyThePartialPage) {
  TokenPages pages(16);
  Sequences store(16, PageTokens, 64, pages);
  int32_t first = store.add();
  write(store, pages, first, {1, 2, 3, 4, 5, 6});
  int32_t second = store.fork(first);
  EXPECT_EQ(store.allocator().used(), 2);
  write(store, pages, second, {7});
  EXPECT_EQ(store.allocator().used(), 3);
  EXPECT_EQ(pages.Copies, 1);
  EXPECT_EQ(store.pages(first)[0], store.pages(second)[0]);
  EXPECT_NE(store.pages(first)[1], store.pages(second)[1]);
  // The last owner writes in place.
  write(store, pages, first, {8});
  EXPECT_EQ(pages.Copies, 1);
  compare(store, pages,
          {{first, {1, 2, 3, 4, 5, 6, 8}}, {second, {1, 2, 3, 4, 5, 6, 7}}});
  // A page that is full is never copied.
  write(store, pages, first, {9});
  int32_t third = store.fork(first);
  write(store, pages, third, {10});
  EXPECT_EQ(pages.Copies, 1);
}

TEST(RuntimeSequences, TruncationOfSharedPages) {
  TokenPages pages(16);
  Sequences store(16, PageTokens, 64, pages);
  int32_t first = store.add();
  write(store, pages, first, {1, 2, 3, 4, 5, 6, 7, 8});
  int32_t second = store.fork(first);
  store.truncate(second, 2);
  write(store, pages, second, {9, 9, 9});
  compare(store, pages,
          {{first, {1, 2, 3, 4, 5, 6, 7, 8}}, {second, {1, 2, 9, 9, 9}}});
  EXPECT_EQ(pages.Retired, 0);
  store.remove(first);
  EXPECT_EQ(pages.Retired, 2);
}

TEST(RuntimeSequences, RefusesWithoutChange) {
  TokenPages pages(2);
  Sequences store(2, PageTokens, 9, pages);
  int32_t sequence = store.add();
  std::string error;
  EXPECT_FALSE(store.append(sequence, 10, error));
  EXPECT_EQ(error, "a sequence of 0 tokens cannot take 10 more: the context "
                   "holds 9");
  EXPECT_FALSE(store.append(sequence, -1, error));
  EXPECT_FALSE(store.append(sequence, 9, error));
  EXPECT_EQ(error, "the KV cache is full: 3 more pages needed, 2 of 2 free");
  pages.FailNext = true;
  EXPECT_FALSE(store.append(sequence, 5, error));
  EXPECT_EQ(error, "no memory");
  EXPECT_EQ(store.length(sequence), 0);
  EXPECT_EQ(store.allocator().used(), 0);
  pages.FailNext = false;
  EXPECT_TRUE(store.append(sequence, 8, error));
}

TEST(RuntimeArena, CommitsAndRefuses) {
  Arena arena;
  std::string error;
  ASSERT_TRUE(arena.reserve({10000, 0, int64_t(1) << 40}, error)) << error;
  ASSERT_TRUE(arena.commit(0, 10000, error)) << error;
  EXPECT_EQ(uintptr_t(arena.base(0)) % 4096, 0u);
  std::memset(arena.base(0), 1, 10000);
  EXPECT_EQ(arena.committedBytes(0), 12288);
  ASSERT_TRUE(arena.commit(2, 5000000, error)) << error;
  arena.base(2)[4999999] = 1;
  EXPECT_LT(arena.committedBytes(2), 7000000);
  EXPECT_FALSE(arena.commit(0, 10001, error));

  Arena absurd;
  EXPECT_FALSE(absurd.reserve({INT64_MAX - 5, INT64_MAX - 5}, error));
  EXPECT_EQ(error, "the memory plan's sizes overflow 63 bits");
}

#include "runtime/TokenizerMerge.h"

#include "runtime/TokenizerUtf8.h"

#include <algorithm>
#include <map>

namespace kvc {

using Symbol = MergeScratch::Symbol;
using Candidate = MergeScratch::Candidate;

// Whether `a` is to be done after `b`. One order serves both: scores are all
// zero for byte pairs, ranks for SentencePiece.
static bool isLater(const Candidate &a, const Candidate &b) {
  if (a.score != b.score)
    return a.score < b.score;
  if (a.rank != b.rank)
    return a.rank > b.rank;
  return a.left > b.left;
}

static void addSymbol(std::vector<Symbol> &symbols, int32_t id, size_t begin,
                      size_t bytes) {
  auto at = static_cast<int32_t>(symbols.size());
  if (at > 0)
    symbols.back().next = at;
  symbols.push_back({at - 1, -1, id, static_cast<int32_t>(begin),
                     static_cast<int32_t>(bytes)});
}

// Does merges in order until none is left. `propose(left, right, candidate)`
// says whether two neighbours can merge and fills in score or rank and result.
template <typename Propose>
static void runMerges(MergeScratch &scratch, Propose propose) {
  std::vector<Symbol> &symbols = scratch.symbols;
  std::vector<Candidate> &heap = scratch.heap;
  heap.clear();
  auto consider = [&](int32_t left, int32_t right) {
    if (left < 0 || right < 0)
      return false;
    Candidate candidate = {
        0,     0,        left,
        right, kNoToken, symbols[left].bytes + symbols[right].bytes};
    if (!propose(symbols[left], symbols[right], candidate))
      return false;
    heap.push_back(candidate);
    return true;
  };
  for (size_t i = 1; i < symbols.size(); ++i)
    consider(static_cast<int32_t>(i) - 1, static_cast<int32_t>(i));
  std::make_heap(heap.begin(), heap.end(), isLater);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), isLater);
    Candidate merge = heap.back();
    heap.pop_back();
    Symbol &left = symbols[merge.left];
    Symbol &right = symbols[merge.right];
    // Symbols only grow, so the same two still cover as many bytes only if
    // neither has changed.
    if (left.bytes == 0 || right.bytes == 0 ||
        left.bytes + right.bytes != merge.bytes)
      continue;
    left.id = merge.result;
    left.bytes = merge.bytes;
    left.next = right.next;
    right.bytes = 0;
    if (left.next >= 0)
      symbols[left.next].previous = merge.left;
    if (consider(left.previous, merge.left))
      std::push_heap(heap.begin(), heap.end(), isLater);
    if (consider(merge.left, left.next))
      std::push_heap(heap.begin(), heap.end(), isLater);
  }
}

void mergeBytePairs(const TokenizerView &view, std::string_view word,
                    MergeScratch &scratch, std::vector<int32_t> &ids) {
  std::vector<Symbol> &symbols = scratch.symbols;
  symbols.clear();
  // A byte without a token is left out and its neighbours become neighbours of
  // each other, as in Hugging Face's implementation.
  for (size_t i = 0; i < word.size(); ++i) {
    int32_t id = view.byteToken(static_cast<uint8_t>(word[i]));
    if (id != kNoToken)
      addSymbol(symbols, id, i, 1);
  }
  runMerges(scratch,
            [&](const Symbol &left, const Symbol &right, Candidate &candidate) {
              const MergeSlot *merge = view.findMerge(left.id, right.id);
              if (!merge)
                return false;
              candidate.rank = merge->rank;
              candidate.result = merge->result;
              return true;
            });
  for (const Symbol &symbol : symbols)
    if (symbol.bytes > 0)
      ids.push_back(symbol.id);
}

namespace {
// Turns the symbols of a SentencePiece text into ids.
class PieceWriter {
public:
  PieceWriter(const TokenizerView &view, std::vector<int32_t> &ids)
      : view(view), ids(ids) {}

  // How the unused token `text` came about: it is taken apart again.
  void noteUnused(std::string_view text, size_t leftBytes) {
    unused[text] = leftBytes;
  }

  void write(std::string_view text, int32_t id) {
    if (id != kNoToken && view.type(id) == TokenType::Unused) {
      auto found = unused.find(text);
      if (found != unused.end()) {
        std::string_view left = text.substr(0, found->second);
        std::string_view right = text.substr(found->second);
        write(left, view.find(left));
        write(right, view.find(right));
        return;
      }
    }
    if (id != kNoToken) {
      ids.push_back(id);
      afterUnknown = false;
      return;
    }
    bool spelled = true;
    for (char c : text)
      spelled &= view.byteToken(static_cast<uint8_t>(c)) != kNoToken;
    if (spelled) {
      for (char c : text)
        ids.push_back(view.byteToken(static_cast<uint8_t>(c)));
      afterUnknown = false;
      return;
    }
    int32_t unk = view.header().special.unk;
    if (unk != kNoToken && !afterUnknown)
      ids.push_back(unk);
    afterUnknown = true;
  }

private:
  const TokenizerView &view;
  std::vector<int32_t> &ids;
  std::map<std::string_view, size_t> unused;
  bool afterUnknown = false;
};
} // namespace

void mergePieces(const TokenizerView &view, std::string_view text,
                 MergeScratch &scratch, std::vector<int32_t> &ids) {
  std::vector<Symbol> &symbols = scratch.symbols;
  symbols.clear();
  for (size_t at = 0; at < text.size();) {
    size_t bytes = utf8Head(text.substr(at)).bytes;
    addSymbol(symbols, view.find(text.substr(at, bytes)), at, bytes);
    at += bytes;
  }
  PieceWriter writer(view, ids);
  auto longest = static_cast<int32_t>(view.header().maxTokenBytes);
  runMerges(scratch,
            [&](const Symbol &left, const Symbol &, Candidate &candidate) {
              if (candidate.bytes > longest)
                return false;
              std::string_view both = text.substr(left.begin, candidate.bytes);
              candidate.result = view.find(both);
              if (candidate.result == kNoToken)
                return false;
              candidate.score = view.score(candidate.result);
              if (view.type(candidate.result) == TokenType::Unused)
                writer.noteUnused(both, left.bytes);
              return true;
            });
  for (const Symbol &symbol : symbols)
    if (symbol.bytes > 0)
      writer.write(text.substr(symbol.begin, symbol.bytes), symbol.id);
}

} // namespace kvc

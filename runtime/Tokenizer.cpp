#include "runtime/Tokenizer.h"

#include "runtime/TokenizerBlob.h"
#include "runtime/TokenizerMerge.h"
#include "runtime/TokenizerPre.h"
#include "runtime/TokenizerUtf8.h"

#include <bitset>
#include <mutex>
#include <set>
#include <unordered_map>

namespace kvc {

// SentencePiece's space.
static constexpr std::string_view spaceMark = "\xe2\x96\x81";

namespace {
// A part of a raw text: a token recognised in it (id), or text (kNoToken).
struct Fragment {
  int32_t id;
  std::string_view text;
};

// Words already merged. Text repeats its words, so most never reach the heap.
class WordCache {
public:
  const std::vector<int32_t> *find(const std::string &word) const {
    auto found = words.find(word);
    return found == words.end() ? nullptr : &found->second;
  }
  void add(const std::string &word, const int32_t *ids, size_t count) {
    if (word.size() > maxWord)
      return;
    if (words.size() == maxWords)
      words.clear();
    words.emplace(word, std::vector<int32_t>(ids, ids + count));
  }

private:
  static constexpr size_t maxWord = 64;
  static constexpr size_t maxWords = 32768;
  std::unordered_map<std::string, std::vector<int32_t>> words;
};
} // namespace

struct Tokenizer::Impl {
  TokenizerView view;
  bool bytePairs = false;
  bool ignoreMerges = false;
  std::vector<int32_t> stopIds;

  // What encoding writes to, under the lock.
  std::mutex lock;
  std::unique_ptr<PreTokenizer> pre;
  WordCache cache;
  MergeScratch scratch;
  std::vector<size_t> words;
  std::string word;

  std::vector<Fragment> partition(std::string_view text,
                                  bool parseSpecial) const;
  bool encodeBytePairs(std::string_view text, std::vector<int32_t> &ids,
                       std::string &error);
  void encodePieces(std::string_view text, bool atStart,
                    std::vector<int32_t> &ids);
};

Tokenizer::Tokenizer() : impl(std::make_unique<Impl>()) {}
Tokenizer::~Tokenizer() = default;

std::unique_ptr<Tokenizer> Tokenizer::create(const void *blob, size_t bytes,
                                             std::string &error) {
  std::unique_ptr<Tokenizer> result(new Tokenizer);
  Impl &impl = *result->impl;
  if (!impl.view.open(blob, bytes, error))
    return nullptr;
  impl.bytePairs = impl.view.header().model ==
                   static_cast<uint32_t>(TokenizerModel::BytePairs);
  if (impl.bytePairs) {
    const PreTokenizerInfo *info = findPreTokenizer(impl.view.pre());
    if (!info) {
      error = "tokenizer blob: unknown pre-tokenizer '" +
              std::string(impl.view.pre()) + "'";
      return nullptr;
    }
    impl.ignoreMerges = info->ignoreMerges;
    impl.pre = PreTokenizer::create(*info, error);
    if (!impl.pre)
      return nullptr;
  }
  const SpecialTokens &special = impl.view.header().special;
  std::set<int32_t> stopIds;
  for (int32_t id : {special.eos, special.eot, special.eom})
    if (id != kNoToken)
      stopIds.insert(id);
  impl.stopIds.assign(stopIds.begin(), stopIds.end());
  return result;
}

// Special tokens are searched longest first over the whole text, as llama.cpp
// does, so a longer token wins over a shorter one that begins before it.
std::vector<Fragment> Tokenizer::Impl::partition(std::string_view text,
                                                 bool parseSpecial) const {
  std::vector<Fragment> fragments;
  if (text.empty())
    return fragments;
  fragments.push_back({kNoToken, text});
  if (view.specialCount() == 0)
    return fragments;
  std::bitset<256> present;
  for (char c : text)
    present.set(static_cast<uint8_t>(c));
  std::vector<Fragment> next;
  for (size_t i = 0; i < view.specialCount(); ++i) {
    int32_t id = view.specials()[i];
    std::string_view token = view.text(id);
    if (!parseSpecial && view.type(id) != TokenType::UserDefined)
      continue;
    if (!present[static_cast<uint8_t>(token.front())] ||
        !present[static_cast<uint8_t>(token.back())] ||
        text.find(token) == std::string_view::npos)
      continue;
    next.clear();
    for (const Fragment &fragment : fragments) {
      if (fragment.id != kNoToken) {
        next.push_back(fragment);
        continue;
      }
      std::string_view rest = fragment.text;
      for (size_t at; (at = rest.find(token)) != std::string_view::npos;) {
        if (at > 0)
          next.push_back({kNoToken, rest.substr(0, at)});
        next.push_back({id, token});
        rest.remove_prefix(at + token.size());
      }
      if (!rest.empty())
        next.push_back({kNoToken, rest});
    }
    fragments.swap(next);
  }
  return fragments;
}

bool Tokenizer::Impl::encodeBytePairs(std::string_view text,
                                      std::vector<int32_t> &ids,
                                      std::string &error) {
  if (!pre->split(text, words, error))
    return false;
  size_t begin = 0;
  for (size_t length : words) {
    word.assign(text.substr(begin, length));
    begin += length;
    if (const std::vector<int32_t> *known = cache.find(word)) {
      ids.insert(ids.end(), known->begin(), known->end());
      continue;
    }
    size_t first = ids.size();
    int32_t whole = ignoreMerges ? view.find(word) : kNoToken;
    if (whole != kNoToken)
      ids.push_back(whole);
    else
      mergeBytePairs(view, word, scratch, ids);
    cache.add(word, ids.data() + first, ids.size() - first);
  }
  return true;
}

void Tokenizer::Impl::encodePieces(std::string_view text, bool atStart,
                                   std::vector<int32_t> &ids) {
  word.clear();
  if (atStart && view.header().addSpacePrefix)
    word += spaceMark;
  for (char c : text) {
    if (c == ' ')
      word += spaceMark;
    else
      word += c;
  }
  mergePieces(view, word, scratch, ids);
}

bool Tokenizer::encode(std::string_view text, bool parseSpecial, bool addBos,
                       std::vector<int32_t> &ids, std::string &error) const {
  // Positions in a text are int32; the space mark is three bytes for one.
  if (text.size() > INT32_MAX / 3) {
    error = "a text of " + std::to_string(text.size()) +
            " bytes, the tokenizer takes at most " +
            std::to_string(INT32_MAX / 3);
    return false;
  }
  std::string repaired;
  if (!isUtf8(text)) {
    repaired = toUtf8(text);
    text = repaired;
  }
  if (addBos && addsBos())
    ids.push_back(special().bos);
  std::lock_guard<std::mutex> guard(impl->lock);
  // A SentencePiece text gets its space at the start and after every special
  // token.
  bool atStart = true;
  for (const Fragment &fragment : impl->partition(text, parseSpecial)) {
    if (fragment.id != kNoToken)
      ids.push_back(fragment.id);
    else if (!impl->bytePairs)
      impl->encodePieces(fragment.text, atStart, ids);
    else if (!impl->encodeBytePairs(fragment.text, ids, error))
      return false;
    atStart = fragment.id != kNoToken;
  }
  return true;
}

void Tokenizer::appendPiece(int32_t id, std::string &text,
                            bool renderSpecial) const {
  const TokenizerView &view = impl->view;
  if (id < 0 || id >= view.size())
    return;
  std::string_view piece = view.text(id);
  switch (view.type(id)) {
  case TokenType::Control:
  case TokenType::Unknown:
  case TokenType::Unused:
    if (renderSpecial)
      text += piece;
    return;
  case TokenType::UserDefined:
  case TokenType::Byte:
    text += piece;
    return;
  case TokenType::Normal:
    break;
  }
  if (impl->bytePairs) {
    text += piece;
    return;
  }
  for (size_t at; (at = piece.find(spaceMark)) != std::string_view::npos;) {
    text += piece.substr(0, at);
    text += ' ';
    piece.remove_prefix(at + spaceMark.size());
  }
  text += piece;
}

std::string Tokenizer::decode(const int32_t *ids, size_t count,
                              bool renderSpecial) const {
  std::string text;
  bool atStart = true;
  for (size_t i = 0; i < count; ++i) {
    size_t before = text.size();
    appendPiece(ids[i], text, renderSpecial);
    TokenType kind = type(ids[i]);
    bool isText = kind != TokenType::Control && kind != TokenType::UserDefined;
    if (atStart && isText && impl->view.header().addSpacePrefix &&
        text.size() > before && text[before] == ' ')
      text.erase(before, 1);
    atStart = !isText;
  }
  return text;
}

int32_t Tokenizer::size() const { return impl->view.size(); }

SpecialTokens Tokenizer::special() const { return impl->view.header().special; }

bool Tokenizer::addsBos() const { return impl->view.header().addBos != 0; }

TokenType Tokenizer::type(int32_t id) const {
  if (id < 0 || id >= impl->view.size())
    return TokenType::Unused;
  return impl->view.type(id);
}

const std::vector<int32_t> &Tokenizer::stopIds() const { return impl->stopIds; }

} // namespace kvc

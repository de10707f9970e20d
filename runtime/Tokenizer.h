// Text to token ids and back.
#ifndef KVC_RUNTIME_TOKENIZER_H
#define KVC_RUNTIME_TOKENIZER_H

#include "runtime/TokenizerData.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kvc {

// A tokenizer over a blob of serialize(). The blob is read in place and must
// outlive the object. All members are safe to call from several threads.
class Tokenizer {
public:
  // Opens a blob; returns null and sets `error` to one line when it is not one.
  static std::unique_ptr<Tokenizer> create(const void *blob, size_t bytes,
                                           std::string &error);
  ~Tokenizer();

  // Appends the ids of `text`. With `parseSpecial`, control tokens written in
  // the text are recognised; user-defined ones always are. With `addBos` the
  // result starts with BOS if the file asks for it (a raw prompt); without, it
  // never does (text that a chat template made). Invalid UTF-8 is read as
  // U+FFFD, one for each maximal invalid part. A byte that no token can spell
  // is left out (SmolLM2 has none for some control characters). Returns false
  // and sets `error` only for a text of 2 GiB or more, and when a limit of the
  // regular expressions is exceeded.
  bool encode(std::string_view text, bool parseSpecial, bool addBos,
              std::vector<int32_t> &ids, std::string &error) const;

  // Appends the bytes of one token as they stand in the middle of a text; they
  // may end inside a UTF-8 character. Control, unknown and unused tokens are
  // empty unless `renderSpecial`. An id outside the vocabulary is empty.
  void appendPiece(int32_t id, std::string &text,
                   bool renderSpecial = false) const;

  // The text of a whole sequence: its pieces, less the spaces that encode()
  // itself puts in front of a SentencePiece text. A continuation of other text
  // keeps its leading space: build that from pieces.
  std::string decode(const int32_t *ids, size_t count,
                     bool renderSpecial = false) const;
  std::string decode(const std::vector<int32_t> &ids,
                     bool renderSpecial = false) const {
    return decode(ids.data(), ids.size(), renderSpecial);
  }

  // Number of tokens. The model's logits may have more columns: a padded id is
  // never to be sampled.
  int32_t size() const;
  SpecialTokens special() const;
  bool addsBos() const;
  TokenType type(int32_t id) const;

  // Ids that end a generation: eos, eot and eom, each once, ascending.
  const std::vector<int32_t> &stopIds() const;

private:
  Tokenizer();
  struct Impl;
  std::unique_ptr<Impl> impl;
};

// Holds back the bytes of an unfinished UTF-8 character while a text is
// streamed token by token.
class TextStream {
public:
  // Adds a piece; returns what may be written now: whole characters only.
  // Bytes that can never become a character are passed on as they are.
  std::string push(std::string_view piece);
  // The bytes held back, at the end of the text.
  std::string finish();

private:
  std::string held;
};

} // namespace kvc

#endif // KVC_RUNTIME_TOKENIZER_H

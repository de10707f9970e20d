// Pre-tokenizers: how a text is cut into words before byte pairs are merged.
#ifndef KVC_RUNTIME_TOKENIZERPRE_H
#define KVC_RUNTIME_TOKENIZERPRE_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kvc {

// What a pre-tokenizer's name means.
struct PreTokenizerInfo {
  const char *name;
  // Applied one after the other to every part that the one before left: what a
  // pattern matches and what lies between two matches become parts.
  const char *const *patterns;
  size_t patternCount;
  bool ignoreMerges; // a word that is itself a token is not merged up
  bool addsBos;      // unless the file says otherwise
};

// Null for a name that is not known.
const PreTokenizerInfo *findPreTokenizer(std::string_view name);

// Every known name, comma separated, for messages.
std::string preTokenizerNames();

// A pre-tokenizer ready to run. Not safe to use from two threads at once.
class PreTokenizer {
public:
  // Null, with one line in `error`, if PCRE2 cannot compile a pattern.
  static std::unique_ptr<PreTokenizer> create(const PreTokenizerInfo &info,
                                              std::string &error);
  ~PreTokenizer();

  // Cuts `text`, which must be valid UTF-8, into the lengths of its words.
  bool split(std::string_view text, std::vector<size_t> &words,
             std::string &error);

private:
  PreTokenizer();
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace kvc

#endif // KVC_RUNTIME_TOKENIZERPRE_H

// The records of test/oracle/tokenizer/, as the tokenizers' tests read them.
#ifndef KVC_TEST_UNIT_TOKENIZERRECORDS_H
#define KVC_TEST_UNIT_TOKENIZERRECORDS_H

#include "runtime/Tokenizer.h"

#include <memory>
#include <string>
#include <vector>

namespace kvc {

struct TokenizerRecord {
  std::string text;
  bool parseSpecial;
  std::vector<int32_t> ids;
};

// The records of NAME.json.
std::vector<TokenizerRecord> readTokenizerRecords(const std::string &name);

// The vocabulary of NAME.json.
TokenizerSource readTokenizerVocabulary(const std::string &name);

// A tokenizer with the blob it reads.
struct OwnedTokenizer {
  std::vector<uint8_t> blob;
  std::unique_ptr<Tokenizer> tokenizer;

  const Tokenizer *operator->() const { return tokenizer.get(); }
};

// Fails the test, and returns no tokenizer, on an error.
OwnedTokenizer makeTokenizer(const TokenizerSource &source);

// Text to ids, failing the test on an error.
std::vector<int32_t> encodeText(const Tokenizer &tokenizer,
                                std::string_view text, bool parseSpecial = true,
                                bool addBos = false);

// Compares every record, and checks that the ids give the text back.
void checkTokenizerRecords(const Tokenizer &tokenizer,
                           const std::vector<TokenizerRecord> &records);

} // namespace kvc

#endif // KVC_TEST_UNIT_TOKENIZERRECORDS_H

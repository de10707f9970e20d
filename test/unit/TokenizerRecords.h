// The records of test/oracle/tokenizer/, as the tokenizers' tests read them.
#ifndef KVC_TEST_UNIT_TOKENIZERRECORDS_H
#define KVC_TEST_UNIT_TOKENIZERRECORDS_H

#include "runtime/Tokenizer.h"

#include <memory>
#include <random>
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

// Bytes, and the text that Python makes of them.
struct MalformedText {
  std::string bytes;
  std::string text;
};
std::vector<MalformedText> readMalformedTexts();

// Bytes, often but not always valid UTF-8, with spaces, digits, contractions
// and special tokens among them.
std::string randomText(std::mt19937 &random);

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

// Compares every record.
void checkTokenizerRecords(const Tokenizer &tokenizer,
                           const std::vector<TokenizerRecord> &records);

} // namespace kvc

#endif // KVC_TEST_UNIT_TOKENIZERRECORDS_H

// A model's tokenizer as data: what the compiler writes into a program's
// payload and the runtime maps and reads in place.
//
// Three steps: a reader of files fills a TokenizerSource with the metadata as
// it found it; buildTokenizerData checks it and resolves names to ids;
// serialize lays it out with its hash tables built, so that start-up only
// checks bounds.
#ifndef KVC_RUNTIME_TOKENIZERDATA_H
#define KVC_RUNTIME_TOKENIZERDATA_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvc {

enum class TokenizerModel : uint32_t {
  BytePairs = 1,     // GGUF "gpt2": byte-level BPE, merges by rank
  SentencePiece = 2, // GGUF "llama": merges by score, byte fallback
};

// GGUF's numbers.
enum class TokenType : uint8_t {
  Normal = 1,
  Unknown = 2,
  Control = 3,
  UserDefined = 4,
  Unused = 5,
  Byte = 6,
};

// No such token.
constexpr int32_t kNoToken = -1;

// Token ids that have a meaning of their own; kNoToken where there is none.
struct SpecialTokens {
  int32_t bos = kNoToken;
  int32_t eos = kNoToken;
  int32_t eot = kNoToken; // end of a turn
  int32_t eom = kNoToken; // end of a message
  int32_t unk = kNoToken;
  int32_t pad = kNoToken;
};

// An optional setting of a file: absent means the model's own default.
enum class TokenizerFlag : uint8_t { Absent, Off, On };

// A tokenizer's metadata as the file states it, unchecked. Token texts are in
// the file's own spelling (byte-level characters, U+2581 for a space).
struct TokenizerSource {
  std::string keyPrefix = "tokenizer.ggml."; // how messages name the keys
  std::string model;                         // "gpt2" or "llama"
  std::string pre;                 // pre-tokenizer, "gpt2" models only
  std::vector<std::string> tokens; // by id
  std::vector<int32_t> types;      // TokenType; empty: all normal
  std::vector<float> scores;       // "llama" models only
  std::vector<std::string> merges; // "left right", "gpt2" models only
  SpecialTokens special;           // kNoToken: the file has no such key
  TokenizerFlag addBos = TokenizerFlag::Absent;
  TokenizerFlag addSpacePrefix = TokenizerFlag::Absent;
};

// A merge of two tokens; its rank is its place in the list.
struct TokenMerge {
  int32_t left;
  int32_t right;
  int32_t result;
};

// A checked tokenizer. Token bytes are what a token stands for in text, except
// that SentencePiece keeps U+2581 where text has a space.
struct TokenizerData {
  TokenizerModel model = TokenizerModel::BytePairs;
  std::string pre;
  std::vector<std::string> tokens;
  std::vector<TokenType> types;
  std::vector<float> scores;
  std::vector<TokenMerge> merges;
  // The token of each byte: one-byte tokens of byte pairs, SentencePiece's
  // <0xXX>. kNoToken for a byte that the vocabulary cannot spell.
  std::array<int32_t, 256> byteTokens;
  SpecialTokens special;
  bool addBos = false;
  bool addSpacePrefix = false;
};

// Checks `source` and fills `data`. On failure returns false and sets `error`
// to one line: key 'tokenizer.ggml.pre': found 'x', rule: ...
bool buildTokenizerData(const TokenizerSource &source, TokenizerData &data,
                        std::string &error);

// The blob of a tokenizer. It may lie at any address that is a multiple of 8,
// and bytes may follow it.
std::vector<uint8_t> serialize(const TokenizerData &data);

} // namespace kvc

#endif // KVC_RUNTIME_TOKENIZERDATA_H

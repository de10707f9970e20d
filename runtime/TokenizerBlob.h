// The layout of a tokenizer's blob, and the view that reads it in place.
//
// All numbers are little endian. A header, then the sections in the order of
// BlobSection, each at a multiple of 8. Hash tables are open addressed with
// linear probing, a power of two in size, and have an empty slot.
#ifndef KVC_RUNTIME_TOKENIZERBLOB_H
#define KVC_RUNTIME_TOKENIZERBLOB_H

#include "runtime/TokenizerData.h"

namespace kvc {

// A change to anything in this file is a new version.
constexpr uint32_t kTokenizerBlobVersion = 1;

enum BlobSection : uint32_t {
  BlobPre,        // char: the pre-tokenizer's name
  BlobOffsets,    // uint32_t[tokens + 1] into BlobText
  BlobText,       // char: the tokens' bytes
  BlobTypes,      // uint8_t[tokens]
  BlobScores,     // float[tokens], SentencePiece only
  BlobTokenSlots, // int32_t: id + 1 by text; tokens that text can become
  BlobMergeSlots, // MergeSlot, byte pairs only
  BlobByteTokens, // int32_t[256]: the token of a byte
  BlobSpecials,   // int32_t: tokens recognised in raw text, longest first
  BlobSectionCount
};

struct BlobRange {
  uint64_t offset; // from the header
  uint64_t count;  // elements
};

struct BlobHeader {
  char magic[8]; // "kvc-tok"
  uint32_t version;
  uint32_t headerBytes;
  uint64_t bytes; // of the whole blob
  uint32_t model;
  uint32_t addBos;
  uint32_t addSpacePrefix;
  uint32_t maxTokenBytes;
  SpecialTokens special;
  BlobRange sections[BlobSectionCount];
};
static_assert(sizeof(SpecialTokens) == 24 &&
                  sizeof(BlobHeader) == 64 + 16 * BlobSectionCount,
              "the header has no padding");

struct MergeSlot {
  int32_t left; // kNoToken: empty
  int32_t right;
  int32_t result;
  int32_t rank;
};

constexpr char kTokenizerMagic[8] = "kvc-tok";

uint64_t hashTokenText(std::string_view text);
uint64_t hashTokenPair(int32_t left, int32_t right);

// The blob, checked so that no reading of it goes out of bounds or for ever.
class TokenizerView {
public:
  // Returns false and sets `error` when these bytes are no tokenizer's blob.
  bool open(const void *blob, size_t bytes, std::string &error);

  const BlobHeader &header() const { return *base; }
  int32_t size() const { return tokenCount; }
  std::string_view pre() const { return preName; }
  std::string_view text(int32_t id) const {
    return {chars + offsets[id], offsets[id + 1] - offsets[id]};
  }
  TokenType type(int32_t id) const { return static_cast<TokenType>(types[id]); }
  float score(int32_t id) const { return scores[id]; }
  int32_t byteToken(uint8_t byte) const { return byteTokens[byte]; }
  const int32_t *specials() const { return specialIds; }
  size_t specialCount() const { return specialsSize; }

  // The token with this text, kNoToken if none.
  int32_t find(std::string_view text) const;
  // The merge of two tokens, null if there is none.
  const MergeSlot *findMerge(int32_t left, int32_t right) const;

private:
  template <typename T>
  bool section(BlobSection which, const T *&data, uint64_t &count,
               std::string &error) const;

  const BlobHeader *base = nullptr;
  int32_t tokenCount = 0;
  std::string_view preName;
  const uint32_t *offsets = nullptr;
  const char *chars = nullptr;
  const uint8_t *types = nullptr;
  const float *scores = nullptr;
  const int32_t *tokenSlots = nullptr;
  uint64_t tokenMask = 0;
  const MergeSlot *mergeSlots = nullptr;
  uint64_t mergeMask = 0;
  const int32_t *byteTokens = nullptr;
  const int32_t *specialIds = nullptr;
  size_t specialsSize = 0;
};

} // namespace kvc

#endif // KVC_RUNTIME_TOKENIZERBLOB_H

#include "runtime/TokenizerBlob.h"

#include <algorithm>
#include <cstring>

namespace kvc {

// Both hashes are part of the format: FNV-1a, and a multiplicative mix. The
// final shifts bring the well-mixed high bits down to where the mask looks.
uint64_t hashTokenText(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text)
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash ^ hash >> 32;
}

uint64_t hashTokenPair(int32_t left, int32_t right) {
  uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 |
                 static_cast<uint32_t>(right);
  key = (key ^ key >> 29) * 0x9e3779b97f4a7c15;
  return key ^ key >> 32;
}

// Slots for a table of `entries`: at most three quarters full, so that a miss
// ends soon and always at an empty slot.
static uint64_t slotsFor(uint64_t entries) {
  uint64_t slots = 8;
  while (slots * 3 < entries * 4)
    slots *= 2;
  return slots;
}

// A token that a run of plain text can turn into. Byte pairs look whole words
// up only among normal tokens; SentencePiece never makes control tokens out of
// text, whatever their spelling.
static bool isTextToken(TokenizerModel model, TokenType type) {
  if (type == TokenType::Normal)
    return true;
  return model == TokenizerModel::SentencePiece &&
         (type == TokenType::UserDefined || type == TokenType::Unused);
}

static bool isSpecial(TokenType type) {
  return type == TokenType::Control || type == TokenType::UserDefined ||
         type == TokenType::Unknown;
}

namespace {
// Appends sections to a blob and notes where they are.
class BlobWriter {
public:
  BlobWriter() : blob(sizeof(BlobHeader)) {}

  template <typename T>
  void add(BlobSection which, const T *data, uint64_t count) {
    blob.resize((blob.size() + 7) / 8 * 8);
    ranges[which] = {blob.size(), count};
    const auto *bytes = reinterpret_cast<const uint8_t *>(data);
    blob.insert(blob.end(), bytes, bytes + count * sizeof(T));
  }
  template <typename T>
  void add(BlobSection which, const std::vector<T> &data) {
    add(which, data.data(), data.size());
  }

  std::vector<uint8_t> finish(BlobHeader header) {
    blob.resize((blob.size() + 7) / 8 * 8);
    header.bytes = blob.size();
    std::copy(ranges, ranges + BlobSectionCount, header.sections);
    std::memcpy(blob.data(), &header, sizeof(header));
    return std::move(blob);
  }

private:
  std::vector<uint8_t> blob;
  BlobRange ranges[BlobSectionCount] = {};
};
} // namespace

static std::vector<int32_t> tokenTable(const TokenizerData &data) {
  std::vector<int32_t> ids;
  for (size_t id = 0; id < data.tokens.size(); ++id)
    if (isTextToken(data.model, data.types[id]) && !data.tokens[id].empty())
      ids.push_back(static_cast<int32_t>(id));
  std::vector<int32_t> slots(slotsFor(ids.size() + 1), 0);
  for (int32_t id : ids) {
    uint64_t at = hashTokenText(data.tokens[id]) & (slots.size() - 1);
    while (slots[at])
      at = (at + 1) & (slots.size() - 1);
    slots[at] = id + 1;
  }
  return slots;
}

static std::vector<MergeSlot> mergeTable(const TokenizerData &data) {
  std::vector<MergeSlot> slots(slotsFor(data.merges.size() + 1),
                               {kNoToken, 0, 0, 0});
  int32_t rank = 0;
  for (const TokenMerge &merge : data.merges) {
    uint64_t at = hashTokenPair(merge.left, merge.right) & (slots.size() - 1);
    while (slots[at].left != kNoToken &&
           (slots[at].left != merge.left || slots[at].right != merge.right))
      at = (at + 1) & (slots.size() - 1);
    // A pair listed twice keeps its first rank.
    if (slots[at].left == kNoToken)
      slots[at] = {merge.left, merge.right, merge.result, rank};
    ++rank;
  }
  return slots;
}

std::vector<uint8_t> serialize(const TokenizerData &data) {
  std::vector<uint32_t> offsets{0};
  std::string text;
  std::vector<int32_t> specials;
  size_t longest = 0;
  for (size_t id = 0; id < data.tokens.size(); ++id) {
    text += data.tokens[id];
    offsets.push_back(static_cast<uint32_t>(text.size()));
    longest = std::max(longest, data.tokens[id].size());
    if (isSpecial(data.types[id]) && !data.tokens[id].empty())
      specials.push_back(static_cast<int32_t>(id));
  }
  std::sort(specials.begin(), specials.end(), [&](int32_t a, int32_t b) {
    size_t aBytes = data.tokens[a].size(), bBytes = data.tokens[b].size();
    return aBytes != bBytes ? aBytes > bBytes : a < b;
  });

  BlobHeader header = {};
  std::memcpy(header.magic, kTokenizerMagic, sizeof(header.magic));
  header.version = kTokenizerBlobVersion;
  header.headerBytes = sizeof(BlobHeader);
  header.model = static_cast<uint32_t>(data.model);
  header.addBos = data.addBos;
  header.addSpacePrefix = data.addSpacePrefix;
  header.maxTokenBytes = static_cast<uint32_t>(longest);
  header.special = data.special;

  BlobWriter writer;
  writer.add(BlobPre, data.pre.data(), data.pre.size());
  writer.add(BlobOffsets, offsets);
  writer.add(BlobText, text.data(), text.size());
  writer.add(BlobTypes, data.types);
  writer.add(BlobScores, data.scores);
  writer.add(BlobTokenSlots, tokenTable(data));
  if (data.model == TokenizerModel::BytePairs)
    writer.add(BlobMergeSlots, mergeTable(data));
  writer.add(BlobByteTokens, data.byteTokens.data(), data.byteTokens.size());
  writer.add(BlobSpecials, specials);
  return writer.finish(header);
}

template <typename T>
bool TokenizerView::section(BlobSection which, const T *&data, uint64_t &count,
                            std::string &error) const {
  const BlobRange &range = base->sections[which];
  if (range.offset % 8 || range.offset > base->bytes ||
      range.count > (base->bytes - range.offset) / sizeof(T)) {
    error = "tokenizer blob: section " + std::to_string(which) + " of " +
            std::to_string(range.count) + " elements at " +
            std::to_string(range.offset) + " does not lie in the blob's " +
            std::to_string(base->bytes) + " bytes";
    return false;
  }
  data = reinterpret_cast<const T *>(reinterpret_cast<const char *>(base) +
                                     range.offset);
  count = range.count;
  return true;
}

static bool isPowerOfTwo(uint64_t value) {
  return value && !(value & (value - 1));
}

bool TokenizerView::open(const void *blob, size_t bytes, std::string &error) {
  auto fail = [&](const std::string &what) {
    error = "tokenizer blob: " + what;
    return false;
  };
  if (reinterpret_cast<uintptr_t>(blob) % 8)
    return fail("its address is not a multiple of 8");
  if (bytes < sizeof(BlobHeader))
    return fail(std::to_string(bytes) + " bytes are less than its header");
  base = static_cast<const BlobHeader *>(blob);
  if (std::memcmp(base->magic, kTokenizerMagic, sizeof(kTokenizerMagic)) != 0)
    return fail("it does not begin with its magic");
  if (base->version != kTokenizerBlobVersion)
    return fail("version " + std::to_string(base->version) +
                ", this runtime reads version " +
                std::to_string(kTokenizerBlobVersion));
  if (base->headerBytes != sizeof(BlobHeader) || base->bytes > bytes ||
      base->bytes < sizeof(BlobHeader))
    return fail("it states " + std::to_string(base->bytes) +
                " bytes, there are " + std::to_string(bytes));
  if (base->model != static_cast<uint32_t>(TokenizerModel::BytePairs) &&
      base->model != static_cast<uint32_t>(TokenizerModel::SentencePiece))
    return fail("unknown model " + std::to_string(base->model));
  bool bytePairs =
      base->model == static_cast<uint32_t>(TokenizerModel::BytePairs);

  const char *preChars;
  uint64_t preSize, offsetCount, textSize, typeCount, scoreCount, slotCount,
      mergeCount, byteCount, specialCount;
  if (!section(BlobPre, preChars, preSize, error) ||
      !section(BlobOffsets, offsets, offsetCount, error) ||
      !section(BlobText, chars, textSize, error) ||
      !section(BlobTypes, types, typeCount, error) ||
      !section(BlobScores, scores, scoreCount, error) ||
      !section(BlobTokenSlots, tokenSlots, slotCount, error) ||
      !section(BlobMergeSlots, mergeSlots, mergeCount, error) ||
      !section(BlobByteTokens, byteTokens, byteCount, error) ||
      !section(BlobSpecials, specialIds, specialCount, error))
    return false;
  preName = {preChars, preSize};
  if (typeCount == 0 || typeCount >= INT32_MAX ||
      offsetCount != typeCount + 1 || byteCount != 256 ||
      (!bytePairs && scoreCount != typeCount))
    return fail("sections that belong together differ in length");
  if (!isPowerOfTwo(slotCount) || (bytePairs && !isPowerOfTwo(mergeCount)))
    return fail("a hash table's size is not a power of two");
  tokenCount = static_cast<int32_t>(typeCount);
  tokenMask = slotCount - 1;
  mergeMask = mergeCount - 1;
  specialsSize = specialCount;

  auto isId = [&](int32_t id) { return id >= 0 && id < tokenCount; };
  auto isIdOrNone = [&](int32_t id) { return id == kNoToken || isId(id); };
  bool good = offsets[0] == 0 && offsets[tokenCount] <= textSize;
  for (int32_t id = 0; id < tokenCount; ++id) {
    good &= offsets[id] <= offsets[id + 1];
    good &= offsets[id + 1] - offsets[id] <= base->maxTokenBytes;
    good &= types[id] >= 1 && types[id] <= 6;
  }
  if (!good)
    return fail("a token's place or type is out of bounds");
  uint64_t empty = 0;
  for (uint64_t i = 0; i < slotCount; ++i) {
    empty += tokenSlots[i] == 0;
    good &= tokenSlots[i] == 0 || isId(tokenSlots[i] - 1);
  }
  if (!good || empty == 0)
    return fail("the table of tokens is broken");
  empty = 0;
  for (uint64_t i = 0; i < mergeCount; ++i) {
    const MergeSlot &slot = mergeSlots[i];
    empty += slot.left == kNoToken;
    good &= slot.left == kNoToken || isId(slot.result);
  }
  if (!good || (bytePairs && empty == 0))
    return fail("the table of merges is broken");
  for (uint64_t i = 0; i < specialCount; ++i)
    good &= isId(specialIds[i]) && !text(specialIds[i]).empty();
  for (uint64_t i = 0; i < 256; ++i)
    good &= isIdOrNone(byteTokens[i]);
  const SpecialTokens &special = base->special;
  for (int32_t id : {special.bos, special.eos, special.eot, special.eom,
                     special.unk, special.pad})
    good &= isIdOrNone(id);
  if (!good || (base->addBos && special.bos == kNoToken))
    return fail("a special token's id is out of bounds");
  return true;
}

int32_t TokenizerView::find(std::string_view wanted) const {
  uint64_t at = hashTokenText(wanted) & tokenMask;
  while (int32_t slot = tokenSlots[at]) {
    if (text(slot - 1) == wanted)
      return slot - 1;
    at = (at + 1) & tokenMask;
  }
  return kNoToken;
}

const MergeSlot *TokenizerView::findMerge(int32_t left, int32_t right) const {
  uint64_t at = hashTokenPair(left, right) & mergeMask;
  for (;; at = (at + 1) & mergeMask) {
    const MergeSlot &slot = mergeSlots[at];
    if (slot.left == kNoToken)
      return nullptr;
    if (slot.left == left && slot.right == right)
      return &slot;
  }
}

} // namespace kvc

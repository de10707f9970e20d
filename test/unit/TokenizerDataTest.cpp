// What the tokenizer refuses: broken metadata when it is built, broken blobs
// when they are opened.
#include "TokenizerRecords.h"

#include "runtime/TokenizerBlob.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

using namespace kvc;

namespace {
struct Refusal {
  const char *name; // of the vocabulary that is broken
  void (*breakIt)(TokenizerSource &);
  const char *message;
};
} // namespace

static constexpr Refusal refusals[] = {
    {"smollm", [](TokenizerSource &s) { s.model = "bert\n"; },
     "key 'tokenizer.ggml.model': found 'bert\\x0a', rule: gpt2 or llama; no "
     "other tokenizer is supported"},
    {"smollm", [](TokenizerSource &s) { s.pre = "klingon"; },
     "key 'tokenizer.ggml.pre': found 'klingon', rule: a known pre-tokenizer, "
     "one of gpt-2, "},
    {"smollm", [](TokenizerSource &s) { s.pre.clear(); },
     "key 'tokenizer.ggml.pre': found nothing, rule: a gpt2 tokenizer names "
     "its pre-tokenizer, one of gpt-2, "},
    {"smollm", [](TokenizerSource &s) { s.tokens.clear(); },
     "key 'tokenizer.ggml.tokens': found no tokens, rule: at least one"},
    {"smollm", [](TokenizerSource &s) { s.types.pop_back(); },
     "key 'tokenizer.ggml.token_type': found 619 elements, rule: one for each "
     "of the 620 tokens"},
    {"smollm", [](TokenizerSource &s) { s.types[7] = 0; },
     "key 'tokenizer.ggml.token_type[7]': found 0, rule: a type from 1 to 6"},
    {"smollm", [](TokenizerSource &s) { s.types[7] = -2147483647; },
     "key 'tokenizer.ggml.token_type[7]': found -2147483647, rule: a type from "
     "1 to 6"},
    {"smollm", [](TokenizerSource &s) { s.scores.resize(3); },
     "key 'tokenizer.ggml.scores': found 3 elements, rule: one for each of the "
     "620 tokens"},
    {"smollm", [](TokenizerSource &s) { s.tokens[9] = "\xff"; },
     "key 'tokenizer.ggml.tokens[9]': found '\\xff', rule: valid UTF-8"},
    {"smollm", [](TokenizerSource &s) { s.tokens[9] = s.tokens[4]; },
     "key 'tokenizer.ggml.tokens[9]': found '<tools>', rule: no two tokens are "
     "alike, and this is also token 4"},
    {"smollm", [](TokenizerSource &s) { s.types[9] = 6; },
     "key 'tokenizer.ggml.tokens[9]': found '%', rule: a token of the type "
     "byte is spelled <0xXX>"},
    {"smollm", [](TokenizerSource &s) { s.merges[5] = "qqqq e"; },
     "key 'tokenizer.ggml.merges[5]': found 'qqqq e', rule: both parts and the "
     "whole are tokens, and 'qqqq' is none"},
    {"smollm", [](TokenizerSource &s) { s.merges[5] = "e qqqq"; },
     "key 'tokenizer.ggml.merges[5]': found 'e qqqq', rule: both parts and the "
     "whole are tokens, and 'qqqq' is none"},
    {"smollm", [](TokenizerSource &s) { s.merges[5] = "% %"; },
     "key 'tokenizer.ggml.merges[5]': found '% %', rule: both parts and the "
     "whole are tokens, and '%%' is none"},
    {"smollm", [](TokenizerSource &s) { s.merges[5] = "abc"; },
     "key 'tokenizer.ggml.merges[5]': found 'abc', rule: two tokens with a "
     "space between"},
    {"smollm", [](TokenizerSource &s) { s.merges[5] = "a "; },
     "key 'tokenizer.ggml.merges[5]': found 'a ', rule: two tokens with a "
     "space between"},
    {"smollm", [](TokenizerSource &s) { s.merges[5].clear(); },
     "key 'tokenizer.ggml.merges[5]': found '', rule: two tokens with a space "
     "between"},
    {"smollm", [](TokenizerSource &s) { s.special.eos = 620; },
     "key 'tokenizer.ggml.eos_token_id': found 620, rule: the id of one of the "
     "620 tokens"},
    {"smollm", [](TokenizerSource &s) { s.special.pad = -2; },
     "key 'tokenizer.ggml.padding_token_id': found -2, rule: the id of one of "
     "the 620 tokens"},
    {"smollm",
     [](TokenizerSource &s) {
       s.addBos = TokenizerFlag::On;
       s.special.bos = kNoToken;
     },
     "key 'tokenizer.ggml.add_bos_token': found true, rule: there is a "
     "bos_token_id"},
    {"spm", [](TokenizerSource &s) { s.types.clear(); },
     "key 'tokenizer.ggml.token_type': found nothing, rule: a llama tokenizer "
     "has one for each token"},
    {"spm", [](TokenizerSource &s) { s.scores.clear(); },
     "key 'tokenizer.ggml.scores': found nothing, rule: a llama tokenizer has "
     "one for each token"},
    {"spm", [](TokenizerSource &s) { s.scores[8] = std::nanf(""); },
     "key 'tokenizer.ggml.scores[8]': found not a number, rule: a number"},
    {"spm", [](TokenizerSource &s) { s.merges = {"a b"}; },
     "key 'tokenizer.ggml.merges': found 1 merges, rule: a llama tokenizer "
     "merges by score and has none"},
};

TEST(TokenizerData, RefusesBrokenMetadata) {
  for (const Refusal &refusal : refusals) {
    TokenizerSource source = readTokenizerVocabulary(refusal.name);
    refusal.breakIt(source);
    TokenizerData data;
    std::string error;
    EXPECT_FALSE(buildTokenizerData(source, data, error)) << refusal.message;
    // A list of all names may follow.
    EXPECT_EQ(error.substr(0, std::strlen(refusal.message)), refusal.message);
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

TEST(TokenizerData, NamesTheKeysOfItsSource) {
  TokenizerSource source = readTokenizerVocabulary("smollm");
  source.keyPrefix = "model.";
  source.tokens.clear();
  TokenizerData data;
  std::string error;
  EXPECT_FALSE(buildTokenizerData(source, data, error));
  EXPECT_EQ(error, "key 'model.tokens': found no tokens, rule: at least one");
}

namespace {
// Aligned as blobs must be.
struct AlignedBytes {
  std::vector<uint64_t> words;
  explicit AlignedBytes(const std::vector<uint8_t> &bytes)
      : words(bytes.size() / 8 + 2) {
    std::memcpy(words.data(), bytes.data(), bytes.size());
  }
  uint8_t *data() { return reinterpret_cast<uint8_t *>(words.data()); }
};
} // namespace

static std::vector<uint8_t> blobOf(const char *name) {
  TokenizerData data;
  std::string error;
  EXPECT_TRUE(buildTokenizerData(readTokenizerVocabulary(name), data, error))
      << error;
  return serialize(data);
}

static std::string refusalOf(const void *blob, size_t bytes) {
  std::string error;
  EXPECT_FALSE(Tokenizer::create(blob, bytes, error));
  return error;
}

TEST(TokenizerBlob, IsReproducible) {
  EXPECT_EQ(blobOf("smollm"), blobOf("smollm"));
}

TEST(TokenizerBlob, RefusesWhatIsNoBlob) {
  std::vector<uint8_t> bytes = blobOf("smollm");
  AlignedBytes blob(bytes);
  EXPECT_EQ(refusalOf(blob.data(), 10),
            "tokenizer blob: 10 bytes are less than its header");
  EXPECT_EQ(refusalOf(blob.data() + 1, bytes.size()),
            "tokenizer blob: its address is not a multiple of 8");
  EXPECT_EQ(refusalOf(blob.data(), bytes.size() - 1),
            "tokenizer blob: it states " + std::to_string(bytes.size()) +
                " bytes, there are " + std::to_string(bytes.size() - 1));
  blob.data()[0] = 'x';
  EXPECT_EQ(refusalOf(blob.data(), bytes.size()),
            "tokenizer blob: it does not begin with its magic");
  blob = AlignedBytes(bytes);
  blob.data()[8] = 99;
  EXPECT_EQ(refusalOf(blob.data(), bytes.size()),
            "tokenizer blob: version 99, this runtime reads version 1");
}

TEST(TokenizerBlob, OpensOnlyWhatIsWhole) {
  for (const char *name : {"smollm", "spm"}) {
    std::vector<uint8_t> bytes = blobOf(name);
    AlignedBytes blob(bytes);
    for (size_t size = 0; size < bytes.size(); size += 1 + size / 50)
      EXPECT_NE(refusalOf(blob.data(), size), "");
    // Bytes that follow are not its own.
    std::string error;
    EXPECT_TRUE(Tokenizer::create(blob.data(), bytes.size() + 8, error))
        << error;
  }
}

// A blob with any bytes changed is refused or works without harm; what it then
// makes of a text does not matter.
TEST(TokenizerBlob, ChangedBytesDoNoHarm) {
  // The same texts every time. NOLINTNEXTLINE(bugprone-random-generator-seed)
  std::mt19937 random(5);
  for (const char *name : {"smollm", "llama-bpe", "spm"}) {
    std::vector<uint8_t> bytes = blobOf(name);
    int opened = 0;
    for (int round = 0; round < 1500; ++round) {
      AlignedBytes blob(bytes);
      for (int i = 0; i < 1 + round % 4; ++i) {
        // Half of the changes fall into the header.
        size_t range = random() % 2 ? sizeof(BlobHeader) : bytes.size();
        blob.data()[random() % range] = static_cast<uint8_t>(random());
      }
      std::string error;
      std::unique_ptr<Tokenizer> tokenizer =
          Tokenizer::create(blob.data(), bytes.size(), error);
      EXPECT_EQ(error.empty(), tokenizer != nullptr);
      if (!tokenizer)
        continue;
      ++opened;
      std::vector<int32_t> ids;
      tokenizer->encode("It's a <tool> of 12 tools,\n  not 1.", true, true, ids,
                        error);
      tokenizer->encode(randomText(random), true, true, ids, error);
      for (int32_t id : ids)
        EXPECT_TRUE(id >= 0 && id < tokenizer->size());
      tokenizer->decode(ids, true);
    }
    EXPECT_GT(opened, 50);
  }
}

// Encoding and decoding, against the records of independent implementations
// and on vocabularies small enough to work out by hand.
#include "TokenizerRecords.h"

#include "runtime/TokenizerUtf8.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

using namespace kvc;
using Ids = std::vector<int32_t>;

namespace {
class TokenizerRecordTest : public testing::TestWithParam<const char *> {};
} // namespace

TEST_P(TokenizerRecordTest, EncodesAsRecorded) {
  OwnedTokenizer owned = makeTokenizer(readTokenizerVocabulary(GetParam()));
  ASSERT_TRUE(owned.tokenizer);
  checkTokenizerRecords(*owned.tokenizer, readTokenizerRecords(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, TokenizerRecordTest,
                         testing::Values("gpt-2", "smollm", "llama-bpe",
                                         "qwen2", "qwen35", "deepseek-coder",
                                         "tekken", "gpt-4o", "spm",
                                         "spm-no-bytes"));

TEST(TokenizerUtf8, RepairsAsRecorded) {
  for (const MalformedText &record : readMalformedTexts()) {
    EXPECT_EQ(toUtf8(record.bytes), record.text);
    EXPECT_EQ(isUtf8(record.bytes), record.bytes == record.text);
  }
}

namespace {
// Any bytes: nothing crashes, and what comes back is the text as it was read.
class TokenizerRoundTripTest : public testing::TestWithParam<const char *> {};
} // namespace

TEST_P(TokenizerRoundTripTest, GivesAnyTextBack) {
  OwnedTokenizer owned = makeTokenizer(readTokenizerVocabulary(GetParam()));
  ASSERT_TRUE(owned.tokenizer);
  // The same texts every time. NOLINTNEXTLINE(bugprone-random-generator-seed)
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string text = randomText(random);
    for (bool parseSpecial : {false, true}) {
      Ids ids = encodeText(*owned.tokenizer, text, parseSpecial);
      EXPECT_EQ(owned->decode(ids, true), toUtf8(text));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, TokenizerRoundTripTest,
                         testing::Values("gpt-2", "smollm", "llama-bpe",
                                         "qwen2", "qwen35", "deepseek-coder",
                                         "tekken", "gpt-4o", "spm"));

TEST(Tokenizer, LongTextsTakeLinearTime) {
  for (const char *name : {"smollm", "gpt-4o", "spm"}) {
    OwnedTokenizer owned = makeTokenizer(readTokenizerVocabulary(name));
    ASSERT_TRUE(owned.tokenizer);
    // A quadratic step anywhere would take minutes.
    for (const std::string &text :
         {std::string(400000, 'a'), std::string(400000, ' ') + "x",
          std::string(400000, '\n'), std::string(400000, '7')})
      EXPECT_EQ(owned->decode(encodeText(*owned.tokenizer, text)), text);
  }
}

TEST(Tokenizer, ServesSeveralThreads) {
  OwnedTokenizer owned = makeTokenizer(readTokenizerVocabulary("smollm"));
  ASSERT_TRUE(owned.tokenizer);
  std::vector<TokenizerRecord> records = readTokenizerRecords("smollm");
  std::vector<std::thread> threads;
  std::vector<int> different(4, 0);
  threads.reserve(different.size());
  for (int &count : different)
    threads.emplace_back([&owned, &records, &count] {
      for (const TokenizerRecord &record : records) {
        Ids ids;
        std::string error;
        bool good =
            owned->encode(record.text, record.parseSpecial, false, ids, error);
        count += !good || ids != record.ids;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(different, std::vector<int>(4, 0));
}

// Byte pairs by hand: a, b, c, their pairs, and tokens of every type.
static TokenizerSource bytePairs() {
  TokenizerSource source;
  source.model = "gpt2";
  source.pre = "gpt-2";
  source.tokens = {"<s>", "<e>", "a",   "b",   "c", "\xc4\xa0",
                   "ab",  "bc",  "abc", "<u>", "",  "[unused]"};
  source.types = {3, 3, 1, 1, 1, 1, 1, 1, 1, 4, 1, 5};
  source.merges = {"b c", "a b", "ab c"};
  source.special.bos = 0;
  source.special.eos = 1;
  source.addBos = TokenizerFlag::On;
  return source;
}

TEST(Tokenizer, MergesByRankFirstFromTheLeft) {
  OwnedTokenizer owned = makeTokenizer(bytePairs());
  ASSERT_TRUE(owned.tokenizer);
  // "b c" has the better rank, so "ab c" is never reached.
  EXPECT_EQ(encodeText(*owned.tokenizer, "abc"), (Ids{2, 7}));
  EXPECT_EQ(encodeText(*owned.tokenizer, "abab"), (Ids{6, 6}));
}

TEST(Tokenizer, LeavesOutWhatNoTokenSpells) {
  OwnedTokenizer owned = makeTokenizer(bytePairs());
  ASSERT_TRUE(owned.tokenizer);
  // The neighbours of a byte without a token merge.
  EXPECT_EQ(encodeText(*owned.tokenizer, "axb"), (Ids{6}));
  EXPECT_EQ(encodeText(*owned.tokenizer, "xyz"), (Ids{}));
}

TEST(Tokenizer, AddsBosOnlyWhereAskedAndWhereTheFileHasIt) {
  TokenizerSource source = bytePairs();
  OwnedTokenizer with = makeTokenizer(source);
  source.addBos = TokenizerFlag::Absent;
  OwnedTokenizer without = makeTokenizer(source);
  ASSERT_TRUE(with.tokenizer && without.tokenizer);
  EXPECT_TRUE(with->addsBos());
  EXPECT_FALSE(without->addsBos());
  EXPECT_EQ(encodeText(*with.tokenizer, "a", true, true), (Ids{0, 2}));
  EXPECT_EQ(encodeText(*with.tokenizer, "", true, true), (Ids{0}));
  EXPECT_EQ(encodeText(*with.tokenizer, "a", true, false), (Ids{2}));
  EXPECT_EQ(encodeText(*without.tokenizer, "a", true, true), (Ids{2}));
  source.pre = "llama-bpe"; // whose models begin with BOS
  EXPECT_TRUE(makeTokenizer(source)->addsBos());
}

TEST(Tokenizer, RecognisesSpecialTokens) {
  OwnedTokenizer owned = makeTokenizer(bytePairs());
  ASSERT_TRUE(owned.tokenizer);
  EXPECT_EQ(encodeText(*owned.tokenizer, "<s>a<u><e>"), (Ids{0, 2, 9, 1}));
  // Only user-defined ones where text is not to be trusted.
  EXPECT_EQ(encodeText(*owned.tokenizer, "<s>a<u>", false), (Ids{2, 9}));
  EXPECT_EQ(encodeText(*owned.tokenizer, "[unused]a"), (Ids{2}));
}

TEST(Tokenizer, LongerSpecialTokensWin) {
  TokenizerSource source = bytePairs();
  source.tokens[0] = "a<s";
  source.tokens[1] = "<s>b";
  OwnedTokenizer owned = makeTokenizer(source);
  ASSERT_TRUE(owned.tokenizer);
  // The longer one, although the shorter begins before it.
  EXPECT_EQ(encodeText(*owned.tokenizer, "a<s>b"), (Ids{2, 1}));
  EXPECT_EQ(encodeText(*owned.tokenizer, "a<s>"), (Ids{0}));
}

TEST(Tokenizer, RendersSpecialTokensOnlyWhereAsked) {
  OwnedTokenizer owned = makeTokenizer(bytePairs());
  ASSERT_TRUE(owned.tokenizer);
  Ids ids = {0, 8, 5, 9, 10, 11, 1};
  EXPECT_EQ(owned->decode(ids), "abc <u>");
  EXPECT_EQ(owned->decode(ids, true), "<s>abc <u>[unused]<e>");
  // Padded and impossible ids.
  EXPECT_EQ(owned->decode({-1, 12, INT32_MAX, 2}, true), "a");
  EXPECT_EQ(owned->type(12), TokenType::Unused);
}

TEST(Tokenizer, TextOutsideTheByteAlphabetStandsForItself) {
  TokenizerSource source = bytePairs();
  source.tokens.push_back("\xe6\xbc\xa2 x");
  source.types.push_back(1);
  OwnedTokenizer owned = makeTokenizer(source);
  ASSERT_TRUE(owned.tokenizer);
  EXPECT_EQ(owned->decode({12}), "\xe6\xbc\xa2 x");
}

TEST(Tokenizer, StopsAtEosEotAndEom) {
  TokenizerSource source = bytePairs();
  EXPECT_EQ(makeTokenizer(source)->stopIds(), (Ids{1}));
  source.special.eot = 9;
  source.special.eom = 1;
  EXPECT_EQ(makeTokenizer(source)->stopIds(), (Ids{1, 9}));
  // Found by its name where the file has no key, if it is a control token.
  source = bytePairs();
  source.tokens[0] = "<|im_end|>";
  source.tokens[2] = "<|eot_id|>";
  source.merges = {"b c"};
  EXPECT_EQ(makeTokenizer(source)->stopIds(), (Ids{0, 1}));
}

// SentencePiece by hand.
static TokenizerSource pieces() {
  TokenizerSource source;
  source.model = "llama";
  const std::string mark = "\xe2\x96\x81";
  source.tokens = {"<unk>", "<s>", "</s>", "<0x61>", mark,  "b",       "c",
                   "d",     "bc",  "cd",   "bcd",    "<u>", mark + "b"};
  source.types = {2, 3, 3, 6, 1, 1, 1, 1, 1, 1, 5, 4, 1};
  source.scores = {0, 0, 0, 0, -9, -9, -9, -9, -1, -1, -2, 0, -3};
  return source;
}

TEST(Tokenizer, MergesPiecesByScoreFirstFromTheLeft) {
  TokenizerSource source = pieces();
  source.addSpacePrefix = TokenizerFlag::Off;
  OwnedTokenizer owned = makeTokenizer(source);
  ASSERT_TRUE(owned.tokenizer);
  EXPECT_EQ(encodeText(*owned.tokenizer, "bc"), (Ids{8}));
  // "bcd" is unused: it comes apart into what it was merged from.
  EXPECT_EQ(encodeText(*owned.tokenizer, "bcd"), (Ids{8, 7}));
  EXPECT_EQ(encodeText(*owned.tokenizer, " b"), (Ids{12}));
}

TEST(Tokenizer, SpellsUnknownPiecesAsBytesOrUnknown) {
  TokenizerSource source = pieces();
  source.addSpacePrefix = TokenizerFlag::Off;
  OwnedTokenizer owned = makeTokenizer(source);
  ASSERT_TRUE(owned.tokenizer);
  EXPECT_EQ(encodeText(*owned.tokenizer, "ab"), (Ids{3, 5}));
  EXPECT_EQ(encodeText(*owned.tokenizer, "xyb\xe6\xbc\xa2"), (Ids{0, 5, 0}));
  EXPECT_EQ(owned->decode({3, 5}), "ab");
}

TEST(Tokenizer, PutsAndTakesTheSpaceInFront) {
  OwnedTokenizer owned = makeTokenizer(pieces());
  ASSERT_TRUE(owned.tokenizer);
  EXPECT_EQ(owned->special().bos, 1);
  EXPECT_EQ(owned->special().unk, 0);
  EXPECT_EQ(encodeText(*owned.tokenizer, "", true, true), (Ids{1}));
  Ids ids = encodeText(*owned.tokenizer, "b<u>b</s> c", true, true);
  EXPECT_EQ(ids, (Ids{1, 12, 11, 12, 2, 4, 4, 6}));
  EXPECT_EQ(owned->decode(ids, true), "<s>b<u>b</s> c");
  EXPECT_EQ(owned->decode(ids), "b<u>b c");
  // A piece keeps its space: it may continue a text.
  std::string text;
  owned->appendPiece(12, text);
  EXPECT_EQ(text, " b");
}

TEST(TextStream, WritesWholeCharactersOnly) {
  TextStream stream;
  EXPECT_EQ(stream.push("a\xf0"), "a");
  EXPECT_EQ(stream.push("\x9f\x98"), "");
  EXPECT_EQ(stream.push("\x80"
                        "b\xe6\xbc"),
            "\xf0\x9f\x98\x80"
            "b");
  // Not the rest of the character: what was held back can only be broken.
  EXPECT_EQ(stream.push("c"), "\xe6\xbc"
                              "c");
  EXPECT_EQ(stream.push("\xff"), "\xff");
  EXPECT_EQ(stream.push("\xc3"), "");
  EXPECT_EQ(stream.finish(), "\xc3");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, LosesNothing) {
  // The same texts every time. NOLINTNEXTLINE(bugprone-random-generator-seed)
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    std::string text = randomText(random), written;
    TextStream stream;
    for (char c : text)
      written += stream.push(std::string_view(&c, 1));
    EXPECT_EQ(written + stream.finish(), text);
  }
}

#include "TokenizerRecords.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <random>

namespace kvc {
namespace {

class TokenizerRecordTest : public testing::TestWithParam<const char *> {};

TEST_P(TokenizerRecordTest, encodesAsRecorded) {
  OwnedTokenizer owned = makeTokenizer(readTokenizerVocabulary(GetParam()));
  ASSERT_TRUE(owned.tokenizer);
  checkTokenizerRecords(*owned.tokenizer, readTokenizerRecords(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, TokenizerRecordTest,
                         testing::Values("gpt-2", "smollm", "llama-bpe",
                                         "qwen2", "tekken", "gpt-4o", "spm",
                                         "spm-no-bytes"));

} // namespace
} // namespace kvc

#include "TokenizerRecords.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace kvc {

static nlohmann::json readJson(const std::string &name) {
  std::string path =
      std::string(KVC_SOURCE_DIR) + "/test/oracle/tokenizer/" + name + ".json";
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return nlohmann::json::parse(file, nullptr, false);
}

std::vector<TokenizerRecord> readTokenizerRecords(const std::string &name) {
  nlohmann::json json = readJson(name);
  std::vector<TokenizerRecord> records;
  for (const nlohmann::json &entry : json["records"])
    records.push_back({entry["text"], entry.value("parse_special", true),
                       entry["ids"].get<std::vector<int32_t>>()});
  EXPECT_GT(records.size(), 60u);
  return records;
}

std::vector<MalformedText> readMalformedTexts() {
  nlohmann::json json = readJson("utf8");
  std::vector<MalformedText> texts;
  for (const nlohmann::json &entry : json["records"]) {
    std::string hex = entry["bytes"], bytes;
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
      bytes += static_cast<char>(std::stoul(hex.substr(i, 2), nullptr, 16));
    texts.push_back({bytes, entry["text"]});
  }
  EXPECT_GT(texts.size(), 100u);
  return texts;
}

std::string randomText(std::mt19937 &random) {
  static const char *const parts[] = {" ",
                                      "  ",
                                      "\n",
                                      "\t",
                                      "'s",
                                      "Don't",
                                      "word",
                                      "12345",
                                      "3.14",
                                      "\xe6\xbc\xa2",
                                      "\xc3\xa9",
                                      "_",
                                      "<|im_end|>",
                                      "<tool>",
                                      "\xf0\x9f\x98\x80",
                                      "</s>",
                                      "!?",
                                      "\xe2\x80\x83",
                                      "\xd0\xb4\xd0\xb0",
                                      "e\xcc\x81"};
  std::string text;
  bool wild = random() % 3 == 0;
  for (unsigned i = 0, count = random() % 24; i < count; ++i) {
    if (wild && random() % 2)
      text += static_cast<char>(random());
    else
      text += parts[random() % (sizeof(parts) / sizeof(parts[0]))];
  }
  return text;
}

TokenizerSource readTokenizerVocabulary(const std::string &name) {
  nlohmann::json json = readJson(name);
  TokenizerSource source;
  source.model = json["model"];
  source.pre = json.value("pre", "");
  source.tokens = json["tokens"].get<std::vector<std::string>>();
  source.types = json["types"].get<std::vector<int32_t>>();
  source.scores = json.value("scores", std::vector<float>());
  source.merges = json.value("merges", std::vector<std::string>());
  source.special.bos = json.value("bos", kNoToken);
  source.special.eos = json.value("eos", kNoToken);
  source.special.unk = json.value("unk", kNoToken);
  if (json.contains("add_space_prefix"))
    source.addSpacePrefix =
        json["add_space_prefix"] ? TokenizerFlag::On : TokenizerFlag::Off;
  return source;
}

OwnedTokenizer makeTokenizer(const TokenizerSource &source) {
  OwnedTokenizer owned;
  TokenizerData data;
  std::string error;
  if (!buildTokenizerData(source, data, error)) {
    ADD_FAILURE() << error;
    return owned;
  }
  owned.blob = serialize(data);
  owned.tokenizer =
      Tokenizer::create(owned.blob.data(), owned.blob.size(), error);
  EXPECT_TRUE(owned.tokenizer) << error;
  return owned;
}

std::vector<int32_t> encodeText(const Tokenizer &tokenizer,
                                std::string_view text, bool parseSpecial,
                                bool addBos) {
  std::vector<int32_t> ids;
  std::string error;
  EXPECT_TRUE(tokenizer.encode(text, parseSpecial, addBos, ids, error))
      << error;
  return ids;
}

void checkTokenizerRecords(const Tokenizer &tokenizer,
                           const std::vector<TokenizerRecord> &records) {
  for (const TokenizerRecord &record : records) {
    SCOPED_TRACE("text: " + nlohmann::json(record.text).dump().substr(0, 300));
    EXPECT_EQ(encodeText(tokenizer, record.text, record.parseSpecial),
              record.ids)
        << "special tokens parsed: " << record.parseSpecial;
  }
}

} // namespace kvc

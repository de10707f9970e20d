#include "TokenizerRecords.h"

#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

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

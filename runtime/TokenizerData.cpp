#include "runtime/TokenizerData.h"

#include "runtime/TokenizerPre.h"
#include "runtime/TokenizerUtf8.h"

#include <cmath>
#include <cstdio>
#include <unordered_map>

namespace kvc {

// A text from a file as a message shows it: one short line of ASCII.
static std::string quoted(std::string_view text) {
  std::string result = "'";
  size_t shown = 0;
  for (char c : text) {
    if (shown++ == 60) {
      result += "...";
      break;
    }
    auto byte = static_cast<uint8_t>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\'' && c != '\\') {
      result += c;
    } else {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\x%02x", byte);
      result += escape;
    }
  }
  return result + "'";
}

namespace {
// GPT-2's spelling of bytes: the printable ones of Latin-1 stand for
// themselves, the others for U+0100 and up, in order.
class ByteAlphabet {
public:
  ByteAlphabet() {
    byteOf.fill(-1);
    uint32_t next = 0x100;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      bool printable = (byte >= 0x21 && byte <= 0x7e) ||
                       (byte >= 0xa1 && byte <= 0xff && byte != 0xad);
      charOf[byte] = printable ? byte : next++;
      byteOf[charOf[byte]] = static_cast<int16_t>(byte);
    }
  }

  std::string spell(uint8_t byte) const {
    std::string text;
    appendUtf8(charOf[byte], text);
    return text;
  }

  // The bytes that `text` spells; `text` itself if it uses other characters,
  // as Hugging Face's decoder has it.
  std::string bytes(const std::string &text) const {
    std::string result;
    std::string_view rest = text;
    while (!rest.empty()) {
      Utf8Head head = utf8Head(rest);
      if (head.kind != Utf8Head::Character || head.codePoint >= byteOf.size() ||
          byteOf[head.codePoint] < 0)
        return text;
      result += static_cast<char>(byteOf[head.codePoint]);
      rest.remove_prefix(head.bytes);
    }
    return result;
  }

private:
  std::array<uint32_t, 256> charOf;
  std::array<int16_t, 0x144> byteOf;
};

class Builder {
public:
  Builder(const TokenizerSource &source, TokenizerData &data,
          std::string &error)
      : source(source), data(data), error(error) {}

  bool build() {
    return checkModel() && addTokens() && addBytes() && addMerges() &&
           addSpecials() && addFlags();
  }

private:
  bool checkModel();
  bool addTokens();
  bool addBytes();
  bool addMerges();
  bool addSpecials();
  bool addFlags();

  bool fail(const std::string &key, const std::string &found,
            const std::string &rule) {
    error = "key '" + source.keyPrefix + key + "': found " + found +
            ", rule: " + rule;
    return false;
  }
  std::string item(const char *key, size_t index) {
    return std::string(key) + "[" + std::to_string(index) + "]";
  }
  bool isBytePairs() const { return data.model == TokenizerModel::BytePairs; }
  int32_t findToken(std::string_view text) const {
    auto found = ids.find(text);
    return found == ids.end() ? kNoToken : found->second;
  }
  int32_t findFirst(std::initializer_list<const char *> texts) const;

  const TokenizerSource &source;
  TokenizerData &data;
  std::string &error;
  const ByteAlphabet alphabet;
  const PreTokenizerInfo *pre = nullptr;
  std::unordered_map<std::string_view, int32_t> ids; // by the file's spelling
};
} // namespace

bool Builder::checkModel() {
  data = TokenizerData();
  if (source.model == "gpt2")
    data.model = TokenizerModel::BytePairs;
  else if (source.model == "llama")
    data.model = TokenizerModel::SentencePiece;
  else
    return fail("model", quoted(source.model),
                "gpt2 or llama; no other tokenizer is supported");
  if (!isBytePairs())
    return true;
  if (source.pre.empty())
    return fail("pre", "nothing",
                "a gpt2 tokenizer names its pre-tokenizer, one of " +
                    preTokenizerNames());
  pre = findPreTokenizer(source.pre);
  if (!pre)
    return fail("pre", quoted(source.pre),
                "a known pre-tokenizer, one of " + preTokenizerNames());
  data.pre = source.pre;
  return true;
}

bool Builder::addTokens() {
  size_t count = source.tokens.size();
  if (count == 0)
    return fail("tokens", "no tokens", "at least one");
  // Ids are int32 and one more than an id must be too.
  if (count >= INT32_MAX)
    return fail("tokens", std::to_string(count) + " tokens",
                "at most 2147483646");
  auto sameLength = [&](const char *key, size_t length) {
    return length == count ||
           fail(key, std::to_string(length) + " elements",
                "one for each of the " + std::to_string(count) + " tokens");
  };
  if (!source.types.empty() && !sameLength("token_type", source.types.size()))
    return false;
  if (!source.scores.empty() && !sameLength("scores", source.scores.size()))
    return false;
  if (!isBytePairs() && source.types.empty())
    return fail("token_type", "nothing",
                "a llama tokenizer has one for each token");
  if (!isBytePairs() && source.scores.empty())
    return fail("scores", "nothing",
                "a llama tokenizer has one for each token");

  data.tokens.reserve(count);
  data.types.reserve(count);
  ids.reserve(count);
  uint64_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    int32_t type = source.types.empty() ? 1 : source.types[i];
    if (type < 1 || type > 6)
      return fail(item("token_type", i), std::to_string(type),
                  "a type from 1 to 6");
    data.types.push_back(static_cast<TokenType>(type));
    const std::string &text = source.tokens[i];
    if (!isUtf8(text))
      return fail(item("tokens", i), quoted(text), "valid UTF-8");
    // Some files leave holes in the list: an empty token is never matched.
    if (!text.empty()) {
      auto added = ids.emplace(text, static_cast<int32_t>(i));
      if (!added.second)
        return fail(item("tokens", i), quoted(text),
                    "no two tokens are alike, and this is also token " +
                        std::to_string(added.first->second));
    }
    total += text.size();
    bool spelled = isBytePairs() && data.types[i] == TokenType::Normal;
    data.tokens.push_back(spelled ? alphabet.bytes(text) : text);
    if (!isBytePairs()) {
      // Not a number would break the order that merges follow.
      if (std::isnan(source.scores[i]))
        return fail(item("scores", i), "not a number", "a number");
      data.scores.push_back(source.scores[i]);
    }
  }
  if (total > UINT32_MAX)
    return fail("tokens", std::to_string(total) + " bytes of text",
                "at most 4294967295");
  return true;
}

// The byte that a token such as <0x0A> names, -1 if it is not one.
static int byteOfName(std::string_view text) {
  auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
  };
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>')
    return -1;
  int high = digit(text[3]), low = digit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

bool Builder::addBytes() {
  data.byteTokens.fill(kNoToken);
  if (isBytePairs())
    for (int byte = 0; byte < 256; ++byte)
      data.byteTokens[byte] =
          findToken(alphabet.spell(static_cast<uint8_t>(byte)));
  for (size_t i = 0; i < data.tokens.size(); ++i) {
    if (data.types[i] != TokenType::Byte)
      continue;
    int byte = byteOfName(source.tokens[i]);
    if (byte < 0)
      return fail(item("tokens", i), quoted(source.tokens[i]),
                  "a token of the type byte is spelled <0xXX>");
    data.tokens[i] = std::string(1, static_cast<char>(byte));
    if (!isBytePairs())
      data.byteTokens[byte] = static_cast<int32_t>(i);
  }
  return true;
}

bool Builder::addMerges() {
  if (!isBytePairs())
    return source.merges.empty() ||
           fail("merges", std::to_string(source.merges.size()) + " merges",
                "a llama tokenizer merges by score and has none");
  if (source.merges.size() >= INT32_MAX)
    return fail("merges", std::to_string(source.merges.size()) + " merges",
                "at most 2147483646");
  data.merges.reserve(source.merges.size());
  std::string joined;
  for (size_t i = 0; i < source.merges.size(); ++i) {
    std::string_view line = source.merges[i];
    size_t space = line.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == line.size())
      return fail(item("merges", i), quoted(line),
                  "two tokens with a space between");
    std::string_view left = line.substr(0, space);
    std::string_view right = line.substr(space + 1);
    joined.assign(left);
    joined.append(right);
    TokenMerge merge = {findToken(left), findToken(right), findToken(joined)};
    std::string_view unknown = merge.left == kNoToken    ? left
                               : merge.right == kNoToken ? right
                                                         : joined;
    if (merge.left == kNoToken || merge.right == kNoToken ||
        merge.result == kNoToken)
      return fail(item("merges", i), quoted(line),
                  "both parts and the whole are tokens, and " +
                      quoted(unknown) + " is none");
    data.merges.push_back(merge);
  }
  return true;
}

int32_t Builder::findFirst(std::initializer_list<const char *> texts) const {
  for (const char *text : texts) {
    int32_t id = findToken(text);
    if (id != kNoToken && (data.types[id] == TokenType::Control ||
                           data.types[id] == TokenType::UserDefined))
      return id;
  }
  return kNoToken;
}

bool Builder::addSpecials() {
  struct Named {
    const char *key;
    int32_t id;
  };
  const SpecialTokens &given = source.special;
  for (Named named :
       {Named{"bos_token_id", given.bos}, Named{"eos_token_id", given.eos},
        Named{"eot_token_id", given.eot}, Named{"eom_token_id", given.eom},
        Named{"unknown_token_id", given.unk},
        Named{"padding_token_id", given.pad}})
    if (named.id != kNoToken &&
        (named.id < 0 || static_cast<size_t>(named.id) >= data.tokens.size()))
      return fail(named.key, std::to_string(named.id),
                  "the id of one of the " + std::to_string(data.tokens.size()) +
                      " tokens");
  data.special = given;
  SpecialTokens &special = data.special;
  // Older files lack some keys; these tokens mean the same in every vocabulary
  // that has them.
  if (!isBytePairs()) {
    if (special.bos == kNoToken)
      special.bos = findFirst({"<s>"});
    if (special.eos == kNoToken)
      special.eos = findFirst({"</s>"});
    for (size_t i = 0; special.unk == kNoToken && i < data.types.size(); ++i)
      if (data.types[i] == TokenType::Unknown)
        special.unk = static_cast<int32_t>(i);
  }
  if (special.eot == kNoToken)
    special.eot = findFirst({"<|eot_id|>", "<|im_end|>", "<|end|>",
                             "<end_of_turn>", "<end_of_utterance>"});
  if (special.eom == kNoToken)
    special.eom = findFirst({"<|eom_id|>"});
  return true;
}

bool Builder::addFlags() {
  data.addSpacePrefix =
      !isBytePairs() && source.addSpacePrefix != TokenizerFlag::Off;
  if (source.addBos == TokenizerFlag::Absent)
    data.addBos =
        data.special.bos != kNoToken && (!isBytePairs() || pre->addsBos);
  else
    data.addBos = source.addBos == TokenizerFlag::On;
  if (data.addBos && data.special.bos == kNoToken)
    return fail("add_bos_token", "true", "there is a bos_token_id");
  return true;
}

bool buildTokenizerData(const TokenizerSource &source, TokenizerData &data,
                        std::string &error) {
  return Builder(source, data, error).build();
}

} // namespace kvc

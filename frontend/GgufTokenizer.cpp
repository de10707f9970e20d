#include "frontend/GgufTokenizer.h"

#include "frontend/Gguf.h"

using namespace llvm;

namespace kvc {

static std::string keyNamed(StringRef name) {
  return ("tokenizer.ggml." + name).str();
}

static Error readStrings(const GgufFile &file, StringRef name,
                         std::vector<std::string> &out) {
  Expected<std::optional<GgufArray>> found = file.findStrings(keyNamed(name));
  if (!found)
    return found.takeError();
  if (!*found)
    return Error::success();
  out.reserve((*found)->size());
  for (StringRef text : (*found)->strings())
    out.push_back(text.str());
  return Error::success();
}

static Error readTypes(const GgufFile &file, std::vector<int32_t> &out) {
  Expected<std::optional<GgufArray>> found =
      file.findIntegers(keyNamed("token_type"));
  if (!found)
    return found.takeError();
  if (!*found)
    return Error::success();
  out.reserve((*found)->size());
  for (uint64_t i = 0; i < (*found)->size(); ++i) {
    // What lies outside int32 is no type either; any such number says so.
    int64_t type = (*found)->integer(i);
    out.push_back(static_cast<int32_t>(
        std::clamp<int64_t>(type, std::numeric_limits<int32_t>::min(),
                            std::numeric_limits<int32_t>::max())));
  }
  return Error::success();
}

static Error readScores(const GgufFile &file, std::vector<float> &out) {
  Expected<std::optional<GgufArray>> found =
      file.findNumbers(keyNamed("scores"));
  if (!found)
    return found.takeError();
  if (!*found)
    return Error::success();
  out.reserve((*found)->size());
  for (uint64_t i = 0; i < (*found)->size(); ++i)
    out.push_back(static_cast<float>((*found)->number(i)));
  return Error::success();
}

static Error readId(const GgufFile &file, StringRef name, size_t tokens,
                    int32_t &out) {
  Expected<std::optional<uint64_t>> found = file.findU64(keyNamed(name));
  if (!found)
    return found.takeError();
  // Some writers store -1 in a u32 for "there is none".
  if (!*found || **found == UINT32_MAX)
    return Error::success();
  if (**found >= tokens || **found > INT32_MAX)
    return file.keyError(keyNamed(name), Twine(**found),
                         "the id of one of the " + Twine(tokens) + " tokens");
  out = static_cast<int32_t>(**found);
  return Error::success();
}

static Error readFlag(const GgufFile &file, StringRef name,
                      TokenizerFlag &out) {
  Expected<std::optional<bool>> found = file.findBool(keyNamed(name));
  if (!found)
    return found.takeError();
  if (*found)
    out = **found ? TokenizerFlag::On : TokenizerFlag::Off;
  return Error::success();
}

static Error readSource(const GgufFile &file, TokenizerSource &source) {
  Expected<StringRef> model = file.getString(keyNamed("model"));
  if (!model)
    return model.takeError();
  source.model = model->str();
  Expected<std::optional<StringRef>> pre = file.findString(keyNamed("pre"));
  if (!pre)
    return pre.takeError();
  if (*pre)
    source.pre = (*pre)->str();

  if (Error error = readStrings(file, "tokens", source.tokens))
    return error;
  if (Error error = readTypes(file, source.types))
    return error;
  if (Error error = readScores(file, source.scores))
    return error;
  if (Error error = readStrings(file, "merges", source.merges))
    return error;

  struct Id {
    const char *key;
    int32_t *id;
  };
  SpecialTokens &special = source.special;
  for (Id id :
       {Id{"bos_token_id", &special.bos}, Id{"eos_token_id", &special.eos},
        Id{"eot_token_id", &special.eot}, Id{"eom_token_id", &special.eom},
        Id{"unknown_token_id", &special.unk},
        Id{"padding_token_id", &special.pad}})
    if (Error error = readId(file, id.key, source.tokens.size(), *id.id))
      return error;

  if (Error error = readFlag(file, "add_bos_token", source.addBos))
    return error;
  if (Error error = readFlag(file, "add_space_prefix", source.addSpacePrefix))
    return error;
  // A normalizer that the text would have to pass first.
  TokenizerFlag extraSpaces = TokenizerFlag::Absent;
  if (Error error = readFlag(file, "remove_extra_whitespaces", extraSpaces))
    return error;
  if (extraSpaces == TokenizerFlag::On)
    return file.keyError(keyNamed("remove_extra_whitespaces"), "true",
                         "false; removing spaces is not supported");
  return Error::success();
}

Expected<TokenizerData> tokenizerFromGguf(const GgufFile &file) {
  TokenizerSource source;
  if (Error error = readSource(file, source))
    return std::move(error);
  TokenizerData data;
  std::string message;
  if (!buildTokenizerData(source, data, message))
    return createStringError(inconvertibleErrorCode(), "%s: %s",
                             file.path().str().c_str(), message.c_str());
  return data;
}

} // namespace kvc

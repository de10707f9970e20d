#include "runtime/Prompts.h"
#include "runtime/Tokenizer.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

namespace kvc {

using nlohmann::json;

static bool readFile(const std::string &path, std::string &text,
                     std::string &error) {
  std::FILE *file = std::fopen(path.c_str(), "rbe");
  if (!file) {
    error = path + ": cannot open: " + std::strerror(errno);
    return false;
  }
  char buffer[1 << 16];
  size_t count;
  while ((count = std::fread(buffer, 1, sizeof(buffer), file)) != 0)
    text.append(buffer, count);
  bool failed = std::ferror(file) != 0;
  if (failed)
    error = path + ": cannot read: " + std::strerror(errno);
  std::fclose(file);
  return !failed;
}

static bool encode(const std::string &text, const std::string &where,
                   const Tokenizer *tokenizer, std::vector<int32_t> &ids,
                   std::string &error) {
  if (!tokenizer) {
    error = where + ": this program has no tokenizer, give token ids with "
                    "--prompt-ids";
    return false;
  }
  if (!tokenizer->encode(text, /*parseSpecial=*/true, /*addBos=*/true, ids,
                         error)) {
    error = where + ": " + error;
    return false;
  }
  return true;
}

static bool readIds(const json &list, const std::string &where,
                    std::vector<int32_t> &ids, std::string &error) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  if (!list.is_array()) {
    error = where + ": \"prompt_ids\" is " + list.dump() +
            ", it must be an array of token ids";
    return false;
  }
  for (const json &id : list) {
    bool fits = id.is_number_unsigned() && id.get<uint64_t>() <= uint64_t(most);
    if (!fits) {
      error = where + ": \"prompt_ids\" holds " + id.dump() +
              ", token ids are integers of 0 or more";
      return false;
    }
    ids.push_back(int32_t(id.get<int64_t>()));
  }
  return true;
}

// One line of a --prompts file.
static bool readLine(const std::string &line, const std::string &where,
                     const Tokenizer *tokenizer, std::vector<int32_t> &ids,
                     std::string &error) {
  json object;
  try {
    object = json::parse(line);
  } catch (const json::exception &failure) {
    error = where + ": not JSON: " + failure.what();
    return false;
  }
  if (!object.is_object() ||
      object.contains("prompt") == object.contains("prompt_ids")) {
    error = where + ": must be an object with either \"prompt\" or "
                    "\"prompt_ids\"";
    return false;
  }
  if (object.contains("prompt_ids"))
    return readIds(object["prompt_ids"], where, ids, error);
  if (!object["prompt"].is_string()) {
    error = where + ": \"prompt\" is " + object["prompt"].dump() +
            ", it must be a string";
    return false;
  }
  return encode(object["prompt"].get<std::string>(), where, tokenizer, ids,
                error);
}

bool readPrompts(const ProgramOptions &options, const Tokenizer *tokenizer,
                 std::vector<std::vector<int32_t>> &prompts,
                 std::string &error) {
  prompts.clear();
  if (options.PromptIds) {
    prompts.push_back(*options.PromptIds);
    return true;
  }
  if (options.Prompt) {
    prompts.emplace_back();
    return encode(*options.Prompt, "--prompt", tokenizer, prompts.back(),
                  error);
  }
  const std::string &path =
      options.PromptFile ? *options.PromptFile : *options.PromptsFile;
  std::string text;
  if (!readFile(path, text, error))
    return false;
  if (options.PromptFile) {
    prompts.emplace_back();
    return encode(text, path, tokenizer, prompts.back(), error);
  }
  size_t number = 0;
  for (size_t next = 0; next < text.size();) {
    size_t end = std::min(text.find('\n', next), text.size());
    std::string line = text.substr(next, end - next);
    next = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos)
      continue;
    prompts.emplace_back();
    if (!readLine(line, path + ":" + std::to_string(number), tokenizer,
                  prompts.back(), error))
      return false;
  }
  if (prompts.empty()) {
    error = path + ": holds no prompts";
    return false;
  }
  return true;
}

} // namespace kvc

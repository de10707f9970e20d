#include "runtime/TokenizerPre.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace kvc {

// PCRE2's \s counts U+180E as a space, which Unicode and the implementations
// that these patterns were written for do not: spell White_Space out.
#define KVC_SPACES                                                             \
  "\\t-\\r\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}"          \
  "\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define KVC_SPACE "[" KVC_SPACES "]"
#define KVC_NO_SPACE "[^" KVC_SPACES "]"
// Spaces, all but the last before a word; then the rest.
#define KVC_SPACE_RUNS KVC_SPACE "+(?!" KVC_NO_SPACE ")|" KVC_SPACE "+"
// The contractions of English in any case.
#define KVC_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"

static constexpr const char *gpt2Patterns[] = {
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" KVC_SPACES
    "\\p{L}\\p{N}]+|" KVC_SPACE_RUNS};

static constexpr const char *smollmPatterns[] = {"\\p{N}", gpt2Patterns[0]};

// Words of `letters` with the character before them, and runs of `digits`.
#define KVC_WORDS(letters, digits)                                             \
  KVC_CONTRACTIONS                                                             \
  "|[^\\r\\n\\p{L}\\p{N}]?[" letters "]+|" digits "| ?[^" letters              \
  "\\p{N}" KVC_SPACES "]+[\\r\\n]*|" KVC_SPACE "*[\\r\\n]+|" KVC_SPACE_RUNS

static constexpr const char *llamaPatterns[] = {
    KVC_WORDS("\\p{L}", "\\p{N}{1,3}")};
static constexpr const char *qwen2Patterns[] = {KVC_WORDS("\\p{L}", "\\p{N}")};
static constexpr const char *qwen35Patterns[] = {
    KVC_WORDS("\\p{L}\\p{M}", "\\p{N}")};

static constexpr const char *deepseekCoderPatterns[] = {
    "[\\r\\n]", KVC_SPACE "?\\p{L}+", KVC_SPACE "?\\p{P}+",
    "[\\x{4e00}-\\x{9fa5}\\x{0800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+", "\\p{N}"};

// Words that change from lower to upper case are cut there.
#define KVC_UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define KVC_LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define KVC_CASED_WORDS(suffix, digits)                                        \
  "[^\\r\\n\\p{L}\\p{N}]?" KVC_UPPER "*" KVC_LOWER "+" suffix                  \
  "|[^\\r\\n\\p{L}\\p{N}]?" KVC_UPPER "+" KVC_LOWER "*" suffix "|" digits      \
  "| ?[^" KVC_SPACES "\\p{L}\\p{N}]+[\\r\\n/]*|" KVC_SPACE                     \
  "*[\\r\\n]+|" KVC_SPACE_RUNS

static constexpr const char *tekkenPatterns[] = {KVC_CASED_WORDS("", "\\p{N}")};
static constexpr const char *gpt4oPatterns[] = {
    KVC_CASED_WORDS(KVC_CONTRACTIONS "?", "\\p{N}{1,3}")};

template <size_t count>
static constexpr PreTokenizerInfo
named(const char *name, const char *const (&patterns)[count],
      bool ignoreMerges = false, bool addsBos = false) {
  return {name, patterns, count, ignoreMerges, addsBos};
}

// GGUF says nothing of normalizers: Qwen's own tokenizer composes characters
// (NFC) first, which matters only to text that is not composed already.
static constexpr PreTokenizerInfo preTokenizers[] = {
    named("gpt-2", gpt2Patterns),
    named("phi-2", gpt2Patterns),
    named("mpt", gpt2Patterns),
    named("olmo", gpt2Patterns),
    named("exaone4", gpt2Patterns),
    named("smollm", smollmPatterns),
    named("starcoder", smollmPatterns),
    named("refact", smollmPatterns),
    named("command-r", smollmPatterns),
    named("codeshell", smollmPatterns),
    named("exaone", smollmPatterns),
    named("llama-bpe", llamaPatterns, true, true),
    named("llama3", llamaPatterns, true, true),
    named("llama-v3", llamaPatterns, true, true),
    named("falcon3", llamaPatterns, true, true),
    named("dbrx", llamaPatterns),
    named("smaug-bpe", llamaPatterns),
    named("qwen2", qwen2Patterns),
    named("deepseek-r1-qwen", qwen2Patterns),
    named("stablelm2", qwen2Patterns),
    named("qwen35", qwen35Patterns),
    named("deepseek-coder", deepseekCoderPatterns),
    named("tekken", tekkenPatterns, true, true),
    named("gpt-4o", gpt4oPatterns),
};

const PreTokenizerInfo *findPreTokenizer(std::string_view name) {
  for (const PreTokenizerInfo &info : preTokenizers)
    if (name == info.name)
      return &info;
  return nullptr;
}

std::string preTokenizerNames() {
  std::string names;
  for (const PreTokenizerInfo &info : preTokenizers)
    names += (names.empty() ? "" : ", ") + std::string(info.name);
  return names;
}

// A text that makes PCRE2 work longer than this is refused, not waited for:
// no pattern here comes near it on text of any length it was tried with.
constexpr uint32_t matchLimit = 100'000'000;
constexpr uint32_t heapLimitKib = 256 << 10;
constexpr size_t jitStackStart = 32 << 10;
constexpr size_t jitStackLimit = 8 << 20;

namespace {
template <typename T, void (*release)(T *)> struct Release {
  void operator()(T *pointer) const { release(pointer); }
};
template <typename T, void (*release)(T *)>
using Owned = std::unique_ptr<T, Release<T, release>>;

struct Pattern {
  Owned<pcre2_code, pcre2_code_free> code;
  bool hasJit = false;
};
} // namespace

struct PreTokenizer::Impl {
  const char *name = nullptr;
  std::vector<Pattern> patterns;
  Owned<pcre2_match_context, pcre2_match_context_free> context;
  Owned<pcre2_jit_stack, pcre2_jit_stack_free> stack;
  Owned<pcre2_match_data, pcre2_match_data_free> match;
  std::vector<size_t> parts; // lengths, scratch of split()

  std::string message(int code) const {
    PCRE2_UCHAR text[256];
    pcre2_get_error_message(code, text, sizeof(text));
    return "pre-tokenizer '" + std::string(name) +
           "': " + reinterpret_cast<const char *>(text);
  }

  // Cuts one part by one pattern.
  bool cut(const Pattern &pattern, std::string_view text,
           std::vector<size_t> &lengths, std::string &error);
};

bool PreTokenizer::Impl::cut(const Pattern &pattern, std::string_view text,
                             std::vector<size_t> &lengths, std::string &error) {
  const auto *subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  size_t done = 0; // up to here `lengths` covers the text
  size_t from = 0; // where the search goes on
  while (from < text.size()) {
    int found =
        pattern.hasJit
            ? pcre2_jit_match(pattern.code.get(), subject, text.size(), from,
                              PCRE2_NO_UTF_CHECK, match.get(), context.get())
            : pcre2_match(pattern.code.get(), subject, text.size(), from,
                          PCRE2_NO_UTF_CHECK, match.get(), context.get());
    if (found == PCRE2_ERROR_NOMATCH)
      break;
    if (found < 0) {
      error = message(found) + ", at byte " + std::to_string(from) +
              " of a text of " + std::to_string(text.size());
      return false;
    }
    const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(match.get());
    if (bounds[1] == bounds[0]) {
      // No pattern above matches nothing; one that did would not get on.
      error = "pre-tokenizer '" + std::string(name) + "': an empty match";
      return false;
    }
    if (bounds[0] > done)
      lengths.push_back(bounds[0] - done);
    lengths.push_back(bounds[1] - bounds[0]);
    done = from = bounds[1];
  }
  if (done < text.size())
    lengths.push_back(text.size() - done);
  return true;
}

PreTokenizer::PreTokenizer() : impl(std::make_unique<Impl>()) {}
PreTokenizer::~PreTokenizer() = default;

std::unique_ptr<PreTokenizer> PreTokenizer::create(const PreTokenizerInfo &info,
                                                   std::string &error) {
  std::unique_ptr<PreTokenizer> result(new PreTokenizer);
  Impl &impl = *result->impl;
  impl.name = info.name;
  impl.context.reset(pcre2_match_context_create(nullptr));
  impl.stack.reset(
      pcre2_jit_stack_create(jitStackStart, jitStackLimit, nullptr));
  impl.match.reset(pcre2_match_data_create(1, nullptr));
  if (!impl.context || !impl.match) {
    error = impl.message(PCRE2_ERROR_NOMEMORY);
    return nullptr;
  }
  pcre2_set_match_limit(impl.context.get(), matchLimit);
  pcre2_set_depth_limit(impl.context.get(), matchLimit);
  pcre2_set_heap_limit(impl.context.get(), heapLimitKib);
  // Without a stack of its own (no JIT in this PCRE2) matching is interpreted.
  if (impl.stack)
    pcre2_jit_stack_assign(impl.context.get(), nullptr, impl.stack.get());
  for (size_t i = 0; i < info.patternCount; ++i) {
    int code = 0;
    PCRE2_SIZE where = 0;
    Pattern pattern;
    pattern.code.reset(pcre2_compile(
        reinterpret_cast<PCRE2_SPTR>(info.patterns[i]), PCRE2_ZERO_TERMINATED,
        PCRE2_UTF | PCRE2_UCP, &code, &where, nullptr));
    if (!pattern.code) {
      error = impl.message(code) + ", at byte " + std::to_string(where) +
              " of its pattern";
      return nullptr;
    }
    pattern.hasJit = impl.stack && pcre2_jit_compile(pattern.code.get(),
                                                     PCRE2_JIT_COMPLETE) == 0;
    impl.patterns.push_back(std::move(pattern));
  }
  return result;
}

bool PreTokenizer::split(std::string_view text, std::vector<size_t> &words,
                         std::string &error) {
  words.clear();
  if (text.empty())
    return true;
  words.push_back(text.size());
  for (const Pattern &pattern : impl->patterns) {
    impl->parts.swap(words);
    words.clear();
    size_t begin = 0;
    for (size_t length : impl->parts) {
      if (!impl->cut(pattern, text.substr(begin, length), words, error))
        return false;
      begin += length;
    }
  }
  return true;
}

} // namespace kvc

// UTF-8 as the tokenizers need it: where characters end and what is malformed.
#ifndef KVC_RUNTIME_TOKENIZERUTF8_H
#define KVC_RUNTIME_TOKENIZERUTF8_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvc {

// What stands at the start of some bytes.
struct Utf8Head {
  enum Kind {
    Character, // a whole character
    Malformed, // bytes that no continuation can repair
    Unfinished // the start of a character, cut off by the end of the bytes
  };
  Kind kind;
  size_t bytes;       // at least 1: the character, or the maximal invalid part
  uint32_t codePoint; // of a whole character
};

// `text` must not be empty.
Utf8Head utf8Head(std::string_view text);

bool isUtf8(std::string_view text);

// `text` with U+FFFD in place of each maximal invalid part.
std::string toUtf8(std::string_view text);

void appendUtf8(uint32_t codePoint, std::string &text);

} // namespace kvc

#endif // KVC_RUNTIME_TOKENIZERUTF8_H

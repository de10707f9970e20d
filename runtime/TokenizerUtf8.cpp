#include "runtime/TokenizerUtf8.h"

#include "runtime/Tokenizer.h"

namespace kvc {

Utf8Head utf8Head(std::string_view text) {
  auto byteAt = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t lead = byteAt(0);
  if (lead < 0x80)
    return {Utf8Head::Character, 1, lead};
  // Only the second byte has bounds of its own: they exclude overlong forms,
  // surrogates and what lies above U+10FFFF.
  size_t length;
  uint8_t low = 0x80, high = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    if (lead == 0xe0)
      low = 0xa0;
    else if (lead == 0xed)
      high = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    if (lead == 0xf0)
      low = 0x90;
    else if (lead == 0xf4)
      high = 0x8f;
  } else {
    return {Utf8Head::Malformed, 1, 0};
  }
  uint32_t codePoint = lead & (0xff >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if (i == text.size())
      return {Utf8Head::Unfinished, i, 0};
    uint8_t byte = byteAt(i);
    if (byte < low || byte > high)
      return {Utf8Head::Malformed, i, 0};
    codePoint = codePoint << 6 | (byte & 0x3f);
    low = 0x80;
    high = 0xbf;
  }
  return {Utf8Head::Character, length, codePoint};
}

bool isUtf8(std::string_view text) {
  while (!text.empty()) {
    Utf8Head head = utf8Head(text);
    if (head.kind != Utf8Head::Character)
      return false;
    text.remove_prefix(head.bytes);
  }
  return true;
}

std::string toUtf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    Utf8Head head = utf8Head(text);
    if (head.kind == Utf8Head::Character)
      result.append(text.substr(0, head.bytes));
    else
      result.append("\xef\xbf\xbd");
    text.remove_prefix(head.bytes);
  }
  return result;
}

void appendUtf8(uint32_t codePoint, std::string &text) {
  if (codePoint < 0x80) {
    text += static_cast<char>(codePoint);
  } else if (codePoint < 0x800) {
    text += static_cast<char>(0xc0 | codePoint >> 6);
    text += static_cast<char>(0x80 | (codePoint & 0x3f));
  } else if (codePoint < 0x10000) {
    text += static_cast<char>(0xe0 | codePoint >> 12);
    text += static_cast<char>(0x80 | (codePoint >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (codePoint & 0x3f));
  } else {
    text += static_cast<char>(0xf0 | codePoint >> 18);
    text += static_cast<char>(0x80 | (codePoint >> 12 & 0x3f));
    text += static_cast<char>(0x80 | (codePoint >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (codePoint & 0x3f));
  }
}

std::string TextStream::push(std::string_view piece) {
  held += piece;
  // Only the last character can be unfinished, and it has at most three bytes.
  std::string_view rest = held;
  size_t whole = 0;
  while (whole < rest.size()) {
    Utf8Head head = utf8Head(rest.substr(whole));
    if (head.kind == Utf8Head::Unfinished)
      break;
    whole += head.bytes;
  }
  std::string ready = held.substr(0, whole);
  held.erase(0, whole);
  return ready;
}

std::string TextStream::finish() {
  std::string rest;
  rest.swap(held);
  return rest;
}

} // namespace kvc

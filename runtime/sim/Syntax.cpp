#include "runtime/sim/Syntax.h"

#include <cctype>
#include <cstdlib>
#include <cstring>

namespace kvc::sim {

static bool startsWord(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' ||
         c == '%' || c == '.';
}
static bool continuesWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' ||
         c == '.';
}
static bool isDigit(char c) { return c >= '0' && c <= '9'; }

namespace {

class Cutter {
public:
  Cutter(std::string_view text, std::vector<Token> &tokens, std::string &error)
      : Text(text), Tokens(tokens), Error(error) {}

  bool run() {
    while (skipBlanks()) {
      char c = Text[At];
      bool ok = true;
      if (isDigit(c))
        ok = number();
      else if (startsWord(c))
        word();
      else if (c == '"')
        ok = string();
      else if (std::strchr("[]{}(),;:+-@!<>|=*/~&", c))
        add(Token::Mark, At, At + 1);
      else
        ok = fail("a character that cannot stand here", c);
      if (!ok)
        return false;
    }
    if (!Error.empty())
      return false;
    Tokens.push_back({Token::End, {}, Line, 0, 0});
    return true;
  }

private:
  bool fail(const char *what, char c) {
    Error = "line " + std::to_string(Line) + ": " + what + ": '" +
            std::string(1, c) + "'";
    return false;
  }

  Token &add(Token::Kind kind, size_t from, size_t to) {
    Tokens.push_back({kind, Text.substr(from, to - from), Line, 0, 0});
    At = to;
    return Tokens.back();
  }

  /// False at the end of the text.
  bool skipBlanks() {
    while (At < Text.size()) {
      if (Text[At] == '\n') {
        ++Line;
        ++At;
      } else if (std::isspace(static_cast<unsigned char>(Text[At]))) {
        ++At;
      } else if (Text.substr(At, 2) == "//") {
        At = std::min(Text.find('\n', At), Text.size());
      } else if (Text.substr(At, 2) == "/*") {
        size_t end = Text.find("*/", At + 2);
        if (end == std::string_view::npos) {
          fail("a comment without an end", '*');
          return false;
        }
        for (; At != end + 2; ++At)
          Line += Text[At] == '\n';
      } else {
        return true;
      }
    }
    return false;
  }

  void word() {
    size_t end = At + 1;
    // ".reg.b16" is two words: a directive ends at the next dot.
    bool directive = Text[At] == '.';
    while (end < Text.size()) {
      if (continuesWord(Text[end]) && !(directive && Text[end] == '.'))
        ++end;
      else if (Text.substr(end, 2) == "::")
        end += 2;
      else
        break;
    }
    add(Token::Word, At, end);
  }

  bool string() {
    size_t end = Text.find('"', At + 1);
    if (end == std::string_view::npos)
      return fail("a string without an end", '"');
    add(Token::String, At, end + 1);
    return true;
  }

  bool number() {
    size_t end = At;
    while (end < Text.size() && (continuesWord(Text[end])))
      ++end;
    std::string digits(Text.substr(At, end - At));
    bool hexFloat =
        digits.size() > 2 && digits[0] == '0' && std::strchr("fFdD", digits[1]);
    if (hexFloat) {
      bool single = digits[1] == 'f' || digits[1] == 'F';
      if (digits.size() != (single ? 10u : 18u))
        return fail("a hexadecimal floating constant has 8 or 16 digits, not",
                    digits.back());
      char *stop = nullptr;
      uint64_t bits = std::strtoull(digits.c_str() + 2, &stop, 16);
      if (*stop)
        return fail("a hexadecimal floating constant with", *stop);
      Token &token = add(Token::Float, At, end);
      token.Value = bits;
      token.Bytes = single ? 4 : 8;
      return true;
    }
    bool hex = digits.size() > 1 && digits[0] == '0' &&
               (digits[1] == 'x' || digits[1] == 'X');
    if (!hex && digits.find_first_of(".eE") != std::string::npos) {
      // 1.0e+5: the sign of the exponent belongs to the number.
      if (end < Text.size() && (Text[end] == '+' || Text[end] == '-') &&
          (Text[end - 1] == 'e' || Text[end - 1] == 'E')) {
        ++end;
        while (end < Text.size() && isDigit(Text[end]))
          ++end;
        digits = Text.substr(At, end - At);
      }
      char *stop = nullptr;
      double value = std::strtod(digits.c_str(), &stop);
      if (*stop)
        return fail("a floating constant with", *stop);
      Token &token = add(Token::Float, At, end);
      std::memcpy(&token.Value, &value, sizeof(value));
      token.Bytes = 8;
      return true;
    }
    while (digits.back() == 'U' || digits.back() == 'u')
      digits.pop_back();
    char *stop = nullptr;
    bool binary = digits.size() > 1 && digits[0] == '0' &&
                  (digits[1] == 'b' || digits[1] == 'B');
    uint64_t value = binary ? std::strtoull(digits.c_str() + 2, &stop, 2)
                            : std::strtoull(digits.c_str(), &stop, 0);
    if (*stop)
      return fail("an integer constant with", *stop);
    add(Token::Integer, At, end).Value = value;
    return true;
  }

  std::string_view Text;
  std::vector<Token> &Tokens;
  std::string &Error;
  size_t At = 0;
  uint32_t Line = 1;
};

} // namespace

bool tokenize(std::string_view text, std::vector<Token> &tokens,
              std::string &error) {
  error.clear();
  tokens.clear();
  return Cutter(text, tokens, error).run();
}

} // namespace kvc::sim

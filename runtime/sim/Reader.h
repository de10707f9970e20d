// The tokens of a PTX text, one after the other.
#ifndef KVC_RUNTIME_SIM_READER_H
#define KVC_RUNTIME_SIM_READER_H

#include "runtime/sim/Decode.h"
#include "runtime/sim/Syntax.h"

#include <algorithm>

namespace kvc::sim {

/// What bool functions return is whether they found what they are called for;
/// the expecting ones leave an error that names the line.
class Reader {
public:
  explicit Reader(std::string &error) : Error(error) {}

  const Token &peek(size_t ahead = 0) const {
    return Tokens[std::min(At + ahead, Tokens.size() - 1)];
  }
  bool fail(const std::string &what) { return failAt(peek().Line, what); }
  bool failAt(uint32_t line, const std::string &what) {
    Error = "line " + std::to_string(line) + ": ";
    if (!Within.empty())
      Error += "'" + std::string(Within) + "': ";
    Error += what;
    return false;
  }
  bool isMark(char c, size_t ahead = 0) const {
    return peek(ahead).Is == Token::Mark && peek(ahead).Text[0] == c;
  }
  bool isWord(std::string_view word) const {
    return peek().Is == Token::Word && peek().Text == word;
  }
  bool takeMark(char c) {
    if (!isMark(c))
      return false;
    ++At;
    return true;
  }
  bool takeWord(std::string_view word) {
    if (!isWord(word))
      return false;
    ++At;
    return true;
  }
  bool expectMark(char c) {
    return takeMark(c) ||
           fail("'" + std::string(1, c) + "' was expected, not '" +
                std::string(peek().Text) + "'");
  }
  bool name(std::string &into) {
    if (peek().Is != Token::Word || peek().Text[0] == '.')
      return fail("a name was expected, not '" + std::string(peek().Text) +
                  "'");
    into = Tokens[At++].Text;
    return true;
  }
  bool integer(uint64_t &into) {
    bool negative = takeMark('-');
    if (peek().Is != Token::Integer)
      return fail("an integer was expected, not '" + std::string(peek().Text) +
                  "'");
    into = Tokens[At++].Value;
    if (negative)
      into = 0 - into;
    return true;
  }
  void skipLine() {
    uint32_t line = peek().Line;
    while (peek().Is != Token::End && peek().Line == line)
      ++At;
  }
  /// Debug information: .file, .loc and sections.
  bool skipDebug() {
    if (isWord(".file") || isWord(".loc")) {
      skipLine();
      return true;
    }
    if (!isWord(".section"))
      return false;
    while (peek().Is != Token::End && !isMark('{'))
      ++At;
    int depth = 0;
    do {
      depth += isMark('{') - isMark('}');
      ++At;
    } while (depth && peek().Is != Token::End);
    return true;
  }

  std::string &Error;
  std::vector<Token> Tokens;
  size_t At = 0;
  std::string_view Within; // the instruction being read
};

/// A .global, .const, .shared or .local variable, which becomes
/// program.Variables[index].
bool readVariable(Reader &reader, bool external, Program &program,
                  uint32_t &index, std::string &name);

} // namespace kvc::sim

#endif // KVC_RUNTIME_SIM_READER_H

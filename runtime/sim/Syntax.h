// PTX text as tokens, and the operands of one instruction as written.
#ifndef KVC_RUNTIME_SIM_SYNTAX_H
#define KVC_RUNTIME_SIM_SYNTAX_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvc::sim {

struct Token {
  enum Kind : uint8_t { End, Word, Integer, Float, String, Mark };
  Kind Is = End;
  std::string_view Text;
  uint32_t Line = 0;
  uint64_t Value = 0; // of an Integer; the bits of a Float
  uint8_t Bytes = 0;  // of a Float: 4 (0f...), 8 (0d... and decimal)
};

/// Cuts the text into tokens. Words hold dots and "::" ("ld.global.L1::x",
/// "%tid.x", ".reg"). False and `error` for what cannot start a token.
bool tokenize(std::string_view text, std::vector<Token> &tokens,
              std::string &error);

struct Operand {
  enum Kind : uint8_t { Name, Integer, Float, Address, Vector, Sink };
  Kind Is = Name;
  bool Negated = false;    // !%p
  uint8_t Bytes = 0;       // of a Float
  std::string_view Text;   // of a Name; the base of an Address, may be empty
  std::string_view Second; // of a pair: %p1|%p2
  uint64_t Value = 0;      // of an Integer, or the bits of a Float
  int64_t Offset = 0;      // of an Address, or of a Name: symbol+8
  std::vector<Operand> Elements;
};

/// One instruction as written.
struct Statement {
  uint32_t Line = 0;
  std::string_view Guard; // empty: none
  bool GuardNegated = false;
  std::string_view Opcode; // with its modifiers
  std::vector<Operand> Operands;
};

} // namespace kvc::sim

#endif // KVC_RUNTIME_SIM_SYNTAX_H

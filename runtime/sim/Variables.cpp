// Declarations of variables and their initialisers.
#include "runtime/sim/Decoder.h"
#include "runtime/sim/Reader.h"

namespace kvc::sim {

// More than any GPU has, and small enough that sums of them do not overflow.
constexpr uint64_t MostBytes = uint64_t(1) << 32;
constexpr uint64_t MostSmall = uint64_t(1) << 20; // .const, .shared and .local

namespace {

class VariableReader {
public:
  VariableReader(Reader &reader, Program &program)
      : In(reader), Code(program) {}

  bool declaration(bool external, uint32_t &index, std::string &text) {
    Variable variable;
    if (In.takeWord(".global"))
      variable.Where = Space::Global;
    else if (In.takeWord(".const"))
      variable.Where = Space::Const;
    else if (In.takeWord(".shared"))
      variable.Where = Space::Shared;
    else if (In.takeWord(".local"))
      variable.Where = Space::Local;
    else
      return In.fail("'" + std::string(In.peek().Text) + "' is not known here");
    uint64_t align = 0, vector = 1;
    Type type = Type::None;
    while (In.peek().Is == Token::Word && In.peek().Text[0] == '.') {
      std::string_view word = In.peek().Text.substr(1);
      if (In.takeWord(".align")) {
        if (!In.integer(align))
          return false;
        if (align == 0 || align > 4096 || (align & (align - 1)))
          return In.fail("an alignment of " + std::to_string(align) +
                         ": powers of two to 4096");
      } else if (In.takeWord(".v2") || In.takeWord(".v4")) {
        vector = uint64_t(word[1] - '0');
      } else if (type == Type::None && typeNamed(word) != Type::None) {
        type = typeNamed(word);
        ++In.At;
      } else {
        return In.fail("'." + std::string(word) + "' is not known here");
      }
    }
    if (bytesOf(type) == 0)
      return In.fail("a type is missing");
    if (!In.name(text))
      return false;
    uint64_t count = vector;
    bool open = false;
    while (In.takeMark('[')) {
      uint64_t extent = 0;
      if (In.isMark(']'))
        open = true;
      else if (!In.integer(extent))
        return false;
      if (extent > MostBytes)
        return In.fail("variable '" + text + "' is too large");
      count *= open ? 0 : extent;
      if (!In.expectMark(']'))
        return false;
      if (count > MostBytes)
        return In.fail("variable '" + text + "' is too large");
    }
    variable.Name = text;
    variable.Align = uint32_t(align ? align : bytesOf(type) * vector);
    variable.Bytes = count * bytesOf(type);
    bool small = variable.Where != Space::Global;
    if (variable.Bytes > (small ? MostSmall : MostBytes))
      return In.fail("variable '" + text + "' is too large");
    if (In.takeMark('=')) {
      if (variable.Where == Space::Shared || variable.Where == Space::Local)
        return In.fail("'" + text + "' cannot have an initialiser");
      variable.Initialised = true;
      variable.Initial.assign(variable.Bytes, 0);
      uint64_t at = 0;
      if (!initialiser(variable, type, open, at, 0))
        return false;
      variable.Bytes = variable.Initial.size();
      open = false;
    }
    if ((open || external) && variable.Where != Space::Shared)
      return In.fail("variable '" + text +
                     "' is defined elsewhere: there is no "
                     "linker");
    if (open && !external)
      return In.fail("the size of '" + text + "' is missing");
    if (!In.expectMark(';'))
      return false;
    index = uint32_t(Code.Variables.size());
    Code.Variables.push_back(std::move(variable));
    return true;
  }

  bool initialiser(Variable &variable, Type type, bool open, uint64_t &at,
                   unsigned depth) {
    if (depth > 8)
      return In.fail("braces in more than 8 levels");
    if (In.takeMark('{')) {
      while (!In.isMark('}')) {
        if (!initialiser(variable, type, open, at, depth + 1))
          return false;
        if (!In.takeMark(','))
          break;
      }
      return In.expectMark('}');
    }
    unsigned bytes = bytesOf(type);
    if (open && at + bytes > variable.Initial.size())
      variable.Initial.resize(at + bytes, 0);
    if (at + bytes > variable.Initial.size())
      return In.fail("too many initialisers for '" + variable.Name + "'");
    uint64_t value = 0;
    bool negative = In.takeMark('-');
    const Token &token = In.peek();
    if (token.Is == Token::Integer) {
      value = negative ? 0 - token.Value : token.Value;
      ++In.At;
    } else if (token.Is == Token::Float) {
      value = token.Value;
      unsigned has = token.Bytes;
      if (has == 8 && bytes == 4) {
        value = bitsOf(float(doubleOf(value)));
        has = 4;
      }
      if (has != bytes)
        return In.fail(
            "a floating constant of another size than its variable's");
      if (negative)
        value ^= uint64_t(1) << (8 * bytes - 1);
      ++In.At;
    } else if (!address(variable, bytes, at)) {
      return false;
    }
    std::memcpy(variable.Initial.data() + at, &value, bytes);
    at += bytes;
    return true;
  }

  /// symbol, symbol+8, generic(symbol)+8
  bool address(Variable &variable, unsigned bytes, uint64_t at) {
    Variable::Address entry;
    entry.Offset = at;
    entry.Bytes = uint8_t(bytes);
    if (bytes != 8)
      return In.fail("an address in a variable of another size");
    entry.Generic = In.isWord("generic") && In.isMark('(', 1);
    if (entry.Generic)
      In.At += 2;
    if (!In.name(entry.Symbol) || (entry.Generic && !In.expectMark(')')))
      return false;
    if (In.isMark('+') || In.isMark('-')) {
      uint64_t addend = 0;
      In.takeMark('+');
      if (!In.integer(addend))
        return false;
      entry.Addend = int64_t(addend);
    }
    variable.Addresses.push_back(entry);
    return true;
  }

private:
  Reader &In;
  Program &Code;
};

} // namespace

bool readVariable(Reader &reader, bool external, Program &program,
                  uint32_t &index, std::string &name) {
  return VariableReader(reader, program).declaration(external, index, name);
}

} // namespace kvc::sim

#include "runtime/sim/Parser.h"

#include "runtime/sim/Reader.h"

#include <algorithm>
#include <optional>

namespace kvc::sim {

static uint64_t roundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

namespace {

class Parser : Reader {
public:
  Parser(Program &program, std::string &error) : Reader(error), Code(program) {}

  bool run(std::string_view text) {
    if (!tokenize(text, Tokens, Error))
      return false;
    size_t from = 0;
    while (from <= text.size()) {
      size_t end = std::min(text.find('\n', from), text.size());
      std::string_view line = text.substr(from, end - from);
      size_t first = line.find_first_not_of(" \t\r");
      size_t last = line.find_last_not_of(" \t\r");
      Code.Lines.emplace_back(first == std::string_view::npos
                                  ? std::string_view()
                                  : line.substr(first, last - first + 1));
      from = end + 1;
    }
    while (peek().Is != Token::End)
      if (!topLevel())
        return false;
    if (Code.Target.empty())
      return fail(".target is missing");
    return true;
  }

private:
  bool topLevel() {
    if (skipDebug())
      return true;
    if (takeWord(".version")) {
      ++At;
      return true;
    }
    if (takeWord(".address_size")) {
      uint64_t bits = 0;
      return integer(bits) && (bits == 64 || fail("only .address_size 64"));
    }
    if (takeWord(".target")) {
      if (!name(Code.Target))
        return false;
      std::string option;
      while (takeMark(','))
        if (!name(option))
          return false;
      return true;
    }
    if (takeWord(".pragma")) {
      ++At;
      return expectMark(';');
    }
    bool external = false;
    while (isWord(".visible") || isWord(".extern") || isWord(".weak") ||
           isWord(".common")) {
      external |= isWord(".extern");
      ++At;
    }
    if (takeWord(".entry"))
      return kernel();
    if (isWord(".func")) {
      // A declaration does no harm: calls are refused.
      while (peek().Is != Token::End && !isMark(';') && !isMark('{'))
        ++At;
      return takeMark(';') || fail("'.func' is not known: a kernel has to be "
                                   "one piece, without calls");
    }
    uint32_t variable = 0;
    std::string text;
    if (!readVariable(*this, external, Code, variable, text))
      return false;
    if (!Code.GlobalIndex.emplace(text, variable).second)
      return fail("variable '" + text + "' is declared twice");
    return true;
  }

  bool parameter(KernelInfo &info) {
    if (!takeWord(".param"))
      return fail(".param was expected, not '" + std::string(peek().Text) +
                  "'");
    uint64_t align = 0, count = 1;
    Type type = Type::None;
    while (peek().Is == Token::Word && peek().Text[0] == '.') {
      if (takeWord(".align")) {
        if (!integer(align))
          return false;
      } else if (takeWord(".ptr")) {
        // What it points to: the space and its alignment.
        for (const char *space : {".global", ".shared", ".const", ".local"})
          takeWord(space);
        uint64_t pointee = 0;
        if (takeWord(".align") && !integer(pointee))
          return false;
      } else {
        type = typeNamed(peek().Text.substr(1));
        if (type == Type::None)
          return fail("'" + std::string(peek().Text) + "' is not known here");
        ++At;
      }
    }
    Parameter entry;
    if (bytesOf(type) == 0)
      return fail("a parameter's type is missing");
    if (!name(entry.Name))
      return false;
    if (takeMark('[') && (!integer(count) || !expectMark(']')))
      return false;
    entry.Align = uint32_t(align ? align : bytesOf(type));
    if (entry.Align & (entry.Align - 1) || count > 1 << 16)
      return fail("parameter '" + entry.Name + "': its alignment is no power " +
                  "of two, or it is too large");
    entry.Bytes = uint32_t(count * bytesOf(type));
    entry.Offset = uint32_t(roundUp(info.ParameterBytes, entry.Align));
    info.ParameterBytes = entry.Offset + entry.Bytes;
    constexpr uint32_t most = 32764;
    if (info.ParameterBytes > most)
      return fail("more than " + std::to_string(most) + " bytes of parameters");
    info.Parameters.push_back(entry);
    return true;
  }

  bool extents(Dim3 &dims) {
    uint64_t value[3] = {1, 1, 1};
    for (int axis = 0; axis != 3; ++axis) {
      if (axis && !takeMark(','))
        break;
      if (!integer(value[axis]))
        return false;
    }
    dims = {uint32_t(value[0]), uint32_t(value[1]), uint32_t(value[2])};
    return true;
  }

  /// .reqntid and the like, between the parameters and the body.
  bool kernelDirective(KernelInfo &info) {
    Dim3 dims;
    uint64_t value = 0;
    if (takeWord(".reqntid")) {
      return extents(info.Required);
    }
    if (takeWord(".maxntid")) {
      if (!extents(dims))
        return false;
      info.MaxThreads = uint32_t(dims.count());
      return true;
    }
    for (const char *word : {".minnctapersm", ".maxnctapersm", ".maxnreg"})
      if (takeWord(word))
        return integer(value);
    if (takeWord(".reqnctapercluster"))
      return extents(dims) &&
             (dims.count() == 1 || fail("clusters of CTAs are not known"));
    if (takeWord(".noreturn"))
      return true;
    if (takeWord(".pragma")) {
      ++At;
      return expectMark(';');
    }
    return fail("'" + std::string(peek().Text) + "' is not known here");
  }

  bool kernel() {
    Kernel kernel;
    KernelInfo &info = kernel.Info;
    info.Required.X = 0;
    if (!name(info.Name))
      return false;
    if (takeMark('(')) {
      while (!isMark(')')) {
        if (!parameter(info))
          return false;
        if (!takeMark(','))
          break;
      }
      if (!expectMark(')'))
        return false;
    }
    while (!isMark('{')) {
      if (takeMark(';'))
        return true; // a declaration
      if (!kernelDirective(info))
        return false;
    }
    ++At;
    Frame frame(Code, kernel);
    Own.clear();
    unsigned depth = 1;
    while (depth)
      if (!statement(frame, depth))
        return false;
    placeVariables(kernel);
    constexpr uint32_t most = 64 << 20;
    if (kernel.FileBytes > most)
      return fail("kernel '" + info.Name + "' uses too many registers (" +
                  std::to_string(info.Registers) + ")");
    constexpr uint32_t mostLocal = 512 << 10;
    if (info.Local > mostLocal || info.StaticShared > MostShared)
      return fail("kernel '" + info.Name + "' has " +
                  std::to_string(info.Local) + " bytes of local and " +
                  std::to_string(info.StaticShared) +
                  " of shared memory; a GPU has at most 524288 and " +
                  std::to_string(MostShared));
    info.Instructions =
        uint32_t(std::count_if(kernel.Code.begin(), kernel.Code.end(),
                               [](const Inst &inst) { return !inst.Hidden; }));
    if (!Code.KernelIndex.emplace(info.Name, uint32_t(Code.Kernels.size()))
             .second)
      return fail("kernel '" + info.Name + "' is defined twice");
    Code.Kernels.push_back(std::move(kernel));
    return true;
  }

  /// Where the kernel's shared and local variables are: its own, and those of
  /// the module that it uses.
  void placeVariables(Kernel &kernel) {
    std::vector<uint32_t> used = Own;
    for (const Constant &constant : kernel.Constants)
      if (constant.Symbol != NoSlot)
        used.push_back(constant.Symbol);
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    for (uint32_t index : used) {
      const Variable &variable = Code.Variables[index];
      bool shared = variable.Where == Space::Shared;
      if (!shared && variable.Where != Space::Local)
        continue;
      bool dynamic = variable.Bytes == 0;
      uint32_t &size = shared ? kernel.Info.StaticShared : kernel.Info.Local;
      uint32_t offset = uint32_t(roundUp(size, variable.Align));
      kernel.Placements.push_back({index, offset, dynamic});
      if (!dynamic)
        size = offset + uint32_t(variable.Bytes);
    }
  }

  bool registers(Frame &frame) {
    ++At;
    uint64_t vector = 1;
    if (takeWord(".v2") || takeWord(".v4"))
      return fail("vector registers are not known");
    Type type = peek().Is == Token::Word ? typeNamed(peek().Text.substr(1))
                                         : Type::None;
    if (type == Type::None || type == Type::B8 || bytesOf(type) == 1)
      return fail("registers of type '" + std::string(peek().Text) +
                  "' are not known");
    ++At;
    do {
      std::string base;
      if (!name(base))
        return false;
      std::string problem;
      if (!takeMark('<')) {
        if (!frame.declare(base, type, problem))
          return fail(problem);
        continue;
      }
      if (!integer(vector) || !expectMark('>'))
        return false;
      if (vector > 1 << 20)
        return fail("more than a million registers");
      for (uint64_t i = 0; i != vector; ++i)
        if (!frame.declare(base + std::to_string(i), type, problem))
          return fail(problem);
    } while (takeMark(','));
    return expectMark(';');
  }

  bool statement(Frame &frame, unsigned &depth) {
    std::string problem;
    if (peek().Is == Token::End)
      return fail("'}' is missing at the end of the text");
    if (skipDebug() || takeMark(';'))
      return true;
    if (takeMark('{')) {
      frame.enter();
      ++depth;
      return true;
    }
    if (isMark('}')) {
      uint32_t line = peek().Line;
      ++At;
      --depth;
      // A function that runs into its end returns.
      if (depth == 0) {
        Statement exit;
        exit.Line = line;
        exit.Opcode = "exit";
        Decoder decoder(frame, exit);
        decoder.I.Hidden = true;
        if (!decoder.run(Error))
          return false;
      }
      if (!frame.leave(problem)) {
        Error = problem;
        return false;
      }
      return true;
    }
    if (isWord(".reg"))
      return registers(frame);
    if (takeWord(".pragma")) {
      ++At;
      return expectMark(';');
    }
    if (isWord(".local") || isWord(".shared") || isWord(".global") ||
        isWord(".const") || isWord(".extern")) {
      bool external = takeWord(".extern");
      uint32_t variable = 0;
      std::string text;
      if (!readVariable(*this, external, Code, variable, text))
        return false;
      Own.push_back(variable);
      return frame.declareVariable(text, variable, problem) || fail(problem);
    }
    if (peek().Is == Token::Word && isMark(':', 1)) {
      std::string label(peek().Text);
      At += 2;
      if (!takeWord(".branchtargets"))
        return frame.place(label, problem) || fail(problem);
      std::vector<std::string> targets(1);
      if (!name(targets[0]))
        return false;
      while (takeMark(',')) {
        targets.emplace_back();
        if (!name(targets.back()))
          return false;
      }
      return (frame.declareTargets(label, std::move(targets), problem) ||
              fail(problem)) &&
             expectMark(';');
    }
    return instruction(frame);
  }

  bool instruction(Frame &frame) {
    Statement statement;
    statement.Line = peek().Line;
    if (takeMark('@')) {
      statement.GuardNegated = takeMark('!');
      if (peek().Is != Token::Word)
        return fail("a predicate was expected");
      statement.Guard = Tokens[At++].Text;
    }
    if (peek().Is != Token::Word || peek().Text[0] == '.')
      return fail("'" + std::string(peek().Text) + "' is not known here");
    statement.Opcode = Tokens[At++].Text;
    Within = statement.Opcode;
    if (!findDecoder(Within.substr(0, Within.find('.'))))
      return fail("unknown instruction");
    while (!isMark(';')) {
      statement.Operands.emplace_back();
      if (!operand(statement.Operands.back()))
        return false;
      if (!takeMark(','))
        break;
    }
    if (!expectMark(';'))
      return false;
    Within = {};
    Decoder decoder(frame, statement);
    return decoder.run(Error);
  }

  bool operand(Operand &into) {
    if (takeMark('{')) {
      into.Is = Operand::Vector;
      do {
        if (isMark('{'))
          return fail("a vector inside a vector");
        into.Elements.emplace_back();
        if (!operand(into.Elements.back()))
          return false;
      } while (takeMark(','));
      return expectMark('}');
    }
    if (takeMark('[')) {
      into.Is = Operand::Address;
      if (peek().Is == Token::Word)
        into.Text = Tokens[At++].Text;
      if (!isMark(']') && !offset(into.Offset))
        return false;
      return expectMark(']');
    }
    into.Negated = takeMark('!');
    bool negative = takeMark('-');
    const Token &token = peek();
    switch (token.Is) {
    case Token::Integer:
      into.Is = Operand::Integer;
      into.Value = negative ? 0 - token.Value : token.Value;
      ++At;
      return true;
    case Token::Float:
      into.Is = Operand::Float;
      into.Bytes = token.Bytes;
      into.Value = token.Value;
      if (negative)
        into.Value ^= uint64_t(1) << (8 * token.Bytes - 1);
      ++At;
      return true;
    case Token::Word:
      break;
    default:
      return fail("an operand was expected, not '" + std::string(token.Text) +
                  "'");
    }
    if (negative || token.Text[0] == '.')
      return fail("an operand was expected, not '" + std::string(token.Text) +
                  "'");
    into.Text = token.Text;
    into.Is = token.Text == "_" ? Operand::Sink : Operand::Name;
    ++At;
    if (takeMark('|')) {
      if (peek().Is != Token::Word)
        return fail("a predicate was expected after '|'");
      into.Second = Tokens[At++].Text;
    }
    if (isMark('+') || isMark('-'))
      return offset(into.Offset);
    return true;
  }

  /// +8, -8, +-8, 8
  bool offset(int64_t &into) {
    takeMark('+');
    uint64_t value = 0;
    if (!integer(value))
      return false;
    into = int64_t(value);
    return true;
  }

  Program &Code;
  std::vector<uint32_t> Own; // variables of the kernel being read
};

} // namespace

bool parseProgram(std::string_view text, Program &program, std::string &error) {
  error.clear();
  return Parser(program, error).run(text);
}

} // namespace kvc::sim

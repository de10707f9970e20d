#include "runtime/sim/Parser.h"

#include "runtime/sim/Ops.h"

#include <algorithm>
#include <optional>

namespace kvc::sim {

namespace {

uint64_t roundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

class Parser {
public:
  Parser(Program &program, std::string &error) : Code(program), Error(error) {}

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
    while (Tokens[At].Is != Token::End)
      if (!topLevel())
        return false;
    if (Code.Target.empty())
      return fail(".target is missing");
    return true;
  }

private:
  // Tokens.
  const Token &peek(size_t ahead = 0) const {
    return Tokens[std::min(At + ahead, Tokens.size() - 1)];
  }
  bool fail(const std::string &what) { return failAt(peek().Line, what); }
  bool failAt(uint32_t line, const std::string &what) {
    Error = "line " + std::to_string(line) + ": " + what;
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
    if (!declaration(external, variable, text))
      return false;
    if (!Code.GlobalIndex.emplace(text, variable).second)
      return fail("variable '" + text + "' is declared twice");
    return true;
  }

  /// .global, .const, .shared or .local variable.
  bool declaration(bool external, uint32_t &index, std::string &text) {
    Variable variable;
    if (takeWord(".global"))
      variable.Where = Space::Global;
    else if (takeWord(".const"))
      variable.Where = Space::Const;
    else if (takeWord(".shared"))
      variable.Where = Space::Shared;
    else if (takeWord(".local"))
      variable.Where = Space::Local;
    else
      return fail("'" + std::string(peek().Text) + "' is not known here");
    uint64_t align = 0, vector = 1;
    Type type = Type::None;
    while (peek().Is == Token::Word && peek().Text[0] == '.') {
      std::string_view word = peek().Text.substr(1);
      if (takeWord(".align")) {
        if (!integer(align))
          return false;
        if (align == 0 || align > 4096 || (align & (align - 1)))
          return fail("an alignment of " + std::to_string(align) +
                      ": powers of two to 4096");
      } else if (takeWord(".v2") || takeWord(".v4")) {
        vector = uint64_t(word[1] - '0');
      } else if (type == Type::None && typeNamed(word) != Type::None) {
        type = typeNamed(word);
        ++At;
      } else {
        return fail("'." + std::string(word) + "' is not known here");
      }
    }
    if (bytesOf(type) == 0)
      return fail("a type is missing");
    if (!name(text))
      return false;
    uint64_t count = vector;
    bool open = false;
    while (takeMark('[')) {
      uint64_t extent = 0;
      if (isMark(']'))
        open = true;
      else if (!integer(extent))
        return false;
      count *= open ? 0 : extent;
      if (!expectMark(']'))
        return false;
      if (count > uint64_t(1) << 40)
        return fail("variable '" + text + "' is too large");
    }
    variable.Name = text;
    variable.Align = uint32_t(align ? align : bytesOf(type) * vector);
    variable.Bytes = count * bytesOf(type);
    if (takeMark('=')) {
      if (variable.Where == Space::Shared || variable.Where == Space::Local)
        return fail("'" + text + "' cannot have an initialiser");
      variable.Initialised = true;
      variable.Initial.assign(variable.Bytes, 0);
      uint64_t at = 0;
      if (!initialiser(variable, type, open, at))
        return false;
      variable.Bytes = variable.Initial.size();
      open = false;
    }
    if ((open || external) && variable.Where != Space::Shared)
      return fail("variable '" + text +
                  "' is defined elsewhere: there is no "
                  "linker");
    if (open && !external)
      return fail("the size of '" + text + "' is missing");
    if (!expectMark(';'))
      return false;
    index = uint32_t(Code.Variables.size());
    Code.Variables.push_back(std::move(variable));
    return true;
  }

  bool initialiser(Variable &variable, Type type, bool open, uint64_t &at) {
    if (takeMark('{')) {
      while (!isMark('}')) {
        if (!initialiser(variable, type, open, at))
          return false;
        if (!takeMark(','))
          break;
      }
      return expectMark('}');
    }
    unsigned bytes = bytesOf(type);
    if (open && at + bytes > variable.Initial.size())
      variable.Initial.resize(at + bytes, 0);
    if (at + bytes > variable.Initial.size())
      return fail("too many initialisers for '" + variable.Name + "'");
    uint64_t value = 0;
    bool negative = takeMark('-');
    const Token &token = peek();
    if (token.Is == Token::Integer) {
      value = negative ? 0 - token.Value : token.Value;
      ++At;
    } else if (token.Is == Token::Float) {
      value = token.Value;
      unsigned has = token.Bytes;
      if (has == 8 && bytes == 4) {
        value = bitsOf(float(doubleOf(value)));
        has = 4;
      }
      if (has != bytes)
        return fail("a floating constant of another size than its variable's");
      if (negative)
        value ^= uint64_t(1) << (8 * bytes - 1);
      ++At;
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
      return fail("an address in a variable of another size");
    entry.Generic = isWord("generic") && isMark('(', 1);
    if (entry.Generic)
      At += 2;
    if (!name(entry.Symbol) || (entry.Generic && !expectMark(')')))
      return false;
    if (isMark('+') || isMark('-')) {
      uint64_t addend = 0;
      takeMark('+');
      if (!integer(addend))
        return false;
      entry.Addend = int64_t(addend);
    }
    variable.Addresses.push_back(entry);
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
      if (!declaration(external, variable, text))
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
    while (!isMark(';')) {
      statement.Operands.emplace_back();
      if (!operand(statement.Operands.back()))
        return false;
      if (!takeMark(','))
        break;
    }
    if (!expectMark(';'))
      return false;
    Decoder decoder(frame, statement);
    return decoder.run(Error);
  }

  bool operand(Operand &into) {
    if (takeMark('{')) {
      into.Is = Operand::Vector;
      do {
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
  std::string &Error;
  std::vector<Token> Tokens;
  size_t At = 0;
  std::vector<uint32_t> Own; // variables of the kernel being read
};

} // namespace

bool parseProgram(std::string_view text, Program &program, std::string &error) {
  error.clear();
  return Parser(program, error).run(text);
}

DecodeFunction findDecoder(std::string_view base) {
  static const std::map<std::string_view, DecodeFunction> table = {
      {"add", decodeAddSub},
      {"sub", decodeAddSub},
      {"mul", decodeMul},
      {"mad", decodeMad},
      {"mul24", decodeMul24},
      {"mad24", decodeMul24},
      {"div", decodeDivRem},
      {"rem", decodeDivRem},
      {"min", decodeMinMax},
      {"max", decodeMinMax},
      {"abs", decodeAbsNeg},
      {"neg", decodeAbsNeg},
      {"addc", decodeCarry},
      {"subc", decodeCarry},
      {"madc", decodeCarry},
      {"sad", decodeSad},
      {"dp4a", decodeDot},
      {"dp2a", decodeDot},
      {"and", decodeLogic},
      {"or", decodeLogic},
      {"xor", decodeLogic},
      {"not", decodeLogic},
      {"cnot", decodeLogic},
      {"shl", decodeShift},
      {"shr", decodeShift},
      {"shf", decodeFunnel},
      {"lop3", decodeLop3},
      {"prmt", decodePrmt},
      {"bfe", decodeBitField},
      {"bfi", decodeBitField},
      {"bfind", decodeBitCount},
      {"clz", decodeBitCount},
      {"popc", decodeBitCount},
      {"brev", decodeBitCount},
      {"bmsk", decodeMask},
      {"szext", decodeMask},
      {"fma", decodeFma},
      {"rcp", decodeRoot},
      {"sqrt", decodeRoot},
      {"rsqrt", decodeRoot},
      {"ex2", decodeApprox},
      {"lg2", decodeApprox},
      {"sin", decodeApprox},
      {"cos", decodeApprox},
      {"tanh", decodeApprox},
      {"copysign", decodeCopysign},
      {"testp", decodeTestp},
      {"cvt", decodeCvt},
      {"cvta", decodeCvta},
      {"isspacep", decodeIsspacep},
      {"mov", decodeMov},
      {"setp", decodeSetp},
      {"set", decodeSet},
      {"selp", decodeSelp},
      {"slct", decodeSlct},
      {"ld", decodeLoad},
      {"ldu", decodeLoad},
      {"st", decodeStore},
      {"prefetch", decodePrefetch},
      {"prefetchu", decodePrefetch},
      {"applypriority", decodePrefetch},
      {"discard", decodePrefetch},
      {"createpolicy", decodeCreatePolicy},
      {"membar", decodeFence},
      {"fence", decodeFence},
      {"atom", decodeAtomic},
      {"red", decodeAtomic},
      {"cp", decodeCopyAsync},
      {"mbarrier", decodeMbarrier},
      {"shfl", decodeShuffle},
      {"vote", decodeVote},
      {"match", decodeMatch},
      {"redux", decodeRedux},
      {"activemask", decodeActiveMask},
      {"elect", decodeElect},
      {"mma", decodeMma},
      {"ldmatrix", decodeLoadMatrix},
      {"stmatrix", decodeStoreMatrix},
      {"movmatrix", decodeMoveMatrix},
      {"bra", decodeBranch},
      {"brx", decodeBranchIndexed},
      {"ret", decodeExit},
      {"exit", decodeExit},
      {"trap", decodeTrap},
      {"brkpt", decodeTrap},
      {"bar", decodeBarrier},
      {"barrier", decodeBarrier},
      {"griddepcontrol", decodeGridControl},
      {"nanosleep", decodeNanosleep},
      {"setmaxnreg", decodeNothing},
      {"pmevent", decodeNothing}};
  auto it = table.find(base);
  return it == table.end() ? nullptr : it->second;
}

} // namespace kvc::sim

// From an instruction as written to its decoded form: the registers of the
// function being read, and the modifiers and operands of one instruction.
#ifndef KVC_RUNTIME_SIM_DECODER_H
#define KVC_RUNTIME_SIM_DECODER_H

#include "runtime/sim/Decode.h"
#include "runtime/sim/Numerics.h"
#include "runtime/sim/Syntax.h"

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace kvc::sim {

enum class Type : uint8_t {
  None,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  F16x2,
  BF16,
  BF16x2,
  F32,
  F64,
  TF32,
  E4M3,
  E5M2,
  E4M3x2,
  E5M2x2,
  U16x2,
  S16x2,
  Pred,
};

/// Type::None for a word that names none.
Type typeNamed(std::string_view word);
unsigned bytesOf(Type type); // 0: Pred
bool isSigned(Type type);
bool isFloating(Type type);
bool isInteger(Type type); // .u, .s and .b

struct Register {
  Type Is = Type::None;
  uint32_t Slot = NoSlot; // given at the first use
};

/// A function while it is read.
class Frame {
public:
  Frame(Program &program, Kernel &kernel) : Code(program), Into(kernel) {
    enter();
  }

  void enter();
  /// Resolves the scope's labels; false and `error` for a label nobody placed.
  bool leave(std::string &error);

  bool declare(const std::string &name, Type type, std::string &error);
  bool place(const std::string &label, std::string &error);
  bool declareVariable(const std::string &name, uint32_t variable,
                       std::string &error);
  bool declareTargets(const std::string &label,
                      std::vector<std::string> targets, std::string &error);

  Register *findRegister(std::string_view name);
  /// The index in Program::Variables, or NoSlot.
  uint32_t findVariable(std::string_view name) const;
  const std::vector<std::string> *findTargets(std::string_view name) const;
  const Parameter *findParameter(std::string_view name) const;

  uint32_t newSlot(unsigned bytes); // of a lane; 0: a predicate
  uint32_t constant(unsigned bytes, uint64_t value, uint32_t symbol = NoSlot,
                    Space generic = Space::Global);
  uint32_t special(Special which, unsigned bytes);
  /// The carry of add.cc and its kin, a predicate.
  uint32_t condition() {
    return Condition == NoSlot ? Condition = newSlot(0) : Condition;
  }

  /// Instruction `index` has its Target at the label; with `where`, entry
  /// `where` of the kernel's table `index` is there.
  void branchTo(size_t index, std::string_view label, uint32_t line,
                int where = -1);

  Program &Code;
  Kernel &Into;

private:
  struct Fixup {
    size_t Inst;
    std::string Label;
    uint32_t Line;
    int Where;
  };
  struct Scope {
    std::map<std::string, Register, std::less<>> Registers;
    std::map<std::string, uint32_t, std::less<>> Labels;
    std::map<std::string, uint32_t, std::less<>> Variables;
    std::map<std::string, std::vector<std::string>, std::less<>> Targets;
    std::vector<Fixup> Fixups;
  };
  std::vector<Scope> Scopes;
  std::map<std::tuple<unsigned, uint64_t, uint32_t, Space>, uint32_t> Constants;
  std::map<std::pair<Special, unsigned>, uint32_t> Specials;
  uint32_t PredicateLine = 0; // the next free predicate, and how many
  uint32_t PredicatesLeft = 0;
  uint32_t Condition = NoSlot;
};

/// The modifiers and operands of one instruction, while a decode function takes
/// them. Whatever it did not take is an error, and so is what it asks for and
/// does not find; after an error, results are meaningless and harmless.
class Decoder {
public:
  Decoder(Frame &frame, const Statement &statement);

  /// Appends the instruction to the kernel. False and `error`.
  bool run(std::string &error);

  bool fail(const std::string &what);
  bool ok() const { return Error.empty(); }

  // Modifiers.
  std::string_view base() const { return Parts.front(); }
  bool take(std::string_view modifier);
  bool has(std::string_view modifier) const;
  /// The first modifier not yet taken, or "".
  std::string_view next() const;
  /// The next type among the modifiers, in the order written.
  Type takeType();
  Type tryType();
  Space takeSpace(); // Generic where none is named
  /// .rn and so on; `found` says whether there was one.
  Round takeRound(bool &found, bool integral = false);
  void takeScope(); // .cta .cluster .gpu .sys: any one of them

  // Operands.
  size_t operands() const { return Source.Operands.size(); }
  const Operand &operand(size_t k);
  bool expect(size_t least, size_t most);
  bool expect(size_t count) { return expect(count, count); }
  uint32_t dst(size_t k, Type type);
  /// A register of at least the type's size; its size is returned too.
  uint32_t dstWide(const Operand &operand, Type type, unsigned &bytes);
  uint32_t src(size_t k, Type type) { return src(operand(k), type); }
  uint32_t src(const Operand &operand, Type type);
  uint32_t srcWide(const Operand &operand, Type type, unsigned &bytes);
  uint32_t dstPredicate(const Operand &operand);
  uint32_t dstPredicate(std::string_view name);
  /// !%p is computed into a fresh predicate first.
  uint32_t srcPredicate(const Operand &operand);
  /// The value of an operand that has to be an immediate.
  int64_t immediate(size_t k);
  /// [base+offset] into Op[slot] and Offset, and WideAddress.
  void address(size_t k, unsigned slot, Space space);
  /// Elements of a vector operand (or the operand alone).
  std::vector<const Operand *> elements(size_t k);
  Register *find(std::string_view name) { return Function.findRegister(name); }

  Frame &Function;
  const Statement &Source;
  Inst I;

  /// Appends I as it stands; run() appends the last one.
  void emit();

private:
  uint32_t slotOf(Register &reg);
  uint32_t symbol(const Operand &operand, Type type);
  uint32_t opcode(const std::string &name);

  std::vector<std::string_view> Parts;
  std::vector<bool> Taken;
  std::string Error;
};

/// Takes modifiers and operands of one family of instructions.
using DecodeFunction = bool (*)(Decoder &);
/// Null for an instruction that is not known.
DecodeFunction findDecoder(std::string_view base);

} // namespace kvc::sim

#endif // KVC_RUNTIME_SIM_DECODER_H

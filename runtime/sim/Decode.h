// The decoded form of a kernel: what the executor steps through. Everything
// that can be known before a launch has been resolved: an operand is the place
// of a register in a warp's register file, an opcode is a function.
#ifndef KVC_RUNTIME_SIM_DECODE_H
#define KVC_RUNTIME_SIM_DECODE_H

#include "runtime/sim/Sim.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kvc::sim {

struct Warp;
struct Inst;

/// Does the instruction for the lanes of `mask`, which is not empty.
using Handler = void (*)(Warp &warp, const Inst &inst, uint32_t mask);

constexpr uint32_t NoSlot = ~uint32_t(0);
constexpr uint32_t Lanes = 32;
constexpr uint32_t FullMask = ~uint32_t(0);
constexpr uint32_t MostShared = 227 << 10; // bytes of a CTA

/// State spaces, as the modifiers name them.
enum class Space : uint8_t { Generic, Global, Shared, Local, Const, Param };

/// A register file holds one array of 32 lanes a register: 16-, 32-, 64- or
/// 128-bit elements, each array at a multiple of 64 bytes; a predicate is one
/// 32-bit word, bit l for lane l. Immediates, special registers that do not
/// change and addresses of symbols are registers too, which a launch fills in.
struct Inst {
  Handler Run = nullptr;
  uint32_t Guard = NoSlot; // predicate
  bool GuardNegated = false;
  uint8_t Bytes = 0;            // of an element in memory
  uint8_t Count = 1;            // elements of a vector operand
  uint8_t Kind = 0;             // the handler's own selector
  Space Where = Space::Generic; // of a memory access
  bool WideAddress = true;      // the base register has 64 bits
  bool Releases = false;        // .release and .acq_rel
  bool Hidden = false;          // not in the text: not counted
  uint32_t Opcode = 0;          // index into Program::Opcodes
  uint32_t Line = 0;            // of the PTX text, from 1
  uint32_t Target = 0;          // instruction index; or another integer
  int64_t Offset = 0;           // byte offset of an address operand
  /// Places (byte offsets) in the register file, destinations first.
  uint32_t Op[16] = {};
};

/// Registers that do not change while a CTA runs.
enum class Special : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NwarpId,
  SmId,
  NsmId,
  GridId,
  LanemaskEq,
  LanemaskLt,
  LanemaskLe,
  LanemaskGt,
  LanemaskGe,
  DynamicSharedSize,
  TotalSharedSize,
  Zero, // cluster coordinates of a launch without clusters
  One,
};

/// A register that a launch fills with one value in all lanes.
struct Constant {
  uint32_t Slot = 0;
  uint8_t Bytes = 4;        // of a lane: 2, 4, 8; 0: a predicate
  uint64_t Value = 0;       // or the addend to Symbol's address
  uint32_t Symbol = NoSlot; // index into Program::Variables
  /// Generic: the address is one of the generic space, else of the variable's.
  Space Address = Space::Global;
};

struct SpecialRegister {
  uint32_t Slot = 0;
  uint8_t Bytes = 4;
  Special Which = Special::Zero;
};

/// A .global, .const or .shared variable.
struct Variable {
  std::string Name;
  Space Where = Space::Global;
  uint32_t Align = 1;
  uint64_t Bytes = 0; // 0: .extern .shared, as long as the launch says
  bool Initialised = false;
  std::vector<uint8_t> Initial; // empty: all zero
  struct Address { // `Bytes` bytes at Offset hold Symbol's address + Addend
    uint64_t Offset = 0;
    uint8_t Bytes = 8;
    std::string Symbol;
    int64_t Addend = 0;
    bool Generic = false;
  };
  std::vector<Address> Addresses;
};

/// A variable in shared or local memory and where the kernel has it.
struct Placement {
  uint32_t Variable = 0;
  uint32_t Offset = 0;
  bool Dynamic = false; // after all static ones
};

struct Kernel {
  KernelInfo Info;
  std::vector<Inst> Code; // ends with an exit
  uint32_t FileBytes = 0; // of a warp's register file
  std::vector<Constant> Constants;
  std::vector<SpecialRegister> Specials;
  std::vector<Placement> Placements;
  std::vector<std::vector<uint32_t>> Tables; // targets of brx.idx
  bool GridWait = false;                     // has griddepcontrol.wait
};

struct Program {
  uint64_t Id = 0; // of each text parsed, another
  std::string Target;
  std::vector<std::string> Opcodes; // full names, such as "ld.global.v4.b32"
  std::vector<Variable> Variables;
  std::vector<Kernel> Kernels;
  std::map<std::string, uint32_t, std::less<>> KernelIndex;
  std::map<std::string, uint32_t, std::less<>> GlobalIndex; // of Variables
  std::map<std::string, uint32_t, std::less<>> OpcodeIndex;
  std::vector<std::string> Lines; // of the text, for messages
};

} // namespace kvc::sim

#endif // KVC_RUNTIME_SIM_DECODE_H

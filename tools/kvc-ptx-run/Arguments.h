// The values of a kernel's parameters as the command line gives them.
#ifndef KVC_TOOLS_KVC_PTX_RUN_ARGUMENTS_H
#define KVC_TOOLS_KVC_PTX_RUN_ARGUMENTS_H

#include "runtime/sim/Sim.h"
#include "tools/kvc-ptx-run/Npy.h"

namespace kvc {

enum class Element : uint8_t {
  I8,
  U8,
  I16,
  U16,
  I32,
  U32,
  I64,
  U64,
  F16,
  Bf16,
  F32,
  F64
};

/// One --arg.
struct Argument {
  std::string Text; // as given, for messages
  Element Type = Element::U64;
  bool IsBuffer = false;
  uint64_t Scalar = 0; // its bits
  // A buffer:
  std::vector<uint64_t> Shape;
  std::vector<uint8_t> Data; // empty: uninitialised
  uint64_t Bytes = 0;
  bool ReadOnly = false; // may be read before griddepcontrol.wait
  bool Shown = false;    // printed, or saved to Path, after the run
  std::string Path;
  uint64_t Address = 0;
};

extern const char ArgumentHelp[];

unsigned bytesOf(Element type);
/// Bits of a value written as text; false where it does not fit the type.
bool parseScalar(const std::string &text, Element type, uint64_t &bits);
/// KIND:... as in ArgumentHelp; false and one line in `error`.
bool parseArgument(const std::string &text, Argument &argument,
                   std::string &error);
/// An element as text, for printing.
std::string elementText(const uint8_t *data, Element type);
/// A buffer's bytes as numpy has them; bf16 is widened to f4.
NpyArray toNpy(const Argument &argument);

} // namespace kvc

#endif // KVC_TOOLS_KVC_PTX_RUN_ARGUMENTS_H

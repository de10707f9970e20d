#include "runtime/sim/Ops.h"

#include <cstring>

namespace kvc::sim {

namespace {

struct SpecialName {
  const char *Name;
  Special Which;
  unsigned Bytes;
};
constexpr SpecialName SpecialNames[] = {
    {"%tid.x", Special::TidX, 4},
    {"%tid.y", Special::TidY, 4},
    {"%tid.z", Special::TidZ, 4},
    {"%ntid.x", Special::NtidX, 4},
    {"%ntid.y", Special::NtidY, 4},
    {"%ntid.z", Special::NtidZ, 4},
    {"%ctaid.x", Special::CtaidX, 4},
    {"%ctaid.y", Special::CtaidY, 4},
    {"%ctaid.z", Special::CtaidZ, 4},
    {"%nctaid.x", Special::NctaidX, 4},
    {"%nctaid.y", Special::NctaidY, 4},
    {"%nctaid.z", Special::NctaidZ, 4},
    {"%laneid", Special::LaneId, 4},
    {"%warpid", Special::WarpId, 4},
    {"%nwarpid", Special::NwarpId, 4},
    {"%smid", Special::SmId, 4},
    {"%nsmid", Special::NsmId, 4},
    {"%gridid", Special::Zero, 8},
    {"%lanemask_eq", Special::LanemaskEq, 4},
    {"%lanemask_lt", Special::LanemaskLt, 4},
    {"%lanemask_le", Special::LanemaskLe, 4},
    {"%lanemask_gt", Special::LanemaskGt, 4},
    {"%lanemask_ge", Special::LanemaskGe, 4},
    {"%dynamic_smem_size", Special::DynamicSharedSize, 4},
    {"%total_smem_size", Special::TotalSharedSize, 4},
    {"%cluster_ctaid.x", Special::Zero, 4},
    {"%cluster_ctaid.y", Special::Zero, 4},
    {"%cluster_ctaid.z", Special::Zero, 4},
    {"%cluster_nctaid.x", Special::One, 4},
    {"%cluster_nctaid.y", Special::One, 4},
    {"%cluster_nctaid.z", Special::One, 4},
    {"%cluster_ctarank", Special::Zero, 4},
    {"%cluster_nctarank", Special::One, 4},
    {"%clusterid.x", Special::CtaidX, 4},
    {"%clusterid.y", Special::CtaidY, 4},
    {"%clusterid.z", Special::CtaidZ, 4},
    {"%nclusterid.x", Special::NctaidX, 4},
    {"%nclusterid.y", Special::NctaidY, 4},
    {"%nclusterid.z", Special::NctaidZ, 4}};

} // namespace

static std::string quoted(std::string_view text) {
  return "'" + std::string(text) + "'";
}

Decoder::Decoder(Frame &frame, const Statement &statement)
    : Function(frame), Source(statement) {
  std::string_view opcode = statement.Opcode;
  for (size_t from = 0; from <= opcode.size();) {
    size_t dot = opcode.find('.', from);
    if (dot == std::string_view::npos)
      dot = opcode.size();
    Parts.push_back(opcode.substr(from, dot - from));
    from = dot + 1;
  }
  Taken.assign(Parts.size(), false);
  Taken[0] = true;
  I.Line = statement.Line;
}

uint32_t Decoder::opcode(const std::string &name) {
  Program &program = Function.Code;
  auto [it, fresh] =
      program.OpcodeIndex.try_emplace(name, uint32_t(program.Opcodes.size()));
  if (fresh)
    program.Opcodes.push_back(name);
  return it->second;
}

bool Decoder::run(std::string &error) {
  I.Opcode = opcode(std::string(Source.Opcode));
  DecodeFunction decode = findDecoder(base());
  if (!decode)
    fail("unknown instruction");
  if (ok() && !Source.Guard.empty()) {
    Register *guard = find(Source.Guard);
    if (!guard || guard->Is != Type::Pred)
      fail("the guard " + quoted(Source.Guard) + " is not a predicate");
    else
      I.Guard = slotOf(*guard);
    I.GuardNegated = Source.GuardNegated;
  }
  if (ok())
    decode(*this);
  for (size_t part = 0; ok() && part != Parts.size(); ++part)
    if (!Taken[part])
      fail("unknown modifier '." + std::string(Parts[part]) + "'");
  if (ok() && !I.Run)
    fail("this form of the instruction is not known");
  if (!ok()) {
    error = "line " + std::to_string(Source.Line) + ": " +
            quoted(Source.Opcode) + ": " + Error;
    return false;
  }
  emit();
  return true;
}

void Decoder::emit() { Function.Into.Code.push_back(I); }

bool Decoder::fail(const std::string &what) {
  if (Error.empty())
    Error = what;
  return false;
}

bool Decoder::take(std::string_view modifier) {
  for (size_t part = 1; part != Parts.size(); ++part)
    if (!Taken[part] && Parts[part] == modifier)
      return Taken[part] = true;
  return false;
}

bool Decoder::has(std::string_view modifier) const {
  for (size_t part = 1; part != Parts.size(); ++part)
    if (Parts[part] == modifier)
      return true;
  return false;
}

std::string_view Decoder::next() const {
  for (size_t part = 1; part != Parts.size(); ++part)
    if (!Taken[part])
      return Parts[part];
  return {};
}

Type Decoder::tryType() {
  for (size_t part = 1; part != Parts.size(); ++part)
    if (!Taken[part]) {
      Type type = typeNamed(Parts[part]);
      if (type != Type::None) {
        Taken[part] = true;
        return type;
      }
    }
  return Type::None;
}

Type Decoder::takeType() {
  Type type = tryType();
  if (type == Type::None)
    fail("a type is missing");
  return type;
}

Space Decoder::takeSpace() {
  static constexpr std::pair<const char *, Space> names[] = {
      {"global", Space::Global},      {"shared", Space::Shared},
      {"shared::cta", Space::Shared}, {"local", Space::Local},
      {"const", Space::Const},        {"param", Space::Param},
      {"param::entry", Space::Param}};
  for (auto [name, space] : names)
    if (take(name))
      return space;
  return Space::Generic;
}

Round Decoder::takeRound(bool &found, bool integral) {
  static constexpr std::pair<const char *, Round> plain[] = {
      {"rn", Round::Nearest},
      {"rz", Round::Zero},
      {"rm", Round::Down},
      {"rp", Round::Up}};
  static constexpr std::pair<const char *, Round> whole[] = {
      {"rni", Round::Nearest},
      {"rzi", Round::Zero},
      {"rmi", Round::Down},
      {"rpi", Round::Up}};
  found = true;
  for (auto [name, round] : integral ? whole : plain)
    if (take(name))
      return round;
  found = false;
  return Round::Nearest;
}

void Decoder::takeScope() {
  for (const char *name : {"cta", "cluster", "gpu", "sys"})
    if (take(name))
      return;
}

const Operand &Decoder::operand(size_t k) {
  static const Operand none{Operand::Sink, false, 0, {}, {}, 0, 0, {}};
  if (k < Source.Operands.size())
    return Source.Operands[k];
  fail("operand " + std::to_string(k + 1) + " is missing");
  return none;
}

bool Decoder::expect(size_t least, size_t most) {
  if (operands() >= least && operands() <= most)
    return true;
  return fail(std::to_string(operands()) + " operands; it has " +
              std::to_string(least) +
              (most == least ? "" : " to " + std::to_string(most)));
}

uint32_t Decoder::slotOf(Register &reg) {
  if (reg.Slot == NoSlot) {
    reg.Slot = Function.newSlot(bytesOf(reg.Is));
    ++Function.Into.Info.Registers;
  }
  return reg.Slot;
}

uint32_t Decoder::dst(size_t k, Type type) {
  unsigned bytes = 0;
  uint32_t slot = dstWide(operand(k), type, bytes);
  if (ok() && bytes != bytesOf(type))
    fail("destination " + quoted(operand(k).Text) + " has " +
         std::to_string(8 * bytes) + " bits, the instruction " +
         std::to_string(8 * bytesOf(type)));
  return slot;
}

uint32_t Decoder::dstWide(const Operand &operand, Type type, unsigned &bytes) {
  bytes = bytesOf(type);
  if (type == Type::Pred)
    return dstPredicate(operand);
  if (operand.Is == Operand::Sink) {
    bytes = std::max(bytes, 2u);
    return Function.newSlot(bytes);
  }
  Register *reg = operand.Is == Operand::Name ? find(operand.Text) : nullptr;
  if (!reg || operand.Offset || !operand.Second.empty() || operand.Negated) {
    fail("destination " + quoted(operand.Text) + " is not a register");
    return 0;
  }
  if (reg->Is == Type::Pred || bytesOf(reg->Is) < bytes) {
    fail("destination " + quoted(operand.Text) + " is too small for the type");
    return 0;
  }
  bytes = bytesOf(reg->Is);
  return slotOf(*reg);
}

uint32_t Decoder::dstPredicate(std::string_view name) {
  if (name == "_")
    return Function.newSlot(0);
  Register *reg = find(name);
  if (reg && reg->Is == Type::Pred)
    return slotOf(*reg);
  fail("destination " + quoted(name) + " is not a predicate");
  return 0;
}

uint32_t Decoder::dstPredicate(const Operand &operand) {
  if (operand.Is == Operand::Sink)
    return Function.newSlot(0);
  if (operand.Is == Operand::Name && !operand.Negated)
    return dstPredicate(operand.Text);
  fail("a predicate was expected as the destination");
  return 0;
}

uint32_t Decoder::symbol(const Operand &operand, Type type) {
  unsigned bytes = bytesOf(type);
  if (const Parameter *parameter = Function.findParameter(operand.Text))
    return Function.constant(bytes, parameter->Offset + operand.Offset);
  uint32_t variable = Function.findVariable(operand.Text);
  if (variable == NoSlot) {
    fail("nothing is called " + quoted(operand.Text));
    return 0;
  }
  return Function.constant(bytes, uint64_t(operand.Offset), variable,
                           Function.Code.Variables[variable].Where);
}

uint32_t Decoder::src(const Operand &operand, Type type) {
  unsigned bytes = 0;
  uint32_t slot = srcWide(operand, type, bytes);
  if (ok() && type != Type::Pred && bytes != std::max(2u, bytesOf(type)))
    fail("operand " + quoted(operand.Text) + " has " +
         std::to_string(8 * bytes) + " bits, the instruction " +
         std::to_string(8 * bytesOf(type)));
  return slot;
}

uint32_t Decoder::srcWide(const Operand &operand, Type type, unsigned &bytes) {
  bytes = std::max(2u, bytesOf(type));
  if (type == Type::Pred)
    return srcPredicate(operand);
  uint64_t value = operand.Value;
  switch (operand.Is) {
  case Operand::Integer:
    if (isFloating(type) && type != Type::F16x2 && type != Type::BF16x2 &&
        type != Type::TF32) {
      fail("an integer constant for a floating operand");
      return 0;
    }
    break;
  case Operand::Float:
    if (operand.Bytes == 8 && bytesOf(type) == 4) {
      double wide = 0;
      std::memcpy(&wide, &value, sizeof(wide));
      value = bitsOf(float(wide));
    } else if (operand.Bytes != bytesOf(type)) {
      fail("a floating constant of another size than the operand");
      return 0;
    }
    break;
  case Operand::Name: {
    if (operand.Negated || !operand.Second.empty()) {
      fail("operand " + quoted(operand.Text) + " is not a plain register");
      return 0;
    }
    if (Register *reg = find(operand.Text)) {
      if (reg->Is == Type::Pred || bytesOf(reg->Is) < bytesOf(type)) {
        fail("operand " + quoted(operand.Text) + " is too small for the type");
        return 0;
      }
      bytes = bytesOf(reg->Is);
      return slotOf(*reg);
    }
    if (operand.Text == "WARP_SZ") {
      value = Lanes;
      break;
    }
    if (operand.Text[0] != '%')
      return symbol(operand, type);
    for (const SpecialName &special : SpecialNames)
      if (operand.Text == special.Name) {
        bytes = special.Bytes;
        return Function.special(special.Which, special.Bytes);
      }
    fail("nothing is called " + quoted(operand.Text));
    return 0;
  }
  default:
    fail("a register or constant was expected");
    return 0;
  }
  if (bytes == 16) {
    fail("a constant of 128 bits");
    return 0;
  }
  if (bytes < 8)
    value &= (uint64_t(1) << 8 * bytes) - 1;
  return Function.constant(bytes, value);
}

uint32_t Decoder::srcPredicate(const Operand &operand) {
  if (operand.Is == Operand::Integer)
    return Function.constant(0, operand.Value ? FullMask : 0);
  Register *reg = operand.Is == Operand::Name ? find(operand.Text) : nullptr;
  if (!reg || reg->Is != Type::Pred || !operand.Second.empty()) {
    fail("operand " + quoted(operand.Text) + " is not a predicate");
    return 0;
  }
  uint32_t slot = slotOf(*reg);
  if (!operand.Negated)
    return slot;
  Inst complement;
  complement.Run = runNotPredicate;
  complement.Hidden = true;
  complement.Line = I.Line;
  complement.Opcode = opcode("not.pred");
  complement.Op[0] = Function.newSlot(0);
  complement.Op[1] = slot;
  Function.Into.Code.push_back(complement);
  return complement.Op[0];
}

int64_t Decoder::immediate(size_t k) {
  const Operand &constant = operand(k);
  if (constant.Is == Operand::Integer)
    return int64_t(constant.Value);
  fail("operand " + std::to_string(k + 1) + " has to be a constant");
  return 0;
}

void Decoder::address(size_t k, unsigned slot, Space space) {
  const Operand &place = operand(k);
  if (place.Is != Operand::Address) {
    fail("operand " + std::to_string(k + 1) + " has to be an address");
    return;
  }
  I.Where = space;
  I.Offset = place.Offset;
  I.WideAddress = true;
  if (place.Text.empty()) {
    I.Op[slot] = Function.constant(8, 0);
    return;
  }
  Register *reg = find(place.Text);
  if (!reg) {
    Operand name = place;
    name.Is = Operand::Name;
    I.Offset = 0;
    I.Op[slot] = symbol(name, Type::B64);
    if (!ok())
      return;
    // The space of the symbol has to be the one the instruction names.
    const Parameter *parameter = Function.findParameter(place.Text);
    Space where =
        parameter
            ? Space::Param
            : Function.Code.Variables[Function.findVariable(place.Text)].Where;
    if (where != space && (space != Space::Generic || where == Space::Param))
      fail(quoted(place.Text) + " is not in the space the instruction names");
    if (space == Space::Generic)
      I.Op[slot] =
          Function.constant(8, uint64_t(place.Offset),
                            Function.findVariable(place.Text), Space::Generic);
    return;
  }
  unsigned bytes = bytesOf(reg->Is);
  if (bytes != 8 &&
      (bytes != 4 || space == Space::Generic || space == Space::Global)) {
    fail("the address " + quoted(place.Text) + " has " +
         std::to_string(8 * bytes) + " bits");
    return;
  }
  I.WideAddress = bytes == 8;
  I.Op[slot] = slotOf(*reg);
}

std::vector<const Operand *> Decoder::elements(size_t k) {
  const Operand &whole = operand(k);
  std::vector<const Operand *> result;
  if (whole.Is != Operand::Vector)
    result.push_back(&whole);
  else
    for (const Operand &element : whole.Elements)
      result.push_back(&element);
  return result;
}

} // namespace kvc::sim

#include "runtime/sim/Decoder.h"

#include <algorithm>

namespace kvc::sim {

Type typeNamed(std::string_view word) {
  static const std::map<std::string_view, Type> names = {
      {"b8", Type::B8},         {"b16", Type::B16},
      {"b32", Type::B32},       {"b64", Type::B64},
      {"b128", Type::B128},     {"u8", Type::U8},
      {"u16", Type::U16},       {"u32", Type::U32},
      {"u64", Type::U64},       {"s8", Type::S8},
      {"s16", Type::S16},       {"s32", Type::S32},
      {"s64", Type::S64},       {"f16", Type::F16},
      {"f16x2", Type::F16x2},   {"bf16", Type::BF16},
      {"bf16x2", Type::BF16x2}, {"f32", Type::F32},
      {"f64", Type::F64},       {"tf32", Type::TF32},
      {"e4m3", Type::E4M3},     {"e5m2", Type::E5M2},
      {"e4m3x2", Type::E4M3x2}, {"e5m2x2", Type::E5M2x2},
      {"u16x2", Type::U16x2},   {"s16x2", Type::S16x2},
      {"pred", Type::Pred}};
  auto it = names.find(word);
  return it == names.end() ? Type::None : it->second;
}

unsigned bytesOf(Type type) {
  switch (type) {
  case Type::B8:
  case Type::U8:
  case Type::S8:
  case Type::E4M3:
  case Type::E5M2:
    return 1;
  case Type::B16:
  case Type::U16:
  case Type::S16:
  case Type::F16:
  case Type::BF16:
  case Type::E4M3x2:
  case Type::E5M2x2:
    return 2;
  case Type::B64:
  case Type::U64:
  case Type::S64:
  case Type::F64:
    return 8;
  case Type::B128:
    return 16;
  case Type::None:
  case Type::Pred:
    return 0;
  default:
    return 4;
  }
}

bool isSigned(Type type) {
  return type == Type::S8 || type == Type::S16 || type == Type::S32 ||
         type == Type::S64;
}
bool isFloating(Type type) { return type >= Type::F16 && type <= Type::E5M2x2; }
bool isInteger(Type type) { return type >= Type::B8 && type <= Type::S64; }

void Frame::enter() { Scopes.emplace_back(); }

bool Frame::leave(std::string &error) {
  Scope scope = std::move(Scopes.back());
  Scopes.pop_back();
  for (Fixup &fixup : scope.Fixups) {
    auto label = scope.Labels.find(fixup.Label);
    if (label == scope.Labels.end()) {
      // A branch out of a block: an enclosing scope may have the label.
      if (Scopes.empty()) {
        error = "line " + std::to_string(fixup.Line) + ": no label '" +
                fixup.Label + "' in the function";
        return false;
      }
      Scopes.back().Fixups.push_back(std::move(fixup));
      continue;
    }
    if (fixup.Where < 0)
      Into.Code[fixup.Inst].Target = label->second;
    else
      Into.Tables[fixup.Inst][size_t(fixup.Where)] = label->second;
  }
  return true;
}

bool Frame::declare(const std::string &name, Type type, std::string &error) {
  if (Scopes.back().Registers.emplace(name, Register{type, NoSlot}).second)
    return true;
  error = "register '" + name + "' is declared twice";
  return false;
}

bool Frame::place(const std::string &label, std::string &error) {
  if (Scopes.back().Labels.emplace(label, uint32_t(Into.Code.size())).second)
    return true;
  error = "label '" + label + "' stands twice";
  return false;
}

bool Frame::declareVariable(const std::string &name, uint32_t variable,
                            std::string &error) {
  if (Scopes.back().Variables.emplace(name, variable).second)
    return true;
  error = "variable '" + name + "' is declared twice";
  return false;
}

bool Frame::declareTargets(const std::string &label,
                           std::vector<std::string> targets,
                           std::string &error) {
  if (Scopes.back().Targets.emplace(label, std::move(targets)).second)
    return true;
  error = "label '" + label + "' stands twice";
  return false;
}

Register *Frame::findRegister(std::string_view name) {
  for (auto scope = Scopes.rbegin(); scope != Scopes.rend(); ++scope) {
    auto it = scope->Registers.find(name);
    if (it != scope->Registers.end())
      return &it->second;
  }
  return nullptr;
}

uint32_t Frame::findVariable(std::string_view name) const {
  for (auto scope = Scopes.rbegin(); scope != Scopes.rend(); ++scope) {
    auto it = scope->Variables.find(name);
    if (it != scope->Variables.end())
      return it->second;
  }
  auto it = Code.GlobalIndex.find(name);
  return it == Code.GlobalIndex.end() ? NoSlot : it->second;
}

const std::vector<std::string> *
Frame::findTargets(std::string_view name) const {
  for (auto scope = Scopes.rbegin(); scope != Scopes.rend(); ++scope) {
    auto it = scope->Targets.find(name);
    if (it != scope->Targets.end())
      return &it->second;
  }
  return nullptr;
}

const Parameter *Frame::findParameter(std::string_view name) const {
  for (const Parameter &parameter : Into.Info.Parameters)
    if (parameter.Name == name)
      return &parameter;
  return nullptr;
}

uint32_t Frame::newSlot(unsigned bytes) {
  if (bytes == 0) {
    if (PredicatesLeft == 0) {
      PredicateLine = Into.FileBytes;
      PredicatesLeft = 16;
      Into.FileBytes += 64;
    }
    --PredicatesLeft;
    PredicateLine += 4;
    return PredicateLine - 4;
  }
  uint32_t slot = Into.FileBytes;
  Into.FileBytes += std::max(2u, bytes) * Lanes;
  return slot;
}

uint32_t Frame::constant(unsigned bytes, uint64_t value, uint32_t symbol,
                         Space generic) {
  auto [it, fresh] =
      Constants.try_emplace({bytes, value, symbol, generic}, NoSlot);
  if (fresh) {
    it->second = newSlot(bytes);
    Into.Constants.push_back(
        {it->second, uint8_t(bytes), value, symbol, generic});
  }
  return it->second;
}

uint32_t Frame::special(Special which, unsigned bytes) {
  auto [it, fresh] = Specials.try_emplace({which, bytes}, NoSlot);
  if (fresh) {
    it->second = newSlot(bytes);
    Into.Specials.push_back({it->second, uint8_t(bytes), which});
  }
  return it->second;
}

void Frame::branchTo(size_t index, std::string_view label, uint32_t line,
                     int where) {
  Scopes.back().Fixups.push_back({index, std::string(label), line, where});
}

} // namespace kvc::sim

#include "tools/kvc-ptx-run/Arguments.h"

#include "runtime/sim/Numerics.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <random>

namespace kvc {

using namespace kvc::sim;

const char ArgumentHelp[] =
    "A parameter's value, once for each, in order:\n"
    "TYPE:VALUE with TYPE i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64;\n"
    "in:DATA an initialised buffer, weights:DATA a read-only one,\n"
    "zero:TYPE[SHAPE][:FILE.npy] one of zeros, out:TYPE[SHAPE][:FILE.npy]\n"
    "an uninitialised one: printed, or saved, after the run;\n"
    "inout:DATA:FILE.npy is initialised and saved.\n"
    "DATA is FILE.npy, or TYPE[SHAPE]:seed=N (uniform; integers take any\n"
    "value), TYPE[SHAPE]:fill=VALUE, TYPE[SHAPE]:iota. SHAPE is 64 or 8x32";

namespace {
struct TypeName {
  const char *Name;
  Element Type;
  unsigned Bytes;
  const char *Numpy;
};
} // namespace

static const TypeName Types[] = {
    {"i8", Element::I8, 1, "i1"},   {"u8", Element::U8, 1, "u1"},
    {"i16", Element::I16, 2, "i2"}, {"u16", Element::U16, 2, "u2"},
    {"i32", Element::I32, 4, "i4"}, {"u32", Element::U32, 4, "u4"},
    {"i64", Element::I64, 8, "i8"}, {"u64", Element::U64, 8, "u8"},
    {"f16", Element::F16, 2, "f2"}, {"bf16", Element::Bf16, 2, ""},
    {"f32", Element::F32, 4, "f4"}, {"f64", Element::F64, 8, "f8"},
};

static const TypeName &nameOf(Element type) { return Types[size_t(type)]; }

unsigned bytesOf(Element type) { return nameOf(type).Bytes; }

static bool findType(const std::string &name, Element &type) {
  for (const TypeName &each : Types)
    if (name == each.Name) {
      type = each.Type;
      return true;
    }
  return false;
}

static bool isFloating(Element type) { return type >= Element::F16; }

static uint64_t floatingBits(double value, Element type) {
  switch (type) {
  case Element::F16:
    return f64ToF16(value, Round::Nearest);
  case Element::Bf16:
    return f32ToBf16(bitsOf(float(value)), {});
  case Element::F32:
    return bitsOf(float(value));
  default:
    return bitsOf(value);
  }
}

bool parseScalar(const std::string &text, Element type, uint64_t &bits) {
  const char *start = text.c_str();
  char *end = nullptr;
  errno = 0;
  if (isFloating(type)) {
    bits = floatingBits(std::strtod(start, &end), type);
    return end != start && *end == 0;
  }
  if (text.empty() || text[0] == ' ')
    return false;
  unsigned width = 8 * bytesOf(type);
  uint64_t top = uint64_t(1) << (width - 1);
  if (nameOf(type).Name[0] == 'i') {
    long long value = std::strtoll(start, &end, 0);
    bits = uint64_t(value);
    if (value >= 0 ? uint64_t(value) > top - 1 : uint64_t(value) + top >= top)
      return false;
  } else {
    if (text[0] == '-')
      return false;
    bits = std::strtoull(start, &end, 0);
    if (bits > top - 1 + top)
      return false;
  }
  return errno == 0 && end != start && *end == 0;
}

std::string elementText(const uint8_t *data, Element type) {
  uint64_t bits = 0;
  std::memcpy(&bits, data, bytesOf(type));
  char text[40];
  switch (type) {
  case Element::I8:
    return std::to_string(int8_t(bits));
  case Element::I16:
    return std::to_string(int16_t(bits));
  case Element::I32:
    return std::to_string(int32_t(bits));
  case Element::I64:
    return std::to_string(int64_t(bits));
  case Element::U8:
  case Element::U16:
  case Element::U32:
  case Element::U64:
    return std::to_string(bits);
  case Element::F16:
    std::snprintf(text, sizeof(text), "%.6g",
                  floatOf(f16ToF32(uint16_t(bits))));
    return text;
  case Element::Bf16:
    std::snprintf(text, sizeof(text), "%.6g",
                  floatOf(bf16ToF32(uint16_t(bits))));
    return text;
  case Element::F32:
    std::snprintf(text, sizeof(text), "%.9g", floatOf(uint32_t(bits)));
    return text;
  case Element::F64:
    std::snprintf(text, sizeof(text), "%.17g", doubleOf(bits));
    return text;
  }
  return {};
}

NpyArray toNpy(const Argument &argument) {
  NpyArray array;
  array.Shape = argument.Shape;
  if (argument.Type != Element::Bf16) {
    array.Type = nameOf(argument.Type).Numpy;
    array.Data = argument.Data;
    return array;
  }
  array.Type = "f4";
  array.Data.resize(argument.Data.size() * 2);
  for (size_t i = 0; i + 1 < argument.Data.size(); i += 2) {
    uint16_t bits;
    std::memcpy(&bits, &argument.Data[i], sizeof(bits));
    uint32_t wide = bf16ToF32(bits);
    std::memcpy(&array.Data[2 * i], &wide, sizeof(wide));
  }
  return array;
}

/// TYPE[SHAPE] at the start of `text`; the rest is left in it.
static bool parseShaped(std::string &text, Argument &argument,
                        std::string &error) {
  size_t open = text.find('['), close = text.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) {
    error = "'" + text + "' is not TYPE[SHAPE]";
    return false;
  }
  std::string name = text.substr(0, open);
  if (!findType(name, argument.Type)) {
    error = "'" + name + "' is not a type";
    return false;
  }
  std::string shape = text.substr(open + 1, close - open - 1);
  text.erase(0, close + 1);
  uint64_t count = 1;
  for (size_t start = 0; start <= shape.size();) {
    size_t end = std::min(shape.find('x', start), shape.size());
    uint64_t extent = 0;
    if (!parseScalar(shape.substr(start, end - start), Element::U64, extent) ||
        extent == 0 || __builtin_mul_overflow(count, extent, &count) ||
        count > uint64_t(1) << 36) {
      error = "'" + shape + "' is not a shape such as 64 or 8x32";
      return false;
    }
    argument.Shape.push_back(extent);
    start = end + 1;
  }
  argument.Bytes = count * bytesOf(argument.Type);
  return true;
}

static void fillRandom(Argument &argument, uint64_t seed) {
  std::mt19937_64 random(seed);
  unsigned bytes = bytesOf(argument.Type);
  for (uint64_t at = 0; at != argument.Bytes; at += bytes) {
    uint64_t bits = random();
    if (isFloating(argument.Type))
      bits = floatingBits(double(bits >> 11) * 0x1p-52 - 1, argument.Type);
    std::memcpy(&argument.Data[at], &bits, bytes);
  }
}

/// The rest of DATA after TYPE[SHAPE].
static bool parseContents(const std::string &text, Argument &argument,
                          std::string &error) {
  unsigned bytes = bytesOf(argument.Type);
  argument.Data.resize(argument.Bytes);
  if (text.rfind(":seed=", 0) == 0) {
    uint64_t seed = 0;
    if (parseScalar(text.substr(6), Element::U64, seed)) {
      fillRandom(argument, seed);
      return true;
    }
  } else if (text.rfind(":fill=", 0) == 0) {
    uint64_t bits = 0;
    if (parseScalar(text.substr(6), argument.Type, bits)) {
      for (uint64_t at = 0; at != argument.Bytes; at += bytes)
        std::memcpy(&argument.Data[at], &bits, bytes);
      return true;
    }
  } else if (text == ":iota") {
    for (uint64_t at = 0; at != argument.Bytes; at += bytes) {
      uint64_t bits = at / bytes;
      if (isFloating(argument.Type))
        bits = floatingBits(double(bits), argument.Type);
      std::memcpy(&argument.Data[at], &bits, bytes);
    }
    return true;
  }
  error = "'" + text + "' is not :seed=N, :fill=VALUE or :iota";
  return false;
}

static bool readFile(const std::string &path, Argument &argument,
                     std::string &error) {
  NpyArray array;
  if (!readNpy(path, array, error))
    return false;
  const auto *type = std::find_if(
      std::begin(Types), std::end(Types),
      [&](const TypeName &each) { return array.Type == each.Numpy; });
  if (type == std::end(Types) || array.Data.empty()) {
    error = path + ": holds no elements, or of a type that PTX has not";
    return false;
  }
  argument.Type = type->Type;
  argument.Shape = array.Shape;
  argument.Data = std::move(array.Data);
  argument.Bytes = argument.Data.size();
  return true;
}

static bool parseData(const std::string &text, Argument &argument,
                      std::string &error) {
  if (text.find('[') == std::string::npos)
    return readFile(text, argument, error);
  std::string rest = text;
  return parseShaped(rest, argument, error) &&
         parseContents(rest, argument, error);
}

static bool parseBuffer(const std::string &kind, const std::string &text,
                        Argument &argument, std::string &error) {
  argument.IsBuffer = true;
  if (kind == "in" || kind == "weights") {
    argument.ReadOnly = kind == "weights";
    return parseData(text, argument, error);
  }
  argument.Shown = true;
  if (kind == "inout") {
    size_t colon = text.rfind(':');
    if (colon == std::string::npos || colon + 1 == text.size()) {
      error = "inout takes DATA:FILE.npy";
      return false;
    }
    argument.Path = text.substr(colon + 1);
    return parseData(text.substr(0, colon), argument, error);
  }
  std::string rest = text;
  if (!parseShaped(rest, argument, error))
    return false;
  if (!rest.empty() && (rest[0] != ':' || rest.size() == 1)) {
    error = "'" + rest + "' is not :FILE.npy";
    return false;
  }
  if (!rest.empty())
    argument.Path = rest.substr(1);
  if (kind == "zero")
    argument.Data.assign(argument.Bytes, 0);
  return true;
}

bool parseArgument(const std::string &text, Argument &argument,
                   std::string &error) {
  argument.Text = text;
  size_t colon = text.find(':');
  std::string kind = text.substr(0, colon);
  std::string rest =
      colon == std::string::npos ? std::string() : text.substr(colon + 1);
  bool parsed = false;
  if (kind == "in" || kind == "weights" || kind == "zero" || kind == "out" ||
      kind == "inout") {
    parsed = parseBuffer(kind, rest, argument, error);
  } else if (findType(kind, argument.Type)) {
    parsed = parseScalar(rest, argument.Type, argument.Scalar);
    if (!parsed)
      error = "'" + rest + "' is not a value of " + kind;
  } else {
    error =
        "'" + kind + "' is neither a type nor in, weights, zero, out, inout";
  }
  if (!parsed)
    error = "--arg '" + text + "': " + error;
  return parsed;
}

} // namespace kvc

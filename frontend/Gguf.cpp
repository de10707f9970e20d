#include "frontend/Gguf.h"
#include "frontend/GgufParser.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"

#include <limits>

using namespace kvc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
namespace endian = llvm::support::endian;

StringRef kvc::ggufTypeName(GgufType type) {
  switch (type) {
  case GgufType::U8:
    return "u8";
  case GgufType::I8:
    return "i8";
  case GgufType::U16:
    return "u16";
  case GgufType::I16:
    return "i16";
  case GgufType::U32:
    return "u32";
  case GgufType::I32:
    return "i32";
  case GgufType::F32:
    return "f32";
  case GgufType::Bool:
    return "bool";
  case GgufType::String:
    return "string";
  case GgufType::Array:
    return "array";
  case GgufType::U64:
    return "u64";
  case GgufType::I64:
    return "i64";
  case GgufType::F64:
    return "f64";
  }
  return "unknown";
}

std::string kvc::ggufQuoted(StringRef text) {
  constexpr size_t longest = 100;
  auto append = [](std::string &out, StringRef part) {
    for (unsigned char c : part) {
      if (c == '\'' || c == '\\')
        out += '\\';
      if (llvm::isPrint(c))
        out += static_cast<char>(c);
      else
        out += "\\x" + llvm::utohexstr(c, /*LowerCase=*/true, /*Width=*/2);
    }
  };
  std::string out = "'";
  if (text.size() <= longest) {
    append(out, text);
  } else {
    append(out, text.take_front(longest / 2));
    out += "...";
    append(out, text.take_back(longest / 4));
  }
  return out + "'";
}

static bool isIntegerType(GgufType type) {
  switch (type) {
  case GgufType::U8:
  case GgufType::I8:
  case GgufType::U16:
  case GgufType::I16:
  case GgufType::U32:
  case GgufType::I32:
  case GgufType::U64:
  case GgufType::I64:
    return true;
  default:
    return false;
  }
}

static bool isFloatType(GgufType type) {
  return type == GgufType::F32 || type == GgufType::F64;
}

// A u64 above int64's range becomes int64's largest value.
static int64_t loadInteger(GgufType type, const uint8_t *at) {
  switch (type) {
  case GgufType::U8:
    return *at;
  case GgufType::I8:
    return static_cast<int8_t>(*at);
  case GgufType::U16:
    return endian::read16le(at);
  case GgufType::I16:
    return static_cast<int16_t>(endian::read16le(at));
  case GgufType::U32:
    return endian::read32le(at);
  case GgufType::I32:
    return static_cast<int32_t>(endian::read32le(at));
  case GgufType::U64:
    return static_cast<int64_t>(std::min<uint64_t>(
        endian::read64le(at), std::numeric_limits<int64_t>::max()));
  case GgufType::I64:
    return static_cast<int64_t>(endian::read64le(at));
  default:
    llvm_unreachable("not an integer type");
  }
}

static double loadNumber(GgufType type, const uint8_t *at) {
  return type == GgufType::F32
             ? endian::read<float, llvm::endianness::little>(at)
             : endian::read<double, llvm::endianness::little>(at);
}

static StringRef loadString(const uint8_t *at) {
  return {reinterpret_cast<const char *>(at + 8),
          static_cast<size_t>(endian::read64le(at))};
}

StringRef GgufStringIterator::operator*() const { return loadString(at); }

GgufStringIterator &GgufStringIterator::operator++() {
  at += 8 + endian::read64le(at);
  --left;
  return *this;
}

bool GgufArray::isInteger() const { return isIntegerType(type); }
bool GgufArray::isFloat() const { return isFloatType(type); }

int64_t GgufArray::integer(uint64_t i) const {
  uint64_t width = 1;
  if (type == GgufType::U16 || type == GgufType::I16)
    width = 2;
  else if (type == GgufType::U32 || type == GgufType::I32)
    width = 4;
  else if (type == GgufType::U64 || type == GgufType::I64)
    width = 8;
  return loadInteger(type, payload + i * width);
}

double GgufArray::number(uint64_t i) const {
  return loadNumber(type, payload + i * (type == GgufType::F32 ? 4 : 8));
}

static Error makeError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

Expected<std::unique_ptr<GgufFile>>
GgufFile::parse(StringRef name, llvm::ArrayRef<uint8_t> bytes) {
  std::unique_ptr<GgufFile> file(new GgufFile);
  file->name = name.str();
  file->bytes = bytes;
  GgufParser parser(*file);
  if (!parser.run())
    return makeError(parser.message);
  return file;
}

Expected<std::unique_ptr<GgufFile>> GgufFile::open(StringRef path) {
  namespace fs = llvm::sys::fs;
  auto refuse = [&](const Twine &what, std::error_code code) {
    return makeError(path + ": " + what + ": " + code.message());
  };
  fs::file_status status;
  if (std::error_code code = fs::status(path, status))
    return refuse("cannot open the file", code);
  if (status.type() != fs::file_type::regular_file)
    return makeError(path + ": found " +
                     (status.type() == fs::file_type::directory_file
                          ? "a directory"
                          : "something that is no regular file") +
                     ", rule: a GGUF model is a file");
  Expected<fs::file_t> handle = fs::openNativeFileForRead(path);
  if (!handle)
    return refuse("cannot open the file",
                  llvm::errorToErrorCode(handle.takeError()));
  llvm::scope_exit close([&] {
    [[maybe_unused]] std::error_code ignored = fs::closeFile(*handle);
  });
  // The size of what was opened, whatever `path` names by now.
  if (std::error_code code = fs::status(*handle, status))
    return refuse("cannot read the file's size", code);
  uint64_t size = status.getSize();
  if (size == 0)
    return makeError(path + ": header: found an empty file, rule: a GGUF file "
                            "starts with 'GGUF'");
  std::error_code code;
  fs::mapped_file_region mapping(*handle, fs::mapped_file_region::readonly,
                                 size, 0, code);
  if (code)
    return refuse("cannot map the file", code);
  auto file =
      parse(path, {reinterpret_cast<const uint8_t *>(mapping.const_data()),
                   static_cast<size_t>(size)});
  if (file)
    (*file)->mapping = std::move(mapping);
  return file;
}

Error GgufFile::keyError(StringRef key, const Twine &found,
                         const Twine &rule) const {
  return makeError(name + ": key " + ggufQuoted(key) + ": found " + found +
                   ", rule: " + rule);
}

Error GgufFile::tensorError(StringRef tensor, const Twine &found,
                            const Twine &rule) const {
  return makeError(name + ": tensor " + ggufQuoted(tensor) + ": found " +
                   found + ", rule: " + rule);
}

const GgufValue *GgufFile::find(StringRef key) const {
  auto it = values.find(key);
  return it == values.end() ? nullptr : &it->second;
}

const GgufTensor *GgufFile::findTensor(StringRef tensor) const {
  auto it = tensorIndex.find(tensor);
  return it == tensorIndex.end() ? nullptr : &tensorOrder[it->second];
}

Expected<const GgufTensor *> GgufFile::getTensor(StringRef tensor) const {
  if (const GgufTensor *found = findTensor(tensor))
    return found;
  return tensorError(tensor, "no such tensor", "the file must have it");
}

Expected<const GgufValue *>
GgufFile::findTyped(StringRef key, bool (*accepts)(const GgufValue &),
                    StringRef kind) const {
  const GgufValue *value = find(key);
  if (!value || accepts(*value))
    return value;
  std::string type = ggufTypeName(value->type).str();
  if (value->type == GgufType::Array)
    type += " of " + ggufTypeName(value->array.elementType()).str();
  return keyError(key, "a value of type " + type, "the value is " + kind);
}

Error GgufFile::absent(StringRef key, StringRef kind) const {
  return keyError(key, "no such key", "the file must have it, as " + kind);
}

// Turns findX into getX.
template <typename Value>
static Expected<Value> require(Expected<std::optional<Value>> found,
                               llvm::function_ref<Error()> absent) {
  if (!found)
    return found.takeError();
  if (!*found)
    return absent();
  return **found;
}

static constexpr StringRef integerKind = "an integer";
static constexpr StringRef numberKind = "a floating-point number";
static constexpr StringRef boolKind = "a bool";
static constexpr StringRef stringKind = "a string";
static constexpr StringRef integersKind = "an array of integers";
static constexpr StringRef numbersKind = "an array of floating-point numbers";
static constexpr StringRef stringsKind = "an array of strings";

Expected<std::optional<uint64_t>> GgufFile::findU64(StringRef key) const {
  auto value = findTyped(
      key, [](const GgufValue &v) { return isIntegerType(v.type); },
      integerKind);
  if (!value)
    return value.takeError();
  if (!*value)
    return std::nullopt;
  const uint8_t *payload = (*value)->payload;
  if ((*value)->type == GgufType::U64)
    return endian::read64le(payload);
  int64_t number = loadInteger((*value)->type, payload);
  if (number < 0)
    return keyError(key, Twine(number), "the value is not negative");
  return static_cast<uint64_t>(number);
}

Expected<std::optional<double>> GgufFile::findF64(StringRef key) const {
  auto value = findTyped(
      key, [](const GgufValue &v) { return isFloatType(v.type); }, numberKind);
  if (!value)
    return value.takeError();
  if (!*value)
    return std::nullopt;
  return loadNumber((*value)->type, (*value)->payload);
}

Expected<std::optional<bool>> GgufFile::findBool(StringRef key) const {
  auto value = findTyped(
      key, [](const GgufValue &v) { return v.type == GgufType::Bool; },
      boolKind);
  if (!value)
    return value.takeError();
  if (!*value)
    return std::nullopt;
  return *(*value)->payload != 0;
}

Expected<std::optional<StringRef>> GgufFile::findString(StringRef key) const {
  auto value = findTyped(
      key, [](const GgufValue &v) { return v.type == GgufType::String; },
      stringKind);
  if (!value)
    return value.takeError();
  if (!*value)
    return std::nullopt;
  return loadString((*value)->payload);
}

Expected<std::optional<GgufArray>>
GgufFile::findArray(StringRef key, bool (*accepts)(const GgufValue &),
                    StringRef kind) const {
  auto value = findTyped(key, accepts, kind);
  if (!value)
    return value.takeError();
  if (!*value)
    return std::nullopt;
  return (*value)->array;
}

Expected<std::optional<GgufArray>> GgufFile::findIntegers(StringRef key) const {
  return findArray(
      key,
      [](const GgufValue &v) {
        return v.type == GgufType::Array && v.array.isInteger();
      },
      integersKind);
}

Expected<std::optional<GgufArray>> GgufFile::findNumbers(StringRef key) const {
  return findArray(
      key,
      [](const GgufValue &v) {
        return v.type == GgufType::Array && v.array.isFloat();
      },
      numbersKind);
}

Expected<std::optional<GgufArray>> GgufFile::findStrings(StringRef key) const {
  return findArray(
      key,
      [](const GgufValue &v) {
        return v.type == GgufType::Array &&
               v.array.elementType() == GgufType::String;
      },
      stringsKind);
}

Expected<uint64_t> GgufFile::getU64(StringRef key) const {
  return require(findU64(key), [&] { return absent(key, integerKind); });
}

Expected<double> GgufFile::getF64(StringRef key) const {
  return require(findF64(key), [&] { return absent(key, numberKind); });
}

Expected<bool> GgufFile::getBool(StringRef key) const {
  return require(findBool(key), [&] { return absent(key, boolKind); });
}

Expected<StringRef> GgufFile::getString(StringRef key) const {
  return require(findString(key), [&] { return absent(key, stringKind); });
}

Expected<GgufArray> GgufFile::getIntegers(StringRef key) const {
  return require(findIntegers(key), [&] { return absent(key, integersKind); });
}

Expected<GgufArray> GgufFile::getNumbers(StringRef key) const {
  return require(findNumbers(key), [&] { return absent(key, numbersKind); });
}

Expected<GgufArray> GgufFile::getStrings(StringRef key) const {
  return require(findStrings(key), [&] { return absent(key, stringsKind); });
}

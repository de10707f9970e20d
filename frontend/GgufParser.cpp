// Reads a GGUF header. Bounds are checked against the file's size before a byte
// is touched, sizes with checked 64-bit arithmetic, and no container grows
// from a count that the remaining bytes could not hold.
#include "frontend/GgufParser.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace kvc;
using llvm::StringRef;
using llvm::Twine;

static constexpr uint64_t maxKeyBytes = 65535;
static constexpr uint64_t maxNameBytes = 63;
static constexpr uint32_t maxDims = 4;
// The least a metadata entry and a tensor entry take: lengths, a name of one
// byte, the type, and a value of one byte or no dimension and an offset.
static constexpr uint64_t minEntryBytes = 8 + 1 + 4 + 1;
static constexpr uint64_t minTensorBytes = 8 + 1 + 4 + 4 + 8;

/// Bytes of a value of a fixed size; 0 for strings and arrays.
static uint64_t sizeOf(GgufType type) {
  switch (type) {
  case GgufType::U8:
  case GgufType::I8:
  case GgufType::Bool:
    return 1;
  case GgufType::U16:
  case GgufType::I16:
    return 2;
  case GgufType::U32:
  case GgufType::I32:
  case GgufType::F32:
    return 4;
  case GgufType::U64:
  case GgufType::I64:
  case GgufType::F64:
    return 8;
  case GgufType::String:
  case GgufType::Array:
    return 0;
  }
  return 0;
}

/// The name of a tensor type that exists but is no weight format of ours.
static StringRef foreignTypeName(uint32_t id) {
  switch (id) {
  case 4:
    return "Q4_2, removed from the format";
  case 5:
    return "Q4_3, removed from the format";
  case 9:
    return "Q8_1";
  case 15:
    return "Q8_K";
  case 16:
    return "IQ2_XXS";
  case 17:
    return "IQ2_XS";
  case 18:
    return "IQ3_XXS";
  case 19:
    return "IQ1_S";
  case 21:
    return "IQ3_S";
  case 22:
    return "IQ2_S";
  case 24:
    return "I8";
  case 25:
    return "I16";
  case 26:
    return "I32";
  case 27:
    return "I64";
  case 28:
    return "F64";
  case 29:
    return "IQ1_M";
  case 31:
  case 32:
  case 33:
    return "a Q4_0 repacked for one CPU, removed from the format";
  case 34:
    return "TQ1_0";
  case 35:
    return "TQ2_0";
  case 36:
  case 37:
  case 38:
    return "an IQ4_NL repacked for one CPU, removed from the format";
  default:
    return "unknown";
  }
}

bool GgufParser::fail(const Twine &found, const Twine &rule) {
  message = (Twine(file.name) + ": " + subject + ": found " + found +
             ", rule: " + rule)
                .str();
  return false;
}

bool GgufParser::need(uint64_t count, const Twine &what) {
  if (count <= left())
    return true;
  return fail(Twine(left()) + " bytes to the end of the file",
              what + " takes " + Twine(count) +
                  (count == 1 ? " byte" : " bytes"));
}

template <typename Number>
bool GgufParser::readNumber(Number &value, const Twine &what) {
  if (!need(sizeof(Number), what))
    return false;
  value = llvm::support::endian::read<Number, llvm::endianness::little>(here());
  position += sizeof(Number);
  return true;
}

bool GgufParser::readString(StringRef &text, const Twine &what) {
  uint64_t length;
  if (!readNumber(length, "the length of " + what) || !need(length, what))
    return false;
  text = StringRef(reinterpret_cast<const char *>(here()), length);
  position += length;
  return true;
}

bool GgufParser::readType(GgufType &type, const Twine &what) {
  uint32_t id;
  if (!readNumber(id, what))
    return false;
  if (id > static_cast<uint32_t>(GgufType::F64))
    return fail("type " + Twine(id), what + " is a number from 0 to 12");
  type = static_cast<GgufType>(id);
  return true;
}

bool GgufParser::checkBools(const uint8_t *begin, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i)
    if (begin[i] > 1)
      return fail("the bool " + Twine(static_cast<unsigned>(begin[i])),
                  "a bool is 0 or 1");
  return true;
}

bool GgufParser::readArray(GgufArray &array) {
  if (!readType(array.type, "an array's element type") ||
      !readNumber(array.count, "an array's length"))
    return false;
  if (array.type == GgufType::Array)
    return fail("an array of arrays", "arrays are not nested");
  // A string has at least its length.
  uint64_t elementBytes =
      array.type == GgufType::String ? 8 : sizeOf(array.type);
  if (array.count > left() / elementBytes)
    return fail(Twine(left()) + " bytes to the end of the file",
                "an array of " + Twine(array.count) + " " +
                    ggufTypeName(array.type) + " takes at least " +
                    Twine(elementBytes) +
                    (elementBytes == 1 ? " byte" : " bytes") + " each");
  array.payload = here();
  if (array.type == GgufType::String) {
    StringRef text;
    for (uint64_t i = 0; i < array.count; ++i)
      if (!readString(text, "string " + Twine(i) + " of the array"))
        return false;
    return true;
  }
  position += array.count * elementBytes;
  return array.type != GgufType::Bool || checkBools(array.payload, array.count);
}

bool GgufParser::readValue(GgufValue &value) {
  if (!readType(value.type, "the value's type"))
    return false;
  if (value.type == GgufType::Array)
    return readArray(value.array);
  value.payload = here();
  if (value.type == GgufType::String) {
    StringRef text;
    return readString(text, "a string");
  }
  if (!need(sizeOf(value.type), "a value of type " + ggufTypeName(value.type)))
    return false;
  position += sizeOf(value.type);
  return value.type != GgufType::Bool || checkBools(value.payload, 1);
}

bool GgufParser::readEntry(uint64_t index, uint64_t count) {
  subject = ("metadata entry " + Twine(index) + " of " + Twine(count)).str();
  StringRef key;
  if (!readString(key, "the key"))
    return false;
  if (key.empty())
    return fail("an empty key", "keys have at least one byte");
  if (key.size() > maxKeyBytes)
    return fail("a key of " + Twine(key.size()) + " bytes",
                "keys have at most " + Twine(maxKeyBytes));
  subject = "key " + ggufQuoted(key);
  GgufValue value;
  if (!readValue(value))
    return false;
  auto inserted = file.values.try_emplace(key, value);
  if (!inserted.second)
    return fail("the key again, as metadata entry " + Twine(index),
                "every key is there once");
  file.keyOrder.push_back(inserted.first->getKey());
  return true;
}

bool GgufParser::readAlignment() {
  StringRef key = "general.alignment";
  const GgufValue *value = file.find(key);
  if (!value)
    return true;
  subject = "key " + ggufQuoted(key);
  if (value->type != GgufType::U32)
    return fail("a value of type " + ggufTypeName(value->type),
                "the alignment is a u32");
  uint32_t alignment = llvm::support::endian::read32le(value->payload);
  if (alignment < 8 || !llvm::isPowerOf2_32(alignment))
    return fail(Twine(alignment), "the alignment is a power of two and a "
                                  "multiple of 8");
  file.dataAlignment = alignment;
  return true;
}

bool GgufParser::readDims(GgufTensor &tensor) {
  uint32_t rank;
  if (!readNumber(rank, "the number of dimensions"))
    return false;
  if (rank > maxDims)
    return fail(Twine(rank) + " dimensions",
                "a tensor has at most " + Twine(maxDims));
  for (uint32_t i = 0; i < rank; ++i) {
    uint64_t dim;
    if (!readNumber(dim, "dimension " + Twine(i)))
      return false;
    if (dim == 0 ||
        dim > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return fail("dimension " + Twine(i) + " = " + Twine(dim),
                  "dimensions are positive and fit 63 bits");
    tensor.dims.push_back(static_cast<int64_t>(dim));
  }
  return true;
}

static std::string dimsText(const GgufTensor &tensor) {
  std::string text = "dimensions [";
  for (size_t i = 0; i < tensor.dims.size(); ++i)
    text += (i ? ", " : "") + std::to_string(tensor.dims[i]);
  return text + "]";
}

bool GgufParser::computeBytes(GgufTensor &tensor) {
  const FormatInfo &info = formatInfo(tensor.format);
  if (tensor.columns() % info.blockValues != 0)
    return fail(dimsText(tensor), Twine("the first dimension of ") + info.name +
                                      " is a multiple of " +
                                      Twine(info.blockValues));
  int64_t total = 1;
  for (int64_t dim : tensor.dims)
    if (llvm::MulOverflow(total, dim, total))
      return fail(dimsText(tensor), "the number of values fits 63 bits");
  int64_t bytes;
  if (llvm::MulOverflow(total / info.blockValues,
                        static_cast<int64_t>(info.blockBytes), bytes))
    return fail(dimsText(tensor),
                Twine("the size in ") + info.name + " fits 63 bits");
  tensor.bytes = static_cast<uint64_t>(bytes);
  return true;
}

bool GgufParser::readTensor(uint64_t index, uint64_t count) {
  subject = ("tensor " + Twine(index) + " of " + Twine(count)).str();
  GgufTensor tensor;
  if (!readString(tensor.name, "the name"))
    return false;
  if (tensor.name.empty())
    return fail("an empty name", "names have at least one byte");
  if (tensor.name.size() > maxNameBytes)
    return fail("the name " + ggufQuoted(tensor.name) + " of " +
                    Twine(tensor.name.size()) + " bytes",
                "names have at most " + Twine(maxNameBytes));
  subject = "tensor " + ggufQuoted(tensor.name);
  uint32_t type;
  if (!readDims(tensor) || !readNumber(type, "the tensor's type") ||
      !readNumber(tensor.offset, "the tensor's offset"))
    return false;
  std::optional<Format> format = formatFromGguf(type);
  if (!format)
    return fail("type " + Twine(type) + " (" + foreignTypeName(type) + ")",
                "a weight's type is " + weightTypes());
  tensor.format = *format;
  if (!computeBytes(tensor))
    return false;

  // The file says where the data is; there is one right answer.
  if (tensor.offset != nextOffset)
    return fail("offset " + Twine(tensor.offset),
                "the data follows the tensor before, at " + Twine(nextOffset));
  uint64_t end = nextOffset + tensor.bytes; // both below 2^63
  if (end > std::numeric_limits<uint64_t>::max() / 2 - file.dataAlignment)
    return fail("a size of " + Twine(tensor.bytes) + " bytes at offset " +
                    Twine(nextOffset),
                "the data of all tensors fits 63 bits");
  nextOffset = llvm::alignTo(end, file.dataAlignment);

  if (!file.tensorIndex.try_emplace(tensor.name, file.tensorOrder.size())
           .second)
    return fail("the name again, as tensor " + Twine(index),
                "every name is there once");
  file.tensorOrder.push_back(std::move(tensor));
  return true;
}

std::string GgufParser::weightTypes() {
  std::string text;
  for (int i = 0; i < FormatCount; ++i)
    text += (i == 0                 ? ""
             : i == FormatCount - 1 ? " or "
                                    : ", ") +
            std::string(formatInfo(static_cast<Format>(i)).name);
  return text;
}

bool GgufParser::placeTensors() {
  file.dataOffset = std::min<uint64_t>(
      llvm::alignTo(position, file.dataAlignment), file.bytes.size());
  uint64_t available = file.bytes.size() - file.dataOffset;
  for (GgufTensor &tensor : file.tensorOrder) {
    subject = "tensor " + ggufQuoted(tensor.name);
    if (tensor.offset > available || tensor.bytes > available - tensor.offset)
      return fail(Twine(available) + " bytes of data in the file",
                  "the tensor takes " + Twine(tensor.bytes) +
                      " bytes at offset " + Twine(tensor.offset) + " of them");
    tensor.offset += file.dataOffset;
  }
  return true;
}

bool GgufParser::readHeader(uint64_t &tensors, uint64_t &entries) {
  subject = "header";
  if (!need(4, "the magic number"))
    return false;
  StringRef magic(reinterpret_cast<const char *>(here()), 4);
  if (magic != "GGUF")
    return fail("the magic number " + ggufQuoted(magic),
                "a GGUF file starts with 'GGUF'");
  position += 4;
  if (!readNumber(file.fileVersion, "the version"))
    return false;
  uint32_t version = file.fileVersion;
  if (version != 2 && version != 3) {
    uint32_t swapped = llvm::byteswap(version);
    StringRef hint =
        swapped == 2 || swapped == 3
            ? "; this one seems to be of the other byte order (big-endian)"
            : "";
    return fail("version " + Twine(version),
                "the version is 2 or 3, little-endian" + hint);
  }
  if (!readNumber(tensors, "the number of tensors") ||
      !readNumber(entries, "the number of metadata entries"))
    return false;
  if (entries > left() / minEntryBytes)
    return fail(Twine(entries) + " metadata entries",
                "the " + Twine(left()) + " bytes left hold at most " +
                    Twine(left() / minEntryBytes));
  if (tensors > left() / minTensorBytes)
    return fail(Twine(tensors) + " tensors",
                "the " + Twine(left()) + " bytes left hold at most " +
                    Twine(left() / minTensorBytes));
  return true;
}

bool GgufParser::run() {
  uint64_t tensors, entries;
  if (!readHeader(tensors, entries))
    return false;
  for (uint64_t i = 0; i < entries; ++i)
    if (!readEntry(i, entries))
      return false;
  if (!readAlignment())
    return false;
  for (uint64_t i = 0; i < tensors; ++i)
    if (!readTensor(i, tensors))
      return false;
  return placeTensors();
}

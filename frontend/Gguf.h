// The reader of GGUF files (versions 2 and 3): the only code that knows the
// container. It maps the file, checks the whole header before anything is used,
// and hands out typed views of it; nothing is copied but names.
//
// Every refusal is one line,
//   FILE: tensor 'x': found ..., rule: ...
//   FILE: key 'y': found ..., rule: ...
// with the names in it escaped, since they come from a stranger.
#ifndef KVC_FRONTEND_GGUF_H
#define KVC_FRONTEND_GGUF_H

#include "codegen/formats/Format.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/ADT/iterator.h"
#include "llvm/ADT/iterator_range.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"

#include <memory>
#include <optional>
#include <vector>

namespace kvc {

/// The types of metadata values, with the numbers the file uses.
enum class GgufType : uint32_t {
  U8 = 0,
  I8 = 1,
  U16 = 2,
  I16 = 3,
  U32 = 4,
  I32 = 5,
  F32 = 6,
  Bool = 7,
  String = 8,
  Array = 9,
  U64 = 10,
  I64 = 11,
  F64 = 12,
};

/// "u32", "string", ...
llvm::StringRef ggufTypeName(GgufType type);

/// Walks the strings of an array where they lie in the file.
class GgufStringIterator
    : public llvm::iterator_facade_base<
          GgufStringIterator, std::forward_iterator_tag, llvm::StringRef,
          std::ptrdiff_t, const llvm::StringRef *, llvm::StringRef> {
public:
  GgufStringIterator(const uint8_t *at, uint64_t left) : at(at), left(left) {}
  bool operator==(const GgufStringIterator &other) const {
    return left == other.left;
  }
  llvm::StringRef operator*() const;
  using iterator_facade_base::operator++;
  // NOLINTNEXTLINE(bugprone-derived-method-shadowing-base-method): the facade
  GgufStringIterator &operator++();

private:
  const uint8_t *at;
  uint64_t left; // strings from here to the end
};

/// A metadata array, viewed in place.
class GgufArray {
public:
  GgufType elementType() const { return type; }
  uint64_t size() const { return count; }
  bool isInteger() const;
  bool isFloat() const;

  /// Element `i` of an integer array; u64 values above the largest int64 come
  /// out as that.
  int64_t integer(uint64_t i) const;
  /// Element `i` of an f32 or f64 array.
  double number(uint64_t i) const;
  /// Element `i` of a bool array.
  bool boolean(uint64_t i) const { return payload[i] != 0; }
  /// The elements of a string array.
  llvm::iterator_range<GgufStringIterator> strings() const {
    return {GgufStringIterator(payload, count), GgufStringIterator(nullptr, 0)};
  }

private:
  friend class GgufFile;
  friend class GgufParser;
  GgufType type = GgufType::U8;
  uint64_t count = 0;
  const uint8_t *payload = nullptr;
};

/// A metadata value, viewed in place.
struct GgufValue {
  GgufType type = GgufType::U8;
  const uint8_t *payload = nullptr; // scalars and strings
  GgufArray array;                  // GgufType::Array
};

struct GgufTensor {
  llvm::StringRef name;
  llvm::SmallVector<int64_t, 4> dims; // ne order: dims[0] runs fastest
  Format format;
  uint64_t offset; // from the start of the file
  uint64_t bytes;

  /// Values a row has, and how many rows there are in all.
  int64_t columns() const { return dims.empty() ? 1 : dims[0]; }
  int64_t rows() const {
    int64_t rows = 1;
    for (size_t i = 1; i < dims.size(); ++i)
      rows *= dims[i];
    return rows;
  }
};

class GgufFile {
public:
  /// Maps the file and reads its header.
  static llvm::Expected<std::unique_ptr<GgufFile>> open(llvm::StringRef path);

  /// Reads the header of a file in memory, which the caller keeps. `name`
  /// stands for the path in messages.
  static llvm::Expected<std::unique_ptr<GgufFile>>
  parse(llvm::StringRef name, llvm::ArrayRef<uint8_t> bytes);

  llvm::StringRef path() const { return name; }
  uint64_t size() const { return bytes.size(); }
  uint32_t version() const { return fileVersion; }
  uint64_t alignment() const { return dataAlignment; }
  /// All before the tensors' data: what tells one model from another.
  llvm::ArrayRef<uint8_t> header() const {
    return bytes.take_front(dataOffset);
  }

  /// Keys in the file's order.
  llvm::ArrayRef<llvm::StringRef> keys() const { return keyOrder; }
  bool has(llvm::StringRef key) const { return values.count(key); }
  const GgufValue *find(llvm::StringRef key) const;

  // find*: nothing if the key is absent, an error if its value is of another
  // kind. get*: absence is an error too.

  /// Any integer type; a negative value is an error.
  llvm::Expected<std::optional<uint64_t>> findU64(llvm::StringRef key) const;
  llvm::Expected<uint64_t> getU64(llvm::StringRef key) const;
  /// f32 or f64.
  llvm::Expected<std::optional<double>> findF64(llvm::StringRef key) const;
  llvm::Expected<double> getF64(llvm::StringRef key) const;
  llvm::Expected<std::optional<bool>> findBool(llvm::StringRef key) const;
  llvm::Expected<bool> getBool(llvm::StringRef key) const;
  llvm::Expected<std::optional<llvm::StringRef>>
  findString(llvm::StringRef key) const;
  llvm::Expected<llvm::StringRef> getString(llvm::StringRef key) const;
  /// Arrays of integers, of f32 or f64, of strings.
  llvm::Expected<std::optional<GgufArray>>
  findIntegers(llvm::StringRef key) const;
  llvm::Expected<GgufArray> getIntegers(llvm::StringRef key) const;
  llvm::Expected<std::optional<GgufArray>>
  findNumbers(llvm::StringRef key) const;
  llvm::Expected<GgufArray> getNumbers(llvm::StringRef key) const;
  llvm::Expected<std::optional<GgufArray>>
  findStrings(llvm::StringRef key) const;
  llvm::Expected<GgufArray> getStrings(llvm::StringRef key) const;

  /// Tensors in the file's order.
  llvm::ArrayRef<GgufTensor> tensors() const { return tensorOrder; }
  const GgufTensor *findTensor(llvm::StringRef tensor) const;
  llvm::Expected<const GgufTensor *> getTensor(llvm::StringRef tensor) const;
  /// The tensor's bytes in the mapped file.
  llvm::ArrayRef<uint8_t> data(const GgufTensor &tensor) const {
    return bytes.slice(tensor.offset, tensor.bytes);
  }

  /// Refusals in the words of this file, for importers with rules of their own.
  llvm::Error keyError(llvm::StringRef key, const llvm::Twine &found,
                       const llvm::Twine &rule) const;
  llvm::Error tensorError(llvm::StringRef tensor, const llvm::Twine &found,
                          const llvm::Twine &rule) const;

private:
  friend class GgufParser;
  GgufFile() = default;
  llvm::Expected<const GgufValue *>
  findTyped(llvm::StringRef key, bool (*accepts)(const GgufValue &),
            llvm::StringRef kind) const;
  llvm::Expected<std::optional<GgufArray>>
  findArray(llvm::StringRef key, bool (*accepts)(const GgufValue &),
            llvm::StringRef kind) const;
  llvm::Error absent(llvm::StringRef key, llvm::StringRef kind) const;

  std::string name;
  llvm::sys::fs::mapped_file_region mapping;
  llvm::ArrayRef<uint8_t> bytes;
  uint32_t fileVersion = 0;
  uint64_t dataAlignment = 32;
  uint64_t dataOffset = 0;
  llvm::StringMap<GgufValue> values;
  std::vector<llvm::StringRef> keyOrder;
  std::vector<GgufTensor> tensorOrder;
  llvm::StringMap<size_t> tensorIndex;
};

/// `text` between single quotes, with everything but printable ASCII escaped
/// and a long middle left out: how messages show a stranger's name.
std::string ggufQuoted(llvm::StringRef text);

} // namespace kvc

#endif // KVC_FRONTEND_GGUF_H

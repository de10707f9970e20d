// Feeds any bytes to the GGUF reader and, where it accepts them, uses every
// accessor on what it gave: each view must lie within the bytes.
#include "frontend/Gguf.h"

#include <cstdlib>

using namespace kvc;

static uint64_t sink;

static void touch(llvm::ArrayRef<uint8_t> bytes) {
  for (uint8_t byte : bytes)
    sink += byte;
}

static void touch(llvm::StringRef text) {
  touch(llvm::ArrayRef(text.bytes_begin(), text.size()));
}

static void touchArray(const GgufArray &array) {
  if (array.elementType() == GgufType::String)
    for (llvm::StringRef text : array.strings())
      touch(text);
  for (uint64_t i = 0; i < array.size(); ++i) {
    if (array.isInteger())
      sink += static_cast<uint64_t>(array.integer(i));
    else if (array.isFloat())
      sink += array.number(i) > 0;
    else if (array.elementType() == GgufType::Bool)
      sink += array.boolean(i);
  }
}

// The value, or the message in its place; both are looked at.
template <typename Value, typename Use>
static void use(llvm::Expected<Value> value, Use &&useValue) {
  if (value)
    useValue(*value);
  else
    touch(llvm::toString(value.takeError()));
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto parsed = GgufFile::parse("fuzz", {data, size});
  if (!parsed) {
    std::string message = llvm::toString(parsed.takeError());
    // One line, about this file, with a rule.
    llvm::StringRef line(message);
    if (!line.starts_with("fuzz: ") || !line.contains(", rule: ") ||
        line.contains('\n'))
      std::abort();
    return 0;
  }
  const GgufFile &file = **parsed;
  for (llvm::StringRef key : file.keys()) {
    use(file.getU64(key), [](uint64_t value) { sink += value; });
    use(file.getF64(key), [](double value) { sink += value > 0; });
    use(file.getBool(key), [](bool value) { sink += value; });
    use(file.getString(key), [](llvm::StringRef text) { touch(text); });
    use(file.getIntegers(key), touchArray);
    use(file.getNumbers(key), touchArray);
    use(file.getStrings(key), touchArray);
  }
  touch(file.header());
  for (const GgufTensor &tensor : file.tensors()) {
    if (file.findTensor(tensor.name) != &tensor)
      std::abort();
    if (tensor.rows() * formatInfo(tensor.format).rowBytes(tensor.columns()) !=
        static_cast<int64_t>(tensor.bytes))
      std::abort();
    touch(file.data(tensor));
  }
  return 0;
}

// The walk over a GGUF header that fills a GgufFile. Only Gguf.cpp and
// GgufParser.cpp include this.
#ifndef KVC_FRONTEND_GGUFPARSER_H
#define KVC_FRONTEND_GGUFPARSER_H

#include "frontend/Gguf.h"

namespace kvc {

class GgufParser {
public:
  explicit GgufParser(GgufFile &file) : file(file) {}

  /// False after the first broken rule; `message` then has the line.
  bool run();

  std::string message;

private:
  bool fail(const llvm::Twine &found, const llvm::Twine &rule);
  uint64_t left() const { return file.bytes.size() - position; }
  const uint8_t *here() const { return file.bytes.data() + position; }
  /// Whether `count` more bytes are there for `what`.
  bool need(uint64_t count, const llvm::Twine &what);
  template <typename Number>
  bool readNumber(Number &value, const llvm::Twine &what);
  bool readString(llvm::StringRef &text, const llvm::Twine &what);
  bool readType(GgufType &type, const llvm::Twine &what);
  bool checkBools(const uint8_t *begin, uint64_t count);
  bool readArray(GgufArray &array);
  bool readValue(GgufValue &value);
  bool readEntry(uint64_t index, uint64_t count);
  bool readAlignment();
  bool readDims(GgufTensor &tensor);
  bool computeBytes(GgufTensor &tensor);
  bool readTensor(uint64_t index, uint64_t count);
  bool placeTensors();
  bool readHeader(uint64_t &tensors, uint64_t &entries);
  static std::string weightTypes();

  GgufFile &file;
  std::string subject; // what a message is about
  uint64_t position = 0;
  uint64_t nextOffset = 0; // where the next tensor's data must start
};

} // namespace kvc

#endif // KVC_FRONTEND_GGUFPARSER_H

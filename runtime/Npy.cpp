#include "runtime/Npy.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace kvc {

// The header has room for any shape, so that it can be written again in place.
static constexpr size_t HeaderBytes = 128;
static constexpr size_t PrefixBytes = 10; // magic, version, length

NpyWriter::~NpyWriter() {
  if (!File)
    return;
  std::fclose(File);
  unlink(Partial.c_str());
}

bool NpyWriter::fail(const char *what, std::string &error) {
  error = Path + ": cannot " + what + ": " + std::strerror(errno);
  return false;
}

bool NpyWriter::writeHeader() {
  std::string header("\x93NUMPY\x01\x00", 8);
  size_t length = HeaderBytes - PrefixBytes;
  header += char(length & 0xFF);
  header += char(length >> 8);
  header += "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
            std::to_string(Rows) + ", " + std::to_string(Columns) + "), }";
  header.resize(HeaderBytes - 1, ' ');
  header += '\n';
  return std::fwrite(header.data(), 1, header.size(), File) == header.size();
}

bool NpyWriter::open(std::string &error) {
  Partial = Path + ".partial-" + std::to_string(getpid());
  File = std::fopen(Partial.c_str(), "wbe");
  if (!File || !writeHeader())
    return fail("write", error);
  return true;
}

bool NpyWriter::addRow(const float *values, std::string &error) {
  if (std::fwrite(values, sizeof(float), size_t(Columns), File) !=
      size_t(Columns))
    return fail("write", error);
  ++Rows;
  return true;
}

bool NpyWriter::finish(std::string &error) {
  if (std::fseek(File, 0, SEEK_SET) != 0 || !writeHeader())
    return fail("write", error);
  std::FILE *file = File;
  File = nullptr;
  if (std::fclose(file) != 0 ||
      std::rename(Partial.c_str(), Path.c_str()) != 0) {
    fail("write", error);
    unlink(Partial.c_str());
    return false;
  }
  return true;
}

} // namespace kvc

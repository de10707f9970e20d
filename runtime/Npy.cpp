#include "runtime/Npy.h"

namespace kvc {

// The header has room for any shape, so that it can be written again in place.
static constexpr size_t HeaderBytes = 128;
static constexpr size_t PrefixBytes = 10; // magic, version, length

bool NpyWriter::writeHeader(std::string &error) {
  std::string header("\x93NUMPY\x01\x00", 8);
  size_t length = HeaderBytes - PrefixBytes;
  header += char(length & 0xFF);
  header += char(length >> 8);
  header += "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
            std::to_string(Rows) + ", " + std::to_string(Columns) + "), }";
  header.resize(HeaderBytes - 1, ' ');
  header += '\n';
  return File.write(header.data(), header.size(), error);
}

bool NpyWriter::open(std::string &error) {
  return File.open(error) && writeHeader(error);
}

bool NpyWriter::addRow(const float *values, std::string &error) {
  ++Rows;
  return File.write(values, size_t(Columns) * sizeof(float), error);
}

bool NpyWriter::finish(std::string &error) {
  return File.rewind(error) && writeHeader(error) && File.finish(error);
}

} // namespace kvc

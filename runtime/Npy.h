// A float32 matrix written row by row in numpy's format.
#ifndef KVC_RUNTIME_NPY_H
#define KVC_RUNTIME_NPY_H

#include "runtime/WholeFile.h"

#include <cstdint>
#include <string>

namespace kvc {

class NpyWriter {
public:
  NpyWriter(std::string path, int64_t columns)
      : File(std::move(path)), Columns(columns) {}

  bool open(std::string &error);
  bool addRow(const float *values, std::string &error);
  /// Writes the number of rows into the header and gives the file its name.
  bool finish(std::string &error);

private:
  bool writeHeader(std::string &error);

  WholeFile File;
  int64_t Columns;
  int64_t Rows = 0;
};

} // namespace kvc

#endif // KVC_RUNTIME_NPY_H

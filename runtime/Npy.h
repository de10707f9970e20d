// A float32 matrix written row by row in numpy's format, beside its name and
// renamed when whole.
#ifndef KVC_RUNTIME_NPY_H
#define KVC_RUNTIME_NPY_H

#include <cstdint>
#include <cstdio>
#include <string>

namespace kvc {

class NpyWriter {
public:
  NpyWriter(std::string path, int64_t columns)
      : Path(std::move(path)), Columns(columns) {}
  NpyWriter(const NpyWriter &) = delete;
  NpyWriter &operator=(const NpyWriter &) = delete;
  /// Removes what was written unless finish() succeeded.
  ~NpyWriter();

  bool open(std::string &error);
  bool addRow(const float *values, std::string &error);
  /// Writes the number of rows into the header and gives the file its name.
  bool finish(std::string &error);

private:
  bool fail(const char *what, std::string &error);
  bool writeHeader();

  std::string Path;
  std::string Partial;
  int64_t Columns;
  int64_t Rows = 0;
  std::FILE *File = nullptr;
};

} // namespace kvc

#endif // KVC_RUNTIME_NPY_H

// A file that has its name only when it is whole: written beside it, renamed at
// the end.
#ifndef KVC_RUNTIME_WHOLEFILE_H
#define KVC_RUNTIME_WHOLEFILE_H

#include <cstddef>
#include <cstdio>
#include <string>

namespace kvc {

/// Functions return false with one line that names the file.
class WholeFile {
public:
  explicit WholeFile(std::string path) : Path(std::move(path)) {}
  WholeFile(const WholeFile &) = delete;
  WholeFile &operator=(const WholeFile &) = delete;
  /// Removes what was written unless finish() succeeded.
  ~WholeFile();

  bool open(std::string &error);
  bool write(const void *data, size_t bytes, std::string &error);
  /// The next write() goes to the beginning again.
  bool rewind(std::string &error);
  bool finish(std::string &error);

private:
  bool fail(std::string &error) const;

  std::string Path;
  std::string Partial;
  std::FILE *File = nullptr;
};

} // namespace kvc

#endif // KVC_RUNTIME_WHOLEFILE_H

#include "runtime/WholeFile.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace kvc {

WholeFile::~WholeFile() {
  if (!File)
    return;
  std::fclose(File);
  unlink(Partial.c_str());
}

bool WholeFile::fail(std::string &error) const {
  error = Path + ": cannot write: " + std::strerror(errno);
  return false;
}

bool WholeFile::open(std::string &error) {
  Partial = Path + ".partial-" + std::to_string(getpid());
  File = std::fopen(Partial.c_str(), "wbe");
  return File || fail(error);
}

bool WholeFile::write(const void *data, size_t bytes, std::string &error) {
  return std::fwrite(data, 1, bytes, File) == bytes || fail(error);
}

bool WholeFile::rewind(std::string &error) {
  return std::fseek(File, 0, SEEK_SET) == 0 || fail(error);
}

bool WholeFile::finish(std::string &error) {
  std::FILE *file = File;
  File = nullptr;
  if (std::fclose(file) == 0 && std::rename(Partial.c_str(), Path.c_str()) == 0)
    return true;
  fail(error);
  unlink(Partial.c_str());
  return false;
}

} // namespace kvc

#include "runtime/Format.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace kvc {

std::string formatText(const char *pattern, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, pattern);
  int length = vsnprintf(line, sizeof(line), pattern, arguments);
  va_end(arguments);
  return std::string(line,
                     size_t(std::clamp(length, 0, int(sizeof(line)) - 1)));
}

} // namespace kvc

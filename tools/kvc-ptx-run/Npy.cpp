#include "tools/kvc-ptx-run/Npy.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

namespace kvc {

/// The text between `before` and `after` in the header's dictionary.
static bool field(const std::string &header, const std::string &before,
                  char after, std::string &text) {
  size_t start = header.find(before);
  if (start == std::string::npos)
    return false;
  start += before.size();
  size_t end = header.find(after, start);
  if (end == std::string::npos)
    return false;
  text = header.substr(start, end - start);
  return true;
}

static bool parseShape(const std::string &text, std::vector<uint64_t> &shape,
                       uint64_t &count) {
  count = 1;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == ' ' || text[i] == ',') {
      ++i;
      continue;
    }
    uint64_t value = 0;
    size_t start = i;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i)
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, uint64_t(text[i] - '0'), &value))
        return false;
    if (i == start || __builtin_mul_overflow(count, value, &count))
      return false;
    shape.push_back(value);
  }
  return true;
}

bool readNpy(const std::string &path, NpyArray &array, std::string &error) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    error = path + ": cannot read: " + std::strerror(errno);
    return false;
  }
  std::string text((std::istreambuf_iterator<char>(file)),
                   std::istreambuf_iterator<char>());
  auto wrong = [&](const std::string &what) {
    error = path + ": " + what;
    return false;
  };
  if (text.size() < 10 || text.compare(0, 6, "\x93NUMPY") != 0)
    return wrong("not a .npy file");
  bool wide = text[6] != 1;
  size_t start = wide ? 12 : 10;
  if (text.size() < start)
    return wrong("not a .npy file");
  uint64_t length = uint8_t(text[8]) | uint32_t(uint8_t(text[9])) << 8;
  if (wide)
    length |= uint32_t(uint8_t(text[10])) << 16 | uint32_t(uint8_t(text[11]))
                                                      << 24;
  if (length > text.size() - start)
    return wrong("its header is cut off");
  std::string header = text.substr(start, length);
  std::string descr, order, shape;
  if (!field(header, "'descr': '", '\'', descr) ||
      !field(header, "'fortran_order': ", ',', order) ||
      !field(header, "'shape': (", ')', shape))
    return wrong("its header names no descr, fortran_order and shape");
  if (descr.size() != 3 || (descr[0] != '<' && descr[0] != '|') ||
      std::strchr("fiu", descr[1]) == nullptr ||
      std::strchr("1248", descr[2]) == nullptr)
    return wrong("elements are '" + descr +
                 "', not little-endian f2, f4, f8, i1 to i8 or u1 to u8");
  if (order != "False")
    return wrong("is in Fortran order, not C order");
  uint64_t count = 0, bytes = 0;
  array.Shape.clear();
  if (!parseShape(shape, array.Shape, count) ||
      __builtin_mul_overflow(count, uint64_t(descr[2] - '0'), &bytes))
    return wrong("its shape is '" + shape + "'");
  if (bytes != text.size() - start - length)
    return wrong("has " + std::to_string(text.size() - start - length) +
                 " bytes of data, its shape asks for " + std::to_string(bytes));
  array.Type = descr.substr(1);
  array.Data.assign(text.begin() + int64_t(start + length), text.end());
  return true;
}

bool writeNpy(const std::string &path, const NpyArray &array,
              std::string &error) {
  std::string header("\x93NUMPY\x01\x00\x00\x00", 10);
  header += "{'descr': '" + std::string(array.Type.back() == '1' ? "|" : "<") +
            array.Type + "', 'fortran_order': False, 'shape': (";
  for (uint64_t extent : array.Shape)
    header += std::to_string(extent) + ", ";
  header += "), }";
  // numpy aligns data to 64 bytes and ends the header with a newline.
  header.resize((header.size() + 64) / 64 * 64, ' ');
  header.back() = '\n';
  size_t length = header.size() - 10;
  header[8] = char(length & 0xFF);
  header[9] = char(length >> 8);
  std::ofstream file(path, std::ios::binary);
  file.write(header.data(), std::streamsize(header.size()));
  file.write(reinterpret_cast<const char *>(array.Data.data()),
             std::streamsize(array.Data.size()));
  file.close();
  if (!file) {
    error = path + ": cannot write: " + std::strerror(errno);
    return false;
  }
  return true;
}

} // namespace kvc

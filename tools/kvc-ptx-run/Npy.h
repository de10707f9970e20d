// numpy's files, read and written whole: arrays of one numeric type in C order.
#ifndef KVC_TOOLS_KVC_PTX_RUN_NPY_H
#define KVC_TOOLS_KVC_PTX_RUN_NPY_H

#include <cstdint>
#include <string>
#include <vector>

namespace kvc {

struct NpyArray {
  std::string Type; // numpy's: "f4", "i8", "u1", ...
  std::vector<uint64_t> Shape;
  std::vector<uint8_t> Data;
};

/// False and one line in `error` for what is not such a file.
bool readNpy(const std::string &path, NpyArray &array, std::string &error);
bool writeNpy(const std::string &path, const NpyArray &array,
              std::string &error);

} // namespace kvc

#endif // KVC_TOOLS_KVC_PTX_RUN_NPY_H

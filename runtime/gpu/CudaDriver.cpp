#include "runtime/gpu/CudaDriver.h"

#include <dlfcn.h>

namespace kvc::cuda {

std::string Driver::describe(Result result) const {
  const char *name = nullptr;
  const char *text = nullptr;
  if (!ErrorName || ErrorName(result, &name) != Success || !name)
    return "CUDA error " + std::to_string(result);
  std::string line = name;
  if (ErrorText && ErrorText(result, &text) == Success && text)
    line += std::string(" (") + text + ")";
  return line;
}

bool Driver::open(std::string &error) {
  // Stays open to the end: the driver has threads of its own.
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    error = "--device=cuda: found no CUDA driver (libcuda.so.1), a machine "
            "with an NVIDIA GPU and its driver is needed; --device=sim runs "
            "without";
    return false;
  }
  const char *missing = nullptr;
  auto find = [&](auto &member, const char *symbol) {
    void *address = dlsym(library, symbol);
    if (!address && !missing)
      missing = symbol;
    member =
        reinterpret_cast<std::remove_reference_t<decltype(member)>>(address);
  };
#define KVC_CUDA_FIND(member, symbol, parameters) find(member, symbol);
  KVC_CUDA_FUNCTIONS(KVC_CUDA_FIND)
#undef KVC_CUDA_FIND
  if (missing) {
    error = std::string("--device=cuda: the CUDA driver has no ") + missing +
            ", one of CUDA 12.0 or newer is needed";
    return false;
  }
  Result result = Init(0);
  int count = 0;
  if (result == Success)
    result = DeviceCount(&count);
  if (result == NoDevice || (result == Success && count == 0)) {
    error = "--device=cuda: the CUDA driver finds no GPU on this machine; "
            "--device=sim runs without";
    return false;
  }
  if (result == Success)
    return true;
  error = "--device=cuda: the CUDA driver does not start: " + describe(result);
  return false;
}

} // namespace kvc::cuda

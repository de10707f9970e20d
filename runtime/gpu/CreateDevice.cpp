// The one function that a program names of this library: what does not name it
// links nothing of it.
#include "runtime/gpu/GpuDevice.h"
#include "runtime/gpu/GpuLaunches.h"

using namespace kvc;

void *kvc_create_gpu_device(const KvcDeviceCode *code, const void *options,
                            void *error) {
  const GpuOptions &choices = *static_cast<const GpuOptions *>(options);
  std::string &message = *static_cast<std::string *>(error);
  if (!checkLaunches(*code, message))
    return nullptr;
  std::unique_ptr<GpuBackend> backend =
      choices.Simulate ? createSimBackend(*code, choices, message)
                       : createCudaBackend(*code, choices, message);
  if (!backend)
    return nullptr;
  // A Device is what the caller takes it for.
  Device *device = new GpuDevice(*code, std::move(backend), choices);
  return device;
}

// A libcuda.so.1 without a GPU: device memory is the host's, streams run at
// once, graphs are lists of what was captured, kernels are the fake program's.
// FAKE_CUDA in the environment makes it fail in the ways that drivers do.
#include "FakeGpu.h"
#include "runtime/gpu/CudaDriver.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <sys/mman.h>

using namespace kvc;
using namespace kvc::cuda;

namespace kvc::cuda {
struct FunctionObject {
  std::string Name;
  int SharedBytes = 48 << 10;
};
struct GraphObject {
  std::vector<std::function<Result()>> Work;
};
struct GraphExecObject {
  std::vector<std::function<Result()>> Work;
};
} // namespace kvc::cuda

static constexpr Result InvalidValue = 1;
static constexpr Result OutOfMemory = 2;
static constexpr Result InvalidImage = 200;
static constexpr Result NotFound = 500;
static constexpr Result IllegalAddress = 700;

static GraphObject *Capturing = nullptr;
static Result Fault = Success; // reported by the next synchronisation
// What goes with the context.
static std::vector<std::unique_ptr<uint8_t[]>> Memory;
static std::vector<std::unique_ptr<FunctionObject>> Functions;
static std::set<GraphExec> Graphs;
static int GraphsMade = 0;
static int GraphLaunches = 0;
static Address MappedFrom = 0;

static bool fails(const char *way) {
  const char *ways = std::getenv("FAKE_CUDA");
  return ways && std::strstr(ways, way);
}

/// Now, or when the graph that is being captured runs.
static Result enqueue(std::function<Result()> work) {
  if (!Capturing)
    return work();
  Capturing->Work.push_back(std::move(work));
  return Success;
}

// Names are the driver's; its addresses are the host's.
// NOLINTBEGIN(readability-identifier-naming,performance-no-int-to-ptr)
extern "C" {

// For tests: what has been done with graphs so far.
int fakeCudaGraphsMade() { return GraphsMade; }
int fakeCudaGraphLaunches() { return GraphLaunches; }

Result cuInit(unsigned) { return fails("no-gpu") ? NoDevice : Success; }
Result cuDriverGetVersion(int *version) {
  *version = 12080;
  return Success;
}
Result cuGetErrorName(Result result, const char **name) {
  *name = result == IllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : result == OutOfMemory  ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == NotFound     ? "CUDA_ERROR_NOT_FOUND"
          : result == InvalidImage ? "CUDA_ERROR_INVALID_PTX"
                                   : "CUDA_ERROR_INVALID_VALUE";
  return Success;
}
Result cuGetErrorString(Result, const char **text) {
  *text = "as asked for";
  return Success;
}
Result cuDeviceGetCount(int *count) {
  *count = 1;
  return Success;
}
Result cuDeviceGet(DeviceNumber *device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? Success : InvalidValue;
}
Result cuDeviceGetName(char *name, int bytes, DeviceNumber) {
  snprintf(name, size_t(bytes), "Fake GPU");
  return Success;
}
Result cuDeviceGetAttribute(int *value, DeviceAttribute which, DeviceNumber) {
  switch (which) {
  case CapabilityMajor:
    *value = fails("old") ? 7 : 9;
    return Success;
  case CapabilityMinor:
    *value = fails("old") ? 5 : 0;
    return Success;
  case Multiprocessors:
    *value = 3;
    return Success;
  case SharedBytesOptIn:
    *value = fails("little-shared") ? 50000 : 232448;
    return Success;
  case VirtualMemory:
    *value = !fails("no-vmm");
    return Success;
  }
  return InvalidValue;
}
Result cuDevicePrimaryCtxRetain(Context *, DeviceNumber) { return Success; }
Result cuDevicePrimaryCtxRelease_v2(DeviceNumber) {
  for (GraphExec graph : Graphs)
    delete graph;
  Graphs.clear();
  Functions.clear();
  Memory.clear();
  return Success;
}
Result cuCtxSetCurrent(Context) { return Success; }
Result cuMemGetInfo_v2(size_t *free, size_t *total) {
  *free = *total = fails("little-memory") ? 1000 : size_t(1) << 30;
  return Success;
}
Result cuModuleLoadDataEx(Module *, const void *image, unsigned count,
                          JitOption *options, void **values) {
  if (!fails("bad-ptx"))
    return std::memcmp(image, "//", 2) == 0 ? Success : InvalidImage;
  for (unsigned i = 0; i != count; ++i)
    if (options[i] == ErrorLog)
      strcpy(static_cast<char *>(values[i]), "line 7;\nunknown opcode");
  return InvalidImage;
}
Result cuModuleGetFunction(Function *function, Module, const char *name) {
  static const std::set<std::string> kernels = {"append", "attention", "head",
                                                "head_wide", "choose"};
  if (kernels.count(name) == 0 || (fails("no-kernel") && name[0] == 'h'))
    return NotFound;
  Functions.emplace_back(new FunctionObject{name});
  *function = Functions.back().get();
  return Success;
}
Result cuFuncGetAttribute(int *value, int, Function) {
  *value = fails("few-threads") ? 32 : 1024;
  return Success;
}
Result cuFuncSetAttribute(Function function, int attribute, int value) {
  if (attribute != FunctionDynamicSharedBytes)
    return InvalidValue;
  function->SharedBytes = value;
  return Success;
}
Result cuMemAlloc_v2(Address *address, size_t bytes) {
  if (fails("no-memory") && bytes >= 4096)
    return OutOfMemory;
  Memory.emplace_back(new uint8_t[bytes]);
  *address = reinterpret_cast<Address>(Memory.back().get());
  return Success;
}
Result cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  Memory.emplace_back(new uint8_t[bytes]);
  *memory = Memory.back().get();
  return Success;
}
Result cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes,
                            Stream) {
  return enqueue([=] {
    std::memcpy(reinterpret_cast<void *>(to), from, bytes);
    return Success;
  });
}
Result cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, Stream) {
  return enqueue([=] {
    std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
    return Success;
  });
}
Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Stream) {
  std::memcpy(reinterpret_cast<void *>(to),
              reinterpret_cast<const void *>(from), bytes);
  return Success;
}
Result cuMemsetD8Async(Address at, unsigned char value, size_t bytes, Stream) {
  std::memset(reinterpret_cast<void *>(at), value, bytes);
  return Success;
}
Result cuMemGetAllocationGranularity(size_t *bytes,
                                     const AllocationProperties *, int) {
  *bytes = 4096;
  return Success;
}
Result cuMemAddressReserve(Address *address, size_t bytes, size_t, Address,
                           unsigned long long) {
  void *memory = mmap(nullptr, bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  *address = MappedFrom = reinterpret_cast<Address>(memory);
  return memory == MAP_FAILED ? OutOfMemory : Success;
}
Result cuMemCreate(AllocationHandle *handle, size_t bytes,
                   const AllocationProperties *properties, unsigned long long) {
  *handle = bytes;
  return properties->Type == 1 && bytes % 4096 == 0 ? Success : InvalidValue;
}
// Mapped memory follows what is mapped already, whole handles at a time.
Result cuMemMap(Address at, size_t bytes, size_t, AllocationHandle handle,
                unsigned long long) {
  if (at != MappedFrom || bytes != handle)
    return InvalidValue;
  MappedFrom += bytes;
  return Success;
}
Result cuMemSetAccess(Address at, size_t bytes, const AccessDescription *access,
                      size_t count) {
  if (count != 1 || access->Flags != 3)
    return InvalidValue;
  return mprotect(reinterpret_cast<void *>(at), bytes,
                  PROT_READ | PROT_WRITE) == 0
             ? Success
             : InvalidValue;
}
Result cuStreamCreate(Stream *, unsigned) { return Success; }
Result cuStreamSynchronize(Stream) {
  if (Capturing)
    return InvalidValue;
  Result fault = Fault;
  Fault = Success;
  return fault;
}
Result cuStreamBeginCapture_v2(Stream, int) {
  Capturing = new GraphObject;
  return Success;
}
Result cuStreamEndCapture(Stream, Graph *graph) {
  *graph = Capturing;
  Capturing = nullptr;
  return Success;
}
Result cuGraphInstantiateWithFlags(GraphExec *exec, Graph graph,
                                   unsigned long long) {
  ++GraphsMade;
  *exec = new GraphExecObject{graph->Work};
  Graphs.insert(*exec);
  return Success;
}
Result cuGraphLaunch(GraphExec exec, Stream) {
  ++GraphLaunches;
  for (const std::function<Result()> &work : exec->Work)
    if (Result result = work())
      return result;
  return Success;
}
Result cuGraphDestroy(Graph graph) {
  delete graph;
  return Success;
}
Result cuGraphExecDestroy(GraphExec exec) {
  Graphs.erase(exec);
  delete exec;
  return Success;
}
Result cuEventCreate(Event *event, unsigned) {
  *event = nullptr;
  return Success;
}
Result cuEventRecord(Event, Stream) { return Success; }
Result cuEventElapsedTime(float *milliseconds, Event, Event) {
  *milliseconds = 0.5f;
  return Success;
}

Result cuLaunchKernelEx(const LaunchConfig *config, Function function,
                        void **values, void **) {
  if (config->SharedBytes > unsigned(function->SharedBytes))
    return InvalidValue;
  for (unsigned i = 0; i != config->AttributeCount; ++i)
    if (config->Attributes[i].Id != 6 ||
        config->Attributes[i].Value.Allowed != 1)
      return InvalidValue;
  GpuParameters parameters;
  for (int i = 0; i != GpuParameterCount; ++i)
    std::memcpy(reinterpret_cast<uint8_t *>(&parameters) + i * 8, values[i],
                i + 1 == GpuParameterCount ? 4 : 8);
  LaunchConfig shape = *config;
  std::string name = function->Name;
  return enqueue([=]() -> Result {
    if (fails("fault") && name == "attention") {
      Fault = IllegalAddress;
      return Success;
    }
    uint32_t block[3];
    for (block[2] = 0; block[2] != shape.Grid[2]; ++block[2])
      for (block[1] = 0; block[1] != shape.Grid[1]; ++block[1])
        for (block[0] = 0; block[0] != shape.Grid[0]; ++block[0])
          if (!fake::runBlock(name, parameters, block, shape.Grid))
            return NotFound;
    return Success;
  });
}

} // extern "C"
// NOLINTEND(readability-identifier-naming,performance-no-int-to-ptr)

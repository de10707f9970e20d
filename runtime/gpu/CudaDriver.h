// The part of the CUDA driver's API that programs use, declared here and looked
// up at run time, so that neither building nor starting needs NVIDIA's files.
#ifndef KVC_RUNTIME_GPU_CUDADRIVER_H
#define KVC_RUNTIME_GPU_CUDADRIVER_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace kvc::cuda {

using Result = int;
constexpr Result Success = 0;
constexpr Result NoDevice = 100;

using DeviceNumber = int;
using Address = unsigned long long;
using Context = struct ContextObject *;
using Module = struct ModuleObject *;
using Function = struct FunctionObject *;
using Stream = struct StreamObject *;
using Event = struct EventObject *;
using Graph = struct GraphObject *;
using GraphExec = struct GraphExecObject *;
using AllocationHandle = unsigned long long;

enum DeviceAttribute : int {
  Multiprocessors = 16,
  CapabilityMajor = 75,
  CapabilityMinor = 76,
  SharedBytesOptIn = 97,
  VirtualMemory = 102
};

enum JitOption : int {
  InfoLog = 3,
  InfoLogBytes = 4,
  ErrorLog = 5,
  ErrorLogBytes = 6
};

constexpr int FunctionMaxThreads = 0;
constexpr int FunctionDynamicSharedBytes = 8;
constexpr int CaptureThreadLocal = 1;
constexpr unsigned StreamNonBlocking = 1;

struct MemoryLocation {
  int Type = 1; // a device
  int Number = 0;
};

struct AllocationProperties {
  int Type = 1; // pinned
  int HandleTypes = 0;
  MemoryLocation Location;
  void *Metadata = nullptr;
  unsigned char Flags[8] = {};
};
static_assert(sizeof(AllocationProperties) == 32, "CUmemAllocationProp");

struct AccessDescription {
  MemoryLocation Location;
  int Flags = 3; // reads and writes
};
static_assert(sizeof(AccessDescription) == 12, "CUmemAccessDesc");

struct LaunchAttribute {
  int Id = 6; // programmatic stream serialization
  int Padding = 0;
  union {
    char Bytes[64];
    int Allowed;
  } Value = {};
};
static_assert(sizeof(LaunchAttribute) == 72, "CUlaunchAttribute");

struct LaunchConfig {
  unsigned Grid[3] = {1, 1, 1};
  unsigned Block[3] = {1, 1, 1};
  unsigned SharedBytes = 0;
  Stream On = nullptr;
  LaunchAttribute *Attributes = nullptr;
  unsigned AttributeCount = 0;
};
static_assert(sizeof(LaunchConfig) == 56, "CUlaunchConfig");

// name here, name in the library, parameters
#define KVC_CUDA_FUNCTIONS(X)                                                  \
  X(Init, "cuInit", (unsigned flags))                                          \
  X(DriverVersion, "cuDriverGetVersion", (int *version))                       \
  X(ErrorName, "cuGetErrorName", (Result, const char **name))                  \
  X(ErrorText, "cuGetErrorString", (Result, const char **text))                \
  X(DeviceCount, "cuDeviceGetCount", (int *count))                             \
  X(GetDevice, "cuDeviceGet", (DeviceNumber *, int ordinal))                   \
  X(DeviceName, "cuDeviceGetName", (char *name, int bytes, DeviceNumber))      \
  X(GetAttribute, "cuDeviceGetAttribute",                                      \
    (int *value, DeviceAttribute, DeviceNumber))                               \
  X(RetainContext, "cuDevicePrimaryCtxRetain", (Context *, DeviceNumber))      \
  X(ReleaseContext, "cuDevicePrimaryCtxRelease_v2", (DeviceNumber))            \
  X(SetContext, "cuCtxSetCurrent", (Context))                                  \
  X(MemoryInfo, "cuMemGetInfo_v2", (size_t *free, size_t *total))              \
  X(LoadModule, "cuModuleLoadDataEx",                                          \
    (Module *, const void *image, unsigned count, JitOption *, void **values)) \
  X(GetFunction, "cuModuleGetFunction",                                        \
    (Function *, Module, const char *name))                                    \
  X(GetFunctionAttribute, "cuFuncGetAttribute",                                \
    (int *value, int attribute, Function))                                     \
  X(SetFunctionAttribute, "cuFuncSetAttribute",                                \
    (Function, int attribute, int value))                                      \
  X(Allocate, "cuMemAlloc_v2", (Address *, size_t bytes))                      \
  X(AllocateHost, "cuMemHostAlloc", (void **, size_t bytes, unsigned flags))   \
  X(CopyIn, "cuMemcpyHtoDAsync_v2",                                            \
    (Address, const void *, size_t bytes, Stream))                             \
  X(CopyOut, "cuMemcpyDtoHAsync_v2", (void *, Address, size_t bytes, Stream))  \
  X(CopyWithin, "cuMemcpyDtoDAsync_v2",                                        \
    (Address to, Address from, size_t bytes, Stream))                          \
  X(Fill, "cuMemsetD8Async",                                                   \
    (Address, unsigned char value, size_t bytes, Stream))                      \
  X(Granularity, "cuMemGetAllocationGranularity",                              \
    (size_t *bytes, const AllocationProperties *, int option))                 \
  X(ReserveAddresses, "cuMemAddressReserve",                                   \
    (Address *, size_t bytes, size_t alignment, Address hint,                  \
     unsigned long long flags))                                                \
  X(CreateAllocation, "cuMemCreate",                                           \
    (AllocationHandle *, size_t bytes, const AllocationProperties *,           \
     unsigned long long flags))                                                \
  X(Map, "cuMemMap",                                                           \
    (Address, size_t bytes, size_t offset, AllocationHandle,                   \
     unsigned long long flags))                                                \
  X(SetAccess, "cuMemSetAccess",                                               \
    (Address, size_t bytes, const AccessDescription *, size_t count))          \
  X(CreateStream, "cuStreamCreate", (Stream *, unsigned flags))                \
  X(Synchronize, "cuStreamSynchronize", (Stream))                              \
  X(BeginCapture, "cuStreamBeginCapture_v2", (Stream, int mode))               \
  X(EndCapture, "cuStreamEndCapture", (Stream, Graph *))                       \
  X(Instantiate, "cuGraphInstantiateWithFlags",                                \
    (GraphExec *, Graph, unsigned long long flags))                            \
  X(LaunchGraph, "cuGraphLaunch", (GraphExec, Stream))                         \
  X(DestroyGraph, "cuGraphDestroy", (Graph))                                   \
  X(DestroyGraphExec, "cuGraphExecDestroy", (GraphExec))                       \
  X(CreateEvent, "cuEventCreate", (Event *, unsigned flags))                   \
  X(RecordEvent, "cuEventRecord", (Event, Stream))                             \
  X(ElapsedTime, "cuEventElapsedTime", (float *milliseconds, Event, Event))    \
  X(Launch, "cuLaunchKernelEx",                                                \
    (const LaunchConfig *, Function, void **parameters, void **extra))

struct Driver {
// NOLINTBEGIN(bugprone-macro-parentheses): a declaration's parts take none
#define KVC_CUDA_MEMBER(member, symbol, parameters)                            \
  Result(*member) parameters = nullptr;
  KVC_CUDA_FUNCTIONS(KVC_CUDA_MEMBER)
#undef KVC_CUDA_MEMBER
  // NOLINTEND(bugprone-macro-parentheses)

  /// Finds the driver and starts it. False with one line where there is none,
  /// it is too old, or it finds no GPU.
  bool open(std::string &error);
  /// "CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)"
  std::string describe(Result result) const;
};

} // namespace kvc::cuda

#endif // KVC_RUNTIME_GPU_CUDADRIVER_H

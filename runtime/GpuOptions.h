// What a program's command line says to the devices for GPUs.
#ifndef KVC_RUNTIME_GPUOPTIONS_H
#define KVC_RUNTIME_GPUOPTIONS_H

#include <cstdint>
#include <string>

namespace kvc {

struct GpuOptions {
  bool Simulate = false;  // the PTX interpreter instead of a GPU
  int Gpu = 0;            // number of the GPU
  bool Poison = false;    // fill memory with 0xFF before a program writes it
  bool Profile = false;   // time every kernel
  bool StepTimes = false; // keep the time of every step
  bool Synchronise =
      false; // wait after each launch, so that a fault has a name

  // The interpreter's.
  int Threads = 0;       // 0: one for each physical core
  uint64_t SimSeed = 0;  // order of the blocks; 0: ascending
  bool SimChecks = true; // races, uninitialised reads, asynchronous copies
  bool SimMeter = false; // count instructions, bytes, conflicts
  std::string PtxFile;   // runs this text instead of the program's
};

} // namespace kvc

#endif // KVC_RUNTIME_GPUOPTIONS_H

// A PTX interpreter: parses PTX text, decodes it once and executes it warp by
// warp on the host's cores, checking more than a GPU does and counting what the
// kernels move. No driver, toolkit or GPU is needed.
#ifndef KVC_RUNTIME_SIM_SIM_H
#define KVC_RUNTIME_SIM_SIM_H

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kvc::sim {

struct Dim3 {
  uint32_t X = 1, Y = 1, Z = 1;
  uint64_t count() const { return uint64_t(X) * Y * Z; }
};

/// One kernel parameter and where it lies in the parameter block.
struct Parameter {
  std::string Name;
  uint32_t Offset = 0;
  uint32_t Bytes = 0;
  uint32_t Align = 1;
};

/// What the text of a kernel says about it.
struct KernelInfo {
  std::string Name;
  std::vector<Parameter> Parameters;
  uint32_t ParameterBytes = 0;
  Dim3 Required;             // .reqntid; X is 0 where there is none
  uint32_t MaxThreads = 0;   // .maxntid's product; 0 where there is none
  uint32_t StaticShared = 0; // bytes; dynamic shared memory follows them
  uint32_t Local = 0;        // bytes of local memory a thread
  uint32_t Registers = 0;    // declared and used virtual registers
  uint32_t Instructions = 0;
};

struct Program;

/// The decoded kernels of one PTX text. Immutable and shared by launches.
class Module {
public:
  /// Null and one line in `error` for text that is not wholly understood.
  static std::unique_ptr<Module> parse(std::string_view text,
                                       std::string &error);
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;
  ~Module();

  std::vector<const KernelInfo *> kernels() const;
  const KernelInfo *find(std::string_view kernel) const;
  /// The .target of the text, such as "sm_90".
  const std::string &target() const;
  const Program &program() const { return *Code; }

private:
  Module();
  std::unique_ptr<Program> Code;
};

struct LaunchConfig {
  Dim3 Grid;
  Dim3 Block;
  uint32_t DynamicShared = 0;
};

struct LaunchOptions {
  uint64_t Seed = 0; // order of the CTAs; 0: ascending
  /// Races, uninitialised reads, asynchronous copies, fences between CTAs and
  /// griddepcontrol order.
  /// Bounds, alignment, divergence and deadlock are always checked.
  bool Checks = true;
  /// Launched while the kernel before it may still be running: each CTA has to
  /// wait for it by griddepcontrol.wait, and touches read-only memory alone
  /// until it has.
  bool Dependent = false;
  /// Warp instructions of one CTA after which it is taken for an endless loop.
  uint64_t InstructionLimit = uint64_t(1) << 30;
};

/// What one kernel did, over all of its launches.
struct Meter {
  uint64_t Launches = 0;
  uint64_t Ctas = 0;
  uint64_t WarpInstructions = 0;
  uint64_t LoadBytes = 0; // global bytes the lanes asked for
  uint64_t StoreBytes = 0;
  uint64_t LoadSectors = 0; // 32-byte sectors, coalesced within a request
  uint64_t StoreSectors = 0;
  /// Sectors touched at least once, launch by launch.
  uint64_t DistinctLoadSectors = 0;
  uint64_t DistinctStoreSectors = 0;
  uint64_t Loads = 0;    // warp requests to global memory, cp.async too
  uint64_t Loads128 = 0; // those of 16 bytes a lane
  uint64_t Stores = 0;
  uint64_t SharedRequests = 0;
  uint64_t SharedConflicts = 0; // wavefronts beyond the fewest possible
  uint64_t Mma = 0;
  uint64_t Barriers = 0;
  uint64_t Atomics = 0;
  uint64_t Nanoseconds = 0;                 // of the host, from launch to end
  std::map<std::string, uint64_t> ByOpcode; // warp instructions
  std::map<std::string, uint64_t> SectorsByAllocation; // loaded
  std::map<std::string, uint64_t> DistinctLoads;       // sectors, by allocation
  std::map<std::string, uint64_t> DistinctStores;
  std::map<uint32_t, uint64_t> ByLine; // of the text: warp instructions

  void add(const Meter &other);
};

/// The device: its memory, and the host threads that run CTAs.
class Machine {
public:
  explicit Machine(int threads = 0); // 0: one a core
  Machine(const Machine &) = delete;
  Machine &operator=(const Machine &) = delete;
  ~Machine();

  /// The address of fresh, uninitialised memory: a multiple of 512, with
  /// unmapped gaps around it. 0 if the host has no memory. Kernels may not
  /// write read-only allocations, and may read them before griddepcontrol.wait.
  uint64_t allocate(const std::string &name, uint64_t bytes,
                    bool readOnly = false);
  /// The same for memory of the host's that outlives the allocation; it counts
  /// as initialised and is never written: weights need no copy.
  uint64_t adopt(const std::string &name, const void *data, uint64_t bytes);
  bool free(uint64_t address);
  /// False where the range is not wholly inside one allocation.
  bool write(uint64_t address, const void *data, uint64_t bytes);
  bool read(uint64_t address, void *data, uint64_t bytes) const;
  bool fill(uint64_t address, uint8_t value, uint64_t bytes);
  /// Forgets that the range was ever written.
  bool poison(uint64_t address, uint64_t bytes);
  /// Whether every byte of the range has been written.
  bool initialised(uint64_t address, uint64_t bytes) const;

  /// The address of a .global or .const variable of the module (which is loaded
  /// if it was not), or 0.
  uint64_t variable(const Module &module, const std::string &name);

  /// Runs one kernel to its end. False and one line in `error`: kernel, PTX
  /// line and text, CTA, thread, what was found and the rule.
  bool launch(const Module &module, std::string_view kernel,
              const LaunchConfig &config, const void *parameters,
              uint64_t parameterBytes, const LaunchOptions &options,
              std::string &error);

  /// By kernel name.
  const std::map<std::string, Meter> &meters() const;
  void resetMeters();
  int threads() const;

private:
  struct State;
  std::unique_ptr<State> Self;
};

} // namespace kvc::sim

#endif // KVC_RUNTIME_SIM_SIM_H

#include "runtime/sim/Exec.h"
#include "runtime/sim/Parser.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <random>
#include <thread>

namespace kvc::sim {

Module::Module() : Code(std::make_unique<Program>()) {}
Module::~Module() = default;

std::unique_ptr<Module> Module::parse(std::string_view text,
                                      std::string &error) {
  static std::atomic<uint64_t> ids{0};
  std::unique_ptr<Module> module(new Module());
  if (!parseProgram(text, *module->Code, error))
    return nullptr;
  module->Code->Id = ++ids;
  return module;
}

std::vector<const KernelInfo *> Module::kernels() const {
  std::vector<const KernelInfo *> infos;
  for (const Kernel &kernel : Code->Kernels)
    infos.push_back(&kernel.Info);
  return infos;
}

const KernelInfo *Module::find(std::string_view kernel) const {
  auto it = Code->KernelIndex.find(kernel);
  return it == Code->KernelIndex.end() ? nullptr
                                       : &Code->Kernels[it->second].Info;
}

const std::string &Module::target() const { return Code->Target; }

void Meter::add(const Meter &other) {
  Launches += other.Launches;
  Ctas += other.Ctas;
  WarpInstructions += other.WarpInstructions;
  LoadBytes += other.LoadBytes;
  StoreBytes += other.StoreBytes;
  LoadSectors += other.LoadSectors;
  StoreSectors += other.StoreSectors;
  DistinctLoadSectors += other.DistinctLoadSectors;
  DistinctStoreSectors += other.DistinctStoreSectors;
  Loads += other.Loads;
  Loads128 += other.Loads128;
  Stores += other.Stores;
  SharedRequests += other.SharedRequests;
  SharedConflicts += other.SharedConflicts;
  Mma += other.Mma;
  Barriers += other.Barriers;
  Atomics += other.Atomics;
  Nanoseconds += other.Nanoseconds;
  for (const auto &[name, count] : other.ByOpcode)
    ByOpcode[name] += count;
  for (const auto &[line, count] : other.ByLine)
    ByLine[line] += count;
  for (const auto &[name, count] : other.SectorsByAllocation)
    SectorsByAllocation[name] += count;
  for (const auto &[name, count] : other.DistinctLoads)
    DistinctLoads[name] += count;
  for (const auto &[name, count] : other.DistinctStores)
    DistinctStores[name] += count;
}

namespace {

/// Threads that wait for work; thread 0 is the caller's.
class Pool {
public:
  explicit Pool(unsigned threads) : Size(threads) {
    for (unsigned i = 1; i < threads; ++i)
      Threads.emplace_back([this, i] { main(i); });
  }
  ~Pool() {
    {
      std::lock_guard<std::mutex> hold(Lock);
      Stopping = true;
    }
    Wake.notify_all();
    for (std::thread &thread : Threads)
      thread.join();
  }

  unsigned size() const { return Size; }

  /// Calls work(0 .. count-1), each on a thread of its own.
  void run(unsigned count, const std::function<void(unsigned)> &work) {
    {
      std::lock_guard<std::mutex> hold(Lock);
      Work = &work;
      Count = count;
      Running = count - 1;
      ++Turn;
    }
    Wake.notify_all();
    work(0);
    std::unique_lock<std::mutex> hold(Lock);
    Done.wait(hold, [&] { return Running == 0; });
  }

private:
  void main(unsigned index) {
    uint64_t seen = 0;
    std::unique_lock<std::mutex> hold(Lock);
    while (true) {
      Wake.wait(hold, [&] { return Stopping || Turn != seen; });
      if (Stopping)
        return;
      seen = Turn;
      if (index >= Count)
        continue;
      const auto &work = *Work;
      hold.unlock();
      work(index);
      hold.lock();
      if (--Running == 0)
        Done.notify_one();
    }
  }

  unsigned Size;
  std::vector<std::thread> Threads;
  std::mutex Lock;
  std::condition_variable Wake, Done;
  const std::function<void(unsigned)> *Work = nullptr;
  unsigned Count = 0, Running = 0;
  uint64_t Turn = 0;
  bool Stopping = false;
};

/// What one host thread keeps from launch to launch.
struct Worker {
  Counters Count;
  std::vector<std::unique_ptr<Cta>> Ctas;
};

} // namespace

/// How often a kernel's instructions were executed: launches only add numbers,
/// names come in when somebody asks.
namespace {

struct Tally {
  uint64_t Text = 0; // Program::Id
  std::vector<std::string> Opcodes;
  std::vector<uint32_t> Lines;
  std::vector<uint64_t> Executed;

  void start(const Program &program, const Kernel &kernel) {
    Text = program.Id;
    Opcodes.clear();
    Lines.clear();
    for (const Inst &inst : kernel.Code) {
      Opcodes.push_back(program.Opcodes[inst.Opcode]);
      Lines.push_back(inst.Line);
    }
    Executed.assign(kernel.Code.size(), 0);
  }

  void settle(Meter &meter) {
    for (size_t i = 0; i != Executed.size(); ++i) {
      if (Executed[i] == 0)
        continue;
      meter.ByOpcode[Opcodes[i]] += Executed[i];
      meter.ByLine[Lines[i]] += Executed[i];
      Executed[i] = 0;
    }
  }
};

} // namespace

struct Machine::State {
  explicit State(unsigned threads) : Host(threads), Workers(threads) {}

  bool load(const Program &program, std::string &error);
  bool check(const Kernel &kernel, const LaunchConfig &config,
             uint64_t parameterBytes, std::string &error) const;
  bool resolve(Launch &launch, std::string &error);
  void work(Launch &launch, Worker &worker, const std::vector<uint32_t> &order,
            std::atomic<size_t> &next);

  AddressSpace Memory;
  Pool Host;
  std::vector<Worker> Workers;
  std::map<std::string, Meter> Meters;
  uint32_t Epoch = 0;
  std::map<std::string, Tally> Tallies; // by kernel, as Meters
  /// Addresses of variables, by Program::Id.
  std::map<uint64_t, std::vector<uint64_t>> Loaded;
};

Machine::Machine(int threads)
    : Self(std::make_unique<State>(
          threads > 0 ? unsigned(threads)
                      : std::max(1u, std::thread::hardware_concurrency()))) {}
Machine::~Machine() = default;

uint64_t Machine::allocate(const std::string &name, uint64_t bytes,
                           bool readOnly) {
  Allocation *allocation = Self->Memory.allocate(name, bytes, readOnly);
  return allocation ? allocation->Base : 0;
}
uint64_t Machine::adopt(const std::string &name, const void *data,
                        uint64_t bytes) {
  Allocation *allocation = Self->Memory.adopt(name, data, bytes);
  return allocation ? allocation->Base : 0;
}
bool Machine::free(uint64_t address) { return Self->Memory.free(address); }
bool Machine::write(uint64_t address, const void *data, uint64_t bytes) {
  return Self->Memory.write(address, data, bytes);
}
bool Machine::read(uint64_t address, void *data, uint64_t bytes) const {
  return Self->Memory.read(address, data, bytes);
}
bool Machine::fill(uint64_t address, uint8_t value, uint64_t bytes) {
  return Self->Memory.fill(address, value, bytes);
}
bool Machine::poison(uint64_t address, uint64_t bytes) {
  return Self->Memory.poison(address, bytes);
}
bool Machine::initialised(uint64_t address, uint64_t bytes) const {
  return Self->Memory.initialised(address, bytes);
}
const std::map<std::string, Meter> &Machine::meters() const {
  for (auto &[name, tally] : Self->Tallies)
    tally.settle(Self->Meters[name]);
  return Self->Meters;
}
void Machine::resetMeters() {
  Self->Meters.clear();
  Self->Tallies.clear();
}
int Machine::threads() const { return int(Self->Host.size()); }

uint64_t Machine::variable(const Module &module, const std::string &name) {
  const Program &program = module.program();
  std::string error;
  auto it = program.GlobalIndex.find(name);
  if (it == program.GlobalIndex.end() || !Self->load(program, error))
    return 0;
  return Self->Loaded[program.Id][it->second];
}

/// Allocates and initialises the module's .global and .const variables.
bool Machine::State::load(const Program &program, std::string &error) {
  if (Loaded.count(program.Id))
    return true;
  std::vector<uint64_t> addresses(program.Variables.size(), 0);
  for (size_t i = 0; i != addresses.size(); ++i) {
    const Variable &variable = program.Variables[i];
    bool constant = variable.Where == Space::Const;
    if (variable.Where != Space::Global && !constant)
      continue;
    Allocation *allocation =
        Memory.allocate(variable.Name, variable.Bytes, constant, constant);
    if (!allocation) {
      error = "variable '" + variable.Name + "': no memory for its " +
              std::to_string(variable.Bytes) + " bytes";
      return false;
    }
    addresses[i] = allocation->Base;
    // PTX: variables without an initialiser are zero.
    Memory.fill(allocation->Base, 0, variable.Bytes);
    if (variable.Initialised)
      Memory.write(allocation->Base, variable.Initial.data(), variable.Bytes);
  }
  for (size_t i = 0; i != addresses.size(); ++i)
    for (const Variable::Address &entry : program.Variables[i].Addresses) {
      auto it = program.GlobalIndex.find(entry.Symbol);
      uint64_t value =
          it == program.GlobalIndex.end() ? 0 : addresses[it->second];
      if (!value) {
        error = "variable '" + program.Variables[i].Name +
                "': no .global or .const variable is called '" + entry.Symbol +
                "'";
        return false;
      }
      value += uint64_t(entry.Addend);
      if (!entry.Generic && program.Variables[it->second].Where == Space::Const)
        value -= ConstWindow;
      Memory.write(addresses[i] + entry.Offset, &value, sizeof(value));
    }
  Loaded.emplace(program.Id, std::move(addresses));
  return true;
}

bool Machine::State::check(const Kernel &kernel, const LaunchConfig &config,
                           uint64_t parameterBytes, std::string &error) const {
  const KernelInfo &info = kernel.Info;
  auto refuse = [&](const std::string &what) {
    error = "kernel '" + info.Name + "': " + what;
    return false;
  };
  uint64_t threads = config.Block.count();
  if (parameterBytes != info.ParameterBytes)
    return refuse(std::to_string(parameterBytes) +
                  " bytes of parameters, it has " +
                  std::to_string(info.ParameterBytes));
  if (config.Grid.count() == 0 || config.Grid.Y > 65535 ||
      config.Grid.Z > 65535 || config.Grid.count() > UINT32_MAX)
    return refuse("a grid of " + std::to_string(config.Grid.X) + " x " +
                  std::to_string(config.Grid.Y) + " x " +
                  std::to_string(config.Grid.Z) + " CTAs");
  if (threads == 0 || threads > 1024)
    return refuse("CTAs of " + std::to_string(threads) +
                  " threads; 1 to 1024 are allowed");
  Dim3 required = info.Required;
  if (required.X &&
      (required.X != config.Block.X || required.Y != config.Block.Y ||
       required.Z != config.Block.Z))
    return refuse("CTAs of " + std::to_string(threads) +
                  " threads; .reqntid says " +
                  std::to_string(required.count()) + ", axis by axis");
  if (info.MaxThreads && threads > info.MaxThreads)
    return refuse("CTAs of " + std::to_string(threads) +
                  " threads; .maxntid says " + std::to_string(info.MaxThreads));
  uint64_t shared = uint64_t(info.StaticShared) + config.DynamicShared;
  if (shared > MostShared)
    return refuse(std::to_string(shared) +
                  " bytes of shared memory; a CTA has " +
                  std::to_string(MostShared));
  return true;
}

/// The values of the kernel's constants, and the size of its shared memory.
bool Machine::State::resolve(Launch &launch, std::string &error) {
  const Program &program = *launch.Code;
  if (!load(program, error))
    return false;
  const std::vector<uint64_t> &addresses = Loaded[program.Id];
  const Kernel &kernel = *launch.Entry;
  // Dynamic shared memory begins where its variables may begin.
  uint32_t dynamic = kernel.Info.StaticShared;
  std::map<uint32_t, uint64_t> placed;
  for (const Placement &placement : kernel.Placements) {
    if (placement.Dynamic) {
      uint32_t align = program.Variables[placement.Variable].Align;
      dynamic = (dynamic + align - 1) / align * align;
    }
    placed[placement.Variable] = placement.Offset;
  }
  for (const Placement &placement : kernel.Placements)
    if (placement.Dynamic)
      placed[placement.Variable] = dynamic;
  launch.SharedBytes = dynamic + launch.Config.DynamicShared;
  for (const Constant &constant : kernel.Constants) {
    uint64_t value = constant.Value;
    if (constant.Symbol != NoSlot) {
      Space where = program.Variables[constant.Symbol].Where;
      bool global = where == Space::Global || where == Space::Const;
      value += global ? addresses[constant.Symbol] : placed[constant.Symbol];
      if (where == Space::Shared)
        value += SharedBase;
      if (constant.Address == Space::Generic && !global)
        value += where == Space::Shared ? SharedWindow : LocalWindow;
      else if (constant.Address != Space::Generic && where == Space::Const)
        value -= ConstWindow;
    }
    launch.Constants.push_back(value);
  }
  return true;
}

/// One host thread: CTA after CTA. A CTA that only waits for memory to change
/// lets another one start, as on a device where many are resident.
void Machine::State::work(Launch &launch, Worker &worker,
                          const std::vector<uint32_t> &order,
                          std::atomic<size_t> &next) {
  constexpr size_t resident = 256;
  worker.Count.reset(launch);
  std::deque<Cta *> live;
  std::vector<Cta *> idle;
  size_t prepared = 0;
  auto start = [&] {
    size_t index = next.fetch_add(1, std::memory_order_relaxed);
    if (index >= launch.Config.Grid.count())
      return false;
    if (idle.empty()) {
      if (prepared == worker.Ctas.size())
        worker.Ctas.push_back(std::make_unique<Cta>());
      idle.push_back(worker.Ctas[prepared++].get());
      idle.back()->prepare(launch, worker.Count);
    }
    live.push_back(idle.back());
    idle.pop_back();
    live.back()->start(order.empty() ? index : order[index]);
    return true;
  };
  while (!launch.Failed.load(std::memory_order_relaxed)) {
    if (live.empty() && !start())
      return;
    Cta *cta = live.front();
    live.pop_front();
    switch (cta->run()) {
    case Cta::Outcome::Done:
      idle.push_back(cta);
      break;
    case Cta::Outcome::Failed:
      return;
    case Cta::Outcome::Yielded:
      if (live.size() + 1 < resident)
        start();
      live.push_back(cta);
      break;
    }
  }
}

bool Machine::launch(const Module &module, std::string_view name,
                     const LaunchConfig &config, const void *parameters,
                     uint64_t parameterBytes, const LaunchOptions &options,
                     std::string &error) {
  auto began = std::chrono::steady_clock::now();
  const Program &program = module.program();
  auto it = program.KernelIndex.find(name);
  if (it == program.KernelIndex.end()) {
    error = "no kernel is called '" + std::string(name) + "'";
    return false;
  }
  const Kernel &kernel = program.Kernels[it->second];
  Launch launch;
  launch.Code = &program;
  launch.Entry = &kernel;
  launch.Memory = &Self->Memory;
  launch.Epoch = ++Self->Epoch;
  launch.Config = config;
  launch.Options = options;
  launch.Parameters = static_cast<const uint8_t *>(parameters);
  launch.ParameterBytes = uint32_t(parameterBytes);
  if (!Self->check(kernel, config, parameterBytes, error) ||
      !Self->resolve(launch, error))
    return false;

  std::vector<uint32_t> order;
  if (options.Seed) {
    order.resize(config.Grid.count());
    for (size_t i = 0; i != order.size(); ++i)
      order[i] = uint32_t(i);
    std::mt19937_64 random(options.Seed);
    std::shuffle(order.begin(), order.end(), random);
  }
  std::atomic<size_t> next{0};
  unsigned threads =
      unsigned(std::min<uint64_t>(Self->Host.size(), config.Grid.count()));
  Self->Host.run(threads, [&](unsigned index) {
    Self->work(launch, Self->Workers[index], order, next);
  });
  for (unsigned index = 0; index != threads; ++index) {
    // CTAs that have not ended are those of a launch that failed.
    for (auto &cta : Self->Workers[index].Ctas)
      if (cta->Run == &launch)
        cta->retire();
    Self->Workers[index].Count.settle();
  }

  Meter &meter = Self->Meters[kernel.Info.Name];
  Tally &tally = Self->Tallies[kernel.Info.Name];
  if (tally.Text != program.Id || tally.Executed.empty()) {
    tally.settle(meter);
    tally.start(program, kernel);
  }
  ++meter.Launches;
  for (unsigned index = 0; index != threads; ++index) {
    Counters &count = Self->Workers[index].Count;
    Meter &sum = count.Sum;
    for (size_t i = 0; i != kernel.Code.size(); ++i)
      if (count.Executed[i] && !kernel.Code[i].Hidden) {
        sum.WarpInstructions += count.Executed[i];
        tally.Executed[i] += count.Executed[i];
      }
    for (size_t i = 0; i != count.Sectors.size(); ++i)
      if (count.Sectors[i])
        sum.SectorsByAllocation[Self->Memory.names()[i]] += count.Sectors[i];
    for (size_t i = 0; i != count.Loaded.size(); ++i) {
      const std::string &name = Self->Memory.names()[i];
      if (count.Loaded[i])
        sum.DistinctLoads[name] += count.Loaded[i];
      if (count.Stored[i])
        sum.DistinctStores[name] += count.Stored[i];
      sum.DistinctLoadSectors += count.Loaded[i];
      sum.DistinctStoreSectors += count.Stored[i];
    }
    meter.add(sum);
  }
  meter.Nanoseconds +=
      uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(
                   std::chrono::steady_clock::now() - began)
                   .count());
  error = launch.error();
  return error.empty();
}

} // namespace kvc::sim

#include "runtime/CpuDevice.h"
#include "runtime/Checked.h"
#include "runtime/Cpu.h"
#include "runtime/RandomWeights.h"

#include <algorithm>
#include <cstring>

// Under AddressSanitizer, memory the program must not touch now is poisoned:
// free KV pages, and the gaps between buffers of the workspace.
#if defined(__SANITIZE_ADDRESS__)
#define KVC_GUARDS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KVC_GUARDS 1
#endif
#endif
#ifdef KVC_GUARDS
#include <sanitizer/asan_interface.h>
#endif

namespace kvc {

#ifdef KVC_GUARDS
static constexpr bool HasGuards = true;
static void forbid(const uint8_t *memory, int64_t bytes) {
  __asan_poison_memory_region(memory, size_t(bytes));
}
static void allow(const uint8_t *memory, int64_t bytes) {
  __asan_unpoison_memory_region(memory, size_t(bytes));
}
#else
static constexpr bool HasGuards = false;
static void forbid(const uint8_t *, int64_t) {}
static void allow(const uint8_t *, int64_t) {}
#endif

static constexpr int MaxWorkers = 1024;

CpuDevice::~CpuDevice() {
  // The address space goes back to the system: it must carry no poison on.
  if (HasGuards && Program)
    for (size_t region = 0; region != RegionCount; ++region)
      allow(Memory.base(region), Memory.reservedBytes(region));
}

// A buffer outside its arena would be a fault of the compiler, but the plan
// travels as text and is checked like any other input.
static bool checkSlots(const KvcProgramInfo &program, const Plan &plan,
                       std::string &error) {
  for (size_t i = 0; i != plan.Slots.size(); ++i) {
    const PlanSlot &slot = plan.Slots[i];
    int64_t arena = slot.In == PlanSlot::Arena::Rows ? program.rows_bytes
                    : slot.In == PlanSlot::Arena::Outputs
                        ? program.outputs_bytes
                        : program.worker_bytes;
    if (slot.Offset <= arena && slot.Bytes <= arena - slot.Offset)
      continue;
    error = "the program's plan: slots[" + std::to_string(i) + "] has " +
            std::to_string(slot.Bytes) + " bytes at " +
            std::to_string(slot.Offset) + ", its arena has " +
            std::to_string(arena);
    return false;
  }
  return true;
}

bool CpuDevice::load(const KvcProgramInfo &program, const Plan &plan,
                     const uint8_t *weights, const DeviceLimits &limits,
                     std::string &error) {
  int workers = Options.Workers > 0 ? Options.Workers : availableCores();
  if (workers > MaxWorkers) {
    error = std::to_string(workers) + " threads asked for, the most is " +
            std::to_string(MaxWorkers);
    return false;
  }
  if (!checkSlots(program, plan, error))
    return false;

  CheckedSize kv = CheckedSize(limits.Pages) * program.page_bytes;
  CheckedSize rows = CheckedSize(program.rows_bytes) * limits.Rows;
  CheckedSize outputs = CheckedSize(program.outputs_bytes) * limits.Outputs;
  CheckedSize worker =
      CheckedSize(program.worker_bytes) * limits.Rows * workers;
  CheckedSize logits =
      CheckedSize(program.vocab) * limits.Outputs * int64_t(sizeof(float));
  // Weights of a file are mapped and may be dropped; random ones take memory.
  bool random = program.random_ranges != 0;
  CheckedSize made = random ? program.weights_bytes : 0;
  CheckedSize workspace = rows + outputs + worker + logits + made;
  CheckedSize total = kv + workspace;
  int64_t memory = memoryLimitBytes();
  if (!total.valid() || total.value() > memory) {
    auto print = [](CheckedSize size) {
      return size.valid() ? std::to_string(size.value())
                          : std::string("more than 2^63");
    };
    error = "this run needs " + print(kv) + " bytes of KV cache (" +
            std::to_string(limits.Pages) + " pages) and " + print(workspace) +
            " of workspace, the machine grants " + std::to_string(memory) +
            ": ask for fewer tokens or sequences, or a smaller "
            "--prefill-chunk";
    return false;
  }
  if (!Memory.reserve({kv.value(), rows.value(), outputs.value(),
                       worker.value(), logits.value(), made.value()},
                      error))
    return false;
  for (size_t region : {Rows, Outputs, Worker, Logits, Weights})
    if (!Memory.commit(region, Memory.reservedBytes(region), error))
      return false;
  if (random)
    fillRandomWeights(program, 0, program.weights_bytes, Memory.base(Weights));

  Arenas.weights = random ? Memory.base(Weights) : weights;
  Arenas.kv = Memory.base(Kv);
  Arenas.rows_arena = Memory.base(Rows);
  Arenas.outputs_arena = Memory.base(Outputs);
  Arenas.worker_arena = Memory.base(Worker);
  Arenas.logits = reinterpret_cast<float *>(Memory.base(Logits));
  Arenas.max_rows = limits.Rows;
  Arenas.max_outputs = limits.Outputs;
  Program = &program;
  Slots = plan.Slots;

  Workers = Team::create(workers, error);
  if (!Workers)
    return false;
  if (Options.Profile)
    for (PhaseProfile &phase : Times.Phases)
      phase.Kernels.resize(size_t(plan.kernelNumbers()));
  if (HasGuards)
    forbid(Arenas.kv, Memory.reservedBytes(Kv));
  return true;
}

bool CpuDevice::step(Phase phase, const KvcBatch &batch,
                     const KvcSampling * /*sampling*/, std::string &error) {
  if (Options.Poison)
    poisonWorkspace();
  if (HasGuards)
    guardWorkspace(batch);
  KvcStepFunction function =
      phase == Phase::Prefill ? Program->prefill : Program->decode;
  if (Tracer)
    return traceStep(function, batch, error);
  if (!Options.Profile) {
    Workers->run(function, &batch, &Arenas);
    return true;
  }
  PhaseProfile &times = Times[phase];
  times.count(batch);
  int64_t start = nowNanoseconds();
  Workers->setProfile(&times.Kernels);
  Workers->run(function, &batch, &Arenas);
  times.Nanoseconds += nowNanoseconds() - start;
  return true;
}

bool CpuDevice::traceStep(KvcStepFunction function, const KvcBatch &batch,
                          std::string &error) {
  auto read = [this](const PlanWrite &write, int64_t,
                     std::string &) -> const uint8_t * {
    switch (write.In) {
    case PlanWrite::Arena::Rows:
      return Arenas.rows_arena + write.Offset * Arenas.max_rows;
    case PlanWrite::Arena::Outputs:
      return Arenas.outputs_arena + write.Offset * Arenas.max_outputs;
    case PlanWrite::Arena::Logits:
      break;
    }
    return reinterpret_cast<const uint8_t *>(Arenas.logits);
  };
  bool good = true;
  Workers->setObserver([&](int64_t kernel) {
    good = good && Tracer->afterKernel(kernel, read, error);
  });
  Workers->run(function, &batch, &Arenas);
  Workers->setObserver(nullptr);
  return good;
}

void CpuDevice::poisonWorkspace() {
  for (size_t region : {Rows, Outputs, Worker, Logits}) {
    allow(Memory.base(region), Memory.reservedBytes(region));
    std::memset(Memory.base(region), 0xFF,
                size_t(Memory.reservedBytes(region)));
  }
}

// Buffers whose lifetimes do not meet may share bytes, so everything is
// forbidden first and then each buffer's rows of this step are allowed.
void CpuDevice::guardWorkspace(const KvcBatch &batch) {
  if (Slots.empty())
    return;
  for (size_t region : {Rows, Outputs, Worker})
    forbid(Memory.base(region), Memory.reservedBytes(region));
  for (const PlanSlot &slot : Slots) {
    switch (slot.In) {
    case PlanSlot::Arena::Rows:
      allow(Arenas.rows_arena + slot.Offset * Arenas.max_rows,
            slot.Bytes * batch.rows);
      break;
    case PlanSlot::Arena::Outputs:
      allow(Arenas.outputs_arena + slot.Offset * Arenas.max_outputs,
            slot.Bytes * batch.outputs);
      break;
    case PlanSlot::Arena::Worker:
      for (int worker = 0; worker != workers(); ++worker)
        allow(Arenas.worker_arena +
                  (worker * Program->worker_bytes + slot.Offset) *
                      Arenas.max_rows,
              slot.Bytes * Arenas.max_rows);
      break;
    }
  }
}

bool CpuDevice::preparePage(int32_t page, std::string &error) {
  int64_t bytes = Program->page_bytes;
  if (!Memory.commit(Kv, (page + int64_t(1)) * bytes, error))
    return false;
  uint8_t *memory = Arenas.kv + page * bytes;
  allow(memory, bytes);
  if (Options.Poison)
    std::memset(memory, 0xFF, size_t(bytes));
  return true;
}

void CpuDevice::copyPage(int32_t from, int32_t to) {
  int64_t bytes = Program->page_bytes;
  std::memcpy(Arenas.kv + to * bytes, Arenas.kv + from * bytes, size_t(bytes));
}

void CpuDevice::retirePage(int32_t page) {
  forbid(Arenas.kv + page * Program->page_bytes, Program->page_bytes);
}

} // namespace kvc

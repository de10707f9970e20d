//===- SchedulePlan.h - What a schedule takes and does, in numbers --------===//
//
// Bytes by arena, and for each kernel the bytes it moves and the operations it
// does, known from the schedule alone. The program carries the plan as JSON
// (docs/RUNTIME.md has the schema); `kvc plan` prints it as a table.
//
// Bytes are those that cross between a kernel and memory, each once: weights as
// packed, values read from and written to slots, K and V. What stays in a
// kernel's registers or its worker's own slots is not counted. Operations are
// counted as written: 2 for a multiplication and addition, 4 a value for a
// norm, 8 for an activation, 6 for a rotated pair, 3 for a quantised value, 5
// for a softmax's.
#ifndef KVC_CODEGEN_EMIT_SCHEDULEPLAN_H
#define KVC_CODEGEN_EMIT_SCHEDULEPLAN_H

#include "dialect/KvcDialect.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace kvc {

/// A slot that a kernel writes: the first `bytes` of each row's `stride` hold
/// `values` values.
struct SlotWrite {
  Space space;
  SlotElement element;
  int64_t offset;
  int64_t stride;
  int64_t bytes;
  int64_t values;
};

/// One dispatch, summed over the layers it runs in.
struct KernelCost {
  int64_t id = 0;
  Phase phase = Phase::Prefill;
  std::string name;
  int64_t runs = 1; // in a step

  /// Has a prologue whose rows go to the anchor: where a step has more than a
  /// few, a GPU runs it as a kernel of its own.
  bool staged = false;

  int64_t weightBytes = 0;
  int64_t bytesPerRow = 0;
  int64_t bytesPerOutput = 0;
  int64_t kvBytesPerPosition = 0; // for each position that a row tile reads
  int64_t flopsPerRow = 0;
  int64_t flopsPerOutput = 0;
  int64_t flopsPerPosition = 0; // for each position that a row attends to

  /// What others can read: not a worker's own slots, nor scores, whose rows are
  /// as long as the context.
  std::vector<SlotWrite> writes;
};

/// A buffer of the workspace: `bytes` a row from `offset` on.
struct WorkspaceSlot {
  Space space;
  int64_t offset;
  int64_t bytes;
};

struct SchedulePlan {
  std::string model;
  std::string arch; // "cpu" or "cuda"
  std::string targetCpu;
  std::string activations;
  std::string kvType;
  int64_t vocab = 0;
  int64_t maxContext = 0;
  std::vector<int64_t> eos;

  // The cache's geometry.
  int64_t layers = 0;
  int64_t kvHeads = 0;
  int64_t headDim = 0;
  int64_t page = 0;
  int64_t split = 0;
  int64_t pageBytes = 0;
  int64_t kvBytesPerToken = 0;
  int64_t tileRows = 16; // rows of a prompt that read K and V together

  int64_t weightsBytes = 0;
  int64_t rowsBytes = 0;    // workspace, a row of a step
  int64_t outputsBytes = 0; // an output row
  int64_t workerBytes = 0;  // a row and worker; 0 where workers stage elsewhere

  std::vector<KernelCost> kernels;
  std::vector<WorkspaceSlot> slots;
};

/// The plan of a model whose programs are schedules (L4).
llvm::Expected<SchedulePlan> makeSchedulePlan(ModelOp model);

/// One JSON object: what a program carries. `indent` breaks it into lines.
std::string planJson(const SchedulePlan &plan, int indent = -1);

/// For how much work a plan is spelled out.
struct PlanRequest {
  int64_t batch = 1;    // sequences
  int64_t context = 0;  // positions each may have; 0: the model's
  int64_t prompt = 512; // rows of the prefill, at most the context
  std::string gpu;      // whose times are predicted; empty: none
};

/// The plan as a table, or with the request's numbers as JSON.
void printPlan(const SchedulePlan &plan, PlanRequest request,
               llvm::raw_ostream &os);
std::string requestJson(const SchedulePlan &plan, PlanRequest request);

} // namespace kvc

#endif // KVC_CODEGEN_EMIT_SCHEDULEPLAN_H

//===- ProgramContext.h - What the emitters of one program share ----------===//
#ifndef KVC_CODEGEN_CPU_PROGRAMCONTEXT_H
#define KVC_CODEGEN_CPU_PROGRAMCONTEXT_H

#include "codegen/RopeTables.h"
#include "codegen/cpu/Emitter.h"
#include "codegen/cpu/PanelKernels.h"
#include "runtime/Abi.h"

#include <cstddef>
#include <map>

namespace kvc::cpu {

/// A model on its way to one module of functions.
struct ModelContext {
  ModelContext(mlir::ModuleOp module, ModelOp model, const CpuTarget &target);

  mlir::ModuleOp module;
  ModelOp model;
  const CpuTarget &target;
  PanelKernels panels;
  RopeTables ropes;

  /// A private constant array of the module, made on first use.
  mlir::LLVM::GlobalOp constants(llvm::StringRef name,
                                 llvm::ArrayRef<int64_t> values);

private:
  std::map<std::string, mlir::LLVM::GlobalOp> globals;
};

/// One dispatch's function while it is written: the arguments every dispatch
/// takes, and addresses of what they lead to.
class DispatchContext {
public:
  DispatchContext(ModelContext &model, Emitter &e, ProgramOp program,
                  ValueRange arguments);

  /// The arguments of every dispatch's function.
  static llvm::SmallVector<Type> argumentTypes(mlir::OpBuilder &b);

  ModelContext &model;
  Emitter &e;
  ProgramOp program;
  Value batch, arenas, worker, workers, layer;

  // Fields of KvcBatch.
  Value rows() { return field(batch, offsetof(KvcBatch, rows), e.i64); }
  Value outputs() { return field(batch, offsetof(KvcBatch, outputs), e.i64); }
  Value tiles() { return field(batch, offsetof(KvcBatch, tiles), e.i64); }
  Value token(Value row) { return entry(offsetof(KvcBatch, tokens), row); }
  Value position(Value row) {
    return entry(offsetof(KvcBatch, positions), row);
  }
  Value outputRow(Value output) {
    return entry(offsetof(KvcBatch, output_rows), output);
  }
  Value rowSequence(Value row) {
    return entry(offsetof(KvcBatch, row_sequence), row);
  }
  Value rowTile(Value tile);
  /// The (cos, sin) pairs of a row for one rotary embedding.
  Value ropeAngles(RopeOp op, Value row);

  /// How many rows a value of this type has in this step.
  Value extent(Type type);

  /// Where row 0 of a slot lies, and where `row` does.
  Value slotBase(SlotAttr slot);
  Value slotRow(SlotAttr slot, Value row);

  /// This layer's bytes of a weight in the arena.
  Value weight(mlir::FlatSymbolRefAttr symbol);

  /// The address of position `position` (of sequence `sequence`) in the cache's
  /// pages: the start of its page's K or V of this layer and `kvHead`.
  Value page(CacheType cache, Value sequence, Value pageIndex);
  Value headPlane(CacheType cache, Value page, bool value, Value kvHead);

  /// [low, high) of `count` items that belong to this worker.
  std::pair<Value, Value> share(Value count);

  Value field(Value structure, int64_t offset, Type type);

private:
  Value entry(int64_t arrayField, Value index);
};

} // namespace kvc::cpu

#endif // KVC_CODEGEN_CPU_PROGRAMCONTEXT_H

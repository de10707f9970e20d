//===- ProgramContext.h - What the emitters of one program share ----------===//
#ifndef KVC_CODEGEN_NVPTX_PROGRAMCONTEXT_H
#define KVC_CODEGEN_NVPTX_PROGRAMCONTEXT_H

#include "codegen/RopeTables.h"
#include "codegen/nvptx/Emitter.h"
#include "codegen/nvptx/Launches.h"

#include <map>

namespace kvc::nvptx {

/// A model on its way to one module of kernels.
struct ModelContext {
  ModelContext(mlir::ModuleOp module, ModelOp model, const NvptxTarget &target);

  mlir::ModuleOp module;
  ModelOp model;
  const NvptxTarget &target;
  RopeTables ropes;
  /// Emitters raise its bytes and counters to what they need.
  LaunchLists lists;

  /// A constant array of the module, in constant memory, made on first use.
  mlir::LLVM::GlobalOp constants(llvm::StringRef name,
                                 llvm::ArrayRef<int64_t> values);
  /// The dynamic shared memory of a block: one array, 128-byte aligned.
  mlir::LLVM::GlobalOp sharedArray();

private:
  std::map<std::string, mlir::LLVM::GlobalOp> globals;
};

/// `name` with only what a PTX identifier may have.
std::string ptxName(llvm::StringRef name);

/// One kernel while it is written. Every kernel has the same parameters
/// (GPU kernels' ABI in docs/NVPTX.md); pointers are to global memory.
class KernelContext {
public:
  /// Begins a function named `name`, run by blocks of `threads`. Where
  /// `blocksPerSm` is not 0, registers are limited so that as many blocks fit.
  KernelContext(ModelContext &model, ProgramOp program, llvm::StringRef name,
                mlir::Location loc, int threads, int blocksPerSm);

  ModelContext &model;
  ProgramOp program; // null for the launches that choose tokens
  std::string name;
  const int threads;
  Emitter e;

  Value weights, kv, rowsArena, outputsArena, logits, scratch, counters;
  Value maxRows, maxOutputs, maxSplits; // i64
  Value step, tokens, positions, rowSequences, outputRows, rowTiles, pages;
  Value pagesStride; // i64
  Value rope, chosen, sampling;
  Value layer; // i32

  // Fields of KvcGpuStep, as i32. Each call loads.
  Value rows() { return stepField(0); }
  Value sequences() { return stepField(1); }
  Value outputs() { return stepField(2); }
  Value tiles() { return stepField(3); }
  /// How many rows a value of this type has in this step.
  Value extent(Type type);
  static Extent extentOf(Type type);

  Value token(Value row) { return entry(tokens, row); }
  Value position(Value row) { return entry(positions, row); }
  Value rowSequence(Value row) { return entry(rowSequences, row); }
  Value outputRow(Value output) { return entry(outputRows, output); }
  /// The KvcRowTile with this number.
  Value rowTile(Value tile) { return e.at(rowTiles, e.mul(e.i64Of(tile), 16)); }
  /// The (cos, sin) pairs of a row for one rotary embedding.
  Value ropeAngles(RopeOp op, Value row);

  /// How a slot keeps a value: f32, bf16 or f16.
  Type element(SlotAttr slot);
  /// Where row 0 of a slot lies, and where `row` does.
  Value slotBase(SlotAttr slot);
  Value slotRow(SlotAttr slot, Value row);

  /// This layer's bytes of a weight in the arena.
  Value weight(mlir::FlatSymbolRefAttr symbol);

  /// The page `pageIndex` of a sequence, and in it this layer's K or V of a
  /// head: [64 positions][head_dim].
  Value page(CacheType cache, Value sequence, Value pageIndex);
  Value pageNumber(Value sequence, Value pageIndex);
  Value headPlane(CacheType cache, Value page, bool value, Value kvHead);

  /// The block's dynamic shared memory from byte `offset` on.
  Value sharedMemory(int64_t offset = 0);

private:
  Value stepField(int index);
  Value entry(Value array, Value index);
};

/// One dispatch on its way to kernels and launches.
class DispatchContext {
public:
  DispatchContext(ModelContext &model, ProgramOp program, DispatchOp dispatch);

  /// A launch for the layers it is listed with; all of them without a list.
  struct Entry {
    Launch launch;
    llvm::SmallVector<int64_t> layers;
  };

  /// Begins the kernel "<program>_<id>_<name><suffix>".
  KernelContext begin(llvm::StringRef suffix, int threads, int blocksPerSm = 0);
  /// Adds a launch of a kernel to the dispatch: threads and name are set, the
  /// rest is the caller's.
  Launch &launch(const KernelContext &kernel,
                 llvm::ArrayRef<int64_t> layers = {});

  ModelContext &model;
  ProgramOp program;
  DispatchOp dispatch;
  std::vector<Entry> entries;
};

} // namespace kvc::nvptx

#endif // KVC_CODEGEN_NVPTX_PROGRAMCONTEXT_H

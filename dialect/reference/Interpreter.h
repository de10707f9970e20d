//===- Interpreter.h - Executes kvc IR in f64 -------------------*- C++ -*-===//
#ifndef KVC_DIALECT_REFERENCE_INTERPRETER_H
#define KVC_DIALECT_REFERENCE_INTERPRETER_H

#include "dialect/KvcDialect.h"
#include "dialect/reference/CacheState.h"
#include "dialect/reference/SlotState.h"
#include "dialect/reference/Tensor.h"
#include "dialect/reference/WeightSources.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace kvc {

/// One new token of a step.
struct StepRow {
  int32_t token;
  int64_t sequence;
  int64_t position;
};

/// One step's batch: its rows, ragged over sequences, and which of them have
/// logits that are wanted.
struct Step {
  std::vector<StepRow> rows;
  std::vector<int64_t> outputs;
};

enum class Roundings {
  Exact,   // none: f64 throughout
  Declared // the cache's element type, kvc.quantize and kvc.round round
};

/// `value` in f32, rounded to `type` (f32, f16 or bf16) as generated code does.
double roundTo(mlir::Type type, double value);

/// Runs a model's functions step after step. What a step appends to the cache
/// the next ones read. The model must verify and stay alive.
class Interpreter {
public:
  Interpreter(ModelOp model, WeightSources &weights, Roundings roundings);

  /// Runs `function`, the model's forward or a program of any level, and
  /// returns the logits of the step's outputs.
  llvm::Expected<TensorRef> runStep(mlir::FunctionOpInterface function,
                                    const Step &step);

  /// The contents of the caches, by symbol.
  const llvm::MapVector<mlir::StringAttr, CacheState> &caches() const {
    return cacheStates;
  }
  /// Forgets what a sequence holds from `length` on.
  void truncate(int64_t sequence, int64_t length);

private:
  // Functions and regions.
  llvm::Error checkStep(mlir::FunctionOpInterface function, const Step &step);
  llvm::Error runBlock(mlir::Block &block);
  llvm::Error runOp(mlir::Operation &op);
  llvm::Error runLayers(LayersOp op);
  llvm::Error runKernel(mlir::Operation *op);

  // Rows (RowOps.cpp).
  llvm::Error run(EmbedOp op);
  llvm::Error run(AddPositionsOp op);
  llvm::Error run(SelectRowsOp op);
  llvm::Error run(RmsNormOp op);
  llvm::Error run(LayerNormOp op);
  llvm::Error run(AddOp op);
  llvm::Error run(MulOp op);
  llvm::Error run(ActivationOp op);
  llvm::Error run(SoftCapOp op);
  llvm::Error run(QuantizeOp op);
  llvm::Error run(RoundOp op);
  llvm::Error run(LinearOp op);

  // Attention and the cache (AttentionOps.cpp).
  llvm::Error run(RopeOp op);
  llvm::Error run(CacheAppendOp op);
  llvm::Error run(ScoresOp op);
  llvm::Error run(MaskedSoftmaxOp op);
  llvm::Error run(ContextOp op);
  llvm::Error run(AttentionOp op);

  const Tensor &get(mlir::Value value) const {
    return *values.find(value)->second;
  }
  void set(mlir::Value value, TensorRef tensor) {
    values[value] = std::move(tensor);
  }
  void set(mlir::Value value, Tensor tensor) {
    values[value] = std::make_shared<const Tensor>(std::move(tensor));
  }
  /// The layer an op's optional index selects; 0 where there is none.
  int64_t layerOf(mlir::Value layer) const {
    return layer ? layers.find(layer)->second : 0;
  }
  /// The weight `symbol` of the layer.
  llvm::Expected<WeightReader> weight(mlir::Operation *op,
                                      mlir::FlatSymbolRefAttr symbol,
                                      mlir::Value layer);
  llvm::Expected<std::vector<double>> vector(mlir::Operation *op,
                                             mlir::FlatSymbolRefAttr symbol,
                                             mlir::Value layer);
  CacheState &cache(mlir::FlatSymbolRefAttr symbol);
  /// The layer of a cache an op uses, with the use recorded.
  llvm::Expected<int64_t> cacheLayer(mlir::Operation *op,
                                     mlir::FlatSymbolRefAttr symbol,
                                     mlir::Value layer, bool writes);
  /// What row `row`'s sequence holds, with every position the row sees written
  /// and those of this step written in this step.
  llvm::Expected<CacheEntry *> visible(mlir::Operation *op, CacheState &cache,
                                       int64_t layer, const StepRow &row);

  ModelOp model;
  WeightSources &sources;
  Roundings roundings;
  mlir::SymbolTable symbols;
  llvm::MapVector<mlir::StringAttr, CacheState> cacheStates;

  // Of the current step.
  Step step;
  int64_t stepNumber = -1;
  int64_t context = 0;           // the longest length of the step
  std::vector<int64_t> firstNew; // by sequence: its first position of the step
  llvm::DenseMap<mlir::Value, TensorRef> values;
  llvm::DenseMap<mlir::Value, int64_t> layers;
  TensorRef returned;
  SlotState slots;
};

} // namespace kvc

#endif // KVC_DIALECT_REFERENCE_INTERPRETER_H

//===- Weights.h - A model's packed weights, as a stream of bytes ---------===//
#ifndef KVC_CODEGEN_EMIT_WEIGHTS_H
#define KVC_CODEGEN_EMIT_WEIGHTS_H

#include "codegen/emit/SourceFiles.h"
#include "runtime/Abi.h"

namespace kvc {

/// Receives the arena's bytes in order.
using WeightsSink =
    llvm::function_ref<llvm::Error(llvm::ArrayRef<uint8_t> bytes)>;

/// Packs the weights of a model that kvc-pack-weights has given places and
/// hands the weights arena to `sink`, from its first byte to its last, some
/// megabytes at a time: a model of any size takes little memory.
llvm::Error packWeights(ModelOp model, SourceFiles &sources, WeightsSink sink);

/// What each part of the weights arena holds, for programs that have no weights
/// and fill it with numbers of the same kinds.
std::vector<KvcWeightRange> randomRanges(ModelOp model);

} // namespace kvc

#endif // KVC_CODEGEN_EMIT_WEIGHTS_H

//===- Interpret.h - Whole runs of a model in the interpreter ---*- C++ -*-===//
#ifndef KVC_DIALECT_REFERENCE_INTERPRET_H
#define KVC_DIALECT_REFERENCE_INTERPRET_H

#include "dialect/reference/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace kvc {

struct InterpretOptions {
  /// One prompt a sequence, at least one token each. All are one prefill step.
  std::vector<std::vector<int32_t>> ids;
  /// Tokens fed one by one after the prompts: for each sequence a list, or no
  /// lists at all. Step i has one row for each sequence with an i-th token.
  std::vector<std::vector<int32_t>> decodeIds;
  /// Apply the declared roundings instead of none.
  bool rounded = false;
  /// Logits of every row of the prompts, not of the last ones alone.
  bool allLogits = false;
  /// Where the module's file lies; sources with relative paths are looked up
  /// there, then in the working directory.
  std::string sourceDirectory;
  /// Files to write, none where empty. Several sequences make FILE.npy a
  /// prefix: FILE.0.npy, FILE.1.npy, ...
  std::string logitsPath; // .npy, float64 [rows, vocab]
  std::string cachePath;  // .npz, "layer0.sequence0.k": [pos, heads, dim]
};

/// A finished run. The module must outlive it.
struct Interpretation {
  /// For each sequence a row of logits for its prompt (for each token of it
  /// with allLogits), then one for each forced token.
  std::vector<Tensor> logits;
  std::unique_ptr<WeightSources> sources;
  std::unique_ptr<Interpreter> interpreter; // holds the caches
};

/// The largest differences of two runs. Each is relative to the largest
/// magnitude in its row of logits, or its position of the cache.
struct Comparison {
  double logits = 0;
  double cache = 0;
  std::string worst; // where the largest difference is, in words
  double error() const { return std::max(logits, cache); }
};

/// The one kvc.model of a module.
llvm::Expected<ModelOp> findModel(mlir::ModuleOp module);

/// Runs a model: its prefill and decode programs where it has programs, else
/// its forward for both.
llvm::Expected<Interpretation> interpretModel(ModelOp model,
                                              const InterpretOptions &options);

/// Runs a module's model and writes the files that the options name; prints
/// the logits to `out` where no file for them is named.
llvm::Error interpret(mlir::ModuleOp module, const InterpretOptions &options,
                      llvm::raw_ostream &out);

/// Compares two runs of the same ids. Different shapes are an error.
llvm::Expected<Comparison> compare(const Interpretation &a,
                                   const Interpretation &b);

/// Runs both modules and compares: the gate of every pass, which must keep the
/// error below 1e-12.
llvm::Expected<Comparison> compareModules(mlir::ModuleOp a, mlir::ModuleOp b,
                                          const InterpretOptions &options);

} // namespace kvc

#endif // KVC_DIALECT_REFERENCE_INTERPRET_H

//===- Launches.h - The list of launches that makes a step ----------------===//
//
// Code generation makes a flat list for each program: every layer's launches in
// order. `kvc.launches` on the module shows it; emission turns it into the
// KvcLaunch constants of runtime/Abi.h.
#ifndef KVC_CODEGEN_NVPTX_LAUNCHES_H
#define KVC_CODEGEN_NVPTX_LAUNCHES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace kvc::nvptx {

/// What a grid's dimension counts; numbered as KvcExtent.
enum class Extent { Fixed, Rows, Outputs, Tiles, Sequences, Positions };
llvm::StringRef extentName(Extent extent);

/// Mirrors KvcLaunch.
struct Launch {
  static constexpr int64_t NoLimit = INT32_MAX;

  std::string kernel;
  int64_t id = 0;
  int64_t layer = 0;
  int64_t threads = 0;
  int64_t sharedBytes = 0;
  struct Dimension {
    Extent extent = Extent::Fixed;
    int64_t per = 1; // blocks, or values a block takes
  };
  Dimension grid[3];
  int64_t blocksPerSm = 0;
  Extent when = Extent::Rows;
  int64_t atLeast = 1, atMost = NoLimit;

  mlir::DictionaryAttr toAttr(mlir::MLIRContext *context) const;
  static llvm::FailureOr<Launch> fromAttr(mlir::Attribute attr);
};

struct LaunchLists {
  std::vector<Launch> prefill, decode, choose;
  int64_t partialBytes = 0;   // of an attention's partial result
  int64_t stageBytes = 0;     // of a row that a prologue leaves in scratch
  int64_t countersPerRow = 0; // i32 counters, zero between kernels
  int64_t attentionRows = 1;  // most rows of a KvcRowTile

  static constexpr llvm::StringLiteral AttrName = "kvc.launches";
  void attach(mlir::ModuleOp module) const;
  static llvm::FailureOr<LaunchLists> of(mlir::ModuleOp module);
};

} // namespace kvc::nvptx

#endif // KVC_CODEGEN_NVPTX_LAUNCHES_H

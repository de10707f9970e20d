//===- LinearGroups.h - Which segments of a linear are computed together --===//
#ifndef KVC_CODEGEN_LINEARGROUPS_H
#define KVC_CODEGEN_LINEARGROUPS_H

#include "dialect/KvcDialect.h"

#include <vector>

namespace kvc {

/// Segments of a linear whose tiles meet in an epilogue op (gate and up), and
/// the ops of the epilogue that use them, in order.
struct LinearGroup {
  llvm::SmallVector<int> segments;
  llvm::SmallVector<mlir::Operation *> epilogue;
};

/// Every segment of a linear is in one group; groups are in the order of their
/// first segments. Fails, with an error on the op, where one behind the linear
/// does not use its results.
llvm::FailureOr<std::vector<LinearGroup>> linearGroups(LinearOp linear);

} // namespace kvc

#endif // KVC_CODEGEN_LINEARGROUPS_H

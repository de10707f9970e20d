//===- KvcDialect.h - The kvc dialect: attributes, types and ops ----------===//
#ifndef KVC_DIALECT_KVCDIALECT_H
#define KVC_DIALECT_KVCDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/KvcDialect.h.inc"
#include "dialect/KvcEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/KvcAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/KvcTypes.h.inc"

namespace kvc {

/// The state that cache_append writes and attention reads.
struct CacheResource : mlir::SideEffects::Resource::Base<CacheResource> {
  llvm::StringRef getName() final { return "kvc.cache"; }
};

/// The slots of the arenas a schedule works on.
struct SlotResource : mlir::SideEffects::Resource::Base<SlotResource> {
  llvm::StringRef getName() final { return "kvc.slot"; }
};

/// An f32 tensor of rank 2 or 3 whose first dimension is dynamic and named
/// #kvc.rows or #kvc.outputs.
bool isExtentTensor(mlir::Type type);

/// tensor<?xi32, #kvc.rows>.
bool isTokensTensor(mlir::Type type);

/// Values a row of an extent tensor has: the product of its static trailing
/// dimensions (576 for ?x9x64). The trailing dimensions must be static.
int64_t rowElements(mlir::Type type);

/// The planes of a q8 row of `columns` values, a multiple of 32, as bytes from
/// its start; the signed bytes themselves come first.
struct Q8Row {
  int64_t columns;
  int64_t scales() const { return columns; }                     // f32[K/32]
  int64_t sums() const { return scales() + columns / 32 * 4; }   // i32[K/16]
  int64_t products() const { return sums() + columns / 16 * 4; } // f32[K/32]
  int64_t bytes() const { return products() + columns / 32 * 4; }
};

/// Bytes a row of `values` values takes in a slot.
int64_t slotRowBytes(int64_t values, SlotElement element);

} // namespace kvc

#define GET_OP_CLASSES
#include "dialect/KvcOps.h.inc"

namespace kvc {

/// The weight that `symbol` names in the model around `op`, null if there is
/// none.
WeightOp lookupWeight(mlir::Operation *op, mlir::FlatSymbolRefAttr symbol);

/// The cache that `symbol` names in the model around `op`, null if there is
/// none.
CacheOp lookupCache(mlir::Operation *op, mlir::FlatSymbolRefAttr symbol);

/// A linear or an attention: what a kernel is built around.
bool isAnchor(mlir::Operation *op);

} // namespace kvc

#endif // KVC_DIALECT_KVCDIALECT_H

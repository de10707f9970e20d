//===- KvcDialect.cpp - Registration and shared queries -------------------===//
#include "dialect/KvcDialect.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kvc;

#include "dialect/KvcDialect.cpp.inc"
#include "dialect/KvcEnums.cpp.inc"

void KvcDialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialect/KvcOps.cpp.inc"
      >();
}

bool kvc::isExtentTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getElementType().isF32() &&
         (tensor.getRank() == 2 || tensor.getRank() == 3) &&
         tensor.isDynamicDim(0) &&
         isa_and_present<RowsAttr, OutputsAttr>(tensor.getEncoding());
}

bool kvc::isTokensTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getElementType().isInteger(32) &&
         tensor.getRank() == 1 && tensor.isDynamicDim(0) &&
         isa_and_present<RowsAttr>(tensor.getEncoding());
}

int64_t kvc::rowElements(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  int64_t elements = 1;
  for (int64_t dim : tensor.getShape().drop_front()) {
    assert(!ShapedType::isDynamic(dim) && "a row of static size");
    elements *= dim;
  }
  return elements;
}

template <typename DeclarationOp>
static DeclarationOp lookup(Operation *op, FlatSymbolRefAttr symbol) {
  auto model = op->getParentOfType<ModelOp>();
  if (!model)
    return {};
  return dyn_cast_or_null<DeclarationOp>(
      SymbolTable::lookupSymbolIn(model, symbol));
}

WeightOp kvc::lookupWeight(Operation *op, FlatSymbolRefAttr symbol) {
  return lookup<WeightOp>(op, symbol);
}

CacheOp kvc::lookupCache(Operation *op, FlatSymbolRefAttr symbol) {
  return lookup<CacheOp>(op, symbol);
}

bool kvc::isAnchor(Operation *op) { return isa<LinearOp, AttentionOp>(op); }

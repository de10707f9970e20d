//===- DispatchRows.cpp
//----------------------------------------------------===//
#include "codegen/nvptx/Dispatch.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

LogicalResult kvc::nvptx::emitRows(DispatchContext &context) {
  return context.dispatch.emitOpError("has no kernel on cuda");
}

//===- DispatchLinear.cpp
//----------------------------------------------------===//
#include "codegen/nvptx/Dispatch.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

LogicalResult kvc::nvptx::emitLinear(DispatchContext &context,
                                     LinearOp linear) {
  return linear.emitOpError("has no kernel on cuda");
}

//===- DispatchAttention.cpp
//----------------------------------------------------===//
#include "codegen/nvptx/Dispatch.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

LogicalResult kvc::nvptx::emitAttention(DispatchContext &context,
                                        AttentionOp attention) {
  return attention.emitOpError("has no kernel on cuda");
}

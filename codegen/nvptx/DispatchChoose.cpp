//===- DispatchChoose.cpp
//----------------------------------------------------===//
#include "codegen/nvptx/Dispatch.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

LogicalResult kvc::nvptx::emitChoose(ModelContext &model) { return success(); }

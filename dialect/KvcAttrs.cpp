//===- KvcAttrs.cpp - Attributes of the kvc dialect -----------------------===//
#include "dialect/KvcDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kvc;

#define GET_ATTRDEF_CLASSES
#include "dialect/KvcAttrs.cpp.inc"

void KvcDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/KvcAttrs.cpp.inc"
      >();
}

LogicalResult PanelsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t lanes, int64_t unit) {
  if (lanes < 4 || lanes > 32 || (lanes & (lanes - 1)) != 0)
    return emitError() << "lanes must be a power of two from 4 to 32, found "
                       << lanes;
  if (unit < 1)
    return emitError() << "unit must be at least 1, found " << unit;
  return success();
}

LogicalResult SlotAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               Space space, int64_t offset, int64_t stride,
                               SlotElement element) {
  if (offset < 0)
    return emitError() << "offset must not be negative, found " << offset;
  if (stride < 1)
    return emitError() << "stride must be at least 1, found " << stride;
  if (space != Space::Logits && (offset % 64 != 0 || stride % 64 != 0))
    return emitError() << "offset and stride must be multiples of 64, found "
                       << offset << " and " << stride;
  if (element == SlotElement::Q8 && space == Space::Logits)
    return emitError() << "logits are f32";
  return success();
}

LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 StringRef arch, StringRef cpu,
                                 StringRef features, int64_t vectorWidth) {
  if (arch.empty())
    return emitError() << "arch must not be empty";
  if (vectorWidth < 128 || vectorWidth > 1024 ||
      (vectorWidth & (vectorWidth - 1)) != 0)
    return emitError()
           << "vector_width must be a power of two from 128 to 1024, found "
           << vectorWidth;
  return success();
}

//===- KvcTypes.cpp - Types of the kvc dialect ----------------------------===//
#include "dialect/KvcDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kvc;

#define GET_TYPEDEF_CLASSES
#include "dialect/KvcTypes.cpp.inc"

void KvcDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/KvcTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// WeightType
//===----------------------------------------------------------------------===//

Type WeightType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Attribute layout;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false,
                                /*withTrailingX=*/false))
    return {};
  if (succeeded(parser.parseOptionalComma()) && parser.parseAttribute(layout))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<WeightType>(parser.getContext(), shape, layout);
}

void WeightType::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleave(getShape(), printer.getStream(), "x");
  if (getLayout())
    printer << ", " << getLayout();
  printer << ">";
}

LogicalResult WeightType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> shape, Attribute layout) {
  if (shape.size() != 2 && shape.size() != 3)
    return emitError() << "a weight is layers x rows or layers x rows x "
                          "columns, found rank "
                       << shape.size();
  for (int64_t dim : shape)
    if (dim < 1)
      return emitError() << "dimensions must be at least 1, found " << dim;
  if (layout && !isa<PanelsAttr, TilesAttr>(layout))
    return emitError() << "a layout is #kvc.panels or #kvc.tiles, found "
                       << layout;
  if (layout && shape.size() != 3)
    return emitError() << "only matrices are packed in panels or tiles";
  return success();
}

WeightType WeightType::withLayout(Attribute layout) const {
  return get(getContext(), getShape(), layout);
}

//===----------------------------------------------------------------------===//
// CacheType
//===----------------------------------------------------------------------===//

LogicalResult CacheType::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t layers, int64_t kvHeads,
                                int64_t headDim, Type type, int64_t page,
                                int64_t split) {
  if (layers < 1 || kvHeads < 1 || headDim < 1)
    return emitError() << "layers, kv_heads and head_dim must be at least 1, "
                          "found "
                       << layers << ", " << kvHeads << " and " << headDim;
  if (!type.isF32() && !type.isF16() && !type.isBF16())
    return emitError() << "the element type is f32, f16 or bf16, found "
                       << type;
  if (page < 1 || (page & (page - 1)) != 0)
    return emitError() << "page must be a power of two, found " << page;
  if (split < page || split % page != 0)
    return emitError() << "split must be a multiple of page, found " << split
                       << " and " << page;
  return success();
}

int64_t CacheType::getPageBytes() const {
  return getLayers() * 2 * getKvHeads() * getHeadDim() * getPage() *
         (getType().getIntOrFloatBitWidth() / 8);
}

//===- KvcAttrs.cpp - Attributes of the kvc dialect -----------------------===//
#include "codegen/formats/Tiles.h"
#include "dialect/KvcDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace kvc;

/// `[1.0, 0.5]`, each number with the digits it takes to read it back.
static ParseResult parseReals(AsmParser &parser, DenseF64ArrayAttr &numbers) {
  SmallVector<double> values;
  auto parseReal = [&]() -> ParseResult {
    bool negative = succeeded(parser.parseOptionalMinus());
    APFloat value(0.0);
    if (parser.parseFloat(APFloat::IEEEdouble(), value))
      return failure();
    values.push_back(negative ? -value.convertToDouble()
                              : value.convertToDouble());
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseReal))
    return failure();
  numbers = DenseF64ArrayAttr::get(parser.getContext(), values);
  return success();
}

static void printReals(AsmPrinter &printer, DenseF64ArrayAttr numbers) {
  printer << "[";
  llvm::interleaveComma(numbers.asArrayRef(), printer, [&](double value) {
    printer.printFloat(APFloat(value));
  });
  printer << "]";
}

#define GET_ATTRDEF_CLASSES
#include "dialect/KvcAttrs.cpp.inc"

void KvcDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/KvcAttrs.cpp.inc"
      >();
}

LogicalResult SliceAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                FlatSymbolRefAttr /*source*/,
                                WeightFormat /*format*/, int64_t offset,
                                StringAttr /*tensor*/,
                                DenseF64ArrayAttr range) {
  if (offset < 0)
    return emitError() << "offset must not be negative, found " << offset;
  if (range && range.size() != 2)
    return emitError() << "range is [center, scale], found " << range.size()
                       << " numbers";
  return success();
}

LogicalResult RealsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                DenseF64ArrayAttr numbers) {
  for (double value : numbers.asArrayRef())
    if (!std::isfinite(value))
      return emitError() << "numbers must be finite, found " << value;
  return success();
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

LogicalResult TilesAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t unit, int64_t pair, int64_t splits) {
  if (unit < 1 || pair < 1)
    return emitError() << "unit and pair must be at least 1, found " << unit
                       << " and " << pair;
  if (splits < 1 || splits > MaxTileSplits)
    return emitError() << "splits must be from 1 to " << MaxTileSplits
                       << ", found " << splits;
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
  if (element != SlotElement::F32 && space == Space::Logits)
    return emitError() << "logits are f32";
  return success();
}

LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 StringRef arch, StringRef /*cpu*/,
                                 StringRef /*features*/, int64_t vectorWidth) {
  if (arch.empty())
    return emitError() << "arch must not be empty";
  if (vectorWidth < 128 || vectorWidth > 1024 ||
      (vectorWidth & (vectorWidth - 1)) != 0)
    return emitError()
           << "vector_width must be a power of two from 128 to 1024, found "
           << vectorWidth;
  return success();
}

//===- KvcOps.cpp - Verifiers, folds and custom syntax --------------------===//
#include "dialect/KvcDialect.h"

#include "codegen/formats/Format.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace kvc;

#define GET_OP_CLASSES
#include "dialect/KvcOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Rules that several ops share
//===----------------------------------------------------------------------===//

static bool isOutputs(Type type) {
  return isa<OutputsAttr>(cast<RankedTensorType>(type).getEncoding());
}

/// Whether `layer`, an op's optional layer index, stays below the `count`
/// layers of what `symbol` names.
static LogicalResult verifyLayer(Operation *op, FlatSymbolRefAttr symbol,
                                 Value layer, int64_t count) {
  if (!layer && count > 1)
    return op->emitOpError("needs a layer index for ")
           << symbol << ", which has " << count << " layers";
  if (!layer)
    return success();
  auto argument = dyn_cast<BlockArgument>(layer);
  auto layers = argument
                    ? dyn_cast<LayersOp>(argument.getOwner()->getParentOp())
                    : LayersOp();
  if (layers && static_cast<int64_t>(layers.getCount()) > count)
    return op->emitOpError("runs in ") << layers.getCount() << " layers, but "
                                       << symbol << " has " << count;
  return success();
}

/// The weight `symbol` names, with a shape of `rows` (x `columns` for a
/// matrix); -1 leaves a size open. `layer` says whether the use selects a
/// layer.
static FailureOr<WeightOp> verifyWeight(Operation *op, FlatSymbolRefAttr symbol,
                                        Value layer, int64_t rows,
                                        int64_t columns) {
  WeightOp weight = lookupWeight(op, symbol);
  if (!weight)
    return op->emitOpError("names ") << symbol << ", which is not a kvc.weight";
  WeightType type = weight.getWeightType();
  if (failed(verifyLayer(op, symbol, layer, type.getLayers())))
    return failure();
  bool matrix = columns != 0;
  if (type.isMatrix() != matrix)
    return op->emitOpError("needs a ") << (matrix ? "matrix" : "vector")
                                       << ", but " << symbol << " is " << type;
  if ((rows >= 0 && type.getRows() != rows) ||
      (matrix && columns >= 0 && type.getColumns() != columns))
    return op->emitOpError("does not fit ")
           << symbol << " : " << type << ": expected "
           << (rows < 0 ? std::string("any") : std::to_string(rows))
           << (matrix ? " x " + std::to_string(columns) : std::string());
  return weight;
}

static LogicalResult verifyCache(Operation *op, FlatSymbolRefAttr symbol,
                                 Value layer, CacheOp &cache) {
  cache = lookupCache(op, symbol);
  if (!cache)
    return op->emitOpError("names ") << symbol << ", which is not a kvc.cache";
  return verifyLayer(op, symbol, layer, cache.getCacheType().getLayers());
}

/// A ?xheadsxhead_dim value whose heads share the cache's kv heads evenly.
static LogicalResult verifyHeads(Operation *op, Type type, CacheType cache,
                                 bool exactHeads, bool hasHeadDim = true) {
  auto tensor = cast<RankedTensorType>(type);
  if (tensor.getRank() != 3)
    return op->emitOpError("needs heads as a dimension, found ") << type;
  if (isOutputs(type))
    return op->emitOpError("works on rows, not outputs");
  int64_t heads = tensor.getDimSize(1);
  if (exactHeads ? heads != cache.getKvHeads()
                 : heads % cache.getKvHeads() != 0)
    return op->emitOpError() << heads << " heads do not fit the cache's "
                             << cache.getKvHeads() << " kv heads";
  if (hasHeadDim && tensor.getDimSize(2) != cache.getHeadDim())
    return op->emitOpError()
           << "head_dim " << tensor.getDimSize(2)
           << " is not the cache's, which is " << cache.getHeadDim();
  return success();
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

LogicalResult ModelOp::verify() {
  auto maxContext = static_cast<int64_t>(getMaxContext());
  if (maxContext < 1)
    return emitOpError("max_context must be at least 1, found ") << maxContext;
  if (auto tokenizer = getTokenizerAttr())
    if (!isa_and_present<SourceOp>(
            mlir::SymbolTable::lookupSymbolIn(*this, tokenizer)))
      return emitOpError("takes its tokenizer from ")
             << tokenizer << ", which is not a kvc.source";
  return success();
}

LogicalResult SourceOp::verify() {
  if (getPath().has_value() == getSeed().has_value())
    return emitOpError("needs either a path or a seed");
  if (getPath() && !getSize())
    return emitOpError("needs the size of its file");
  if (getSize() && static_cast<int64_t>(*getSize()) < 0)
    return emitOpError("size must not be negative, found ")
           << static_cast<int64_t>(*getSize());
  return success();
}

LogicalResult WeightOp::verify() {
  WeightType type = getWeightType();
  if (static_cast<int64_t>(getSlices().size()) != type.getLayers())
    return emitOpError("has ") << getSlices().size() << " slices for "
                               << type.getLayers() << " layers";
  if (auto offsets = getOffsets()) {
    if (type.isMatrix() && !type.getLayout())
      return emitOpError("has offsets, but its type has no packed layout");
    if (static_cast<int64_t>(offsets->size()) != type.getLayers())
      return emitOpError("has ") << offsets->size() << " offsets for "
                                 << type.getLayers() << " layers";
  }
  return success();
}

/// A slice of a file lies inside it and consists of whole blocks; a slice of a
/// generator says what to generate.
static LogicalResult verifySlice(WeightOp weight, SourceOp source,
                                 SliceAttr slice) {
  if (source.getSeed()) {
    if (!formatInfo(static_cast<Format>(slice.getFormat())).plain() ||
        !slice.getTensor() || !slice.getRange())
      return weight.emitOpError("takes generated values from ")
             << slice.getSource()
             << ": its slices are f32, f16 or bf16 with a name and a range";
    return success();
  }
  if (!!slice.getRange())
    return weight.emitOpError("takes values from the file of ")
           << slice.getSource() << ", which have no range";
  WeightType type = weight.getWeightType();
  const FormatInfo &format = formatInfo(static_cast<Format>(slice.getFormat()));
  int64_t columns = type.isMatrix() ? type.getColumns() : type.getRows();
  if (columns % format.blockValues != 0)
    return weight.emitOpError()
           << "rows of " << columns << " values are not whole blocks of "
           << format.name << ", which hold " << format.blockValues;
  int64_t end = 0;
  if (llvm::MulOverflow(format.rowBytes(columns),
                        type.isMatrix() ? type.getRows() : 1, end) ||
      llvm::AddOverflow(end, slice.getOffset(), end) ||
      end > static_cast<int64_t>(*source.getSize()))
    return weight.emitOpError("has a slice at byte ")
           << slice.getOffset() << " that does not lie in " << slice.getSource()
           << ", which has " << *source.getSize() << " bytes";
  return success();
}

LogicalResult WeightOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  for (auto slice : getSlices().getAsRange<SliceAttr>()) {
    auto source = symbolTable.lookupNearestSymbolFrom<SourceOp>(
        getOperation(), slice.getSource());
    if (!source)
      return emitOpError("takes values from ")
             << slice.getSource() << ", which is not a kvc.source";
    if (failed(verifySlice(*this, source, slice)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

template <typename FunctionOp>
static ParseResult parseFunction(OpAsmParser &parser, OperationState &result) {
  auto buildType = [](Builder &builder, ArrayRef<Type> inputs,
                      ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag, std::string &) {
    return builder.getFunctionType(inputs, results);
  };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false,
      FunctionOp::getFunctionTypeAttrName(result.name), buildType,
      FunctionOp::getArgAttrsAttrName(result.name),
      FunctionOp::getResAttrsAttrName(result.name));
}

template <typename FunctionOp>
static void printFunction(FunctionOp op, OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(
      printer, op, /*isVariadic=*/false, op.getFunctionTypeAttrName(),
      op.getArgAttrsAttrName(), op.getResAttrsAttrName());
}

static LogicalResult verifySignature(FunctionOpInterface op, bool mayBeVoid) {
  ArrayRef<Type> inputs = op.getArgumentTypes();
  if (inputs.size() != 2 || !isTokensTensor(inputs[0]) ||
      !isa<BatchType>(inputs[1]))
    return op->emitOpError("takes (tensor<?xi32, #kvc.rows>, !kvc.batch)");
  ArrayRef<Type> results = op.getResultTypes();
  if (results.empty() && mayBeVoid)
    return success();
  if (results.size() != 1 || !isExtentTensor(results[0]) ||
      !isOutputs(results[0]))
    return op->emitOpError("returns the logits, one f32 tensor with a first "
                           "dimension of #kvc.outputs");
  return success();
}

ParseResult ForwardOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseFunction<ForwardOp>(parser, result);
}
void ForwardOp::print(OpAsmPrinter &printer) { printFunction(*this, printer); }
LogicalResult ForwardOp::verify() {
  return verifySignature(*this, /*mayBeVoid=*/false);
}

ParseResult ProgramOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseFunction<ProgramOp>(parser, result);
}
void ProgramOp::print(OpAsmPrinter &printer) { printFunction(*this, printer); }
LogicalResult ProgramOp::verify() {
  if (failed(verifySignature(*this, /*mayBeVoid=*/true)))
    return failure();
  // Plan and profile name a dispatch by its number.
  llvm::SmallDenseSet<int64_t> ids;
  WalkResult walk = this->walk([&](DispatchOp dispatch) -> WalkResult {
    auto id = static_cast<int64_t>(dispatch.getId());
    if (ids.insert(id).second)
      return WalkResult::advance();
    return dispatch.emitOpError("has the number of another dispatch: ") << id;
  });
  return failure(walk.wasInterrupted());
}

LogicalResult ReturnOp::verify() {
  auto function = cast<FunctionOpInterface>((*this)->getParentOp());
  if (getOperandTypes() != TypeRange(function.getResultTypes()))
    return emitOpError("does not return what @")
           << function.getName() << " declares";
  return success();
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

LogicalResult LayersOp::verify() {
  auto count = static_cast<int64_t>(getCount());
  if (count < 1)
    return emitOpError("count must be at least 1, found ") << count;
  Block &block = getBody().front();
  if (block.getNumArguments() != getInits().size() + 1 ||
      !block.getArguments().back().getType().isIndex() ||
      TypeRange(block.getArguments().drop_back()) != getInits().getTypes())
    return emitOpError(
        "the body takes the carried values, then the layer's index");
  if (getInits().getTypes() != getResultTypes() ||
      block.getTerminator()->getOperandTypes() != getResultTypes())
    return emitOpError("carries, yields and returns the same types");
  return success();
}

static Operation *findAnchor(Region &body) {
  for (Operation &op : body.front())
    if (isAnchor(&op))
      return &op;
  return nullptr;
}

static LogicalResult verifyKernelBody(Operation *kernel, Region &body) {
  int anchors = 0;
  for (Operation &op : body.front()) {
    if (isa<KernelOp, DispatchOp, LayersOp, BarrierOp>(op))
      return kernel->emitOpError("must not contain ") << op.getName();
    if (isAnchor(&op) && ++anchors > 1)
      return kernel->emitOpError("has more than one anchor");
  }
  return success();
}

Operation *KernelOp::getAnchor() { return findAnchor(getBody()); }
LogicalResult KernelOp::verify() {
  if (getBody().front().getTerminator()->getOperandTypes() != getResultTypes())
    return emitOpError("yields other types than it returns");
  return verifyKernelBody(*this, getBody());
}

Operation *DispatchOp::getAnchor() { return findAnchor(getBody()); }
LogicalResult DispatchOp::verify() {
  if (getBody().front().getTerminator()->getNumOperands() != 0)
    return emitOpError("yields nothing: its results lie in slots");
  for (Operation &op : getBody().front())
    for (Value operand : op.getOperands())
      if (isExtentTensor(operand.getType()) &&
          operand.getParentRegion() != &getBody())
        return op.emitOpError("in a kvc.dispatch takes a value from outside, "
                              "which belongs into a slot");
  return verifyKernelBody(*this, getBody());
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

/// Values a row of `type` has; scores have one a position of the model's
/// context.
static int64_t slotElements(Operation *op, Type type) {
  auto model = op->getParentOfType<ModelOp>();
  int64_t context = model ? model.getMaxContext() : 1;
  int64_t elements = 1;
  for (int64_t dim : cast<RankedTensorType>(type).getShape().drop_front())
    elements *= ShapedType::isDynamic(dim) ? context : dim;
  return elements;
}

int64_t kvc::slotRowBytes(int64_t values, SlotElement element) {
  switch (element) {
  case SlotElement::F32:
    return values * 4;
  case SlotElement::Q8:
    return Q8Row{values}.bytes();
  case SlotElement::BF16:
  case SlotElement::F16:
    return values * 2;
  }
  llvm_unreachable("an element of slots");
}

static LogicalResult verifySlot(Operation *op, Type type, SlotAttr slot) {
  int64_t elements = slotElements(op, type);
  if (slot.getElement() == SlotElement::Q8 && elements % 32 != 0)
    return op->emitOpError("a q8 slot holds blocks of 32 values, found ")
           << elements << " in a row";
  int64_t bytes = slotRowBytes(elements, slot.getElement());
  if (slot.getStride() < bytes)
    return op->emitOpError("a row of ")
           << type << " takes " << bytes << " bytes, but the slot's stride is "
           << slot.getStride();
  bool outputs =
      slot.getSpace() == Space::Outputs || slot.getSpace() == Space::Logits;
  if (slot.getSpace() != Space::Worker && outputs != isOutputs(type))
    return op->emitOpError("the extent of ")
           << type << " is not the slot's, which is "
           << stringifySpace(slot.getSpace());
  return success();
}

LogicalResult ReadOp::verify() {
  if (getSlot().getSpace() == Space::Worker)
    return emitOpError("a worker slot holds what its kvc.stage returns");
  return verifySlot(*this, getType(), getSlot());
}

/// A q8 slot holds the integers of a quantisation, so its input must be one; a
/// slot of 16 bits must lose nothing.
static LogicalResult verifyRounded(Operation *op, Value input, SlotAttr slot) {
  SlotElement element = slot.getElement();
  if (element == SlotElement::Q8 &&
      !isa_and_present<QuantizeOp>(input.getDefiningOp()))
    return op->emitOpError("a q8 slot takes the result of a kvc.quantize");
  if (element == SlotElement::BF16 || element == SlotElement::F16) {
    auto round = input.getDefiningOp<RoundOp>();
    bool same =
        round && (element == SlotElement::BF16 ? round.getElement().isBF16()
                                               : round.getElement().isF16());
    if (!same)
      return op->emitOpError("a ")
             << stringifySlotElement(element)
             << " slot takes the result of a kvc.round to it";
  }
  return success();
}

LogicalResult WriteOp::verify() {
  if (failed(verifySlot(*this, getInput().getType(), getSlot())))
    return failure();
  if (getSlot().getSpace() == Space::Worker)
    return emitOpError("a worker slot is filled by kvc.stage");
  return verifyRounded(*this, getInput(), getSlot());
}

LogicalResult StageOp::verify() {
  if (getSlot().getSpace() != Space::Worker)
    return emitOpError("stages in a worker slot, found ")
           << stringifySpace(getSlot().getSpace());
  if (failed(verifySlot(*this, getType(), getSlot())))
    return failure();
  return verifyRounded(*this, getInput(), getSlot());
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

LogicalResult EmbedOp::verifySymbolUses(SymbolTableCollection &) {
  if (isOutputs(getType()))
    return emitOpError("embeds rows, not outputs");
  return verifyWeight(*this, getWeightAttr(), {}, -1, rowElements(getType()));
}

LogicalResult AddPositionsOp::verifySymbolUses(SymbolTableCollection &) {
  if (isOutputs(getType()))
    return emitOpError("adds to rows, not outputs");
  return verifyWeight(*this, getWeightAttr(), {}, -1, rowElements(getType()));
}

LogicalResult SelectRowsOp::verify() {
  auto input = cast<RankedTensorType>(getInput().getType());
  auto result = cast<RankedTensorType>(getType());
  if (isOutputs(input) || !isOutputs(result) ||
      input.getShape() != result.getShape())
    return emitOpError("selects outputs of the same shape from rows, found ")
           << input << " and " << result;
  return success();
}

LogicalResult RmsNormOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyWeight(*this, getWeightAttr(), getLayer(),
                      rowElements(getType()), 0);
}

LogicalResult LayerNormOp::verifySymbolUses(SymbolTableCollection &) {
  if (failed(verifyWeight(*this, getWeightAttr(), getLayer(),
                          rowElements(getType()), 0)))
    return failure();
  if (auto bias = getBiasAttr())
    return verifyWeight(*this, bias, getLayer(), rowElements(getType()), 0);
  return success();
}

LogicalResult QuantizeOp::verify() {
  if (rowElements(getType()) % 32 != 0)
    return emitOpError("quantizes blocks of 32 values, found ")
           << rowElements(getType()) << " in a row";
  return success();
}

LogicalResult SoftCapOp::verify() {
  double cap = getCap().convertToDouble();
  if (!std::isfinite(cap) || cap <= 0.0)
    return emitOpError("has a finite cap above 0, found ") << getCapAttr();
  return success();
}

LogicalResult RoundOp::verify() {
  if (!getElement().isBF16() && !getElement().isF16())
    return emitOpError("rounds to bf16 or f16, found ") << getElement();
  return success();
}

LogicalResult LinearOp::verify() {
  if (getWeights().empty() || getWeights().size() != getOutputs().size())
    return emitOpError("has ") << getOutputs().size() << " results for "
                               << getWeights().size() << " weights";
  if (auto biases = getBiases()) {
    if (biases->size() != getWeights().size())
      return emitOpError("has ") << biases->size() << " biases for "
                                 << getWeights().size() << " weights";
    for (Attribute bias : *biases)
      if (!isa<FlatSymbolRefAttr, UnitAttr>(bias))
        return emitOpError("a bias is a symbol or unit, found ") << bias;
  }
  for (Type type : getOutputs().getTypes())
    if (isOutputs(type) != isOutputs(getInput().getType()))
      return emitOpError("maps rows to rows and outputs to outputs");
  return success();
}

LogicalResult LinearOp::verifySymbolUses(SymbolTableCollection &) {
  int64_t columns = rowElements(getInput().getType());
  for (auto [index, output] : llvm::enumerate(getOutputs())) {
    int64_t rows = rowElements(output.getType());
    auto weight = cast<FlatSymbolRefAttr>(getWeights()[index]);
    if (failed(verifyWeight(*this, weight, getLayer(), rows, columns)))
      return failure();
    if (!getBiases())
      continue;
    auto bias = dyn_cast<FlatSymbolRefAttr>((*getBiases())[index]);
    if (bias && failed(verifyWeight(*this, bias, getLayer(), rows, 0)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Attention and the cache
//===----------------------------------------------------------------------===//

LogicalResult RopeOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (type.getRank() != 3)
    return emitOpError("rotates heads, found ") << type;
  int64_t dims = static_cast<int64_t>(getInvFreq().size()) * 2;
  if (dims == 0 || dims > type.getDimSize(2))
    return emitOpError("rotates ")
           << dims << " dimensions of a head of " << type.getDimSize(2);
  if (isOutputs(type))
    return emitOpError("rotates rows, not outputs");
  return success();
}

OpFoldResult RopeOp::fold(FoldAdaptor) {
  // Angles of zero rotate nothing.
  if (getScale().convertToDouble() == 1.0 &&
      llvm::all_of(getInvFreq(), [](double freq) { return freq == 0.0; }))
    return getInput();
  return {};
}

LogicalResult CacheAppendOp::verifySymbolUses(SymbolTableCollection &) {
  CacheOp cache;
  if (failed(verifyCache(*this, getCacheAttr(), getLayer(), cache)))
    return failure();
  return verifyHeads(*this, getKey().getType(), cache.getCacheType(),
                     /*exactHeads=*/true);
}

LogicalResult ScoresOp::verifySymbolUses(SymbolTableCollection &) {
  CacheOp cache;
  if (failed(verifyCache(*this, getCacheAttr(), getLayer(), cache)) ||
      failed(verifyHeads(*this, getQuery().getType(), cache.getCacheType(),
                         /*exactHeads=*/false)))
    return failure();
  auto query = cast<RankedTensorType>(getQuery().getType());
  auto result = cast<RankedTensorType>(getType());
  if (result.getRank() != 3 || !result.isDynamicDim(2) ||
      result.getDimSize(1) != query.getDimSize(1))
    return emitOpError("scores are ?x")
           << query.getDimSize(1) << "x?, found " << result;
  return success();
}

LogicalResult MaskedSoftmaxOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (type.getRank() != 3 || !type.isDynamicDim(2))
    return emitOpError("needs scores, ?xheadsx?, found ") << type;
  return success();
}

LogicalResult ContextOp::verifySymbolUses(SymbolTableCollection &) {
  CacheOp cache;
  if (failed(verifyCache(*this, getCacheAttr(), getLayer(), cache)) ||
      failed(verifyHeads(*this, getType(), cache.getCacheType(),
                         /*exactHeads=*/false)))
    return failure();
  auto weights = cast<RankedTensorType>(getWeights().getType());
  auto result = cast<RankedTensorType>(getType());
  if (weights.getRank() != 3 || !weights.isDynamicDim(2) ||
      weights.getDimSize(1) != result.getDimSize(1))
    return emitOpError("needs scores, ?x")
           << result.getDimSize(1) << "x?, found " << weights;
  return success();
}

LogicalResult AttentionOp::verifySymbolUses(SymbolTableCollection &) {
  std::optional<Type> weights = getWeights();
  if (weights && !weights->isBF16() && !weights->isF16())
    return emitOpError("rounds its weights to bf16 or f16, found ") << *weights;
  CacheOp cache;
  if (failed(verifyCache(*this, getCacheAttr(), getLayer(), cache)))
    return failure();
  return verifyHeads(*this, getType(), cache.getCacheType(),
                     /*exactHeads=*/false);
}

//===- Interpreter.cpp - Functions, regions and state ---------------------===//
#include "dialect/reference/Interpreter.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kvc;

llvm::Error kvc::opError(Operation *op, const Twine &message) {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (auto location = op->getLoc()->findInstanceOf<FileLineColLoc>())
    out << location.getFilename().getValue() << ":" << location.getLine() << ":"
        << location.getColumn() << ": ";
  out << "'" << op->getName() << "'";
  if (auto symbol =
          op->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName()))
    out << " @" << symbol.getValue();
  if (auto kernel = op->getParentOfType<KernelOp>())
    out << " in \"" << kernel.getName() << "\"";
  if (auto dispatch = op->getParentOfType<DispatchOp>())
    out << " in \"" << dispatch.getName() << "\"";
  out << ": " << message;
  return llvm::createStringError(text);
}

Interpreter::Interpreter(ModelOp model, WeightSources &weights,
                         Roundings roundings)
    : model(model), sources(weights), roundings(roundings), symbols(model) {
  for (auto op : model.getOps<CacheOp>())
    cacheStates.insert({op.getSymNameAttr(), CacheState(op.getCacheType())});
}

void Interpreter::truncate(int64_t sequence, int64_t length) {
  for (auto &entry : cacheStates)
    entry.second.truncate(sequence, length);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

llvm::Error Interpreter::checkStep(FunctionOpInterface function,
                                   const Step &step) {
  int64_t sequences = 0;
  for (const StepRow &row : step.rows) {
    if (row.sequence < 0 || row.position < 0)
      return opError(function, "a row of sequence " + Twine(row.sequence) +
                                   " at position " + Twine(row.position));
    if (row.position >= static_cast<int64_t>(model.getMaxContext()))
      return opError(function, "position " + Twine(row.position) +
                                   " lies beyond the model's max_context of " +
                                   Twine(model.getMaxContext()));
    sequences = std::max(sequences, row.sequence + 1);
  }
  for (int64_t output : step.outputs)
    if (output < 0 || output >= static_cast<int64_t>(step.rows.size()))
      return opError(function, "output row " + Twine(output) + " of " +
                                   Twine(step.rows.size()) + " rows");
  std::vector<int64_t> rows(sequences);
  for (const StepRow &row : step.rows)
    ++rows[row.sequence];
  auto program = dyn_cast<ProgramOp>(function.getOperation());
  if (program && program.getPhase() == Phase::Decode)
    for (auto [sequence, count] : llvm::enumerate(rows))
      if (count > 1)
        return opError(function, "a decode step has one row a sequence, but " +
                                     Twine(count) + " of sequence " +
                                     Twine(sequence));
  return llvm::Error::success();
}

llvm::Expected<TensorRef> Interpreter::runStep(FunctionOpInterface function,
                                               const Step &newStep) {
  if (llvm::Error error = checkStep(function, newStep))
    return std::move(error);
  step = newStep;
  ++stepNumber;
  context = 0;
  firstNew.clear();
  for (const StepRow &row : step.rows) {
    context = std::max(context, row.position + 1);
    if (row.sequence >= static_cast<int64_t>(firstNew.size()))
      firstNew.resize(row.sequence + 1, std::numeric_limits<int64_t>::max());
    firstNew[row.sequence] = std::min(firstNew[row.sequence], row.position);
  }
  values.clear();
  layers.clear();
  returned.reset();
  slots.beginStep(function);
  if (llvm::Error error = runBlock(function.getFunctionBody().front()))
    return std::move(error);
  TensorRef logits = returned ? returned : slots.logits();
  if (!logits)
    return opError(function, "has written no logits");
  values.clear();
  return logits;
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

llvm::Error Interpreter::runBlock(Block &block) {
  for (Operation &op : block)
    if (llvm::Error error = runOp(op))
      return error;
  return llvm::Error::success();
}

llvm::Error Interpreter::runLayers(LayersOp op) {
  Block &body = op.getBody().front();
  std::vector<TensorRef> carried;
  for (Value init : op.getInits())
    carried.push_back(values[init]);
  for (int64_t layer = 0; layer < static_cast<int64_t>(op.getCount());
       ++layer) {
    for (auto [argument, tensor] : llvm::zip(body.getArguments(), carried))
      set(argument, tensor);
    layers[op.getLayer()] = layer;
    if (llvm::Error error = runBlock(body))
      return error;
    for (auto [tensor, yielded] :
         llvm::zip(carried, body.getTerminator()->getOperands()))
      tensor = values[yielded];
  }
  for (auto [result, tensor] : llvm::zip(op.getResults(), carried))
    set(result, tensor);
  return llvm::Error::success();
}

llvm::Error Interpreter::runKernel(Operation *op) {
  Block &body = op->getRegion(0).front();
  if (llvm::Error error = slots.enter(op))
    return error;
  if (llvm::Error error = runBlock(body))
    return error;
  for (auto [result, yielded] :
       llvm::zip(op->getResults(), body.getTerminator()->getOperands()))
    set(result, values[yielded]);
  slots.leave();
  return llvm::Error::success();
}

llvm::Error Interpreter::runOp(Operation &op) {
  return llvm::TypeSwitch<Operation *, llvm::Error>(&op)
      .Case<EmbedOp, AddPositionsOp, SelectRowsOp, RmsNormOp, LayerNormOp,
            AddOp, MulOp, ActivationOp, SoftCapOp, QuantizeOp, RoundOp,
            LinearOp, RopeOp, CacheAppendOp, ScoresOp, MaskedSoftmaxOp,
            ContextOp, AttentionOp>([&](auto op) { return run(op); })
      .Case([&](LayersOp op) { return runLayers(op); })
      .Case<KernelOp, DispatchOp>([&](Operation *op) { return runKernel(op); })
      .Case([&](BarrierOp) {
        slots.barrier();
        return llvm::Error::success();
      })
      .Case([&](ReadOp op) -> llvm::Error {
        llvm::Expected<TensorRef> value = slots.read(op);
        if (!value)
          return value.takeError();
        set(op.getResult(), *value);
        return llvm::Error::success();
      })
      .Case([&](WriteOp op) { return slots.write(op, values[op.getInput()]); })
      .Case([&](StageOp op) {
        set(op.getResult(), values[op.getInput()]);
        return slots.stage(op);
      })
      .Case([&](ReturnOp op) {
        if (op.getNumOperands())
          returned = values[op.getOperand(0)];
        return llvm::Error::success();
      })
      .Case([&](YieldOp) { return llvm::Error::success(); })
      .Default([&](Operation *op) {
        return opError(op, "is not an op that the interpreter runs");
      });
}

//===----------------------------------------------------------------------===//
// Weights and caches
//===----------------------------------------------------------------------===//

llvm::Expected<WeightReader>
Interpreter::weight(Operation *op, FlatSymbolRefAttr symbol, Value layer) {
  auto weight = symbols.lookup<WeightOp>(symbol.getAttr());
  int64_t index = layerOf(layer);
  if (index >= weight.getWeightType().getLayers())
    return opError(op, "selects layer " + Twine(index) + " of @" +
                           symbol.getValue() + ", which has " +
                           Twine(weight.getWeightType().getLayers()));
  return sources.open(weight, index);
}

llvm::Expected<std::vector<double>>
Interpreter::vector(Operation *op, FlatSymbolRefAttr symbol, Value layer) {
  llvm::Expected<WeightReader> reader = weight(op, symbol, layer);
  if (!reader)
    return reader.takeError();
  std::vector<double> result(reader->columns());
  reader->read(0, result.data());
  return result;
}

CacheState &Interpreter::cache(FlatSymbolRefAttr symbol) {
  return cacheStates.find(symbol.getAttr())->second;
}

llvm::Expected<int64_t> Interpreter::cacheLayer(Operation *op,
                                                FlatSymbolRefAttr symbol,
                                                Value layer, bool writes) {
  int64_t index = layerOf(layer);
  int64_t count = cache(symbol).getType().getLayers();
  if (index >= count)
    return opError(op, "selects layer " + Twine(index) + " of @" +
                           symbol.getValue() + ", which has " + Twine(count));
  if (llvm::Error error = slots.touchCache(op, symbol, index, writes))
    return std::move(error);
  return index;
}

llvm::Expected<CacheEntry *> Interpreter::visible(Operation *op,
                                                  CacheState &cache,
                                                  int64_t layer,
                                                  const StepRow &row) {
  CacheEntry &entry = cache.entry(layer, row.sequence);
  for (int64_t position = 0; position <= row.position; ++position) {
    if (!entry.written(position))
      return opError(op, "reads position " + Twine(position) + " of sequence " +
                             Twine(row.sequence) + " in layer " + Twine(layer) +
                             ", which nothing has written");
  }
  for (int64_t position = firstNew[row.sequence]; position <= row.position;
       ++position)
    if (entry.writtenIn[position] != stepNumber)
      return opError(op, "reads position " + Twine(position) + " of sequence " +
                             Twine(row.sequence) + " in layer " + Twine(layer) +
                             " before this step has written it");
  return &entry;
}

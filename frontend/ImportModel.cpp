//===- ImportModel.cpp ----------------------------------------------------===//
#include "frontend/ImportModel.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;
using namespace kvc;
using llvm::StringRef;

const WeightDescription *ModelDescription::findWeight(StringRef symbol) const {
  for (const WeightDescription &weight : weights)
    if (weight.symbol == symbol)
      return &weight;
  return nullptr;
}

std::string kvc::symbolFromText(StringRef text) {
  std::string symbol;
  for (char c : text.take_front(64)) {
    if (llvm::isAlnum(c))
      symbol += llvm::toLower(c);
    else if (!symbol.empty() && symbol.back() != '_')
      symbol += '_';
  }
  while (!symbol.empty() && symbol.back() == '_')
    symbol.pop_back();
  if (symbol.empty() || llvm::isDigit(symbol.front()))
    symbol = "model" + (symbol.empty() ? symbol : "_" + symbol);
  return symbol;
}

llvm::Error kvc::importError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

std::vector<double> kvc::rotaryFrequencies(double theta, int64_t dims) {
  std::vector<double> frequencies(dims / 2);
  for (size_t i = 0; i < frequencies.size(); ++i)
    frequencies[i] = std::pow(theta, -2.0 * static_cast<double>(i) /
                                         static_cast<double>(dims));
  return frequencies;
}

void kvc::scaleFrequencies(const Llama3Scaling &scaling,
                           std::vector<double> &frequencies) {
  for (double &frequency : frequencies) {
    double turns =
        static_cast<double>(scaling.context) * frequency / (2.0 * M_PI);
    double kept = std::clamp(
        (turns - scaling.low) / (scaling.high - scaling.low), 0.0, 1.0);
    frequency *= kept + (1.0 - kept) / scaling.factor;
  }
}

namespace {
class ModelBuilder {
public:
  ModelBuilder(const ModelDescription &model, MLIRContext *context)
      : model(model), builder(context), loc(builder.getUnknownLoc()) {}

  OwningOpRef<ModuleOp> build();

private:
  void buildDeclarations();
  void buildForward();
  Value buildLayer(Value hidden, Value layer, Value batch);
  Value buildAttention(Value hidden, Value layer, Value batch);
  Value buildFeedForward(Value hidden, Value layer);

  RankedTensorType tensor(ArrayRef<int64_t> trailing, Attribute extent) {
    SmallVector<int64_t> shape = {ShapedType::kDynamic};
    shape.append(trailing.begin(), trailing.end());
    return RankedTensorType::get(shape, builder.getF32Type(), extent);
  }
  RankedTensorType rows(ArrayRef<int64_t> trailing) {
    return tensor(trailing, RowsAttr::get(builder.getContext()));
  }
  RankedTensorType outputs(ArrayRef<int64_t> trailing) {
    return tensor(trailing, OutputsAttr::get(builder.getContext()));
  }
  FlatSymbolRefAttr symbol(StringRef name) {
    return FlatSymbolRefAttr::get(builder.getContext(), name);
  }

  Value norm(Value input, StringRef weight, Value layer);
  Value linear(Value input, StringRef weight, Value layer, Type result);

  const ModelDescription &model;
  OpBuilder builder;
  Location loc;
};
} // namespace

OwningOpRef<ModuleOp> ModelBuilder::build() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  StringAttr name = builder.getStringAttr(model.name);
  auto modelOp = ModelOp::create(
      builder, loc, name, builder.getI64IntegerAttr(model.maxContext),
      builder.getDenseI64ArrayAttr(model.eos),
      model.vocabTokens ? builder.getI64IntegerAttr(*model.vocabTokens)
                        : IntegerAttr(),
      model.tokenizer.empty() ? FlatSymbolRefAttr() : symbol(model.tokenizer),
      TargetAttr(), StringAttr(), IntegerAttr());
  builder.createBlock(&modelOp.getBody());
  buildDeclarations();
  buildForward();
  return module;
}

void ModelBuilder::buildDeclarations() {
  for (const SourceDescription &source : model.sources) {
    bool file = !source.path.empty();
    auto number = [&](uint64_t value) {
      return builder.getI64IntegerAttr(static_cast<int64_t>(value));
    };
    SourceOp::create(builder, loc, builder.getStringAttr(source.symbol),
                     file ? builder.getStringAttr(source.path) : StringAttr(),
                     file ? number(source.size) : IntegerAttr(),
                     file ? number(source.headerDigest) : IntegerAttr(),
                     file ? IntegerAttr() : number(source.seed));
  }
  for (const WeightDescription &weight : model.weights) {
    SmallVector<int64_t> shape = {static_cast<int64_t>(weight.slices.size()),
                                  weight.rows};
    if (weight.columns)
      shape.push_back(weight.columns);
    auto type = WeightType::get(builder.getContext(), shape, PanelsAttr());
    WeightOp::create(builder, loc, builder.getStringAttr(weight.symbol),
                     TypeAttr::get(type), builder.getArrayAttr(weight.slices),
                     DenseI64ArrayAttr());
  }
  // Half precision, pages of 64 and splits of 256: what `kvc-set-target`
  // starts from.
  auto cache = CacheType::get(builder.getContext(), model.layers, model.kvHeads,
                              model.headDim, builder.getF16Type(), 64, 256);
  CacheOp::create(builder, loc, builder.getStringAttr("kv"),
                  TypeAttr::get(cache));
}

Value ModelBuilder::norm(Value input, StringRef weight, Value layer) {
  FloatAttr eps = builder.getF64FloatAttr(model.eps);
  if (!model.layerNorm)
    return RmsNormOp::create(builder, loc, input.getType(), input,
                             symbol(weight), layer, eps);
  std::string bias = (weight + "_b").str();
  return LayerNormOp::create(
      builder, loc, input.getType(), input, symbol(weight), layer,
      model.findWeight(bias) ? symbol(bias) : FlatSymbolRefAttr(), eps);
}

Value ModelBuilder::linear(Value input, StringRef weight, Value layer,
                           Type result) {
  std::string bias = (weight + "_b").str();
  return LinearOp::create(builder, loc, TypeRange(result), input,
                          builder.getArrayAttr({symbol(weight)}), layer,
                          model.findWeight(bias)
                              ? builder.getArrayAttr({symbol(bias)})
                              : ArrayAttr())
      .getResult(0);
}

void ModelBuilder::buildForward() {
  MLIRContext *context = builder.getContext();
  auto tokensType = RankedTensorType::get(
      {ShapedType::kDynamic}, builder.getI32Type(), RowsAttr::get(context));
  auto batchType = BatchType::get(context);
  RankedTensorType logitsType = outputs({model.vocab});
  auto type = builder.getFunctionType({tokensType, batchType}, {logitsType});
  auto forward =
      ForwardOp::create(builder, loc, builder.getStringAttr("forward"),
                        TypeAttr::get(type), ArrayAttr(), ArrayAttr());
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(&forward.getBody(), {},
                                     {tokensType, batchType}, {loc, loc});
  Value tokens = block->getArgument(0), batch = block->getArgument(1);

  RankedTensorType hiddenType = rows({model.hidden});
  Value x =
      EmbedOp::create(builder, loc, hiddenType, tokens, symbol("token_embd"));
  if (model.findWeight("position_embd"))
    x = AddPositionsOp::create(builder, loc, hiddenType, x,
                               symbol("position_embd"), batch);

  auto layers =
      LayersOp::create(builder, loc, TypeRange(hiddenType),
                       builder.getI64IntegerAttr(model.layers), ValueRange(x));
  {
    OpBuilder::InsertionGuard layersGuard(builder);
    Block *body =
        builder.createBlock(&layers.getBody(), {},
                            {hiddenType, builder.getIndexType()}, {loc, loc});
    Value layer = body->getArgument(1);
    Value h = body->getArgument(0);
    Value next = buildLayer(h, layer, batch);
    YieldOp::create(builder, loc, ValueRange(next));
  }

  // Selected first: only the rows whose logits are wanted are normalised.
  Value selected = SelectRowsOp::create(builder, loc, outputs({model.hidden}),
                                        layers.getResult(0), batch);
  Value y = norm(selected, "output_norm", Value());
  bool tied = !model.findWeight("output");
  Value logits = linear(y, tied ? "token_embd" : "output", Value(), logitsType);
  if (model.logitCap)
    logits = SoftCapOp::create(builder, loc, logitsType, logits,
                               builder.getF64FloatAttr(*model.logitCap));
  ReturnOp::create(builder, loc, ValueRange(logits));
}

Value ModelBuilder::buildLayer(Value hidden, Value layer, Value batch) {
  Value attention = buildAttention(hidden, layer, batch);
  Value middle =
      AddOp::create(builder, loc, hidden.getType(), hidden, attention);
  return AddOp::create(builder, loc, hidden.getType(), middle,
                       buildFeedForward(middle, layer));
}

Value ModelBuilder::buildAttention(Value hidden, Value layer, Value batch) {
  RankedTensorType queryType = rows({model.heads, model.headDim});
  RankedTensorType keyType = rows({model.kvHeads, model.headDim});
  Value n = norm(hidden, "attn_norm", layer);
  Value q = linear(n, "attn_q", layer, queryType);
  Value k = linear(n, "attn_k", layer, keyType);
  Value v = linear(n, "attn_v", layer, keyType);
  if (model.rope) {
    auto rotate = [&](Value heads) -> Value {
      return RopeOp::create(
          builder, loc, heads.getType(), heads, batch,
          RopeLayoutAttr::get(builder.getContext(), model.rope->layout),
          RealsAttr::get(builder.getContext(),
                         llvm::ArrayRef<double>(model.rope->invFreq)),
          builder.getF64FloatAttr(model.rope->scale));
    };
    q = rotate(q);
    k = rotate(k);
  }
  FlatSymbolRefAttr cache = symbol("kv");
  CacheAppendOp::create(builder, loc, k, v, cache, layer, batch);
  RankedTensorType scoresType = rows({model.heads, ShapedType::kDynamic});
  Value scores =
      ScoresOp::create(builder, loc, scoresType, q, cache, layer, batch,
                       builder.getF64FloatAttr(model.attentionScale));
  Value weights =
      MaskedSoftmaxOp::create(builder, loc, scoresType, scores, batch);
  Value context =
      ContextOp::create(builder, loc, queryType, weights, cache, layer, batch);
  return linear(context, "attn_output", layer, hidden.getType());
}

Value ModelBuilder::buildFeedForward(Value hidden, Value layer) {
  RankedTensorType ffnType = rows({model.ffn});
  auto kind = ActivationKindAttr::get(builder.getContext(), model.activation);
  Value n = norm(hidden, "ffn_norm", layer);
  Value inner;
  if (model.gated) {
    Value gate = linear(n, "ffn_gate", layer, ffnType);
    Value up = linear(n, "ffn_up", layer, ffnType);
    Value activated = ActivationOp::create(builder, loc, ffnType, gate, kind);
    inner = MulOp::create(builder, loc, ffnType, activated, up);
  } else {
    Value up = linear(n, "ffn_up", layer, ffnType);
    inner = ActivationOp::create(builder, loc, ffnType, up, kind);
  }
  return linear(inner, "ffn_down", layer, hidden.getType());
}

OwningOpRef<ModuleOp> kvc::buildModel(const ModelDescription &model,
                                      MLIRContext *context) {
  context->loadDialect<KvcDialect>();
  return ModelBuilder(model, context).build();
}

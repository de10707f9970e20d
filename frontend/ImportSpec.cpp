//===- ImportSpec.cpp -----------------------------------------------------===//
#include "frontend/ImportSpec.h"
#include "frontend/ImportGguf.h"
#include "frontend/ImportModel.h"
#include "frontend/Spec.h"

#include "codegen/formats/Seeded.h"

#include "llvm/ADT/StringSet.h"

#include <cmath>

using namespace mlir;
using namespace kvc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

namespace {
class SpecImporter {
public:
  SpecImporter(StringRef path, const Spec &spec, MLIRContext *context)
      : path(path), spec(spec), context(context) {}

  Expected<OwningOpRef<ModuleOp>> run();

private:
  void describe();
  Error openSource();
  Error addWeights();
  /// Rows firstRow .. firstRow+rows-1 of the weight `name`, which has `allRows`
  /// rows in all; `columns` is 0 for vectors.
  Error addRows(const Twine &symbol, StringRef name, bool layered,
                int64_t allRows, int64_t firstRow, int64_t rows,
                int64_t columns);
  Error add(const Twine &symbol, StringRef name, bool layered, int64_t rows,
            int64_t columns) {
    return addRows(symbol, name, layered, rows, 0, rows, columns);
  }
  Error addNorm(StringRef symbol, bool layered);
  Error addLinear(StringRef symbol, int64_t rows, int64_t columns, bool bias);
  Error addQkv();
  Expected<Attribute> slice(StringRef name, int64_t allRows, int64_t firstRow,
                            int64_t columns);

  StringRef path;
  const Spec &spec;
  MLIRContext *context;
  ModelDescription model;
  std::unique_ptr<GgufFile> file; // null for seeded weights
  llvm::StringSet<> names;        // every name the spec has
};
} // namespace

void SpecImporter::describe() {
  model.name = symbolFromText(spec.name);
  model.vocab = spec.vocab;
  model.hidden = spec.hidden;
  model.layers = spec.layers;
  model.heads = spec.heads;
  model.kvHeads = spec.kvHeads;
  model.headDim = spec.headDim;
  model.ffn = spec.ffn;
  model.maxContext = spec.maxContext;
  model.layerNorm = spec.layerNorm;
  model.eps = spec.eps;
  model.gated = spec.activation == Spec::Activation::SwiGlu;
  switch (spec.activation) {
  case Spec::Activation::Gelu:
    model.activation = ActivationKind::Gelu;
    break;
  case Spec::Activation::GeluTanh:
    model.activation = ActivationKind::GeluTanh;
    break;
  case Spec::Activation::SwiGlu:
    model.activation = ActivationKind::Silu;
    break;
  }
  if (spec.positions == Spec::Positions::Rotary) {
    RopeDescription rope;
    rope.layout =
        spec.rotary.interleaved ? RopeLayout::Interleaved : RopeLayout::Half;
    rope.invFreq = rotaryFrequencies(spec.rotary.theta, spec.rotary.dims);
    if (spec.rotary.llama3)
      scaleFrequencies(*spec.rotary.llama3, rope.invFreq);
    model.rope = std::move(rope);
  }
  model.attentionScale = 1.0 / std::sqrt(static_cast<double>(spec.headDim));
  model.logitCap = spec.logitCap;
  model.eos = spec.eos;
}

Error SpecImporter::openSource() {
  if (spec.seed) {
    SourceDescription source;
    source.symbol = "seed";
    source.seed = *spec.seed;
    model.sources.push_back(std::move(source));
    return Error::success();
  }
  Expected<std::unique_ptr<GgufFile>> opened = GgufFile::open(spec.gguf);
  if (!opened)
    return opened.takeError();
  file = std::move(*opened);
  model.sources.push_back(
      {"file", spec.gguf, file->size(), ggufHeaderDigest(*file), /*seed=*/0});
  return Error::success();
}

Expected<Attribute> SpecImporter::slice(StringRef name, int64_t allRows,
                                        int64_t firstRow, int64_t columns) {
  names.insert(name);
  if (!file) {
    SeededRange range = seededRange(name.str(), columns);
    // Vectors are small, and added to or multiplied with f32: they stay it.
    Format format = columns ? spec.format : Format::F32;
    return SliceAttr::get(
        context, FlatSymbolRefAttr::get(context, "seed"),
        static_cast<WeightFormat>(format),
        firstRow * std::max<int64_t>(columns, 1),
        StringAttr::get(context, name),
        DenseF64ArrayAttr::get(context, {range.center, range.scale}));
  }
  auto renamed = spec.names.find(name);
  StringRef tensorName =
      renamed == spec.names.end() ? name : StringRef(renamed->second);
  Expected<const GgufTensor *> tensor = file->getTensor(tensorName);
  if (!tensor)
    return tensor.takeError();
  bool fits =
      columns ? (*tensor)->columns() == columns && (*tensor)->rows() == allRows
              : (*tensor)->columns() == allRows && (*tensor)->rows() == 1;
  if (!fits)
    return file->tensorError(
        tensorName,
        Twine((*tensor)->columns()) + " x " + Twine((*tensor)->rows()),
        Twine(columns ? columns : allRows) + " x " +
            Twine(columns ? allRows : 1) + ", as " + path + " says");
  const FormatInfo &format = formatInfo((*tensor)->format);
  if (!columns && firstRow % format.blockValues != 0)
    return file->tensorError(tensorName, format.name,
                             "a bias that can be cut at " + Twine(firstRow));
  int64_t skipped =
      columns ? firstRow * format.rowBytes(columns) : format.rowBytes(firstRow);
  return SliceAttr::get(context, FlatSymbolRefAttr::get(context, "file"),
                        static_cast<WeightFormat>((*tensor)->format),
                        static_cast<int64_t>((*tensor)->offset) + skipped,
                        StringAttr(), DenseF64ArrayAttr());
}

Error SpecImporter::addRows(const Twine &symbol, StringRef name, bool layered,
                            int64_t allRows, int64_t firstRow, int64_t rows,
                            int64_t columns) {
  WeightDescription weight;
  weight.symbol = symbol.str();
  weight.rows = rows;
  weight.columns = columns;
  for (int64_t n = 0, count = layered ? model.layers : 1; n < count; ++n) {
    std::string full =
        layered ? ("blk." + Twine(n) + "." + name).str() : name.str();
    Expected<Attribute> attribute = slice(full, allRows, firstRow, columns);
    if (!attribute)
      return attribute.takeError();
    weight.slices.push_back(*attribute);
  }
  model.weights.push_back(std::move(weight));
  return Error::success();
}

Error SpecImporter::addNorm(StringRef symbol, bool layered) {
  if (Error error =
          add(symbol, (symbol + ".weight").str(), layered, model.hidden, 0))
    return error;
  if (!spec.normBias)
    return Error::success();
  return add(symbol + "_b", (symbol + ".bias").str(), layered, model.hidden, 0);
}

Error SpecImporter::addLinear(StringRef symbol, int64_t rows, int64_t columns,
                              bool bias) {
  if (Error error = add(symbol, (symbol + ".weight").str(), /*layered=*/true,
                        rows, columns))
    return error;
  if (!bias)
    return Error::success();
  return add(symbol + "_b", (symbol + ".bias").str(), /*layered=*/true, rows,
             0);
}

Error SpecImporter::addQkv() {
  int64_t qRows = model.heads * model.headDim;
  int64_t kvRows = model.kvHeads * model.headDim;
  if (!spec.fusedQkv) {
    if (Error error = addLinear("attn_q", qRows, model.hidden, spec.qkvBias))
      return error;
    if (Error error = addLinear("attn_k", kvRows, model.hidden, spec.qkvBias))
      return error;
    return addLinear("attn_v", kvRows, model.hidden, spec.qkvBias);
  }
  // Three weights that are ranges of rows of the one tensor.
  struct Part {
    const char *symbol;
    int64_t firstRow;
    int64_t rows;
  };
  int64_t allRows = qRows + 2 * kvRows;
  for (const Part &part :
       {Part{"attn_q", 0, qRows}, Part{"attn_k", qRows, kvRows},
        Part{"attn_v", qRows + kvRows, kvRows}}) {
    if (Error error = addRows(part.symbol, "attn_qkv.weight", /*layered=*/true,
                              allRows, part.firstRow, part.rows, model.hidden))
      return error;
    if (!spec.qkvBias)
      continue;
    if (Error error =
            addRows(Twine(part.symbol) + "_b", "attn_qkv.bias",
                    /*layered=*/true, allRows, part.firstRow, part.rows, 0))
      return error;
  }
  return Error::success();
}

Error SpecImporter::addWeights() {
  int64_t hidden = model.hidden, ffn = model.ffn;
  if (Error error = add("token_embd", "token_embd.weight", /*layered=*/false,
                        model.vocab, hidden))
    return error;
  if (spec.positions == Spec::Positions::Learned)
    if (Error error = add("position_embd", "position_embd.weight",
                          /*layered=*/false, model.maxContext, hidden))
      return error;
  if (Error error = addNorm("attn_norm", /*layered=*/true))
    return error;
  if (Error error = addQkv())
    return error;
  if (Error error = addLinear("attn_output", hidden,
                              model.heads * model.headDim, spec.outputBias))
    return error;
  if (Error error = addNorm("ffn_norm", /*layered=*/true))
    return error;
  if (model.gated)
    if (Error error = addLinear("ffn_gate", ffn, hidden, spec.ffnBias))
      return error;
  if (Error error = addLinear("ffn_up", ffn, hidden, spec.ffnBias))
    return error;
  if (Error error = addLinear("ffn_down", hidden, ffn, spec.ffnBias))
    return error;
  if (Error error = addNorm("output_norm", /*layered=*/false))
    return error;
  if (!spec.tied)
    if (Error error = add("output", "output.weight", /*layered=*/false,
                          model.vocab, hidden))
      return error;
  for (const auto &entry : spec.names)
    if (!names.contains(entry.getKey()))
      return importError(path + ": key " +
                         ggufQuoted("weights.names." + entry.getKey().str()) +
                         ": found a name that the spec has no weight of, "
                         "rule: docs/SPEC_WEIGHTS.md lists them");
  return Error::success();
}

Expected<OwningOpRef<ModuleOp>> SpecImporter::run() {
  describe();
  if (Error error = openSource())
    return std::move(error);
  if (Error error = addWeights())
    return std::move(error);
  return buildModel(model, context);
}

Expected<OwningOpRef<ModuleOp>> kvc::importSpec(StringRef path,
                                                MLIRContext *context) {
  Expected<Spec> spec = readSpec(path);
  if (!spec)
    return spec.takeError();
  context->loadDialect<KvcDialect>();
  return SpecImporter(path, *spec, context).run();
}

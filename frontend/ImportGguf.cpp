//===- ImportGguf.cpp - GGUF files of architecture llama ------------------===//
#include "frontend/ImportGguf.h"
#include "frontend/GgufTokenizer.h"
#include "frontend/ImportModel.h"
#include "frontend/ImportRope.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/xxhash.h"

#include <cmath>

using namespace mlir;
using namespace kvc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

uint64_t kvc::ggufHeaderDigest(const GgufFile &file) {
  return llvm::xxh3_64bits(file.header());
}

namespace {

/// Sizes larger than these are no model's: they only keep products of them far
/// from overflow.
constexpr uint64_t MaxSize = 1 << 24;
constexpr uint64_t MaxLayers = 1 << 12;
constexpr uint64_t MaxPositions = uint64_t(1) << 31;

class LlamaImporter {
public:
  LlamaImporter(const GgufFile &file, MLIRContext *context)
      : file(file), context(context) {}

  Expected<OwningOpRef<ModuleOp>> run();

private:
  Error readSizes();
  Error readNumbers();
  Error checkKeys();
  Error readTokenizer();
  Error addWeights();
  Error checkTensors();

  /// A size of at least 1; `fallback` where the key may be absent. An array of
  /// one value a layer counts if its values agree.
  Error readSize(StringRef key, int64_t &value, uint64_t most = MaxSize,
                 std::optional<int64_t> fallback = std::nullopt);
  Error addWeight(StringRef symbol, StringRef tensor, int64_t rows,
                  int64_t columns, bool layered, bool optional = false);
  Expected<Attribute> slice(const GgufTensor &tensor, int64_t rows,
                            int64_t columns);

  const GgufFile &file;
  MLIRContext *context;
  ModelDescription model;
  llvm::StringSet<> used;
};

} // namespace

Error LlamaImporter::readSize(StringRef key, int64_t &value, uint64_t most,
                              std::optional<int64_t> fallback) {
  if (fallback && !file.has(key)) {
    value = *fallback;
    return Error::success();
  }
  uint64_t found = 0;
  const GgufValue *entry = file.find(key);
  if (entry && entry->type == GgufType::Array) {
    Expected<GgufArray> array = file.getIntegers(key);
    if (!array)
      return array.takeError();
    if (array->size() == 0)
      return file.keyError(key, "an empty array", "one value a layer");
    int64_t first = array->integer(0);
    for (uint64_t i = 1; i < array->size(); ++i)
      if (array->integer(i) != first)
        return file.keyError(key,
                             Twine(first) + " in layer 0 and " +
                                 Twine(array->integer(i)) + " in layer " +
                                 Twine(i),
                             "every layer has the same size");
    found = first < 0 ? 0 : static_cast<uint64_t>(first);
  } else {
    Expected<uint64_t> number = file.getU64(key);
    if (!number)
      return number.takeError();
    found = *number;
  }
  if (found < 1 || found > most)
    return file.keyError(key, Twine(found), "1 to " + Twine(most));
  value = static_cast<int64_t>(found);
  return Error::success();
}

Error LlamaImporter::readSizes() {
  if (Error error = readSize("llama.block_count", model.layers, MaxLayers))
    return error;
  if (Error error = readSize("llama.embedding_length", model.hidden))
    return error;
  if (Error error = readSize("llama.feed_forward_length", model.ffn))
    return error;
  if (Error error = readSize("llama.attention.head_count", model.heads))
    return error;
  if (Error error = readSize("llama.attention.head_count_kv", model.kvHeads,
                             MaxSize, model.heads))
    return error;
  if (Error error =
          readSize("llama.context_length", model.maxContext, MaxPositions))
    return error;
  if (model.heads % model.kvHeads != 0)
    return file.keyError("llama.attention.head_count_kv", Twine(model.kvHeads),
                         "divides llama.attention.head_count, which is " +
                             Twine(model.heads));
  std::optional<int64_t> headDim;
  if (model.hidden % model.heads == 0)
    headDim = model.hidden / model.heads;
  if (Error error = readSize("llama.attention.key_length", model.headDim,
                             MaxSize, headDim))
    return error;
  int64_t valueDim = 0;
  if (Error error = readSize("llama.attention.value_length", valueDim, MaxSize,
                             model.headDim))
    return error;
  if (valueDim != model.headDim)
    return file.keyError("llama.attention.value_length", Twine(valueDim),
                         "equals the keys' length, which is " +
                             Twine(model.headDim));

  // The head's rows are the vocabulary; a key beside it must not contradict.
  Expected<const GgufTensor *> embedding = file.getTensor("token_embd.weight");
  if (!embedding)
    return embedding.takeError();
  model.vocab = (*embedding)->rows();
  if (model.vocab < 1 || static_cast<uint64_t>(model.vocab) > MaxSize)
    return file.tensorError("token_embd.weight", Twine(model.vocab) + " rows",
                            "1 to " + Twine(MaxSize));
  int64_t vocabKey = 0;
  if (Error error =
          readSize("llama.vocab_size", vocabKey, MaxSize, model.vocab))
    return error;
  if (vocabKey != model.vocab)
    return file.keyError("llama.vocab_size", Twine(vocabKey),
                         "equals the rows of token_embd.weight, which are " +
                             Twine(model.vocab));
  return Error::success();
}

Error LlamaImporter::readNumbers() {
  StringRef epsKey = "llama.attention.layer_norm_rms_epsilon";
  Expected<double> eps = file.getF64(epsKey);
  if (!eps)
    return eps.takeError();
  if (!(*eps >= 0.0 && *eps < 1.0))
    return file.keyError(epsKey, Twine(std::to_string(*eps)), "0 to 1");
  model.eps = *eps;

  model.attentionScale = 1.0 / std::sqrt(static_cast<double>(model.headDim));
  StringRef scaleKey = "llama.attention.scale";
  Expected<std::optional<double>> scale = file.findF64(scaleKey);
  if (!scale)
    return scale.takeError();
  if (*scale && **scale != 0.0) {
    if (!std::isfinite(**scale))
      return file.keyError(scaleKey, Twine(std::to_string(**scale)),
                           "a finite number");
    model.attentionScale = **scale;
  }

  Expected<RopeDescription> rope =
      importRope(file, "llama", model.headDim, model.maxContext);
  if (!rope)
    return rope.takeError();
  // Rows of q and k are permuted for pairs (2i, 2i+1).
  rope->layout = RopeLayout::Interleaved;
  model.rope = std::move(*rope);
  used.insert("rope_freqs.weight");
  return Error::success();
}

/// Keys of llama.* that are read, or say nothing that a result depends on.
static bool isKnownKey(StringRef key) {
  static const llvm::StringSet<> known = {
      "llama.attention.head_count",
      "llama.attention.head_count_kv",
      "llama.attention.key_length",
      "llama.attention.layer_norm_rms_epsilon",
      "llama.attention.scale",
      "llama.attention.value_length",
      "llama.block_count",
      "llama.context_length",
      "llama.embedding_length",
      "llama.feed_forward_length",
      "llama.vocab_size",
      // Of the original checkpoint's layout and of training.
      "llama.tensor_data_layout",
      "llama.leading_dense_block_count",
  };
  return known.contains(key) || key.starts_with("llama.rope.");
}

Error LlamaImporter::checkKeys() {
  // The blocks' layouts were others before version 2.
  StringRef blocksKey = "general.quantization_version";
  Expected<std::optional<uint64_t>> blocks = file.findU64(blocksKey);
  if (!blocks)
    return blocks.takeError();
  if (blocks->value_or(2) != 2)
    return file.keyError(blocksKey, Twine(**blocks), "2");
  for (StringRef key : file.keys()) {
    if (key == "split.count") {
      Expected<uint64_t> count = file.getU64(key);
      if (!count)
        return count.takeError();
      if (*count > 1)
        return file.keyError(key, Twine(*count),
                             "a model in one file (merge the parts first)");
    }
    if (!key.starts_with("llama.") || isKnownKey(key))
      continue;
    // These have a value that means "not used".
    const GgufValue *value = file.find(key);
    bool number = value->type == GgufType::F32 || value->type == GgufType::F64;
    bool truth = value->type == GgufType::Bool;
    bool neutral = false;
    if (number) {
      Expected<double> found = file.getF64(key);
      if (!found)
        return found.takeError();
      bool isFactor = key.ends_with("_scale");
      neutral = *found == 0.0 || (isFactor && *found == 1.0);
    } else if (truth) {
      Expected<bool> found = file.getBool(key);
      if (!found)
        return found.takeError();
      neutral = *found == (key == "llama.attention.causal");
    } else if (value->type != GgufType::Array &&
               value->type != GgufType::String) {
      Expected<uint64_t> found = file.getU64(key);
      if (!found)
        return found.takeError();
      // A window as long as the context hides nothing.
      neutral =
          *found == 0 || (key == "llama.attention.sliding_window" &&
                          *found >= static_cast<uint64_t>(model.maxContext));
    }
    if (!neutral)
      return file.keyError(key, "a value that changes the model",
                           "a setting that kvc knows for architecture llama");
  }
  return Error::success();
}

Error LlamaImporter::readTokenizer() {
  Expected<std::optional<StringRef>> kind =
      file.findString("tokenizer.ggml.model");
  if (!kind)
    return kind.takeError();
  if (!*kind || **kind == "none" || **kind == "no_vocab")
    return Error::success();
  Expected<TokenizerData> tokenizer = tokenizerFromGguf(file);
  if (!tokenizer)
    return tokenizer.takeError();
  int64_t tokens = static_cast<int64_t>(tokenizer->tokens.size());
  if (tokens > model.vocab)
    return file.keyError("tokenizer.ggml.tokens", Twine(tokens) + " tokens",
                         "at most the rows of token_embd.weight, which are " +
                             Twine(model.vocab));
  model.tokenizer = "file";
  model.vocabTokens = tokens;
  for (int64_t id :
       {tokenizer->special.eos, tokenizer->special.eot, tokenizer->special.eom})
    if (id != kNoToken && !llvm::is_contained(model.eos, id))
      model.eos.push_back(id);
  llvm::sort(model.eos);
  return Error::success();
}

static std::string dimsText(ArrayRef<int64_t> dims) {
  std::string text;
  for (int64_t dim : dims)
    text += (text.empty() ? "" : " x ") + std::to_string(dim);
  return "[" + text + "]";
}

Expected<Attribute> LlamaImporter::slice(const GgufTensor &tensor, int64_t rows,
                                         int64_t columns) {
  SmallVector<int64_t> expected;
  if (columns)
    expected.push_back(columns);
  expected.push_back(rows);
  // Trailing dimensions of 1 are how some writers pad.
  ArrayRef<int64_t> dims = tensor.dims;
  while (dims.size() > expected.size() && dims.back() == 1)
    dims = dims.drop_back();
  if (dims != ArrayRef<int64_t>(expected))
    return file.tensorError(tensor.name, "shape " + dimsText(tensor.dims),
                            "shape " + dimsText(expected));
  used.insert(tensor.name);
  return SliceAttr::get(context, FlatSymbolRefAttr::get(context, "file"),
                        static_cast<WeightFormat>(tensor.format),
                        static_cast<int64_t>(tensor.offset), StringAttr(),
                        DenseF64ArrayAttr());
}

Error LlamaImporter::addWeight(StringRef symbol, StringRef tensor, int64_t rows,
                               int64_t columns, bool layered, bool optional) {
  WeightDescription weight;
  weight.symbol = symbol.str();
  weight.rows = rows;
  weight.columns = columns;
  int64_t count = layered ? model.layers : 1;
  auto nameOf = [&](int64_t layer) {
    return layered ? ("blk." + Twine(layer) + "." + tensor).str()
                   : tensor.str();
  };
  // A bias is in every layer or in none.
  if (optional && llvm::none_of(llvm::seq<int64_t>(0, count), [&](int64_t n) {
        return file.findTensor(nameOf(n));
      }))
    return Error::success();
  for (int64_t layer = 0; layer < count; ++layer) {
    Expected<const GgufTensor *> found = file.getTensor(nameOf(layer));
    if (!found)
      return found.takeError();
    Expected<Attribute> attribute = slice(**found, rows, columns);
    if (!attribute)
      return attribute.takeError();
    weight.slices.push_back(*attribute);
  }
  model.weights.push_back(std::move(weight));
  return Error::success();
}

Error LlamaImporter::addWeights() {
  struct Entry {
    const char *symbol;
    const char *tensor;
    int64_t rows;
    int64_t columns;
    bool layered;
    bool optional = false;
  };
  int64_t hidden = model.hidden, qRows = model.heads * model.headDim,
          kvRows = model.kvHeads * model.headDim, ffn = model.ffn;
  const Entry entries[] = {
      {"token_embd", "token_embd.weight", model.vocab, hidden, false},
      {"attn_norm", "attn_norm.weight", hidden, 0, true},
      {"attn_q", "attn_q.weight", qRows, hidden, true},
      {"attn_q_b", "attn_q.bias", qRows, 0, true, true},
      {"attn_k", "attn_k.weight", kvRows, hidden, true},
      {"attn_k_b", "attn_k.bias", kvRows, 0, true, true},
      {"attn_v", "attn_v.weight", kvRows, hidden, true},
      {"attn_v_b", "attn_v.bias", kvRows, 0, true, true},
      {"attn_output", "attn_output.weight", hidden, qRows, true},
      {"attn_output_b", "attn_output.bias", hidden, 0, true, true},
      {"ffn_norm", "ffn_norm.weight", hidden, 0, true},
      {"ffn_gate", "ffn_gate.weight", ffn, hidden, true},
      {"ffn_gate_b", "ffn_gate.bias", ffn, 0, true, true},
      {"ffn_up", "ffn_up.weight", ffn, hidden, true},
      {"ffn_up_b", "ffn_up.bias", ffn, 0, true, true},
      {"ffn_down", "ffn_down.weight", hidden, ffn, true},
      {"ffn_down_b", "ffn_down.bias", hidden, 0, true, true},
      {"output_norm", "output_norm.weight", hidden, 0, false},
      {"output", "output.weight", model.vocab, hidden, false, true},
  };
  for (const Entry &entry : entries)
    if (Error error = addWeight(entry.symbol, entry.tensor, entry.rows,
                                entry.columns, entry.layered, entry.optional))
      return error;
  return Error::success();
}

Error LlamaImporter::checkTensors() {
  for (const GgufTensor &tensor : file.tensors()) {
    // Old files carry the rotary frequencies, which follow from the keys.
    if (used.contains(tensor.name) ||
        tensor.name.ends_with(".attn_rot_embd.weight"))
      continue;
    return file.tensorError(tensor.name, "a tensor that is not used",
                            "tensors of architecture llama with " +
                                Twine(model.layers) + " layers");
  }
  return Error::success();
}

Expected<OwningOpRef<ModuleOp>> LlamaImporter::run() {
  if (Error error = readSizes())
    return std::move(error);
  if (Error error = checkKeys())
    return std::move(error);
  if (Error error = readNumbers())
    return std::move(error);
  if (Error error = addWeights())
    return std::move(error);
  if (Error error = checkTensors())
    return std::move(error);
  if (Error error = readTokenizer())
    return std::move(error);
  Expected<std::optional<StringRef>> name = file.findString("general.name");
  if (!name)
    return name.takeError();
  model.name = symbolFromText(name->value_or("model"));
  model.sources.push_back({"file", file.path().str(), file.size(),
                           ggufHeaderDigest(file), /*seed=*/0});
  return buildModel(model, context);
}

Expected<OwningOpRef<ModuleOp>> kvc::importGguf(StringRef path,
                                                MLIRContext *context) {
  Expected<std::unique_ptr<GgufFile>> file = GgufFile::open(path);
  if (!file)
    return file.takeError();
  Expected<StringRef> architecture = (*file)->getString("general.architecture");
  if (!architecture)
    return architecture.takeError();
  if (*architecture != "llama")
    return (*file)->keyError("general.architecture", ggufQuoted(*architecture),
                             "'llama', the architecture that kvc knows");
  // Load what slices need before there is a module to hold them.
  context->loadDialect<KvcDialect>();
  return LlamaImporter(**file, context).run();
}

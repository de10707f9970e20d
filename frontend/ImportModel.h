//===- ImportModel.h - From a model's description to L1 -------------------===//
//
// What every importer fills in and the one place that writes L1 from it. A
// description is complete and consistent: importers check what they read, so
// that a refusal can name the file and the key.
#ifndef KVC_FRONTEND_IMPORTMODEL_H
#define KVC_FRONTEND_IMPORTMODEL_H

#include "dialect/KvcDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace kvc {

/// Where the values of weights come from: a file, or a seed.
struct SourceDescription {
  std::string symbol;
  std::string path; // empty: generated from `seed`
  uint64_t size = 0;
  uint64_t headerDigest = 0;
  uint64_t seed = 0;
};

/// A weight and its slices, one a layer. `columns` is 0 for vectors.
struct WeightDescription {
  std::string symbol;
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<mlir::Attribute> slices;
};

struct RopeDescription {
  RopeLayout layout = RopeLayout::Half;
  std::vector<double> invFreq;
  double scale = 1.0;
};

/// A pre-norm decoder: h += output(attention(attn_norm(h))), h +=
/// ffn(ffn_norm(h)), and the head of output_norm(h).
struct ModelDescription {
  std::string name;
  int64_t vocab = 0;
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kvHeads = 0;
  int64_t headDim = 0;
  int64_t ffn = 0;
  int64_t maxContext = 0;

  bool layerNorm = false; // RMS norm otherwise
  double eps = 0.0;
  ActivationKind activation = ActivationKind::Silu;
  bool gated = true; // down(activation(gate) * up)
  std::optional<RopeDescription> rope;
  double attentionScale = 0.0;
  std::optional<double> logitCap; // of kvc.soft_cap

  std::vector<int64_t> eos;
  std::optional<int64_t> vocabTokens;
  std::string tokenizer; // the source that has one, or empty

  std::vector<SourceDescription> sources;
  /// By the names that docs/SPEC_WEIGHTS.md gives, less the layer and
  /// ".weight"; a bias has "_b" behind it. Biases exist where they are listed,
  /// learned positions where position_embd is, an untied head where output is.
  std::vector<WeightDescription> weights;

  const WeightDescription *findWeight(llvm::StringRef symbol) const;
};

/// The module with the description's kvc.model.
mlir::OwningOpRef<mlir::ModuleOp> buildModel(const ModelDescription &model,
                                             mlir::MLIRContext *context);

/// A name made of lower-case letters, digits and underscores: names in model
/// files are free text, symbols end up in object files.
std::string symbolFromText(llvm::StringRef text);

/// A one-line error.
llvm::Error importError(const llvm::Twine &message);

/// The pow(theta, -2i/dims) of a rotary embedding of `dims` dimensions.
std::vector<double> rotaryFrequencies(double theta, int64_t dims);

/// How Llama 3 stretches its positions: frequencies that turn fewer than `low`
/// times within `context` positions are divided by `factor`, those that turn
/// more than `high` times are kept, with a linear ramp between.
struct Llama3Scaling {
  double factor = 1.0;
  double low = 1.0;
  double high = 4.0;
  int64_t context = 8192;
};
void scaleFrequencies(const Llama3Scaling &scaling,
                      std::vector<double> &frequencies);

} // namespace kvc

#endif // KVC_FRONTEND_IMPORTMODEL_H

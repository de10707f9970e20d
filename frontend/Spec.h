//===- Spec.h - JSON specs: docs/SPEC_WEIGHTS.md in a struct --------------===//
#ifndef KVC_FRONTEND_SPEC_H
#define KVC_FRONTEND_SPEC_H

#include "codegen/formats/Format.h"
#include "frontend/ImportModel.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kvc {

/// A checked spec: every size is positive and they fit each other.
struct Spec {
  enum class Activation { Gelu, GeluTanh, SwiGlu };
  enum class Positions { None, Learned, Rotary };
  struct Rotary {
    double theta = 0.0;
    int64_t dims = 0;
    bool interleaved = false;
    std::optional<Llama3Scaling> llama3;
  };

  std::string name;
  int64_t vocab = 0;
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kvHeads = 0;
  int64_t headDim = 0;
  int64_t ffn = 0;
  int64_t maxContext = 0;

  bool layerNorm = false; // rms_norm otherwise
  bool normBias = false;
  double eps = 0.0;
  Activation activation = Activation::Gelu;
  Positions positions = Positions::None;
  Rotary rotary; // Positions::Rotary only
  bool fusedQkv = false;
  bool qkvBias = false;
  bool outputBias = false;
  bool ffnBias = false;
  bool tied = false;
  std::optional<double> logitCap;
  std::vector<int64_t> eos;

  std::optional<uint64_t> seed;       // else the weights come from a file
  Format format = Format::F32;        // that seeded matrices are stored in
  std::string gguf;                   // its path, as found from here
  llvm::StringMap<std::string> names; // a spec's name to the file's
};

/// Reads and checks a spec. Refusals name the file, the key, what was found and
/// the rule.
llvm::Expected<Spec> readSpec(llvm::StringRef path);

} // namespace kvc

#endif // KVC_FRONTEND_SPEC_H

//===- ImportRope.cpp -----------------------------------------------------===//
#include "frontend/ImportRope.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Endian.h"

#include <cmath>

using namespace kvc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

namespace {
class RopeImporter {
public:
  RopeImporter(const GgufFile &file, StringRef architecture)
      : file(file), prefix((architecture + ".rope.").str()) {}

  Expected<RopeDescription> run(int64_t headDim, int64_t maxContext);

private:
  std::string key(StringRef name) const { return prefix + name.str(); }
  Error checkKeys();
  /// A positive finite number, or `fallback` where the key is absent.
  Error read(StringRef name, double fallback, double &value);
  Error divideByTensor(std::vector<double> &frequencies);
  Error applyYarn(double base, double factor, int64_t maxContext,
                  RopeDescription &rope);

  const GgufFile &file;
  std::string prefix;
};
} // namespace

Error RopeImporter::checkKeys() {
  static const llvm::StringSet<> known = {"dimension_count",
                                          "freq_base",
                                          "scale_linear",
                                          "scaling.type",
                                          "scaling.factor",
                                          "scaling.attn_factor",
                                          "scaling.original_context_length",
                                          "scaling.finetuned",
                                          "scaling.yarn_beta_fast",
                                          "scaling.yarn_beta_slow"};
  for (StringRef name : file.keys())
    if (name.starts_with(prefix) &&
        !known.contains(name.drop_front(prefix.size())))
      return file.keyError(name, "a setting of the rotary embedding",
                           "one that kvc knows");
  return Error::success();
}

Error RopeImporter::read(StringRef name, double fallback, double &value) {
  Expected<std::optional<double>> found = file.findF64(key(name));
  if (!found)
    return found.takeError();
  value = found->value_or(fallback);
  if (!std::isfinite(value) || value <= 0.0)
    return file.keyError(key(name), std::to_string(value), "a positive number");
  return Error::success();
}

Error RopeImporter::divideByTensor(std::vector<double> &frequencies) {
  StringRef name = "rope_freqs.weight";
  const GgufTensor *tensor = file.findTensor(name);
  if (!tensor)
    return Error::success();
  if (tensor->format != Format::F32)
    return file.tensorError(name, formatInfo(tensor->format).name, "f32");
  int64_t pairs = static_cast<int64_t>(frequencies.size());
  if (tensor->columns() != pairs || tensor->rows() != 1)
    return file.tensorError(name,
                            Twine(tensor->columns()) + " x " +
                                Twine(tensor->rows()) + " values",
                            "one for each of " + Twine(pairs) + " pairs");
  const uint8_t *bytes = file.data(*tensor).data();
  for (int64_t i = 0; i < pairs; ++i) {
    uint32_t bits = llvm::support::endian::read32le(bytes + 4 * i);
    float divisor = llvm::bit_cast<float>(bits);
    if (!std::isfinite(divisor) || divisor <= 0.0f)
      return file.tensorError(name, std::to_string(divisor) + " at " + Twine(i),
                              "positive numbers");
    frequencies[i] /= divisor;
  }
  return Error::success();
}

/// YaRN (Peng et al., 2023, arXiv:2309.00071): low frequencies are divided by
/// the factor, high ones kept, with a linear ramp over the pairs between.
Error RopeImporter::applyYarn(double base, double factor, int64_t maxContext,
                              RopeDescription &rope) {
  double original = 0.0, fast = 0.0, slow = 0.0;
  std::string lengthKey = key("scaling.original_context_length");
  Expected<std::optional<uint64_t>> length = file.findU64(lengthKey);
  if (!length)
    return length.takeError();
  original =
      static_cast<double>(length->value_or(static_cast<uint64_t>(maxContext)));
  if (original < 1.0)
    return file.keyError(lengthKey, "0", "at least 1");
  if (Error error = read("scaling.yarn_beta_fast", 32.0, fast))
    return error;
  if (Error error = read("scaling.yarn_beta_slow", 1.0, slow))
    return error;

  double dims = 2.0 * static_cast<double>(rope.invFreq.size());
  // The dimension whose wave turns `turns` times over the original context.
  auto dimension = [&](double turns) {
    return dims * std::log(original / (turns * 2.0 * M_PI)) /
           (2.0 * std::log(base));
  };
  double low = std::max(std::floor(dimension(fast)), 0.0);
  double high = std::min(std::ceil(dimension(slow)), dims - 1.0);
  double width = std::max(high - low, 0.001);
  for (size_t i = 0; i < rope.invFreq.size(); ++i) {
    double ramp = std::clamp((static_cast<double>(i) - low) / width, 0.0, 1.0);
    double kept = rope.invFreq[i];
    rope.invFreq[i] = kept / factor * ramp + kept * (1.0 - ramp);
  }
  rope.scale *= 0.1 * std::log(factor) + 1.0;
  return Error::success();
}

Expected<RopeDescription> RopeImporter::run(int64_t headDim,
                                            int64_t maxContext) {
  if (Error error = checkKeys())
    return std::move(error);

  Expected<std::optional<uint64_t>> dimsKey =
      file.findU64(key("dimension_count"));
  if (!dimsKey)
    return dimsKey.takeError();
  uint64_t dims = dimsKey->value_or(static_cast<uint64_t>(headDim));
  if (dims < 2 || dims % 2 != 0 || dims > static_cast<uint64_t>(headDim))
    return file.keyError(key("dimension_count"), Twine(dims),
                         "an even number up to the head's " + Twine(headDim));
  double base = 0.0;
  if (Error error = read("freq_base", 10000.0, base))
    return std::move(error);

  // A factor without a type is linear; scale_linear is its old name.
  double factor = 0.0, oldFactor = 0.0;
  if (Error error = read("scale_linear", 1.0, oldFactor))
    return std::move(error);
  if (Error error = read("scaling.factor", oldFactor, factor))
    return std::move(error);
  Expected<std::optional<StringRef>> type =
      file.findString(key("scaling.type"));
  if (!type)
    return type.takeError();
  StringRef scaling = type->value_or("linear");

  RopeDescription rope;
  if (Error error = read("scaling.attn_factor", 1.0, rope.scale))
    return std::move(error);
  rope.invFreq = rotaryFrequencies(base, static_cast<int64_t>(dims));
  if (Error error = divideByTensor(rope.invFreq))
    return std::move(error);
  if (scaling == "linear") {
    for (double &frequency : rope.invFreq)
      frequency /= factor;
  } else if (scaling == "yarn") {
    if (factor < 1.0 || base <= 1.0)
      return file.keyError(key("scaling.factor"), std::to_string(factor),
                           "at least 1 for yarn, and a freq_base above 1");
    if (Error error = applyYarn(base, factor, maxContext, rope))
      return std::move(error);
  } else if (scaling != "none") {
    return file.keyError(key("scaling.type"), ggufQuoted(scaling),
                         "none, linear or yarn (llama3's is the tensor "
                         "rope_freqs.weight)");
  }
  return rope;
}

Expected<RopeDescription> kvc::importRope(const GgufFile &file,
                                          StringRef architecture,
                                          int64_t headDim, int64_t maxContext) {
  return RopeImporter(file, architecture).run(headDim, maxContext);
}

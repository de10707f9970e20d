//===- RandomRanges.cpp - The arena's contents, by kind -------------------===//
#include "codegen/emit/Weights.h"
#include "codegen/formats/Format.h"

#include "llvm/ADT/STLExtras.h"

using namespace kvc;

/// What a layer of a weight is made of. Codes and scales of the other formats
/// lie too close together to be told apart: one kind of bytes serves for both.
static KvcWeightKind kindOf(WeightOp weight, int64_t layer) {
  if (!weight.getWeightType().isMatrix())
    return KVC_WEIGHT_F32;
  auto format = static_cast<Format>(weight.getSlice(layer).getFormat());
  switch (format) {
  case Format::F32:
    return KVC_WEIGHT_F32;
  case Format::F16:
    return KVC_WEIGHT_F16;
  case Format::BF16:
    return KVC_WEIGHT_BF16;
  default:
    return formatInfo(format).scale == ScaleKind::E8M0 ? KVC_WEIGHT_CODES8
                                                       : KVC_WEIGHT_CODES16;
  }
}

std::vector<KvcWeightRange> kvc::randomRanges(ModelOp model) {
  std::vector<KvcWeightRange> places;
  for (auto weight : model.getOps<WeightOp>())
    if (auto offsets = weight.getOffsets())
      for (auto [layer, offset] : llvm::enumerate(*offsets))
        places.push_back(
            {offset, 0, kindOf(weight, static_cast<int64_t>(layer))});
  llvm::sort(places, [](const KvcWeightRange &a, const KvcWeightRange &b) {
    return a.offset < b.offset;
  });
  // Padding behind a layer may hold numbers like it. Neighbours of one kind are
  // one range.
  std::vector<KvcWeightRange> ranges;
  int64_t end = model.getWeightsBytes().value_or(0);
  for (const KvcWeightRange &place : places)
    if (ranges.empty() || ranges.back().kind != place.kind)
      ranges.push_back(place);
  for (auto [index, range] : llvm::enumerate(ranges))
    range.bytes = (index + 1 < ranges.size() ? ranges[index + 1].offset : end) -
                  range.offset;
  return ranges;
}

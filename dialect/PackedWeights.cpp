//===- PackedWeights.cpp --------------------------------------------------===//
#include "dialect/PackedWeights.h"

using namespace mlir;
using namespace kvc;

std::string kvc::packingError(WeightType type, WeightFormat format) {
  auto stored = static_cast<Format>(format);
  if (TilesAttr tiles = type.getTiles())
    return tilesLayoutError(stored, type.getRows(), type.getColumns(),
                            tiles.getUnit(), tiles.getPair(),
                            tiles.getSplits());
  PanelsAttr panels = type.getPanels();
  return packedLayoutError(stored, type.getRows(), type.getColumns(),
                           static_cast<int>(panels.getLanes()),
                           panels.getUnit());
}

int64_t kvc::packedBytes(WeightType type, WeightFormat format) {
  if (type.getTiles())
    return tilesOf(type, format).totalBytes;
  if (type.getPanels())
    return panelsOf(type, format).totalBytes;
  return type.getRows() * 4;
}

PackedLayout kvc::panelsOf(WeightType type, WeightFormat format) {
  PanelsAttr panels = type.getPanels();
  return packedLayout(static_cast<Format>(format), type.getRows(),
                      type.getColumns(), static_cast<int>(panels.getLanes()),
                      panels.getUnit());
}

TilesLayout kvc::tilesOf(WeightType type, WeightFormat format) {
  TilesAttr tiles = type.getTiles();
  return tilesLayout(static_cast<Format>(format), type.getRows(),
                     type.getColumns(), tiles.getUnit(), tiles.getPair(),
                     tiles.getSplits());
}

//===- PackedWeights.h - What a weight's layout takes ---------------------===//
//
// From the layout attribute of a weight's type to the bytes that
// codegen/formats defines, for whoever places, packs, counts or reads them.
#ifndef KVC_DIALECT_PACKEDWEIGHTS_H
#define KVC_DIALECT_PACKEDWEIGHTS_H

#include "codegen/formats/Packing.h"
#include "codegen/formats/Tiles.h"
#include "dialect/KvcDialect.h"

namespace kvc {

/// Why one layer in `format` cannot be packed as `type`, a matrix with a
/// layout, says; empty if it can.
std::string packingError(WeightType type, WeightFormat format);

/// Bytes of one layer in the arena: as packed, or of a vector in f32.
int64_t packedBytes(WeightType type, WeightFormat format);

/// The layout of a matrix in panels or in tiles.
PackedLayout panelsOf(WeightType type, WeightFormat format);
TilesLayout tilesOf(WeightType type, WeightFormat format);

} // namespace kvc

#endif // KVC_DIALECT_PACKEDWEIGHTS_H

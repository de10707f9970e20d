//===- RandomModel.h - Models that nobody would write
//-----------------------===//
#ifndef KVC_TEST_UNIT_RANDOMMODEL_H
#define KVC_TEST_UNIT_RANDOMMODEL_H

#include <string>

/// L1 IR of random ops on random operands: residual streams that cross, swap
/// and are dropped, values that live past a layer, results that nobody uses.
/// Tokens below 16.
std::string randomModel(unsigned seed);

#endif // KVC_TEST_UNIT_RANDOMMODEL_H

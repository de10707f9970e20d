//===- RopeTables.cpp -----------------------------------------------------===//
#include "codegen/RopeTables.h"

using namespace kvc;

RopeTables::RopeTables(ModelOp model) {
  model.walk([&](RopeOp op) {
    if (!find(op))
      tables.push_back({op.getInvFreqAttr(), op.getScale().convertToDouble(),
                        floatsPerRow()});
  });
}

const RopeTables::Entry *RopeTables::find(RopeOp op) const {
  for (const Entry &entry : tables)
    if (entry.invFreq == op.getInvFreqAttr() &&
        entry.scale == op.getScale().convertToDouble())
      return &entry;
  return nullptr;
}

int64_t RopeTables::floatsPerRow() const {
  return tables.empty() ? 0 : tables.back().offset + 2 * tables.back().pairs();
}

int64_t RopeTables::offsetOf(RopeOp op) const {
  const Entry *entry = find(op);
  assert(entry && "an op of another model");
  return entry->offset;
}

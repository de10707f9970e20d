//===- Launches.cpp -------------------------------------------------------===//
#include "codegen/nvptx/Launches.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace kvc::nvptx;

static constexpr llvm::StringLiteral ExtentNames[] = {
    "fixed", "rows", "outputs", "tiles", "sequences", "positions"};

llvm::StringRef kvc::nvptx::extentName(Extent extent) {
  return ExtentNames[static_cast<int>(extent)];
}

static FailureOr<Extent> extentOf(Attribute attr) {
  if (auto name = dyn_cast_or_null<StringAttr>(attr))
    for (auto [index, known] : llvm::enumerate(ExtentNames))
      if (name.getValue() == known)
        return static_cast<Extent>(index);
  return failure();
}

DictionaryAttr Launch::toAttr(MLIRContext *context) const {
  Builder b(context);
  auto number = [&](int64_t value) { return b.getI64IntegerAttr(value); };
  auto dimension = [&](int index) {
    return b.getArrayAttr({b.getStringAttr(extentName(grid[index].extent)),
                           number(grid[index].per)});
  };
  return b.getDictionaryAttr({
      b.getNamedAttr("kernel", FlatSymbolRefAttr::get(context, kernel)),
      b.getNamedAttr("id", number(id)),
      b.getNamedAttr("layer", number(layer)),
      b.getNamedAttr("threads", number(threads)),
      b.getNamedAttr("shared", number(sharedBytes)),
      b.getNamedAttr("x", dimension(0)),
      b.getNamedAttr("y", dimension(1)),
      b.getNamedAttr("z", dimension(2)),
      b.getNamedAttr("blocks_per_sm", number(blocksPerSm)),
      b.getNamedAttr("when", b.getArrayAttr({b.getStringAttr(extentName(when)),
                                             number(atLeast), number(atMost)})),
  });
}

namespace {
/// Reads attributes, and remembers whether one was missing.
struct Reader {
  DictionaryAttr dictionary;
  bool failed = false;

  int64_t number(Attribute attr) {
    auto integer = dyn_cast_or_null<IntegerAttr>(attr);
    failed |= !integer;
    return integer ? integer.getInt() : 0;
  }
  int64_t number(StringRef name) { return number(dictionary.get(name)); }
  Attribute element(StringRef name, unsigned index) {
    auto array = dyn_cast_or_null<ArrayAttr>(dictionary.get(name));
    if (array && index < array.size())
      return array[index];
    failed = true;
    return {};
  }
  Extent extent(StringRef name) {
    FailureOr<Extent> extent = extentOf(element(name, 0));
    failed |= llvm::failed(extent);
    return llvm::failed(extent) ? Extent::Fixed : *extent;
  }
};
} // namespace

FailureOr<Launch> Launch::fromAttr(Attribute attr) {
  Reader read{dyn_cast_or_null<DictionaryAttr>(attr)};
  if (!read.dictionary)
    return failure();
  Launch launch;
  auto kernel =
      dyn_cast_or_null<FlatSymbolRefAttr>(read.dictionary.get("kernel"));
  if (!kernel)
    return failure();
  launch.kernel = kernel.getValue().str();
  launch.id = read.number("id");
  launch.layer = read.number("layer");
  launch.threads = read.number("threads");
  launch.sharedBytes = read.number("shared");
  const char *names[] = {"x", "y", "z"};
  for (int index = 0; index < 3; ++index) {
    launch.grid[index].extent = read.extent(names[index]);
    launch.grid[index].per = read.number(read.element(names[index], 1));
  }
  launch.blocksPerSm = read.number("blocks_per_sm");
  launch.when = read.extent("when");
  launch.atLeast = read.number(read.element("when", 1));
  launch.atMost = read.number(read.element("when", 2));
  if (read.failed)
    return failure();
  return launch;
}

void LaunchLists::attach(ModuleOp module) const {
  Builder b(module.getContext());
  auto list = [&](const std::vector<Launch> &launches) {
    SmallVector<Attribute> attrs;
    for (const Launch &launch : launches)
      attrs.push_back(launch.toAttr(b.getContext()));
    return b.getArrayAttr(attrs);
  };
  module->setAttr(
      AttrName,
      b.getDictionaryAttr({
          b.getNamedAttr("prefill", list(prefill)),
          b.getNamedAttr("decode", list(decode)),
          b.getNamedAttr("choose", list(choose)),
          b.getNamedAttr("partial_bytes", b.getI64IntegerAttr(partialBytes)),
          b.getNamedAttr("stage_bytes", b.getI64IntegerAttr(stageBytes)),
          b.getNamedAttr("counters_per_row",
                         b.getI64IntegerAttr(countersPerRow)),
          b.getNamedAttr("attention_rows", b.getI64IntegerAttr(attentionRows)),
      }));
}

FailureOr<LaunchLists> LaunchLists::of(ModuleOp module) {
  Reader read{module->getAttrOfType<DictionaryAttr>(AttrName)};
  if (!read.dictionary)
    return failure();
  LaunchLists lists;
  auto list = [&](StringRef name, std::vector<Launch> &launches) {
    auto array = dyn_cast_or_null<ArrayAttr>(read.dictionary.get(name));
    read.failed |= !array;
    if (!array)
      return;
    for (Attribute attr : array) {
      FailureOr<Launch> launch = Launch::fromAttr(attr);
      read.failed |= llvm::failed(launch);
      if (succeeded(launch))
        launches.push_back(std::move(*launch));
    }
  };
  list("prefill", lists.prefill);
  list("decode", lists.decode);
  list("choose", lists.choose);
  lists.partialBytes = read.number("partial_bytes");
  lists.stageBytes = read.number("stage_bytes");
  lists.countersPerRow = read.number("counters_per_row");
  lists.attentionRows = read.number("attention_rows");
  if (read.failed)
    return failure();
  return lists;
}

//===- ProgramInfo.cpp ----------------------------------------------------===//
#include "codegen/emit/ProgramInfo.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Constants.h"

using namespace kvc;
using llvm::Constant;

/// Rows of one sequence that share an attention tile and so read K and V once:
/// enough to spare the cache's bandwidth in prefill, few enough that a prompt
/// is many tiles for the workers to share.
static constexpr int64_t AttentionRows = 16;

// The constant below lists the fields in the order of the header.
static_assert(sizeof(KvcProgramInfo) == 184 &&
                  offsetof(KvcProgramInfo, weights_digest) == 64 &&
                  offsetof(KvcProgramInfo, rope_table) == 152 &&
                  offsetof(KvcProgramInfo, random_range) == 176,
              "change addProgramInfo with KvcProgramInfo");
static_assert(sizeof(KvcLaunch) == 64 && offsetof(KvcLaunch, at_most) == 60,
              "change launchList with KvcLaunch");
static_assert(sizeof(KvcDeviceCode) == 136 &&
                  offsetof(KvcDeviceCode, create) == 128,
              "change deviceCode with KvcDeviceCode");
static_assert(sizeof(KvcWeightRange) == 24,
              "change weightRanges with KvcWeightRange");
static_assert(sizeof(KvcRopeTable) == 24, "change ropeTable with KvcRopeTable");

namespace {
class InfoBuilder {
public:
  explicit InfoBuilder(llvm::Module &module)
      : module(module), context(module.getContext()) {}

  Constant *i32(uint64_t value) {
    return llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), value);
  }
  Constant *i64(uint64_t value) {
    return llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), value);
  }
  Constant *null() {
    return llvm::ConstantPointerNull::get(llvm::PointerType::get(context, 0));
  }
  Constant *real(double value) {
    return llvm::ConstantFP::get(llvm::Type::getDoubleTy(context), value);
  }
  Constant *constant(const llvm::Twine &name, Constant *value) {
    return new llvm::GlobalVariable(
        module, value->getType(),
        /*isConstant=*/true, llvm::GlobalValue::PrivateLinkage, value, name);
  }
  Constant *text(const llvm::Twine &name, llvm::StringRef value) {
    return constant(name, llvm::ConstantDataArray::getString(context, value));
  }
  Constant *record(llvm::ArrayRef<Constant *> fields) {
    return llvm::ConstantStruct::getAnon(context, fields);
  }
  Constant *array(const llvm::Twine &name, llvm::ArrayRef<Constant *> values) {
    if (values.empty())
      return null();
    auto *type = llvm::ArrayType::get(values.front()->getType(), values.size());
    return constant(name, llvm::ConstantArray::get(type, values));
  }
  Constant *ropeTable(const RopeTables &ropes);
  Constant *launchList(const llvm::Twine &name,
                       llvm::ArrayRef<nvptx::Launch> launches);
  Constant *deviceCode(const DeviceCode &device, llvm::StringRef cubin,
                       int64_t split);
  Constant *weightRanges(llvm::ArrayRef<KvcWeightRange> ranges);

private:
  llvm::Module &module;
  llvm::LLVMContext &context;
  llvm::StringMap<Constant *> kernelNames;
};
} // namespace

Constant *InfoBuilder::ropeTable(const RopeTables &ropes) {
  std::vector<Constant *> tables;
  for (const RopeTables::Entry &entry : ropes.entries()) {
    llvm::ArrayRef<double> values = entry.invFreq.getValues();
    Constant *frequencies =
        constant("kvc.inv_freq", llvm::ConstantDataArray::get(context, values));
    tables.push_back(record({i64(static_cast<uint64_t>(entry.pairs())),
                             real(entry.scale), frequencies}));
  }
  return array("kvc.rope_tables", tables);
}

Constant *InfoBuilder::launchList(const llvm::Twine &name,
                                  llvm::ArrayRef<nvptx::Launch> launches) {
  auto number = [&](auto value) { return i32(static_cast<uint64_t>(value)); };
  std::vector<Constant *> entries;
  for (const nvptx::Launch &launch : launches) {
    // A kernel is launched once a layer: its name stands in the program once.
    Constant *&kernel = kernelNames[launch.kernel];
    if (!kernel)
      kernel = text("kvc.kernel", launch.kernel);
    std::vector<Constant *> fields = {
        kernel, number(launch.id), number(launch.layer), number(launch.threads),
        number(launch.sharedBytes)};
    for (const nvptx::Launch::Dimension &dimension : launch.grid)
      fields.push_back(number(dimension.extent));
    for (const nvptx::Launch::Dimension &dimension : launch.grid)
      fields.push_back(number(dimension.per));
    fields.push_back(number(launch.blocksPerSm));
    fields.push_back(number(launch.when));
    fields.push_back(number(launch.atLeast));
    fields.push_back(number(launch.atMost));
    entries.push_back(record(fields));
  }
  return array(name, entries);
}

Constant *InfoBuilder::deviceCode(const DeviceCode &device,
                                  llvm::StringRef cubin, int64_t split) {
  const nvptx::LaunchLists &lists = device.launches;
  auto *pointer = llvm::PointerType::get(context, 0);
  auto create = module.getOrInsertFunction(
      "kvc_create_gpu_device",
      llvm::FunctionType::get(pointer, {pointer, pointer, pointer}, false));
  Constant *machine = null();
  if (!cubin.empty()) {
    machine = constant("kvc.cubin", llvm::ConstantDataArray::getString(
                                        context, cubin, /*AddNull=*/false));
    // The driver reads it in place, as the ELF file that it is.
    llvm::cast<llvm::GlobalVariable>(machine)->setAlignment(llvm::Align(64));
  }
  return constant(
      "kvc.device_code",
      record({text("kvc.chip", device.chip), text("kvc.ptx", device.ptx),
              i64(device.ptx.size()), machine, i64(cubin.size()),
              launchList("kvc.prefill_launches", lists.prefill),
              i64(lists.prefill.size()),
              launchList("kvc.decode_launches", lists.decode),
              i64(lists.decode.size()),
              launchList("kvc.choose_launches", lists.choose),
              i64(lists.choose.size()),
              i64(static_cast<uint64_t>(lists.stageBytes)),
              i64(static_cast<uint64_t>(lists.partialBytes)),
              i64(static_cast<uint64_t>(split)),
              i64(static_cast<uint64_t>(lists.countersPerRow)),
              i64(device.programmaticLaunch ? 1 : 0),
              llvm::cast<Constant>(create.getCallee())}));
}

Constant *InfoBuilder::weightRanges(llvm::ArrayRef<KvcWeightRange> ranges) {
  std::vector<Constant *> entries;
  for (const KvcWeightRange &range : ranges)
    entries.push_back(record({i64(static_cast<uint64_t>(range.offset)),
                              i64(static_cast<uint64_t>(range.bytes)),
                              i64(static_cast<uint64_t>(range.kind))}));
  return array("kvc.random_ranges", entries);
}

llvm::Error kvc::addProgramInfo(llvm::Module &module,
                                const ProgramParts &parts) {
  const SchedulePlan &plan = parts.plan;
  const RopeTables &ropes = parts.ropes;
  InfoBuilder b(module);
  Constant *prefill = module.getFunction("kvc_prefill");
  Constant *decode = module.getFunction("kvc_decode");
  if (!parts.device && (!prefill || !decode))
    return llvm::createStringError(
        "kvc.model @" + plan.model + ": found no program @" +
        (prefill ? "decode" : "prefill") +
        ", rule: a program has a prefill and a decode phase");
  int64_t attentionRows =
      parts.device ? parts.device->launches.attentionRows : AttentionRows;
  Constant *info = b.record({
      b.i32(KVC_ABI_VERSION),
      b.i32(sizeof(KvcBatch)),
      b.i32(sizeof(KvcArenas)),
      b.i32(sizeof(KvcProgramInfo)),
      b.text("kvc.target_cpu", plan.targetCpu),
      b.text("kvc.isa", parts.isa),
      b.text("kvc.plan", planJson(plan)),
      prefill ? prefill : b.null(),
      decode ? decode : b.null(),
      b.i64(plan.weightsBytes),
      b.i64(parts.digest),
      b.i64(plan.pageBytes),
      b.i64(plan.page),
      b.i64(plan.rowsBytes),
      b.i64(plan.outputsBytes),
      b.i64(plan.workerBytes),
      b.i64(attentionRows),
      b.i64(plan.vocab),
      b.i64(plan.maxContext),
      b.i64(ropes.floatsPerRow()),
      b.i64(ropes.entries().size()),
      b.ropeTable(ropes),
      parts.device ? b.deviceCode(*parts.device, parts.cubin, plan.split)
                   : b.null(),
      b.i64(parts.randomRanges.size()),
      b.weightRanges(parts.randomRanges),
  });
  new llvm::GlobalVariable(module, info->getType(), /*isConstant=*/true,
                           llvm::GlobalValue::ExternalLinkage, info,
                           "kvc_program");
  return llvm::Error::success();
}

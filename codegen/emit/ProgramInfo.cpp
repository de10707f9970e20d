//===- ProgramInfo.cpp ----------------------------------------------------===//
#include "codegen/emit/ProgramInfo.h"
#include "runtime/Abi.h"

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
  Constant *ropeTable(const RopeTables &ropes);

private:
  llvm::Module &module;
  llvm::LLVMContext &context;
};
} // namespace

Constant *InfoBuilder::ropeTable(const RopeTables &ropes) {
  if (ropes.entries().empty())
    return null();
  std::vector<Constant *> tables;
  for (const RopeTables::Entry &entry : ropes.entries()) {
    llvm::ArrayRef<double> values = entry.invFreq.getValues();
    Constant *frequencies =
        constant("kvc.inv_freq", llvm::ConstantDataArray::get(context, values));
    tables.push_back(record({i64(static_cast<uint64_t>(entry.pairs())),
                             real(entry.scale), frequencies}));
  }
  return constant(
      "kvc.rope_tables",
      llvm::ConstantArray::get(
          llvm::ArrayType::get(tables.front()->getType(), tables.size()),
          tables));
}

llvm::Error kvc::addProgramInfo(llvm::Module &module, const SchedulePlan &plan,
                                const RopeTables &ropes, llvm::StringRef isa,
                                uint64_t digest) {
  llvm::Function *prefill = module.getFunction("kvc_prefill");
  llvm::Function *decode = module.getFunction("kvc_decode");
  if (!prefill || !decode)
    return llvm::createStringError(
        "kvc.model @" + plan.model + ": found no program @" +
        (prefill ? "decode" : "prefill") +
        ", rule: a program has a prefill and a decode phase");
  InfoBuilder b(module);
  Constant *info = b.record({
      b.i32(KVC_ABI_VERSION),
      b.i32(sizeof(KvcBatch)),
      b.i32(sizeof(KvcArenas)),
      b.i32(sizeof(KvcProgramInfo)),
      b.text("kvc.target_cpu", plan.targetCpu),
      b.text("kvc.isa", isa),
      b.text("kvc.plan", planJson(plan)),
      prefill,
      decode,
      b.i64(plan.weightsBytes),
      b.i64(digest),
      b.i64(plan.pageBytes),
      b.i64(plan.page),
      b.i64(plan.rowsBytes),
      b.i64(plan.outputsBytes),
      b.i64(plan.workerBytes),
      b.i64(AttentionRows),
      b.i64(plan.vocab),
      b.i64(plan.maxContext),
      b.i64(ropes.floatsPerRow()),
      b.i64(ropes.entries().size()),
      b.ropeTable(ropes),
      b.null(),
      b.i64(0),
      b.null(),
  });
  new llvm::GlobalVariable(module, info->getType(), /*isConstant=*/true,
                           llvm::GlobalValue::ExternalLinkage, info,
                           "kvc_program");
  return llvm::Error::success();
}

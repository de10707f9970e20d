//===- Object.h - From a schedule to machine code -------------------------===//
#ifndef KVC_CODEGEN_EMIT_OBJECT_H
#define KVC_CODEGEN_EMIT_OBJECT_H

#include "codegen/emit/SchedulePlan.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>

namespace kvc {

/// A check that generated code makes of itself while it runs.
enum class Sanitizer { None, Address, Thread };

struct CodeOptions {
  Sanitizer sanitizer = Sanitizer::None;
  /// Whether LLVM's optimisations run. Programs are always optimised.
  bool optimize = true;
  /// For GPUs: the chip where it is not the target's own, the PTX ISA version
  /// times ten (0: that of the target), and the assembler whose machine
  /// code comes along (empty: none).
  std::string chip;
  int ptxVersion = 0;
  std::string ptxas;
  /// The program has no weights and fills its arena with numbers that mean
  /// nothing: for measurements.
  bool randomWeights = false;
};

/// Whether a model's program runs on GPUs.
bool runsOnGpu(ModelOp model);

/// Everything that `registry` needs before kvc IR can be lowered and emitted.
void registerEmissionDialects(mlir::DialectRegistry &registry);

/// The one kvc.model of a module that is a schedule (L4).
llvm::Expected<ModelOp> findScheduledModel(mlir::ModuleOp module);

/// Runs `build`'s passes over the module; diagnostics become the error's line.
llvm::Error runPasses(mlir::ModuleOp module,
                      llvm::function_ref<void(mlir::OpPassManager &)> build);

/// Refuses LLVM IR that does not verify, with the verifier's first line.
llvm::Error verifyCode(llvm::Module &code);

/// LLVM's optimisations as all of kvc's code gets them. `last` may add passes
/// behind them.
void optimizeModule(
    llvm::Module &module, llvm::TargetMachine &machine, bool unrollLoops,
    llvm::function_ref<void(llvm::ModulePassManager &)> last = {});

/// The code of a model's program, for the model's target.
class ProgramCode {
public:
  /// Lowers a copy of `module`, which keeps its schedule. `digest` is that of
  /// the packed weights, where it is known already.
  static llvm::Expected<ProgramCode>
  create(mlir::ModuleOp module, const CodeOptions &options,
         std::optional<uint64_t> digest = std::nullopt);

  llvm::Module &module() { return *code; }
  const SchedulePlan &plan() const { return schedulePlan; }
  /// The machine code, or its assembly.
  llvm::Error write(llvm::raw_pwrite_stream &os, llvm::CodeGenFileType type);

private:
  ProgramCode() = default;
  llvm::Error createForCpu(mlir::ModuleOp module, ModelOp model,
                           const CodeOptions &options, uint64_t digest);
  llvm::Error createForGpu(mlir::ModuleOp module, ModelOp model,
                           const CodeOptions &options, uint64_t digest);

  SchedulePlan schedulePlan;
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> code; // goes before its context
};

} // namespace kvc

#endif // KVC_CODEGEN_EMIT_OBJECT_H

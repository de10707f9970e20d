//===- KernelTable.cpp ----------------------------------------------------===//
#include "codegen/emit/KernelTable.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"

using namespace kvc;

namespace {
/// A kernel over all of its launches.
struct KernelUse {
  int64_t launches = 0;
  int64_t threads = 0;
  int64_t sharedBytes = 0;
};
} // namespace

llvm::Error kvc::printKernelTable(const DeviceCode &code,
                                  const std::string &ptxas,
                                  llvm::raw_ostream &os) {
  llvm::MapVector<llvm::StringRef, KernelUse> uses;
  for (const auto *list :
       {&code.launches.prefill, &code.launches.decode, &code.launches.choose})
    for (const nvptx::Launch &launch : *list) {
      KernelUse &use = uses[launch.kernel];
      ++use.launches;
      use.threads = std::max(use.threads, launch.threads);
      use.sharedBytes = std::max(use.sharedBytes, launch.sharedBytes);
    }
  std::vector<KernelResources> resources;
  if (!ptxas.empty()) {
    llvm::Expected<AssembledCode> assembled =
        assemblePtx(code.ptx, code.chip, ptxas);
    if (!assembled)
      return assembled.takeError();
    resources = std::move(assembled->kernels);
  }
  os << "kernels for " << code.chip
     << (ptxas.empty() ? " (no ptxas: scripts/ptxas provides it)" : "") << "\n"
     << llvm::format("  %-36s %8s %7s %9s %9s %9s %6s %8s %8s\n", "kernel",
                     "launches", "threads", "registers", "dynamic B",
                     "static B", "stack", "stores B", "loads B");
  int64_t spills = 0;
  for (auto &[name, use] : uses) {
    auto kernel =
        llvm::find_if(resources, [&, name = name](const KernelResources &each) {
          return each.kernel == name;
        });
    bool known = kernel != resources.end();
    auto number = [&](int64_t value) {
      return known ? std::to_string(value) : std::string("-");
    };
    KernelResources none;
    const KernelResources &said = known ? *kernel : none;
    spills += said.spillStoreBytes + said.spillLoadBytes;
    os << llvm::format(
        "  %-36s %8lld %7lld %9s %9lld %9s %6s %8s %8s\n", name.str().c_str(),
        static_cast<long long>(use.launches),
        static_cast<long long>(use.threads), number(said.registers).c_str(),
        static_cast<long long>(use.sharedBytes),
        number(said.sharedBytes).c_str(), number(said.stackBytes).c_str(),
        number(said.spillStoreBytes).c_str(),
        number(said.spillLoadBytes).c_str());
  }
  os << "  " << uses.size() << " kernels";
  if (!ptxas.empty())
    os << ", " << spills << " bytes of spills";
  os << "\n";
  return llvm::Error::success();
}

//===- Ptxas.cpp ----------------------------------------------------------===//
#include "codegen/emit/Ptxas.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace kvc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
namespace fs = llvm::sys::fs;

static Error ptxasError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

std::string kvc::findPtxas() {
  if (llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"}) {
    auto folder = llvm::sys::Process::GetEnv(variable);
    if (!folder || folder->empty())
      continue;
    std::string candidate = *folder + "/bin/ptxas";
    if (fs::can_execute(candidate))
      return candidate;
  }
  for (const char *candidate :
       {KVC_SOURCE_DIR "/.cache/ptxas/bin/ptxas", "/usr/local/cuda/bin/ptxas"})
    if (fs::can_execute(candidate))
      return candidate;
  return "";
}

/// The number before `unit` in a line such as "Used 32 registers".
static int64_t numberBefore(StringRef line, StringRef unit) {
  size_t at = line.find((" " + unit).str());
  if (at == StringRef::npos)
    return 0;
  StringRef before = line.substr(0, at);
  int64_t value = 0;
  before.take_back(before.size() - before.find_last_of(" ,:") - 1)
      .getAsInteger(10, value);
  return value;
}

std::vector<KernelResources> kvc::parsePtxasLog(StringRef log) {
  std::vector<KernelResources> kernels;
  // Functions that are no kernels have properties, too; they have no place
  // here.
  bool inKernel = false;
  while (!log.empty()) {
    StringRef line;
    std::tie(line, log) = log.split('\n');
    if (line.contains("Compiling entry function '")) {
      kernels.emplace_back();
      kernels.back().kernel = line.split('\'').second.split('\'').first.str();
      inKernel = true;
      continue;
    }
    if (kernels.empty())
      continue;
    KernelResources &kernel = kernels.back();
    if (line.contains("Function properties for"))
      inKernel = line.rtrim().ends_with(kernel.kernel);
    if (!inKernel)
      continue;
    if (line.contains("bytes stack frame")) {
      kernel.stackBytes = numberBefore(line, "bytes stack frame");
      kernel.spillStoreBytes = numberBefore(line, "bytes spill stores");
      kernel.spillLoadBytes = numberBefore(line, "bytes spill loads");
    }
    if (line.contains("registers")) {
      kernel.registers = numberBefore(line, "registers");
      kernel.barriers = numberBefore(line, "barriers");
      kernel.sharedBytes = numberBefore(line, "bytes smem");
    }
  }
  return kernels;
}

Expected<AssembledCode> kvc::assemblePtx(StringRef ptx, StringRef chip,
                                         const std::string &ptxas) {
  llvm::SmallString<128> text, cubin, log;
  for (auto [extension, path] :
       {std::pair{"ptx", &text}, std::pair{"cubin", &cubin},
        std::pair{"log", &log}})
    if (std::error_code code = fs::createTemporaryFile("kvc", extension, *path))
      return ptxasError("cannot write to the temporary folder: " +
                        code.message());
  llvm::FileRemover removeText(text), removeCubin(cubin), removeLog(log);
  {
    std::error_code status;
    llvm::raw_fd_ostream os(text, status);
    os << ptx;
    os.flush();
    if (status || os.has_error()) {
      os.clear_error();
      return ptxasError(text + ": cannot write PTX");
    }
  }
  std::string architecture = ("-arch=" + chip).str();
  std::vector<StringRef> arguments = {ptxas, "-v", architecture, "-O3",
                                      text,  "-o", cubin};
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log),
                                          StringRef(log)};
  std::string message;
  int status = llvm::sys::ExecuteAndWait(ptxas, arguments, std::nullopt,
                                         redirects, 0, 0, &message);
  auto output = llvm::MemoryBuffer::getFile(log);
  StringRef said = output ? (*output)->getBuffer() : StringRef();
  if (status != 0) {
    if (message.empty())
      message = said.ltrim().split('\n').first.str();
    return ptxasError(ptxas + ": refuses the PTX for " + chip + " (" +
                      Twine(status) + "): " + message);
  }
  AssembledCode code;
  code.kernels = parsePtxasLog(said);
  auto bytes = llvm::MemoryBuffer::getFile(cubin, /*IsText=*/false,
                                           /*RequiresNullTerminator=*/false);
  if (!bytes)
    return ptxasError(cubin + ": " + bytes.getError().message());
  code.cubin = (*bytes)->getBuffer().str();
  return code;
}

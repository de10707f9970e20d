//===- ProgramCache.cpp ---------------------------------------------------===//
#include "tools/kvc/ProgramCache.h"
#include "frontend/ImportModel.h"
#include "frontend/Spec.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/xxhash.h"
#include "llvm/TargetParser/Host.h"

#include <cerrno>
#include <sys/file.h>
#include <unistd.h>

using namespace kvc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
namespace fs = llvm::sys::fs;

static Error cacheError(StringRef path, const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 path + ": " + message);
}

/// Adds what tells one state of a file from another.
static Error addFile(StringRef path, llvm::raw_ostream &key) {
  llvm::SmallString<256> real;
  fs::file_status status;
  if (std::error_code code = fs::real_path(path, real))
    return cacheError(path, code.message());
  if (std::error_code code = fs::status(real, status))
    return cacheError(path, code.message());
  key << real << '\0' << status.getSize() << '\0'
      << status.getLastModificationTime().time_since_epoch().count() << '\0';
  return Error::success();
}

static Expected<uint64_t> programKey(StringRef model,
                                     const CompileChoices &choices,
                                     const LinkTools &tools,
                                     const char *toolPath) {
  std::string text;
  llvm::raw_string_ostream key(text);
  if (Error error = addFile(model, key))
    return std::move(error);
  Expected<ModelKind> kind = modelKind(model);
  if (!kind)
    return kind.takeError();
  if (*kind == ModelKind::Spec) {
    Expected<Spec> spec = readSpec(model);
    if (!spec)
      return spec.takeError();
    if (!spec->seed)
      if (Error error = addFile(spec->gguf, key))
        return std::move(error);
  }
  key << choices.target << '\0' << choices.targetCpu << '\0' << choices.chip
      << '\0' << choices.ptxVersion << '\0' << choices.vectorWidth << '\0'
      << choices.kvType << '\0' << choices.activations << '\0' << choices.ctx
      << '\0' << choices.sanitize << '\0' << KVC_VERSION << '\0';
  // `native` means another thing on another machine.
  key << llvm::sys::getHostCPUName() << '\0';
  auto features = llvm::sys::getHostCPUFeatures();
  std::vector<StringRef> present;
  for (const auto &feature : features)
    if (feature.second)
      present.push_back(feature.first());
  llvm::sort(present);
  key << llvm::join(present, ",") << '\0';
  // Two builds of one version make different programs.
  static char anchor;
  if (Error error = addFile(fs::getMainExecutable(toolPath, &anchor), key))
    return std::move(error);
  for (const char *library : {"/libKvcRuntime.a", "/libKvcRuntimeGpu.a"})
    if (Error error = addFile(tools.library + library, key))
      return std::move(error);
  return llvm::xxh3_64bits(text);
}

static Expected<std::string> cacheFolder() {
  llvm::SmallString<256> folder;
  if (auto xdg = llvm::sys::Process::GetEnv("XDG_CACHE_HOME");
      xdg && llvm::sys::path::is_absolute(*xdg))
    folder = *xdg;
  else if (auto home = llvm::sys::Process::GetEnv("HOME");
           home && !home->empty())
    llvm::sys::path::append(folder, *home, ".cache");
  else
    return llvm::createStringError("no folder to keep programs in: set "
                                   "XDG_CACHE_HOME or HOME");
  llvm::sys::path::append(folder, "kvc");
  if (std::error_code code = fs::create_directories(folder))
    return cacheError(folder, code.message());
  return folder.str().str();
}

namespace {
/// Holds an exclusive lock on a file until its end.
class FileLock {
public:
  FileLock() = default;
  FileLock(const FileLock &) = delete;
  FileLock &operator=(const FileLock &) = delete;
  ~FileLock() {
    if (descriptor >= 0)
      close(descriptor);
  }

  Error take(StringRef path, ProgressLines &progress) {
    if (std::error_code code = fs::openFileForReadWrite(
            path, descriptor, fs::CD_OpenAlways, fs::OF_None))
      return cacheError(path, code.message());
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0)
      return Error::success();
    progress.step("waiting for another kvc that makes this program");
    while (flock(descriptor, LOCK_EX) != 0)
      if (errno != EINTR)
        return cacheError(path, llvm::errnoAsErrorCode().message());
    progress.finish();
    return Error::success();
  }

private:
  int descriptor = -1;
};
} // namespace

Expected<std::string> kvc::cachedProgram(StringRef model,
                                         const CompileChoices &choices,
                                         ProgressLines &progress,
                                         const char *toolPath) {
  Expected<LinkTools> tools = LinkTools::find(toolPath);
  if (!tools)
    return tools.takeError();
  Expected<uint64_t> key = programKey(model, choices, *tools, toolPath);
  if (!key)
    return key.takeError();
  Expected<std::string> folder = cacheFolder();
  if (!folder)
    return folder.takeError();
  std::string program = *folder + "/" +
                        symbolFromText(llvm::sys::path::stem(model)) + "-" +
                        llvm::utohexstr(*key, /*LowerCase=*/true, 16);
  if (fs::can_execute(program))
    return program;
  FileLock lock;
  if (Error error = lock.take(program + ".lock", progress))
    return std::move(error);
  if (fs::can_execute(program))
    return program;
  ModelCompiler compiler(choices, progress);
  if (Error error = compiler.writeProgram(model, program, toolPath))
    return std::move(error);
  // Whoever waits holds it open; the next to come finds the program.
  if (std::error_code code = fs::remove(program + ".lock"))
    return cacheError(program + ".lock", code.message());
  return program;
}

//===- Executable.cpp - Links a program and puts its payload behind it ----===//
#include "codegen/emit/Executable.h"
#include "codegen/emit/ProgramInfo.h"
#include "codegen/emit/Weights.h"
#include "runtime/Abi.h"
#include "runtime/Payload.h"

#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Signals.h"

#include <unistd.h>

using namespace mlir;
using namespace kvc;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
namespace fs = llvm::sys::fs;

static Error emitError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

//===----------------------------------------------------------------------===//
// Tools
//===----------------------------------------------------------------------===//

Expected<LinkTools> LinkTools::find(const char *toolPath) {
  LinkTools tools;
  // Any symbol of this binary serves to find it where argv[0] does not.
  static char anchor;
  std::string self = fs::getMainExecutable(toolPath, &anchor);
  StringRef bin = llvm::sys::path::parent_path(self);
  for (const char *folder : {"../lib", "../lib/kvc"}) {
    llvm::SmallString<256> candidate(bin);
    llvm::sys::path::append(candidate, folder);
    llvm::sys::path::remove_dots(candidate, /*remove_dot_dot=*/true);
    if (!fs::exists(candidate + "/libKvcRuntime.a"))
      continue;
    tools.library = candidate.str().str();
    break;
  }
  if (tools.library.empty())
    return emitError(bin + ": found no ../lib/libKvcRuntime.a, rule: kvc's "
                           "tools stay in their build or install tree");
  // An installation may bring the library along.
  std::string bundled = tools.library + "/libpcre2-8.a";
  tools.pcre = fs::exists(bundled) ? bundled : KVC_PCRE2_ARCHIVE;
  tools.driver = KVC_LINK_DRIVER;
  if (!fs::can_execute(tools.driver)) {
    for (const char *name : {"clang++-22", "c++", "g++"}) {
      llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName(name);
      if (!found)
        continue;
      tools.driver = *found;
      return tools;
    }
    return emitError(Twine(KVC_LINK_DRIVER) +
                     ": found no C++ compiler, rule: programs are linked by "
                     "clang++-22, c++ or g++ on the PATH");
  }
  return tools;
}

/// The first line that a program wrote to `path`, for a message.
static std::string firstLine(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return "";
  return (*buffer)->getBuffer().ltrim().split('\n').first.str();
}

static Error link(StringRef object, StringRef output, Sanitizer sanitizer,
                  bool gpu, const LinkTools &tools) {
  const char *suffix = sanitizer == Sanitizer::Address  ? "Asan"
                       : sanitizer == Sanitizer::Thread ? "Tsan"
                                                        : "";
  auto library = [&](StringRef name) {
    return (tools.library + "/lib" + name + suffix + ".a").str();
  };
  if (!fs::exists(library("KvcRuntime")))
    return emitError(library("KvcRuntime") +
                     ": not found, rule: this kvc was built with it (ninja "
                     "KvcRuntimeMain" +
                     suffix + ")");
  std::vector<std::string> arguments = {tools.driver, "-o", output.str(),
                                        library("KvcRuntimeMain"),
                                        object.str()};
  if (gpu)
    arguments.insert(arguments.end(),
                     {library("KvcRuntimeGpu"), library("KvcSim")});
  arguments.insert(arguments.end(),
                   {library("KvcRuntime"), tools.pcre, "-static-libstdc++",
                    "-static-libgcc", "-pthread", "-ldl", "-lm",
                    "-Wl,--gc-sections"});
  if (sanitizer == Sanitizer::Address)
    arguments.push_back("-fsanitize=address,undefined");
  if (sanitizer == Sanitizer::Thread)
    arguments.push_back("-fsanitize=thread");

  llvm::SmallString<128> log;
  if (std::error_code code = fs::createTemporaryFile("kvc-link", "log", log))
    return emitError("cannot write to the temporary folder: " + code.message());
  llvm::FileRemover logRemover(log);
  std::vector<StringRef> views(arguments.begin(), arguments.end());
  std::string message;
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log),
                                          StringRef(log)};
  int status = llvm::sys::ExecuteAndWait(
      tools.driver, views, std::nullopt, redirects,
      /*SecondsToWait=*/0, /*MemoryLimit=*/0, &message);
  std::string line = firstLine(log);
  if (status == 0)
    return Error::success();
  return emitError(tools.driver + ": linking failed (" + Twine(status) +
                   "): " + (message.empty() ? line : message));
}

//===----------------------------------------------------------------------===//
// Payload
//===----------------------------------------------------------------------===//

/// Appends a payload to the open file of `output`.
static Expected<uint64_t> appendPayload(ModelOp model, SourceFiles &sources,
                                        int descriptor, StringRef path,
                                        bool withWeights = true) {
  Expected<std::vector<uint8_t>> tokenizer = sources.tokenizerBlob(model);
  if (!tokenizer)
    return tokenizer.takeError();
  PayloadWriter writer(descriptor, path.str());
  std::string message;
  if (!writer.begin(tokenizer->data(), tokenizer->size(), message))
    return emitError(message);
  if (withWeights)
    if (Error error =
            packWeights(model, sources, [&](ArrayRef<uint8_t> bytes) -> Error {
              if (writer.write(bytes.data(), bytes.size(), message))
                return Error::success();
              return emitError(message);
            }))
      return std::move(error);
  uint64_t digest = 0;
  if (!writer.finish(digest, message))
    return emitError(message);
  return digest;
}

Expected<uint64_t> kvc::writePayload(ModelOp model, SourceFiles &sources,
                                     OutputFile &output) {
  if (output.descriptor() < 0)
    return emitError(output.temporaryPath() +
                     ": is not a regular file, rule: weights go into one");
  return appendPayload(model, sources, output.descriptor(),
                       output.temporaryPath());
}

Expected<uint64_t> kvc::weightsDigest(ModelOp model, SourceFiles &sources) {
  PayloadHash hash;
  if (Error error =
          packWeights(model, sources, [&](ArrayRef<uint8_t> bytes) -> Error {
            hash.update(bytes.data(), bytes.size());
            return Error::success();
          }))
    return std::move(error);
  return hash.finish();
}

/// Where in a linked image a symbol's bytes lie.
static Expected<uint64_t> fileOffset(StringRef path, StringRef symbolName) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return emitError(path + ": " + buffer.getError().message());
  Expected<std::unique_ptr<llvm::object::ObjectFile>> object =
      llvm::object::ObjectFile::createELFObjectFile(**buffer);
  if (!object)
    return object.takeError();
  for (const llvm::object::SymbolRef &symbol : (*object)->symbols()) {
    Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    if (*name != symbolName)
      continue;
    Expected<uint64_t> address = symbol.getAddress();
    if (!address)
      return address.takeError();
    Expected<llvm::object::section_iterator> section = symbol.getSection();
    if (!section)
      return section.takeError();
    return llvm::object::ELFSectionRef(**section).getOffset() +
           (*address - (*section)->getAddress());
  }
  return emitError(path + ": the linked program has no symbol " + symbolName);
}

/// Puts the digest of the weights, known only now, where kvc_program has a
/// place for it.
static Error patchDigest(int descriptor, uint64_t infoOffset, uint64_t digest,
                         StringRef path) {
  off_t at =
      static_cast<off_t>(infoOffset + offsetof(KvcProgramInfo, weights_digest));
  uint64_t pending = 0;
  if (pread(descriptor, &pending, sizeof(pending), at) != sizeof(pending) ||
      pending != PendingDigest)
    return emitError(path + ": the linked program has no place for the digest "
                            "of its weights");
  if (pwrite(descriptor, &digest, sizeof(digest), at) != sizeof(digest))
    return emitError(path + ": cannot write the digest of the weights");
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

static Error writeObject(ModuleOp module, const CodeOptions &options,
                         StringRef path) {
  Expected<ProgramCode> code = ProgramCode::create(module, options);
  if (!code)
    return code.takeError();
  std::error_code status;
  llvm::raw_fd_ostream os(path, status);
  if (status)
    return emitError(path + ": " + status.message());
  if (Error error = code->write(os, llvm::CodeGenFileType::ObjectFile))
    return error;
  os.flush();
  if (std::error_code failed = os.error()) {
    os.clear_error();
    return emitError(path + ": " + failed.message());
  }
  return Error::success();
}

Error kvc::writeExecutable(ModuleOp module, SourceFiles &sources,
                           StringRef path, const ExecutableOptions &options) {
  auto progress = [&](StringRef step) {
    if (options.progress)
      options.progress(step);
  };
  Expected<ModelOp> model = findScheduledModel(module);
  if (!model)
    return model.takeError();
  // Made first: a place that cannot be written to is known before the work.
  Expected<OutputFile> output = OutputFile::create(path, /*executable=*/true);
  if (!output)
    return output.takeError();
  std::string temporary = output->temporaryPath().str();
  if (temporary == path)
    return emitError(path + ": is not a regular file, rule: a program is");

  llvm::SmallString<128> object;
  if (std::error_code code = fs::createTemporaryFile("kvc", "o", object))
    return emitError("cannot write to the temporary folder: " + code.message());
  llvm::FileRemover objectRemover(object);
  llvm::sys::RemoveFileOnSignal(object);
  bool gpu = runsOnGpu(*model);
  progress("generating code");
  CodeOptions code = options.code;
  code.randomWeights = options.weights == WeightsPlace::Random;
  if (Error error = writeObject(module, code, object))
    return error;
  progress("linking");
  if (Error error =
          link(object, temporary, options.code.sanitizer, gpu, options.tools))
    return error;
  Expected<uint64_t> infoOffset = fileOffset(temporary, "kvc_program");
  if (!infoOffset)
    return infoOffset.takeError();

  progress("packing weights");
  // The linker may have put a new file in the temporary's place.
  int program = -1;
  if (std::error_code code = fs::openFileForReadWrite(
          temporary, program, fs::CD_OpenExisting, fs::OF_None))
    return emitError(path + ": " + code.message());
  Expected<uint64_t> digest = [&]() -> Expected<uint64_t> {
    if (options.weights != WeightsPlace::Sidecar)
      return appendPayload(*model, sources, program, path,
                           options.weights == WeightsPlace::Embed);
    Expected<OutputFile> sidecar =
        OutputFile::create((path + ".weights").str());
    if (!sidecar)
      return sidecar.takeError();
    Expected<uint64_t> written = writePayload(*model, sources, *sidecar);
    if (!written)
      return written.takeError();
    if (Error error = sidecar->commit())
      return std::move(error);
    return written;
  }();
  Error patched = digest ? patchDigest(program, *infoOffset, *digest, path)
                         : digest.takeError();
  if (close(program) != 0 && !patched)
    patched = emitError(path + ": cannot write");
  if (patched)
    return patched;
  return output->commit();
}

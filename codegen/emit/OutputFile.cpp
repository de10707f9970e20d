//===- OutputFile.cpp -----------------------------------------------------===//
#include "codegen/emit/OutputFile.h"

#include "llvm/Support/Path.h"

#include <sys/stat.h>

using namespace kvc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
namespace fs = llvm::sys::fs;

static Error fileError(StringRef path, const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 path + ": " + message);
}

Error kvc::checkInputFile(StringRef path) {
  fs::file_status status;
  if (std::error_code code = fs::status(path, status))
    return fileError(path, code.message());
  if (fs::is_directory(status))
    return fileError(path, "is a directory, expected a file");
  return Error::success();
}

Expected<OutputFile> OutputFile::create(StringRef path, bool executable) {
  OutputFile output;
  output.path = path.str();
  output.executable = executable;
  fs::file_status status;
  bool exists = !fs::status(path, status) && fs::exists(status);
  if (exists && fs::is_directory(status))
    return fileError(path, "is a directory, expected a file to write");
  if (path == "-" || (exists && !fs::is_regular_file(status))) {
    std::error_code code;
    output.stream = std::make_unique<llvm::raw_fd_ostream>(path, code);
    if (code)
      return fileError(path, code.message());
    return output;
  }
  Expected<fs::TempFile> temporary = fs::TempFile::create(
      path + ".tmp%%%%%%%%", fs::owner_read | fs::owner_write);
  if (!temporary)
    return fileError(path, llvm::toString(temporary.takeError()));
  output.temporary = std::move(*temporary);
  output.stream = std::make_unique<llvm::raw_fd_ostream>(output.temporary->FD,
                                                         /*shouldClose=*/false);
  return output;
}

OutputFile::~OutputFile() {
  if (stream)
    stream->clear_error();
  stream.reset();
  if (temporary)
    llvm::consumeError(temporary->discard());
}

int OutputFile::descriptor() const { return temporary ? temporary->FD : -1; }

StringRef OutputFile::temporaryPath() const {
  return temporary ? StringRef(temporary->TmpName) : StringRef(path);
}

Error OutputFile::commit() {
  stream->flush();
  if (std::error_code code = stream->error()) {
    stream->clear_error();
    return fileError(path, code.message());
  }
  if (!temporary)
    return Error::success();
  // The mode a compiler gives its output: what the umask leaves.
  mode_t mask = umask(0);
  umask(mask);
  // By name: a linker puts a file of its own in the temporary's place.
  auto mode = static_cast<fs::perms>((executable ? 0777 : 0666) & ~mask);
  if (std::error_code code = fs::setPermissions(temporary->TmpName, mode))
    return fileError(path, code.message());
  stream.reset();
  Error error = temporary->keep(path);
  temporary.reset();
  if (error)
    return fileError(path, llvm::toString(std::move(error)));
  return Error::success();
}

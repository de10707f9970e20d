//===- OutputFile.h - Files that appear whole or not at all ---------------===//
#ifndef KVC_CODEGEN_EMIT_OUTPUTFILE_H
#define KVC_CODEGEN_EMIT_OUTPUTFILE_H

#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <memory>
#include <optional>
#include <string>

namespace kvc {

/// Output to `path`, written to a temporary file beside it and renamed by
/// commit(); without that call, or when a signal ends the program, nothing
/// remains. "-" is standard output; a device is written directly.
class OutputFile {
public:
  static llvm::Expected<OutputFile> create(llvm::StringRef path,
                                           bool executable = false);
  OutputFile(OutputFile &&) = default;
  ~OutputFile();

  llvm::raw_ostream &os() { return *stream; }
  /// The temporary file's descriptor, for writers that do without a stream; -1
  /// where the output is no file.
  int descriptor() const;
  /// Where the data goes until commit().
  llvm::StringRef temporaryPath() const;
  /// Puts the file in its place. An error of an earlier write is reported here.
  llvm::Error commit();

private:
  OutputFile() = default;

  std::string path;
  bool executable = false;
  std::optional<llvm::sys::fs::TempFile> temporary;
  std::unique_ptr<llvm::raw_fd_ostream> stream;
};

/// Refuses what is no regular file before anything opens it: "PATH: is a
/// directory".
llvm::Error checkInputFile(llvm::StringRef path);

} // namespace kvc

#endif // KVC_CODEGEN_EMIT_OUTPUTFILE_H

//===- ProgramCache.h - Programs that `kvc run` keeps ---------------------===//
#ifndef KVC_TOOLS_KVC_PROGRAMCACHE_H
#define KVC_TOOLS_KVC_PROGRAMCACHE_H

#include "tools/kvc/Model.h"

namespace kvc {

/// The path of the program of a model and choices, made if it is not in the
/// cache folder yet ($XDG_CACHE_HOME/kvc, or ~/.cache/kvc). It is found again
/// by the model file's path, size and time, the choices, the machine and kvc
/// itself. Of two that want the same program at once one makes it, the other
/// waits.
llvm::Expected<std::string> cachedProgram(llvm::StringRef model,
                                          const CompileChoices &choices,
                                          ProgressLines &progress,
                                          const char *toolPath);

} // namespace kvc

#endif // KVC_TOOLS_KVC_PROGRAMCACHE_H

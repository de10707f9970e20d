// A generated program, all but its `main`.
#ifndef KVC_RUNTIME_PROGRAM_H
#define KVC_RUNTIME_PROGRAM_H

#include "runtime/Abi.h"

namespace kvc {

/// Does what the command line says with a compiled program; returns the exit
/// status. Errors are one line on stderr.
int runProgram(const KvcProgramInfo &program, int argc,
               const char *const *argv);

} // namespace kvc

#endif // KVC_RUNTIME_PROGRAM_H

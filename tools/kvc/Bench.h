//===- Bench.h - Measures a program ---------------------------------------===//
#ifndef KVC_TOOLS_KVC_BENCH_H
#define KVC_TOOLS_KVC_BENCH_H

#include "tools/kvc/Model.h"

namespace kvc {

/// Runs `program` with 512 prompt tokens and 128 more (less where its context
/// is shorter), several times for each number of threads, and prints medians.
llvm::Error benchProgram(llvm::StringRef program, const SchedulePlan &plan,
                         const CommandLine &line, ProgressLines &progress);

} // namespace kvc

#endif // KVC_TOOLS_KVC_BENCH_H

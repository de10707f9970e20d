// What this machine offers: instruction sets and cores.
#ifndef KVC_RUNTIME_CPU_H
#define KVC_RUNTIME_CPU_H

#include <string>

namespace kvc {

/// Checks the comma-separated features a program was compiled for. On failure
/// the error names the first that is missing, this CPU and the way out.
bool checkInstructionSets(const char *features, const char *targetCpu,
                          std::string &error);

/// The processor's name as it states it itself.
std::string cpuName();

/// CPUs this process may run on: its affinity mask, and its control group's
/// quota where that is less. At least 1.
int availableCpus();

/// Physical cores among those: the default number of workers. At least 1.
int availableCores();

} // namespace kvc

#endif // KVC_RUNTIME_CPU_H

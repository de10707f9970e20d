#include "runtime/Cpu.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sched.h>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

namespace kvc {

namespace {
enum class Support { Yes, No, UnknownName };
} // namespace

// __builtin_cpu_supports wants literals, so every name a program may ask for is
// written here. The spellings are LLVM's; only `name` differs from GCC's.
static Support supports(std::string_view feature) {
#define KVC_FEATURE(name, builtin)                                             \
  if (feature == (name))                                                       \
    return __builtin_cpu_supports(builtin) ? Support::Yes : Support::No;
  KVC_FEATURE("cmov", "cmov")
  KVC_FEATURE("mmx", "mmx")
  KVC_FEATURE("sse", "sse")
  KVC_FEATURE("sse2", "sse2")
  KVC_FEATURE("sse3", "sse3")
  KVC_FEATURE("ssse3", "ssse3")
  KVC_FEATURE("sse4.1", "sse4.1")
  KVC_FEATURE("sse4.2", "sse4.2")
  KVC_FEATURE("popcnt", "popcnt")
  KVC_FEATURE("lzcnt", "lzcnt")
  KVC_FEATURE("movbe", "movbe")
  KVC_FEATURE("bmi", "bmi")
  KVC_FEATURE("bmi2", "bmi2")
  KVC_FEATURE("adx", "adx")
  KVC_FEATURE("aes", "aes")
  KVC_FEATURE("pclmul", "pclmul")
  KVC_FEATURE("gfni", "gfni")
  KVC_FEATURE("vaes", "vaes")
  KVC_FEATURE("vpclmulqdq", "vpclmulqdq")
  KVC_FEATURE("avx", "avx")
  KVC_FEATURE("avx2", "avx2")
  KVC_FEATURE("fma", "fma")
  KVC_FEATURE("f16c", "f16c")
  KVC_FEATURE("avxvnni", "avxvnni")
  KVC_FEATURE("avx512f", "avx512f")
  KVC_FEATURE("avx512cd", "avx512cd")
  KVC_FEATURE("avx512bw", "avx512bw")
  KVC_FEATURE("avx512dq", "avx512dq")
  KVC_FEATURE("avx512vl", "avx512vl")
  KVC_FEATURE("avx512ifma", "avx512ifma")
  KVC_FEATURE("avx512vbmi", "avx512vbmi")
  KVC_FEATURE("avx512vbmi2", "avx512vbmi2")
  KVC_FEATURE("avx512vnni", "avx512vnni")
  KVC_FEATURE("avx512bitalg", "avx512bitalg")
  KVC_FEATURE("avx512vpopcntdq", "avx512vpopcntdq")
  KVC_FEATURE("avx512vp2intersect", "avx512vp2intersect")
  KVC_FEATURE("avx512bf16", "avx512bf16")
  KVC_FEATURE("avx512fp16", "avx512fp16")
#undef KVC_FEATURE
  return Support::UnknownName;
}

std::string cpuName() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.compare(0, 10, "model name") != 0)
      continue;
    size_t colon = line.find(": ");
    if (colon != std::string::npos)
      return line.substr(colon + 2);
  }
  return "unknown CPU";
}

bool checkInstructionSets(const char *features, const char *targetCpu,
                          std::string &error) {
  __builtin_cpu_init();
  std::string_view rest = features ? features : "";
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    std::string_view feature = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view()
                                           : rest.substr(comma + 1);
    if (feature.empty())
      continue;
    Support support = supports(feature);
    if (support == Support::Yes)
      continue;
    error = "this program was compiled for ";
    error += targetCpu ? targetCpu : "another CPU";
    error += " and needs ";
    error += feature;
    if (support == Support::No)
      error += ", which this CPU (" + cpuName() + ") does not have";
    else
      error += ", a feature this runtime cannot check";
    error += "; recompile here with kvc compile --target-cpu=native, or with "
             "--target-cpu=x86-64-v3 for any CPU with AVX2";
    return false;
  }
  return true;
}

// CPUs' worth of time the control group grants, or `limit` without a quota.
static int quotaCpus(int limit) {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0)
    return limit;
  std::istringstream number(quota);
  double microseconds = 0;
  if (!(number >> microseconds) || microseconds <= 0)
    return limit;
  double cpus = microseconds / period;
  return cpus >= limit ? limit : std::max(1, int(std::lround(cpus)));
}

// The CPUs of this process's affinity mask; empty if it cannot be read.
static std::set<int> affinity() {
  std::set<int> cpus;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0)
    for (int cpu = 0; cpu != CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &mask))
        cpus.insert(cpu);
  return cpus;
}

int availableCpus() {
  int count = std::max(1, int(affinity().size()));
  return quotaCpus(count);
}

int availableCores() {
  std::set<int> cpus = affinity();
  std::set<std::pair<int, int>> cores;
  for (int cpu : cpus) {
    std::string topology =
        "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    std::ifstream packageFile(topology + "physical_package_id");
    std::ifstream coreFile(topology + "core_id");
    int package = 0;
    int core = 0;
    // Without a topology every CPU counts as a core of its own.
    if (!(packageFile >> package) || !(coreFile >> core)) {
      package = -1;
      core = cpu;
    }
    cores.insert({package, core});
  }
  return quotaCpus(std::max(1, int(cores.size())));
}

} // namespace kvc

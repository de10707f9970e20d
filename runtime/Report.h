// What a run tells about itself: JSON objects, one line of figures, --info.
#ifndef KVC_RUNTIME_REPORT_H
#define KVC_RUNTIME_REPORT_H

#include "runtime/Generate.h"
#include "runtime/Plan.h"

#include <string>

namespace kvc {

/// What the figures of all sequences of a run share.
struct RunFacts {
  double LoadMilliseconds = 0;
  int Threads = 0;
  std::string Isa;
  uint64_t Seed = 0;
  DeviceFacts Device;
};

/// One line: prompt_ids, ids, text, finish_reason, stats. Bytes of the text
/// that are no UTF-8 become U+FFFD.
std::string formatJson(const Request &request, const Completion &completion,
                       const std::string &text, bool forced,
                       const RunFacts &facts);

/// The figures for people, one line for all sequences of a run.
std::string formatFigures(const std::vector<Request> &requests,
                          const std::vector<Completion> &completions,
                          const RunFacts &facts);

/// What --info prints.
std::string formatInfo(const KvcProgramInfo &program, const Plan &plan,
                       const std::string &payloadPath, int64_t tokens);

} // namespace kvc

#endif // KVC_RUNTIME_REPORT_H

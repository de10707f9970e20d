// printf into a string, for the tables and figures that programs print.
#ifndef KVC_RUNTIME_FORMAT_H
#define KVC_RUNTIME_FORMAT_H

#include <string>

namespace kvc {

/// What printf would print, cut after 511 bytes.
__attribute__((format(printf, 1, 2))) std::string
formatText(const char *pattern, ...);

} // namespace kvc

#endif // KVC_RUNTIME_FORMAT_H

// PTX text to decoded kernels.
#ifndef KVC_RUNTIME_SIM_PARSER_H
#define KVC_RUNTIME_SIM_PARSER_H

#include "runtime/sim/Decoder.h"

namespace kvc::sim {

/// False and one line in `error`, which says the line of the text.
bool parseProgram(std::string_view text, Program &program, std::string &error);

} // namespace kvc::sim

#endif // KVC_RUNTIME_SIM_PARSER_H

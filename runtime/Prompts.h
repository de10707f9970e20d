// Turns what the command line names as prompts into token ids.
#ifndef KVC_RUNTIME_PROMPTS_H
#define KVC_RUNTIME_PROMPTS_H

#include "runtime/Options.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kvc {

class Tokenizer;

/// `tokenizer` is null for a program without one.
bool readPrompts(const ProgramOptions &options, const Tokenizer *tokenizer,
                 std::vector<std::vector<int32_t>> &prompts,
                 std::string &error);

} // namespace kvc

#endif // KVC_RUNTIME_PROMPTS_H

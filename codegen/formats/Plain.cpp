// Formats whose elements are numbers of their own.
#include "codegen/formats/FormatFamily.h"

using namespace kvc;

static constexpr FormatInfo plainInfo(const char *name, uint32_t ggufId,
                                      int bytes) {
  return {name,
          ggufId,
          /*blockValues=*/1,
          /*blockBytes=*/bytes,
          /*subBlock=*/1,
          /*codeBits=*/8 * bytes,
          /*zero=*/0,
          /*table=*/nullptr,
          ScaleKind::None,
          MinKind::None,
          /*signedSubScale=*/false};
}

constexpr FormatEntry kvc::f32Entry = {plainInfo("f32", 0, 4), nullptr};
constexpr FormatEntry kvc::f16Entry = {plainInfo("f16", 1, 2), nullptr};
constexpr FormatEntry kvc::bf16Entry = {plainInfo("bf16", 30, 2), nullptr};

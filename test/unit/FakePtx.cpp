// The fake program's kernels in PTX, by hand: what codegen's would do, small
// enough to read.
#include "FakeGpu.h"

#include <cstring>
#include <string>

namespace kvc::fake {

// Every kernel's parameters, in the order of docs/RUNTIME.md.
static const char Parameters[] =
    "(.param .u64 weights, .param .u64 kv, .param .u64 rows_arena,\n"
    " .param .u64 outputs_arena, .param .u64 logits, .param .u64 scratch,\n"
    " .param .u64 counters, .param .u64 max_rows, .param .u64 max_outputs,\n"
    " .param .u64 max_splits, .param .u64 step, .param .u64 tokens,\n"
    " .param .u64 positions, .param .u64 row_sequence,\n"
    " .param .u64 output_rows, .param .u64 row_tiles, .param .u64 pages,\n"
    " .param .u64 pages_stride, .param .u64 rope, .param .u64 chosen,\n"
    " .param .u64 sampling, .param .u32 layer)\n";

// %rd20 = mix(%rd20, %rd21), as FakeProgram.cpp has it.
#define MIX                                                                    \
  "xor.b64 %rd20, %rd20, %rd21;\n"                                             \
  "mul.lo.u64 %rd20, %rd20, 0x9E3779B97F4A7C15;\n"                             \
  "shr.u64 %rd22, %rd20, 29;\n"                                                \
  "xor.b64 %rd20, %rd20, %rd22;\n"

#define REGISTERS                                                              \
  ".reg .b64 %rd<40>; .reg .b32 %r<40>; .reg .f32 %f<8>; .reg .pred %p<4>;\n"  \
  "griddepcontrol.wait;\n"                                                     \
  "griddepcontrol.launch_dependents;\n"

// %rd5 = address of the page entry of sequence %r1, position %r2.
#define ENTRY                                                                  \
  "ld.param.u64 %rd1, [pages]; ld.param.u64 %rd2, [pages_stride];\n"           \
  "cvt.u64.u32 %rd3, %r1; mul.lo.u64 %rd3, %rd3, %rd2;\n"                      \
  "shr.u32 %r3, %r2, 2; cvt.u64.u32 %rd4, %r3; add.u64 %rd3, %rd3, %rd4;\n"    \
  "shl.b64 %rd3, %rd3, 2; add.u64 %rd3, %rd1, %rd3;\n"                         \
  "ld.global.u32 %r4, [%rd3];\n"                                               \
  "and.b32 %r5, %r2, 3; shl.b32 %r6, %r4, 2; add.u32 %r6, %r6, %r5;\n"         \
  "mul.wide.u32 %rd4, %r6, 8; ld.param.u64 %rd5, [kv];\n"                      \
  "add.u64 %rd5, %rd5, %rd4;\n"

// Blocks of one warp; lane 0 works, so that results have one writer.
static const char Append[] = REGISTERS
    "mov.u32 %r10, %tid.x; setp.ne.u32 %p1, %r10, 0; @%p1 bra done;\n"
    "ld.param.u64 %rd10, [step]; ld.global.u64 %rd11, [%rd10];\n"
    "cvt.u32.u64 %r11, %rd11; mov.u32 %r12, %ctaid.x; mov.u32 %r13, "
    "%nctaid.x;\n"
    "loop: setp.ge.u32 %p1, %r12, %r11; @%p1 bra done;\n"
    "mul.wide.u32 %rd12, %r12, 4;\n"
    "ld.param.u64 %rd13, [row_sequence]; add.u64 %rd13, %rd13, %rd12;\n"
    "ld.global.u32 %r1, [%rd13];\n"
    "ld.param.u64 %rd13, [positions]; add.u64 %rd13, %rd13, %rd12;\n"
    "ld.global.u32 %r2, [%rd13];\n" ENTRY
    "ld.param.u64 %rd13, [tokens]; add.u64 %rd13, %rd13, %rd12;\n"
    "ld.global.u32 %r14, [%rd13]; ld.param.u32 %r15, [layer];\n"
    "add.u32 %r14, %r14, %r15; sub.u32 %r14, %r14, 5;\n"
    "mul.wide.u32 %rd12, %r12, 16; ld.param.u64 %rd13, [rope];\n"
    "add.u64 %rd13, %rd13, %rd12; ld.global.b32 %r16, [%rd13+12];\n"
    "st.global.v2.b32 [%rd5], {%r14, %r16};\n"
    "add.u32 %r12, %r12, %r13; bra loop;\n"
    "done: ret;\n";

// A tile a block, in whichever dimension the list counts them.
static const char Attention[] = REGISTERS
    "mov.u32 %r10, %tid.x; setp.ne.u32 %p1, %r10, 0; @%p1 bra done;\n"
    "mov.u32 %r11, %ctaid.y; mov.u32 %r12, %ctaid.z; max.u32 %r11, %r11, "
    "%r12;\n"
    "mul.wide.u32 %rd10, %r11, 16; ld.param.u64 %rd11, [row_tiles];\n"
    "add.u64 %rd11, %rd11, %rd10;\n"
    "ld.global.v4.b32 {%r1, %r12, %r13, %r14}, [%rd11];\n"
    "add.u32 %r13, %r12, %r13;\n"
    "rows: setp.ge.u32 %p1, %r12, %r13; @%p1 bra done;\n"
    "mul.wide.u32 %rd12, %r12, 4; ld.param.u64 %rd13, [positions];\n"
    "add.u64 %rd13, %rd13, %rd12; ld.global.u32 %r15, [%rd13];\n"
    "mov.u32 %r2, 0; mov.u64 %rd20, 1;\n"
    "entries: setp.gt.u32 %p2, %r2, %r15; @%p2 bra store;\n" ENTRY
    "ld.global.v2.b32 {%r20, %r21}, [%rd5];\n"
    "cvt.u64.u32 %rd21, %r20;\n" MIX "cvt.u64.u32 %rd21, %r21;\n" MIX
    "add.u32 %r2, %r2, 1; bra entries;\n"
    "store: mul.wide.u32 %rd12, %r12, 64; ld.param.u64 %rd13, [rows_arena];\n"
    "add.u64 %rd13, %rd13, %rd12; st.global.u64 [%rd13], %rd20;\n"
    "add.u32 %r12, %r12, 1; bra rows;\n"
    "done: ret;\n";

// The block's lanes share the ids of an output.
static const char Head[] = REGISTERS
    "ld.param.u64 %rd10, [step]; ld.global.u64 %rd11, [%rd10+16];\n"
    "cvt.u32.u64 %r11, %rd11; mov.u32 %r12, %ctaid.x; mov.u32 %r13, "
    "%nctaid.x;\n"
    "outputs: setp.ge.u32 %p1, %r12, %r11; @%p1 bra done;\n"
    "mul.wide.u32 %rd12, %r12, 4; ld.param.u64 %rd13, [output_rows];\n"
    "add.u64 %rd13, %rd13, %rd12; ld.global.u32 %r14, [%rd13];\n"
    "mul.wide.u32 %rd12, %r14, 64; ld.param.u64 %rd13, [rows_arena];\n"
    "add.u64 %rd13, %rd13, %rd12; ld.global.u64 %rd23, [%rd13];\n"
    "mov.u32 %r15, %tid.x;\n"
    "ids: setp.ge.u32 %p2, %r15, 37; @%p2 bra next;\n"
    "mul.wide.u32 %rd12, %r15, 100; ld.param.u64 %rd13, [weights];\n"
    "add.u64 %rd13, %rd13, %rd12; ld.global.u8 %r16, [%rd13];\n"
    "mul.lo.u32 %r17, %r15, 251; add.u32 %r17, %r17, %r16;\n"
    "cvt.u64.u32 %rd21, %r17; mov.u64 %rd20, %rd23;\n" MIX
    "shr.u64 %rd20, %rd20, 40; cvt.rn.f32.u64 %f1, %rd20;\n"
    "fma.rn.f32 %f1, %f1, 0f35800000, 0fC1000000;\n"
    "mul.lo.u32 %r18, %r12, 37; add.u32 %r18, %r18, %r15;\n"
    "mul.wide.u32 %rd12, %r18, 4; ld.param.u64 %rd13, [logits];\n"
    "add.u64 %rd13, %rd13, %rd12; st.global.f32 [%rd13], %f1;\n"
    "mov.u32 %r19, %ntid.x; add.u32 %r15, %r15, %r19; bra ids;\n"
    "next: add.u32 %r12, %r12, %r13; bra outputs;\n"
    "done: ret;\n";

static const char ChooseText[] = REGISTERS
    "mov.u32 %r10, %tid.x; setp.ne.u32 %p1, %r10, 0; @%p1 bra done;\n"
    "mov.u32 %r12, %ctaid.x; mul.lo.u32 %r13, %r12, 37;\n"
    "mul.wide.u32 %rd10, %r13, 4; ld.param.u64 %rd11, [logits];\n"
    "add.u64 %rd11, %rd11, %rd10;\n"
    "mul.wide.u32 %rd10, %r12, 24; ld.param.u64 %rd12, [sampling];\n"
    "add.u64 %rd12, %rd12, %rd10; ld.global.u32 %r14, [%rd12+20];\n"
    "mov.u32 %r15, 0; mov.u32 %r16, 0; mov.f32 %f1, 0fFF800000;\n"
    "ids: setp.ge.u32 %p1, %r15, %r14; @%p1 bra store;\n"
    "ld.global.f32 %f2, [%rd11]; setp.gt.f32 %p2, %f2, %f1;\n"
    "selp.b32 %r16, %r15, %r16, %p2; selp.f32 %f1, %f2, %f1, %p2;\n"
    "add.u64 %rd11, %rd11, 4; add.u32 %r15, %r15, 1; bra ids;\n"
    "store: mul.wide.u32 %rd10, %r12, 4; ld.param.u64 %rd13, [chosen];\n"
    "add.u64 %rd13, %rd13, %rd10; st.global.u32 [%rd13], %r16;\n"
    "done: ret;\n";

static std::string kernel(const char *name, int threads, const char *body) {
  return std::string(".visible .entry ") + name + Parameters + ".reqntid " +
         std::to_string(threads) + "\n{\n" + body + "}\n";
}

const std::string &gpuPtx() {
  static const std::string text =
      ".version 8.0\n.target sm_90\n.address_size 64\n" +
      kernel("append", 32, Append) + kernel("attention", 64, Attention) +
      kernel("head", 32, Head) + kernel("head_wide", 32, Head) +
      kernel("choose", 32, ChooseText);
  return text;
}

} // namespace kvc::fake

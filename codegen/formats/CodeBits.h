// How codes of 3, 5 and 6 bits are cut for packing: every packed layout keeps
// the low bits of all codes and then the high bits, each in planes of 1, 2, 4
// or 8 bits.
#ifndef KVC_CODEGEN_FORMATS_CODEBITS_H
#define KVC_CODEGEN_FORMATS_CODEBITS_H

namespace kvc {

struct CodeBits {
  int low;
  int high; // 0: there are none
};

constexpr CodeBits splitCodeBits(int codeBits) {
  switch (codeBits) {
  case 3:
    return {2, 1};
  case 5:
    return {4, 1};
  case 6:
    return {4, 2};
  default: // 2, 4 and 8 divide a byte
    return {codeBits, 0};
  }
}

} // namespace kvc

#endif // KVC_CODEGEN_FORMATS_CODEBITS_H

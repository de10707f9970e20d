// What the Ops*.cpp files share: handlers made from functions of one lane, and
// the decode functions by family.
#ifndef KVC_RUNTIME_SIM_OPS_H
#define KVC_RUNTIME_SIM_OPS_H

#include "runtime/sim/Decoder.h"
#include "runtime/sim/Exec.h"

namespace kvc::sim {

// Op[0] is the destination. Op is a type with `static D run(A, ...)`, defined
// for all values: inactive lanes are computed too.
template <class Op, class D, class A>
void unary(Warp &warp, const Inst &inst, uint32_t mask) {
  const A *a = warp.reg<A>(inst.Op[1]);
  if (mask == FullMask) {
    D *d = warp.reg<D>(inst.Op[0]);
    KVC_SIM_LANES
    for (uint32_t lane = 0; lane != Lanes; ++lane)
      d[lane] = Op::run(a[lane]);
    return;
  }
  D result[Lanes];
  for (uint32_t lane = 0; lane != Lanes; ++lane)
    result[lane] = Op::run(a[lane]);
  commit(warp, inst.Op[0], result, mask);
}
template <class Op, class D, class A, class B>
void binary(Warp &warp, const Inst &inst, uint32_t mask) {
  const A *a = warp.reg<A>(inst.Op[1]);
  const B *b = warp.reg<B>(inst.Op[2]);
  if (mask == FullMask) {
    D *d = warp.reg<D>(inst.Op[0]);
    KVC_SIM_LANES
    for (uint32_t lane = 0; lane != Lanes; ++lane)
      d[lane] = Op::run(a[lane], b[lane]);
    return;
  }
  D result[Lanes];
  for (uint32_t lane = 0; lane != Lanes; ++lane)
    result[lane] = Op::run(a[lane], b[lane]);
  commit(warp, inst.Op[0], result, mask);
}
template <class Op, class D, class A, class B, class C>
void ternary(Warp &warp, const Inst &inst, uint32_t mask) {
  const A *a = warp.reg<A>(inst.Op[1]);
  const B *b = warp.reg<B>(inst.Op[2]);
  const C *c = warp.reg<C>(inst.Op[3]);
  if (mask == FullMask) {
    D *d = warp.reg<D>(inst.Op[0]);
    KVC_SIM_LANES
    for (uint32_t lane = 0; lane != Lanes; ++lane)
      d[lane] = Op::run(a[lane], b[lane], c[lane]);
    return;
  }
  D result[Lanes];
  for (uint32_t lane = 0; lane != Lanes; ++lane)
    result[lane] = Op::run(a[lane], b[lane], c[lane]);
  commit(warp, inst.Op[0], result, mask);
}

// The same for costly functions that look at the instruction (Kind, Target):
// only active lanes are computed.
template <class Op, class D, class A>
void unaryOf(Warp &warp, const Inst &inst, uint32_t mask) {
  const A *a = warp.reg<A>(inst.Op[1]);
  D *d = warp.reg<D>(inst.Op[0]);
  forLanes(mask, [&](uint32_t lane) { d[lane] = Op::run(inst, a[lane]); });
}
template <class Op, class D, class A, class B>
void binaryOf(Warp &warp, const Inst &inst, uint32_t mask) {
  const A *a = warp.reg<A>(inst.Op[1]);
  const B *b = warp.reg<B>(inst.Op[2]);
  D *d = warp.reg<D>(inst.Op[0]);
  forLanes(mask,
           [&](uint32_t lane) { d[lane] = Op::run(inst, a[lane], b[lane]); });
}
template <class Op, class D, class A, class B, class C>
void ternaryOf(Warp &warp, const Inst &inst, uint32_t mask) {
  const A *a = warp.reg<A>(inst.Op[1]);
  const B *b = warp.reg<B>(inst.Op[2]);
  const C *c = warp.reg<C>(inst.Op[3]);
  D *d = warp.reg<D>(inst.Op[0]);
  forLanes(mask, [&](uint32_t lane) {
    d[lane] = Op::run(inst, a[lane], b[lane], c[lane]);
  });
}

/// The handler of `Op` for an integer type of 16, 32 or 64 bits; null for
/// others. .b types are unsigned.
template <class Op> Handler unaryBy(Type type) {
  switch (type) {
  case Type::B16:
  case Type::U16:
    return unary<Op, uint16_t, uint16_t>;
  case Type::S16:
    return unary<Op, int16_t, int16_t>;
  case Type::B32:
  case Type::U32:
    return unary<Op, uint32_t, uint32_t>;
  case Type::S32:
    return unary<Op, int32_t, int32_t>;
  case Type::B64:
  case Type::U64:
    return unary<Op, uint64_t, uint64_t>;
  case Type::S64:
    return unary<Op, int64_t, int64_t>;
  default:
    return nullptr;
  }
}
template <class Op> Handler binaryBy(Type type) {
  switch (type) {
  case Type::B16:
  case Type::U16:
    return binary<Op, uint16_t, uint16_t, uint16_t>;
  case Type::S16:
    return binary<Op, int16_t, int16_t, int16_t>;
  case Type::B32:
  case Type::U32:
    return binary<Op, uint32_t, uint32_t, uint32_t>;
  case Type::S32:
    return binary<Op, int32_t, int32_t, int32_t>;
  case Type::B64:
  case Type::U64:
    return binary<Op, uint64_t, uint64_t, uint64_t>;
  case Type::S64:
    return binary<Op, int64_t, int64_t, int64_t>;
  default:
    return nullptr;
  }
}
/// With a shift amount of 32 bits.
template <class Op> Handler shiftBy(Type type) {
  switch (type) {
  case Type::B16:
  case Type::U16:
    return binary<Op, uint16_t, uint16_t, uint32_t>;
  case Type::S16:
    return binary<Op, int16_t, int16_t, uint32_t>;
  case Type::B32:
  case Type::U32:
    return binary<Op, uint32_t, uint32_t, uint32_t>;
  case Type::S32:
    return binary<Op, int32_t, int32_t, uint32_t>;
  case Type::B64:
  case Type::U64:
    return binary<Op, uint64_t, uint64_t, uint32_t>;
  case Type::S64:
    return binary<Op, int64_t, int64_t, uint32_t>;
  default:
    return nullptr;
  }
}
template <class Op> Handler ternaryBy(Type type) {
  switch (type) {
  case Type::B16:
  case Type::U16:
    return ternary<Op, uint16_t, uint16_t, uint16_t, uint16_t>;
  case Type::S16:
    return ternary<Op, int16_t, int16_t, int16_t, int16_t>;
  case Type::B32:
  case Type::U32:
    return ternary<Op, uint32_t, uint32_t, uint32_t, uint32_t>;
  case Type::S32:
    return ternary<Op, int32_t, int32_t, int32_t, int32_t>;
  case Type::B64:
  case Type::U64:
    return ternary<Op, uint64_t, uint64_t, uint64_t, uint64_t>;
  case Type::S64:
    return ternary<Op, int64_t, int64_t, int64_t, int64_t>;
  default:
    return nullptr;
  }
}

/// Destination and sources of one type: Op[0], Op[1], ...
bool sameType(Decoder &d, Type type, unsigned sources);

// OpsInteger.cpp and OpsBits.cpp
bool decodeAddSub(Decoder &d);
bool decodeMul(Decoder &d);
bool decodeMad(Decoder &d);
bool decodeMul24(Decoder &d);
bool decodeDivRem(Decoder &d);
bool decodeMinMax(Decoder &d);
bool decodeAbsNeg(Decoder &d);
bool decodeCarry(Decoder &d);
bool decodeSad(Decoder &d);
bool decodeDot(Decoder &d);
bool decodeLogic(Decoder &d);
bool decodeShift(Decoder &d);
bool decodeFunnel(Decoder &d);
bool decodeLop3(Decoder &d);
bool decodePrmt(Decoder &d);
bool decodeBitField(Decoder &d);
bool decodeBitCount(Decoder &d);
bool decodeMask(Decoder &d);
// OpsFloat.cpp: called for floating types by the families above, too.
bool decodeFloatArithmetic(Decoder &d, Type type);
bool decodeFloatMinMax(Decoder &d, Type type);
bool decodeFloatAbsNeg(Decoder &d, Type type);
bool decodeFloatDiv(Decoder &d, Type type);
bool decodeFma(Decoder &d);
bool decodeRoot(Decoder &d);
bool decodeApprox(Decoder &d);
bool decodeCopysign(Decoder &d);
bool decodeTestp(Decoder &d);
// OpsConvert.cpp
bool decodeCvt(Decoder &d);
// OpsMove.cpp
bool decodeCvta(Decoder &d);
bool decodeIsspacep(Decoder &d);
bool decodeMov(Decoder &d);
// OpsCompare.cpp
bool decodeSetp(Decoder &d);
bool decodeSet(Decoder &d);
bool decodeSelp(Decoder &d);
bool decodeSlct(Decoder &d);
void runNotPredicate(Warp &warp, const Inst &inst, uint32_t mask);
// OpsMemory.cpp
bool decodeLoad(Decoder &d);
bool decodeStore(Decoder &d);
bool decodePrefetch(Decoder &d);
bool decodeCreatePolicy(Decoder &d);
bool decodeFence(Decoder &d);
// OpsAtomic.cpp
bool decodeAtomic(Decoder &d);
// OpsAsync.cpp
bool decodeCopyAsync(Decoder &d);
bool decodeMbarrier(Decoder &d);
// OpsWarp.cpp
bool decodeShuffle(Decoder &d);
bool decodeVote(Decoder &d);
bool decodeMatch(Decoder &d);
bool decodeRedux(Decoder &d);
bool decodeActiveMask(Decoder &d);
bool decodeElect(Decoder &d);
// OpsMatrix.cpp
bool decodeMma(Decoder &d);
bool decodeLoadMatrix(Decoder &d);
bool decodeStoreMatrix(Decoder &d);
bool decodeMoveMatrix(Decoder &d);
// OpsControl.cpp
bool decodeBranch(Decoder &d);
bool decodeBranchIndexed(Decoder &d);
bool decodeExit(Decoder &d);
bool decodeTrap(Decoder &d);
bool decodeBarrier(Decoder &d);
bool decodeGridControl(Decoder &d);
bool decodeNanosleep(Decoder &d);
bool decodeNothing(Decoder &d);

} // namespace kvc::sim

#endif // KVC_RUNTIME_SIM_OPS_H

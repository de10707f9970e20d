// Matrix instructions of a whole warp.
#include "runtime/sim/Ops.h"

namespace kvc::sim {

static bool wholeWarp(Warp &warp, const Inst &inst, uint32_t mask) {
  if (mask == FullMask)
    return true;
  if (warp.Initial != FullMask) {
    warp.fail(inst, Lanes,
              "a warp of " + std::to_string(__builtin_popcount(warp.Initial)) +
                  " threads: the instruction needs 32");
    return false;
  }
  return warp.aligned(inst, mask);
}

static Mma formOf(uint32_t packed) {
  return {MmaElement(packed & 7), MmaElement(packed >> 3 & 7),
          MmaSum(packed >> 6 & 3), uint8_t(packed >> 9),
          (packed >> 8 & 1) != 0};
}
static uint32_t packed(const Mma &form) {
  return uint32_t(form.a) | uint32_t(form.b) << 3 | uint32_t(form.sum) << 6 |
         uint32_t(form.satfinite) << 8 | uint32_t(form.k) << 9;
}

/// Op: d, a, b, c, as many registers of each as the form has.
static void runMma(Warp &warp, const Inst &inst, uint32_t mask) {
  if (!wholeWarp(warp, inst, mask))
    return;
  ++warp.Block->Count->Sum.Mma;
  Mma form = formOf(inst.Target);
  const uint32_t *a[4], *b[4], *c[4];
  uint32_t *d[4];
  const uint32_t *op = inst.Op;
  for (unsigned i = 0; i != form.sumRegisters(); ++i)
    d[i] = warp.reg<uint32_t>(*op++);
  for (unsigned i = 0; i != form.aRegisters(); ++i)
    a[i] = warp.reg<uint32_t>(*op++);
  for (unsigned i = 0; i != form.bRegisters(); ++i)
    b[i] = warp.reg<uint32_t>(*op++);
  for (unsigned i = 0; i != form.sumRegisters(); ++i)
    c[i] = warp.reg<uint32_t>(*op++);
  mma(form, a, b, c, d);
}

static bool elementOf(Type type, MmaElement &element) {
  switch (type) {
  case Type::F16:
    element = MmaElement::F16;
    return true;
  case Type::BF16:
    element = MmaElement::Bf16;
    return true;
  case Type::TF32:
    element = MmaElement::Tf32;
    return true;
  case Type::E4M3:
    element = MmaElement::E4m3;
    return true;
  case Type::E5M2:
    element = MmaElement::E5m2;
    return true;
  case Type::S8:
    element = MmaElement::S8;
    return true;
  case Type::U8:
    element = MmaElement::U8;
    return true;
  default:
    return false;
  }
}

/// Rows of 16 bytes: lane 8m + r has the address of row r of matrix m.
static bool rows(Warp &warp, const Inst &inst, uint32_t mask, Mode mode,
                 uint8_t **host) {
  if (!wholeWarp(warp, inst, mask))
    return false;
  uint64_t address[Lanes];
  addresses(warp, inst, 8, address);
  uint32_t lanes = inst.Count == 4 ? FullMask : (1u << 8 * inst.Count) - 1;
  return access(warp, inst, lanes, inst.Where, address, 16, mode, host);
}

/// Where lane's i-th element (of two) of a matrix is.
static uint32_t rowOf(uint32_t lane, uint32_t i, bool trans) {
  return trans ? 2 * (lane % 4) + i : lane / 4;
}
static uint32_t columnOf(uint32_t lane, uint32_t i, bool trans) {
  return trans ? lane / 4 : 2 * (lane % 4) + i;
}

/// Kind: 1 is .trans.
static void runLoadMatrix(Warp &warp, const Inst &inst, uint32_t mask) {
  uint8_t *host[Lanes];
  if (!rows(warp, inst, mask, Mode::Read, host))
    return;
  for (uint32_t m = 0; m != inst.Count; ++m) {
    uint32_t *to = warp.reg<uint32_t>(inst.Op[m]);
    for (uint32_t lane = 0; lane != Lanes; ++lane) {
      uint16_t part[2];
      for (uint32_t i = 0; i != 2; ++i)
        std::memcpy(&part[i],
                    host[8 * m + rowOf(lane, i, inst.Kind)] +
                        2 * columnOf(lane, i, inst.Kind),
                    2);
      to[lane] = pack16(part[0], part[1]);
    }
  }
}

static void runStoreMatrix(Warp &warp, const Inst &inst, uint32_t mask) {
  uint8_t *host[Lanes];
  if (!rows(warp, inst, mask, Mode::Write, host))
    return;
  for (uint32_t m = 0; m != inst.Count; ++m) {
    const uint32_t *from = warp.reg<uint32_t>(inst.Op[m]);
    for (uint32_t lane = 0; lane != Lanes; ++lane)
      for (uint32_t i = 0; i != 2; ++i) {
        uint16_t part = uint16_t(from[lane] >> 16 * i);
        std::memcpy(host[8 * m + rowOf(lane, i, inst.Kind)] +
                        2 * columnOf(lane, i, inst.Kind),
                    &part, 2);
      }
  }
}

static void runMoveMatrix(Warp &warp, const Inst &inst, uint32_t mask) {
  if (!wholeWarp(warp, inst, mask))
    return;
  const uint32_t *from = warp.reg<uint32_t>(inst.Op[1]);
  uint32_t result[Lanes];
  for (uint32_t lane = 0; lane != Lanes; ++lane) {
    uint16_t part[2];
    for (uint32_t i = 0; i != 2; ++i) {
      // Element (row, column) of the source is with lane 4 row + column / 2.
      uint32_t row = rowOf(lane, i, true), column = columnOf(lane, i, true);
      part[i] = uint16_t(from[4 * row + column / 2] >> 16 * (column % 2));
    }
    result[lane] = pack16(part[0], part[1]);
  }
  commit(warp, inst.Op[0], result, mask);
}

static bool takeAligned(Decoder &d) {
  return (d.take("sync") && d.take("aligned")) ||
         d.fail(".sync.aligned is missing");
}

static bool decodeMatrix(Decoder &d, bool load) {
  if (!takeAligned(d))
    return false;
  if (!d.take("m8n8"))
    return d.fail("only .m8n8 is known");
  unsigned count = d.take("x1") ? 1 : d.take("x2") ? 2 : d.take("x4") ? 4 : 0;
  if (count == 0)
    return d.fail("the number of matrices is missing");
  d.I.Kind = d.take("trans");
  Space space = d.takeSpace();
  if (space != Space::Shared && space != Space::Generic)
    return d.fail("the space has to be shared");
  if (d.takeType() != Type::B16 || !d.expect(2))
    return false;
  std::vector<const Operand *> parts = d.elements(load ? 0 : 1);
  if (parts.size() != count)
    return d.fail(std::to_string(parts.size()) + " registers for " +
                  std::to_string(count) + " matrices");
  d.I.Count = uint8_t(count);
  d.I.Bytes = 16;
  d.address(load ? 1 : 0, 8, space);
  for (unsigned m = 0; m != count; ++m) {
    unsigned bytes = 0;
    d.I.Op[m] = load ? d.dstWide(*parts[m], Type::B32, bytes)
                     : d.srcWide(*parts[m], Type::B32, bytes);
    if (bytes != 4)
      return d.fail("registers have 32 bits");
  }
  d.I.Run = load ? runLoadMatrix : runStoreMatrix;
  return true;
}

bool decodeMma(Decoder &d) {
  if (!takeAligned(d))
    return false;
  Mma form;
  form.k = d.take("m16n8k4")    ? 4
           : d.take("m16n8k8")  ? 8
           : d.take("m16n8k16") ? 16
           : d.take("m16n8k32") ? 32
                                : 0;
  if (form.k == 0)
    return d.fail("the shape is not known");
  if (!d.take("row") || !d.take("col"))
    return d.fail("only .row.col is known");
  form.satfinite = d.take("satfinite");
  Type result = d.takeType(), a = d.takeType(), b = d.takeType(),
       sum = d.takeType();
  form.sum = result == Type::F32   ? MmaSum::F32
             : result == Type::F16 ? MmaSum::F16
                                   : MmaSum::S32;
  if (result != sum || (form.sum == MmaSum::S32 && result != Type::S32) ||
      !elementOf(a, form.a) || !elementOf(b, form.b) || !mmaExists(form))
    return d.fail("no such combination of types");
  if (!d.expect(4))
    return false;
  unsigned counts[4] = {form.sumRegisters(), form.aRegisters(),
                        form.bRegisters(), form.sumRegisters()};
  unsigned at = 0;
  for (unsigned k = 0; k != 4; ++k) {
    std::vector<const Operand *> parts = d.elements(k);
    if (parts.size() != counts[k])
      return d.fail("operand " + std::to_string(k + 1) + " has " +
                    std::to_string(parts.size()) + " registers, the form " +
                    std::to_string(counts[k]));
    for (const Operand *part : parts) {
      unsigned bytes = 0;
      d.I.Op[at++] = k == 0 ? d.dstWide(*part, Type::B32, bytes)
                            : d.srcWide(*part, Type::B32, bytes);
      if (bytes != 4)
        return d.fail("registers have 32 bits");
    }
  }
  d.I.Target = packed(form);
  d.I.Run = runMma;
  return true;
}

bool decodeLoadMatrix(Decoder &d) { return decodeMatrix(d, true); }
bool decodeStoreMatrix(Decoder &d) { return decodeMatrix(d, false); }

bool decodeMoveMatrix(Decoder &d) {
  if (!takeAligned(d))
    return false;
  if (!d.take("m8n8") || !d.take("trans") || d.takeType() != Type::B16)
    return d.fail("only .m8n8.trans.b16 is known");
  d.I.Run = runMoveMatrix;
  return sameType(d, Type::B32, 1);
}

} // namespace kvc::sim

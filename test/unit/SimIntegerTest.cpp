// Integer and bit instructions of the simulator against wide host arithmetic
// and bit-by-bit definitions of the PTX ISA.
#include "test/unit/SimFixture.h"

#include <algorithm>
#include <functional>

using namespace kvc::sim;

namespace {

using Wide = __int128;

uint64_t maskOf(unsigned bits) {
  return bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
}

/// The value of `bits` bits as the type reads them.
Wide valueOf(uint64_t bits, unsigned width, bool isSigned) {
  Wide value = bits & maskOf(width);
  if (isSigned && (bits >> (width - 1) & 1))
    value -= Wide(1) << width;
  return value;
}

const Values &edgesOf(unsigned bits) {
  return bits == 64 ? EdgesI64 : EdgesI32;
}

std::string typeName(unsigned bits, bool isSigned) {
  return (isSigned ? ".s" : ".u") + std::to_string(bits);
}

/// `text`'s result in `outBits` bits for all pairs, as `compute` has it.
void checkBinary(const std::string &op, unsigned bits, unsigned outBits,
                 bool isSigned, const std::function<Wide(Wide, Wide)> &compute,
                 const std::function<bool(Wide, Wide)> &skip = nullptr) {
  std::vector<Values> v = tuples(2, edgesOf(bits), 1000, bits, 21);
  for (Values &values : v)
    for (uint64_t &value : values)
      value &= maskOf(bits);
  std::vector<Input> inputs = {{bits, v[0]}, {bits, v[1]}};
  Values got = evaluate1(op + " o0, i0, i1;", inputs, outBits);
  expectAll(op, inputs, got, [&](size_t i) {
    Wide a = valueOf(v[0][i], bits, isSigned);
    Wide b = valueOf(v[1][i], bits, isSigned);
    if (skip && skip(a, b))
      return got[i];
    return uint64_t(compute(a, b)) & maskOf(outBits);
  });
}

TEST(SimInteger, AddSubMul) {
  for (unsigned bits : {16u, 32u, 64u})
    for (bool isSigned : {false, true}) {
      std::string type = typeName(bits, isSigned);
      checkBinary("add" + type, bits, bits, isSigned,
                  [](Wide a, Wide b) { return a + b; });
      checkBinary("sub" + type, bits, bits, isSigned,
                  [](Wide a, Wide b) { return a - b; });
      checkBinary("mul.lo" + type, bits, bits, isSigned, [](Wide a, Wide b) {
        return Wide(static_cast<unsigned __int128>(a) *
                    static_cast<unsigned __int128>(b));
      });
      checkBinary("mul.hi" + type, bits, bits, isSigned,
                  [&](Wide a, Wide b) -> Wide {
                    if (isSigned)
                      return (a * b) >> bits;
                    return Wide((static_cast<unsigned __int128>(a) *
                                 static_cast<unsigned __int128>(b)) >>
                                bits);
                  });
      if (bits != 64)
        checkBinary("mul.wide" + type, bits, 2 * bits, isSigned,
                    [](Wide a, Wide b) { return a * b; });
    }
}

TEST(SimInteger, AddSaturated) {
  auto clamp = [](Wide value) {
    return std::clamp(value, -(Wide(1) << 31), (Wide(1) << 31) - 1);
  };
  checkBinary("add.sat.s32", 32, 32, true,
              [&](Wide a, Wide b) { return clamp(a + b); });
  checkBinary("sub.sat.s32", 32, 32, true,
              [&](Wide a, Wide b) { return clamp(a - b); });
}

TEST(SimInteger, MinMax) {
  for (unsigned bits : {16u, 32u, 64u})
    for (bool isSigned : {false, true}) {
      std::string type = typeName(bits, isSigned);
      checkBinary("min" + type, bits, bits, isSigned,
                  [](Wide a, Wide b) { return std::min(a, b); });
      checkBinary("max" + type, bits, bits, isSigned,
                  [](Wide a, Wide b) { return std::max(a, b); });
    }
}

TEST(SimInteger, DivRem) {
  for (unsigned bits : {16u, 32u, 64u})
    for (bool isSigned : {false, true}) {
      std::string type = typeName(bits, isSigned);
      // A division by zero has no specified result.
      auto byZero = [](Wide, Wide b) { return b == 0; };
      checkBinary(
          "div" + type, bits, bits, isSigned,
          [](Wide a, Wide b) { return a / b; }, byZero);
      checkBinary(
          "rem" + type, bits, bits, isSigned,
          [](Wide a, Wide b) { return a % b; }, byZero);
    }
}

TEST(SimInteger, Logic) {
  for (unsigned bits : {16u, 32u, 64u}) {
    std::string type = ".b" + std::to_string(bits);
    checkBinary("and" + type, bits, bits, false,
                [](Wide a, Wide b) { return a & b; });
    checkBinary("or" + type, bits, bits, false,
                [](Wide a, Wide b) { return a | b; });
    checkBinary("xor" + type, bits, bits, false,
                [](Wide a, Wide b) { return a ^ b; });
    Values v = tuples(1, edgesOf(bits), 200, bits)[0];
    for (uint64_t &value : v)
      value &= maskOf(bits);
    std::vector<Input> inputs = {{bits, v}};
    Values got = evaluate1("not" + type + " o0, i0;", inputs, bits);
    expectAll("not", inputs, got,
              [&](size_t i) { return ~v[i] & maskOf(bits); });
    got = evaluate1("cnot" + type + " o0, i0;", inputs, bits);
    expectAll("cnot", inputs, got,
              [&](size_t i) -> uint64_t { return v[i] == 0; });
    for (bool absolute : {false, true}) {
      std::string op = (absolute ? "abs.s" : "neg.s") + std::to_string(bits);
      got = evaluate1(op + " o0, i0;", inputs, bits);
      expectAll(op, inputs, got, [&](size_t i) {
        Wide value = valueOf(v[i], bits, true);
        return uint64_t(!absolute || value < 0 ? -value : value) & maskOf(bits);
      });
    }
  }
}

TEST(SimInteger, Shifts) {
  for (unsigned bits : {16u, 32u, 64u}) {
    std::vector<Values> v = tuples(2,
                                   {0, 1, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65,
                                    255, 0xFFFFFFFF, 0x80000000},
                                   1000, 32, 22);
    std::mt19937_64 random(5);
    for (size_t i = 0; i != v[0].size(); ++i) {
      v[0][i] = random() & maskOf(bits);
      if (i >= 225)
        v[1][i] &= 127;
    }
    std::vector<Input> inputs = {{bits, v[0]}, {32, v[1]}};
    auto check = [&](const std::string &op, bool left, bool isSigned) {
      Values got = evaluate1(op + " o0, i0, i1;", inputs, bits);
      expectAll(op, inputs, got, [&](size_t i) {
        // Amounts above the width clamp to it.
        unsigned amount = unsigned(std::min<uint64_t>(v[1][i], bits));
        Wide value = valueOf(v[0][i], bits, isSigned);
        Wide result =
            left ? Wide(static_cast<unsigned __int128>(value) << amount)
                 : value >> amount;
        return uint64_t(result) & maskOf(bits);
      });
    };
    std::string width = std::to_string(bits);
    check("shl.b" + width, true, false);
    check("shr.b" + width, false, false);
    check("shr.u" + width, false, false);
    check("shr.s" + width, false, true);
  }
}

TEST(SimInteger, FunnelShift) {
  std::vector<Values> v =
      tuples(3, {0, 1, 7, 31, 32, 33, 64, 0x80000001}, 1500, 32, 23);
  std::vector<Input> inputs = {{32, v[0]}, {32, v[1]}, {32, v[2]}};
  for (bool left : {false, true})
    for (bool wrap : {false, true}) {
      std::string op = std::string("shf.") + (left ? "l" : "r") +
                       (wrap ? ".wrap" : ".clamp") + ".b32";
      Values got = evaluate1(op + " o0, i0, i1, i2;", inputs);
      expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
        uint64_t amount = wrap ? v[2][i] % 32 : std::min<uint64_t>(v[2][i], 32);
        // One bit at a time on the 64 bits [b:a].
        uint32_t low = uint32_t(v[0][i]), high = uint32_t(v[1][i]);
        for (; amount != 0; --amount) {
          if (left) {
            high = high << 1 | low >> 31;
            low <<= 1;
          } else {
            low = low >> 1 | high << 31;
            high >>= 1;
          }
        }
        return left ? high : low;
      });
    }
}

TEST(SimInteger, MultiplyAdd) {
  for (bool isSigned : {false, true}) {
    for (unsigned bits : {16u, 32u, 64u}) {
      std::vector<Values> v = tuples(
          3, {0, 1, 3, maskOf(bits), maskOf(bits) / 2, maskOf(bits) / 2 + 1},
          1000, bits, 24);
      std::vector<Input> inputs = {{bits, v[0]}, {bits, v[1]}, {bits, v[2]}};
      for (bool high : {false, true}) {
        std::string op = std::string("mad.") + (high ? "hi" : "lo") +
                         typeName(bits, isSigned);
        Values got = evaluate1(op + " o0, i0, i1, i2;", inputs, bits);
        expectAll(op, inputs, got, [&](size_t i) {
          auto product =
              static_cast<unsigned __int128>(valueOf(v[0][i], bits, isSigned)) *
              static_cast<unsigned __int128>(valueOf(v[1][i], bits, isSigned));
          if (high)
            product =
                isSigned ? static_cast<unsigned __int128>(Wide(product) >> bits)
                         : product >> bits;
          return (uint64_t(product) + v[2][i]) & maskOf(bits);
        });
      }
    }
    std::vector<Values> v = tuples(3, EdgesI64, 0, 64);
    std::vector<Input> inputs = {{32, v[0]}, {32, v[1]}, {64, v[2]}};
    for (size_t i = 0; i != v[0].size(); ++i) {
      inputs[0].Value[i] &= maskOf(32);
      inputs[1].Value[i] &= maskOf(32);
    }
    std::string op = "mad.wide" + typeName(32, isSigned);
    Values got = evaluate1(op + " o0, i0, i1, i2;", inputs, 64);
    expectAll(op, inputs, got, [&](size_t i) {
      return uint64_t(valueOf(v[0][i], 32, isSigned) *
                      valueOf(v[1][i], 32, isSigned)) +
             v[2][i];
    });
  }
}

TEST(SimInteger, Mul24) {
  for (bool isSigned : {false, true})
    for (bool high : {false, true})
      checkBinary(std::string("mul24.") + (high ? "hi" : "lo") +
                      typeName(32, isSigned),
                  32, 32, isSigned, [&](Wide a, Wide b) {
                    Wide product = valueOf(uint64_t(a), 24, isSigned) *
                                   valueOf(uint64_t(b), 24, isSigned);
                    return high ? product >> 16 : product;
                  });
}

TEST(SimInteger, Setp) {
  struct {
    const char *Name;
    bool (*Compare)(Wide, Wide);
  } const comparisons[] = {
      {"eq", [](Wide a, Wide b) { return a == b; }},
      {"ne", [](Wide a, Wide b) { return a != b; }},
      {"lt", [](Wide a, Wide b) { return a < b; }},
      {"le", [](Wide a, Wide b) { return a <= b; }},
      {"gt", [](Wide a, Wide b) { return a > b; }},
      {"ge", [](Wide a, Wide b) { return a >= b; }},
      {"lo", [](Wide a, Wide b) { return a < b; }},
      {"ls", [](Wide a, Wide b) { return a <= b; }},
      {"hi", [](Wide a, Wide b) { return a > b; }},
      {"hs", [](Wide a, Wide b) { return a >= b; }},
  };
  for (unsigned bits : {16u, 32u, 64u}) {
    std::vector<Values> v = tuples(2, edgesOf(bits), 300, bits, 25);
    for (Values &values : v)
      for (uint64_t &value : values)
        value &= maskOf(bits);
    std::vector<Input> inputs = {{bits, v[0]}, {bits, v[1]}};
    for (const auto &comparison : comparisons)
      for (const char *type : {".s", ".u", ".b"}) {
        std::string name = comparison.Name;
        bool unsignedOnly =
            name[0] == 'h' || (name[0] == 'l' && name != "lt" && name != "le");
        bool equality = name == "eq" || name == "ne";
        if ((unsignedOnly && type[1] != 'u') || (type[1] == 'b' && !equality))
          continue;
        std::string op = "setp." + name + type + std::to_string(bits);
        Values got =
            evaluate1(op + " p0, i0, i1; selp.b32 o0, 1, 0, p0;", inputs);
        expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
          bool isSigned = type[1] == 's';
          return comparison.Compare(valueOf(v[0][i], bits, isSigned),
                                    valueOf(v[1][i], bits, isSigned));
        });
      }
  }
}

TEST(SimInteger, Lop3) {
  std::vector<Values> v = tuples(3, {0, 0xFFFFFFFF, 0xAAAAAAAA}, 200, 32, 26);
  std::vector<Input> inputs = {{32, v[0]}, {32, v[1]}, {32, v[2]}};
  for (unsigned table = 0; table < 256; table += table < 8 ? 1 : 7) {
    Values got = evaluate1(
        "lop3.b32 o0, i0, i1, i2, " + std::to_string(table) + ";", inputs);
    expectAll("lop3 " + std::to_string(table), inputs, got, [&](size_t i) {
      uint64_t result = 0;
      for (unsigned bit = 0; bit != 32; ++bit) {
        unsigned row =
            unsigned((v[0][i] >> bit & 1) << 2 | (v[1][i] >> bit & 1) << 1 |
                     (v[2][i] >> bit & 1));
        result |= uint64_t(table >> row & 1) << bit;
      }
      return result;
    });
  }
}

TEST(SimInteger, BitFields) {
  for (unsigned bits : {32u, 64u}) {
    Values places = {0, 1, 7, 8, 31, 32, 33, 63, 64, 100, 255, 256};
    std::vector<Values> v = tuples(3, places, 0, 32);
    std::mt19937_64 random(27);
    Values base;
    for (size_t i = 0; i != v[0].size(); ++i) {
      v[0][i] = random() & maskOf(bits);
      base.push_back(random() & maskOf(bits));
    }
    std::vector<Input> inputs = {
        {bits, v[0]}, {32, v[1]}, {32, v[2]}, {bits, base}};
    std::string width = std::to_string(bits);
    for (bool isSigned : {false, true}) {
      std::string op = "bfe" + typeName(bits, isSigned);
      Values got = evaluate1(op + " o0, i0, i1, i2;", inputs, bits);
      expectAll(op, inputs, got, [&](size_t i) {
        uint64_t position = v[1][i] & 255, length = v[2][i] & 255;
        uint64_t signAt = std::min<uint64_t>(position + length - 1, bits - 1);
        uint64_t sign = !isSigned || length == 0 ? 0 : v[0][i] >> signAt & 1;
        uint64_t result = 0;
        for (uint64_t bit = 0; bit != bits; ++bit) {
          bool inside = bit < length && position + bit <= bits - 1;
          result |= (inside ? v[0][i] >> (position + bit) & 1 : sign) << bit;
        }
        return result;
      });
    }
    std::string op = "bfi.b" + width;
    Values got = evaluate1(op + " o0, i0, i3, i1, i2;", inputs, bits);
    expectAll(op, inputs, got, [&](size_t i) {
      uint64_t position = v[1][i] & 255, length = v[2][i] & 255;
      uint64_t result = base[i];
      for (uint64_t bit = 0; bit < length && position + bit <= bits - 1;
           ++bit) {
        result &= ~(uint64_t(1) << (position + bit));
        result |= (v[0][i] >> bit & 1) << (position + bit);
      }
      return result;
    });
    Values shifted; // leading zeros and ones of all lengths
    for (unsigned i = 0; i != 600; ++i) {
      uint64_t value = (random() & maskOf(bits)) >> (i % bits);
      shifted.push_back(i & 1 ? ~value & maskOf(bits) : value);
    }
    shifted.push_back(0);
    shifted.push_back(maskOf(bits));
    inputs = {{bits, shifted}};
    auto top = [&](uint64_t value) {
      int64_t last = -1;
      for (unsigned bit = 0; bit != bits; ++bit)
        if (value >> bit & 1)
          last = bit;
      return last;
    };
    for (bool isSigned : {false, true})
      for (bool amount : {false, true}) {
        op = std::string("bfind") + (amount ? ".shiftamt" : "") +
             typeName(bits, isSigned);
        got = evaluate1(op + " o0, i0;", inputs);
        expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
          uint64_t value = shifted[i];
          if (isSigned && value >> (bits - 1) & 1)
            value = ~value & maskOf(bits);
          int64_t found = top(value);
          if (amount && found >= 0)
            found = bits - 1 - found;
          return uint32_t(found);
        });
      }
    got = evaluate1("clz.b" + width + " o0, i0;", inputs);
    expectAll("clz", inputs, got, [&](size_t i) -> uint64_t {
      return uint64_t(bits - 1 - top(shifted[i]));
    });
    got = evaluate1("popc.b" + width + " o0, i0;", inputs);
    expectAll("popc", inputs, got, [&](size_t i) {
      uint64_t count = 0;
      for (uint64_t rest = shifted[i]; rest != 0; rest >>= 1)
        count += rest & 1;
      return count;
    });
    got = evaluate1("brev.b" + width + " o0, i0;", inputs, bits);
    expectAll("brev", inputs, got, [&](size_t i) {
      uint64_t result = 0;
      for (unsigned bit = 0; bit != bits; ++bit)
        result |= (shifted[i] >> bit & 1) << (bits - 1 - bit);
      return result;
    });
  }
}

TEST(SimInteger, Prmt) {
  std::mt19937_64 random(28);
  std::vector<Values> v(3);
  for (unsigned i = 0; i != 1000; ++i)
    for (Values &values : v)
      values.push_back(random() & 0xFFFFFFFF);
  std::vector<Input> inputs = {{32, v[0]}, {32, v[1]}, {32, v[2]}};
  // The tables of the ISA: which byte of {b, a}, for d's bytes 3 to 0.
  struct {
    const char *Name;
    uint8_t Bytes[4][4];
  } const modes[] = {
      {".f4e", {{3, 2, 1, 0}, {4, 3, 2, 1}, {5, 4, 3, 2}, {6, 5, 4, 3}}},
      {".b4e", {{5, 6, 7, 0}, {6, 7, 0, 1}, {7, 0, 1, 2}, {0, 1, 2, 3}}},
      {".rc8", {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}},
      {".ecl", {{3, 2, 1, 0}, {3, 2, 1, 1}, {3, 2, 2, 2}, {3, 3, 3, 3}}},
      {".ecr", {{0, 0, 0, 0}, {1, 1, 1, 0}, {2, 2, 1, 0}, {3, 2, 1, 0}}},
      {".rc16", {{1, 0, 1, 0}, {3, 2, 3, 2}, {1, 0, 1, 0}, {3, 2, 3, 2}}},
  };
  auto byte = [&](size_t i, unsigned index) {
    return (index < 4 ? v[0][i] >> (8 * index) : v[1][i] >> (8 * (index - 4))) &
           255;
  };
  for (const auto &mode : modes) {
    std::string op = std::string("prmt.b32") + mode.Name;
    Values got = evaluate1(op + " o0, i0, i1, i2;", inputs);
    expectAll(op, inputs, got, [&](size_t i) {
      uint64_t result = 0;
      for (unsigned place = 0; place != 4; ++place)
        result = result << 8 | byte(i, mode.Bytes[v[2][i] & 3][place]);
      return result;
    });
  }
  Values got = evaluate1("prmt.b32 o0, i0, i1, i2;", inputs);
  expectAll("prmt", inputs, got, [&](size_t i) {
    uint64_t result = 0;
    for (unsigned place = 0; place != 4; ++place) {
      uint64_t control = v[2][i] >> (4 * place) & 15;
      uint64_t picked = byte(i, control & 7);
      if (control & 8)
        picked = picked & 128 ? 255 : 0;
      result |= picked << (8 * place);
    }
    return result;
  });
}

TEST(SimInteger, DotProducts) {
  std::mt19937_64 random(29);
  std::vector<Values> v(3);
  for (unsigned i = 0; i != 1000; ++i)
    for (Values &values : v)
      values.push_back(random() & 0xFFFFFFFF);
  std::vector<Input> inputs = {{32, v[0]}, {32, v[1]}, {32, v[2]}};
  for (bool a : {false, true})
    for (bool b : {false, true}) {
      std::string types =
          std::string(a ? ".s32" : ".u32") + (b ? ".s32" : ".u32");
      Values got = evaluate1("dp4a" + types + " o0, i0, i1, i2;", inputs);
      expectAll("dp4a" + types, inputs, got, [&](size_t i) -> uint64_t {
        Wide sum = Wide(v[2][i]);
        for (unsigned n = 0; n != 4; ++n)
          sum += valueOf(v[0][i] >> (8 * n), 8, a) *
                 valueOf(v[1][i] >> (8 * n), 8, b);
        return uint32_t(sum);
      });
      for (bool high : {false, true}) {
        std::string op = std::string("dp2a.") + (high ? "hi" : "lo") + types;
        got = evaluate1(op + " o0, i0, i1, i2;", inputs);
        expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
          Wide sum = Wide(v[2][i]);
          for (unsigned n = 0; n != 2; ++n)
            sum += valueOf(v[0][i] >> (16 * n), 16, a) *
                   valueOf(v[1][i] >> (8 * n + (high ? 16 : 0)), 8, b);
          return uint32_t(sum);
        });
      }
    }
}

TEST(SimInteger, MasksAndExtensions) {
  std::vector<Values> v =
      tuples(2, {0, 1, 5, 8, 16, 30, 31, 32, 33, 64, 0xFFFFFFFF}, 300, 32, 30);
  std::vector<Input> inputs = {{32, v[0]}, {32, v[1]}};
  for (bool clamp : {false, true}) {
    std::string mode = clamp ? ".clamp" : ".wrap";
    Values got = evaluate1("bmsk" + mode + ".b32 o0, i0, i1;", inputs);
    expectAll("bmsk" + mode, inputs, got, [&](size_t i) -> uint64_t {
      uint64_t start = clamp ? v[0][i] : v[0][i] % 32;
      uint64_t width = clamp ? v[1][i] : v[1][i] % 32;
      uint64_t result = 0;
      for (uint64_t bit = 0; bit != 32; ++bit)
        if (bit >= start && bit < start + width)
          result |= uint64_t(1) << bit;
      return result;
    });
    for (bool isSigned : {false, true}) {
      std::string op = "szext" + mode + (isSigned ? ".s32" : ".u32");
      got = evaluate1(op + " o0, i0, i1;", inputs);
      expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
        uint64_t width = clamp ? std::min<uint64_t>(v[1][i], 32) : v[1][i] % 32;
        if (width == 0)
          return 0;
        return uint32_t(valueOf(v[0][i], unsigned(width), isSigned));
      });
    }
  }
}

TEST(SimInteger, SumOfDifferences) {
  std::vector<Values> v =
      tuples(3, {0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF}, 200, 32, 31);
  std::vector<Input> inputs = {{32, v[0]}, {32, v[1]}, {32, v[2]}};
  for (bool isSigned : {false, true}) {
    std::string op = "sad" + typeName(32, isSigned);
    Values got = evaluate1(op + " o0, i0, i1, i2;", inputs);
    expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
      Wide difference =
          valueOf(v[0][i], 32, isSigned) - valueOf(v[1][i], 32, isSigned);
      return uint32_t(Wide(v[2][i]) +
                      (difference < 0 ? -difference : difference));
    });
  }
}

TEST(SimInteger, CarryChain) {
  std::vector<Values> v =
      tuples(4, {0, 1, 0xFFFFFFFF, 0x80000000}, 300, 32, 32);
  std::vector<Input> inputs = {{32, v[0]}, {32, v[1]}, {32, v[2]}, {32, v[3]}};
  for (bool subtract : {false, true}) {
    std::string op = subtract ? "sub" : "add";
    std::vector<Values> got =
        evaluate(op + ".cc.u32 o0, i0, i2; " + op + "c.u32 o1, i1, i3;", inputs,
                 {32, 32});
    Values joined;
    for (size_t i = 0; i != got[0].size(); ++i)
      joined.push_back(got[1][i] << 32 | got[0][i]);
    expectAll(op + ".cc", inputs, joined, [&](size_t i) {
      uint64_t a = v[1][i] << 32 | v[0][i], b = v[3][i] << 32 | v[2][i];
      return subtract ? a - b : a + b;
    });
  }
}

} // namespace

//===- RandomModel.cpp - Models that nobody would write
//---------------------===//
#include "RandomModel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <random>
#include <vector>

using llvm::formatv;
using Values = std::vector<std::string>;

static const char *const Rows = "tensor<?x32xf32, #kvc.rows>";
static const char *const Outputs = "tensor<?x32xf32, #kvc.outputs>";

namespace {

class Writer {
public:
  explicit Writer(unsigned seed) : random(seed) {}

  std::string model();

private:
  size_t below(size_t n) { return random() % n; }
  std::string fresh() { return formatv("%v{0}", next++); }
  /// Recent values more often, so that old ones die.
  const std::string &pick(const Values &pool) {
    size_t back = std::min(below(pool.size()), below(pool.size()));
    return pool[pool.size() - 1 - back];
  }

  void weights();
  void weight(llvm::StringRef name, size_t layers, llvm::StringRef shape,
              llvm::StringRef range);
  void ops(Values &pool, size_t count, bool layered);
  void gated(Values &pool, llvm::StringRef result, bool layered);
  void linear(llvm::StringRef result, llvm::StringRef input, bool layered);
  void layers(Values &pool);

  std::mt19937 random;
  int next = 0;
  std::string text;
  llvm::raw_string_ostream out{text};
};

} // namespace

void Writer::weight(llvm::StringRef name, size_t layers, llvm::StringRef shape,
                    llvm::StringRef range) {
  out << formatv("kvc.weight @{0} : !kvc.weight<{1}x{2}> = [", name, layers,
                 shape);
  for (size_t layer = 0; layer < layers; ++layer)
    out << formatv("{0}#kvc.slice<@seed, f32, 0, \"{1}{2}\", {3}>",
                   layer ? ", " : "", name, layer, range);
  out << "]\n";
}

void Writer::weights() {
  weight("embd", 1, "16x32", "[0.0, 1.0]");
  for (llvm::StringRef name : {"w0", "w1"})
    weight(name, 3, "32x32", "[0.0, 0.3]");
  for (llvm::StringRef name : {"u0", "u1"})
    weight(name, 1, "32x32", "[0.0, 0.3]");
  weight("g", 3, "32", "[1.0, 0.25]");
  weight("go", 1, "32", "[1.0, 0.25]");
}

void Writer::linear(llvm::StringRef result, llvm::StringRef input,
                    bool layered) {
  out << formatv("{0} = kvc.linear {1}, [@{2}{3}]{4} : ({5}) -> {5}\n", result,
                 input, layered ? "w" : "u", below(2),
                 layered ? "[%layer]" : "", Rows);
}

/// A gated pair, half of them of one input.
void Writer::gated(Values &pool, llvm::StringRef result, bool layered) {
  const std::string input = pick(pool), other = pick(pool);
  std::string gate = fresh(), up = fresh(), activation = fresh();
  linear(gate, input, layered);
  linear(up, below(2) ? input : other, layered);
  out << formatv("{0} = kvc.activation {1} {{kind = "
                 "#kvc.activation_kind<gelu>} : {2}\n",
                 activation, gate, Rows);
  out << formatv("{0} = kvc.mul {1}, {2} : {3}\n", result, activation, up,
                 Rows);
  if (below(4) == 0)
    pool.push_back(gate);
}

void Writer::ops(Values &pool, size_t count, bool layered) {
  for (size_t i = 0; i < count; ++i) {
    const std::string made = fresh();
    // Products alone would make values grow.
    switch (below(7)) {
    case 0:
    case 1: {
      const std::string lhs = pick(pool), rhs = pick(pool);
      out << formatv("{0} = kvc.add {1}, {2} : {3}\n", made, lhs, rhs, Rows);
      break;
    }
    case 2:
      out << formatv("{0} = kvc.rms_norm {1}, @g{2} {{eps = 1.0e-5 : f64} : "
                     "{3}\n",
                     made, pick(pool), layered ? "[%layer]" : "o", Rows);
      break;
    case 3:
      out << formatv("{0} = kvc.activation {1} {{kind = "
                     "#kvc.activation_kind<silu>} : {2}\n",
                     made, pick(pool), Rows);
      break;
    case 4:
      out << formatv("{0} = kvc.quantize {1} : {2}\n", made, pick(pool), Rows);
      break;
    case 5:
      linear(made, pick(pool), layered);
      break;
    default:
      gated(pool, made, layered);
      break;
    }
    pool.push_back(made);
  }
}

void Writer::layers(Values &pool) {
  size_t carried = 1 + below(3);
  Values inits, types(carried, Rows), results, arguments, inside = pool;
  for (size_t i = 0; i < carried; ++i) {
    inits.push_back(pick(pool));
    inside.push_back(fresh());
    results.push_back(fresh());
    arguments.push_back(formatv("{0}: {1}, ", inside.back(), Rows));
  }
  std::string list = llvm::join(types, ", ");
  out << formatv("{0} = kvc.layers 3 ({1}) : ({2}) -> ({2}) {{\n",
                 llvm::join(results, ", "), llvm::join(inits, ", "), list);
  out << formatv("^bb0({0}%layer: index):\n", llvm::join(arguments, ""));
  ops(inside, 1 + below(6), /*layered=*/true);
  Values yielded;
  for (size_t i = 0; i < carried; ++i)
    yielded.push_back(pick(inside));
  out << formatv("kvc.yield {0} : {1}\n}\n", llvm::join(yielded, ", "), list);
  llvm::append_range(pool, results);
}

std::string Writer::model() {
  out << "kvc.model @random attributes {max_context = 16 : i64} {\n"
         "kvc.source @seed {seed = 7 : i64}\n";
  weights();
  out << formatv("kvc.forward @forward(%tokens: tensor<?xi32, #kvc.rows>, "
                 "%batch: !kvc.batch) -> {0} {{\n",
                 Outputs);
  out << formatv("%e = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) "
                 "-> {0}\n",
                 Rows);
  Values pool = {"%e"};
  ops(pool, below(4), /*layered=*/false);
  for (size_t loop = 0, loops = below(3); loop < loops; ++loop) {
    layers(pool);
    ops(pool, below(4), /*layered=*/false);
  }
  out << formatv("%r = kvc.select_rows {0}, %batch : ({1}) -> {2}\n",
                 pick(pool), Rows, Outputs);
  out << formatv("%n = kvc.rms_norm %r, @go {{eps = 1.0e-5 : f64} : {0}\n",
                 Outputs);
  out << formatv("%l = kvc.linear %n, [@u0] : ({0}) -> {0}\n", Outputs);
  out << formatv("kvc.return {0} : {1}\n}\n}\n", below(8) ? "%l" : "%n",
                 Outputs);
  return text;
}

std::string randomModel(unsigned seed) { return Writer(seed).model(); }

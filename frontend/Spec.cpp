//===- Spec.cpp - Reads JSON specs ----------------------------------------===//
#include "frontend/Spec.h"
#include "frontend/Gguf.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <cmath>
#include <nlohmann/json.hpp>

using namespace kvc;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
using nlohmann::json;

namespace {

/// Sizes beyond these belong to no model; they keep products far from overflow.
constexpr int64_t MaxSize = 1 << 24;
constexpr int64_t MaxLayers = 1 << 12;
constexpr int64_t MaxPositions = int64_t(1) << 31;
/// A spec is a page of text.
constexpr uint64_t MaxFileBytes = 16 << 20;
constexpr size_t MaxDepth = 32;

/// Walks the text once for what the document tree cannot tell: where it is
/// wrong, keys given twice, nesting without end.
class Checker : public nlohmann::json_sax<json> {
public:
  std::string problem;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t &) override { return true; }
  bool string(string_t &) override { return true; }
  bool binary(binary_t &) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool key(string_t &name) override {
    if (keys.back().insert(name).second)
      return true;
    problem = "key " + ggufQuoted(name) + ": found twice, rule: once";
    return false;
  }
  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &) override {
    problem =
        "found something that is not JSON at byte " + std::to_string(position);
    return false;
  }

private:
  bool open() {
    keys.emplace_back();
    if (keys.size() <= MaxDepth)
      return true;
    problem = "found nesting deeper than " + std::to_string(MaxDepth);
    return false;
  }
  bool close() {
    keys.pop_back();
    return true;
  }

  std::vector<llvm::StringSet<>> keys;
};

/// Reads one object's keys and remembers the first thing that is wrong.
class Reader {
public:
  Reader(const json &object, std::string prefix, std::string &problem)
      : object(object), prefix(std::move(prefix)), problem(problem) {}

  void integer(StringRef key, int64_t &value, int64_t most,
               std::optional<int64_t> fallback = std::nullopt) {
    known.push_back(key);
    if (fallback && !object.contains(key.str())) {
      value = *fallback;
      return;
    }
    const json *found = require(key);
    if (!found)
      return;
    if (!found->is_number_unsigned() || found->get<uint64_t>() < 1 ||
        found->get<uint64_t>() > static_cast<uint64_t>(most))
      return fail(key, *found, "a whole number, 1 to " + Twine(most));
    value = static_cast<int64_t>(found->get<uint64_t>());
  }

  void real(StringRef key, double &value, double least, double most) {
    known.push_back(key);
    const json *found = require(key);
    if (!found)
      return;
    double number = found->is_number() ? found->get<double>() : -1.0;
    if (!found->is_number() || !(number >= least && number <= most))
      return fail(key, *found,
                  "a number, " + Twine(json(least).dump()) + " to " +
                      json(most).dump());
    value = number;
  }

  void truth(StringRef key, bool &value) {
    known.push_back(key);
    const json *found = require(key);
    if (!found)
      return;
    if (!found->is_boolean())
      return fail(key, *found, "true or false");
    value = found->get<bool>();
  }

  /// One of `choices`: its index.
  size_t choice(StringRef key, llvm::ArrayRef<StringRef> choices) {
    known.push_back(key);
    const json *found = require(key);
    if (!found)
      return 0;
    if (found->is_string())
      for (auto [index, choice] : llvm::enumerate(choices))
        if (found->get_ref<const std::string &>() == choice)
          return index;
    fail(key, *found, "one of " + llvm::join(choices, ", "));
    return 0;
  }

  std::string text(StringRef key) {
    known.push_back(key);
    const json *found = require(key);
    if (found && !found->is_string())
      fail(key, *found, "text");
    return found && found->is_string() ? found->get<std::string>() : "";
  }

  /// The value of a key whose form is checked elsewhere.
  const json *require(StringRef key) {
    if (!problem.empty())
      return nullptr;
    auto found = object.find(key.str());
    if (found != object.end())
      return &*found;
    problem = "key " + quoted(key) + ": found nothing, rule: must be given";
    return nullptr;
  }
  const json *any(StringRef key, bool optional = false) {
    known.push_back(key);
    if (optional && !object.contains(key.str()))
      return nullptr;
    return require(key);
  }

  /// An object under `key`.
  std::optional<Reader> nested(StringRef key) {
    const json *found = any(key);
    if (!found)
      return std::nullopt;
    if (!found->is_object()) {
      fail(key, *found, "an object");
      return std::nullopt;
    }
    return Reader(*found, prefix + key.str() + ".", problem);
  }

  /// Refuses keys that nothing has asked for.
  void finish() {
    for (const auto &item : object.items()) {
      if (llvm::is_contained(known, StringRef(item.key())))
        continue;
      if (problem.empty())
        problem = "key " + quoted(item.key()) +
                  ": found an unknown key, rule: one of " +
                  llvm::join(known, ", ");
    }
  }

  void fail(StringRef key, const json &found, const Twine &rule) {
    if (!problem.empty())
      return;
    // Strict UTF-8 in, but a long value is cut anywhere: replace, never throw.
    std::string text = found.dump(-1, ' ', /*ensure_ascii=*/true,
                                  json::error_handler_t::replace);
    if (text.size() > 80)
      text = text.substr(0, 77) + "...";
    problem =
        ("key " + quoted(key) + ": found " + text + ", rule: " + rule).str();
  }

private:
  std::string quoted(StringRef key) const {
    return ggufQuoted(prefix + key.str());
  }

  const json &object;
  std::string prefix;
  std::string &problem;
  std::vector<StringRef> known;
};

} // namespace

static void readPositions(Reader &reader, Spec &spec) {
  const json *positions = reader.any("positions");
  if (!positions)
    return;
  if (positions->is_string()) {
    const auto &text = positions->get_ref<const std::string &>();
    if (text == "none" || text == "learned") {
      spec.positions =
          text == "none" ? Spec::Positions::None : Spec::Positions::Learned;
      return;
    }
  } else if (positions->is_object()) {
    std::optional<Reader> outer = reader.nested("positions");
    std::optional<Reader> rotary =
        outer ? outer->nested("rotary") : std::nullopt;
    if (!rotary)
      return;
    spec.positions = Spec::Positions::Rotary;
    rotary->real("theta", spec.rotary.theta, 1e-9, 1e18);
    rotary->integer("dims", spec.rotary.dims, spec.headDim);
    spec.rotary.interleaved =
        rotary->choice("layout", {"half", "interleaved"}) == 1;
    if (spec.rotary.dims % 2 != 0)
      rotary->fail("dims", spec.rotary.dims, "an even number");
    if (rotary->any("llama3", /*optional=*/true)) {
      std::optional<Reader> llama3 = rotary->nested("llama3");
      if (!llama3)
        return;
      Llama3Scaling &scaling = spec.rotary.llama3.emplace();
      llama3->real("factor", scaling.factor, 1.0, 1e9);
      llama3->real("low", scaling.low, 1e-9, 1e9);
      llama3->real("high", scaling.high, 1e-9, 1e9);
      llama3->integer("context", scaling.context, MaxPositions);
      if (!(scaling.high > scaling.low))
        llama3->fail("high", scaling.high,
                     "above low, which is " + Twine(json(scaling.low).dump()));
      llama3->finish();
    }
    rotary->finish();
    outer->finish();
    return;
  }
  reader.fail("positions", *positions, "none, learned or {\"rotary\": ...}");
}

static void readWeights(Reader &reader, StringRef path, Spec &spec) {
  std::optional<Reader> weights = reader.nested("weights");
  if (!weights)
    return;
  const json *seed = weights->any("seed", /*optional=*/true);
  const json *gguf = weights->any("gguf", /*optional=*/true);
  const json *names = weights->any("names", /*optional=*/true);
  const json *format = weights->any("format", /*optional=*/true);
  if (!seed == !gguf)
    return reader.fail("weights", *reader.require("weights"),
                       "either a seed or a gguf file");
  if (seed) {
    if (!seed->is_number_unsigned())
      return weights->fail("seed", *seed, "a whole number, 0 to 2^64 - 1");
    if (names)
      return weights->fail("names", *names, "only with a gguf file");
    spec.seed = seed->get<uint64_t>();
    if (format) {
      Format formats[] = {Format::F32, Format::F16, Format::BF16};
      spec.format = formats[weights->choice("format", {"f32", "f16", "bf16"})];
    }
  } else {
    if (format)
      return weights->fail("format", *format, "only with a seed");
    if (!gguf->is_string() || gguf->get_ref<const std::string &>().empty())
      return weights->fail("gguf", *gguf, "the path of a file");
    // Relative to the spec, so that the two can move together.
    llvm::SmallString<256> file(gguf->get_ref<const std::string &>());
    if (llvm::sys::path::is_relative(file)) {
      llvm::SmallString<256> folder = llvm::sys::path::parent_path(path);
      llvm::sys::path::append(folder, file);
      file = folder;
    }
    spec.gguf = file.str().str();
    if (names && !names->is_object())
      return weights->fail("names", *names,
                           "an object, from the spec's names to the file's");
    if (names)
      for (const auto &item : names->items()) {
        if (!item.value().is_string())
          return weights->fail("names." + item.key(), item.value(), "text");
        spec.names[item.key()] = item.value().get<std::string>();
      }
  }
  weights->finish();
}

static void readEos(Reader &reader, Spec &spec) {
  const json *eos = reader.any("eos");
  if (!eos)
    return;
  if (!eos->is_array())
    return reader.fail("eos", *eos, "a list of ids");
  for (const json &id : *eos) {
    if (!id.is_number_unsigned() ||
        id.get<uint64_t>() >= static_cast<uint64_t>(spec.vocab))
      return reader.fail("eos", id,
                         "ids below vocab, which is " + Twine(spec.vocab));
    int64_t value = id.get<int64_t>();
    if (!llvm::is_contained(spec.eos, value))
      spec.eos.push_back(value);
  }
}

static void readSizes(Reader &reader, Spec &spec) {
  reader.integer("vocab", spec.vocab, MaxSize);
  reader.integer("hidden", spec.hidden, MaxSize);
  reader.integer("layers", spec.layers, MaxLayers);
  reader.integer("heads", spec.heads, MaxSize);
  reader.integer("kv_heads", spec.kvHeads, MaxSize, spec.heads);
  std::optional<int64_t> headDim;
  if (spec.heads && spec.hidden % spec.heads == 0)
    headDim = spec.hidden / spec.heads;
  reader.integer("head_dim", spec.headDim, MaxSize, headDim);
  reader.integer("ffn", spec.ffn, MaxSize);
  reader.integer("max_context", spec.maxContext, MaxPositions);
  if (spec.kvHeads && spec.heads % spec.kvHeads != 0)
    reader.fail("kv_heads", spec.kvHeads,
                "divides heads, which are " + Twine(spec.heads));
  if (spec.headDim && spec.heads > MaxSize / spec.headDim)
    reader.fail("head_dim", spec.headDim,
                "heads * head_dim is at most " + Twine(MaxSize));
}

static void readRoot(const json &root, StringRef path, Spec &spec,
                     std::string &problem) {
  Reader reader(root, "", problem);
  spec.name = reader.text("name");
  readSizes(reader, spec);
  if (std::optional<Reader> norm = reader.nested("norm")) {
    spec.layerNorm = norm->choice("kind", {"rms_norm", "layer_norm"}) == 1;
    norm->truth("bias", spec.normBias);
    norm->real("eps", spec.eps, 0.0, 1.0);
    if (spec.normBias && !spec.layerNorm)
      norm->fail("bias", true, "false for rms_norm");
    norm->finish();
  }
  spec.activation = static_cast<Spec::Activation>(
      reader.choice("activation", {"gelu", "gelu_tanh", "swiglu"}));
  readPositions(reader, spec);
  spec.fusedQkv = reader.choice("qkv", {"separate", "fused"}) == 1;
  if (std::optional<Reader> bias = reader.nested("bias")) {
    bias->truth("qkv", spec.qkvBias);
    bias->truth("output", spec.outputBias);
    bias->truth("ffn", spec.ffnBias);
    bias->finish();
  }
  reader.truth("tied", spec.tied);
  if (reader.any("logit_cap", /*optional=*/true)) {
    spec.logitCap.emplace();
    reader.real("logit_cap", *spec.logitCap, 1e-3, 1e6);
  }
  readEos(reader, spec);
  readWeights(reader, path, spec);
  reader.finish();
}

Expected<Spec> kvc::readSpec(StringRef path) {
  auto error = [&](const Twine &message) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   path + ": " + message);
  };
  uint64_t bytes = 0;
  if (std::error_code code = llvm::sys::fs::file_size(path, bytes))
    return error(code.message());
  if (bytes > MaxFileBytes)
    return error(Twine(bytes) + " bytes, a spec has at most " +
                 Twine(MaxFileBytes));
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return error(buffer.getError().message());
  StringRef text = (*buffer)->getBuffer();

  Checker checker;
  json::sax_parse(text.begin(), text.end(), &checker);
  if (!checker.problem.empty())
    return error(checker.problem);
  json root = json::parse(text.begin(), text.end(), nullptr,
                          /*allow_exceptions=*/false);
  if (!root.is_object())
    return error("found no JSON object, rule: a spec is one");
  Spec spec;
  std::string problem;
  readRoot(root, path, spec, problem);
  if (!problem.empty())
    return error(problem);
  return spec;
}

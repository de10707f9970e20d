//===- Interpret.cpp ------------------------------------------------------===//
#include "dialect/reference/Interpret.h"

#include "dialect/reference/Npy.h"

#include "llvm/Support/Format.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace kvc;

llvm::Expected<ModelOp> kvc::findModel(ModuleOp module) {
  auto models = module.getOps<ModelOp>();
  size_t count = llvm::range_size(models);
  if (count != 1)
    return llvm::createStringError("the module has " + Twine(count) +
                                   " kvc.model ops; one is needed");
  return *models.begin();
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

static llvm::Expected<FunctionOpInterface> findFunction(ModelOp model,
                                                        Phase phase) {
  bool hasPrograms = false;
  for (auto program : model.getOps<ProgramOp>()) {
    hasPrograms = true;
    if (program.getPhase() == phase)
      return FunctionOpInterface(program);
  }
  if (hasPrograms)
    return opError(model, "has no " + stringifyPhase(phase) + " program");
  for (auto forward : model.getOps<ForwardOp>())
    return FunctionOpInterface(forward);
  return opError(model, "has neither programs nor a kvc.forward");
}

static llvm::Error checkIds(ModelOp model, const InterpretOptions &options) {
  if (options.ids.empty())
    return llvm::createStringError("no ids to run");
  if (!options.decodeIds.empty() &&
      options.decodeIds.size() != options.ids.size())
    return llvm::createStringError(Twine(options.decodeIds.size()) +
                                   " lists of decode ids for " +
                                   Twine(options.ids.size()) + " sequences");
  for (auto [sequence, ids] : llvm::enumerate(options.ids)) {
    if (ids.empty())
      return llvm::createStringError("sequence " + Twine(sequence) +
                                     " has no ids");
    size_t length =
        ids.size() +
        (options.decodeIds.empty() ? 0 : options.decodeIds[sequence].size());
    if (length > model.getMaxContext())
      return llvm::createStringError("sequence " + Twine(sequence) + " has " +
                                     Twine(length) +
                                     " ids, but the model's max_context is " +
                                     Twine(model.getMaxContext()));
  }
  return llvm::Error::success();
}

/// The prompts as one step; the last row of each has logits, or every row.
static Step prefillStep(const InterpretOptions &options) {
  Step step;
  for (auto [sequence, ids] : llvm::enumerate(options.ids))
    for (auto [position, id] : llvm::enumerate(ids)) {
      if (options.allLogits || position + 1 == ids.size())
        step.outputs.push_back(step.rows.size());
      step.rows.push_back(
          {id, static_cast<int64_t>(sequence), static_cast<int64_t>(position)});
    }
  return step;
}

static Step decodeStep(const InterpretOptions &options, size_t index) {
  Step step;
  for (auto [sequence, ids] : llvm::enumerate(options.decodeIds))
    if (index < ids.size()) {
      step.outputs.push_back(step.rows.size());
      step.rows.push_back(
          {ids[index], static_cast<int64_t>(sequence),
           static_cast<int64_t>(options.ids[sequence].size() + index)});
    }
  return step;
}

static llvm::Error runPhase(ModelOp model, Phase phase, const Step &step,
                            Interpretation &run) {
  auto function = findFunction(model, phase);
  if (!function)
    return function.takeError();
  llvm::Expected<TensorRef> logits = run.interpreter->runStep(*function, step);
  if (!logits)
    return logits.takeError();
  for (auto [i, output] : llvm::enumerate(step.outputs)) {
    Tensor &rows = run.logits[step.rows[output].sequence];
    ++rows.rows;
    rows.width = (*logits)->width;
    rows.values.insert(rows.values.end(), (*logits)->row(i),
                       (*logits)->row(i) + rows.width);
  }
  return llvm::Error::success();
}

llvm::Expected<Interpretation>
kvc::interpretModel(ModelOp model, const InterpretOptions &options) {
  if (llvm::Error error = checkIds(model, options))
    return std::move(error);
  Interpretation run;
  run.logits.resize(options.ids.size());
  run.sources = std::make_unique<WeightSources>(options.sourceDirectory);
  run.interpreter = std::make_unique<Interpreter>(
      model, *run.sources,
      options.rounded ? Roundings::Declared : Roundings::Exact);
  if (llvm::Error error =
          runPhase(model, Phase::Prefill, prefillStep(options), run))
    return std::move(error);
  size_t steps = 0;
  for (const auto &ids : options.decodeIds)
    steps = std::max(steps, ids.size());
  for (size_t i = 0; i < steps; ++i)
    if (llvm::Error error =
            runPhase(model, Phase::Decode, decodeStep(options, i), run))
      return std::move(error);
  return run;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static llvm::Error writeLogits(StringRef path, const Interpretation &run) {
  for (auto [sequence, logits] : llvm::enumerate(run.logits)) {
    std::string file = path.str();
    if (run.logits.size() > 1) {
      path.consume_back(".npy");
      file = (path + "." + Twine(sequence) + ".npy").str();
    }
    if (llvm::Error error =
            writeNpy(file, {"", {logits.rows, logits.width}, logits.values}))
      return error;
  }
  return llvm::Error::success();
}

static llvm::Error writeCaches(StringRef path, const Interpretation &run) {
  const auto &caches = run.interpreter->caches();
  std::vector<NpyArray> arrays;
  for (const auto &[symbol, cache] : caches) {
    CacheType type = cache.getType();
    std::string prefix = caches.size() > 1 ? symbol.str() + "." : "";
    for (int64_t layer = 0; layer < type.getLayers(); ++layer)
      for (int64_t sequence = 0; sequence < cache.sequences(); ++sequence) {
        const CacheEntry &entry = cache.entry(layer, sequence);
        std::string name = (Twine(prefix) + "layer" + Twine(layer) +
                            ".sequence" + Twine(sequence) + ".")
                               .str();
        std::vector<int64_t> shape = {entry.positions(), type.getKvHeads(),
                                      type.getHeadDim()};
        arrays.push_back({name + "k", shape, entry.keys});
        arrays.push_back({name + "v", shape, entry.values});
      }
  }
  return writeNpz(path, arrays);
}

static void printNumber(llvm::raw_ostream &out, double value) {
  // No "-0": the sign of a sum of zeros is not worth a difference.
  out << llvm::format(" %.9g", value == 0 ? 0.0 : value);
}

/// A row in full where that is readable, else its largest entries by id.
static void printRow(llvm::raw_ostream &out, const double *row, int64_t width) {
  constexpr int64_t readable = 32, shown = 8;
  if (width <= readable) {
    for (int64_t i = 0; i < width; ++i)
      printNumber(out, row[i]);
    return;
  }
  std::vector<int64_t> order(width);
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + shown, order.end(),
                    [&](int64_t a, int64_t b) {
                      return row[a] != row[b] ? row[a] > row[b] : a < b;
                    });
  for (int64_t i = 0; i < shown; ++i) {
    out << " " << order[i] << ":";
    printNumber(out, row[order[i]]);
  }
}

static void printLogits(llvm::raw_ostream &out, const Interpretation &run) {
  for (auto [sequence, logits] : llvm::enumerate(run.logits))
    for (int64_t r = 0; r < logits.rows; ++r) {
      out << "logits[" << sequence << "][" << r << "]:";
      printRow(out, logits.row(r), logits.width);
      out << "\n";
    }
}

llvm::Error kvc::interpret(ModuleOp module, const InterpretOptions &options,
                           llvm::raw_ostream &out) {
  llvm::Expected<ModelOp> model = findModel(module);
  if (!model)
    return model.takeError();
  llvm::Expected<Interpretation> run = interpretModel(*model, options);
  if (!run)
    return run.takeError();
  if (!options.cachePath.empty())
    if (llvm::Error error = writeCaches(options.cachePath, *run))
      return error;
  if (!options.logitsPath.empty())
    return writeLogits(options.logitsPath, *run);
  printLogits(out, *run);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Comparing
//===----------------------------------------------------------------------===//

/// The largest difference of two rows, relative to their largest magnitude;
/// infinite where one has a NaN and the other does not.
static double rowError(ArrayRef<double> a, ArrayRef<double> b) {
  double largest = 0, difference = 0;
  for (auto [x, y] : llvm::zip(a, b)) {
    if (std::isnan(x) && std::isnan(y))
      continue;
    if (std::isnan(x) || std::isnan(y))
      return std::numeric_limits<double>::infinity();
    largest = std::max({largest, std::fabs(x), std::fabs(y)});
    difference = std::max(difference, std::fabs(x - y));
  }
  return difference == 0 ? 0 : difference / largest;
}

static llvm::Error compareLogits(const Interpretation &a,
                                 const Interpretation &b, Comparison &result) {
  if (a.logits.size() != b.logits.size())
    return llvm::createStringError("the runs have different sequences");
  for (size_t s = 0; s < a.logits.size(); ++s) {
    const Tensor &x = a.logits[s], &y = b.logits[s];
    if (x.rows != y.rows || x.width != y.width)
      return llvm::createStringError("logits of " + Twine(x.rows) + " x " +
                                     Twine(x.width) + " against " +
                                     Twine(y.rows) + " x " + Twine(y.width));
    for (int64_t r = 0; r < x.rows; ++r) {
      double error = rowError({x.row(r), static_cast<size_t>(x.width)},
                              {y.row(r), static_cast<size_t>(y.width)});
      if (error > result.error())
        result.worst =
            ("logits of sequence " + Twine(s) + ", row " + Twine(r)).str();
      result.logits = std::max(result.logits, error);
    }
  }
  return llvm::Error::success();
}

static llvm::Error compareCaches(const CacheState &a, const CacheState &b,
                                 Comparison &result) {
  if (a.getType().getLayers() != b.getType().getLayers() ||
      a.width() != b.width() || a.sequences() != b.sequences())
    return llvm::createStringError("the runs' caches have different shapes");
  size_t width = a.width();
  for (int64_t layer = 0; layer < a.getType().getLayers(); ++layer)
    for (int64_t s = 0; s < a.sequences(); ++s) {
      const CacheEntry &x = a.entry(layer, s), &y = b.entry(layer, s);
      if (x.positions() != y.positions())
        return llvm::createStringError("layer " + Twine(layer) + " holds " +
                                       Twine(x.positions()) +
                                       " positions of sequence " + Twine(s) +
                                       " against " + Twine(y.positions()));
      for (int64_t t = 0; t < x.positions(); ++t) {
        double error = std::max(
            rowError({&x.keys[t * width], width}, {&y.keys[t * width], width}),
            rowError({&x.values[t * width], width},
                     {&y.values[t * width], width}));
        if (error > result.error())
          result.worst = ("cache of layer " + Twine(layer) + ", sequence " +
                          Twine(s) + ", position " + Twine(t))
                             .str();
        result.cache = std::max(result.cache, error);
      }
    }
  return llvm::Error::success();
}

llvm::Expected<Comparison> kvc::compare(const Interpretation &a,
                                        const Interpretation &b) {
  Comparison result;
  if (llvm::Error error = compareLogits(a, b, result))
    return std::move(error);
  const auto &left = a.interpreter->caches(), &right = b.interpreter->caches();
  if (left.size() != right.size())
    return llvm::createStringError("the models have different caches");
  for (const auto &[symbol, cache] : left) {
    StringRef name = symbol.getValue(); // the contexts may differ
    const auto *other = llvm::find_if(right, [name](const auto &entry) {
      return entry.first.getValue() == name;
    });
    if (other == right.end())
      return llvm::createStringError("only one of the models has @" +
                                     symbol.getValue());
    if (llvm::Error error = compareCaches(cache, other->second, result))
      return std::move(error);
  }
  return result;
}

llvm::Expected<Comparison>
kvc::compareModules(ModuleOp a, ModuleOp b, const InterpretOptions &options) {
  std::vector<Interpretation> runs;
  for (ModuleOp module : {a, b}) {
    llvm::Expected<ModelOp> model = findModel(module);
    if (!model)
      return model.takeError();
    llvm::Expected<Interpretation> run = interpretModel(*model, options);
    if (!run)
      return run.takeError();
    runs.push_back(std::move(*run));
  }
  return compare(runs[0], runs[1]);
}

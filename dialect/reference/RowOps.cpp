//===- RowOps.cpp - Ops that work row by row ------------------------------===//
#include "codegen/formats/HalfFloat.h"
#include "dialect/reference/Interpreter.h"

#include <cmath>

using namespace mlir;
using namespace kvc;

llvm::Error Interpreter::run(EmbedOp op) {
  llvm::Expected<WeightReader> table = weight(op, op.getWeightAttr(), {});
  if (!table)
    return table.takeError();
  Tensor result(step.rows.size(), table->columns());
  for (auto [r, row] : llvm::enumerate(step.rows)) {
    if (row.token < 0 || row.token >= table->rows())
      return opError(op, "token " + Twine(row.token) + " is not one of the " +
                             Twine(table->rows()) + " of @" + op.getWeight());
    table->read(row.token, result.row(r));
  }
  set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

llvm::Error Interpreter::run(AddPositionsOp op) {
  llvm::Expected<WeightReader> table = weight(op, op.getWeightAttr(), {});
  if (!table)
    return table.takeError();
  Tensor result = get(op.getInput());
  std::vector<double> embedding(table->columns());
  for (auto [r, row] : llvm::enumerate(step.rows)) {
    if (row.position >= table->rows())
      return opError(op, "position " + Twine(row.position) +
                             " is not one of the " + Twine(table->rows()) +
                             " of @" + op.getWeight());
    table->read(row.position, embedding.data());
    for (int64_t i = 0; i < result.width; ++i)
      result.row(r)[i] += embedding[i];
  }
  set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

llvm::Error Interpreter::run(SelectRowsOp op) {
  const Tensor &input = get(op.getInput());
  Tensor result(step.outputs.size(), input.width);
  for (auto [i, row] : llvm::enumerate(step.outputs))
    std::copy_n(input.row(row), input.width, result.row(i));
  set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

llvm::Error Interpreter::run(RmsNormOp op) {
  auto weights = vector(op, op.getWeightAttr(), op.getLayer());
  if (!weights)
    return weights.takeError();
  Tensor result = get(op.getInput());
  double eps = op.getEps().convertToDouble();
  for (int64_t r = 0; r < result.rows; ++r) {
    double *row = result.row(r);
    double sum = 0;
    for (int64_t i = 0; i < result.width; ++i)
      sum += row[i] * row[i];
    double factor = 1.0 / std::sqrt(sum / result.width + eps);
    for (int64_t i = 0; i < result.width; ++i)
      row[i] = row[i] * factor * (*weights)[i];
  }
  set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

llvm::Error Interpreter::run(LayerNormOp op) {
  auto weights = vector(op, op.getWeightAttr(), op.getLayer());
  if (!weights)
    return weights.takeError();
  std::vector<double> bias(weights->size());
  if (op.getBiasAttr()) {
    auto values = vector(op, op.getBiasAttr(), op.getLayer());
    if (!values)
      return values.takeError();
    bias = std::move(*values);
  }
  Tensor result = get(op.getInput());
  double eps = op.getEps().convertToDouble();
  for (int64_t r = 0; r < result.rows; ++r) {
    double *row = result.row(r);
    double sum = 0;
    for (int64_t i = 0; i < result.width; ++i)
      sum += row[i];
    double mean = sum / result.width;
    double squares = 0;
    for (int64_t i = 0; i < result.width; ++i)
      squares += (row[i] - mean) * (row[i] - mean);
    double factor = 1.0 / std::sqrt(squares / result.width + eps);
    for (int64_t i = 0; i < result.width; ++i)
      row[i] = (row[i] - mean) * factor * (*weights)[i] + bias[i];
  }
  set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

llvm::Error Interpreter::run(AddOp op) {
  Tensor result = get(op.getLhs());
  const Tensor &rhs = get(op.getRhs());
  for (size_t i = 0; i < result.values.size(); ++i)
    result.values[i] += rhs.values[i];
  set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

llvm::Error Interpreter::run(MulOp op) {
  Tensor result = get(op.getLhs());
  const Tensor &rhs = get(op.getRhs());
  for (size_t i = 0; i < result.values.size(); ++i)
    result.values[i] *= rhs.values[i];
  set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

static double activate(ActivationKind kind, double x) {
  switch (kind) {
  case ActivationKind::Silu:
    return x / (1.0 + std::exp(-x));
  case ActivationKind::Gelu:
    return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0)));
  case ActivationKind::GeluTanh:
    return 0.5 * x *
           (1.0 +
            std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
  }
  llvm_unreachable("a kind of activation");
}

llvm::Error Interpreter::run(ActivationOp op) {
  Tensor result = get(op.getInput());
  for (double &value : result.values)
    value = activate(op.getKind(), value);
  set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

llvm::Error Interpreter::run(SoftCapOp op) {
  Tensor result = get(op.getInput());
  double cap = op.getCap().convertToDouble();
  for (double &value : result.values)
    value = cap * std::tanh(value / cap);
  set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

/// Rounds 32 values as generated code does, in f32.
static void quantizeBlock(double *values) {
  float x[32];
  float largest = 0;
  for (int i = 0; i < 32; ++i) {
    x[i] = static_cast<float>(values[i]);
    largest = std::max(largest, std::fabs(x[i]));
  }
  float scale = largest / 127.0f;
  float inverse = scale == 0 ? 0.0f : 1.0f / scale;
  for (int i = 0; i < 32; ++i)
    values[i] = std::nearbyint(x[i] * inverse) * static_cast<double>(scale);
}

llvm::Error Interpreter::run(QuantizeOp op) {
  if (roundings == Roundings::Exact) {
    set(op.getResult(), values[op.getInput()]);
    return llvm::Error::success();
  }
  Tensor result = get(op.getInput());
  for (size_t i = 0; i < result.values.size(); i += 32)
    quantizeBlock(result.values.data() + i);
  set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

double kvc::roundTo(Type type, double value) {
  auto single = static_cast<float>(value);
  if (type.isF16())
    return floatFromHalf(halfFromFloat(single));
  if (type.isBF16())
    return floatFromBfloat(bfloatFromFloat(single));
  return single;
}

llvm::Error Interpreter::run(RoundOp op) {
  if (roundings == Roundings::Exact) {
    set(op.getResult(), values[op.getInput()]);
    return llvm::Error::success();
  }
  Tensor result = get(op.getInput());
  for (double &value : result.values)
    value = roundTo(op.getElement(), value);
  set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

/// output[r][n] = bias[n] + sum over k of input[r][k] * weight[n][k], k
/// ascending. Works on tiles of weight rows, stored k-major, so that the
/// compiler vectorises over rows and the order of each sum stays.
static void multiply(const Tensor &input, WeightReader &weight,
                     const std::vector<double> &bias, Tensor &output) {
  constexpr int64_t tileRows = 8;
  int64_t columns = weight.columns();
  std::vector<double> row(columns);
  std::vector<double> tile(columns * tileRows);
  for (int64_t first = 0; first < weight.rows(); first += tileRows) {
    int64_t count = std::min(tileRows, weight.rows() - first);
    for (int64_t n = 0; n < count; ++n) {
      weight.read(first + n, row.data());
      for (int64_t k = 0; k < columns; ++k)
        tile[k * tileRows + n] = row[k];
    }
    for (int64_t r = 0; r < input.rows; ++r) {
      const double *x = input.row(r);
      double sums[tileRows] = {};
      for (int64_t k = 0; k < columns; ++k)
        for (int64_t n = 0; n < tileRows; ++n)
          sums[n] += x[k] * tile[k * tileRows + n];
      for (int64_t n = 0; n < count; ++n)
        output.row(r)[first + n] = sums[n] + bias[first + n];
    }
  }
}

llvm::Error Interpreter::run(LinearOp op) {
  const Tensor &input = get(op.getInput());
  for (auto [segment, output] : llvm::enumerate(op.getOutputs())) {
    auto symbol = cast<FlatSymbolRefAttr>(op.getWeights()[segment]);
    llvm::Expected<WeightReader> matrix = weight(op, symbol, op.getLayer());
    if (!matrix)
      return matrix.takeError();
    std::vector<double> bias(matrix->rows());
    if (op.getBiases())
      if (auto name = dyn_cast<FlatSymbolRefAttr>((*op.getBiases())[segment])) {
        auto values = vector(op, name, op.getLayer());
        if (!values)
          return values.takeError();
        bias = std::move(*values);
      }
    Tensor result(input.rows, matrix->rows());
    multiply(input, *matrix, bias, result);
    set(output, std::move(result));
  }
  return llvm::Error::success();
}

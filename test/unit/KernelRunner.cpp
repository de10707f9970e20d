#include "KernelRunner.h"

#include "codegen/emit/Object.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

using namespace mlir;
using namespace kvc;

void TestBatch::addRows(int32_t sequence, int32_t first, int32_t count,
                        int64_t tileRows) {
  for (int32_t row = 0; row < count; ++row) {
    if (row % tileRows == 0)
      tiles.push_back({sequence, static_cast<int32_t>(positions.size()), 0, 0});
    ++tiles.back().rows;
    tokens.push_back(0);
    positions.push_back(first + row);
    rowSequence.push_back(sequence);
  }
}

std::unique_ptr<KernelRunner> KernelRunner::create(const std::string &text,
                                                   std::string &error) {
  DialectRegistry registry;
  registerEmissionDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    error += diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return nullptr;
  auto runner = std::make_unique<KernelRunner>();
  llvm::Expected<DeviceCode> code = DeviceCode::create(*module, {});
  if (!code) {
    error += llvm::toString(code.takeError());
    return nullptr;
  }
  runner->code = std::move(*code);
  // The mutation check runs changed text in the place of what was compiled.
  if (const char *path = std::getenv("KVC_TEST_PTX")) {
    std::ifstream file(path, std::ios::binary);
    runner->code.ptx.assign(std::istreambuf_iterator<char>(file), {});
  }
  runner->parsed = sim::Module::parse(runner->code.ptx, error);
  if (!runner->parsed)
    return nullptr;
  return runner;
}

uint64_t KernelRunner::allocate(const char *name, uint64_t bytes) {
  return machine.allocate(name, std::max<uint64_t>(bytes, 16));
}

static int64_t extentOf(const TestBatch &batch, nvptx::Extent extent) {
  switch (extent) {
  case nvptx::Extent::Fixed:
    return 1;
  case nvptx::Extent::Rows:
    return static_cast<int64_t>(batch.positions.size());
  case nvptx::Extent::Outputs:
    return static_cast<int64_t>(batch.outputRows.size());
  case nvptx::Extent::Tiles:
    return static_cast<int64_t>(batch.tiles.size());
  case nvptx::Extent::Sequences:
    return batch.sequences;
  case nvptx::Extent::Positions: {
    // The runtime's rounding, so that blocks past the end are run too.
    int64_t longest = 256;
    for (int32_t position : batch.positions)
      while (longest < position + 1)
        longest *= 2;
    return longest;
  }
  }
  return 1;
}

bool KernelRunner::run(const std::vector<nvptx::Launch> &launches,
                       const TestBatch &batch, std::string &error) {
  std::vector<int64_t> step = {extentOf(batch, nvptx::Extent::Rows),
                               extentOf(batch, nvptx::Extent::Sequences),
                               extentOf(batch, nvptx::Extent::Outputs),
                               extentOf(batch, nvptx::Extent::Tiles)};
  std::vector<uint64_t> inputs = {upload("step", step),
                                  upload("tokens", batch.tokens),
                                  upload("positions", batch.positions),
                                  upload("row_sequence", batch.rowSequence),
                                  upload("output_rows", batch.outputRows),
                                  upload("row_tiles", batch.tiles),
                                  upload("pages", batch.pages),
                                  static_cast<uint64_t>(batch.pagesStride),
                                  upload("rope", batch.rope)};
  bool done = true;
  uint64_t sampling = upload("sampling", batch.sampling);
  for (const nvptx::Launch &launch : launches) {
    sim::LaunchConfig config;
    uint32_t grid[3];
    for (int axis = 0; axis < 3; ++axis) {
      const nvptx::Launch::Dimension &dimension = launch.grid[axis];
      grid[axis] = static_cast<uint32_t>(
          dimension.extent == nvptx::Extent::Fixed
              ? dimension.per
              : (extentOf(batch, dimension.extent) + dimension.per - 1) /
                    dimension.per);
    }
    config.Grid = {grid[0], grid[1], grid[2]};
    config.Block = {static_cast<uint32_t>(launch.threads), 1, 1};
    config.DynamicShared = static_cast<uint32_t>(launch.sharedBytes);
    std::vector<uint64_t> block = {weights,
                                   kv,
                                   rows,
                                   outputs,
                                   logits,
                                   scratch,
                                   counters,
                                   static_cast<uint64_t>(maxRows),
                                   static_cast<uint64_t>(maxOutputs),
                                   static_cast<uint64_t>(maxSplits)};
    block.insert(block.end(), inputs.begin(), inputs.end());
    block.push_back(chosen);
    block.push_back(sampling);
    block.push_back(static_cast<uint64_t>(launch.layer));
    // The last parameter has four bytes.
    done = done && machine.launch(*parsed, launch.kernel, config, block.data(),
                                  block.size() * 8 - 4, options, error);
  }
  inputs[7] = sampling;
  for (uint64_t address : inputs)
    machine.free(address);
  return done;
}

uint16_t kvc::toBits(float value, bool bf16) {
  llvm::APFloat converted(value);
  bool lossy;
  converted.convert(bf16 ? llvm::APFloat::BFloat() : llvm::APFloat::IEEEhalf(),
                    llvm::APFloat::rmNearestTiesToEven, &lossy);
  return static_cast<uint16_t>(converted.bitcastToAPInt().getZExtValue());
}

float kvc::fromBits(uint16_t bits, bool bf16) {
  llvm::APFloat value(bf16 ? llvm::APFloat::BFloat()
                           : llvm::APFloat::IEEEhalf(),
                      llvm::APInt(16, bits));
  bool lossy;
  value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven,
                &lossy);
  return value.convertToFloat();
}

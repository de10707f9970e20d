//===- SchedulePlan.cpp - Counts a schedule's bytes and operations --------===//
#include "codegen/emit/SchedulePlan.h"
#include "dialect/PackedWeights.h"
#include "passes/TargetInfo.h"

#include "llvm/ADT/TypeSwitch.h"

#include <nlohmann/json.hpp>

using namespace mlir;
using namespace kvc;
using llvm::Error;
using llvm::Expected;

namespace {

/// Counts one dispatch.
class KernelCounter {
public:
  KernelCounter(DispatchOp dispatch, KernelCost &cost)
      : dispatch(dispatch), cost(cost) {}

  void run();

private:
  void count(Operation *op);
  void countEmbed(FlatSymbolRefAttr symbol, int64_t columns);
  void countLinear(LinearOp op);
  void countAttention(CacheOp cache, int64_t heads, bool keys, bool values);

  /// Adds to the numbers of a row, or of an output, as `type`'s extent says.
  void addBytes(Type type, int64_t bytes) {
    (isOutputs(type) ? cost.bytesPerOutput : cost.bytesPerRow) +=
        bytes * cost.runs;
  }
  void addFlops(Type type, int64_t flops) {
    (isOutputs(type) ? cost.flopsPerOutput : cost.flopsPerRow) +=
        flops * cost.runs;
  }
  /// A weight is read once a run: each layer's where the kernel runs in layers.
  void addWeight(FlatSymbolRefAttr symbol);
  static bool isOutputs(Type type) {
    return isa<OutputsAttr>(cast<RankedTensorType>(type).getEncoding());
  }
  static int64_t slotBytes(Type type, SlotAttr slot);

  DispatchOp dispatch;
  KernelCost &cost;
};

} // namespace

int64_t KernelCounter::slotBytes(Type type, SlotAttr slot) {
  // Scores have a row as long as the context: the slot's row is their bound.
  for (int64_t dim : cast<RankedTensorType>(type).getShape().drop_front())
    if (ShapedType::isDynamic(dim))
      return slot.getStride();
  int64_t values = rowElements(type);
  if (slot.getElement() == SlotElement::Q8)
    return values + values / 32 * 4 + values / 16 * 4;
  return slotRowBytes(values, slot.getElement());
}

static int64_t layerBytes(WeightOp weight, int64_t layer) {
  return packedBytes(weight.getWeightType(),
                     weight.getSlice(layer).getFormat());
}

void KernelCounter::addWeight(FlatSymbolRefAttr symbol) {
  WeightOp weight = lookupWeight(dispatch, symbol);
  int64_t layers = weight.getWeightType().getLayers();
  if (layers == 1) {
    cost.weightBytes += layerBytes(weight, 0) * cost.runs;
    return;
  }
  for (int64_t layer = 0; layer < layers; ++layer)
    cost.weightBytes += layerBytes(weight, layer);
}

void KernelCounter::countEmbed(FlatSymbolRefAttr symbol, int64_t columns) {
  WeightOp weight = lookupWeight(dispatch, symbol);
  auto format = static_cast<Format>(weight.getSlice(0).getFormat());
  cost.bytesPerRow += (4 + formatInfo(format).rowBytes(columns)) * cost.runs;
}

void KernelCounter::countLinear(LinearOp op) {
  int64_t columns = rowElements(op.getInput().getType());
  for (auto [weight, output] :
       llvm::zip_equal(op.getWeights(), op.getOutputs())) {
    addWeight(cast<FlatSymbolRefAttr>(weight));
    addFlops(output.getType(), 2 * columns * rowElements(output.getType()));
  }
  if (!op.getBiases())
    return;
  for (auto [bias, output] : llvm::zip_equal(*op.getBiases(), op.getOutputs()))
    if (auto symbol = dyn_cast<FlatSymbolRefAttr>(bias)) {
      addWeight(symbol);
      addFlops(output.getType(), rowElements(output.getType()));
    }
}

void KernelCounter::countAttention(CacheOp cache, int64_t heads, bool keys,
                                   bool values) {
  CacheType type = cache.getCacheType();
  int64_t element = type.getType().getIntOrFloatBitWidth() / 8;
  int64_t bytes = type.getKvHeads() * type.getHeadDim() * element;
  int64_t products = 2 * heads * type.getHeadDim();
  cost.kvBytesPerPosition += (keys + values) * bytes * cost.runs;
  cost.flopsPerPosition += (keys + values) * products * cost.runs;
}

void KernelCounter::count(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](ReadOp read) {
        addBytes(read.getType(), slotBytes(read.getType(), read.getSlot()));
      })
      .Case([&](WriteOp write) {
        Type type = write.getInput().getType();
        addBytes(type, slotBytes(type, write.getSlot()));
      })
      .Case([&](EmbedOp embed) {
        countEmbed(embed.getWeightAttr(), rowElements(embed.getType()));
      })
      .Case([&](AddPositionsOp positions) {
        countEmbed(positions.getWeightAttr(), rowElements(positions.getType()));
        addFlops(positions.getType(), rowElements(positions.getType()));
      })
      .Case([&](RmsNormOp norm) {
        addWeight(norm.getWeightAttr());
        addFlops(norm.getType(), 4 * rowElements(norm.getType()));
      })
      .Case([&](LayerNormOp norm) {
        addWeight(norm.getWeightAttr());
        if (auto bias = norm.getBiasAttr())
          addWeight(bias);
        addFlops(norm.getType(), 4 * rowElements(norm.getType()));
      })
      .Case<AddOp, MulOp>([&](auto sum) {
        addFlops(sum.getType(), rowElements(sum.getType()));
      })
      .Case<ActivationOp, SoftCapOp>([&](auto function) {
        addFlops(function.getType(), 8 * rowElements(function.getType()));
      })
      .Case([&](QuantizeOp quantize) {
        addFlops(quantize.getType(), 3 * rowElements(quantize.getType()));
      })
      .Case([&](LinearOp linear) { countLinear(linear); })
      .Case([&](RopeOp rope) {
        int64_t pairs = static_cast<int64_t>(rope.getInvFreq().size());
        int64_t heads = cast<RankedTensorType>(rope.getType()).getDimSize(1);
        addBytes(rope.getType(), pairs * 8);
        addFlops(rope.getType(), 6 * pairs * heads);
      })
      .Case([&](CacheAppendOp append) {
        CacheType type =
            lookupCache(append, append.getCacheAttr()).getCacheType();
        int64_t element = type.getType().getIntOrFloatBitWidth() / 8;
        addBytes(append.getKey().getType(),
                 2 * type.getKvHeads() * type.getHeadDim() * element);
      })
      .Case([&](ScoresOp scores) {
        countAttention(lookupCache(scores, scores.getCacheAttr()),
                       cast<RankedTensorType>(scores.getType()).getDimSize(1),
                       /*keys=*/true, /*values=*/false);
      })
      .Case([&](MaskedSoftmaxOp softmax) {
        cost.flopsPerPosition +=
            5 * cast<RankedTensorType>(softmax.getType()).getDimSize(1) *
            cost.runs;
      })
      .Case([&](ContextOp context) {
        countAttention(lookupCache(context, context.getCacheAttr()),
                       cast<RankedTensorType>(context.getType()).getDimSize(1),
                       /*keys=*/false, /*values=*/true);
      })
      .Case([&](AttentionOp attention) {
        int64_t heads =
            cast<RankedTensorType>(attention.getType()).getDimSize(1);
        countAttention(lookupCache(attention, attention.getCacheAttr()), heads,
                       /*keys=*/true, /*values=*/true);
        cost.flopsPerPosition += 5 * heads * cost.runs;
      });
}

void KernelCounter::run() {
  cost.staged = !dispatch.getBody().getOps<StageOp>().empty();
  for (Operation &op : dispatch.getBody().front())
    count(&op);
}

static void collectWrites(DispatchOp dispatch, KernelCost &cost) {
  dispatch.walk([&](WriteOp write) {
    auto type = cast<RankedTensorType>(write.getInput().getType());
    SlotAttr slot = write.getSlot();
    if (slot.getSpace() == Space::Worker ||
        llvm::any_of(type.getShape().drop_front(), ShapedType::isDynamic))
      return;
    int64_t values = rowElements(type);
    cost.writes.push_back({slot.getSpace(), slot.getElement(), slot.getOffset(),
                           slot.getStride(),
                           slotRowBytes(values, slot.getElement()), values});
  });
}

static void collectSlots(ProgramOp program, SchedulePlan &plan) {
  bool outside =
      stagesOutsideArenas(program->getParentOfType<ModelOp>().getTargetAttr());
  auto add = [&](SlotAttr slot) {
    if (slot.getSpace() == Space::Logits ||
        (outside && slot.getSpace() == Space::Worker))
      return;
    for (const WorkspaceSlot &known : plan.slots)
      if (known.space == slot.getSpace() && known.offset == slot.getOffset() &&
          known.bytes == slot.getStride())
        return;
    plan.slots.push_back({slot.getSpace(), slot.getOffset(), slot.getStride()});
  };
  program.walk([&](Operation *op) {
    if (auto read = dyn_cast<ReadOp>(op))
      add(read.getSlot());
    else if (auto write = dyn_cast<WriteOp>(op))
      add(write.getSlot());
    else if (auto stage = dyn_cast<StageOp>(op))
      add(stage.getSlot());
  });
}

static Error planError(ModelOp model, const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 "kvc.model @" + model.getSymName() + ": " +
                                     message);
}

/// The head's width: what the slot of the logits holds a row.
static int64_t findVocab(ModelOp model) {
  int64_t vocab = 0;
  model.walk([&](WriteOp write) {
    if (write.getSlot().getSpace() == Space::Logits)
      vocab = rowElements(write.getInput().getType());
  });
  return vocab;
}

static Error addProgram(ProgramOp program, SchedulePlan &plan) {
  auto rows = program.getRowsBytes();
  auto outputs = program.getOutputsBytes();
  auto workers = program.getWorkerBytes();
  if (!rows || !outputs || !workers)
    return planError(program->getParentOfType<ModelOp>(),
                     "@" + program.getSymName() +
                         " has no workspace yet, rule: kvc-plan-memory and "
                         "kvc-schedule come first");
  plan.rowsBytes = std::max<int64_t>(plan.rowsBytes, *rows);
  plan.outputsBytes = std::max<int64_t>(plan.outputsBytes, *outputs);
  plan.workerBytes = std::max<int64_t>(plan.workerBytes, *workers);
  program.walk([&](DispatchOp dispatch) {
    KernelCost cost;
    cost.id = static_cast<int64_t>(dispatch.getId());
    cost.phase = program.getPhase();
    cost.name = dispatch.getName().str();
    if (auto layers = dispatch->getParentOfType<LayersOp>())
      cost.runs = static_cast<int64_t>(layers.getCount());
    KernelCounter(dispatch, cost).run();
    collectWrites(dispatch, cost);
    plan.kernels.push_back(std::move(cost));
  });
  collectSlots(program, plan);
  return Error::success();
}

/// Rows of a tile of a GPU's prefill attention: with the heads that share a key
/// they fill four tiles of a matrix unit.
static int64_t cudaTileRows(ModelOp model, int64_t kvHeads) {
  int64_t heads = kvHeads;
  model.walk([&](AttentionOp attention) {
    heads = cast<RankedTensorType>(attention.getType()).getDimSize(1);
  });
  return 16 * static_cast<int64_t>(llvm::divideCeil(4, heads / kvHeads));
}

Expected<SchedulePlan> kvc::makeSchedulePlan(ModelOp model) {
  SchedulePlan plan;
  if (!model.getTarget() || !model.getWeightsBytes())
    return planError(model, "has no packed weights yet, rule: the passes of "
                            "kvc-pipeline come first");
  plan.model = model.getSymName().str();
  plan.arch = model.getTarget()->getArch().str();
  plan.targetCpu = model.getTarget()->getCpu().str();
  plan.activations = model.getActivations().value_or("f32").str();
  plan.maxContext = static_cast<int64_t>(model.getMaxContext());
  plan.eos.assign(model.getEos().begin(), model.getEos().end());
  plan.weightsBytes = static_cast<int64_t>(*model.getWeightsBytes());

  auto caches = llvm::to_vector(model.getOps<CacheOp>());
  if (caches.size() != 1)
    return planError(model, "has " + llvm::Twine(caches.size()) +
                                " caches, rule: one");
  CacheType cache = caches.front().getCacheType();
  llvm::raw_string_ostream(plan.kvType) << cache.getType();
  plan.layers = cache.getLayers();
  plan.kvHeads = cache.getKvHeads();
  plan.headDim = cache.getHeadDim();
  plan.page = cache.getPage();
  plan.split = cache.getSplit();
  plan.pageBytes = cache.getPageBytes();
  plan.kvBytesPerToken = plan.pageBytes / plan.page;

  for (auto program : model.getOps<ProgramOp>())
    if (Error error = addProgram(program, plan))
      return std::move(error);
  if (stagesOutsideArenas(model.getTargetAttr()))
    plan.workerBytes = 0;
  if (plan.arch == "cuda")
    plan.tileRows = cudaTileRows(model, plan.kvHeads);
  plan.vocab = findVocab(model);
  if (plan.kernels.empty() || plan.vocab == 0)
    return planError(model, "has no schedule, rule: kvc-schedule comes first");
  return plan;
}

std::string kvc::planJson(const SchedulePlan &plan, int indent) {
  using json = nlohmann::ordered_json;
  json root = {{"model", plan.model},
               {"target", plan.arch},
               {"target_cpu", plan.targetCpu},
               {"eos", plan.eos},
               {"vocab", plan.vocab},
               {"max_context", plan.maxContext},
               {"activations", plan.activations},
               {"kv_type", plan.kvType},
               {"kv",
                {{"layers", plan.layers},
                 {"kv_heads", plan.kvHeads},
                 {"head_dim", plan.headDim},
                 {"type", plan.kvType},
                 {"page", plan.page},
                 {"split", plan.split},
                 {"page_bytes", plan.pageBytes}}},
               {"weights_bytes", plan.weightsBytes},
               {"rows_bytes", plan.rowsBytes},
               {"outputs_bytes", plan.outputsBytes},
               {"worker_bytes", plan.workerBytes}};
  root["kernels"] = json::array();
  for (const KernelCost &kernel : plan.kernels) {
    json writes = json::array();
    for (const SlotWrite &write : kernel.writes)
      writes.push_back({{"arena", stringifySpace(write.space).str()},
                        {"element", stringifySlotElement(write.element).str()},
                        {"offset", write.offset},
                        {"stride", write.stride},
                        {"bytes", write.bytes},
                        {"values", write.values}});
    root["kernels"].push_back(
        {{"id", kernel.id},
         {"phase", stringifyPhase(kernel.phase).str()},
         {"name", kernel.name},
         {"layers", kernel.runs},
         {"bytes_fixed", kernel.weightBytes},
         {"bytes_per_row", kernel.bytesPerRow},
         {"bytes_per_output", kernel.bytesPerOutput},
         {"kv_bytes_per_position", kernel.kvBytesPerPosition},
         {"flops_per_row", kernel.flopsPerRow},
         {"flops_per_output", kernel.flopsPerOutput},
         {"flops_per_position", kernel.flopsPerPosition},
         {"writes", std::move(writes)}});
  }
  root["slots"] = json::array();
  for (const WorkspaceSlot &slot : plan.slots)
    root["slots"].push_back({{"arena", stringifySpace(slot.space).str()},
                             {"offset", slot.offset},
                             {"bytes", slot.bytes}});
  return root.dump(indent, ' ', /*ensure_ascii=*/true,
                   json::error_handler_t::replace);
}

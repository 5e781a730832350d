// The loss that training asks for: the graph's own, or one attached to an output.
#include "../Graph/GraphImporter.h"
#include "Loss.h"
#include "par/Dialect/Term.h"

#include "llvm/ADT/StringExtras.h"

namespace par {

using namespace mlir;

/// `"logits" f32[N, 1000]`
static std::string describe(const onnx::ValueInfo &info) {
  std::string text = "\"" + info.name + "\" " + onnx::spell(info.type) + "[";
  for (auto [i, dim] : llvm::enumerate(info.shape))
    text += (i ? ", " : "") + (dim.size >= 0 ? std::to_string(dim.size) : dim.symbol.empty() ? "?" : dim.symbol);
  return text + "]";
}

LogicalResult GraphImporter::missingLoss(ArrayRef<const onnx::ValueInfo *> candidates) {
  if (candidates.size() > 1) {
    InFlightDiagnostic diagnostic = error() << "the graph has several scalar float outputs (";
    for (auto [i, candidate] : llvm::enumerate(candidates))
      diagnostic << (i ? ", \"" : "\"") << candidate->name << "\"";
    return diagnostic << "); say which is the loss: train.loss: " << candidates.front()->name;
  }
  InFlightDiagnostic diagnostic = error() << "no loss: the graph has no scalar float output (its output";
  diagnostic << (model.outputs.size() == 1 ? " is " : "s are ");
  for (auto [i, output] : llvm::enumerate(model.outputs))
    diagnostic << (i ? ", " : "") << describe(output);
  return diagnostic << "); say train.loss: cross_entropy, or drop \"train\"";
}

FailureOr<Value> GraphImporter::findLoss() {
  SmallVector<const onnx::ValueInfo *> scalars;
  const onnx::ValueInfo *named = nullptr;
  for (const onnx::ValueInfo &output : model.outputs) {
    Value value = values.lookup(output.name).computed;
    auto type = value ? dyn_cast<RankedTensorType>(value.getType()) : RankedTensorType();
    if (!type || !isa<FloatType>(type.getElementType()) || type.getNumElements() != 1)
      continue;
    scalars.push_back(&output);
    if (options.loss && options.loss->kind == output.name)
      named = &output;
  }
  bool attach = options.loss && llvm::is_contained({"cross_entropy", "bce", "mse", "l1"}, options.loss->kind);
  if (attach && !scalars.empty())
    return error() << "the model computes its own loss \"" << scalars.front()->name
                   << "\"; say train: {}, on the command line --set train.loss=null";
  if (attach)
    return attachLoss();
  if (options.loss && !named && !options.loss->kind.empty())
    return error() << "train.loss is \"" << options.loss->kind
                   << "\", which is neither a scalar float output nor cross_entropy, bce, mse or l1";
  if (!named && scalars.size() != 1)
    return missingLoss(scalars);
  const onnx::ValueInfo &output = named ? *named : *scalars.front();
  Value loss = values.lookup(output.name).computed;
  // The loss is at least f32, also of a module in 16 bits, since it is reported and differentiated.
  if (getElementTypeOrSelf(loss).getIntOrFloatBitWidth() < 32)
    loss = buildConvert(builder, locationOf(output), loss, builder.getF32Type());
  auto type = cast<RankedTensorType>(loss.getType());
  return type.getRank() == 0 ? loss : buildReshape(builder, locationOf(output), loss, {}); // PyTorch takes it too
}

/// The name of a metric in lines and files that have names of their own.
static std::string metricName(StringRef output) {
  static constexpr StringRef taken[] = {"loss", "grad_norm",  "loss_scale", "lr",      "step",     "eval_loss",
                                        "ms",   "sent_bytes", "peak_bytes", "samples", "left_out", "tokens"};
  std::string name = llvm::is_contained(taken, output) ? ("model." + output).str() : output.str();
  std::replace_if(name.begin(), name.end(), [](char c) { return c == ' ' || c == ';'; }, '_');
  return name;
}

/// Whether a value is the loss as the graph has it, before its type and shape are a loss's.
static bool isOfLoss(Value value, Value loss) {
  while (value != loss && isa_and_nonnull<ConvertOp, ReshapeOp>(loss.getDefiningOp()))
    loss = loss.getDefiningOp()->getOperand(0);
  return value == loss;
}

void addMetrics(OpBuilder &builder, const onnx::Model &model, const llvm::StringMap<GraphValue> &values,
                ArrayRef<CarriedPair> carried, SmallVectorImpl<Value> &results, SmallVectorImpl<std::string> &names) {
  Value loss = results.front();
  for (const onnx::ValueInfo &output : model.outputs) {
    Value value = values.lookup(output.name).computed;
    auto type = value ? dyn_cast<RankedTensorType>(value.getType()) : RankedTensorType();
    bool isNext = llvm::any_of(carried, [&](const CarriedPair &pair) { return pair.output == output.name; }) ||
                  llvm::any_of(model.updates, [&](auto &update) { return update.output == output.name; });
    std::string name = metricName(output.name);
    if (!type || type.getRank() != 0 || isNext || isOfLoss(value, loss) || llvm::is_contained(names, name))
      continue;
    results.push_back(
        type.getElementType().isF64() ? value : buildConvert(builder, value.getLoc(), value, builder.getF32Type()));
    names.push_back(name);
  }
}

/// As binary_cross_entropy_with_logits: log(1 + e^x) - x y, written so that nothing overflows and that the gradient of
/// a score that is 0 is 1/2 - y too.
static Value buildBinaryLosses(Term scores, Term labels) {
  Term size(scores.getBuilder(), scores.getLoc(),
            AbsOp::create(scores.getBuilder(), scores.getLoc(), scores.getType(), scores));
  return (scores + size) * 0.5 - scores * labels + log(exp(-size) + 1.0);
}

/// Labels are fed a row a sample, so that the output has the samples in one dim of those that the labels have.
LogicalResult GraphImporter::checkLabelBatch(const onnx::ValueInfo &output, RankedTensorType type, int64_t batchDim,
                                             int64_t labelRank) {
  std::optional<int64_t> batch = batchSize();
  int64_t dim = std::max<int64_t>(batchDim, 0);
  if (!batch || (dim < labelRank && type.getDimSize(dim) == *batch))
    return success();
  InFlightDiagnostic found = errorAt(output) << "is the output of train.loss, and is " << type << ": ";
  if (batchDim >= labelRank)
    found << "its batch is the last dim, which is that of the classes";
  else
    found << "dim " << dim << " is not the batch of " << *batch;
  found << "; permute or reshape it in the module so that dim 0 is the batch, or compute the loss there (train: {})";
  return found;
}

/// Adds the input `labels` and the loss of one output against it.
FailureOr<Value> GraphImporter::attachLoss() {
  const AttachedLoss &loss = *options.loss;
  const onnx::ValueInfo *output = nullptr;
  for (const onnx::ValueInfo &candidate : model.outputs)
    if (loss.output.empty() ? onnx::isFloat(candidate.type) && !output : candidate.name == loss.output)
      output = &candidate;
  Value scores = output ? values.lookup(output->name).computed : Value();
  auto type = scores ? cast<RankedTensorType>(scores.getType()) : RankedTensorType();
  if (!type || !isa<FloatType>(type.getElementType()) || type.getRank() < 1)
    return error() << "train.loss.output \"" << loss.output << "\" is no float output of the graph";
  if (values.contains(loss.labels))
    return error() << "train.loss.labels is \"" << loss.labels << "\", and the graph has a value of that name";
  bool classes = loss.kind == "cross_entropy";
  if (classes && type.getRank() < 2)
    return error() << "cross_entropy needs classes in the last dim, \"" << output->name << "\" is " << type;
  if (loss.output.empty())
    if (auto other =
            llvm::find_if(model.outputs, [&](auto &each) { return &each > output && onnx::isFloat(each.type); });
        other != model.outputs.end())
      emitWarning(fileLoc) << "train.loss is of \"" << output->name << "\", the first output of floats; for \""
                           << other->name << "\" or another say train.loss.output";
  if (classes && (type.getRank() > 3 || (type.getRank() == 3 && type.getDimSize(1) == type.getDimSize(2))))
    emitWarning(fileLoc) << "cross_entropy takes the last dim of \"" << output->name << "\", " << type
                         << ", for its classes; if they are dim 1, as in PyTorch, permute the output in the module, or "
                            "compute the loss there (train: {})";
  if (!loss.weights.empty() && int64_t(loss.weights.size()) != type.getShape().back())
    return error() << "train.loss.class_weights is " << loss.weights.size() << " numbers, and \"" << output->name
                   << "\" has " << type.getShape().back() << " classes";
  bool indices = classes && !loss.soft;
  auto labelType = indices ? RankedTensorType::get(type.getShape().drop_back(), builder.getI64Type()) : type;
  Location loc = makeLocation(context, {"train.loss", "", "train.loss", "", 0});
  // Labels have the output's batch dim.
  int64_t batchDim = batchDimOf(*output, labelType.getShape());
  if (failed(checkLabelBatch(*output, type, batchDim, labelType.getRank())))
    return failure();
  Value labels =
      addInput(loss.labels, indices ? onnx::ElementType::I64 : output->type, labelType, std::max<int64_t>(batchDim, 0))
          .computed;
  if (loss.shift != 0) {
    // Position i of the scores predicts label i + shift.
    if (loss.shift < 0 || labelType.getRank() < (loss.soft ? 3 : 2) || loss.shift >= labelType.getDimSize(1))
      return error() << "train.loss.shift is " << loss.shift << ", the labels are " << labelType;
    auto part = [&](Value value, int64_t start) -> Value {
      auto own = cast<RankedTensorType>(value.getType());
      SmallVector<int64_t> starts(own.getRank(), 0), limits(own.getShape()), strides(own.getRank(), 1), shape(limits);
      starts[1] = start;
      shape[1] = own.getDimSize(1) - loss.shift;
      limits[1] = start + shape[1];
      return SliceOp::create(builder, loc, own.clone(shape), value, starts, limits, strides);
    };
    scores = part(scores, 0);
    labels = part(labels, loss.shift);
  }
  if (classes && loss.soft)
    return buildSoftCrossEntropyMean(builder, loc, scores, labels, loss.smoothing, loss.weights);
  if (classes && !loss.weights.empty())
    return buildWeightedCrossEntropyMean(builder, loc, scores, labels, loss.ignore, loss.smoothing, loss.weights);
  if (classes)
    return buildCrossEntropyMean(builder, loc, scores, labels, loss.ignore, loss.smoothing);
  if (loss.kind == "bce")
    return buildMean(builder, loc, buildBinaryLosses(Term(builder, loc, scores), Term(builder, loc, labels)));
  Value difference = SubtractOp::create(builder, loc, scores, labels);
  if (loss.kind == "mse")
    return buildMean(builder, loc, MultiplyOp::create(builder, loc, difference, difference));
  return buildMean(builder, loc, AbsOp::create(builder, loc, difference.getType(), difference));
}

bool shiftsLabels(ModuleOp module, StringRef labels) {
  bool shifts = false;
  module.walk([&](StepOp step) {
    ArrayAttr names = step.getInputsAttr();
    for (auto [i, argument] : llvm::enumerate(step.getBlock().getArguments())) {
      if (!names || cast<StringAttr>(names[i]).getValue() != labels)
        continue;
      SmallVector<Value> work{argument};
      for (size_t next = 0; next < work.size(); ++next)
        for (Operation *user : work[next].getUsers()) {
          auto slice = dyn_cast<SliceOp>(user);
          shifts |= slice && slice.getStarts().size() == 2 && slice.getStarts()[1] == 1 && slice.getStarts()[0] == 0;
          if (isa<PadOp, ReshapeOp>(user))
            work.push_back(user->getResult(0));
        }
    }
  });
  return shifts;
}

} // namespace par

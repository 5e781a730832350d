// Images with channels last, from convolution to convolution: a library then reads and writes its own layout, and a
// channel's factors, summands and bounds lie side by side. Each value that a convolution made has two forms: the ops
// that can read the one with channels last, the others a transpose of it, which is removed if unused.
#include "Convolutions.h"
#include "LastConvolution.h"
#include "par/Phases/Kernels/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_CHANNELSLASTPASS
#include "par/Phases/Kernels/Passes.h.inc"

namespace {

class LastLayout {
public:
  explicit LastLayout(BlockOp block) : block(block), builder(block.getContext()) {}

  void run();

private:
  bool visit(Operation *op);
  void visit(ConvolutionOp op);
  bool visit(ReduceOp op);
  bool visit(MaxPoolOp op);
  bool visitElementwise(Operation *op);

  /// The form with channels last, if the value has one or is the same for all channels and places.
  Value find(Value value);
  Value findOrBuild(Value value);
  /// Replaces the value by the transpose of its form with channels last.
  void replace(Value value, Value last);
  RankedTensorType lastType(Value value);

  BlockOp block;
  OpBuilder builder;
  llvm::DenseMap<Value, Value> lastOf;
  SmallVector<TransposeOp> transposes;
};

} // namespace

static SmallVector<int64_t> permuted(ArrayRef<int64_t> sizes, ArrayRef<int64_t> permutation) {
  return llvm::map_to_vector(permutation, [&](int64_t dim) { return sizes[dim]; });
}

/// Whether a library has the convolution with channels last. Groups of several channels are slow there.
static bool isServed(ConvolutionOp op) {
  int64_t groups = op.getGroups();
  ArrayRef<int64_t> filter = shapeOf(op.getFilter());
  bool isDepthwise = filter[1] == 1 && filter[0] == groups;
  return op.getType().getElementType().isF32() && (groups == 1 || isDepthwise) && convolutionSizes(op);
}

RankedTensorType LastLayout::lastType(Value value) {
  RankedTensorType type = getTensorType(value.getType());
  return RankedTensorType::get(permuted(type.getShape(), channelsLast(type.getRank())), type.getElementType());
}

Value LastLayout::find(Value value) {
  if (Value last = lastOf.lookup(value))
    return last;
  Operation *source = value.getDefiningOp();
  auto type = getTensorType(value.getType());
  if (auto transpose = dyn_cast_or_null<TransposeOp>(source);
      transpose && transpose.getPermutation() == ArrayRef(channelsFirst(type.getRank())))
    return transpose.getOperand();
  if (auto broadcast = dyn_cast_or_null<BroadcastInDimOp>(source);
      broadcast && broadcast.getOperand().getType().getRank() <= 1) {
    SmallVector<int64_t> dims;
    for (int64_t dim : broadcast.getDims())
      dims.push_back(channelsFirst(type.getRank())[dim]);
    return buildBroadcast(builder, source->getLoc(), broadcast.getOperand(), dims, lastType(value).getShape());
  }
  if (auto constant = dyn_cast_or_null<ConstantOp>(source))
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      return ConstantOp::create(builder, source->getLoc(), splat.resizeSplat(lastType(value)));
  return {};
}

Value LastLayout::findOrBuild(Value value) {
  if (Value last = find(value))
    return last;
  int64_t rank = getTensorType(value.getType()).getRank();
  return lastOf[value] = TransposeOp::create(builder, value.getLoc(), value, channelsLast(rank));
}

void LastLayout::replace(Value value, Value last) {
  int64_t rank = getTensorType(value.getType()).getRank();
  auto first = TransposeOp::create(builder, value.getLoc(), last, channelsFirst(rank));
  transposes.push_back(first);
  lastOf[first] = last;
  value.replaceUsesWithIf(first, [&](OpOperand &use) { return use.getOwner() != last.getDefiningOp(); });
}

void LastLayout::visit(ConvolutionOp op) {
  builder.setInsertionPoint(op);
  int64_t rank = op.getType().getRank();
  Value input = findOrBuild(op.getOperand());
  auto first = TransposeOp::create(builder, op.getLoc(), input, channelsFirst(rank));
  op->setOperand(0, first);
  builder.setInsertionPointAfter(op);
  replace(op.getResult(), TransposeOp::create(builder, op.getLoc(), op.getResult(), channelsLast(rank)));
}

/// Sums over all places of a channel, or over more.
bool LastLayout::visit(ReduceOp op) {
  Value operand = lastOf.lookup(op.getOperand());
  int64_t rank = getTensorType(op.getOperand().getType()).getRank();
  if (!operand ||
      !llvm::all_of(llvm::seq<int64_t>(2, rank), [&](int64_t dim) { return llvm::is_contained(op.getDims(), dim); }))
    return false;
  SmallVector<int64_t> dims = permuted(channelsFirst(rank), op.getDims());
  llvm::sort(dims);
  builder.setInsertionPoint(op);
  op.replaceAllUsesWith(ReduceOp::create(builder, op.getLoc(), op.getKind(), operand, dims).getResult());
  op.erase();
  return true;
}

/// Windows of one channel.
bool LastLayout::visit(MaxPoolOp op) {
  Value operand = lastOf.lookup(op.getOperand());
  size_t spatial = op.getWindow().size();
  if (!operand || getTensorType(op.getType()).getRank() != int64_t(spatial) + 2 || spatial > 2)
    return false;
  auto with = [](ArrayRef<int64_t> sizes, int64_t last) {
    SmallVector<int64_t> all(sizes);
    all.push_back(last);
    return all;
  };
  builder.setInsertionPoint(op);
  Value last = MaxPoolOp::create(builder, op.getLoc(), lastType(op.getResult()), operand, with(op.getWindow(), 1),
                                 with(op.getStrides(), 1), with(op.getLow(), 0), with(op.getHigh(), 0),
                                 with(op.getDilations(), 1));
  replace(op.getResult(), last);
  op.erase();
  return true;
}

/// At least as many operands have a form with channels last as would need a transpose.
bool LastLayout::visitElementwise(Operation *op) {
  int64_t known = 0, others = 0;
  for (Value operand : op->getOperands()) {
    known += lastOf.contains(operand);
    Operation *source = operand.getDefiningOp();
    others += !lastOf.contains(operand) && !(source && isFree(source));
  }
  if (op->getNumResults() != 1 || known == 0 || others > known)
    return false;
  builder.setInsertionPoint(op);
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, findOrBuild(operand));
  Operation *copy = builder.clone(*op, mapping);
  copy->getResult(0).setType(lastType(op->getResult(0)));
  replace(op->getResult(0), copy->getResult(0));
  op->erase();
  return true;
}

bool LastLayout::visit(Operation *op) {
  if (auto convolution = dyn_cast<ConvolutionOp>(op); convolution && isServed(convolution)) {
    visit(convolution);
    return true;
  }
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return visit(reduce);
  if (auto pool = dyn_cast<MaxPoolOp>(op))
    return visit(pool);
  return op->hasTrait<OpTrait::Elementwise>() && isKernelOp(op) && visitElementwise(op);
}

void LastLayout::run() {
  for (Operation &op : llvm::make_early_inc_range(block.getBody().front()))
    visit(&op);
  for (TransposeOp transpose : llvm::reverse(transposes))
    if (transpose.use_empty())
      transpose.erase();
}

/// A program that predicts and has nothing to differentiate: training keeps the layouts of its gradients.
static bool onlyPredicts(ProgramOp program) {
  return llvm::all_of(program.getOps<EntryOp>(), [](EntryOp entry) { return entry.getSymName() == "predict"; });
}

namespace {
struct ChannelsLastPass : impl::ChannelsLastPassBase<ChannelsLastPass> {
  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      if (onlyPredicts(program))
        for (BlockOp block : program.getOps<BlockOp>())
          LastLayout(block).run();
  }
};
} // namespace

} // namespace par

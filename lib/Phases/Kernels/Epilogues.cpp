// Recognizes matmul epilogues (bias, GELU, their gradients) by value: the elementwise ops after the matmul are
// evaluated at random samples and compared with each epilogue that the library has.
#include "Epilogues.h"

#include "Groups.h"

#include "par/Dialect/Analytic.h"
#include "par/Dialect/Interfaces/Interpretable.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;

namespace par {
namespace {

using Samples = std::vector<double>;

constexpr StringRef noEpilogue = "none";

/// Numbers at which functions are compared, and how near they must be: nearer than the approximation of GELU by tanh
/// is to GELU (5e-4 at 2), farther than constants of f32 carry.
constexpr int64_t sampleCount = 96;
constexpr double tolerance = 1e-6, range = 4;

/// The elementwise part of a kernel, played at samples of its inputs: all floats are f64 and nothing is rounded.
class KernelSampler {
public:
  KernelSampler(KernelOp kernel, Value product) : kernel(kernel), product(product) {}

  /// Finds the inputs besides the matmul. False if there are others than a row and a tensor.
  bool readInputs();
  /// Values of the kernel's results. None if an op is not elementwise.
  std::optional<SmallVector<Samples>> play(const Samples &p, const Samples &row, const Samples &other);

  BlockArgument row, other;

private:
  bool isRow(Operation *op) const;
  std::optional<Samples> playOp(Operation *op);
  /// Ops that compute the matmul, which are not interpreted.
  llvm::SmallPtrSet<Operation *, 8> behind;
  llvm::DenseMap<Value, Samples> known;
  KernelOp kernel;
  Value product;
};

struct Known {
  StringRef name; ///< "none": the matmul with a row
  bool readsOther, writesSum;
  double (*function)(double sum, double other);
};

double cubic(double x) { return std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x); }
double gelu(double x, double) { return 0.5 * x * (1 + std::tanh(cubic(x))); }
double geluGrad(double cotangent, double x) {
  double t = std::tanh(cubic(x)), slope = std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
  return cotangent * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope);
}

/// The library's, with the words of bundles.
constexpr Known knownEpilogues[] = {{noEpilogue, false, false, [](double x, double) { return x; }},
                                    {"gelu", false, false, gelu},
                                    {"gelu_aux", false, true, gelu},
                                    {"gelu_grad", true, false, geluGrad}};

Samples samples(uint64_t seed) {
  Samples values(sampleCount);
  for (double &value : values) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    value = (double(seed >> 11) / double(uint64_t(1) << 53) * 2 - 1) * range;
  }
  return values;
}

bool near(const Samples &values, const Samples &wanted) {
  return llvm::all_of(llvm::zip_equal(values, wanted), [](auto pair) {
    auto [value, number] = pair;
    return std::abs(value - number) <= tolerance * (1 + std::abs(number));
  });
}

} // namespace

/// One number for each element of the last dims, at every index of the others.
static bool repeatsRow(BroadcastInDimOp broadcast) {
  ArrayRef<int64_t> row = broadcast.getOperand().getType().getShape(), shape = broadcast.getType().getShape();
  return !row.empty() && row == shape.take_back(row.size()) &&
         llvm::equal(broadcast.getDims(), llvm::seq<int64_t>(shape.size() - row.size(), shape.size()));
}

bool KernelSampler::isRow(Operation *op) const {
  auto broadcast = dyn_cast<BroadcastInDimOp>(op);
  return broadcast && repeatsRow(broadcast) &&
         broadcast.getType().getShape() == getTensorType(product.getType()).getShape();
}

bool KernelSampler::readInputs() {
  SmallVector<Value> pending = {product};
  while (!pending.empty())
    if (Operation *op = pending.pop_back_val().getDefiningOp(); op && behind.insert(op).second)
      llvm::append_range(pending, op->getOperands());
  for (Operation &op : kernel.getBlock().without_terminator()) {
    if (behind.contains(&op))
      continue;
    for (Value operand : op.getOperands()) {
      auto argument = dyn_cast<BlockArgument>(operand);
      if (!argument)
        continue;
      auto shape = getTensorType(argument.getType()).getShape();
      BlockArgument &place = shape == getTensorType(product.getType()).getShape() ? other : row;
      if (place && place != argument)
        return false;
      place = argument;
    }
  }
  return true;
}

std::optional<Samples> KernelSampler::playOp(Operation *op) {
  DenseElementsAttr constant;
  if (matchPattern(op, m_Constant(&constant))) {
    if (!constant.isSplat() || !isa<FloatType>(constant.getElementType()))
      return std::nullopt;
    return Samples(sampleCount, constant.getSplatValue<APFloat>().convertToDouble());
  }
  SmallVector<interp::Tensor> operands;
  auto type = RankedTensorType::get(sampleCount, Float64Type::get(op->getContext()));
  for (Value operand : op->getOperands()) {
    auto values = known.find(operand);
    if (values == known.end())
      return std::nullopt;
    operands.push_back(interp::Tensor::ofFloats(type, values->second));
  }
  // A row's broadcast, or a convert to another float type: the value is the operand's.
  bool widens = isa<ConvertOp>(op) && isa<FloatType>(getTensorType(op->getResult(0).getType()).getElementType());
  if (widens || isRow(op))
    return known.find(op->getOperand(0))->second;
  auto shape = getTensorType(product.getType()).getShape();
  auto isNumbers = [&](Value value) {
    RankedTensorType type = getTensorType(value.getType());
    return type.getShape() == shape && isa<FloatType>(type.getElementType());
  };
  // An analytic function is known by its values on an interval; one in pieces is not.
  if (!isAnalytic(op) || !isNumbers(op->getResult(0)) || !llvm::all_of(op->getOperands(), isNumbers))
    return std::nullopt;
  Operation *copy = op->clone();
  copy->getResult(0).setType(type);
  auto interpretable = dyn_cast<InterpretableOpInterface>(copy);
  auto results = interpretable ? interpretable.interpret(operands) : FailureOr<SmallVector<interp::Tensor>>(failure());
  copy->destroy();
  if (failed(results))
    return std::nullopt;
  return Samples(results->front().floats().begin(), results->front().floats().end());
}

std::optional<SmallVector<Samples>> KernelSampler::play(const Samples &p, const Samples &ofRow,
                                                        const Samples &ofOther) {
  known.clear();
  known[product] = p;
  if (row)
    known[row] = ofRow;
  if (other)
    known[other] = ofOther;
  for (Operation &op : kernel.getBlock().without_terminator()) {
    if (behind.contains(&op))
      continue;
    std::optional<Samples> values = playOp(&op);
    if (!values)
      return std::nullopt;
    known[op.getResult(0)] = std::move(*values);
  }
  SmallVector<Samples> results;
  for (Value result : kernel.getTerminator()->getOperands()) {
    if (!known.contains(result))
      return std::nullopt;
    results.push_back(known[result]);
  }
  return results;
}

std::optional<MatmulEpilogue> describeEpilogue(KernelOp kernel, Value product) {
  KernelSampler player(kernel, product);
  if (!player.readInputs())
    return std::nullopt;
  Samples p = samples(1), row = samples(2), other = samples(3);
  std::optional<SmallVector<Samples>> results = player.play(p, row, other);
  if (!results)
    return std::nullopt;
  MatmulEpilogue found;
  Samples sum = p;
  if (player.row) {
    found.bias = player.row.getArgNumber();
    for (auto [number, bias] : llvm::zip_equal(sum, row))
      number += bias;
  }
  for (const Known &epilogue : knownEpilogues) {
    if (results->size() != 1 + unsigned(epilogue.writesSum) || epilogue.readsOther != bool(player.other) ||
        (epilogue.readsOther && player.row) || (epilogue.name == noEpilogue && !player.row))
      continue;
    Samples wanted(sampleCount);
    for (int64_t i = 0; i < sampleCount; ++i)
      wanted[i] = epilogue.function(sum[i], other[i]);
    for (unsigned index = 0; index < results->size(); ++index) {
      if (!near((*results)[index], wanted) || (epilogue.writesSum && !near((*results)[1 - index], sum)))
        continue;
      found.name = epilogue.name;
      found.result = index;
      if (epilogue.readsOther)
        found.auxArgument = player.other.getArgNumber();
      if (epilogue.writesSum)
        found.auxResult = 1 - index;
      return found;
    }
  }
  return std::nullopt;
}

/// A row that is rounded at its add: the library needs it in the matmul's type, so it is rounded before.
static bool isRoundedRow(Operation *op) {
  auto convert = dyn_cast<ConvertOp>(op);
  if (!convert || !getElementTypeOrSelf(convert.getOperand().getType()).isF32() ||
      !isa<FloatType>(getElementTypeOrSelf(convert.getType())) || getElementTypeOrSelf(convert.getType()).isF32())
    return false;
  return llvm::all_of(op->getUsers(), [](Operation *user) {
    auto broadcast = dyn_cast<BroadcastInDimOp>(user);
    return broadcast && repeatsRow(broadcast);
  });
}

/// The group of a matmul with the ops of another group on its result; null if no library call does that.
static std::unique_ptr<Group> finished(const Group &product, const Group &rest) {
  auto group = std::make_unique<Group>();
  group->implementation = product.implementation;
  group->anchor = rest.anchor;
  for (const Group *part : {&product, &rest}) {
    group->ops.append(part->ops);
    group->clones.insert(part->clones.begin(), part->clones.end());
    llvm::append_range(group->body, part->body);
  }
  // A row may be rounded only by `rest`: the whole group then reads the rounded row.
  llvm::SetVector<Operation *> body(group->body.begin(), group->body.end());
  body.remove_if([&](Operation *op) { return isRoundedRow(op) && !llvm::is_contained(group->ops, op); });
  group->body = body.takeVector();
  llvm::SmallPtrSet<Operation *, 16> computed(group->body.begin(), group->body.end());
  llvm::SetVector<Value> read;
  for (Operation *op : group->body)
    for (Value operand : op->getOperands())
      if (!computed.contains(operand.getDefiningOp()))
        read.insert(operand);
  group->arguments = read.takeVector();
  group->results = rest.results;
  OpBuilder builder(group->anchor->getContext());
  OwningOpRef<KernelOp> kernel(buildKernel(builder, *group));
  std::optional<MatmulCall> call = describeMatmul(*kernel);
  return call && call->epilogue ? std::move(group) : nullptr;
}

/// Makes a group for each row that is rounded only for this group.
static void addRows(const Group &group, llvm::DenseMap<Operation *, Group *> &groupOf,
                    std::vector<std::unique_ptr<Group>> &rows) {
  for (Value argument : group.arguments) {
    Operation *op = argument.getDefiningOp();
    if (!op || groupOf.contains(op) || !isRoundedRow(op))
      continue;
    auto row = std::make_unique<Group>();
    row->ops = {op};
    row->anchor = op;
    row->results = {argument};
    row->close([&](Operation *other) { return groupOf.contains(other); });
    groupOf[op] = row.get();
    rows.push_back(std::move(row));
  }
}

/// Rows that only generated kernels read are rounded there: no kernel by itself is worth so few numbers.
static void absorbRows(BlockOp block, llvm::DenseMap<Operation *, Group *> &groupOf,
                       std::vector<std::unique_ptr<Group>> &groups) {
  llvm::DenseMap<Value, SmallVector<Group *>> readers;
  for (const auto &group : groups)
    for (Value argument : group->arguments)
      readers[argument].push_back(group.get());
  llvm::DenseSet<Group *> absorbed;
  for (const auto &group : groups) {
    if (group->implementation != "generated" || group->ops.size() != 1 || !isRoundedRow(group->ops.front()))
      continue;
    Operation *op = group->ops.front();
    ArrayRef<Group *> by = readers[op->getResult(0)];
    if (!llvm::all_of(by, [](Group *reader) { return reader->implementation == "generated"; }))
      continue;
    absorbed.insert(group.get());
    groupOf.erase(op);
    for (Group *reader : by)
      reader->absorb(op, [&](Operation *other) { return groupOf.contains(other); });
  }
  llvm::erase_if(groups, [&](const std::unique_ptr<Group> &group) { return absorbed.contains(group.get()); });
}

/// Whether the value is added to a matmul, both perhaps converted before.
static bool isAddedToMatmul(Value value) {
  auto findSource = [](Value value) {
    while (auto convert = value.getDefiningOp<ConvertOp>())
      value = convert.getOperand();
    return value.getDefiningOp();
  };
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (auto convert = dyn_cast<ConvertOp>(user))
      return isAddedToMatmul(convert.getResult());
    return isa<AddOp>(user) && llvm::any_of(user->getOperands(),
                                            [&](Value operand) { return isa_and_nonnull<DotOp>(findSource(operand)); });
  });
}

void roundRowsFirst(BlockOp block) {
  for (auto convert : llvm::make_early_inc_range(block.getOps<ConvertOp>())) {
    auto broadcast = convert.getOperand().getDefiningOp<BroadcastInDimOp>();
    Type element = getElementTypeOrSelf(convert.getType());
    if (!broadcast || !isa<FloatType>(element) || element.isF32() || !repeatsRow(broadcast) ||
        !isAddedToMatmul(convert.getResult()))
      continue;
    OpBuilder builder(convert);
    Value row = buildConvert(builder, convert.getLoc(), broadcast.getOperand(), element);
    Operation *copy = builder.clone(*broadcast);
    copy->setOperand(0, row);
    copy->getResult(0).setType(cast<RankedTensorType>(convert.getType()));
    convert.replaceAllUsesWith(copy->getResult(0));
    convert.erase();
    if (broadcast->use_empty())
      broadcast.erase();
  }
}

void fuseEpilogues(BlockOp block, llvm::DenseMap<Operation *, Group *> &groupOf,
                   std::vector<std::unique_ptr<Group>> &groups) {
  llvm::DenseMap<Value, unsigned> readers;
  for (const auto &group : groups)
    for (Value argument : group->arguments)
      ++readers[argument];
  for (Operation &op : block.getBody().front())
    if (!isKernelOp(&op))
      for (Value operand : op.getOperands())
        ++readers[operand];
  llvm::DenseSet<Group *> replaced;
  std::vector<std::unique_ptr<Group>> rows;
  for (auto &rest : groups) {
    if (rest->implementation != "generated" || !rest->tied.empty())
      continue;
    for (Value argument : rest->arguments) {
      Group *product = groupOf.lookup(argument.getDefiningOp());
      if (!product || product->implementation != "library:matmul" || !product->tied.empty() ||
          product->results.size() != 1 || readers[argument] != 1)
        continue;
      std::unique_ptr<Group> group = finished(*product, *rest);
      if (!group)
        continue;
      replaced.insert(product);
      for (Operation *op : group->ops)
        groupOf[op] = group.get();
      addRows(*group, groupOf, rows);
      rest = std::move(group);
      break;
    }
  }
  llvm::erase_if(groups, [&](const std::unique_ptr<Group> &group) { return replaced.contains(group.get()); });
  llvm::move(rows, std::back_inserter(groups));
  absorbRows(block, groupOf, groups);
}

} // namespace par

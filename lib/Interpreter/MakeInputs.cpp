// Random inputs and variables for the interpreter, seeded by name, so that every phase sees the same values. The range
// of integers follows from the ops that they flow into.
#include "par/Dialect/Calls.h"
#include "par/Dialect/Parts.h"
#include "par/Interpreter/Interpreter.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/Support/xxhash.h"

#include <cmath>
#include <random>

using namespace mlir;

namespace par::interp {

/// The same name and seed give the same values everywhere.
static std::mt19937_64 generatorFor(StringRef name, uint64_t seed) {
  return std::mt19937_64(llvm::xxh3_64bits(name) ^ (seed * 0x9E3779B97F4A7C15ull));
}

static Tensor randomTensor(StringRef name, RankedTensorType type, uint64_t seed, int64_t below) {
  std::mt19937_64 generator = generatorFor(name, seed);
  Tensor tensor(type);
  if (tensor.isFloat()) {
    for (double &x : tensor.mutableFloats())
      x = static_cast<double>(generator() >> 11) * 0x1p-52 - 1;
  } else {
    for (int64_t &x : tensor.mutableInts())
      x = static_cast<int64_t>(generator() % static_cast<uint64_t>(below));
  }
  return tensor;
}

namespace {
/// The range of an integer input, derived from its users; follows ops that keep integers.
class IntegerRange {
public:
  int64_t below = 1 << 20;        ///< the smallest table that they address
  std::optional<int64_t> ignored; ///< a label that the loss leaves out, if they address nothing else

  void follow(Value value) {
    if (!seen.insert(value).second)
      return;
    for (OpOperand &use : value.getUses())
      visit(use);
  }
  /// Follows the values loaded from a buffer.
  void followBuffer(ProgramOp program, StringRef buffer) {
    program.walk([&](LoadOp load) {
      if (load.getBuffer() == buffer)
        follow(load);
    });
  }
  bool isIndex() const { return addresses; }
  std::optional<int64_t> exception() const { return addresses ? std::nullopt : ignored; }

private:
  static int64_t sizeOf(Value table, int64_t dim) { return cast<RankedTensorType>(table.getType()).getDimSize(dim); }
  /// An index, the operand of this number, is of a dim of `size` elements.
  void address(OpOperand &use, unsigned index, int64_t size) {
    if (use.getOperandNumber() != index)
      return;
    below = std::min(below, size);
    addresses = true;
  }
  void visit(OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto gather = dyn_cast<GatherOp>(user))
      return address(use, 1, sizeOf(gather.getOperand(), gather.getDim()));
    if (auto take = dyn_cast<TakeOp>(user))
      return address(use, 1, sizeOf(take.getOperand(), take.getDim()));
    if (isa<IndexAddOp, ScatterAddOp, ScatterReduceOp>(user))
      return address(use, 1, user->getAttrOfType<IntegerAttr>("size").getInt());
    if (auto slice = dyn_cast<DynamicSliceOp>(user))
      return address(use, 1, sizeOf(slice.getOperand(), slice.getDim()) - int64_t(slice.getSize()) + 1);
    if (auto update = dyn_cast<UpdateSliceOp>(user))
      address(use, 2, sizeOf(update.getOperand(), update.getDim()) - sizeOf(update.getUpdate(), update.getDim()) + 1);
    if (auto loss = dyn_cast<CrossEntropyOp>(user)) {
      below = std::min(below, cast<RankedTensorType>(loss.getLogits().getType()).getShape().back());
      ignored = static_cast<int64_t>(loss.getIgnore());
    } else if (auto loop = dyn_cast<LoopOp>(user)) {
      follow(loop.getBody().getArgument(use.getOperandNumber() + 1));
    } else if (auto store = dyn_cast<StoreOp>(user)) {
      followBuffer(user->getParentOfType<ProgramOp>(), store.getBuffer());
    } else if (auto send = dyn_cast<SendOp>(user)) {
      user->getParentOfType<ModuleOp>().walk([&](RecvOp recv) {
        if (recv.getTag() == send.getTag())
          follow(recv.getResult(use.getOperandNumber()));
      });
    } else if (auto parts = dyn_cast<SendPartsOp>(user)) {
      user->getParentOfType<ModuleOp>().walk([&](RecvPartsOp recv) {
        if (recv.getTag() == parts.getTag())
          llvm::for_each(recv.getResults(), [&](Value part) { follow(part); });
      });
    } else if (isa<RunOp, ExecOp, LaunchOp>(user)) {
      auto callee = user->getAttrOfType<FlatSymbolRefAttr>(isa<LaunchOp>(user) ? "kernel" : "fragment");
      Operation *body = user->getParentOfType<ModuleOp>().lookupSymbol(callee);
      follow(body->getRegion(0).getArgument(use.getOperandNumber()));
      followIntegers(user);
    } else {
      followIntegers(user);
    }
  }
  void followIntegers(Operation *op) {
    for (Value result : op->getResults())
      if (auto type = dyn_cast<RankedTensorType>(result.getType());
          type && type.getElementType().isInteger() && !type.getElementType().isInteger(1))
        follow(result);
  }

  llvm::DenseSet<Value> seen;
  bool addresses = false;
};
} // namespace

std::optional<int64_t> indexLimit(Value value) {
  IntegerRange range;
  range.follow(value);
  return range.isIndex() ? std::optional(std::max<int64_t>(range.below, 1)) : std::nullopt;
}

static Tensor makeInput(StringRef name, RankedTensorType type, uint64_t seed, const IntegerRange &range) {
  Tensor input = randomTensor(name, type, seed, range.below);
  // Every fifth label or so is one that the loss ignores.
  if (auto ignored = range.exception(); ignored && !input.isFloat())
    for (int64_t &x : input.mutableInts())
      if (x % 5 == 1)
        x = *ignored;
  return input;
}

Named makeInputs(StepOp step, uint64_t seed) {
  Named inputs;
  for (BlockArgument argument : step.getArguments()) {
    std::string name = step.getInputs()
                           ? cast<StringAttr>((*step.getInputs())[argument.getArgNumber()]).getValue().str()
                           : std::to_string(argument.getArgNumber());
    IntegerRange range;
    range.follow(argument);
    // An input that a loop slices holds the batch, and each call has its own batch.
    RankedTensorType type = getTensorType(argument.getType());
    if (int64_t calls = getCalls(step); calls > 1 && llvm::any_of(argument.getUsers(), llvm::IsaPred<LoopOp>)) {
      SmallVector<int64_t> shape(type.getShape());
      shape[0] *= calls;
      type = type.clone(shape);
    }
    inputs[name] = makeInput(name, type, seed, range);
  }
  return inputs;
}

/// Inputs of programs' entries are buffers; one that is fed once a microbatch has an element for each of them in dim 0.
static Named makeProgramInputs(ModuleOp module, StringRef name, uint64_t seed) {
  Named inputs;
  std::map<std::string, std::pair<RankedTensorType, IntegerRange>> found;
  for (auto program : module.getOps<ProgramOp>()) {
    auto entry = dyn_cast_or_null<EntryOp>(SymbolTable::lookupSymbolIn(program, name));
    int64_t count = 1;
    for (int64_t microbatch : entry ? entry.getMicrobatches() : ArrayRef<int64_t>())
      count = std::max(count, microbatch + 1);
    for (auto buffer : program.getOps<BufferOp>()) {
      if (buffer.getKind() != BufferKind::input || !buffer.getOf() || !buffer.getDist())
        continue;
      RankedTensorType type = cast<DistType>(*buffer.getDist()).getTensor();
      SmallVector<int64_t> shape(type.getShape());
      if (buffer.getSliced())
        shape.insert(shape.begin(), count);
      auto &[whole, range] = found[buffer.getOf()->str()];
      whole = type.clone(shape);
      range.followBuffer(program, buffer.getSymName());
    }
  }
  for (auto &[input, what] : found)
    inputs[input] = makeInput(input, what.first, seed, what.second);
  return inputs;
}

Named makeInputs(ModuleOp module, StringRef entry, uint64_t seed) {
  if (auto step = module.lookupSymbol<StepOp>(entry))
    return makeInputs(step, seed);
  return makeProgramInputs(module, entry, seed);
}

Named makeVariables(ModuleOp module, uint64_t seed) {
  Named variables;
  for (auto variable : module.getOps<VariableOp>()) {
    std::string name = variable.getSymName().str();
    if (variable.getKind() == VariableKind::copy || variable.getValue())
      continue;
    Tensor value = randomTensor(name, variable.getTensorType(), seed, 2);
    // Weights as large as after a usual initialisation, so that results of matmuls neither vanish nor saturate the ops
    // after them. Carried variables are not weights, and Split changes their first dim.
    RankedTensorType type = variable.getTensorType();
    if (value.isFloat() && type.getRank() > 1 && variable.getKind() != VariableKind::carried)
      for (double &x : value.mutableFloats())
        x *= 2 / std::sqrt(static_cast<double>(type.getDimSize(0)));
    // Second moments, counts and moving variances are not negative; a step has been done before.
    if (variable.getKind() == VariableKind::state || (variable.getKind() == VariableKind::buffer && value.isFloat()))
      for (double &x : value.mutableFloats())
        x = std::fabs(x);
    if (variable.getKind() == VariableKind::counter && value.isFloat())
      llvm::fill(value.mutableFloats(), 1);
    if (variable.getKind() == VariableKind::hyperparameter && value.isFloat())
      llvm::fill(value.mutableFloats(), 0.1);
    variables[name] = value;
  }
  return variables;
}

} // namespace par::interp

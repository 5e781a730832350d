#include "Operands.h"

#include "par/Interpreter/Interpreter.h"

#include <cmath>

using namespace mlir;

namespace par::kernel_check {

using interp::Tensor;

int64_t Place::indexOf(AxisIndexOp op) const { return mesh ? mesh.getIndex(rank, getAxes(op.getAxes())) : 0; }

uint64_t Place::valueOf(const ImmediateInfo &immediate) const {
  if (immediate.axes.empty())
    return static_cast<uint64_t>(immediate.number);
  if (!mesh)
    return 0;
  auto nameOf = [&](StringRef axis) { return StringAttr::get(mesh.getContext(), axis); };
  int64_t value = mesh.getIndex(rank, nameOf(immediate.axes[immediate.which]));
  for (StringRef behind : llvm::drop_begin(immediate.axes, immediate.which + 1))
    value *= mesh.getSize(nameOf(behind));
  return static_cast<uint64_t>(value);
}

std::pair<Place, Place> placesOf(ModuleOp module, StringRef kernel) {
  MeshAttr mesh;
  module.walk([&](LaunchOp launch) {
    auto program = launch->getParentOfType<ProgramOp>();
    if (launch.getKernel() != kernel || !program)
      return WalkResult::advance();
    auto stage = module.lookupSymbol<StageOp>(program.getFirstStage().getAttr());
    mesh = stage ? stage.getMesh() : MeshAttr();
    return WalkResult::interrupt();
  });
  return {Place{mesh, 0}, Place{mesh, mesh ? mesh.getRanks() - 1 : 0}};
}

namespace {

/// Numbers of at most 53 bits alike on every machine, which distributions of the library are not.
double drawFraction(std::mt19937_64 &random) { return std::ldexp(static_cast<double>(random() >> 11), -53); }

Tensor drawFloats(RankedTensorType type, bool positive, std::mt19937_64 &random) {
  Tensor tensor(type);
  for (double &value : tensor.mutableFloats())
    value = positive ? 0.05 + 1.5 * drawFraction(random) : 4 * drawFraction(random) - 2;
  roundElements(tensor, {});
  return tensor;
}

Tensor drawIntegers(RankedTensorType type, uint64_t below, std::mt19937_64 &random) {
  Tensor tensor(type);
  for (int64_t &value : tensor.mutableInts())
    value = static_cast<int64_t>(random() % below);
  return tensor;
}

} // namespace

std::vector<Tensor> drawOperands(KernelOp kernel, bool positive, int64_t most, std::mt19937_64 &random) {
  std::vector<Tensor> operands;
  for (BlockArgument argument : kernel.getBody().getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    if (isa<FloatType>(type.getElementType())) {
      operands.push_back(drawFloats(type, positive, random));
      continue;
    }
    int64_t limit =
        type.getElementType().isInteger(1) ? 2 : std::min(most, interp::indexLimit(argument).value_or(most));
    if (type.getElementType().isInteger(8))
      limit = std::min<int64_t>(limit, 128);
    operands.push_back(drawIntegers(type, static_cast<uint64_t>(limit), random));
  }
  return operands;
}

} // namespace par::kernel_check

// Shared code of tests of sharded steps: meshes, random shardings, comparison of outcomes.
#pragma once

#include "../Phases/Train/OneOp.h"
#include "../Phases/Train/OtherCases.h"

#include "par/Dialect/Term.h"

#include <gtest/gtest-spi.h>

#include <cmath>
namespace par::test {

inline const std::vector<std::vector<int64_t>> meshes{{2}, {4}, {2, 2}, {3, 2}};

/// "of_2_2"
inline std::string meshName(const ::testing::TestParamInfo<std::vector<int64_t>> &info) {
  std::string name = "of";
  for (int64_t size : info.param)
    name += "_" + std::to_string(size);
  return name;
}

/// PAR_SHARDINGS draws of each kind of case on each mesh (check-all-shardings.test), or a few.
inline unsigned countShardings(unsigned few) { return drawsOf("PAR_SHARDINGS", few); }

/// Axes "dp" and "tp".
inline MeshAttr makeMesh(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> sizes) {
  const llvm::StringRef names[] = {"dp", "tp"};
  llvm::SmallVector<mlir::StringAttr> axes;
  for (size_t i = 0; i < sizes.size(); ++i)
    axes.push_back(mlir::StringAttr::get(context, names[i]));
  return MeshAttr::get(context, axes, sizes);
}

/// Axes of the mesh, each over some dim that has as many elements as ranks or, one in four, over none; of
/// those over none some are summed over if `sums`.
inline ShardingAttr drawSharding(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> shape, MeshAttr mesh,
                                 Chooser &choose, bool sums) {
  ShardingAttr sharding = ShardingAttr::getReplicated(context, shape.size());
  llvm::SmallVector<mlir::StringAttr> unreduced;
  for (mlir::StringAttr axis : mesh.getNames()) {
    llvm::SmallVector<int64_t> able;
    for (int64_t dim = 0; dim < int64_t(shape.size()); ++dim)
      if (mesh.getSize(sharding.getAxes(dim)) * mesh.getSize(axis) <= shape[dim])
        able.push_back(dim);
    if (able.empty() || choose.number(0, 3) == 0) {
      if (sums && choose.number(0, 1))
        unreduced.push_back(axis);
      continue;
    }
    int64_t dim = able[choose.number(0, able.size() - 1)];
    llvm::SmallVector<mlir::StringAttr> axes(sharding.getAxes(dim));
    axes.push_back(axis);
    sharding = sharding.withDim(dim, axes);
  }
  return sharding.withUnreduced(unreduced);
}

/// Puts the stage of a mesh into the module, and constraints on most arguments and results of the step @eval's ops.
inline void constrainStep(mlir::ModuleOp module, MeshAttr mesh, Chooser &choose) {
  auto step = module.lookupSymbol<StepOp>("eval");
  mlir::OpBuilder builder(module.getContext());
  builder.setInsertionPointToStart(module.getBody());
  StageOp::create(builder, module.getLoc(), "s0", mesh, dimRange(0, mesh.getRanks()));
  llvm::SmallVector<mlir::Value> values(step.getBlock().getArguments());
  for (mlir::Operation &each : step.getBlock())
    llvm::append_range(values, each.getResults());
  for (mlir::Value value : values) {
    auto type = llvm::cast<mlir::RankedTensorType>(value.getType());
    if (type.getRank() == 0 || value.use_empty() || choose.number(0, 3) == 0)
      continue;
    ShardingAttr sharding = drawSharding(module.getContext(), type.getShape(), mesh, choose, false);
    builder.setInsertionPointAfterValue(value);
    auto constrained = ConstrainOp::create(builder, module.getLoc(), value, sharding);
    value.replaceAllUsesExcept(constrained, constrained);
  }
}

/// Adds a step that trains the only parameter: it writes w - gradient.
inline void differentiateStep(Session &session, mlir::ModuleOp module) {
  session.run(module, [](mlir::OpPassManager &manager) {
    manager.addPass(createDifferentiatePass());
    AddOptimizerPassOptions options;
    options.lr = 1;
    manager.addPass(createAddOptimizerPass(options));
  });
  module.lookupSymbol<StepOp>("eval").erase();
}

/// Exact where nothing is computed; NaN equals NaN, and an infinity itself.
inline void expectSame(const interp::Named &actual, const interp::Named &expected) {
  for (auto &[name, whole] : expected) {
    auto at = actual.find(name);
    ASSERT_NE(at, actual.end()) << name;
    ASSERT_EQ(at->second.getShape(), whole.getShape()) << name;
    double largest = 1e-3;
    for (double value : whole.floats())
      if (std::isfinite(value))
        largest = std::max(largest, std::abs(value));
    for (auto [x, y] : llvm::zip(at->second.floats(), whole.floats()))
      if (x != y && !(std::isnan(x) && std::isnan(y)))
        ASSERT_NEAR(x, y, 1e-9 * largest) << name;
  }
}

/// The first failure while `act` runs, in this thread; empty: none.
inline std::string findFault(llvm::function_ref<void(::testing::TestPartResultArray &)> act) {
  ::testing::TestPartResultArray faults;
  {
    ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &faults);
    act(faults);
  }
  return faults.size() ? faults.GetTestPartResult(0).message() : "";
}

} // namespace par::test

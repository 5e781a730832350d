// Rewritten convolutions give the interpreter's results of the originals, on random windows and groups.
#include "par/Dialect/Windows.h"
#include "par/Interpreter/Interpreter.h"
#include "par/Phases/Kernels/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "gtest/gtest.h"

#include <random>

using namespace mlir;

namespace {

class Convolutions : public ::testing::Test {
protected:
  Convolutions() {
    DialectRegistry registry;
    par::registerDialect(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  int64_t draw(int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random); }

  static std::string join(ArrayRef<int64_t> numbers, StringRef by) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::interleave(numbers, stream, by);
    return text;
  }

  /// The three forms over the same windows, each with its store. Empty if no window fits.
  std::string drawProgram() {
    int64_t rank = draw(1, 3), images = draw(1, 3), groups = draw(1, 3), channels = draw(1, 3), outputs = draw(1, 3);
    bool single = draw(0, 2) == 0; // windows of one element
    SmallVector<int64_t> input{images, groups * channels}, filter{groups * outputs, channels},
        output{images, groups * outputs};
    par::Windows windows;
    for (int64_t dim = 0; dim < rank; ++dim) {
      windows.size.push_back(single ? 1 : draw(1, 3));
      windows.strides.push_back(draw(1, 3));
      windows.low.push_back(draw(-1, 2));
      windows.high.push_back(draw(-1, 2));
      windows.dilations.push_back(draw(1, 2));
      input.push_back(draw(2, 6));
      filter.push_back(windows.size.back());
      output.push_back(windows.count(dim, input.back()));
      if (output.back() < 1)
        return "";
    }
    auto list = [](ArrayRef<int64_t> values) { return "[" + join(values, ", ") + "]"; };
    auto type = [](ArrayRef<int64_t> shape) { return "tensor<" + join(shape, "x") + "xf64>"; };
    std::string how = " strides " + list(windows.strides) + " low " + list(windows.low) + " high " +
                      list(windows.high) + " dilations " + list(windows.dilations) + " groups " +
                      std::to_string(groups);
    std::string x = type(input), w = type(filter), y = type(output);
    auto form = [&](std::string op, std::string left, std::string leftType, std::string right, std::string rightType,
                    std::string made) {
      return "    %" + op + " = par." + op + " %" + left + ", %" + right + how + " : (" + leftType + ", " + rightType +
             ") -> " + made + "\n    par.store %" + op + " to @" + op + " : " + made + "\n";
    };
    std::string buffers, loads;
    for (auto [name, of] : {std::pair("x", x),
                            {"w", w},
                            {"y", y},
                            {"convolution", y},
                            {"convolution_input_grad", x},
                            {"convolution_filter_grad", w}})
      buffers += std::string("  par.buffer @") + name + " temp : " + of + "\n";
    for (auto [name, of] : {std::pair("x", x), {"w", w}, {"y", y}})
      loads += std::string("    %") + name + " = par.load @" + name + " : " + of + "\n";
    return "par.stage @s0 <> ranks [0]\npar.program @p on @s0 ranks [0] {\n" + buffers + "  par.block @b {\n" + loads +
           form("convolution", "x", x, "w", w, y) + form("convolution_input_grad", "y", y, "w", w, x) +
           form("convolution_filter_grad", "x", x, "y", y, w) + "  }\n}\n";
  }

  /// Stored values of the block, by buffer.
  par::interp::Named run(ModuleOp module, uint64_t seed) {
    par::interp::Named stored;
    std::vector<par::interp::RankValues> values(1);
    auto block = *(*module.getOps<par::ProgramOp>().begin()).getOps<par::BlockOp>().begin();
    std::mt19937_64 numbers(seed);
    for (Operation &op : block.getBody().front()) {
      if (auto load = dyn_cast<par::LoadOp>(op)) {
        auto type = cast<RankedTensorType>(load.getType());
        std::vector<double> drawn(type.getNumElements());
        for (double &number : drawn)
          number = std::uniform_real_distribution<double>(-1, 1)(numbers);
        values[0][load.getResult()] = par::interp::Tensor::ofFloats(type, drawn);
      } else if (auto store = dyn_cast<par::StoreOp>(op)) {
        stored[store.getBuffer().str()] = values[0][store.getOperand()];
      } else if (failed(par::interp::runOp(op, values, {}))) {
        return {};
      }
    }
    return stored;
  }

  void check(std::unique_ptr<Pass> (*create)(), function_ref<bool(Operation *)> isGone) {
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      random.seed(seed);
      std::string text = drawProgram();
      if (text.empty())
        continue;
      auto module = parseSourceString<ModuleOp>(text, &context);
      ASSERT_TRUE(module) << text;
      par::interp::Named wanted = run(*module, seed);
      PassManager manager(&context);
      manager.addPass(create());
      ASSERT_TRUE(succeeded(manager.run(*module)));
      module->walk([&](Operation *op) { EXPECT_FALSE(isGone(op)) << text; });
      par::interp::Named found = run(*module, seed);
      ASSERT_EQ(wanted.size(), 3u);
      ASSERT_EQ(found.size(), 3u);
      for (auto &[name, tensor] : wanted)
        for (size_t i = 0; i < tensor.floats().size(); ++i) // sums of at most 27 x 27 terms, in another order
          EXPECT_NEAR(found[name].floats()[i], tensor.floats()[i], 1e-12) << name << "\n" << text;
    }
  }

  MLIRContext context;
  std::mt19937_64 random;
};

bool isConvolution(Operation *op) {
  return isa<par::ConvolutionOp, par::ConvolutionInputGradOp, par::ConvolutionFilterGradOp>(op);
}

TEST_F(Convolutions, AreProductsInFloat64) { check(par::createExpandConvolutionsPass, isConvolution); }

TEST_F(Convolutions, SkipNoElementsOfTheirOwn) {
  check(par::createSeparateStridesPass, [](Operation *op) {
    if (!isConvolution(op))
      return false;
    Value filter = isa<par::ConvolutionFilterGradOp>(op) ? op->getResult(0) : op->getOperand(1);
    ArrayRef<int64_t> window = cast<RankedTensorType>(filter.getType()).getShape().drop_front(2);
    ArrayRef<int64_t> strides = op->getAttrOfType<DenseI64ArrayAttr>("strides").asArrayRef();
    return llvm::all_of(window, [](int64_t size) { return size == 1; }) &&
           llvm::any_of(strides, [](int64_t stride) { return stride > 1; });
  });
}

} // namespace

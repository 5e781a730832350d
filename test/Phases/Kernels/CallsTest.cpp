// Calls of the library and of the runtime's kernels that kernels amount to: numbers worked out by hand.
#include "par/Phases/Kernels/Builtin.h"
#include "par/Phases/Kernels/Matmul.h"

#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

using namespace mlir;

namespace {

class Calls : public ::testing::Test {
protected:
  par::KernelOp parse(const std::string &text) {
    DialectRegistry registry;
    par::registerDialect(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = parseSourceString<ModuleOp>(text, &context);
    return module ? *module->getOps<par::KernelOp>().begin() : par::KernelOp();
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

using Numbers = SmallVector<int64_t>;

TEST_F(Calls, PlainProduct) {
  auto call = par::describeMatmul(parse(R"(
    par.kernel @k(%a: tensor<2x3x4xf32>, %b: tensor<4x5xf32>) -> tensor<2x3x5xf32>
        attributes {implementation = "library:matmul"} {
      %0 = par.dot %a, %b contracting [2] x [0] : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32>
      par.return %0 : tensor<2x3x5xf32>
    })"));
  ASSERT_TRUE(call);
  EXPECT_EQ(std::tuple(call->m, call->n, call->k), std::tuple(6, 5, 4));
  EXPECT_EQ(std::tuple(call->lda, call->ldb, call->ldc), std::tuple(4, 5, 5));
  EXPECT_FALSE(call->transA || call->transB || call->accumulator);
  EXPECT_TRUE(call->batch.empty());
}

TEST_F(Calls, WeightGradientAddsToItsSum) {
  auto call = par::describeMatmul(parse(R"(
    par.kernel @k(%x: tensor<2x3x4xf32>, %d: tensor<2x3x5xf32>, %s: tensor<4x5xf32>) -> tensor<4x5xf32>
        attributes {implementation = "library:matmul", tied = array<i64: 2>} {
      %0 = par.dot %x, %d contracting [0, 1] x [0, 1] : (tensor<2x3x4xf32>, tensor<2x3x5xf32>) -> tensor<4x5xf32>
      %1 = par.add %s, %0 : tensor<4x5xf32>
      par.return %1 : tensor<4x5xf32>
    })"));
  ASSERT_TRUE(call);
  EXPECT_EQ(std::tuple(call->m, call->n, call->k), std::tuple(4, 5, 6));
  EXPECT_TRUE(call->transA);
  EXPECT_EQ(call->lda, 4);
  EXPECT_EQ(call->accumulator, 2u);
  EXPECT_EQ(call->getBeta(), 1);
}

TEST_F(Calls, WeightGradientBesideTheSumOfEitherOperand) {
  for (bool ofRight : {true, false}) {
    std::string sum = ofRight ? "%d dims [0, 1] : tensor<2x3x16xf32> to tensor<16xf32>"
                              : "%x dims [0, 1] : tensor<2x3x8xf32> to tensor<8xf32>";
    std::string result = ofRight ? "tensor<16xf32>" : "tensor<8xf32>";
    auto call = par::describeMatmul(parse(R"(
      par.kernel @k(%x: tensor<2x3x8xf32>, %d: tensor<2x3x16xf32>) -> (tensor<8x16xf32>, )" +
                                          result + R"()
          attributes {implementation = "library:matmul"} {
        %0 = par.dot %x, %d contracting [0, 1] x [0, 1] : (tensor<2x3x8xf32>, tensor<2x3x16xf32>) -> tensor<8x16xf32>
        %1 = par.reduce sum )" + sum + R"(
        par.return %0, %1 : tensor<8x16xf32>, )" +
                                          result + "\n}"));
    ASSERT_TRUE(call && call->epilogue);
    EXPECT_EQ(call->epilogue->name, ofRight ? "sum_b" : "sum_a");
    EXPECT_EQ(call->epilogue->result, 0u);
    EXPECT_EQ(call->epilogue->auxResult, 1u);
    EXPECT_TRUE(call->transA && !call->transB);
  }
}

TEST_F(Calls, HeadsAreBatchesWithStrides) {
  auto call = par::describeMatmul(parse(R"(
    par.kernel @k(%p: tensor<2x4x3x5xf32>, %v: tensor<2x5x8xf32>) -> tensor<2x3x8xf32>
        attributes {implementation = "library:matmul"} {
      %0 = par.reshape %v : tensor<2x5x8xf32> to tensor<2x5x4x2xf32>
      %1 = par.transpose %0 [0, 2, 1, 3] : tensor<2x5x4x2xf32> to tensor<2x4x5x2xf32>
      %2 = par.dot %p, %1 contracting [3] x [2] batching [0, 1] x [0, 1]
          : (tensor<2x4x3x5xf32>, tensor<2x4x5x2xf32>) -> tensor<2x4x3x2xf32>
      %3 = par.transpose %2 [0, 2, 1, 3] : tensor<2x4x3x2xf32> to tensor<2x3x4x2xf32>
      %4 = par.reshape %3 : tensor<2x3x4x2xf32> to tensor<2x3x8xf32>
      par.return %4 : tensor<2x3x8xf32>
    })"));
  ASSERT_TRUE(call);
  EXPECT_EQ(std::tuple(call->m, call->n, call->k), std::tuple(3, 2, 5));
  EXPECT_EQ(std::tuple(call->lda, call->ldb, call->ldc), std::tuple(5, 8, 8));
  EXPECT_EQ(call->batch, (Numbers{2, 4}));
  EXPECT_EQ(call->strideA, (Numbers{60, 15}));
  EXPECT_EQ(call->strideB, (Numbers{40, 2}));
  EXPECT_EQ(call->strideC, (Numbers{24, 2}));
}

TEST_F(Calls, TurnedRound) {
  auto call = par::describeMatmul(parse(R"(
    par.kernel @k(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>) -> tensor<5x3xf32>
        attributes {implementation = "library:matmul"} {
      %0 = par.dot %a, %b contracting [1] x [0] : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
      %1 = par.transpose %0 [1, 0] : tensor<3x5xf32> to tensor<5x3xf32>
      par.return %1 : tensor<5x3xf32>
    })"));
  ASSERT_TRUE(call);
  EXPECT_EQ(std::tuple(call->lhs, call->rhs), std::tuple(1u, 0u));
  EXPECT_EQ(std::tuple(call->m, call->n, call->k), std::tuple(5, 3, 4));
  EXPECT_TRUE(call->transA && call->transB);
}

TEST_F(Calls, NoStridesForASplitContraction) {
  EXPECT_FALSE(par::describeMatmul(parse(R"(
    par.kernel @k(%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>) -> tensor<3x5xf32>
        attributes {implementation = "library:matmul"} {
      %0 = par.dot %a, %b contracting [0, 2] x [0, 1] : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<3x5xf32>
      par.return %0 : tensor<3x5xf32>
    })")));
}

TEST_F(Calls, AdamwWithACoefficient) {
  auto call = par::describeBuiltin(parse(R"(
    par.kernel @k(%g: tensor<4x8xf32>, %c: tensor<f32>, %w: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>,
                  %t: tensor<f32>, %lr: tensor<f32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
        attributes {implementation = "builtin:adamw", tied = array<i64: 2, 3, 4>} {
      %0 = par.broadcast_in_dim %c dims [] : tensor<f32> to tensor<4x8xf32>
      %1 = par.multiply %g, %0 : tensor<4x8xf32>
      %2, %3, %4 = par.adamw %w, %1, %m, %v, %t, %lr betas 0.9, 0.95 epsilon 1.0e-8 decay 0.5
        : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>
      par.return %2, %3, %4 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
    })"));
  ASSERT_TRUE(call);
  EXPECT_EQ(call->kernel->name, "adamw");
  ASSERT_EQ(call->operands.size(), 7u);
  EXPECT_EQ(call->operands[0].argument, 2u);
  EXPECT_EQ(call->operands[0].result, 0u);
  EXPECT_EQ(call->operands[1].argument, 0u);
  EXPECT_EQ(call->operands[6].argument, 1u);
  EXPECT_EQ(call->immediates[0], 32u);
  EXPECT_EQ(par::kernels::immediateReal(call->immediates[2]), 0.95);
  EXPECT_EQ(call->immediates[6], 1u);
  EXPECT_EQ(call->getTiles(), 1u);
}

TEST_F(Calls, AdamwOfRows) {
  auto call = par::describeBuiltin(parse(R"(
    par.kernel @k(%g: tensor<4x8xf32>, %r: tensor<4xi64>, %w: tensor<9x8xf32>, %m: tensor<9x8xf32>, %v: tensor<9x8xf32>,
                  %t: tensor<f32>, %lr: tensor<f32>) -> (tensor<9x8xf32>, tensor<9x8xf32>, tensor<9x8xf32>)
        attributes {implementation = "builtin:adamw_rows", tied = array<i64: 2, 3, 4>} {
      %2, %3, %4 = par.adamw %w, %g, %m, %v, %t, %lr betas 0.9, 0.95 epsilon 1.0e-8 decay 0.5
        : tensor<9x8xf32>, tensor<4x8xf32>, tensor<9x8xf32>, tensor<f32>, tensor<f32> rows %r : tensor<4xi64>
      par.return %2, %3, %4 : tensor<9x8xf32>, tensor<9x8xf32>, tensor<9x8xf32>
    })"));
  ASSERT_TRUE(call);
  EXPECT_EQ(call->kernel->name, "adamw_rows");
  EXPECT_EQ(ArrayRef(call->immediates).take_front(3), (ArrayRef<uint64_t>{4, 8, 9}));
  EXPECT_EQ(call->operands[6].argument, 1u);
}

TEST_F(Calls, ScatterStartsFromZeros) {
  auto call = par::describeBuiltin(parse(R"(
    par.kernel @k(%d: tensor<2x3x4xf32>, %i: tensor<2x3xi64>) -> tensor<9x4xf32>
        attributes {implementation = "builtin:scatter_add_rows"} {
      %0 = par.index_add %d, %i dim 0 size 9 : tensor<2x3x4xf32>, tensor<2x3xi64> to tensor<9x4xf32>
      par.return %0 : tensor<9x4xf32>
    })"));
  ASSERT_TRUE(call);
  EXPECT_TRUE(call->zeroFirst);
  EXPECT_EQ(call->immediates, (SmallVector<uint64_t>{6, 4, 9, 0}));
}

TEST_F(Calls, NarrowLogitsAreReadAndWrittenAsTheyAreKept) {
  auto call = par::describeBuiltin(parse(R"(
    par.kernel @k(%ct: tensor<2xf32>, %z: tensor<2x8xbf16>, %y: tensor<2xi64>, %lse: tensor<2xf32>) -> tensor<2x8xbf16>
        attributes {implementation = "builtin:cross_entropy_backward_bf16"} {
      %0 = par.convert %z : tensor<2x8xbf16> to tensor<2x8xf32>
      %1 = par.cross_entropy_grad %ct, %0, %y, %lse ignore -100
          : (tensor<2xf32>, tensor<2x8xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<2x8xf32>
      %2 = par.convert %1 : tensor<2x8xf32> to tensor<2x8xbf16>
      par.return %2 : tensor<2x8xbf16>
    })"));
  ASSERT_TRUE(call);
  EXPECT_EQ(call->kernel->name, "cross_entropy_backward_bf16");
  EXPECT_EQ(call->operands[0].argument, 1u);
  EXPECT_EQ(call->operands[4].result, 0u);
  // Narrowed to another type than the logits', no kernel does it.
  EXPECT_FALSE(par::describeBuiltin(parse(R"(
    par.kernel @k(%ct: tensor<2xf32>, %z: tensor<2x8xbf16>, %y: tensor<2xi64>, %lse: tensor<2xf32>) -> tensor<2x8xf16>
        attributes {implementation = "generated"} {
      %0 = par.convert %z : tensor<2x8xbf16> to tensor<2x8xf32>
      %1 = par.cross_entropy_grad %ct, %0, %y, %lse ignore -100
          : (tensor<2xf32>, tensor<2x8xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<2x8xf32>
      %2 = par.convert %1 : tensor<2x8xf32> to tensor<2x8xf16>
      par.return %2 : tensor<2x8xf16>
    })")));
}

TEST_F(Calls, RowsOfLogitsWithPadding) {
  auto forward = par::describeBuiltin(parse(R"(
    par.kernel @k(%z: tensor<2x104xbf16>, %y: tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>)
        attributes {implementation = "builtin:cross_entropy_padded_bf16"} {
      %0 = par.slice %z [0, 0] to [2, 97] by [1, 1] : tensor<2x104xbf16> to tensor<2x97xbf16>
      %1 = par.convert %0 : tensor<2x97xbf16> to tensor<2x97xf32>
      %2, %3 = par.cross_entropy %1, %y ignore -100
          : (tensor<2x97xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>)
      par.return %2, %3 : tensor<2xf32>, tensor<2xf32>
    })"));
  ASSERT_TRUE(forward);
  EXPECT_EQ(forward->kernel->name, "cross_entropy_padded_bf16");
  EXPECT_EQ(forward->immediates, (SmallVector<uint64_t>{2, 104, uint64_t(-100), 97}));
  auto gradient = [&](StringRef padding) {
    return par::describeBuiltin(parse((R"(
    par.kernel @k(%ct: tensor<2xf32>, %z: tensor<2x104xbf16>, %y: tensor<2xi64>, %lse: tensor<2xf32>)
        -> tensor<2x104xbf16>
        attributes {implementation = "builtin:cross_entropy_backward_bf16"} {
      %0 = par.slice %z [0, 0] to [2, 97] by [1, 1] : tensor<2x104xbf16> to tensor<2x97xbf16>
      %1 = par.convert %0 : tensor<2x97xbf16> to tensor<2x97xf32>
      %2 = par.cross_entropy_grad %ct, %1, %y, %lse ignore -100
          : (tensor<2xf32>, tensor<2x97xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<2x97xf32>
      %3 = par.convert %2 : tensor<2x97xf32> to tensor<2x97xbf16>
      %4 = par.pad %3 )" + padding + R"( : bf16 : tensor<2x97xbf16> to tensor<2x104xbf16>
      par.return %4 : tensor<2x104xbf16>
    })")
                                          .str()));
  };
  auto backward = gradient("low [0, 0] high [0, 7] value 0.0");
  ASSERT_TRUE(backward);
  EXPECT_EQ(backward->kernel->name, "cross_entropy_backward_bf16");
  EXPECT_EQ(backward->immediates, (SmallVector<uint64_t>{2, 104, uint64_t(-100), 0, 97}));
  // The kernel writes only zeros, and only after the rows.
  EXPECT_FALSE(gradient("low [0, 0] high [0, 7] value 1.0"));
  EXPECT_FALSE(gradient("low [0, 7] high [0, 0] value 0.0"));
}

TEST_F(Calls, RowsWithoutTheirPaddingAreAView) {
  auto call = par::describeMatmul(parse(R"(
    par.kernel @k(%d: tensor<2x3x104xbf16>, %x: tensor<2x3x8xbf16>) -> tensor<97x8xf32>
        attributes {implementation = "library:matmul"} {
      %0 = par.slice %d [0, 0, 0] to [2, 3, 97] by [1, 1, 1] : tensor<2x3x104xbf16> to tensor<2x3x97xbf16>
      %1 = par.convert %0 : tensor<2x3x97xbf16> to tensor<2x3x97xf32>
      %2 = par.convert %x : tensor<2x3x8xbf16> to tensor<2x3x8xf32>
      %3 = par.dot %1, %2 contracting [0, 1] x [0, 1] : (tensor<2x3x97xf32>, tensor<2x3x8xf32>) -> tensor<97x8xf32>
      par.return %3 : tensor<97x8xf32>
    })"));
  ASSERT_TRUE(call);
  EXPECT_EQ(std::tuple(call->m, call->n, call->k), std::tuple(97, 8, 6));
  EXPECT_EQ(std::tuple(call->lda, call->ldb, call->ldc), std::tuple(104, 8, 8));
  EXPECT_TRUE(call->transA);
}

TEST_F(Calls, AttentionWithAMask) {
  auto call = par::describeBuiltin(parse(R"(
    par.kernel @k(%q: tensor<2x4x5x8xbf16>, %k: tensor<2x2x7x8xbf16>, %v: tensor<2x2x7x16xbf16>,
        %m: tensor<2x1x1x7xf32>)
        -> (tensor<2x4x5x16xbf16>, tensor<2x4x5xf32>) attributes {implementation = "builtin:attention_bf16"} {
      %0, %1 = par.attention %q, %k, %v mask %m scale 0.5
        : (tensor<2x4x5x8xbf16>, tensor<2x2x7x8xbf16>, tensor<2x2x7x16xbf16>, tensor<2x1x1x7xf32>)
        -> (tensor<2x4x5x16xbf16>, tensor<2x4x5xf32>)
      par.return %0, %1 : tensor<2x4x5x16xbf16>, tensor<2x4x5xf32>
    })"));
  ASSERT_TRUE(call);
  EXPECT_EQ(call->kernel->name, "attention_bf16");
  ASSERT_EQ(call->operands.size(), 6u);
  EXPECT_EQ(call->operands[1].argument, 1u);
  EXPECT_EQ(call->operands[4].result, 1u);
  EXPECT_EQ(call->operands[5].argument, 3u);
  EXPECT_EQ(call->immediates,
            (SmallVector<uint64_t>{2,   4, 2,   5,   7,  8,   16, 0,   1,  par::kernels::realImmediate(0.5),
                                   2,   1, 1,   7, //
                                   320, 0, 160, 40,  8,  224, 0,  112, 56, 8,
                                   448, 0, 224, 112, 16, 640, 0,  320, 80, 16}));
}

TEST_F(Calls, AttentionGradientOfOneOperandInSeveralPlaces) {
  auto call = par::describeBuiltin(parse(R"(
    par.kernel @k(%q: tensor<1x2x4x8xf16>, %o: tensor<1x2x4x8xf16>, %lse: tensor<1x2x4xf32>)
        -> (tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>)
        attributes {implementation = "builtin:attention_backward_f16"} {
      %0, %1, %2 = par.attention_grad %o, %q, %q, %q, %o, %lse scale 1.0 {causal = true}
        : (tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>,
        tensor<1x2x4xf32>)
          -> (tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>)
      par.return %0, %1, %2 : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>
    })"));
  ASSERT_TRUE(call);
  EXPECT_EQ(call->kernel->name, "attention_backward_f16");
  ASSERT_EQ(call->operands.size(), 9u);
  EXPECT_EQ(call->operands[2].argument, 0u);
  EXPECT_EQ(call->operands[4].argument, 1u);
  EXPECT_EQ(call->operands[8].result, 2u);
  SmallVector<uint64_t> expected{1, 2, 2, 4, 4, 8, 8, 1, 0, par::kernels::realImmediate(1), 1, 1, 1, 1};
  for (int tensor = 0; tensor < 8; ++tensor)
    expected.append({64, 0, 64, 32, 8}); // one batch, whose stride is that of all
  expected.push_back(1);                 // results of their own
  EXPECT_EQ(call->immediates, expected);
}

TEST_F(Calls, AttentionOfHeadsByToken) {
  auto call = par::describeBuiltin(parse(R"(
    par.kernel @k(%x: tensor<2x4x3x16xbf16>) -> (tensor<2x4x16xbf16>, tensor<2x2x4xf32>)
        attributes {implementation = "builtin:attention_bf16"} {
      %0 = par.slice %x [0, 0, 0, 0] to [2, 4, 1, 16] by [1, 1, 1, 1] : tensor<2x4x3x16xbf16> to tensor<2x4x1x16xbf16>
      %1 = par.slice %x [0, 0, 1, 0] to [2, 4, 2, 16] by [1, 1, 1, 1] : tensor<2x4x3x16xbf16> to tensor<2x4x1x16xbf16>
      %2 = par.reshape %0 : tensor<2x4x1x16xbf16> to tensor<2x4x2x8xbf16>
      %3 = par.reshape %1 : tensor<2x4x1x16xbf16> to tensor<2x4x2x8xbf16>
      %q = par.transpose %2 [0, 2, 1, 3] : tensor<2x4x2x8xbf16> to tensor<2x2x4x8xbf16>
      %k = par.transpose %3 [0, 2, 1, 3] : tensor<2x4x2x8xbf16> to tensor<2x2x4x8xbf16>
      %4, %5 = par.attention %q, %k, %k scale 1.0
        : (tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>)
        -> (tensor<2x2x4x8xbf16>, tensor<2x2x4xf32>)
      %6 = par.transpose %4 [0, 2, 1, 3] : tensor<2x2x4x8xbf16> to tensor<2x4x2x8xbf16>
      %7 = par.reshape %6 : tensor<2x4x2x8xbf16> to tensor<2x4x16xbf16>
      par.return %7, %5 : tensor<2x4x16xbf16>, tensor<2x2x4xf32>
    })"));
  ASSERT_TRUE(call);
  EXPECT_EQ(call->operands[1].argument, 0u);
  EXPECT_EQ(call->operands[3].result, 0u);
  EXPECT_EQ(SmallVector<uint64_t>(ArrayRef(call->immediates).drop_front(14)),
            (SmallVector<uint64_t>{384, 0, 192, 8, 48, 384, 16, 192, 8, 48, 384, 16, 192, 8, 48, 128, 0, 64, 8, 16}));
}

TEST_F(Calls, AttentionGradientsInOneTensor) {
  auto call = par::describeBuiltin(parse(R"(
    par.kernel @k(%q: tensor<1x2x4x8xf16>, %o: tensor<1x2x4x8xf16>, %lse: tensor<1x2x4xf32>) -> tensor<1x2x4x24xf16>
        attributes {implementation = "builtin:attention_backward_f16"} {
      %0, %1, %2 = par.attention_grad %o, %q, %q, %q, %o, %lse scale 1.0
        : (tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>,
        tensor<1x2x4xf32>)
          -> (tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>)
      %3 = par.concat %1, %0, %2 dim 3
          : (tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>) -> tensor<1x2x4x24xf16>
      par.return %3 : tensor<1x2x4x24xf16>
    })"));
  ASSERT_TRUE(call);
  ASSERT_EQ(call->operands.size(), 7u);
  EXPECT_EQ(call->operands[6].result, 0u);
  EXPECT_EQ(SmallVector<uint64_t>(ArrayRef(call->immediates).drop_front(39)),
            (SmallVector<uint64_t>{192, 8, 192, 96, 24, 192, 0, 192, 96, 24, 192, 16, 192, 96, 24, 0}));
}

TEST_F(Calls, NoCallForRowsThatAreNotAligned) {
  EXPECT_FALSE(par::describeBuiltin(parse(R"(
    par.kernel @k(%x: tensor<2x2x4x12xbf16>) -> (tensor<2x2x4x8xbf16>, tensor<2x2x4xf32>)
        attributes {implementation = "generated"} {
      %q = par.slice %x [0, 0, 0, 4] to [2, 2, 4, 12] by [1, 1, 1, 1] : tensor<2x2x4x12xbf16> to tensor<2x2x4x8xbf16>
      %0, %1 = par.attention %q, %q, %q scale 1.0
        : (tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>)
        -> (tensor<2x2x4x8xbf16>, tensor<2x2x4xf32>)
      par.return %0, %1 : tensor<2x2x4x8xbf16>, tensor<2x2x4xf32>
    })")));
}

TEST_F(Calls, NoCallForAttentionGradientsWithAMask) {
  EXPECT_FALSE(par::describeBuiltin(parse(R"(
    par.kernel @k(%q: tensor<1x2x4x8xf16>, %o: tensor<1x2x4x8xf16>, %lse: tensor<1x2x4xf32>, %m: tensor<1x1x4x4xf32>)
        -> (tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>) attributes {implementation = "generated"} {
      %0, %1, %2 = par.attention_grad %o, %q, %q, %q, %o, %lse mask %m scale 1.0
        : (tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>,
        tensor<1x2x4xf32>, tensor<1x1x4x4xf32>)
          -> (tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>)
      par.return %0, %1, %2 : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>
    })")));
}

TEST_F(Calls, NoCallForHeadDimsThatNoTileHolds) {
  EXPECT_FALSE(par::describeBuiltin(parse(R"(
    par.kernel @k(%q: tensor<1x2x4x12xbf16>) -> (tensor<1x2x4x12xbf16>, tensor<1x2x4xf32>)
        attributes {implementation = "generated"} {
      %0, %1 = par.attention %q, %q, %q scale 1.0
        : (tensor<1x2x4x12xbf16>, tensor<1x2x4x12xbf16>, tensor<1x2x4x12xbf16>)
        -> (tensor<1x2x4x12xbf16>, tensor<1x2x4xf32>)
      par.return %0, %1 : tensor<1x2x4x12xbf16>, tensor<1x2x4xf32>
    })")));
}

} // namespace

// Reductions that go from index to element, or from element to neighbour, against the interpreter; and that they do.
#include "RunKernels.h"

#include <ctime>

using namespace par;

namespace {

std::string kernel(const std::string &arguments, const std::string &result, const std::string &body, int number = 0) {
  return "par.kernel @k" + std::to_string(number) + "(" + arguments + ") -> " + result +
         " attributes {implementation = \"generated\"} {\n" + body + "\n}\n";
}

/// Indices [0, 3) times 13: elements between which others lie.
std::string spread(const std::string &type) {
  return "%c = par.constant dense<13> : " + type + "\n%i = par.multiply %j, %c : " + type + "\n";
}

/// A scatter with a sum or another reduction of 30 updates along a dim of 40 elements.
std::string put(const std::string &op, const std::string &before, const std::string &after, int dim,
                const std::string &element, int number = 0) {
  std::string from = "tensor<" + before + "30" + after + "x" + element + ">",
              at = "tensor<" + before + "30" + after + "xi64>",
              to = "tensor<" + before + "40" + after + "x" + element + ">";
  return kernel("%u: " + from + ", %j: " + at, to,
                spread(at) + "%0 = par." + op + " %u, %i dim " + std::to_string(dim) + " size 40 : " + from + ", " +
                    at + " to " + to + "\npar.return %0 : " + to,
                number);
}

std::string cumulative(const std::string &kind, const std::string &shape, int dim, const std::string &how,
                       int number = 0) {
  std::string type = "tensor<" + shape + ">";
  return kernel("%a: " + type, type,
                "%0 = par.cumulative " + kind + " %a dim " + std::to_string(dim) + " " + how + " : " + type +
                    "\npar.return %0 : " + type,
                number);
}

TEST(LinearForms, UpdatesAlongEachDim) {
  for (const char *element : {"f32", "f64", "i64"}) {
    run_kernels::runAll(put("scatter_add", "3x", "", 1, element, 1) + put("scatter_add", "", "x5", 0, element, 2) +
                        put("scatter_add", "2x", "x3", 1, element, 3) + put("scatter_add", "", "", 0, element, 4));
  }
}

TEST(LinearForms, UpdatesOfEveryKind) {
  std::string text;
  int number = 0;
  for (const std::string kind : {"sum", "product", "max", "min"}) {
    text += put("scatter_reduce " + kind, "2x", "x3", 1, "f32", number) +
            put("scatter_reduce " + kind, "3x", "", 1, "i64", number + 1);
    number += 2;
  }
  run_kernels::runAll(text);
}

// Two dims of indices; ops before and after the updates share their loops.
TEST(LinearForms, UpdatesAmongOthers) {
  run_kernels::runAll(kernel("%u: tensor<3x6x5x4xf32>, %j: tensor<6x5xi64>", "(tensor<3x40x4xf32>, tensor<3xf32>)",
                             spread("tensor<6x5xi64>") + R"(
    %e = par.exp %u : tensor<3x6x5x4xf32>
    %0 = par.index_add %e, %i dim 1 size 40 : tensor<3x6x5x4xf32>, tensor<6x5xi64> to tensor<3x40x4xf32>
    %1 = par.tanh %0 : tensor<3x40x4xf32>
    %2 = par.reduce sum %1 dims [1, 2] : tensor<3x40x4xf32> to tensor<3xf32>
    par.return %1, %2 : tensor<3x40x4xf32>, tensor<3xf32>)"));
}

TEST(LinearForms, RunningAlongEachDim) {
  std::string text;
  int number = 0;
  for (const char *how : {"", "{exclusive = true}", "{reverse = true}", "{exclusive = true, reverse = true}"})
    for (const char *kind : {"sum", "max"}) {
      text += cumulative(kind, "3x37xf32", 1, how, number) + cumulative(kind, "37x5xi64", 0, how, number + 1) +
              cumulative(kind, "2x37x3xf32", 1, how, number + 2);
      number += 3;
    }
  for (const char *kind : {"product", "min"})
    text += cumulative(kind, "3x37xf32", 1, "", number++);
  run_kernels::runAll(text);
}

/// Positions of `operand`'s elements; `before` computes it from %a.
std::string sorted(const std::string &shape, const std::string &element, int dim, const std::string &how,
                   int number = 0, const std::string &before = "", const std::string &operand = "%a") {
  std::string type = "tensor<" + shape + "x" + element + ">", to = "tensor<" + shape + "xi64>";
  return kernel("%a: " + type, to,
                before + "%0 = par.sorted_position " + operand + " dim " + std::to_string(dim) + " " + how + " : " +
                    type + " to " + to + "\npar.return %0 : " + to,
                number);
}

// Lines of more elements than are held each against each, of an odd and an even number; integers have many equals.
TEST(LinearForms, SortingAlongEachDim) {
  std::string text;
  int number = 0;
  for (const char *how : {"", "{descending = true}"}) {
    text += sorted("3x300", "f32", 1, how, number) + sorted("301x3", "f64", 0, how, number + 1) +
            sorted("2x257x2", "i64", 1, how, number + 2);
    number += 3;
  }
  run_kernels::runAll(text);
}

// The sorted values are computed at their use, roots of negative numbers are NaN, and a user of the ranks has them all.
TEST(LinearForms, SortingAmongOthers) {
  run_kernels::runAll(sorted("2x300", "f32", 1, "", 0, "%r = par.sqrt %a : tensor<2x300xf32>\n", "%r"));
  run_kernels::runAll(kernel("%a: tensor<3x400xf32>", "(tensor<3x400xi64>, tensor<3x400xf32>)", R"(
    %s = par.tanh %a : tensor<3x400xf32>
    %p = par.sorted_position %s dim 1 {descending = true} : tensor<3x400xf32> to tensor<3x400xi64>
    %i = par.iota dim 1 : tensor<3x400xi64>
    %0 = par.scatter_add %i, %p dim 1 size 400 : tensor<3x400xi64>, tensor<3x400xi64> to tensor<3x400xi64>
    %1 = par.take %s, %0 dim 1 : tensor<3x400xf32>, tensor<3x400xi64> to tensor<3x400xf32>
    par.return %0, %1 : tensor<3x400xi64>, tensor<3x400xf32>)"));
}

// Results of so many elements that a GPU has no thread for each.
TEST(LinearForms, OnABusyGpu) {
  auto large = [](const std::string &updates, const std::string &result, int dim, int size) {
    std::string from = "tensor<" + updates + "xf32>", at = "tensor<" + updates + "xi64>",
                to = "tensor<" + result + "xf32>";
    run_kernels::runAllFor(kernel("%u: " + from + ", %j: " + at, to,
                                  spread(at) + "%0 = par.scatter_add %u, %i dim " + std::to_string(dim) + " size " +
                                      std::to_string(size) + " : " + from + ", " + at + " to " + to +
                                      "\npar.return %0 : " + to),
                           "sm_80");
  };
  large("40x9", "40x4000", 1, 4000);   // a warp and more a row
  large("5000x5", "5000x30", 1, 30);   // a thread a row
  large("6x5000", "40x5000", 0, 40);   // a thread a column
  large("3x5x70", "3x700x70", 1, 700); // a block a column
  run_kernels::runAllFor(cumulative("sum", "62000x34xf32", 1, ""), "sm_80");
}

/// Two updates of four elements go elsewhere: they change nothing, and nothing beside the result.
TEST(LinearForms, IndicesOutside) {
  for (const std::string &isa : run_kernels::isasOfThisMachine()) {
    LoadedKernels loaded(
        kernel("%u: tensor<4xf32>, %i: tensor<4xi64>", "tensor<40xf32>",
               "%0 = par.scatter_add %u, %i dim 0 size 40 : tensor<4xf32>, tensor<4xi64> to tensor<40xf32>\n"
               "par.return %0 : tensor<40xf32>"),
        isa);
    ASSERT_TRUE(loaded.handle) << loaded.errors;
    GuardedBuffer result(40 * sizeof(float), /*atEnd=*/true);
    float updates[] = {1, 2, 4, 8};
    int64_t indices[] = {39, -1, 40, 39};
    void *pointers[] = {updates, indices, result.as<void>()};
    loaded.function(loaded.compiled.kernels[0])(pointers, nullptr, 0, 1);
    for (int i = 0; i < 40; ++i)
      EXPECT_EQ(result.as<float>()[i], i == 39 ? 9 : 0) << i;
  }
}

/// Seconds of CPU time of one run.
double secondsOf(const std::string &text, std::vector<std::vector<double>> operands) {
  LoadedKernels loaded(text);
  EXPECT_TRUE(loaded.handle) << loaded.errors;
  std::vector<void *> pointers;
  for (std::vector<double> &operand : operands)
    pointers.push_back(operand.data());
  const KernelInfo &info = loaded.compiled.kernels[0];
  clock_t begin = clock();
  loaded.function(info)(pointers.data(), nullptr, 0, info.tiles);
  return double(clock() - begin) / CLOCKS_PER_SEC;
}

// 2^17 elements that each meet 2^17 others are 2^34 steps, which take seconds; 2^17 steps take less than a millisecond.
TEST(LinearForms, TakeTimeInProportion) {
  std::vector<double> many(1 << 17);
  EXPECT_LT(
      secondsOf(kernel("%u: tensor<131072xf64>, %i: tensor<131072xi64>", "tensor<131072xf64>",
                       "%0 = par.scatter_add %u, %i dim 0 size 131072 : tensor<131072xf64>, tensor<131072xi64> to "
                       "tensor<131072xf64>\npar.return %0 : tensor<131072xf64>"),
                {many, many, many}),
      0.1);
  EXPECT_LT(secondsOf(cumulative("sum", "131072xf64", 0, ""), {many, many}), 0.1);
  for (size_t i = 0; i < many.size(); ++i)
    many[i] = double(i * 2654435761u % 131071);
  std::vector<double> places(many.size());
  EXPECT_LT(secondsOf(sorted("131072", "f64", 0, ""), {many, places}), 0.5);
}

} // namespace

// Kernels, compiled and run between guard pages, against the interpreter.
#include "RunKernels.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using run_kernels::runAll;

namespace {

/// A kernel of one op on f32 tensors of a shape.
std::string unary(const std::string &op, const std::string &type) {
  return "par.kernel @" + op + "(%a: " + type + ") -> " + type + " attributes {implementation = \"generated\"} {\n" +
         "  %0 = par." + op + " %a : " + type + "\n  par.return %0 : " + type + "\n}\n";
}
std::string binary(const std::string &op, const std::string &type) {
  return "par.kernel @" + op + "(%a: " + type + ", %b: " + type + ") -> " + type +
         " attributes {implementation = \"generated\"} {\n" + "  %0 = par." + op + " %a, %b : " + type +
         "\n  par.return %0 : " + type + "\n}\n";
}

TEST(Kernels, Elementwise) {
  for (std::string type : {"tensor<f32>", "tensor<3x37xf32>"}) {
    std::string text;
    for (std::string op : {"negate", "abs", "sign", "exp", "log", "sqrt", "rsqrt", "reciprocal", "tanh", "erf",
                           "sigmoid", "sin", "cos", "atan", "round", "floor", "ceil", "gelu"})
      text += unary(op, type);
    for (std::string op : {"add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "remainder"})
      text += binary(op, type);
    runAll(text);
  }
}

TEST(Kernels, Integers) {
  std::string text;
  for (std::string op :
       {"add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor"})
    text += binary(op, "tensor<5x7xi64>");
  runAll(text + unary("negate", "tensor<9xi64>") + R"(
    par.kernel @masks(%a: tensor<5x7xf32>, %b: tensor<5x7xf32>, %m: tensor<5x7xi1>)
        -> (tensor<5x7xf32>, tensor<5x7xi1>, tensor<5x7xi64>) attributes {implementation = "generated"} {
      %lt = par.compare lt %a, %b : tensor<5x7xf32>
      %both = par.and %lt, %m : tensor<5x7xi1>
      %0 = par.select %both, %a, %b : tensor<5x7xi1>, tensor<5x7xf32>
      %1 = par.not %lt : tensor<5x7xi1>
      %2 = par.convert %a : tensor<5x7xf32> to tensor<5x7xi64>
      par.return %0, %1, %2 : tensor<5x7xf32>, tensor<5x7xi1>, tensor<5x7xi64>
    })");
}

TEST(Kernels, ShiftsAndRandomBits) {
  runAll(binary("random_bits", "tensor<5x7xi64>") + R"(
    par.kernel @shift(%a: tensor<9xi64>, %b: tensor<9xi32>) -> (tensor<9xi64>, tensor<9xi64>, tensor<9xi32>)
        attributes {implementation = "generated"} {
      %by = par.iota dim 0 : tensor<9xi64>
      %eight = par.constant dense<8> : tensor<9xi64>
      %wide = par.multiply %by, %eight : tensor<9xi64>
      %0 = par.shift_left %a, %wide : tensor<9xi64>
      %1 = par.shift_right %a, %wide : tensor<9xi64>
      %small = par.convert %by : tensor<9xi64> to tensor<9xi32>
      %2 = par.shift_right %b, %small : tensor<9xi32>
      par.return %0, %1, %2 : tensor<9xi64>, tensor<9xi64>, tensor<9xi32>
    })");
}

TEST(Kernels, BitCasts) {
  runAll(R"(
    par.kernel @cast(%a: tensor<9xf32>, %b: tensor<9xi32>) -> (tensor<9xi32>, tensor<9xf32>)
        attributes {implementation = "generated"} {
      %0 = par.bit_cast %a : tensor<9xf32> to tensor<9xi32>
      %one = par.constant dense<0x3f800000> : tensor<9xi32>
      %bits = par.or %one, %b : tensor<9xi32>
      %1 = par.bit_cast %bits : tensor<9xi32> to tensor<9xf32>
      par.return %0, %1 : tensor<9xi32>, tensor<9xf32>
    })");
}

TEST(Kernels, Sorting) {
  runAll(R"(
    par.kernel @position(%a: tensor<3x9x4xf32>) -> (tensor<3x9x4xi64>, tensor<3x9x4xi64>)
        attributes {implementation = "generated"} {
      %0 = par.sorted_position %a dim 1 : tensor<3x9x4xf32> to tensor<3x9x4xi64>
      %1 = par.sorted_position %a dim 1 {descending = true} : tensor<3x9x4xf32> to tensor<3x9x4xi64>
      par.return %0, %1 : tensor<3x9x4xi64>, tensor<3x9x4xi64>
    }
    par.kernel @ties(%a: tensor<3x9xi1>) -> (tensor<3x9xi64>) attributes {implementation = "generated"} {
      %c = par.convert %a : tensor<3x9xi1> to tensor<3x9xi32>
      %0 = par.sorted_position %c dim 1 {descending = true} : tensor<3x9xi32> to tensor<3x9xi64>
      par.return %0 : tensor<3x9xi64>
    }
    par.kernel @extreme(%a: tensor<3x9x4xf32>, %b: tensor<5x6xi64>) -> (tensor<3x4xi64>, tensor<9x4xi64>, tensor<5xi64>)
        attributes {implementation = "generated"} {
      %0 = par.arg_reduce max %a dim 1 : tensor<3x9x4xf32> to tensor<3x4xi64>
      %1 = par.arg_reduce min %a dim 0 : tensor<3x9x4xf32> to tensor<9x4xi64>
      %2 = par.arg_reduce max %b dim 1 : tensor<5x6xi64> to tensor<5xi64>
      par.return %0, %1, %2 : tensor<3x4xi64>, tensor<9x4xi64>, tensor<5xi64>
    }
    par.kernel @running(%a: tensor<3x9x4xf32>) -> (tensor<3x9x4xf32>, tensor<3x9x4xf32>, tensor<3x9x4xf32>)
        attributes {implementation = "generated"} {
      %0 = par.cumulative sum %a dim 1 : tensor<3x9x4xf32>
      %1 = par.cumulative product %a dim 1 {exclusive = true} : tensor<3x9x4xf32>
      %2 = par.cumulative max %a dim 2 {reverse = true} : tensor<3x9x4xf32>
      par.return %0, %1, %2 : tensor<3x9x4xf32>, tensor<3x9x4xf32>, tensor<3x9x4xf32>
    }
    par.kernel @put(%a: tensor<3x9xf32>, %m: tensor<3x9xi1>) -> (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>)
        attributes {implementation = "generated"} {
      %i = par.convert %m : tensor<3x9xi1> to tensor<3x9xi64>
      %0 = par.scatter_reduce max %a, %i dim 1 size 2 : tensor<3x9xf32>, tensor<3x9xi64> to tensor<3x2xf32>
      %1 = par.scatter_reduce min %a, %i dim 1 size 2 : tensor<3x9xf32>, tensor<3x9xi64> to tensor<3x2xf32>
      %2 = par.scatter_reduce product %a, %i dim 1 size 2 : tensor<3x9xf32>, tensor<3x9xi64> to tensor<3x2xf32>
      par.return %0, %1, %2 : tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>
    })");
}

TEST(Kernels, Movement) {
  runAll(R"(
    par.kernel @reverse(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> attributes {implementation = "generated"} {
      %0 = par.reverse %a dims [0, 2] : tensor<3x4x5xf32>
      par.return %0 : tensor<3x4x5xf32>
    }
    par.kernel @broadcast(%a: tensor<5xf32>, %b: tensor<3x1xf32>) -> tensor<3x5xf32>
        attributes {implementation = "generated"} {
      %0 = par.broadcast_in_dim %a dims [1] : tensor<5xf32> to tensor<3x5xf32>
      %1 = par.broadcast_in_dim %b dims [0, 1] : tensor<3x1xf32> to tensor<3x5xf32>
      %2 = par.add %0, %1 : tensor<3x5xf32>
      par.return %2 : tensor<3x5xf32>
    }
    par.kernel @reshape(%a: tensor<4x6xf32>) -> tensor<3x8xf32> attributes {implementation = "generated"} {
      %e = par.exp %a : tensor<4x6xf32>
      %0 = par.reshape %e : tensor<4x6xf32> to tensor<3x8xf32>
      %1 = par.negate %0 : tensor<3x8xf32>
      par.return %1 : tensor<3x8xf32>
    }
    par.kernel @pass(%a: tensor<4x6xf32>) -> (tensor<24xf32>, tensor<4x6xf32>)
        attributes {implementation = "generated"} {
      %0 = par.reshape %a : tensor<4x6xf32> to tensor<24xf32>
      par.return %0, %a : tensor<24xf32>, tensor<4x6xf32>
    }
    par.kernel @transpose(%a: tensor<3x4x5xf32>) -> tensor<5x3x4xf32> attributes {implementation = "generated"} {
      %0 = par.transpose %a [2, 0, 1] : tensor<3x4x5xf32> to tensor<5x3x4xf32>
      par.return %0 : tensor<5x3x4xf32>
    }
    par.kernel @slice(%a: tensor<7x9xf32>) -> tensor<3x2xf32> attributes {implementation = "generated"} {
      %0 = par.slice %a [1, 2] to [7, 5] by [2, 2] : tensor<7x9xf32> to tensor<3x2xf32>
      par.return %0 : tensor<3x2xf32>
    }
    par.kernel @dynamic(%a: tensor<5x6xf32>, %i: tensor<i64>, %u: tensor<2x6xf32>) -> (tensor<2x6xf32>, tensor<5x6xf32>)
        attributes {implementation = "generated"} {
      %0 = par.dynamic_slice %a at %i dim 0 size 2 : tensor<5x6xf32>, tensor<i64> to tensor<2x6xf32>
      %1 = par.update_slice %a, %u at %i dim 0 : tensor<5x6xf32>, tensor<2x6xf32>, tensor<i64>
      par.return %0, %1 : tensor<2x6xf32>, tensor<5x6xf32>
    }
    par.kernel @pad(%a: tensor<3x4xf32>) -> tensor<4x7xf32> attributes {implementation = "generated"} {
      %0 = par.pad %a low [0, 2] high [1, 1] value 1.5 : f32 : tensor<3x4xf32> to tensor<4x7xf32>
      par.return %0 : tensor<4x7xf32>
    }
    par.kernel @concat(%a: tensor<3x2xf32>, %b: tensor<3x3xf32>, %c: tensor<3x1xf32>) -> tensor<3x6xf32>
        attributes {implementation = "generated"} {
      %0 = par.concat %a, %b, %c dim 1 : (tensor<3x2xf32>, tensor<3x3xf32>, tensor<3x1xf32>) -> tensor<3x6xf32>
      par.return %0 : tensor<3x6xf32>
    }
    par.kernel @constants(%a: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
        attributes {implementation = "generated"} {
      %c = par.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
      %0 = par.add %a, %c : tensor<2x3xf32>
      %1 = par.iota dim 1 : tensor<2x3xi64>
      par.return %0, %1 : tensor<2x3xf32>, tensor<2x3xi64>
    })");
}

// Several rows of a matmul are computed together, and the remaining ones one by one: each row count from below a block
// on, in types without a library, with each of the four forms of operands.
TEST(Kernels, ProductsInBlocksOfRows) {
  std::string text;
  int number = 0;
  for (const char *element : {"f64", "i64"})
    for (int rows : {1, 3, 4, 5, 11})
      for (bool left : {false, true})
        for (bool right : {false, true}) {
          auto type = [&](int a, int b) { return llvm::formatv("tensor<{0}x{1}x{2}>", a, b, element).str(); };
          std::string a = left ? type(6, rows) : type(rows, 6), b = right ? type(19, 6) : type(6, 19),
                      c = type(rows, 19);
          text += llvm::formatv(
              "par.kernel @dot{0}(%a: {1}, %b: {2}) -> {3} attributes {{implementation = \"generated\"} {{\n"
              "  %0 = par.dot %a, %b contracting [{4}] x [{5}] : ({1}, {2}) -> {3}\n  par.return %0 : {3}\n}\n",
              number++, a, b, c, left ? 0 : 1, right ? 1 : 0);
        }
  // Rows of two dims, and common reads of both operands along the last one.
  text += R"(
    par.kernel @batch(%a: tensor<3x7x5xf64>, %b: tensor<3x5x9xf64>) -> tensor<3x7x9xf64>
        attributes {implementation = "generated"} {
      %0 = par.dot %a, %b contracting [2] x [1] batching [0] x [0]
          : (tensor<3x7x5xf64>, tensor<3x5x9xf64>) -> tensor<3x7x9xf64>
      par.return %0 : tensor<3x7x9xf64>
    }
    par.kernel @merged(%a: tensor<3x7x5xf64>, %b: tensor<5x9xf64>) -> tensor<3x7x9xf64>
        attributes {implementation = "generated"} {
      %n = par.negate %a : tensor<3x7x5xf64>
      %0 = par.dot %n, %b contracting [2] x [0] : (tensor<3x7x5xf64>, tensor<5x9xf64>) -> tensor<3x7x9xf64>
      par.return %0 : tensor<3x7x9xf64>
    })";
  runAll(text);
}

// A tensor read along one loop and written along another is processed in squares of both: whole ones, and remainders,
// with loops between the two, several results, and in tiles that end within a square (66 x 70 x 33 elements are five).
TEST(Kernels, TranspositionsInSquares) {
  runAll(R"(
    par.kernel @wide(%a: tensor<64x96xf32>) -> tensor<96x64xf32> attributes {implementation = "generated"} {
      %0 = par.transpose %a [1, 0] : tensor<64x96xf32> to tensor<96x64xf32>
      %1 = par.add %0, %0 : tensor<96x64xf32>
      par.return %1 : tensor<96x64xf32>
    }
    par.kernel @left(%a: tensor<2x37x41xf32>, %b: tensor<37xf32>) -> tensor<2x41x37xf32>
        attributes {implementation = "generated"} {
      %0 = par.transpose %a [0, 2, 1] : tensor<2x37x41xf32> to tensor<2x41x37xf32>
      %1 = par.broadcast_in_dim %b dims [2] : tensor<37xf32> to tensor<2x41x37xf32>
      %2 = par.add %0, %1 : tensor<2x41x37xf32>
      par.return %2 : tensor<2x41x37xf32>
    }
    par.kernel @between(%a: tensor<33x5x66xf32>) -> tensor<66x5x33xf32> attributes {implementation = "generated"} {
      %0 = par.transpose %a [2, 1, 0] : tensor<33x5x66xf32> to tensor<66x5x33xf32>
      %1 = par.exp %0 : tensor<66x5x33xf32>
      par.return %1 : tensor<66x5x33xf32>
    }
    par.kernel @tiles(%a: tensor<33x66x70xf32>, %b: tensor<66x70x33xf32>)
        -> (tensor<66x70x33xf32>, tensor<66x70x33xf32>)
        attributes {implementation = "generated"} {
      %0 = par.transpose %a [1, 2, 0] : tensor<33x66x70xf32> to tensor<66x70x33xf32>
      %1 = par.add %0, %b : tensor<66x70x33xf32>
      %2 = par.multiply %0, %b : tensor<66x70x33xf32>
      par.return %1, %2 : tensor<66x70x33xf32>, tensor<66x70x33xf32>
    }
  )");
}

TEST(Kernels, Reductions) {
  runAll(R"(
    par.kernel @rows(%a: tensor<6x70xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>)
        attributes {implementation = "generated"} {
      %0 = par.reduce sum %a dims [1] : tensor<6x70xf32> to tensor<6xf32>
      %1 = par.reduce max %a dims [1] : tensor<6x70xf32> to tensor<6xf32>
      %2 = par.reduce min %a dims [1] : tensor<6x70xf32> to tensor<6xf32>
      par.return %0, %1, %2 : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
    }
    par.kernel @columns(%a: tensor<2x60x7xf32>, %b: tensor<2x60x7xf32>) -> tensor<7xf32>
        attributes {implementation = "generated"} {
      %m = par.multiply %a, %b : tensor<2x60x7xf32>
      %0 = par.reduce sum %m dims [0, 1] : tensor<2x60x7xf32> to tensor<7xf32>
      par.return %0 : tensor<7xf32>
    }
    par.kernel @middle(%a: tensor<3x50x9xf32>) -> tensor<3x9xf32> attributes {implementation = "generated"} {
      %0 = par.reduce sum %a dims [1] : tensor<3x50x9xf32> to tensor<3x9xf32>
      par.return %0 : tensor<3x9xf32>
    }
    par.kernel @all(%a: tensor<30x40xf32>, %c: tensor<f32>) -> tensor<f32> attributes {implementation = "generated"} {
      %0 = par.multiply %a, %a : tensor<30x40xf32>
      %1 = par.reduce sum %0 dims [0, 1] : tensor<30x40xf32> to tensor<f32>
      %2 = par.add %1, %c : tensor<f32>
      %3 = par.sqrt %2 : tensor<f32>
      par.return %3 : tensor<f32>
    }
    par.kernel @any(%a: tensor<30x40xi1>) -> (tensor<30xi1>, tensor<30xi1>) attributes {implementation = "generated"} {
      %0 = par.reduce or %a dims [1] : tensor<30x40xi1> to tensor<30xi1>
      %1 = par.reduce and %a dims [1] : tensor<30x40xi1> to tensor<30xi1>
      par.return %0, %1 : tensor<30xi1>, tensor<30xi1>
    }
    par.kernel @dot(%a: tensor<2x5x7xf32>, %b: tensor<2x3x7xf32>) -> tensor<2x5x3xf32>
        attributes {implementation = "generated"} {
      %0 = par.dot %a, %b contracting [2] x [2] batching [0] x [0]
          : (tensor<2x5x7xf32>, tensor<2x3x7xf32>) -> tensor<2x5x3xf32>
      par.return %0 : tensor<2x5x3xf32>
    }
    par.kernel @dot_wide(%a: tensor<5x7xf32>, %b: tensor<7x30xf32>) -> tensor<5x30xf32>
        attributes {implementation = "generated"} {
      %t = par.tanh %a : tensor<5x7xf32>
      %0 = par.dot %t, %b contracting [1] x [0] : (tensor<5x7xf32>, tensor<7x30xf32>) -> tensor<5x30xf32>
      par.return %0 : tensor<5x30xf32>
    })");
}

TEST(Kernels, Composites) {
  runAll(R"(
    par.kernel @softmax(%a: tensor<2x40x33xf32>) -> tensor<2x40x33xf32> attributes {implementation = "generated"} {
      %0 = par.softmax %a dim 2 : tensor<2x40x33xf32>
      par.return %0 : tensor<2x40x33xf32>
    }
    par.kernel @softmax_in_place(%a: tensor<64x33xf32>) -> tensor<64x33xf32>
        attributes {implementation = "generated", tied = array<i64: 0>} {
      %0 = par.softmax %a dim 1 : tensor<64x33xf32>
      par.return %0 : tensor<64x33xf32>
    }
    par.kernel @softmax_first(%a: tensor<9x5xf32>) -> tensor<9x5xf32> attributes {implementation = "generated"} {
      %0 = par.softmax %a dim 0 : tensor<9x5xf32>
      par.return %0 : tensor<9x5xf32>
    }
    par.kernel @softmax_grad(%a: tensor<8x33xf32>, %b: tensor<8x33xf32>) -> tensor<8x33xf32>
        attributes {implementation = "generated"} {
      %0 = par.softmax_grad %a, %b dim 1 : tensor<8x33xf32>
      par.return %0 : tensor<8x33xf32>
    }
    par.kernel @layer_norm(%a: tensor<3x50x40xf32>, %w: tensor<40xf32>, %b: tensor<40xf32>)
        -> (tensor<3x50x40xf32>, tensor<3x50xf32>, tensor<3x50xf32>) attributes {implementation = "generated"} {
      %0, %1, %2 = par.layer_norm %a, %w, %b epsilon 1.0e-5 : (tensor<3x50x40xf32>, tensor<40xf32>, tensor<40xf32>)
        -> (tensor<3x50x40xf32>, tensor<3x50xf32>, tensor<3x50xf32>)
      par.return %0, %1, %2 : tensor<3x50x40xf32>, tensor<3x50xf32>, tensor<3x50xf32>
    }
    par.kernel @layer_norm_grad(%ct: tensor<5x40xf32>, %a: tensor<5x40xf32>, %w: tensor<40xf32>, %m: tensor<5xf32>,
        %r: tensor<5xf32>) -> tensor<5x40xf32> attributes {implementation = "generated"} {
      %0 = par.layer_norm_grad %ct, %a, %w, %m, %r : (tensor<5x40xf32>, tensor<5x40xf32>, tensor<40xf32>, tensor<5xf32>,
        tensor<5xf32>) -> tensor<5x40xf32>
      par.return %0 : tensor<5x40xf32>
    }
    par.kernel @gelu_grad(%ct: tensor<5x40xf32>, %a: tensor<5x40xf32>) -> (tensor<5x40xf32>, tensor<5x40xf32>)
        attributes {implementation = "generated"} {
      %0 = par.gelu_grad %ct, %a : tensor<5x40xf32>
      %1 = par.gelu_grad %ct, %a {tanh = true} : tensor<5x40xf32>
      par.return %0, %1 : tensor<5x40xf32>, tensor<5x40xf32>
    }
    par.kernel @cross_entropy(%z: tensor<4x6x17xf32>, %y: tensor<4x6xi64>) -> (tensor<4x6xf32>, tensor<4x6xf32>)
        attributes {implementation = "generated"} {
      %0, %1 = par.cross_entropy %z, %y ignore 2
          : (tensor<4x6x17xf32>, tensor<4x6xi64>) -> (tensor<4x6xf32>, tensor<4x6xf32>)
      par.return %0, %1 : tensor<4x6xf32>, tensor<4x6xf32>
    }
    par.kernel @cross_entropy_grad(%ct: tensor<24xf32>, %z: tensor<24x17xf32>, %y: tensor<24xi64>, %l: tensor<24xf32>)
        -> tensor<24x17xf32> attributes {implementation = "generated"} {
      %0 = par.cross_entropy_grad %ct, %z, %y, %l ignore 2
          : (tensor<24xf32>, tensor<24x17xf32>, tensor<24xi64>, tensor<24xf32>)
        -> tensor<24x17xf32>
      par.return %0 : tensor<24x17xf32>
    })");
}

TEST(Kernels, IndexedAndUpdates) {
  runAll(R"(
    par.kernel @gather(%t: tensor<4x5x6xf32>, %i: tensor<2x3xi64>) -> tensor<4x2x3x6xf32>
        attributes {implementation = "generated"} {
      %0 = par.gather %t, %i dim 1 : tensor<4x5x6xf32>, tensor<2x3xi64> to tensor<4x2x3x6xf32>
      par.return %0 : tensor<4x2x3x6xf32>
    }
    par.kernel @gather_one(%t: tensor<4x5xf32>, %i: tensor<i64>) -> tensor<5xf32>
        attributes {implementation = "generated"} {
      %0 = par.gather %t, %i dim 0 : tensor<4x5xf32>, tensor<i64> to tensor<5xf32>
      par.return %0 : tensor<5xf32>
    }
    par.kernel @scatter(%u: tensor<8x6xf32>, %i: tensor<8xi64>) -> tensor<5x6xf32>
        attributes {implementation = "generated"} {
      %0 = par.index_add %u, %i dim 0 size 5 : tensor<8x6xf32>, tensor<8xi64> to tensor<5x6xf32>
      par.return %0 : tensor<5x6xf32>
    }
    par.kernel @take(%t: tensor<4x5xf32>, %i: tensor<4x2xi64>) -> tensor<4x2xf32>
        attributes {implementation = "generated"} {
      %0 = par.take %t, %i dim 1 : tensor<4x5xf32>, tensor<4x2xi64> to tensor<4x2xf32>
      par.return %0 : tensor<4x2xf32>
    }
    par.kernel @put(%u: tensor<4x2xf32>, %i: tensor<4x2xi64>) -> tensor<4x5xf32>
        attributes {implementation = "generated"} {
      %0 = par.scatter_add %u, %i dim 1 size 5 : tensor<4x2xf32>, tensor<4x2xi64> to tensor<4x5xf32>
      par.return %0 : tensor<4x5xf32>
    }
    par.kernel @sgd(%w: tensor<70xf32>, %g: tensor<70xf32>, %l: tensor<f32>) -> tensor<70xf32>
        attributes {implementation = "generated", tied = array<i64: 0>} {
      %0 = par.sgd %w, %g, %l decay 0.1 : tensor<70xf32>, tensor<70xf32>, tensor<f32>
      par.return %0 : tensor<70xf32>
    }
    par.kernel @momentum(%w: tensor<7x9xf32>, %g: tensor<7x9xf32>, %v: tensor<7x9xf32>, %s: tensor<f32>,
        %l: tensor<f32>)
        -> (tensor<7x9xf32>, tensor<7x9xf32>) attributes {implementation = "generated", tied = array<i64: 0, 2>} {
      %0, %1 = par.momentum %w, %g, %v, %s, %l momentum 0.9 decay 0.01
        : tensor<7x9xf32>, tensor<7x9xf32>, tensor<7x9xf32>, tensor<f32>, tensor<f32>
      par.return %0, %1 : tensor<7x9xf32>, tensor<7x9xf32>
    })");
}

// Convolutions without a library call: one pad crops. With groups, strides and dilations, forward and both gradients;
// windows as dims, and back.
TEST(Kernels, Windows) {
  runAll(R"(
    par.kernel @convolution(%x: tensor<2x4x7x6xf32>, %w: tensor<6x2x3x2xf32>) -> tensor<2x6x4x3xf32>
        attributes {implementation = "generated"} {
      %0 = par.convolution %x, %w strides [2, 1] low [2, -1] high [1, 0] dilations [1, 2] groups 2
        : (tensor<2x4x7x6xf32>, tensor<6x2x3x2xf32>) -> tensor<2x6x4x3xf32>
      par.return %0 : tensor<2x6x4x3xf32>
    }
    par.kernel @inputGrad(%ct: tensor<2x6x4x3xf32>, %w: tensor<6x2x3x2xf32>) -> tensor<2x4x7x6xf32>
        attributes {implementation = "generated"} {
      %0 = par.convolution_input_grad %ct, %w strides [2, 1] low [2, -1] high [1, 0] dilations [1, 2] groups 2
        : (tensor<2x6x4x3xf32>, tensor<6x2x3x2xf32>) -> tensor<2x4x7x6xf32>
      par.return %0 : tensor<2x4x7x6xf32>
    }
    par.kernel @filterGrad(%x: tensor<2x4x7x6xf32>, %ct: tensor<2x6x4x3xf32>) -> tensor<6x2x3x2xf32>
        attributes {implementation = "generated"} {
      %0 = par.convolution_filter_grad %x, %ct strides [2, 1] low [2, -1] high [1, 0] dilations [1, 2] groups 2
        : (tensor<2x4x7x6xf32>, tensor<2x6x4x3xf32>) -> tensor<6x2x3x2xf32>
      par.return %0 : tensor<6x2x3x2xf32>
    }
    par.kernel @patches(%x: tensor<2x4x7x6xf32>) -> tensor<2x4x4x3x3x2xf32> attributes {implementation = "generated"} {
      %0 = par.patches %x window [3, 2] strides [2, 1] low [2, -1] high [1, 0] dilations [1, 2] value 0.5 : f32
        : tensor<2x4x7x6xf32> to tensor<2x4x4x3x3x2xf32>
      par.return %0 : tensor<2x4x4x3x3x2xf32>
    }
    par.kernel @fold(%x: tensor<2x4x4x3x3x2xf32>) -> tensor<2x4x7x6xf32> attributes {implementation = "generated"} {
      %0 = par.fold_patches %x strides [2, 1] low [2, -1] high [1, 0] dilations [1, 2]
        : tensor<2x4x4x3x3x2xf32> to tensor<2x4x7x6xf32>
      par.return %0 : tensor<2x4x7x6xf32>
    })");
}

// The first part of another nest's value: as many elements as the slice has, not as the sum.
TEST(Kernels, SlicesOfReductions) {
  runAll(R"(
    par.kernel @first(%a: tensor<3x4x5xf32>) -> tensor<3x1xf32> attributes {implementation = "generated"} {
      %0 = par.reduce sum %a dims [2] : tensor<3x4x5xf32> to tensor<3x4xf32>
      %1 = par.slice %0 [0, 0] to [3, 1] by [1, 1] : tensor<3x4xf32> to tensor<3x1xf32>
      par.return %1 : tensor<3x1xf32>
    }
    par.kernel @firstTwo(%a: tensor<3x4xi64>, %b: tensor<3x4xi64>) -> tensor<3x2xi64>
        attributes {implementation = "generated"} {
      %0 = par.scatter_add %b, %a dim 1 size 4 : tensor<3x4xi64>, tensor<3x4xi64> to tensor<3x4xi64>
      %1 = par.slice %0 [0, 0] to [3, 2] by [1, 1] : tensor<3x4xi64> to tensor<3x2xi64>
      par.return %1 : tensor<3x2xi64>
    })");
}

/// Rows that are no leading dims: those that reductions over the other dims keep.
TEST(Kernels, StatisticsOfChannels) {
  runAll(R"(
    par.kernel @forward(%x: tensor<3x5x2x7xf32>, %gain: tensor<5xf32>)
        -> (tensor<3x5x2x7xf32>, tensor<5xf32>, tensor<3x5x2x7xi1>)
        attributes {implementation = "generated"} {
      %s = par.reduce sum %x dims [0, 2, 3] : tensor<3x5x2x7xf32> to tensor<5xf32>
      %mean = par.broadcast_in_dim %s dims [1] : tensor<5xf32> to tensor<3x5x2x7xf32>
      %centred = par.subtract %x, %mean : tensor<3x5x2x7xf32>
      %square = par.multiply %centred, %centred : tensor<3x5x2x7xf32>
      %v = par.reduce sum %square dims [0, 2, 3] : tensor<3x5x2x7xf32> to tensor<5xf32>
      %r = par.rsqrt %v : tensor<5xf32>
      %f = par.multiply %r, %gain : tensor<5xf32>
      %factor = par.broadcast_in_dim %f dims [1] : tensor<5xf32> to tensor<3x5x2x7xf32>
      %y = par.multiply %centred, %factor : tensor<3x5x2x7xf32>
      %zero = par.constant dense<0.0> : tensor<3x5x2x7xf32>
      %positive = par.compare gt %y, %zero : tensor<3x5x2x7xf32>
      %relu = par.select %positive, %y, %zero : tensor<3x5x2x7xi1>, tensor<3x5x2x7xf32>
      par.return %relu, %f, %positive : tensor<3x5x2x7xf32>, tensor<5xf32>, tensor<3x5x2x7xi1>
    }
    par.kernel @kept(%x: tensor<4x6x9xf32>) -> (tensor<6xf32>, tensor<4x6x9xf32>)
        attributes {implementation = "generated"} {
      %e = par.exp %x : tensor<4x6x9xf32>
      %s = par.reduce sum %e dims [0, 2] : tensor<4x6x9xf32> to tensor<6xf32>
      %all = par.broadcast_in_dim %s dims [1] : tensor<6xf32> to tensor<4x6x9xf32>
      %y = par.divide %e, %all : tensor<4x6x9xf32>
      par.return %s, %y : tensor<6xf32>, tensor<4x6x9xf32>
    }
    par.kernel @backward(%g: tensor<3x5x14xf32>, %x: tensor<3x5x14xf32>) -> (tensor<5xf32>, tensor<3x5x14xf32>)
        attributes {implementation = "generated"} {
      %bias = par.reduce sum %g dims [0, 2] : tensor<3x5x14xf32> to tensor<5xf32>
      %p = par.multiply %g, %x : tensor<3x5x14xf32>
      %s = par.reduce sum %p dims [0, 2] : tensor<3x5x14xf32> to tensor<5xf32>
      %factor = par.broadcast_in_dim %s dims [1] : tensor<5xf32> to tensor<3x5x14xf32>
      %y = par.multiply %x, %factor : tensor<3x5x14xf32>
      par.return %bias, %y : tensor<5xf32>, tensor<3x5x14xf32>
    }
    par.kernel @columns(%x: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {implementation = "generated"} {
      %s = par.reduce sum %x dims [0] : tensor<4x6xf32> to tensor<6xf32>
      %all = par.broadcast_in_dim %s dims [1] : tensor<6xf32> to tensor<4x6xf32>
      %y = par.subtract %x, %all : tensor<4x6xf32>
      par.return %y : tensor<4x6xf32>
    }
    par.kernel @crossed(%x: tensor<5x5x3xf32>) -> tensor<5x5x3xf32> attributes {implementation = "generated"} {
      %s = par.reduce sum %x dims [0, 2] : tensor<5x5x3xf32> to tensor<5xf32>
      %rows = par.broadcast_in_dim %s dims [0] : tensor<5xf32> to tensor<5x5x3xf32>
      %cols = par.broadcast_in_dim %s dims [1] : tensor<5xf32> to tensor<5x5x3xf32>
      %y = par.multiply %rows, %cols : tensor<5x5x3xf32>
      par.return %y : tensor<5x5x3xf32>
    })");
}

/// Two loops become one only where every operand steps through memory as one would.
TEST(Kernels, LoopsThatMerge) {
  runAll(R"(
    par.kernel @all(%x: tensor<3x4x5xf32>, %y: tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
        attributes {implementation = "generated"} {
      %0 = par.add %x, %y : tensor<3x4x5xf32>
      par.return %0 : tensor<3x4x5xf32>
    }
    par.kernel @outer(%x: tensor<3x4x5xf32>, %b: tensor<5xf32>) -> tensor<3x4x5xf32>
        attributes {implementation = "generated"} {
      %1 = par.broadcast_in_dim %b dims [2] : tensor<5xf32> to tensor<3x4x5xf32>
      %0 = par.add %x, %1 : tensor<3x4x5xf32>
      par.return %0 : tensor<3x4x5xf32>
    }
    par.kernel @inner(%x: tensor<3x4x5xf32>, %b: tensor<3xf32>) -> tensor<3x4x5xf32>
        attributes {implementation = "generated"} {
      %1 = par.broadcast_in_dim %b dims [0] : tensor<3xf32> to tensor<3x4x5xf32>
      %0 = par.add %x, %1 : tensor<3x4x5xf32>
      par.return %0 : tensor<3x4x5xf32>
    }
    par.kernel @apart(%x: tensor<3x4x5xf32>, %t: tensor<4x3x5xf32>) -> tensor<3x4x5xf32>
        attributes {implementation = "generated"} {
      %1 = par.transpose %t [1, 0, 2] : tensor<4x3x5xf32> to tensor<3x4x5xf32>
      %0 = par.add %x, %1 : tensor<3x4x5xf32>
      par.return %0 : tensor<3x4x5xf32>
    }
    par.kernel @table(%x: tensor<5x2x3xf32>) -> tensor<5x2x3xf32> attributes {implementation = "generated"} {
      %t = par.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
      %1 = par.broadcast_in_dim %t dims [1, 2] : tensor<2x3xf32> to tensor<5x2x3xf32>
      %0 = par.multiply %x, %1 : tensor<5x2x3xf32>
      par.return %0 : tensor<5x2x3xf32>
    }
    par.kernel @places(%x: tensor<3x4xi64>) -> tensor<3x4xi64> attributes {implementation = "generated"} {
      %1 = par.iota dim 1 : tensor<3x4xi64>
      %0 = par.add %x, %1 : tensor<3x4xi64>
      par.return %0 : tensor<3x4xi64>
    })");
}

// A reversed index that is cut into dims is negative on the way: divisions round down.
TEST(Kernels, ReversedIndicesCutIntoDims) {
  std::string text;
  for (int kept : {4, 7, 10, 12}) {
    std::string cut = "tensor<2x" + std::to_string(kept) + "xf32>";
    text += "par.kernel @k" + std::to_string(kept) + "(%a: tensor<2x3x4xf32>) -> " + cut +
            " attributes {implementation = \"generated\"} {\n"
            "  %0 = par.transpose %a [0, 2, 1] : tensor<2x3x4xf32> to tensor<2x4x3xf32>\n"
            "  %1 = par.reshape %0 : tensor<2x4x3xf32> to tensor<2x12xf32>\n"
            "  %2 = par.slice %1 [0, 0] to [2, " +
            std::to_string(kept) + "] by [1, 1] : tensor<2x12xf32> to " + cut +
            "\n"
            "  %3 = par.reverse %2 dims [1] : " +
            cut +
            "\n"
            "  par.return %3 : " +
            cut + "\n}\n";
  }
  run_kernels::runAll(text);
}

// The start of a slice is known only at run time, and may be less than the number added to it.
TEST(Kernels, SumsOfIndicesCutIntoDims) {
  run_kernels::runAll(R"(
    par.kernel @update(%a: tensor<2x3x4xf32>, %u: tensor<2x4xf32>, %s: tensor<i64>) -> tensor<2x12xf32>
        attributes {implementation = "generated"} {
      %0 = par.transpose %a [0, 2, 1] : tensor<2x3x4xf32> to tensor<2x4x3xf32>
      %1 = par.reshape %0 : tensor<2x4x3xf32> to tensor<2x12xf32>
      %2 = par.update_slice %1, %u at %s dim 1 : tensor<2x12xf32>, tensor<2x4xf32>, tensor<i64>
      par.return %2 : tensor<2x12xf32>
    }
    par.kernel @reversed(%a: tensor<5x7xf32>, %s: tensor<i64>) -> tensor<4x8xf32>
        attributes {implementation = "generated"} {
      %0 = par.transpose %a [1, 0] : tensor<5x7xf32> to tensor<7x5xf32>
      %1 = par.reshape %0 : tensor<7x5xf32> to tensor<35xf32>
      %2 = par.reverse %1 dims [0] : tensor<35xf32>
      %3 = par.dynamic_slice %2 at %s dim 0 size 32 : tensor<35xf32>, tensor<i64> to tensor<32xf32>
      %4 = par.reshape %3 : tensor<32xf32> to tensor<4x8xf32>
      par.return %4 : tensor<4x8xf32>
    })");
}

TEST(Kernels, EqualBodiesAreOne) {
  std::string one = unary("exp", "tensor<8xf32>"), other = one;
  other.replace(other.find("@exp"), 4, "@again");
  LoadedKernels loaded(one + other);
  ASSERT_EQ(loaded.compiled.kernels.size(), 2u);
  EXPECT_EQ(loaded.compiled.kernels[0].symbol, loaded.compiled.kernels[1].symbol);
  EXPECT_EQ(loaded.compiled.kernels[1].kernel, "again");
}

/// Two kernels that add random numbers of a key each, and one that adds those of two.
std::string randomKernels(StringRef first, StringRef second) {
  auto kernel = [](StringRef name, StringRef key, StringRef other) {
    return llvm::formatv(R"(
    par.kernel @{0}(%x: tensor<6xi64>) -> tensor<6xi64> attributes {{implementation = "generated"} {{
      %k = par.constant dense<{1}> : tensor<i64>
      %o = par.constant dense<{2}> : tensor<i64>
      %i = par.iota dim 0 : tensor<6xi64>
      %ks = par.broadcast_in_dim %k dims [] : tensor<i64> to tensor<6xi64>
      %os = par.broadcast_in_dim %o dims [] : tensor<i64> to tensor<6xi64>
      %a = par.random_bits %ks, %i : tensor<6xi64>
      %b = par.random_bits %os, %i : tensor<6xi64>
      %c = par.subtract %a, %b : tensor<6xi64>
      %f = par.constant dense<40> : tensor<6xi64>
      %g = par.shift_right %c, %f : tensor<6xi64>
      %y = par.add %x, %g : tensor<6xi64>
      par.return %y : tensor<6xi64>
    })",
                         name, key, other)
        .str();
  };
  return kernel("one", first, second) + kernel("two", second, first) + kernel("three", first, "7");
}

// Keys are immediates: kernels that differ only in them are one. A small number is no key.
TEST(Kernels, KeysOfRandomNumbersAreImmediates) {
  std::string text = randomKernels("-1536579437777813388", "3608469624707600759");
  LoadedKernels loaded(text);
  ASSERT_EQ(loaded.compiled.kernels.size(), 3u);
  EXPECT_EQ(loaded.compiled.kernels[0].symbol, loaded.compiled.kernels[1].symbol);
  EXPECT_NE(loaded.compiled.kernels[0].symbol, loaded.compiled.kernels[2].symbol);
  ASSERT_EQ(loaded.compiled.kernels[1].immediates.size(), 2u);
  EXPECT_EQ(loaded.compiled.kernels[1].immediates[0].number, 3608469624707600759);
  EXPECT_EQ(loaded.compiled.kernels[2].immediates.size(), 1u);
  runAll(text);
}

TEST(Kernels, AxisIndexIsTheSumOfItsImmediates) {
  LoadedKernels loaded(R"(
    par.kernel @where() -> tensor<3xi64> attributes {implementation = "generated"} {
      %i = par.axis_index over ["tp.0", "tp.1"] : tensor<i64>
      %0 = par.broadcast_in_dim %i dims [] : tensor<i64> to tensor<3xi64>
      par.return %0 : tensor<3xi64>
    })");
  ASSERT_TRUE(loaded.handle);
  const par::KernelInfo &info = loaded.compiled.kernels[0];
  ASSERT_EQ(info.immediates.size(), 2u);
  EXPECT_EQ(info.immediates[1].which, 1u);
  EXPECT_EQ(info.immediates[1].axes[1], "tp.1");
  int64_t out[3];
  void *pointers[] = {out};
  uint64_t immediates[] = {4, 1};
  loaded.function(info)(pointers, immediates, 0, 1);
  EXPECT_EQ(out[2], 5);
}

} // namespace

// Kernels for a GPU on shapes that its ways of sharing work differ in, run with every thread as a coroutine; and the
// gate.
#include "../../../lib/Phases/Codegen/CUDA/Assemble.h"
#include "../../../lib/Phases/Codegen/CUDA/Ptx.h"
#include "RunKernels.h"
#include "par/Inspect/Kernels.h"

#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace par;

namespace {

std::string kernel(const std::string &name, const std::string &arguments, const std::string &result,
                   const std::string &body) {
  return "par.kernel @" + name + "(" + arguments + ") -> " + result +
         " attributes {implementation = \"generated\"} {\n" + body + "\n}\n";
}

void runOnGpu(const std::string &text) { run_kernels::runAllFor(text, "sm_80"); }

/// Sets PAR_PTXAS for the length of a test, to a program that goes with it or to nothing.
struct Ptxas {
  explicit Ptxas(const std::string &path) : path(path) { setenv("PAR_PTXAS", path.c_str(), 1); }
  ~Ptxas() {
    unsetenv("PAR_PTXAS");
    unlink(path.c_str());
  }
  std::string path;
};

/// A file of this process only: other tests run at the same time.
std::string ownFile(const std::string &name) { return testing::TempDir() + name + "-" + std::to_string(getpid()); }

/// A program in the place of ptxas that writes a file, runs a line of sh and prints `said`.
std::string fakePtxas(const std::string &said, const std::string &first = "") {
  std::string path = ownFile("par-fake-ptxas");
  std::ofstream(path) << "#!/bin/sh\necho code > $4\n" << first << "\ncat <<END\n" << said << "\nEND\n";
  chmod(path.c_str(), 0755);
  return path;
}

/// A layer norm of the sum of two operands, which it gives too, in `format`; weights are f32.
std::string normKernel(int rows, int size, const std::string &format) {
  std::string sizes = std::to_string(rows) + "x" + std::to_string(size), wide = "tensor<" + sizes + "xf32>",
              narrow = "tensor<" + sizes + "x" + format + ">", weight = "tensor<" + std::to_string(size) + "xf32>",
              mean = "tensor<" + std::to_string(rows) + "xf32>", types = narrow + ", " + wide + ", " + mean;
  auto convert = [&](const std::string &from, const std::string &to) {
    return from == to ? "par.reshape %s : " + from + " to " + to : "par.convert %s : " + from + " to " + to;
  };
  return kernel("norm", "%a: " + narrow + ", %b: " + narrow + ", %g: " + weight + ", %h: " + weight, "(" + types + ")",
                "%s = par.add %a, %b : " + narrow + "\n%w = " + convert(narrow, wide) +
                    "\n%y, %m, %r = par.layer_norm %w, %g, %h epsilon 1.0e-5 : (" + wide + ", " + weight + ", " +
                    weight + ") -> (" + wide + ", " + mean + ", " + mean + ")\npar.return %s, %y, %r : " + types);
}

/// Share of bytes that PTX loads and stores 16 at a time, each instruction counted once.
double wideShare(const std::string &ptx) {
  const llvm::StringMap<Accesses> all = countAccesses(ptx);
  return double(all.begin()->second.wide) / double(all.begin()->second.all);
}

const std::string sumOfRow = kernel("sum", "%a: tensor<1x3000xf32>", "tensor<1xf32>",
                                    "%0 = par.reduce sum %a dims [1] : tensor<1x3000xf32> to tensor<1xf32>\n"
                                    "par.return %0 : tensor<1xf32>");

} // namespace

// Large elementwise kernels have several neighbouring rows a thread, and accesses of 16 bytes.
TEST(CudaKernels, WideAccesses) {
  std::string type = "tensor<2x262144xf32>";
  std::string text = kernel("add", "%a: " + type + ", %b: " + type, type,
                            "%0 = par.add %a, %b : " + type + "\npar.return %0 : " + type);
  LoadedKernels loaded(text, "sm_90");
  ASSERT_TRUE(loaded.handle) << loaded.errors;
  EXPECT_EQ(loaded.compiled.kernels[0].launch->grid, 512u);
  EXPECT_NE(loaded.compiled.ptx.find("v4."), std::string::npos) << loaded.compiled.ptx;
  runOnGpu(text);
}

// A row with many elements is shared by a block or a warp: maxima, sums and their users, in several types.
TEST(CudaKernels, Rows) {
  for (std::string sizes : {"8x1000", "3x2053", "100x40", "40x4x100"})
    for (std::string element : {"f32", "f64"}) {
      SCOPED_TRACE(sizes + " " + element);
      std::string type = "tensor<" + sizes + "x" + element + ">";
      std::string rows = "tensor<" + sizes.substr(0, sizes.rfind('x')) + "x" + element + ">";
      std::string dim = sizes == "40x4x100" ? "2" : "1";
      runOnGpu(kernel("softmax", "%a: " + type, "(" + type + ", " + rows + ")",
                      "%y = par.softmax %a dim " + dim + " : " + type + "\n%m = par.reduce max %a dims [" + dim +
                          "] : " + type + " to " + rows + "\npar.return %y, %m : " + type + ", " + rows));
    }
}

// Sums over leading dims: neighbouring threads have neighbouring results; the last threads are past the end.
TEST(CudaKernels, Columns) {
  for (std::string element : {"f32", "f64", "i64", "i32"})
    for (std::string kind : {"sum", "max"}) {
      std::string type = "tensor<500x70x" + element + ">", result = "tensor<70x" + element + ">";
      runOnGpu(kernel("reduce", "%a: " + type, result,
                      "%0 = par.reduce " + kind + " %a dims [0] : " + type + " to " + result +
                          "\npar.return %0 : " + result));
    }
}

// A row in registers: whole chunks of 16 bytes, chunks and rows past the end, no chunks, several rows a warp, and rows
// with too few registers, with and without scratch memory.
TEST(CudaKernels, NormsOfMixedFormats) {
  for (std::string format : {"bf16", "f16", "f32"})
    for (auto [rows, size] : {std::pair(19, 768), {300, 40}, {3, 1000}, {2, 1023}, {2, 9000}, {2, 18000}}) {
      SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(size) + " " + format);
      runOnGpu(normKernel(rows, size, format));
    }
}

TEST(CudaKernels, SoftmaxOfMixedFormats) {
  for (auto [rows, size] : {std::pair(4, 384), {50, 88}, {3, 333}, {2, 12000}, {2, 20000}}) {
    SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(size));
    std::string sizes = std::to_string(rows) + "x" + std::to_string(size), narrow = "tensor<" + sizes + "xbf16>",
                wide = "tensor<" + sizes + "xf32>";
    runOnGpu(kernel("softmax", "%a: " + narrow + ", %b: " + wide, wide,
                    "%0 = par.convert %a : " + narrow + " to " + wide + "\n%1 = par.add %0, %b : " + wide +
                        "\n%2 = par.softmax %1 dim 1 : " + wide + "\npar.return %2 : " + wide));
  }
}

// Elements of other threads of a row, and elements that are overwritten, are not read from registers.
TEST(CudaKernels, RowsWhoseElementsMove) {
  std::string type = "tensor<6x256xf32>", rows = "tensor<6xf32>", wide = "tensor<6x1xf32>";
  runOnGpu(kernel("turn", "%a: " + type, type,
                  "%0 = par.softmax %a dim 1 : " + type + "\n%1 = par.reshape %0 : " + type +
                      " to tensor<6x16x16xf32>" +
                      "\n%2 = par.transpose %1 [0, 2, 1] : tensor<6x16x16xf32> to tensor<6x16x16xf32>" +
                      "\n%3 = par.reshape %2 : tensor<6x16x16xf32> to " + type +
                      "\n%4 = par.softmax %3 dim 1 : " + type + "\npar.return %4 : " + type));
  std::string tied =
      kernel("tied", "%a: " + type, type, "%0 = par.softmax %a dim 1 : " + type + "\npar.return %0 : " + type);
  tied.replace(tied.find("implementation"), 0, "tied = array<i64: 0>, ");
  runOnGpu(tied);
}

// Sums over leading dims of neighbouring columns, by many threads or by one, of two factors and one for each row.
TEST(CudaKernels, ColumnsOfMixedFormats) {
  for (auto [outer, rows, columns] :
       {std::tuple(2, 130, 96), {1, 1000, 40}, {3, 7, 768}, {1, 12, 100}, {1, 5, 33}, {2, 3, 512}}) {
    SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(columns));
    std::string lead = std::to_string(outer) + "x", sizes = lead + std::to_string(rows) + "x" + std::to_string(columns),
                narrow = "tensor<" + sizes + "xbf16>", wide = "tensor<" + sizes + "xf32>",
                scale = "tensor<" + lead + std::to_string(rows) + "xf32>",
                result = "tensor<" + lead + std::to_string(columns) + "xf32>";
    runOnGpu(kernel("columns", "%a: " + narrow + ", %b: " + wide + ", %c: " + scale, "(" + result + ", " + result + ")",
                    "%0 = par.convert %a : " + narrow + " to " + wide + "\n%1 = par.multiply %0, %b : " + wide +
                        "\n%2 = par.broadcast_in_dim %c dims [0, 1] : " + scale + " to " + wide +
                        "\n%3 = par.multiply %1, %2 : " + wide + "\n%4 = par.reduce sum %3 dims [1] : " + wide +
                        " to " + result + "\n%5 = par.reduce max %0 dims [1] : " + wide + " to " + result +
                        "\npar.return %4, %5 : " + result + ", " + result));
  }
}

// Elements from one place or another are loads of both without a branch, from the begin where the place is outside: in
// other dims than runs of neighbours lie along, or at borders that are theirs or not, of sources shorter than a run.
TEST(CudaKernels, ChoicesWithoutBranches) {
  std::string type = "tensor<64x3x256xbf16>", part = "tensor<64x1x256xbf16>";
  std::string pads = kernel("pads", "%a: " + part + ", %b: " + part, type,
                            "%0 = par.pad %a low [0, 2, 0] high [0, 0, 0] value 0.0 : bf16 : " + part + " to " + type +
                                "\n%1 = par.pad %b low [0, 1, 0] high [0, 1, 0] value 0.5 : bf16 : " + part + " to " +
                                type + "\n%2 = par.add %0, %1 : " + type + "\npar.return %2 : " + type);
  runOnGpu(pads);
  LoadedKernels loaded(pads, "sm_90");
  EXPECT_EQ(wideShare(loaded.compiled.ptx), 1);
  for (auto [left, right] : {std::pair(64, 64), {60, 68}, {3, 125}, {2, 0}}) {
    SCOPED_TRACE(std::to_string(left) + " and " + std::to_string(right));
    auto sized = [](int size) { return "tensor<512x" + std::to_string(size) + "xf32>"; };
    std::string whole = sized(128), rest = sized(128 - left);
    runOnGpu(kernel("turn", "%a: " + whole, whole,
                    "%0 = par.slice %a [0, 0] to [512, " + std::to_string(left) + "] by [1, 1] : " + whole + " to " +
                        sized(left) + "\n%1 = par.slice %a [0, " + std::to_string(left) +
                        "] to [512, 128] by [1, 1] : " + whole + " to " + rest + "\n%2 = par.negate %1 : " + rest +
                        "\n%3 = par.concat %2, %0 dim 1 : (" + rest + ", " + sized(left) + ") -> " + whole +
                        "\n%4 = par.add %3, %a : " + whole + "\npar.return %4 : " + whole));
    runOnGpu(kernel("pad", "%a: " + sized(left), whole,
                    "%0 = par.pad %a low [0, " + std::to_string(right) + "] high [0, " +
                        std::to_string(128 - left - right) + "] value 1.0 : f32 : " + sized(left) + " to " + whole +
                        "\npar.return %0 : " + whole));
  }
}

// If rows are multiples of 16 bytes, all accesses except statistics of rows have 16 bytes, and rows are shared so that
// most threads have several chunks.
TEST(CudaKernels, RowsReadAndWriteWide) {
  {
    LoadedKernels norm(normKernel(16384, 768, "bf16"), "sm_90");
    EXPECT_EQ(norm.compiled.kernels[0].launch->threads, 256u); // eight rows, each of a warp, three chunks a thread
    EXPECT_EQ(norm.compiled.kernels[0].launch->grid, 2048u);
    EXPECT_GT(wideShare(norm.compiled.ptx), 0.95);
  }
  std::string type = "tensor<4096x1024xbf16>", sum = "tensor<1024xf32>", wide = "tensor<4096x1024xf32>";
  LoadedKernels bias(kernel("bias", "%a: " + type, sum,
                            "%0 = par.convert %a : " + type + " to " + wide + "\n%1 = par.reduce sum %0 dims [0] : " +
                                wide + " to " + sum + "\npar.return %1 : " + sum),
                     "sm_90");
  EXPECT_EQ(wideShare(bias.compiled.ptx), 1);
  LoadedKernels soft(kernel("softmax", "%a: " + type, type,
                            "%0 = par.convert %a : " + type + " to " + wide + "\n%1 = par.softmax %0 dim 1 : " + wide +
                                "\n%2 = par.convert %1 : " + wide + " to " + type + "\npar.return %2 : " + type),
                     "sm_90");
  EXPECT_EQ(wideShare(soft.compiled.ptx), 1);
  EXPECT_EQ(soft.compiled.ptx.find(".shared"), std::string::npos);
}

// A whole tensor reduced to one number, and values computed from it in the same kernel.
TEST(CudaKernels, Scalars) {
  for (std::string element : {"f32", "f64", "i64", "i32"}) {
    std::string type = "tensor<30x1000x" + element + ">", result = "tensor<" + element + ">";
    runOnGpu(kernel("sum", "%a: " + type, result,
                    "%0 = par.reduce sum %a dims [0, 1] : " + type + " to " + result + "\npar.return %0 : " + result));
  }
  runOnGpu(sumOfRow);
}

// The emulation finds missing barriers: without the syncs of a block's threads a sum reads unwritten memory.
TEST(CudaKernels, MissingMeetingsAreSeen) {
  auto sum = [](bool meets) {
    LoadedKernels loaded(sumOfRow, "sm_80", [&](std::string &ir) {
      const std::string call = "llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)";
      for (size_t at = 0; !meets && (at = ir.find(call, at)) != std::string::npos; ++at) {
        size_t begin = ir.rfind('\n', at), end = ir.find('\n', at);
        if (ir.substr(begin, end - begin).find("declare") == std::string::npos)
          ir.erase(begin, end - begin);
      }
    });
    EXPECT_TRUE(loaded.handle) << loaded.errors;
    std::vector<float> values(3000, 1);
    float result = 0;
    void *pointers[] = {values.data(), &result};
    loaded.function(loaded.compiled.kernels[0])(pointers, nullptr, 0, 1);
    return result;
  };
  EXPECT_EQ(sum(true), 3000);
  EXPECT_NE(sum(false), 3000);
}

TEST(CudaKernels, PtxIsSelfContained) {
  EXPECT_EQ(cuda::findFault(".version 8.0\n.target sm_90\n", "sm_90"), "");
  EXPECT_EQ(cuda::findFault(".extern .func f\n", "sm_90"), "a symbol that it does not define: .extern .func f");
  EXPECT_EQ(cuda::findFault("call.uni (r), __nv_expf, (p);\n", "sm_90"),
            "a symbol that it does not define: call.uni (r), __nv_expf, (p);");
  EXPECT_EQ(cuda::findFault(".version 8.6\n", "sm_90"),
            "PTX version 8.6, which the first drivers for sm_90 do not read");
  EXPECT_FALSE(cuda::isKnownSm("sm_12"));
}

/// Symbol of a module's first kernel.
static std::string symbolOf(const std::string &text) {
  Ptxas none("");
  return LoadedKernels(text, "sm_90").compiled.kernels.at(0).symbol;
}

// Without ptxas there is only PTX; the resources that ptxas reports are read, and compared with the limit.
TEST(CudaKernels, GateOnWhatPtxasSays) {
  std::string symbol = symbolOf(sumOfRow);
  {
    Ptxas none("");
    LoadedKernels loaded(sumOfRow, "sm_90");
    EXPECT_TRUE(loaded.compiled.cubins.empty());
    EXPECT_NE(loaded.compiled.ptx.find(".visible .entry " + symbol), std::string::npos);
  }
  std::string said =
      "ptxas info    : Compiling entry function '" + symbol +
      "' for 'sm_90'\n"
      "ptxas info    : Function properties for " +
      symbol +
      "\n"
      "    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size, 256 bytes smem";
  KernelResources read = cuda::parseResources(said)[symbol];
  EXPECT_EQ(read.registers, 40u);
  EXPECT_EQ(read.stackBytes, 16u);
  EXPECT_EQ(read.spillBytes, 20u);
  EXPECT_EQ(read.sharedBytes, 256u);
  Ptxas fake(fakePtxas(said));
  LoadedKernels loaded(sumOfRow, "sm_90");
  EXPECT_FALSE(loaded.handle);
  EXPECT_EQ(loaded.errors, "kernel @sum for sm_90 spills 20 bytes, the limit is 0\n");
}

// A row for which registers are too few after all is kept in shared memory.
TEST(CudaKernels, RowsThatSpillAreNotHeld) {
  std::string norm = normKernel(4096, 768, "bf16"), symbol = symbolOf(norm);
  std::string said = "ptxas info    : Compiling entry function '" + symbol +
                     "' for 'sm_90'\nptxas info    : Function properties for " + symbol +
                     "\n    16 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\nptxas info    : Used 255 "
                     "registers";
  std::string seen = ownFile("par-fake-ptxas-seen");
  unlink(seen.c_str());
  Ptxas fake(fakePtxas(said, "test -e " + seen + " && exit 0; touch " + seen));
  LoadedKernels looped(norm, "sm_90");
  unlink(seen.c_str());
  ASSERT_TRUE(looped.handle) << looped.errors;
  EXPECT_NE(looped.compiled.ptx.find(".shared"), std::string::npos);
  EXPECT_NE(looped.compiled.ptx.find(".minnctapersm 1"),
            std::string::npos); // else ptxas spills to have room for more blocks
  Ptxas none("");
  LoadedKernels held(norm, "sm_90");
  EXPECT_EQ(held.compiled.ptx.find(".shared"), std::string::npos);
  EXPECT_EQ(held.compiled.ptx.find(".minnctapersm"), std::string::npos);
  EXPECT_NE(held.compiled.kernels[0].launch->grid, looped.compiled.kernels[0].launch->grid);
}

TEST(CudaKernels, UnknownGpus) {
  LoadedKernels loaded(sumOfRow, "sm_12");
  EXPECT_EQ(loaded.errors, "no GPU that kernels can be made for is called sm_12; target.isa takes native, all, "
                           "sm_80, sm_86, sm_89, sm_90, sm_100, sm_120\n");
}

// Threads of a multiprocessor, by registers, by shared memory, by the number of blocks.
TEST(CudaKernels, Occupancy) {
  auto percent = [](uint32_t threads, unsigned registers, uint64_t shared) {
    return occupancy("sm_90", threads, {registers, 0, 0, shared});
  };
  EXPECT_EQ(percent(256, 32, 0), 100u);
  EXPECT_EQ(percent(1024, 64, 0), 50u);
  EXPECT_EQ(percent(32, 16, 0), 50u);
  EXPECT_EQ(percent(256, 32, 47 << 10), 50u);
}

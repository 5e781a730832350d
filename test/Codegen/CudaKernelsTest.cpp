// Kernels for a GPU on shapes that its ways of sharing work differ in, run with every thread as a coroutine; and the gate.
#include "../../lib/Codegen/CUDA/Assemble.h"
#include "../../lib/Codegen/CUDA/Ptx.h"
#include "../../lib/Driver/KernelTable.h"
#include "RunKernels.h"

#include <fstream>
#include <sys/stat.h>

using namespace par;

namespace {

std::string kernel(const std::string &name, const std::string &arguments, const std::string &result,
                   const std::string &body) {
  return "par.kernel @" + name + "(" + arguments + ") -> " + result +
         " attributes {implementation = \"generated\"} {\n" + body + "\n}\n";
}

void runOnGpu(const std::string &text) { run_kernels::runAllFor(text, "sm_80"); }

/// Sets PAR_PTXAS for the length of a test.
struct Ptxas {
  explicit Ptxas(const std::string &path) { setenv("PAR_PTXAS", path.c_str(), 1); }
  ~Ptxas() { unsetenv("PAR_PTXAS"); }
};

/// A program in the place of ptxas that says `said` and writes a file.
std::string fakePtxas(const std::string &said) {
  std::string path = testing::TempDir() + "par-fake-ptxas";
  std::ofstream(path) << "#!/bin/sh\necho code > $4\ncat <<END\n" << said << "\nEND\n";
  chmod(path.c_str(), 0755);
  return path;
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

// A row with many elements is shared by a block or a warp: maxima, sums and what they feed, in several types.
TEST(CudaKernels, Rows) {
  for (std::string sizes : {"8x1000", "3x2053", "100x40", "40x4x100"})
    for (std::string element : {"f32", "f64"}) {
      SCOPED_TRACE(sizes + " " + element);
      std::string type = "tensor<" + sizes + "x" + element + ">";
      std::string rows = "tensor<" + sizes.substr(0, sizes.rfind('x')) + "x" + element + ">";
      std::string dim = sizes == "40x4x100" ? "2" : "1";
      runOnGpu(kernel("softmax", "%a: " + type, "(" + type + ", " + rows + ")",
                      "%y = par.softmax %a dim " + dim + " : " + type + "\n%m = par.reduce max %a dims [" + dim + "] : " +
                          type + " to " + rows + "\npar.return %y, %m : " + type + ", " + rows));
    }
}

// Sums over leading dims, of which neighbouring threads have neighbouring results; the last ones stand behind the end.
TEST(CudaKernels, Columns) {
  for (std::string element : {"f32", "f64", "i64", "i32"})
    for (std::string kind : {"sum", "max"}) {
      std::string type = "tensor<500x70x" + element + ">", result = "tensor<70x" + element + ">";
      runOnGpu(kernel("reduce", "%a: " + type, result,
                      "%0 = par.reduce " + kind + " %a dims [0] : " + type + " to " + result + "\npar.return %0 : " +
                          result));
    }
}

// All of a tensor into one number, and what is computed from it beside it.
TEST(CudaKernels, Scalars) {
  for (std::string element : {"f32", "f64", "i64", "i32"}) {
    std::string type = "tensor<30x1000x" + element + ">", result = "tensor<" + element + ">";
    runOnGpu(kernel("sum", "%a: " + type, result,
                    "%0 = par.reduce sum %a dims [0, 1] : " + type + " to " + result + "\npar.return %0 : " + result));
  }
  runOnGpu(sumOfRow);
}

// The emulation sees what it is for: without the meetings of a block's threads a sum reads what is not there yet.
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
  EXPECT_EQ(cuda::findFault(".version 8.6\n", "sm_90"), "PTX version 8.6, which the first drivers for sm_90 do not read");
  EXPECT_FALSE(cuda::isKnownSm("sm_12"));
}

// Without ptxas there is PTX alone; what ptxas says of a kernel is read, and held against the limit.
TEST(CudaKernels, GateOnWhatPtxasSays) {
  {
    Ptxas none("");
    LoadedKernels loaded(sumOfRow, "sm_90");
    EXPECT_TRUE(loaded.compiled.cubins.empty());
    EXPECT_NE(loaded.compiled.ptx.find(".visible .entry par_k0"), std::string::npos);
  }
  std::string said = "ptxas info    : Compiling entry function 'par_k0' for 'sm_90'\n"
                     "ptxas info    : Function properties for par_k0\n"
                     "    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
                     "ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size, 256 bytes smem";
  KernelResources read = cuda::parseResources(said)["par_k0"];
  EXPECT_EQ(read.registers, 40u);
  EXPECT_EQ(read.stackBytes, 16u);
  EXPECT_EQ(read.spillBytes, 20u);
  EXPECT_EQ(read.sharedBytes, 256u);
  Ptxas fake(fakePtxas(said));
  LoadedKernels loaded(sumOfRow, "sm_90");
  EXPECT_FALSE(loaded.handle);
  EXPECT_EQ(loaded.errors, "kernel @sum for sm_90 spills 20 bytes, the limit is 0\n");
}

TEST(CudaKernels, UnknownGpus) {
  LoadedKernels loaded(sumOfRow, "sm_12");
  EXPECT_EQ(loaded.errors, "no GPU that kernels can be made for is called sm_12\n");
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

// Whole programs on the device `cuda`, whose driver is a stub: the numbers are the CPU device's, bit for bit,
// with graphs and without, in every order in which the stub does the work.
#include "CudaFixture.h"
#include "TrainingToy.h"
#include "cuda/tuning/Autotune.h"
#include "par/cuda/blas/Gemm.h"
#include "par/kernels/CudaBuiltins.h"

using namespace par;
using toy::failureOf;

namespace {

class DeviceTest : public toy::Cuda {};

TEST_F(DeviceTest, trainsAsTheCpuDoes) {
  format::Bundle bundle = toy::training();
  std::vector<float> expected = toy::trainOn("cpu", bundle);
  ASSERT_EQ(expected.size(), toy::steps + 64);
  for (const char *graphs : {"0", "1"})
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      setenv("PAR_CUDA_GRAPHS", graphs, 1);
      machine.reset("", seed);
      EXPECT_EQ(toy::trainOn("cuda", bundle), expected) << "graphs " << graphs << ", seed " << seed;
    }
}

TEST_F(DeviceTest, capturesAStepThatNothingLeaves) {
  setenv("PAR_CUDA_GRAPHS", "1", 1);
  toy::trainOn("cuda", toy::training());
  // One run step by step, one captured, all others launched.
  EXPECT_EQ(count("cuGraphInstantiate"), 1u);
  EXPECT_EQ(count("cuGraphLaunch"), toy::steps - 1);
  machine.reset();
  setenv("PAR_CUDA_GRAPHS", "0", 1);
  toy::trainOn("cuda", toy::training());
  EXPECT_EQ(count("cuGraphLaunch"), 0u);
}

// A state in pinned memory: brought and taken back on a stream of its own, reached by the host where it lies.
TEST_F(DeviceTest, bringsStatesFromTheHost) {
  auto bits = [](const std::string &device) {
    std::string all;
    toy::runOn(device, toy::offloaded(), [&](core::Session &session) {
      session.initialize(nullptr, 5);
      for (int step = 0; step < 4; ++step)
        session.run("train", {});
      for (const char *name : {"w", "m"}) {
        core::HostBytes bytes = session.tensor(name);
        all.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
      }
    });
    return all;
  };
  std::string expected = bits("cpu");
  EXPECT_EQ(expected.size(), 128u);
  for (const char *graphs : {"0", "1"})
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      setenv("PAR_CUDA_GRAPHS", graphs, 1);
      machine.reset("", seed);
      EXPECT_EQ(bits("cuda"), expected) << "graphs " << graphs << ", seed " << seed;
    }
}

TEST_F(DeviceTest, everyTypeIsFilled) {
  using format::DType;
  struct {
    DType type;
    double value;
    std::vector<uint8_t> bytes;
  } cases[] = {{DType::F32, 1.5, {0, 0, 0xc0, 0x3f}},
               {DType::F64, 1.5, {0, 0, 0, 0, 0, 0, 0xf8, 0x3f}},
               {DType::I64, -2, {0xfe, 255, 255, 255, 255, 255, 255, 255}},
               {DType::I64, 3, {3, 0, 0, 0, 0, 0, 0, 0}},
               {DType::I32, -3, {0xfd, 255, 255, 255}},
               {DType::F16, -1.5, {0, 0xbe}},
               {DType::F16, 6e-8, {1, 0}},
               {DType::F16, 65504, {0xff, 0x7b}},
               {DType::F16, 2049, {0, 0x68}},
               {DType::BF16, 1.01, {0x81, 0x3f}},
               {DType::I8, -1, {255}},
               {DType::U8, 200, {200}}};
  for (const auto &expected : cases)
    EXPECT_EQ(toy::filled(expected.type, expected.value), expected.bytes)
        << format::toString(expected.type) << ' ' << expected.value;
}

/// [[1.5, 1.5, 1.5]] 2 times with 3 x 2 of 2, added to 1: 10.
TEST_F(DeviceTest, multipliesInNarrowTypes) {
  for (auto [type, ten] : {std::pair(format::DType::BF16, 0x4120), std::pair(format::DType::F16, 0x4900)}) {
    format::Bundle bundle = toy::training();
    toy::ProgramBuilder b("narrow", {"compute"});
    b.buffer("w", format::BufferKind::State, {2, 2}, format::Index::None, 1, "w");
    b.buffer("x", format::BufferKind::Temp, {2, 3});
    b.buffer("y", format::BufferKind::Temp, {3, 2});
    for (format::Buffer &buffer : b.program.buffers)
      buffer.type = type;
    b.product("product", 2, 2, 3, false, false, 1, 1);
    b.program.calls[0].type = b.program.calls[0].typeC = type;
    b.block("all");
    b.fill("compute", 4, 1, "w");
    b.fill("compute", 6, 1.5, "x");
    b.fill("compute", 6, 2, "y");
    b.call("compute", "product", {"x", "y", "w"});
    b.run("train", "all");
    bundle.programs[0] = b.program;
    bundle.manifest.tensors.resize(1);
    bundle.manifest.tensors[0].type = type;
    bundle.manifest.hypers.clear();
    toy::runOn("cuda", bundle, [&](core::Session &session) {
      session.run("train", {});
      core::HostBytes w = session.tensor("w");
      ASSERT_EQ(w.size(), 8u);
      for (int i = 0; i < 4; ++i) {
        uint16_t bits;
        std::memcpy(&bits, w.data() + 2 * i, 2);
        EXPECT_EQ(bits, ten) << format::toString(type);
      }
    });
  }
}

/// The same, added to sums of f32.
TEST_F(DeviceTest, accumulatesNarrowProductsInF32) {
  for (format::DType type : {format::DType::BF16, format::DType::F16}) {
    format::Bundle bundle = toy::training();
    toy::ProgramBuilder b("narrow", {"compute"});
    b.buffer("w", format::BufferKind::State, {2, 2}, format::Index::None, 1, "w");
    b.buffer("x", format::BufferKind::Temp, {2, 3});
    b.buffer("y", format::BufferKind::Temp, {3, 2});
    b.program.buffers[1].type = b.program.buffers[2].type = type;
    b.product("product", 2, 2, 3, false, false, 1, 1);
    b.program.calls[0].type = type;
    b.block("all");
    b.fill("compute", 4, 1.00048828125, "w"); // neither format has it
    b.fill("compute", 6, 1.5, "x");
    b.fill("compute", 6, 2, "y");
    b.call("compute", "product", {"x", "y", "w"});
    b.run("train", "all");
    bundle.programs[0] = b.program;
    bundle.manifest.tensors.resize(1);
    bundle.manifest.hypers.clear();
    toy::runOn("cuda", bundle, [&](core::Session &session) {
      session.run("train", {});
      core::HostBytes w = session.tensor("w");
      ASSERT_EQ(w.size(), 16u);
      for (int i = 0; i < 4; ++i) {
        float value;
        std::memcpy(&value, w.data() + 4 * i, 4);
        EXPECT_EQ(value, 10.00048828125f) << format::toString(type);
      }
    });
  }
}

/// C = gelu(1.5 + 0.5) beside 2, then the gradient's: 3 gelu'(2).
TEST_F(DeviceTest, computesGeluBesideProducts) {
  format::Bundle bundle = toy::training();
  toy::ProgramBuilder b("epilogues", {"compute"});
  b.buffer("w", format::BufferKind::State, {3, 2, 8}, format::Index::None, 1, "w");
  b.alias("y", "w", {2, 8}, 0);
  b.alias("kept", "w", {2, 8}, 64);
  b.alias("z", "w", {2, 8}, 128);
  b.buffer("a", format::BufferKind::Temp, {2, 3});
  b.buffer("b", format::BufferKind::Temp, {3, 8});
  b.buffer("row", format::BufferKind::Temp, {8});
  b.product("forward", 2, 8, 3, false, false, 1, 0);
  b.product("backward", 2, 8, 3, false, false, 1, 0);
  b.program.calls[0].bias = true, b.program.calls[0].epilogue = format::Epilogue::GeluAux;
  b.program.calls[1].epilogue = format::Epilogue::GeluGrad;
  b.block("all");
  b.fill("compute", 6, 0.5, "a");
  b.fill("compute", 24, 1, "b");
  b.fill("compute", 8, 0.5, "row");
  b.call("compute", "forward", {"a", "b", "row", "kept", "y"}).operands[3].access = format::Access::Write;
  b.fill("compute", 6, 1, "a");
  b.call("compute", "backward", {"a", "b", "kept", "z"});
  b.run("train", "all");
  bundle.programs[0] = b.program;
  bundle.manifest.tensors.resize(1);
  bundle.manifest.hypers.clear();
  toy::runOn("cuda", bundle, [&](core::Session &session) {
    session.run("train", {});
    core::HostBytes w = session.tensor("w");
    ASSERT_EQ(w.size(), 192u);
    for (int i = 0; i < 48; ++i) {
      float value;
      std::memcpy(&value, w.data() + 4 * i, 4);
      EXPECT_NEAR(value, i < 16 ? 1.954597694 : i < 32 ? 2 : 3 * 1.086099, 1e-5) << i;
    }
  });
}

/// C += op(A) op(B) and the sum of an operand of 128 or 126 rows: if computed separately, in two parts or in one.
format::Bundle withSums(format::DType type, int64_t rows) {
  format::Bundle bundle = toy::training();
  toy::ProgramBuilder b("sums", {"compute"});
  b.buffer("w", format::BufferKind::State, {48}, format::Index::None, 1, "w");
  b.alias("c", "w", {2, 8}, 0);
  b.alias("other", "w", {2, 8}, 64);
  b.alias("ofB", "w", {8}, 128);
  b.alias("ofA", "w", {2}, 160);
  b.buffer("a", format::BufferKind::Temp, {rows, 2});
  b.buffer("b", format::BufferKind::Temp, {rows, 8});
  b.alias("first", "b", {16, 8}, 0);
  for (const char *name : {"a", "b", "first"})
    b.program.buffers[b.program.findBuffer(name)].type = type;
  for (const char *name : {"beside", "other"}) {
    b.product(name, 2, 8, rows, true, false, 1, 1);
    b.program.calls.back().type = type;
  }
  b.program.calls[0].epilogue = format::Epilogue::SumB;
  b.program.calls[1].epilogue = format::Epilogue::SumA;
  b.block("all");
  b.fill("compute", 48, 7, "w");
  b.fill("compute", static_cast<uint64_t>(rows) * 2, 3, "a");
  b.fill("compute", static_cast<uint64_t>(rows) * 8, 0.5, "b");
  b.fill("compute", 128, 2, "first");
  b.call("compute", "beside", {"a", "b", "ofB", "c"}).operands[2].access = format::Access::Write;
  b.call("compute", "other", {"a", "b", "ofA", "other"}).operands[2].access = format::Access::Write;
  b.run("train", "all");
  bundle.programs[0] = b.program;
  bundle.manifest.tensors.resize(1);
  bundle.manifest.hypers.clear();
  return bundle;
}

/// Fused with the matmul, or separately if the library has no fused form.
TEST_F(DeviceTest, addsUpOperandsOfProducts) {
  for (format::DType type : {format::DType::F32, format::DType::BF16, format::DType::F16})
    for (int64_t rows : {128, 126})
      for (bool beside : {true, false}) {
        machine.reset();
        machine.sumsBeside = beside;
        toy::runOn("cuda", withSums(type, rows), [&](core::Session &session) {
          session.run("train", {});
          core::HostBytes w = session.tensor("w");
          double ofB = 16 * 2 + (static_cast<double>(rows) - 16) * 0.5, ofA = 3 * static_cast<double>(rows);
          for (int i = 0; i < 42; ++i) {
            float value;
            std::memcpy(&value, w.data() + 4 * i, 4);
            EXPECT_EQ(value, i < 32 ? 7 + 3 * ofB : i < 40 ? ofB : ofA) << beside << " " << rows << " " << i;
          }
        });
        std::string epilogues;
        for (const stub::Call &call : machine.calls())
          if (call.name == "cublasLtMatmul") {
            size_t at = call.arguments.find("epilogue ") + 9;
            epilogues += call.arguments.substr(at, call.arguments.find(' ', at) - at) + " ";
          }
        EXPECT_EQ(epilogues, beside ? "256 512 " : rows == 128 ? "1 1 1 1 1 1 " : "1 1 1 1 ");
      }
}

TEST_F(DeviceTest, addsUpOperandsOnOneQueue) {
  format::Bundle bundle = withSums(format::DType::F32, 128);
  format::Program &program = bundle.programs[0];
  program.queues.push_back("other");
  format::Instruction again = program.blocks[0].instructions[4];
  again.queue = 1;
  program.blocks[0].instructions.push_back(again);
  EXPECT_EQ(failureOf([&] { toy::runOn("cuda", bundle, [](core::Session &) {}); }),
            "error: call \"beside\": a sum on more than one queue is not supported yet");
}

/// If the library's fused sum takes longer than another matmul, it is not used.
TEST_F(DeviceTest, addsUpOperandsApartWhereThatIsFaster) {
  machine.reset();
  cuda::Gpu gpu(0);
  cuda::Blas blas;
  cuda::Owned<cuda::Stream> stream = cuda::makeStream(gpu, false);
  const format::Call call = withSums(format::DType::BF16, 128).programs[0].calls[0];
  cuda::Gemm product(gpu, blas, call, 256);
  cuda::Autotune trial(gpu, stream, {});
  EXPECT_EQ(trial.fastest(product, call, product.propose()).algorithms.size(), 1u);
  machine.sumTakes = 1000;
  cuda::Algorithms apart = trial.fastest(product, call, product.propose()).algorithms;
  EXPECT_EQ(apart.size(), 3u);
  EXPECT_EQ(product.check(apart), 0);
  apart.pop_back();
  EXPECT_NE(product.check(apart), 0);
}

/// One way to a sum suffices: the library's heuristic is asked for the call, then for the products of the sum apart.
TEST_F(DeviceTest, needsOneWayToASum) {
  const format::Call call = withSums(format::DType::BF16, 128).programs[0].calls[0];
  for (const char *without : {"2", "3", "4"}) {
    machine.reset("cublasLtMatmulAlgoGetHeuristic:" + std::string(without) + ":15");
    cuda::Gpu gpu(0);
    cuda::Blas blas;
    cuda::Gemm product(gpu, blas, call, 256);
    std::vector<cuda::Algorithms> beside = product.propose();
    ASSERT_FALSE(beside.empty());
    for (const cuda::Algorithms &algorithms : beside)
      EXPECT_EQ(algorithms.size(), 1u) << without;
    machine.reset("cublasLtMatmulAlgoGetHeuristic:" + std::string(without) + ":15");
    machine.sumsBeside = false;
    EXPECT_EQ(failureOf([&] { product.propose(); }),
              "error: call \"beside\": cuBLASLt has no algorithm for it within a workspace of 0 bytes");
  }
}

TEST_F(DeviceTest, foldsBatchesOfProducts) {
  format::Call call;
  call.m = call.n = call.k = 4;
  call.batch = {2, 3, 5};
  // All dense: one batch of 30.
  call.strideA = call.strideB = call.strideC = {240, 80, 16};
  cuda::BatchFold fold = cuda::foldBatch(call);
  EXPECT_EQ(fold.count, 30);
  EXPECT_EQ(fold.outer.size(), 1u);
  // B repeats over the outermost dim: two batches of 15.
  call.strideB = {0, 80, 16};
  fold = cuda::foldBatch(call);
  EXPECT_EQ(fold.count, 15);
  ASSERT_EQ(fold.outer.size(), 2u);
  EXPECT_EQ(fold.outer[1].a, 240);
  EXPECT_EQ(fold.outer[1].b, 0);
}

TEST_F(DeviceTest, saysWhatFails) {
  setenv("PAR_CUDA_GRAPHS", "0", 1);
  machine.reset("work:40:700");
  EXPECT_EQ(failureOf([] { toy::trainOn("cuda", toy::training()); }),
            "toy.par: error: Stub failed in this step: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was "
            "encountered)\n  note: which instruction it was is not known; PAR_CUDA_BLOCKING=1 runs one at a time "
            "and names "
            "it");
  machine.reset("work:40:700");
  setenv("PAR_CUDA_BLOCKING", "1", 1);
  std::string named = failureOf([] { toy::trainOn("cuda", toy::training()); });
  unsetenv("PAR_CUDA_BLOCKING");
  EXPECT_TRUE(named.starts_with("toy.par: error: all/")) << named;
  EXPECT_NE(named.find(" failed on the GPU: CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << named;
  machine.reset("cublasLtCreate:1:1");
  EXPECT_EQ(failureOf([] { toy::trainOn("cuda", toy::training()); }), "error: cublasLtCreate failed: status 1");
  machine.reset("cublasLtMatmul:1:13");
  EXPECT_EQ(failureOf([] { toy::trainOn("cuda", toy::training()); }),
            "error: call \"count\": cublasLtMatmul failed (cuBLASLt status 13)");
  machine.reset("cublasLtMatmulAlgoGetHeuristic:1:15");
  EXPECT_EQ(failureOf([] { toy::trainOn("cuda", toy::training()); }),
            "error: call \"count\": cuBLASLt has no algorithm for it within a workspace of 0 bytes");
  machine.reset("cuModuleLoadDataEx:1:209");
  EXPECT_EQ(failureOf([] { toy::trainOn("cuda", toy::training()); }),
            "toy.par: error: Stub (sm_90) cannot load these kernels: CUDA_ERROR_NO_BINARY_FOR_GPU");
}

TEST_F(DeviceTest, saysWhereItStands) {
  setenv("PAR_CUDA_STALL", "0.2", 1);
  machine.reset("stall:20");
  std::string text = failureOf([] { toy::trainOn("cuda", toy::training()); });
  unsetenv("PAR_CUDA_STALL");
  EXPECT_EQ(text, "toy.par: error: rank 0 has not moved for 0.2 s; it waits for work of its own");
  machine.reset();
  machine.devices = 2;
  text = failureOf([] { toy::runOn("cuda nccl", toy::training(4), [](core::Session &) {}); });
  machine.devices = 8;
  EXPECT_TRUE(text == "toy.par: error: rank 2 is number 2 (from 0) on its host, which has 2 GPUs" ||
              text == "toy.par: error: rank 3 is number 3 (from 0) on its host, which has 2 GPUs")
      << text;
}

TEST_F(DeviceTest, saysThatItHasNoBuiltins) {
  setenv("PAR_CUDA_BUILTINS", "/nowhere", 1);
  EXPECT_EQ(failureOf([] { toy::trainOn("cuda", toy::training()); }),
            "/nowhere: error: cannot open: No such file or directory");
  unsetenv("PAR_CUDA_BUILTINS");
  if (kernels::cudaImage().empty())
    EXPECT_EQ(failureOf([] { toy::trainOn("cuda", toy::training()); }),
              "error: this runtime was built without nvcc and has no builtin kernels for cuda");
  else
    EXPECT_EQ(toy::trainOn("cuda", toy::training()), toy::trainOn("cpu", toy::training()));
}

} // namespace

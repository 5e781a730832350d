// Programs with attention on the device `cuda`: the graphs for cuDNN give the results of the CPU's builtins.
#include "AttentionShapes.h"
#include "CudaFixture.h"
#include "cuda/dnn/AttentionGraph.h"
#include "par/cuda/run/Device.h"
#include "par/kernels/LowPrecision.h"

#include <cmath>

using namespace par;
using toy::failureOf;

namespace {

using Dims = std::vector<int64_t>;

/// out, lse = attention(q, k, v), then dq, dk and dv for the cotangent `out`. All are state, so that they can
/// be read.
format::Bundle attending(const toy::Attention &shape, uint32_t ranks = 1) {
  using format::BufferKind;
  toy::ProgramBuilder b("attending", {"compute"});
  format::Bundle bundle = toy::training(ranks);
  bundle.manifest.hypers.clear();
  bundle.manifest.tensors.clear();
  bundle.provenance = {"/attention of the model"};
  auto type = shape.isBF16 ? format::DType::BF16 : format::DType::F16;
  auto dims = [&](char kind, bool written = false) {
    return Dims{static_cast<int64_t>(shape.rows(kind, written).elements)};
  };
  std::vector<std::tuple<std::string, Dims, format::DType>> tensors{
      {"q", dims('q'), type},        {"k", dims('k'), type},
      {"v", dims('v'), type},        {"out", dims('o', true), type},
      {"dq", dims('q', true), type}, {"dk", dims('k', true), type},
      {"dv", dims('v', true), type}, {"lse", {shape.b, shape.h, shape.sq}, format::DType::F32}};
  if (!shape.mask.empty())
    tensors.push_back({"mask", shape.mask, format::DType::F32});
  for (const auto &[name, dims, element] : tensors) {
    b.program.buffers[b.buffer(name, BufferKind::State, dims, format::Index::None, 1, name)].type = element;
    format::Tensor tensor;
    tensor.name = name, tensor.stored = dims, tensor.type = element;
    tensor.layout = {dims, dims, {{Dims(dims.size()), dims, {0}}}};
    tensor.init = {format::InitRule::Normal, 0, 1};
    bundle.manifest.tensors.push_back(tensor);
  }
  b.block("all");
  auto add = [&](std::string name, std::vector<std::string> args) {
    if (!shape.mask.empty())
      args.push_back("r mask");
    format::Instruction &it = b.kernel("compute", name + shape.format(), std::move(args));
    for (uint64_t value : shape.immediates(name == "attention_backward"))
      it.imms.push_back({static_cast<int64_t>(value), "", 1});
    it.provenance = 0;
    b.program.kernels[it.kernel].imms = static_cast<uint32_t>(it.imms.size());
  };
  add("attention", {"r q", "r k", "r v", "w out", "w lse"});
  std::vector<std::string> backward{"r out", "r q", "r k", "r v", "r out", "r lse", "w dq", "w dk", "w dv"};
  backward.resize(backward.size() - (shape.joined ? 2 : 0));
  add("attention_backward", backward);
  b.run("train", "all");
  bundle.programs[0] = b.program;
  return bundle;
}

/// out, lse, dq, dk and dv.
std::vector<float> attend(const std::string &device, const toy::Attention &shape) {
  std::vector<float> results;
  toy::runOn(device, attending(shape), [&](core::Session &session) {
    session.initialize(nullptr, 7);
    session.run("train", {});
    for (const char *name : {"out", "lse", "dq", "dk", "dv"}) {
      core::HostBytes bytes = session.tensor(name);
      size_t size = std::string(name) == "lse" ? 4 : 2;
      for (size_t at = 0; at < bytes.size(); at += size) {
        float value = 0;
        uint16_t narrow = 0;
        std::memcpy(size == 4 ? static_cast<void *>(&value) : &narrow, bytes.data() + at, size);
        results.push_back(size == 4 ? value : shape.isBF16 ? kernels::fromBF16(narrow) : kernels::fromF16(narrow));
      }
    }
  });
  return results;
}

class AttentionTest : public toy::Cuda {};

TEST_F(AttentionTest, computesWhatTheCpuDoes) {
  for (const toy::Attention &shape : toy::attentions)
    for (const char *graphs : {"0", "1"}) {
      setenv("PAR_CUDA_GRAPHS", graphs, 1);
      machine.reset();
      std::vector<float> expected = attend("cpu", shape), actual = attend("cuda", shape);
      ASSERT_EQ(actual.size(), expected.size());
      EXPECT_EQ(count("cudnnBackendExecute"), 2u) << shape.name;
      // Roundings of 2^-9, in other places: of probabilities and of the scores' cotangents before matmuls.
      for (size_t i = 0; i < actual.size(); ++i)
        ASSERT_NEAR(actual[i], expected[i], 0.02 * std::fmax(1, std::fabs(expected[i]))) << shape.name << " " << i;
    }
}

TEST_F(AttentionTest, ranksCompareTheirCudnn) {
  format::Bundle bundle = attending(toy::attentions[0]);
  EXPECT_EQ(cuda::makeDevice({&bundle, "", 0})->libraries(), "CUDA driver 13.0, cuDNN 9.19.0");
}

/// Its numbers would be read as narrow ones.
TEST_F(AttentionTest, formsOfF32AreNotCudnns) {
  for (const char *name : {"attention", "attention_backward"}) {
    EXPECT_TRUE(kernels::findBuiltin(name));
    EXPECT_FALSE(cuda::AttentionGraph::isBuiltin(name)) << name;
  }
  EXPECT_TRUE(cuda::AttentionGraph::isBuiltin("attention_bf16"));
  EXPECT_TRUE(cuda::AttentionGraph::isBuiltin("attention_backward_f16"));
}

TEST_F(AttentionTest, rankZeroChoosesTheEngines) {
  toy::runOn("cuda", attending(toy::attentions[0], 2), [](core::Session &session) {
    session.initialize(nullptr, 7);
    session.run("train", {});
  });
  auto closed = [&](const std::string &rank, const char *what) {
    auto calls = machine.calls(rank);
    return std::count_if(calls.begin(), calls.end(), [&](const stub::Call &call) {
      return call.name == "cudnnBackendFinalize" && call.arguments == what;
    });
  };
  EXPECT_EQ(closed("rank 0", "heuristic"), 2);
  EXPECT_EQ(closed("rank 1", "heuristic"), 0);
  EXPECT_EQ(closed("rank 1", "plan"), 2);
  EXPECT_EQ(count("cudnnBackendExecute", "rank 1"), 2u);
}

TEST_F(AttentionTest, whatCudnnCannotDoIsRefusedAtLoad) {
  format::Bundle bundle = attending(toy::attentions[0]);
  auto load = [&] { return failureOf([&] { toy::runOn("cuda", bundle, [](core::Session &) {}); }); };
  machine.reset("cudnnPlans:0:3000");
  EXPECT_EQ(load(), "error: kernel \"attention_backward_bf16\" (/attention of the model): cuDNN 9.19.0 has "
                    "no engine for it "
                    "that gives the same bits each time, computes in f32 and needs at most 4,294,967,296 "
                    "bytes of workspace: "
                    "3 cannot be planned: CUDNN_STATUS_NOT_SUPPORTED: injected; 1 give other bits each time; "
                    "compile it for "
                    "cpu, or name another cuDNN in PAR_CUDNN_LIBRARY");
  machine.reset();
  ++bundle.programs[0].blocks[0].instructions[0].imms[2].value; // heads of the keys that do not divide those
                                                                // of the queries
  std::string text = load();
  EXPECT_TRUE(
      text.starts_with("error: kernel \"attention_bf16\" (/attention of the model): cudnnBackendFinalize of a matmul "
                       "failed: "))
      << text;
  bundle = attending(toy::attentions[0]);
  bundle.programs[0].blocks[0].instructions[0].imms[0].axis = "dp";
  EXPECT_EQ(load(),
            "error: kernel \"attention_bf16\": attention_bf16 whose sizes depend on the rank is not supported yet");
  setenv("PAR_CUDNN_LIBRARY", "/nowhere/libcudnn.so.9", 1);
  text = load();
  EXPECT_TRUE(text.starts_with("error: cuDNN cannot be opened: /nowhere/libcudnn.so.9: ")) << text;
}

} // namespace

// Programs with convolutions on the device `cuda`: cuDNN gets the builtins' immediates, rank 0 chooses engines, results
// are the CPU's, and an unsupported convolution is refused when it is loaded, with its node.
#include "ConvolutionShapes.h"
#include "CudaFixture.h"
#include "TemporaryFolder.h"
#include "par/cuda/run/Device.h"

#include <fstream>

using namespace par;
using toy::failureOf;

namespace {

/// x and w are random, y = convolution(x, w), dx and dw the cotangents for that of y, which is y itself. All
/// are state of `type`, so that they can be read. One gradient is on a queue of its own.
format::Bundle convolving(const toy::Convolution &shape, format::DType type = format::DType::F32) {
  using format::BufferKind;
  toy::ProgramBuilder b("convolving", {"compute", "other"});
  std::vector<int64_t> x{shape.n, shape.groups * shape.c, shape.in[0], shape.in[1], shape.in[2]},
      w{shape.o, shape.c, shape.window[0], shape.window[1], shape.window[2]},
      y{shape.n, shape.o, shape.out(0), shape.out(1), shape.out(2)};
  format::Bundle bundle = toy::training();
  bundle.manifest.hypers.clear();
  bundle.manifest.tensors.clear();
  bundle.provenance = {"/conv of the model"};
  for (const auto &[name, dims] : {std::pair("x", x), {"w", w}, {"y", y}, {"dx", x}, {"dw", w}}) {
    b.buffer(name, BufferKind::State, dims, format::Index::None, 1, name);
    b.program.buffers.back().type = type;
    format::Tensor tensor;
    tensor.type = type;
    tensor.name = name, tensor.stored = dims;
    tensor.layout = {dims, dims, {{std::vector<int64_t>(dims.size()), dims, {0}}}};
    tensor.init = {format::InitRule::Normal, 0, 1};
    bundle.manifest.tensors.push_back(tensor);
  }
  b.event("made");
  b.block("all");
  auto add = [&](const char *queue, std::string name, std::vector<std::string> args) {
    if (type != format::DType::F32)
      name += "_" + std::string(format::toString(type));
    format::Instruction &it = b.kernel(queue, name, std::move(args));
    for (uint64_t value : shape.immediates())
      it.imms.push_back({static_cast<int64_t>(value), "", 1});
    it.provenance = 0;
    b.program.kernels[it.kernel].imms = static_cast<uint32_t>(it.imms.size());
  };
  add("compute", "convolution", {"r x", "r w", "w y"});
  b.signal("compute", "made");
  b.wait("other", "made");
  add("other", "convolution_input_grad", {"r y", "r w", "w dx"});
  add("compute", "convolution_filter_grad", {"r x", "r y", "w dw"});
  b.run("train", "all");
  bundle.programs[0] = b.program;
  return bundle;
}

/// The bytes of y, dx and dw after `runs` runs.
std::vector<uint8_t> convolve(const std::string &device, const format::Bundle &bundle, int runs = 3) {
  std::vector<uint8_t> results;
  toy::runOn(device, bundle, [&](core::Session &session) {
    session.initialize(nullptr, 7);
    for (int run = 0; run < runs; ++run)
      session.run("train", {});
    for (const char *name : {"y", "dx", "dw"}) {
      core::HostBytes bytes = session.tensor(name);
      auto *first = reinterpret_cast<const uint8_t *>(bytes.data());
      results.insert(results.end(), first, first + bytes.size());
    }
  });
  return results;
}

class ConvolutionsTest : public toy::Cuda {};

TEST_F(ConvolutionsTest, computeWhatTheCpuDoes) {
  for (const toy::Convolution &shape : toy::convolutions) {
    format::Bundle bundle = convolving(shape);
    std::vector<uint8_t> expected = convolve("cpu", bundle);
    for (const char *graphs : {"0", "1"})
      for (uint64_t seed = 1; seed <= 3; ++seed) {
        setenv("PAR_CUDA_GRAPHS", graphs, 1);
        machine.reset("", seed);
        EXPECT_EQ(convolve("cuda", bundle), expected) << shape.name << ", graphs " << graphs << ", seed " << seed;
      }
  }
}

TEST_F(ConvolutionsTest, keepTensorsNarrow) {
  for (format::DType type : {format::DType::BF16, format::DType::F16})
    for (const toy::Convolution &shape : toy::convolutions) {
      format::Bundle bundle = convolving(shape, type);
      std::vector<uint8_t> expected = convolve("cpu", bundle);
      EXPECT_GT(std::set<uint8_t>(expected.begin(), expected.end()).size(), 16u) << shape.name;
      EXPECT_EQ(convolve("cuda", bundle), expected) << shape.name << " " << format::toString(type);
    }
}

TEST_F(ConvolutionsTest, ofTwoTypesAreTwo) {
  format::Bundle bundle = convolving(toy::convolutions[0]);
  const format::Program narrow = convolving(toy::convolutions[0], format::DType::BF16).programs[0];
  format::Program &program = bundle.programs[0];
  // y in bf16 beside the other, which it does not touch.
  for (const format::Buffer &buffer : narrow.buffers) {
    format::Buffer own = buffer;
    own.name += ".narrow", own.kind = format::BufferKind::Temp, own.tensor = "";
    program.buffers.push_back(own);
  }
  std::vector<uint8_t> alone = convolve("cuda", bundle);
  format::Instruction it = narrow.blocks[0].instructions[0];
  ASSERT_EQ(it.op, format::Op::Kernel);
  it.kernel = static_cast<uint32_t>(program.kernels.size());
  for (format::Operand &operand : it.operands)
    operand.buffer += static_cast<uint32_t>(narrow.buffers.size());
  program.kernels.push_back(narrow.kernels[0]);
  auto &instructions = program.blocks[0].instructions;
  instructions.insert(instructions.begin(), it);
  setenv("PAR_CUDA_GRAPHS", "0", 1);
  machine.reset();
  EXPECT_EQ(convolve("cuda", bundle, 1), alone);
  EXPECT_EQ(count("cudnnBackendExecute"), 4u);
}

TEST_F(ConvolutionsTest, haveAWorkspaceOnTheirQueues) {
  setenv("PAR_CUDA_GRAPHS", "0", 1);
  convolve("cuda", convolving(toy::convolutions[0]), 1);
  EXPECT_EQ(count("cudnnBackendExecute"), 3u);
  std::set<std::string> streams;
  for (const stub::Call &call : machine.calls())
    if (call.name == "cudnnBackendExecute")
      streams.insert(call.arguments.substr(call.arguments.find("stream")));
  EXPECT_EQ(streams.size(), 2u);
  toy::runOn("cuda", convolving(toy::convolutions[0]), [](core::Session &session) {
    session.initialize(nullptr, 7);
    EXPECT_EQ(session.scratchBytes(), 0u);
    session.run("train", {});
    EXPECT_EQ(session.scratchBytes(), 2u * 65536);
  });
}

/// Engine 3, which the fallback knows, where engine 2 is slow; and still engine 3 for a run that goes on.
TEST_F(ConvolutionsTest, haveTheFastestEngineAndKeepIt) {
  TemporaryFolder folder;
  std::string file = folder / "tuning.json";
  auto engines = [&] {
    std::ifstream in(file);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    std::set<std::string> found;
    for (size_t at = 0; (at = text.find("\"engine\": \"", at)) != std::string::npos; ++at)
      found.insert(text.substr(at + 11, text.find('"', at + 11) - at - 11));
    return found;
  };
  format::Bundle bundle = convolving(toy::convolutions[0]);
  std::vector<uint8_t> expected = convolve("cpu", bundle);
  machine.slowEngine = 2;
  EXPECT_EQ(convolve("cuda tuned " + file, bundle), expected);
  EXPECT_EQ(engines(), std::set<std::string>{"3"});
  EXPECT_GT(count("cuEventElapsedTime"), 0u);
  machine.reset();
  machine.slowEngine = 3;
  EXPECT_EQ(convolve("cuda tuned " + file, bundle), expected);
  EXPECT_EQ(engines(), std::set<std::string>{"3"});
  EXPECT_EQ(count("cuEventElapsedTime"), 0u);
  // Numbers of engines mean nothing to another version.
  std::ifstream in(file);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  std::ofstream(file) << text.replace(text.find("9.19.0"), 6, "9.18.1");
  machine.reset();
  machine.slowEngine = 3;
  EXPECT_EQ(convolve("cuda tuned " + file, bundle), expected);
  EXPECT_GT(count("cuEventElapsedTime"), 0u);
}

TEST_F(ConvolutionsTest, ranksCompareTheirCudnn) {
  format::Bundle bundle = convolving(toy::convolutions[0]), other = toy::training();
  EXPECT_EQ(cuda::makeDevice({&bundle, "", 0})->libraries(), "CUDA driver 13.0, cuDNN 9.19.0");
  EXPECT_EQ(cuda::makeDevice({&other, "", 0})->libraries(), "CUDA driver 13.0");
}

TEST_F(ConvolutionsTest, whatCudnnCannotDoIsRefusedAtLoad) {
  format::Bundle bundle = convolving(toy::convolutions[0]);
  auto load = [&] { return failureOf([&] { toy::runOn("cuda", bundle, [](core::Session &) {}); }); };
  machine.reset("cudnnPlans:0:3000");
  EXPECT_EQ(load(),
            "error: kernel \"convolution\" (/conv of the model): cuDNN 9.19.0 has no engine for it that gives the "
            "same bits each time, computes in f32 and needs at most 268,435,456 bytes of workspace: 2 cannot be "
            "planned: CUDNN_STATUS_NOT_SUPPORTED: injected; 1 give other bits each time; 1 round f32 to less; "
            "compile it for cpu, or name another cuDNN in PAR_CUDNN_LIBRARY");
  machine.reset("cudnnWorkspace:268435457:0");
  std::string text = load();
  EXPECT_NE(text.find("2 want more memory, at least 268,435,457 bytes; compile it for cpu"), std::string::npos) << text;
  machine.reset();
  bundle.programs[0].blocks[0].instructions[0].imms[10 + 1].value += 1; // y0
  EXPECT_EQ(load(),
            "error: kernel \"convolution\" (/conv of the model): cudnnBackendFinalize of the convolution failed: "
            "CUDNN_STATUS_BAD_PARAM: spatial dim 0 of y is 5, expected 4");
  bundle = convolving(toy::convolutions[0]);
  bundle.programs[0].blocks[0].instructions[0].imms[0].axis = "dp";
  EXPECT_EQ(load(), "error: kernel \"convolution\": convolution whose sizes depend on the rank is not supported yet");
  setenv("PAR_CUDNN_LIBRARY", "/nowhere/libcudnn.so.9", 1);
  text = load();
  EXPECT_TRUE(text.starts_with("error: cuDNN cannot be opened: /nowhere/libcudnn.so.9: ")) << text;
}

TEST_F(ConvolutionsTest, saysWhatFailsWhileItRuns) {
  setenv("PAR_CUDA_GRAPHS", "0", 1);
  machine.reset("cudnnBackendExecute:2:5000");
  EXPECT_EQ(failureOf([] { convolve("cuda", convolving(toy::convolutions[0])); }),
            "error: kernel \"convolution_input_grad\" (/conv of the model): cudnnBackendExecute failed: "
            "CUDNN_STATUS_EXECUTION_FAILED: injected");
}

} // namespace

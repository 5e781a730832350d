#include "../../Cuda/AttentionShapes.h"
#include "Timing.h"
#include "cuda/dnn/LibraryGraphs.h"
#include "par/kernels/CudaBuiltins.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace par::toy {

using namespace par::kernels;

namespace {

const Attention models[] = {
    {"GPT-2, 16 x 1024 tokens", 16, 12, 12, 1024, 1024, 64, 64, true, {}, true, true, true},
    {"Llama 8B, 4096 tokens", 1, 32, 8, 4096, 4096, 128, 128, true},
    {"Llama 8B, 8192 tokens", 1, 32, 8, 8192, 8192, 128, 128, true},
    {"BERT, 16 x 512 tokens", 16, 12, 12, 512, 512, 64, 64, false, {16, 1, 1, 512}},
    {"ViT, 64 x 197 tokens", 64, 12, 12, 197, 197, 64, 64},
};

/// For unmasked scores: two matmuls forward, five backward. (Dao 2023, FlashAttention-2, section 4.1)
double flopsOf(const Attention &shape, bool backward) {
  double scores =
      static_cast<double>(shape.b * shape.h) * static_cast<double>(shape.sq) * static_cast<double>(shape.sk);
  return scores * 2 * static_cast<double>(shape.d + shape.e) * (backward ? 2.5 : 1) / (shape.causal ? 2 : 1);
}

void measure(const cuda::Gpu &gpu, const cuda::Dnn &dnn, const Attention &shape, bool backward, const char *separator) {
  std::string name = std::string(backward ? "attention_backward" : "attention") + shape.format();
  const BuiltinKernel &kernel = *findBuiltin(name);
  std::vector<uint64_t> immediates = shape.immediates(backward);
  auto planned = cuda::makeGraphKernel(dnn, {name, name, shape.name, immediates});
  planned->plan(planned->propose());
  cuda::Owned<cuda::Stream> stream = cuda::makeStream(gpu, false);
  std::vector<cuda::DeviceBuffer> blocks;
  std::vector<void *> pointers;
  for (size_t i = 0; i < kernel.operands.size(); ++i) {
    const BuiltinOperand &operand = kernel.operands[i];
    if (!isPresent(operand, immediates))
      continue;
    uint64_t bytes = operandElements(kernel, i, immediates) * (operand.type == "f32" ? 4 : 2);
    pointers.push_back(blocks.emplace_back(gpu, bytes, cuda::DeviceBuffer::Place::Device).data());
    // 0.046 in bf16, 0.043 in f32: scores are small, and none is hidden.
    gpu->check(gpu->set8(blocks.back().address(), 0x3d, bytes, stream), "cuMemsetD8Async");
  }
  cuda::DeviceBuffer workspace(gpu, planned->workspace(), cuda::DeviceBuffer::Place::Device);
  double seconds = secondsOf(gpu, stream, [&] { planned->run(pointers, workspace.data(), stream); });
  std::printf("%s\n {\"name\": \"%s, %s\", \"flops\": %.6g, \"seconds\": %.6g, \"workspace\": %llu}", separator,
              shape.name, backward ? "backward" : "forward", flopsOf(shape, backward), seconds,
              static_cast<unsigned long long>(planned->workspace()));
}

} // namespace

double secondsOf(const cuda::Gpu &gpu, cuda::Stream stream, const std::function<void()> &work) {
  auto timed = [&](int count) {
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i)
      work();
    gpu->check(gpu->streamSynchronize(stream), "cuStreamSynchronize");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / count;
  };
  timed(2);
  int count = std::clamp(static_cast<int>(0.02 / timed(1)), 3, 400);
  return std::min({timed(count), timed(count), timed(count)});
}

void measureAttentions(uint64_t most) {
  cuda::Gpu gpu(0);
  cuda::Dnn dnn;
  std::printf("{\"device\": \"%s\", \"attention\": [", gpu.name().c_str());
  const char *separator = "";
  for (const Attention &shape : models)
    for (bool backward : {false, true})
      if (static_cast<uint64_t>(shape.b * shape.sq) <= most) {
        measure(gpu, dnn, shape, backward, separator);
        separator = ",";
      }
  std::printf("]}\n");
}

} // namespace par::toy

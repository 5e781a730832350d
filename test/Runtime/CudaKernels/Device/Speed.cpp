// cuda-kernels-speed [TOKENS [VOCABULARY]]: bytes a second that the builtin kernels move on the first GPU, beside what a
// copy moves there in the same run. Sizes are GPT-2 124M's, with 16 x 1024 tokens unless others are given. One JSON object:
//   {"device", "copy": bytes/s, "kernels": [{"name", "bytes", "seconds", "share" (of the copy)}]}
#include "TypicalSizes.h"
#include "par/core/Failure.h"
#include "par/cuda/Gpu.h"
#include "par/kernels/CudaBuiltins.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>

using namespace par;
using namespace par::kernels;
using cuda::Block;

namespace {

class Bench {
public:
  Bench() : stream(cuda::makeStream(gpu, false)) {
    if (cudaImage().empty())
      throw core::Failure::at("", core::Message::cudaNoBuiltins);
    gpu->check(gpu->moduleLoad(&module, cudaImage().data(), 0, nullptr, nullptr), "cuModuleLoadDataEx");
  }

  /// Seconds that one `work` takes, of as many as fill 20 ms; the best of three.
  double seconds(const std::function<void()> &work) {
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

  /// Bytes a second, read and written.
  double copy(uint64_t bytes) {
    Block from = allocate(bytes), to = allocate(bytes);
    return 2.0 * static_cast<double>(bytes) /
           seconds([&] { gpu->check(gpu->copy(to.address(), from.address(), bytes, stream), "cuMemcpyAsync"); });
  }

  double kernel(const BuiltinKernel &kernel, const CudaLaunch &launch, const std::vector<uint64_t> &imm) {
    std::vector<Block> blocks;
    std::vector<uint64_t> words;
    for (size_t i = 0; i < kernel.operands.size(); ++i) {
      const BuiltinOperand &operand = kernel.operands[i];
      if (operand.onlyIf >= 0 && imm[operand.onlyIf] == 0)
        continue;
      uint64_t count = operandElements(kernel, i, imm);
      blocks.push_back(allocate(count * typeBytes(operand.type)));
      words.push_back(blocks.back().address());
      if (operand.type == "i64")
        writeIndices(blocks.back(), count, kernel.name.ends_with("_rows") ? imm[2] : imm[1]);
    }
    if (launch.scratch > 0) {
      blocks.push_back(allocate(launch.scratch));
      words.push_back(blocks.back().address());
    }
    words.insert(words.end(), imm.begin(), imm.end());
    std::vector<void *> parameters;
    for (uint64_t &word : words)
      parameters.push_back(&word);
    std::vector<cuda::Function> functions(launch.count);
    for (unsigned i = 0; i < launch.count; ++i)
      gpu->check(gpu->moduleFunction(&functions[i], module, std::string(launch.storage[i].entry).c_str()),
                 "cuModuleGetFunction");
    return seconds([&] {
      for (unsigned i = 0; i < launch.count; ++i) {
        const CudaStage &s = launch.storage[i];
        gpu->check(gpu->launch(functions[i], s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1], s.block[2],
                               s.shared, stream, parameters.data(), nullptr),
                   "cuLaunchKernel");
      }
    });
  }

  const std::string &device() const { return gpu.name(); }

private:
  /// Zeros.
  Block allocate(uint64_t bytes) {
    Block block(gpu, bytes, Block::Place::Device);
    gpu->check(gpu->set8(block.address(), 0, bytes, stream), "cuMemsetD8Async");
    return block;
  }
  /// Scattered ones, as tokens are.
  void writeIndices(const Block &to, uint64_t count, uint64_t below) {
    std::vector<int64_t> indices(count);
    for (uint64_t i = 0; i < count; ++i)
      indices[i] = static_cast<int64_t>(i * 2654435761 % below);
    gpu->check(gpu->copyToDevice(to.address(), indices.data(), count * sizeof(int64_t), stream), "cuMemcpyHtoDAsync");
    gpu->check(gpu->streamSynchronize(stream), "cuStreamSynchronize");
  }

  cuda::Gpu gpu{0};
  cuda::Module module = nullptr;
  cuda::Owned<cuda::Stream> stream;
};

void measure(uint64_t tokens, uint64_t vocabulary) {
  Bench bench;
  double copy = bench.copy(vocabulary * typicalWidth * 8);
  std::printf("{\"device\": \"%s\", \"copy\": %.6g, \"kernels\": [", bench.device().c_str(), copy);
  const char *separator = "\n";
  for (const BuiltinKernel &kernel : builtins()) {
    std::vector<uint64_t> imm = typicalImmediates(kernel, tokens, vocabulary);
    auto launch = cudaLaunch(kernel.name, imm);
    if (!launch)
      continue;
    auto bytes = static_cast<double>(bytesMoved(kernel, imm));
    double seconds = bench.kernel(kernel, *launch, imm);
    std::printf("%s  {\"name\": \"%s\", \"bytes\": %.0f, \"seconds\": %.4g, \"share\": %.4f}", separator,
                std::string(kernel.name).c_str(), bytes, seconds, bytes / seconds / copy);
    separator = ",\n";
  }
  std::printf("\n]}\n");
}

} // namespace

int main(int argc, char **argv) {
  try {
    measure(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : typicalTokens,
            argc > 2 ? std::strtoull(argv[2], nullptr, 10) : typicalVocabulary);
    return 0;
  } catch (const core::Failure &failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}

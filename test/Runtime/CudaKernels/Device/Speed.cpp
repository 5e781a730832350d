// Bytes a second that kernels move on the first GPU, beside a copy's in the same run:
//   cuda-kernels-speed [TOKENS [VOCABULARY]]        builtins; by default of GPT-2 124M's sizes, 16 x 1024 tokens
//   cuda-kernels-speed --generated FOLDER [MAX]     kernels that par-compile-kernels left in FOLDER
//   cuda-kernels-speed --attention [MAX]            cuDNN's attentions, as models have them
// MAX bounds the bytes of an operand, or the tokens of an attention, for stubs.
// One JSON object: {"device", "copy": bytes/s, "kernels": [{"name", "bytes", "seconds", "share" (of the copy)}]}
#include "Timing.h"
#include "TypicalSizes.h"
#include "par/cuda/driver/Gpu.h"
#include "par/kernels/CudaBuiltins.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>

using namespace par;
using namespace par::kernels;
using cuda::DeviceBuffer;

namespace {

class Bench {
public:
  Bench() : stream(cuda::makeStream(gpu, false)) {}

  void load(const void *image) {
    gpu->check(gpu->moduleLoad(&module, image, 0, nullptr, nullptr), "cuModuleLoadDataEx");
  }

  double seconds(const std::function<void()> &work) { return toy::secondsOf(gpu, stream, work); }

  /// Bytes a second, read and written.
  double copy(uint64_t bytes) {
    DeviceBuffer from = allocate(bytes), to = allocate(bytes);
    return 2.0 * static_cast<double>(bytes) /
           seconds([&] { gpu->check(gpu->copy(to.address(), from.address(), bytes, stream), "cuMemcpyAsync"); });
  }

  double kernel(const BuiltinKernel &kernel, const CudaLaunch &launch, const std::vector<uint64_t> &imm) {
    std::vector<DeviceBuffer> blocks;
    std::vector<uint64_t> words;
    for (size_t i = 0; i < kernel.operands.size(); ++i) {
      const BuiltinOperand &operand = kernel.operands[i];
      if (!isPresent(operand, imm))
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

  /// A kernel of one launch on zeros.
  double kernel(const std::string &symbol, uint32_t blocks, uint32_t threads, const std::vector<uint64_t> &bytes) {
    std::vector<DeviceBuffer> operands;
    std::vector<uint64_t> words;
    for (uint64_t each : bytes) {
      operands.push_back(allocate(each));
      words.push_back(operands.back().address());
    }
    std::vector<void *> parameters;
    for (uint64_t &word : words)
      parameters.push_back(&word);
    cuda::Function function = nullptr;
    gpu->check(gpu->moduleFunction(&function, module, symbol.c_str()), "cuModuleGetFunction");
    return seconds([&] {
      gpu->check(gpu->launch(function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters.data(), nullptr),
                 "cuLaunchKernel");
    });
  }

  const std::string &device() const { return gpu.name(); }
  int sm() const { return gpu.sm(); }

private:
  /// Zeros.
  DeviceBuffer allocate(uint64_t bytes) {
    DeviceBuffer block(gpu, bytes, DeviceBuffer::Place::Device);
    gpu->check(gpu->set8(block.address(), 0, bytes, stream), "cuMemsetD8Async");
    return block;
  }
  /// Scattered ones, as tokens are.
  void writeIndices(const DeviceBuffer &to, uint64_t count, uint64_t below) {
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

/// Prints the object, a kernel at a time.
class Report {
public:
  Report(const Bench &bench, double copy) : copy(copy) {
    std::printf("{\"device\": \"%s\", \"copy\": %.6g, \"kernels\": [", bench.device().c_str(), copy);
  }
  ~Report() { std::printf("\n]}\n"); }
  void add(const std::string &name, double bytes, double seconds) {
    std::printf("%s  {\"name\": \"%s\", \"bytes\": %.0f, \"seconds\": %.4g, \"share\": %.4f}", separator, name.c_str(),
                bytes, seconds, bytes / seconds / copy);
    separator = ",\n";
  }

private:
  double copy;
  const char *separator = "\n";
};

void measureBuiltins(uint64_t tokens, uint64_t vocabulary) {
  Bench bench;
  if (cudaImage().empty())
    throw core::Failure::at("", core::Message::cudaNoBuiltins);
  bench.load(cudaImage().data());
  Report report(bench, bench.copy(vocabulary * typicalWidth * 8));
  for (const BuiltinKernel &kernel : builtins()) {
    std::vector<uint64_t> imm = typicalImmediates(kernel, tokens, vocabulary);
    if (auto launch = cudaLaunch(kernel.name, imm))
      report.add(std::string(kernel.name), static_cast<double>(bytesMoved(kernel, imm)),
                 bench.kernel(kernel, *launch, imm));
  }
}

std::string contentsOf(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Bytes of the operands of a row of `kernels.txt`: "r:100" counts once, "rw:100" twice.
void measureGenerated(const std::string &folder, uint64_t most) {
  Bench bench;
  std::string image = contentsOf(folder + "/kernels-sm" + std::to_string(bench.sm()) + ".cubin");
  if (image.empty())
    image = contentsOf(folder + "/kernels.ptx");
  std::ifstream table(folder + "/kernels.txt");
  if (image.empty() || !table)
    throw core::Failure::at(folder, core::Message::cannotOpen, "kernels.ptx and kernels.txt are there");
  bench.load(image.c_str());
  Report report(bench, bench.copy(std::min<uint64_t>(most, 256 << 20)));
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string name, symbol;
    uint32_t blocks = 0, threads = 0;
    words >> name >> symbol >> blocks >> threads;
    std::vector<uint64_t> bytes;
    uint64_t moved = 0;
    for (std::string operand; words >> operand;) {
      size_t access = operand.find(':');
      bytes.push_back(std::strtoull(operand.c_str() + access + 1, nullptr, 10));
      moved += bytes.back() * access;
      bytes.back() = std::min(bytes.back(), most);
    }
    report.add(name, static_cast<double>(moved), bench.kernel(symbol, blocks, threads, bytes));
  }
}

} // namespace

int main(int argc, char **argv) {
  auto number = [&](int position, uint64_t otherwise) {
    return argc > position ? std::strtoull(argv[position], nullptr, 10) : otherwise;
  };
  try {
    if (argc > 2 && std::strcmp(argv[1], "--generated") == 0)
      measureGenerated(argv[2], number(3, UINT64_MAX));
    else if (argc > 1 && std::strcmp(argv[1], "--attention") == 0)
      toy::measureAttentions(number(2, UINT64_MAX));
    else
      measureBuiltins(number(1, typicalTokens), number(2, typicalVocabulary));
    return 0;
  } catch (const core::Failure &failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}

// Attention by cuDNN on a GPU against the CPU's builtins: the same numbers but for roundings to 16 bits, the
// same bits each time.
#include "../../Cuda/AttentionShapes.h"
#include "cuda/dnn/LibraryGraphs.h"
#include "par/kernels/CudaBuiltins.h"
#include "par/kernels/LowPrecision.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace par;
using namespace par::kernels;

namespace {

/// Heads as models have them, of few tokens: the CPU's form is slow.
const toy::Attention layers[] = {
    {"GPT-2", 1, 3, 3, 160, 160, 64, 64, true, {}, true, true, true},
    {"Llama", 1, 4, 1, 100, 100, 128, 128, true, {}, false},
    {"BERT", 2, 2, 2, 128, 128, 64, 64, false, {2, 1, 1, 128}},
};

using Bytes = std::vector<std::byte>;

class CudaAttention : public testing::Test {
protected:
  /// Operands by name, which both forms share: results of the forward part go into the backward part.
  using Operands = std::map<std::string_view, Bytes>;

  static float load(const BuiltinOperand &operand, const Bytes &bytes, size_t i) {
    float wide = 0;
    uint16_t narrow = 0;
    if (operand.type == "f32") {
      std::memcpy(&wide, bytes.data() + 4 * i, 4);
      return wide;
    }
    std::memcpy(&narrow, bytes.data() + 2 * i, 2);
    return operand.type == "bf16" ? fromBF16(narrow) : fromF16(narrow);
  }

  void fill(const BuiltinOperand &operand, Bytes &bytes) {
    std::uniform_real_distribution<float> values(-1, 1);
    for (size_t at = 0; at < bytes.size(); at += operand.type == "f32" ? 4 : 2) {
      float wide = values(random);
      uint16_t narrow = operand.type == "bf16" ? toBF16(wide) : toF16(wide);
      operand.type == "f32" ? std::memcpy(&bytes[at], &wide, 4) : std::memcpy(&bytes[at], &narrow, 2);
    }
  }

  /// The GPU's results, computed `runs` times.
  std::vector<Operands> compute(const BuiltinKernel &kernel, const toy::Attention &shape,
                                const std::vector<uint64_t> &immediates, const Operands &given, int runs,
                                bool inPieces) {
    std::string name(kernel.name);
    cuda::GraphUse use{name, name, shape.name, immediates};
    use.scores = inPieces ? 1 : use.scores;
    auto planned = cuda::makeGraphKernel(dnn, use);
    planned->plan(planned->propose());
    std::vector<cuda::DeviceBuffer> blocks;
    std::vector<void *> pointers;
    const std::vector<size_t> present = operandsOf(kernel, immediates);
    for (size_t i : present) {
      const Bytes &bytes = given.at(kernel.operands[i].name);
      pointers.push_back(blocks.emplace_back(gpu, bytes.size(), cuda::DeviceBuffer::Place::Device).data());
      gpu->check(gpu->copyToDevice(blocks.back().address(), bytes.data(), bytes.size(), stream), "copy");
    }
    cuda::DeviceBuffer workspace(gpu, planned->workspace(), cuda::DeviceBuffer::Place::Device);
    std::vector<Operands> found(static_cast<size_t>(runs));
    for (Operands &results : found) {
      planned->run(pointers, workspace.data(), stream);
      for (size_t i = 0; i < present.size(); ++i)
        if (const BuiltinOperand &operand = kernel.operands[present[i]]; operand.access == Access::Write) {
          Bytes &bytes = results[operand.name] = given.at(operand.name);
          gpu->check(gpu->copyToHost(bytes.data(), blocks[i].address(), bytes.size(), stream), "copy");
        }
      gpu->check(gpu->streamSynchronize(stream), "synchronize");
    }
    return found;
  }

  /// Indices of the operands that exist.
  static std::vector<size_t> operandsOf(const BuiltinKernel &kernel, const std::vector<uint64_t> &immediates) {
    std::vector<size_t> present;
    for (size_t i = 0; i < kernel.operands.size(); ++i)
      if (isPresent(kernel.operands[i], immediates))
        present.push_back(i);
    return present;
  }

  void check(const std::string &builtin, const toy::Attention &shape, Operands &operands) {
    const BuiltinKernel &kernel = *findBuiltin(builtin + shape.format());
    std::vector<uint64_t> immediates = shape.immediates(builtin == "attention_backward");
    std::vector<void *> pointers;
    for (size_t i : operandsOf(kernel, immediates)) {
      const BuiltinOperand &operand = kernel.operands[i];
      Bytes &bytes = operands[operand.name];
      if (bytes.empty()) {
        bytes.resize(operandElements(kernel, i, immediates) * (operand.type == "f32" ? 4 : 2));
        fill(operand, bytes);
      }
      pointers.push_back(bytes.data());
    }
    std::vector<Operands> found = compute(kernel, shape, immediates, operands, 2, false);
    EXPECT_TRUE(found[0] == found[1]) << builtin << " " << shape.name << ": other bits the second time";
    // Parts of a batch and of heads that share keys.
    found.push_back(compute(kernel, shape, immediates, operands, 1, true)[0]);
    builtinFunction(kernel.name)(pointers.data(), immediates.data(), 0, 1);
    for (size_t which : {0, 2})
      compare(kernel, immediates, operands, found[which], builtin + " " + shape.name + (which ? ", in pieces" : ""));
  }

  /// Both round probabilities and cotangents of scores before matmuls, and the result: some 2^-9 of the largest.
  static void compare(const BuiltinKernel &kernel, const std::vector<uint64_t> &immediates, Operands &wanted,
                      Operands &found, const std::string &what) {
    for (size_t i : operandsOf(kernel, immediates)) {
      const BuiltinOperand &operand = kernel.operands[i];
      double scale = 0, far = 0;
      for (size_t at = 0; operand.access == Access::Write && at < operandElements(kernel, i, immediates); ++at) {
        double number = load(operand, wanted[operand.name], at);
        scale = std::max(scale, std::fabs(number));
        far = std::max(far, std::fabs(number - double(load(operand, found[operand.name], at))));
      }
      EXPECT_LE(far, (operand.type == "f32" ? 1e-3 : 0.02) * scale) << what << " " << operand.name;
    }
  }

  void check(const toy::Attention &shape) {
    Operands operands;
    check("attention", shape, operands);
    check("attention_backward", shape, operands);
  }

  cuda::Gpu gpu{0};
  cuda::Dnn dnn;
  cuda::Owned<cuda::Stream> stream = cuda::makeStream(gpu, false);
  std::mt19937 random{7};
};

TEST_F(CudaAttention, isTheCpus) {
  for (const toy::Attention &shape : toy::attentions)
    check(shape);
}

TEST_F(CudaAttention, ofModelsIsTheCpus) {
  for (const toy::Attention &shape : layers)
    check(shape);
}

} // namespace

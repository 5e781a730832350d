// Entries and grids that a builtin launches on a CUDA device.
#include "par/kernels/CudaBuiltins.h"
#include "cuda/Sizes.h"

#include <algorithm>

namespace par::kernels {
namespace {

using namespace par::cuda;
using Immediates = std::span<const uint64_t>;

constexpr uint64_t largestX = 0x7fffffff, largestY = 65535;

uint64_t ceilDiv(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

/// A launch of one stage; nothing if the grid is larger than a device takes. Nothing to do is one block that
/// finds so.
std::optional<CudaLaunch> single(std::string_view entry, uint64_t gridX, uint64_t gridY, uint32_t blockX,
                                 uint32_t blockY = 1) {
  if (gridX > largestX || gridY > largestY)
    return std::nullopt;
  CudaLaunch launch;
  launch.storage[0] = {
      entry, {uint32_t(std::max<uint64_t>(gridX, 1)), uint32_t(std::max<uint64_t>(gridY, 1)), 1}, {blockX, blockY, 1}};
  return launch;
}

std::optional<CudaLaunch> elementwise(std::string_view entry, Immediates imm) {
  return single(entry, ceilDiv(imm[0], elementsOfBlock), 1, 256);
}

/// Teams of a warp for rows of up to 1024 elements, else of a whole block.
std::optional<CudaLaunch> byRows(std::string_view entry, uint64_t rows, uint64_t cols) {
  if (cols <= 1024)
    return single(entry, ceilDiv(rows, 4), 1, 32, 4);
  return single(entry, rows, 1, cols <= 8192 ? 256 : 512);
}

std::optional<CudaLaunch> scatter(std::string_view entry, Immediates imm) {
  return single(entry, ceilDiv(imm[2], scatterRows), ceilDiv(imm[1], scatterColumns), scatterColumns);
}

std::optional<CudaLaunch> sumSquares(Immediates imm) {
  unsigned parts = squaresParts(imm[0]);
  if (parts <= 4)
    return single("par_sum_squares", 1, 1, squaresThreads);
  auto launch = single("par_sum_squares_parts", parts, 1, squaresThreads);
  launch->storage[1] = {"par_sum_squares_total", {1, 1, 1}, {squaresThreads, 1, 1}};
  launch->count = 2;
  launch->scratch = parts * sizeof(double);
  return launch;
}

std::optional<CudaLaunch> layerNormBackward(std::string_view entry, Immediates imm) {
  uint64_t rows = imm[0], cols = imm[1];
  uint64_t parts = layerNormParts(rows);
  auto launch = single(entry, parts, 1, layerNormTile * 32);
  if (ceilDiv(cols, 32) > largestX)
    return std::nullopt;
  launch->storage[0].shared = cols <= layerNormColumnsInShared ? uint32_t(2 * cols * sizeof(float)) : 0;
  launch->storage[1] = {
      "par_layer_norm_backward_sums", {uint32_t(std::max<uint64_t>(ceilDiv(cols, 32), 1)), 2, 1}, {32, 32, 1}};
  launch->count = 2;
  launch->scratch = parts * 2 * cols * sizeof(float);
  return launch;
}

/// `size`: the first of the three sizes of the planes that the threads share out. The kernels count in 32
/// bits.
std::optional<CudaLaunch> byPlanes(std::string_view entry, Immediates imm, size_t size) {
  // Planes with their padding and windows, whole and dim by dim.
  uint64_t input = 1, output = 1;
  for (size_t dim = 0; dim < 3; ++dim) {
    uint64_t reach = imm[1 + dim] + imm[13 + dim] + imm[16 + dim], window = imm[4 + dim] * imm[19 + dim];
    if (std::max({imm[1 + dim], imm[4 + dim], imm[7 + dim], imm[10 + dim], imm[13 + dim], imm[16 + dim], imm[19 + dim],
                  reach, window}) >= 1u << 30 ||
        imm[7 + dim] * imm[10 + dim] >= 1u << 30)
      return std::nullopt;
    input = std::min<uint64_t>(input * imm[1 + dim], largestX);
    output = std::min<uint64_t>(output * imm[7 + dim], largestX);
  }
  if (std::max(input, output) >= 1u << 30)
    return std::nullopt;
  uint64_t elements = imm[size] * imm[size + 1] * imm[size + 2];
  auto threads = static_cast<uint32_t>(std::clamp<uint64_t>(ceilDiv(elements, 32) * 32, 32, 256));
  return single(entry, imm[0], std::min(ceilDiv(elements, threads), largestY), threads);
}

std::optional<CudaLaunch> maxPoolGrad(std::string_view entry, Immediates imm) {
  std::optional<CudaLaunch> launch = byPlanes(entry, imm, 1);
  uint64_t input = imm[1] * imm[2] * imm[3], output = imm[7] * imm[8] * imm[9];
  if (launch && poolKeepsPlaces(input, output)) {
    launch->storage[0].grid[1] = 1;
    launch->storage[0].shared = uint32_t(output * sizeof(uint16_t));
  }
  return launch;
}

constexpr std::string_view entries[] = {
#define PAR_CUDA_ENTRY(NAME) #NAME,
#define PAR_CUDA_REDUCTION(TYPE) "par_reduce_" #TYPE,
#include "cuda/Entries.def"
};

/// The entry named like the builtin, or "".
std::string_view entryOf(std::string_view builtin) {
  for (std::string_view entry : entries)
    if (entry.substr(4) == builtin)
      return entry;
  return "";
}

} // namespace

std::optional<CudaLaunch> cudaLaunch(std::string_view name, std::span<const uint64_t> imm) {
  const BuiltinKernel *kernel = findBuiltin(name);
  std::string_view entry = entryOf(name);
  if (!kernel || imm.size() != kernel->immediates.size() || entry.empty())
    return std::nullopt;
  if (name == "adamw")
    return elementwise(imm[6] ? "par_adamw_coef" : entry, imm);
  if (name == "sgd")
    return elementwise(imm[3] ? "par_sgd_coef" : entry, imm);
  if (name == "momentum")
    return elementwise(imm[5] ? "par_momentum_coef" : entry, imm);
  if (name == "adamw_rows")
    return byRows(imm[8] ? "par_adamw_rows_coef" : entry, imm[0], imm[1]);
  if (name == "sgd_rows")
    return byRows(imm[5] ? "par_sgd_rows_coef" : entry, imm[0], imm[1]);
  if (name == "momentum_rows")
    return byRows(imm[7] ? "par_momentum_rows_coef" : entry, imm[0], imm[1]);
  if (name == "scatter_add_rows")
    return scatter(entry, imm);
  if (name == "sum_squares")
    return sumSquares(imm);
  if (name.starts_with("layer_norm_backward"))
    return layerNormBackward(entry, imm);
  if (name == "max_pool")
    return byPlanes(entry, imm, 7);
  if (name == "max_pool_grad")
    return maxPoolGrad(entry, imm);
  return byRows(entry, imm[0], imm[1]);
}

std::optional<CudaStage> cudaReduce(std::string_view type, unsigned members, uint64_t n) {
  constexpr std::string_view prefix = "par_reduce_";
  if (members == 0 || members > cudaReduceMembers)
    return std::nullopt;
  for (std::string_view entry : entries)
    if (entry.starts_with(prefix) && entry.substr(prefix.size()) == type)
      return CudaStage{entry, {uint32_t(std::clamp<uint64_t>(ceilDiv(n, 1024), 1, 4096)), 1, 1}, {256, 1, 1}};
  return std::nullopt;
}

CudaStage cudaCopy(uint64_t bytes) {
  return {"par_copy", {uint32_t(std::clamp<uint64_t>(ceilDiv(bytes, 16384), 1, 4096)), 1, 1}, {256, 1, 1}};
}

std::span<const std::string_view> cudaEntries() { return entries; }

uint64_t operandElements(const BuiltinKernel &kernel, size_t operand, std::span<const uint64_t> imm) {
  // "rows x cols": names of immediates.
  std::string_view shape = kernel.operands[operand].shape;
  uint64_t elements = 1;
  while (!shape.empty()) {
    std::string_view word = shape.substr(0, shape.find(' '));
    shape.remove_prefix(std::min(word.size() + 1, shape.size()));
    for (size_t i = 0; i < imm.size(); ++i)
      if (kernel.immediates[i].name == word)
        elements *= imm[i];
  }
  return elements;
}

uint64_t typeBytes(std::string_view type) { return type == "i64" ? 8 : type == "bf16" || type == "f16" ? 2 : 4; }

uint64_t bytesMoved(const BuiltinKernel &kernel, std::span<const uint64_t> imm) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < kernel.operands.size(); ++i) {
    const BuiltinOperand &operand = kernel.operands[i];
    if (!isPresent(operand, imm))
      continue;
    uint64_t elements = operandElements(kernel, i, imm);
    if (operand.shape == table::ofTable) // of which there are the rows that are named
      elements = std::min(elements, imm[0] * imm[1]);
    bool twice = operand.access == Access::Update || operand.access == Access::Accumulate;
    bytes += elements * typeBytes(operand.type) * (twice ? 2 : 1);
  }
  return bytes;
}

} // namespace par::kernels

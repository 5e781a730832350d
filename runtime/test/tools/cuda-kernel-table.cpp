// cuda-kernel-table FILE: of what ptxas -v said in FILE about the CUDA kernels, a line for each kernel and
// chip: registers, shared memory, how many of the threads that a multiprocessor holds can be there at a time,
// and the bytes that the builtin moves at sizes of GPT-2 124M with 16 x 1024 tokens.
#include "TypicalSizes.h"
#include "par/kernels/CudaBuiltins.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

using namespace par::kernels;

namespace {

/// Resources of one multiprocessor. (CUDA C++ Programming Guide, "Compute Capabilities")
struct Chip {
  std::string_view name;
  unsigned threads, blocks, registers, shared;
};
constexpr Chip chips[]{{"sm_80", 2048, 32, 65536, 164 << 10},
                       {"sm_90", 2048, 32, 65536, 228 << 10},
                       {"sm_100", 2048, 32, 65536, 228 << 10}};

struct Resources {
  unsigned registers = 0, shared = 0;
};

/// Resources by entry and chip.
std::map<std::pair<std::string, std::string>, Resources> readLog(const char *path) {
  std::map<std::pair<std::string, std::string>, Resources> all;
  std::pair<std::string, std::string> entry;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    auto quoted = [&](size_t from) {
      size_t begin = line.find('\'', from) + 1;
      return line.substr(begin, line.find('\'', begin) - begin);
    };
    if (size_t at = line.find("Compiling entry function"); at != line.npos)
      entry = {quoted(at), quoted(line.find(" for '"))};
    size_t used = line.find("Used "), shared = line.find(" bytes smem");
    if (used == line.npos)
      continue;
    Resources &resources = all[entry];
    resources.registers = unsigned(std::atoi(line.c_str() + used + 5));
    if (shared != line.npos)
      resources.shared = unsigned(std::atoi(line.c_str() + line.rfind(' ', shared - 1)));
  }
  return all;
}

unsigned roundUp(unsigned value, unsigned to) { return (value + to - 1) / to * to; }

/// Threads that a multiprocessor holds at a time, in percent. Registers are given to warps by 256, shared
/// memory to blocks by 128 bytes and 1 KiB for the system.
unsigned occupancy(const Chip &chip, const Resources &resources, unsigned threads, unsigned dynamic) {
  unsigned blocks = std::min(chip.blocks, chip.threads / threads);
  blocks = std::min(blocks, chip.registers / roundUp(resources.registers * 32, 256) / (threads / 32));
  blocks = std::min(blocks, chip.shared / (roundUp(resources.shared + dynamic, 128) + 1024));
  return blocks * threads * 100 / chip.threads;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2)
    return std::fprintf(stderr, "usage: cuda-kernel-table FILE\n"), 2;
  auto log = readLog(argv[1]);
  if (log.empty())
    return std::fprintf(stderr, "cuda-kernel-table: %s names no kernel\n", argv[1]), 1;
  std::printf("%-32s %8s %8s %7s %7s %9s %6s", "kernel", "blocks", "threads", "dynamic", "MB", "B/element", "");
  for (const Chip &chip : chips)
    std::printf("  %-6s regs smem  full", chip.name.data());
  std::printf("\n");
  auto print = [&](const CudaStage &stage, double bytes, double elements) {
    unsigned threads = stage.block[0] * stage.block[1] * stage.block[2];
    std::printf("%-32s %8u %8u %7u", stage.entry.data(), stage.grid[0] * stage.grid[1], threads, stage.shared);
    bytes > 0 ? std::printf(" %7.0f %9.1f %6s", bytes / 1e6, bytes / elements, "")
              : std::printf(" %7s %9s %6s", "", "", "");
    for (const Chip &chip : chips) {
      Resources resources = log[{std::string(stage.entry), std::string(chip.name)}];
      std::printf("  %-6s %4u %5u %3u%%", "", resources.registers, resources.shared,
                  resources.registers ? occupancy(chip, resources, threads, stage.shared) : 0);
    }
    std::printf("\n");
  };
  for (const BuiltinKernel &kernel : builtins()) {
    std::vector<uint64_t> imm = typicalImmediates(kernel);
    auto launch = cudaLaunch(kernel.name, imm);
    if (!launch)
      continue;
    uint64_t largest = 1;
    for (size_t i = 0; i < kernel.operands.size(); ++i)
      if (kernel.operands[i].name != "table")
        largest = std::max(largest, operandElements(kernel, i, imm));
    auto bytes = double(bytesMoved(kernel, imm));
    for (const CudaStage &stage : launch->stages())
      print(stage, &stage == launch->stages().data() ? bytes : 0, double(largest));
  }
  for (std::string_view type : {"f32", "bf16", "f16", "f64", "i64", "i32", "i16", "i8", "u8", "i1"})
    print(*cudaReduce(type, 4, typicalTokens * typicalWidth), 0, 1);
  print(cudaCopy(typicalTokens * typicalWidth * 4), 2.0 * typicalTokens * typicalWidth * 4,
        typicalTokens * typicalWidth);
  return 0;
}

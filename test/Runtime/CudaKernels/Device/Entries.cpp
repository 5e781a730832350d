// The entries on the GPU itself, so that the tests of the emulation hold there as well: cuda-kernels-check. Operands
// lie in pinned memory, which the GPU reaches where the tests read and write it.
#include "../Entries.h"

#include "par/cuda/driver/Gpu.h"
#include "par/messages/Failure.h"

#include <bit>
#include <map>

using namespace par;
using kernels::CudaStage;

namespace {

class Entries {
public:
  /// The first GPU; never closed, because memory of tests may end after every static object.
  static Entries &get() {
    static auto *entries = new Entries;
    return *entries;
  }

  void launch(const CudaStage &stage, std::span<void *> parameters) {
    gpu.use();
    auto [place, fresh] = functions.try_emplace(stage.entry, nullptr);
    if (fresh)
      gpu->check(gpu->moduleFunction(&place->second, module, std::string(stage.entry).c_str()),
                 std::string(stage.entry));
    auto [gridX, gridY, gridZ] = stage.grid;
    auto [blockX, blockY, blockZ] = stage.block;
    gpu->check(gpu->launch(place->second, gridX, gridY, gridZ, blockX, blockY, blockZ, stage.shared, stream,
                           parameters.data(), nullptr),
               "cuLaunchKernel of " + std::string(stage.entry));
    gpu->check(gpu->streamSynchronize(stream), std::string(stage.entry));
  }

  /// Pinning is slow: freed memory is kept for the next request of its size.
  void *allocate(size_t bytes) {
    std::vector<void *> &free = kept[std::bit_ceil(bytes)];
    void *memory = nullptr;
    if (free.empty()) {
      gpu.use();
      gpu->check(gpu->allocateHost(&memory, std::bit_ceil(bytes), 0), "cuMemHostAlloc");
      return memory;
    }
    memory = free.back();
    free.pop_back();
    return memory;
  }
  void release(void *memory, size_t bytes) { kept[std::bit_ceil(bytes)].push_back(memory); }

private:
  Entries() {
    if (kernels::cudaImage().empty())
      throw core::Failure::at("", core::Message::cudaNoBuiltins);
    gpu->check(gpu->moduleLoad(&module, kernels::cudaImage().data(), 0, nullptr, nullptr), "cuModuleLoadDataEx");
    stream = cuda::makeStream(gpu, false);
  }

  cuda::Gpu gpu{0};
  cuda::Module module = nullptr;
  cuda::Owned<cuda::Stream> stream;
  std::map<std::string_view, cuda::Function> functions;
  std::map<size_t, std::vector<void *>> kept;
};

} // namespace

void *allocateReachable(size_t bytes) { return Entries::get().allocate(bytes); }
void releaseReachable(void *memory, size_t bytes) { Entries::get().release(memory, bytes); }

void launchEntry(const CudaStage &stage, std::span<const uint64_t> parameters, uint64_t) {
  std::vector<uint64_t> words(parameters.begin(), parameters.end());
  std::vector<void *> places;
  for (uint64_t &word : words)
    places.push_back(&word);
  Entries::get().launch(stage, places);
}

void launchReduce(const CudaStage &stage, void *out, const kernels::CudaSources &sources, uint64_t members, uint64_t n,
                  uint64_t op, uint64_t) {
  kernels::CudaSources copy = sources;
  void *places[]{&out, &copy, &members, &n, &op};
  Entries::get().launch(stage, places);
}

// A block of CUDA threads on the CPU, as far as the kernels of runtime/src/kernels/cuda use one. Every thread
// is a fiber; they run one at a time, in an order drawn from a seed, and stop only where a kernel waits: at
// barriers and shuffles.
//
// Faults end the launch with an exception that says which threads and lines: a barrier that some threads do
// not reach, or reach in another line; a shuffle without all lanes of the warp; shared memory that is read
// before it is written in the block, or touched by two threads, one of them writing, without a barrier
// between.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <source_location>
#include <stdexcept>
#include <string>
#include <vector>

#define __global__
#define __device__
#define __grid_constant__
#define __launch_bounds__(...)
#define PAR_SHARED(T, name, count) static emulation::Shared<T> name(count, #name)
#define PAR_DYNAMIC_SHARED(T, name) T *name = static_cast<T *>(emulation::dynamicShared())

struct EmulatedIndex {
  unsigned x = 0, y = 0, z = 0;
};
inline EmulatedIndex threadIdx, blockIdx, blockDim, gridDim;

namespace emulation {

using Place = std::source_location;

struct Launch {
  std::array<uint32_t, 3> grid, block;
  uint32_t shared = 0;
};

/// Runs `kernel` in every thread of every block, in an order that depends on `seed`. Throws
/// std::runtime_error.
void launch(const Launch &launch, const std::function<void()> &kernel, uint64_t seed);

void waitForBlock(Place place);
void waitForWarp(Place place);
/// Gives `value` to the warp, and returns that of lane `from`.
uint64_t exchange(unsigned mask, uint64_t value, unsigned from, Place place);
unsigned currentLane();
void *dynamicShared();

/// An access to shared memory, by which later ones are judged.
struct Access {
  int thread = -1;
  unsigned barriers = 0, warpBarriers = 0;
};
struct Cell {
  Access write, read;
  bool manyRead = false;
};
void noteRead(Cell &cell, const char *name, size_t index);
void noteWrite(Cell &cell, const char *name, size_t index);

/// Static shared memory: made unknown when a block begins.
class SharedBase {
public:
  SharedBase();
  virtual void begin() = 0;

protected:
  ~SharedBase() = default;
};

template <typename T>
class Shared final : SharedBase {
public:
  Shared(size_t count, const char *name) : name(name), values(count), cells(count) { begin(); }
  struct Element {
    Shared &array;
    size_t index;
    operator T() const {
      noteRead(array.cells.at(index), array.name, index);
      return array.values[index];
    }
    void operator=(const T &value) const {
      noteWrite(array.cells.at(index), array.name, index);
      array.values[index] = value;
    }
  };
  Element operator[](size_t index) { return {*this, index}; }
  void begin() override {
    std::memset(static_cast<void *>(values.data()), 0xff, values.size() * sizeof(T));
    cells.assign(cells.size(), Cell());
  }

private:
  const char *name;
  std::vector<T> values;
  std::vector<Cell> cells;
};

/// Shuffles of any type of 4 or 8 bytes.
template <typename T>
T shuffle(unsigned mask, T value, unsigned from, Place place) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = exchange(mask, bits, from, place);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

} // namespace emulation

inline void __syncthreads(emulation::Place place = emulation::Place::current()) { emulation::waitForBlock(place); }
inline void __syncwarp(emulation::Place place = emulation::Place::current()) { emulation::waitForWarp(place); }

template <typename T>
T __shfl_sync(unsigned mask, T value, unsigned lane, emulation::Place place = emulation::Place::current()) {
  return emulation::shuffle(mask, value, lane, place);
}
/// Beyond the end of the warp a thread gets its own value.
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, emulation::Place place = emulation::Place::current()) {
  unsigned lane = emulation::currentLane();
  return emulation::shuffle(mask, value, lane + by < 32 ? lane + by : lane, place);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, emulation::Place place = emulation::Place::current()) {
  unsigned lane = emulation::currentLane();
  return emulation::shuffle(mask, value, lane >= by ? lane - by : lane, place);
}

inline float __expf(float x) { return std::exp(x); }

inline double __longlong_as_double(long long bits) { return std::bit_cast<double>(bits); }

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
template <typename T>
void __stwb(T *to, T value) {
  if (reinterpret_cast<uintptr_t>(to) % alignof(T) != 0)
    throw std::runtime_error("a store of " + std::to_string(sizeof(T)) + " bytes that is not aligned");
  std::memcpy(static_cast<void *>(to), &value, sizeof(T));
}

struct __nv_bfloat16 {
  uint16_t bits;
};
inline float __bfloat162float(__nv_bfloat16 x) { return std::bit_cast<float>(uint32_t(x.bits) << 16); }
/// Rounds to nearest, ties to even.
inline __nv_bfloat16 __float2bfloat16_rn(float x) {
  auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return {0x7fff};
  return {uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
struct __half {
  uint16_t bits;
};
inline float __half2float(__half x) { return float(std::bit_cast<_Float16>(x.bits)); }
inline __half __float2half_rn(float x) { return {std::bit_cast<uint16_t>(_Float16(x))}; }

// Reductions on a device give the bits of comm::reduce, for every type and operation, also over one of the
// sources.
#include "comm/engine/Reduce.h"
#include "Entries.h"

#include <gtest/gtest.h>
#include <random>

using namespace par;
using namespace par::kernels;

namespace {

struct Type {
  format::DType type;
  std::string_view name;
  size_t bytes;
};
constexpr Type types[]{{format::DType::F64, "f64", 8}, {format::DType::F32, "f32", 4}, {format::DType::BF16, "bf16", 2},
                       {format::DType::F16, "f16", 2}, {format::DType::I64, "i64", 8}, {format::DType::I32, "i32", 4},
                       {format::DType::I16, "i16", 2}, {format::DType::I8, "i8", 1},   {format::DType::U8, "u8", 1},
                       {format::DType::I1, "i1", 1}};

/// Random numbers as the type stores them; floats are small.
Bytes randoms(const Type &type, size_t n, std::mt19937 &random) {
  std::uniform_real_distribution<double> uniform(-3, 3);
  Bytes bytes(n * type.bytes + 16);
  for (size_t i = 0; i < n; ++i) {
    std::byte *to = bytes.data() + i * type.bytes;
    double value = uniform(random);
    auto single = float(value);
    uint64_t bits = random();
    if (type.type == format::DType::F64)
      std::memcpy(&bits, &value, 8);
    else if (type.type == format::DType::F32)
      std::memcpy(&bits, &single, 4);
    else if (type.type == format::DType::BF16)
      bits = __float2bfloat16_rn(single).bits;
    else if (type.type == format::DType::F16)
      bits = __float2half_rn(single).bits;
    else if (type.type == format::DType::I1)
      bits %= 3;
    std::memcpy(to, &bits, type.bytes);
  }
  return bytes;
}

TEST(CudaReduce, givesTheBitsOfTheCpu) {
  std::mt19937 random(3);
  for (const Type &type : types)
    for (uint64_t op = 0; op < 4; ++op)
      for (size_t n : {1, 5, 64, 2047}) {
        unsigned members = unsigned(n % 4) + 1;
        std::vector<Bytes> values;
        CudaSources sources{};
        std::vector<const std::byte *> pointers;
        for (unsigned member = 0; member < members; ++member)
          values.push_back(randoms(type, n, random));
        for (unsigned member = 0; member < members; ++member) {
          pointers.push_back(values[member].data());
          sources.at[member] = values[member].data();
        }
        Bytes expected(n * type.bytes + 16), out(n * type.bytes + 16);
        comm::reduce(type.type, format::Reduction(op), expected.data(), pointers, n);
        auto stage = cudaReduce(type.name, members, n);
        ASSERT_TRUE(stage);
        launchReduce(*stage, out.data(), sources, members, n, op, 1);
        EXPECT_EQ(out, expected) << type.name << " op " << op << " n " << n;
        // Over the last source.
        launchReduce(*stage, values.back().data(), sources, members, n, op, 2);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end() - 16, values.back().begin())) << type.name;
      }
}

TEST(CudaReduce, unalignedMembersToo) {
  std::mt19937 random(5);
  constexpr Type type = types[1];
  auto a = randoms(type, 100, random), b = randoms(type, 100, random);
  CudaSources sources{{a.data() + 4, b.data()}};
  Bytes expected(99 * 4), out(99 * 4);
  const std::byte *pointers[]{a.data() + 4, b.data()};
  comm::reduce(type.type, format::Reduction::Sum, expected.data(), pointers, 99);
  launchReduce(*cudaReduce("f32", 2, 99), out.data(), sources, 2, 99, 0, 1);
  EXPECT_EQ(out, expected);
}

TEST(CudaCopy, copiesAnyBytes) {
  std::mt19937 random(7);
  for (size_t bytes : {0, 1, 15, 16, 4097, 70001})
    for (size_t offset : {0, 3}) {
      Bytes from(bytes + 3), to(bytes + 3, std::byte(1));
      for (std::byte &byte : from)
        byte = std::byte(random());
      launchEntry(cudaCopy(bytes),
                  std::array{reinterpret_cast<uint64_t>(to.data() + offset), reinterpret_cast<uint64_t>(from.data()),
                             uint64_t(bytes)},
                  1);
      EXPECT_TRUE(std::equal(to.begin() + offset, to.begin() + offset + bytes, from.begin()));
    }
}

} // namespace

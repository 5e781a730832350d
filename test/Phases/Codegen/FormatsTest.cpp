// bf16 and f16 in kernels: every value of either widens exactly, and f32 rounds to nearest even, as APFloat does.
#include "LoadedKernels.h"

#include "llvm/ADT/APFloat.h"

#include <cstring>
#include <random>
#include <vector>

namespace {

struct Format {
  const char *name;
  const llvm::fltSemantics &(*semantics)();
};

std::string kernelText(int count, const std::string &from, const std::string &to) {
  std::string in = "tensor<" + std::to_string(count) + "x" + from + ">",
              out = "tensor<" + std::to_string(count) + "x" + to + ">";
  return "par.kernel @k(%a: " + in + ") -> " + out +
         " attributes {implementation = \"generated\"} {\n  %0 = par.convert %a : " + in + " to " + out +
         "\n  par.return %0 : " + out + "\n}\n";
}

template <typename To, typename From>
std::vector<To> convert(const std::vector<From> &in, const char *from, const char *to, const char *isa) {
  LoadedKernels loaded(kernelText(int(in.size()), from, to), isa);
  std::vector<To> out(in.size());
  if (!loaded.handle) {
    ADD_FAILURE() << "no kernel from " << from << " to " << to;
    return out;
  }
  void *pointers[] = {const_cast<From *>(in.data()), out.data()};
  const par::KernelInfo &info = loaded.compiled.kernels[0];
  loaded.function(info)(pointers, nullptr, 0, info.tiles);
  return out;
}

class FormatsTest : public testing::TestWithParam<std::tuple<Format, const char *>> {};

TEST_P(FormatsTest, WidensExactly) {
  auto [format, isa] = GetParam();
  std::vector<uint16_t> in(1 << 16);
  for (uint32_t i = 0; i < in.size(); ++i)
    in[i] = uint16_t(i);
  std::vector<float> out = convert<float>(in, format.name, "f32", isa);
  for (uint32_t i = 0; i < in.size(); ++i) {
    llvm::APFloat want(format.semantics(), llvm::APInt(16, i));
    if (want.isNaN()) {
      EXPECT_NE(out[i], out[i]) << i;
      continue;
    }
    uint32_t bits;
    std::memcpy(&bits, &out[i], 4);
    bool loses;
    want.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &loses);
    ASSERT_EQ(bits, want.bitcastToAPInt().getZExtValue()) << i;
  }
}

TEST_P(FormatsTest, RoundsToNearestEven) {
  auto [format, isa] = GetParam();
  std::mt19937 random(1);
  std::vector<uint32_t> in;
  // Every narrow value, half-way to the next one, and a bit more and less; and any bits at all.
  for (uint32_t i = 0; i < 1 << 16; ++i) {
    llvm::APFloat value(format.semantics(), llvm::APInt(16, i));
    bool loses;
    value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &loses);
    auto bits = uint32_t(value.bitcastToAPInt().getZExtValue());
    uint32_t half = std::string(format.name) == "bf16" ? 1u << 15 : 1u << 12;
    for (uint32_t offset : {0u, half - 1, half, half + 1, uint32_t(random())})
      in.push_back(bits + offset);
  }
  std::vector<uint16_t> out = convert<uint16_t>(in, "f32", format.name, isa);
  for (size_t i = 0; i < in.size(); ++i) {
    llvm::APFloat want(llvm::APFloat::IEEEsingle(), llvm::APInt(32, in[i]));
    bool loses;
    want.convert(format.semantics(), llvm::APFloat::rmNearestTiesToEven, &loses);
    llvm::APFloat got(format.semantics(), llvm::APInt(16, out[i]));
    if (want.isNaN())
      ASSERT_TRUE(got.isNaN()) << std::hex << in[i];
    else
      ASSERT_EQ(out[i], want.bitcastToAPInt().getZExtValue()) << std::hex << in[i];
  }
}

// Also without the processor's own conversions.
INSTANTIATE_TEST_SUITE_P(Codegen, FormatsTest,
                         testing::Combine(testing::Values(Format{"bf16", llvm::APFloat::BFloat},
                                                          Format{"f16", llvm::APFloat::IEEEhalf}),
                                          testing::Values("", "x86-64")),
                         [](const auto &info) {
                           return std::string(std::get<0>(info.param).name) +
                                  (*std::get<1>(info.param) ? "Baseline" : "Native");
                         });

} // namespace

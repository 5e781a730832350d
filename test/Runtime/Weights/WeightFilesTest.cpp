// Files of weights whose names or types are not quite the bundle's are taken where that is certain, and a
// line says so.
#include "../App/ToolFixture.h"

#include "par/files/Convert.h"
#include "par/format/Sha256.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <random>

using namespace par;
using core::DType;

namespace {

class WeightFiles : public Tool {
protected:
  /// [8, 8] arrays of these names, each full of `value`.
  std::string file(const std::vector<std::string> &names, DType type = DType::F32, double value = 1) {
    std::string path = folder / "w.safetensors";
    std::vector<core::ArrayHeader> headers;
    for (const std::string &name : names)
      headers.push_back({name, type, {8, 8}});
    core::SafetensorsWriter writer(path, headers, true);
    std::vector<double> values(64, value);
    std::vector<std::byte> bytes(64 * format::sizeOf(type));
    core::convertElements(bytes.data(), type, reinterpret_cast<std::byte *>(values.data()), DType::F64, 64);
    for (size_t i = 0; i < names.size(); ++i)
      writer.write(i, 0, bytes);
    return path;
  }

  /// A bundle whose parameter has this name.
  std::string bundle(const std::string &name) {
    format::Bundle toy = toy::training(1);
    toy.manifest.tensors[0].name = name;
    for (format::Buffer &buffer : toy.programs[0].buffers)
      if (buffer.tensor == "w")
        buffer.tensor = name;
    return write(toy);
  }

  /// The loss of the bundle with the file, the sum of squares; 0 where that fails.
  double loss(const std::string &bundle, const std::string &weights) {
    run({bundle, "--eval", "--text", folder / "text", "--weights", weights});
    size_t at = out.find("loss ");
    return at == std::string::npos ? 0 : std::stod(out.substr(at + 5));
  }
};

TEST_F(WeightFiles, withPrefixesOfWrappers) {
  struct {
    std::string inFile, inBundle, says;
  } cases[] = {
      {"module.w", "w", "without their \"module.\""},
      {"module._orig_mod.w", "w", "without their \"module._orig_mod.\""},
      {"_orig_mod.w", "model.w", "without their \"_orig_mod.\" and with \"model.\" before them"},
      {"w", "model.w", "with \"model.\" before them"},
      {"model.w", "w", "without their \"model.\""},
  };
  for (const auto &[inFile, inBundle, says] : cases) {
    EXPECT_EQ(loss(bundle(inBundle), file({inFile})), 64) << inFile << " as " << inBundle << ": " << err;
    std::string line = "w.safetensors: note: its names are taken " + says + ", as the bundle has them\n";
    size_t at = out.find(line);
    EXPECT_NE(at, std::string::npos) << out;
    EXPECT_EQ(out.find("its names are taken", at + line.size()), std::string::npos) << "it is said once";
  }
  EXPECT_EQ(loss(bundle("model.w"), file({"model.w"})), 64) << err;
  EXPECT_EQ(out.find("its names are taken"), std::string::npos) << out;
}

// One rank compares the model file beside loading: another one is told of before any mistake that loading finds in it.
TEST_F(WeightFiles, ofAModelThatIsComparedBesideLoading) {
  std::string model(512, '\0');
  auto hold = [&](double value) {
    for (size_t at = 0; at < model.size(); at += sizeof value)
      std::memcpy(&model[at], &value, sizeof value);
    std::ofstream(folder / "squares.onnx") << model;
  };
  hold(1);
  format::Bundle toy = toy::training(1);
  toy.manifest.model.size = model.size();
  toy.manifest.model.sha256 = format::sha256(model);
  toy.manifest.tensors[0].source = format::Source{"squares.onnx", 0, model.size(), DType::F64};
  std::string path = write(toy);
  EXPECT_EQ(run({path, "--eval", "--text", folder / "text"}), 0) << err;
  EXPECT_NE(out.find("loss 64"), std::string::npos) << out;
  for (double changed : {2.0, 1e300}) {
    hold(changed);
    EXPECT_EQ(run({path, "--eval", "--text", folder / "text"}), 1);
    expectSays("squares.onnx is not the file that was compiled (other content); give --weights FILE, or --init");
    EXPECT_EQ(run({path, "--eval", "--text", folder / "text", "--dry-run"}), 1);
    expectSays("squares.onnx is not the file that was compiled (other content); give --weights FILE, or --init");
  }
}

// A prefix is that of all names or of none, one of wrappers, and leads to one reading.
TEST_F(WeightFiles, withPrefixesThatAreNotCertain) {
  EXPECT_EQ(loss(bundle("w"), file({"module.w", "head"})), 0);
  expectSays("w.safetensors: error: holds no \"w\"; 0 of 1 tensors are there\n");
  EXPECT_EQ(loss(bundle("w"), file({"bert.w"})), 0);
  expectSays("w.safetensors: error: holds no \"w\"; 0 of 1 tensors are there\n  note: 1 of its names are the "
             "bundle's without "
             "their \"bert.\": rename them if they are the same weights\n");
  EXPECT_EQ(loss(bundle("encoder.w"), file({"decoder.w"})), 0) << "another part of a model";
  EXPECT_EQ(loss(bundle("w"), file({"w", "module.w"})), 64) << err;
  format::Manifest manifest;
  for (const char *name : {"a", "model.model.a"}) {
    manifest.tensors.emplace_back();
    manifest.tensors.back().name = name;
  }
  core::WeightStore store;
  store.place = "w.safetensors";
  store.arrays["model.a"] = {};
  std::string said;
  try {
    said = store.renameFor(manifest);
  } catch (const core::Failure &failure) {
    said = failure.what();
  }
  EXPECT_EQ(said, "w.safetensors: note: its names are taken without their \"model.\", as the bundle has them")
      << "not all of the bundle's names have the prefix, so that only one reading is left";
}

TEST_F(WeightFiles, thatFitInTwoWaysAreRefused) {
  format::Manifest manifest;
  for (const char *name : {"model.a", "model.module.b"}) {
    manifest.tensors.emplace_back();
    manifest.tensors.back().name = name;
  }
  core::WeightStore store;
  store.place = "w.safetensors";
  store.arrays["module.b"] = {}; // model.module.b as it is, or model.b without its wrapper
  EXPECT_NE(store.renameFor(manifest), "");
  store.arrays.clear();
  store.arrays["module.a"] = {};
  manifest.tensors[1].name = "model.module.a";
  try {
    store.renameFor(manifest);
    FAIL();
  } catch (const core::Failure &failure) {
    EXPECT_STREQ(failure.what(),
                 "w.safetensors: error: its names are the bundle's in two ways, with \"model.\" before them or "
                 "without their \"module.\" and with \"model.\" before them; rename them");
  }
}

TEST_F(WeightFiles, ofOtherFloatTypes) {
  std::string w = bundle("w");
  for (auto [type, name, how] : {std::tuple(DType::BF16, "bf16", "converted exactly"),
                                 {DType::F16, "f16", "converted exactly"},
                                 {DType::F64, "f64", "rounded"}}) {
    EXPECT_EQ(loss(w, file({"w"}, type, 1.5)), 144) << name << err;
    EXPECT_NE(
        out.find(std::string("w.safetensors: note: \"w\" is ") + name + " there and f32 in the bundle: " + how + "\n"),
        std::string::npos)
        << out;
  }
  EXPECT_EQ(loss(w, file({"w"}, DType::F64, 1e300)), 0);
  expectSays("w.safetensors: error: \"w\" holds 1e+300, which is beyond the bundle's f32");
  EXPECT_EQ(loss(w, file({"w"}, DType::F64, INFINITY)), INFINITY) << "that is no number to lose";
}

/// The two nearest values of a type around a double are no nearer than the one that was chosen, and of equal
/// ones it is even.
void expectNearest(double value, DType type) {
  uint16_t bits = 0;
  auto *to = reinterpret_cast<std::byte *>(&bits);
  core::convertElements(to, type, reinterpret_cast<const std::byte *>(&value), DType::F64, 1);
  double chosen = core::floatAt(type, to, 0);
  for (int step : {-1, 1}) {
    auto beside = static_cast<uint16_t>(bits + step);
    double other = core::floatAt(type, reinterpret_cast<const std::byte *>(&beside), 0);
    if (!std::isfinite(other) || !std::isfinite(chosen))
      continue;
    EXPECT_LE(std::fabs(chosen - value), std::fabs(other - value)) << value;
    if (std::fabs(chosen - value) == std::fabs(other - value) && other != chosen) {
      EXPECT_EQ(bits % 2, 0) << value;
    }
  }
}

TEST(Convert, roundsOnceAndToNearest) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> mantissa(1, 2);
  for (int i = 0; i < 20'000; ++i) {
    double value = std::ldexp(mantissa(random), static_cast<int>(random() % 40) - 26) * (i % 2 ? -1 : 1);
    expectNearest(value, DType::F16);
    expectNearest(value, DType::BF16);
  }
  // A tie of bf16 and a bit that only a double holds: rounded by way of f32 it would be even, and smaller.
  expectNearest(1 + 0x1p-8 + 0x1p-40, DType::BF16);
  expectNearest(1 + 0x1p-11 + 0x1p-40, DType::F16);
  expectNearest(1 + 0x1p-8, DType::BF16);
}

TEST(Convert, widensWhatKeepsItsValue) {
  using enum DType;
  for (auto [from, to] :
       {std::pair(I1, F32), {I1, I64}, {I1, U8}, {U8, I16}, {U32, I64}, {I8, I64}, {F16, F32}, {BF16, F64}})
    EXPECT_TRUE(core::widens(from, to)) << int(from) << int(to);
  for (auto [from, to] :
       {std::pair(I64, F32), {U8, F32}, {F64, F32}, {I32, U64}, {U32, I32}, {F32, I64}, {I64, I1}, {F16, BF16}})
    EXPECT_FALSE(core::widens(from, to)) << int(from) << int(to);
  // Any nonzero byte of a boolean is true.
  uint8_t truths[] = {0, 1, 255};
  float floats[3];
  core::widen(I1, reinterpret_cast<std::byte *>(truths), F32, reinterpret_cast<std::byte *>(floats), 3);
  EXPECT_EQ(floats[0] + 2 * floats[1] + 4 * floats[2], 6);
  int8_t small = -5;
  int64_t wide = 0;
  core::widen(I8, reinterpret_cast<std::byte *>(&small), I64, reinterpret_cast<std::byte *>(&wide), 1);
  EXPECT_EQ(wide, -5);
}

} // namespace

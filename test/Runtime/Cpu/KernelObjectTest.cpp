// A kernel object is loaded if it is nothing but code, and refused before it is loaded otherwise.
#include "par/cpu/KernelObject.h"
#include "TemporaryFolder.h"
#include "TrainingToy.h"
#include "par/cpu/LocalSteps.h"
#include "par/cpu/ThreadPool.h"
#include "par/messages/Failure.h"

#include <fstream>
#include <gtest/gtest.h>

using namespace par;

namespace {

std::string object(const std::string &name) { return std::string(PAR_TEST_KERNELS) + "/" + name + ".so"; }

std::string contentOf(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

cpu::KernelObject load(const std::string &path) { return {path, contentOf(path)}; }

std::string failureOf(const std::string &path) {
  try {
    cpu::checkKernelObject(path, contentOf(path));
    return "no failure";
  } catch (const core::Failure &failure) {
    return std::string(failure.what()).substr(path.size());
  }
}

TEST(KernelObject, runsItsKernelOnAnyNumberOfThreads) {
  cpu::KernelObject kernels = load(object("good"));
  kernels::KernelFunction scale = kernels.function("scale", "k0");
  std::vector<float> in(1000), expected(1000);
  for (size_t i = 0; i < in.size(); ++i) {
    in[i] = static_cast<float>(i);
    expected[i] = 3 * in[i];
  }
  uint64_t three = 3;
  for (int threads : {1, 2, 4}) {
    cpu::ThreadPool pool(threads);
    for (int turn = 0; turn < 50; ++turn) {
      std::vector<float> out(1000);
      void *operands[] = {in.data(), out.data()};
      pool.run(scale, operands, &three, 1000);
      ASSERT_EQ(out, expected);
    }
  }
}

TEST(KernelObject, refusesWhatIsMoreThanCode) {
  std::string tail = "; a kernel object has no dependency, no undefined symbol and no initialiser";
  EXPECT_EQ(failureOf(object("good")), "no failure");
  EXPECT_EQ(failureOf(object("undefined")), ": error: has an undefined symbol" + tail);
  EXPECT_EQ(failureOf(object("initialiser")), ": error: has an initialiser (DT_INIT or DT_FINI)" + tail);
  EXPECT_EQ(failureOf(object("resolver")), ": error: has a resolver function (IFUNC)" + tail);
  EXPECT_EQ(failureOf("/proc/self/exe"), ": error: has a dependency (DT_NEEDED)" + tail);
  TemporaryFolder folder;
  std::string text = folder / "text.so";
  std::ofstream(text) << "not a program";
  EXPECT_EQ(failureOf(text), ": error: is not an ELF shared object for x86-64");
}

// Every prefix of a good object is refused or accepted, never read past its end.
TEST(KernelObject, survivesTornFiles) {
  std::string whole = contentOf(object("good"));
  TemporaryFolder folder;
  for (size_t length = 0; length < whole.size(); length += 37) {
    std::string path = folder / "torn.so";
    std::ofstream(path, std::ios::binary) << whole.substr(0, length);
    failureOf(path);
  }
}

// Two objects of one name at once are two.
TEST(KernelObject, isItsOwn) {
  cpu::KernelObject kernels = load(object("good")), other = load(object("good"));
  kernels::KernelFunction scale = kernels.function("scale", "k0");
  EXPECT_NE(scale, other.function("scale", "k0"));
  float in = 4, out = 0;
  uint64_t three = 3;
  void *operands[] = {&in, &out};
  scale(operands, &three, 0, 1);
  EXPECT_EQ(out, 12);
}

// The code that runs is the hashed code, even if another file took its place after the bundle was read.
TEST(KernelObject, isTheOneThatTheManifestLists) {
  TemporaryFolder folder;
  format::Bundle bundle = toy::training();
  bundle.programs[0].kernels[0].builtin = false;
  bundle.blobs = {{"kernels-x86.so", contentOf(object("good"))}};
  std::string name = folder / "toy.par", path = name + "/kernels-x86.so";
  ASSERT_TRUE(format::writeBundle(name, bundle));
  auto read = format::readBundle(name);
  ASSERT_TRUE(read) << read.message();
  auto made = [&] {
    try {
      core::DeviceOptions options{&*read, name};
      cpu::LocalSteps steps(options, {});
    } catch (const core::Failure &failure) {
      return std::string(failure.what());
    }
    return std::string("well");
  };
  EXPECT_EQ(made(), path + ": error: kernel \"sum_squares\" is not in the kernel object: no symbol sum_squares")
      << "it is loaded";
  std::filesystem::resize_file(path, 100);
  EXPECT_EQ(made(), path + ": error: 100 bytes, the manifest says " + std::to_string(bundle.blobs[0].bytes.size()));
  std::string other = contentOf(object("initialiser"));
  other.resize(bundle.blobs[0].bytes.size());
  std::ofstream(path, std::ios::binary) << other;
  EXPECT_EQ(made(), path + ": error: its SHA-256 is not that of the manifest");
  std::erase_if(read->manifest.files, [](const format::File &file) { return file.name == "kernels-x86.so"; });
  EXPECT_EQ(made(), path + ": error: is not in the manifest's list of files, so its content is not known");
}

TEST(KernelObject, namesAMissingKernel) {
  cpu::KernelObject kernels = load(object("good"));
  try {
    kernels.function("absent", "k7");
    FAIL();
  } catch (const core::Failure &failure) {
    EXPECT_EQ(failure.what(), object("good") + ": error: kernel \"k7\" is not in the kernel object: no symbol absent");
  }
  try {
    cpu::KernelObject().function("scale", "k7");
    FAIL();
  } catch (const core::Failure &failure) {
    EXPECT_NE(std::string(failure.what()).find("is not in the kernel object: there is no kernel object"),
              std::string::npos)
        << failure.what();
  }
}

} // namespace

// The ONNX reader: what it keeps, and that no bytes break it.
#include "par/Onnx/Model.h"

#include "gtest/gtest.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <zlib.h>

using namespace par;
namespace fs = std::filesystem;

namespace {

const std::string models = PAR_SOURCE_DIR "/test/Models/";

std::string slurp(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A folder that goes away with the test.
struct ReaderTest : testing::Test {
  fs::path folder = fs::temp_directory_path() / ("par-onnx-" + std::to_string(::getpid()));
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }

  std::string write(const std::string &name, const std::string &bytes) {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    return (folder / name).string();
  }
  std::string errorOf(const std::string &path) {
    std::string error;
    EXPECT_FALSE(onnx::readModel(path, error).has_value());
    return error;
  }
};

// Encoded by hand, for files that no exporter would write.
std::string varint(uint64_t value) {
  std::string bytes;
  for (; value > 127; value >>= 7)
    bytes += char(value | 128);
  return bytes + char(value);
}
std::string number(int field, uint64_t value) { return varint(field << 3) + varint(value); }
std::string bytesField(int field, const std::string &bytes) {
  return varint(field << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string entry(const std::string &key, const std::string &value) {
  return bytesField(13, bytesField(1, key) + bytesField(2, value));
}
std::string model(const std::string &graph, int64_t ir = 10, int64_t opset = 20) {
  return number(1, ir) + bytesField(8, number(2, opset)) + bytesField(7, graph);
}
std::string external(const std::string &location, const std::string &more = "") {
  return model(bytesField(5, number(1, 4) + number(2, 1) + bytesField(8, "w") + entry("location", location) + more +
                                 number(14, 1)));
}

TEST_F(ReaderTest, KnowsWhereWeightsLieInTheFile) {
  std::string error;
  auto gpt2 = onnx::readModel(models + "gpt2/model.onnx", error);
  ASSERT_TRUE(gpt2) << error;
  EXPECT_EQ(gpt2->opset, 20);
  EXPECT_EQ(gpt2->nodes.size(), 651u);
  ASSERT_EQ(gpt2->initializers.size(), 52u);
  std::string file = slurp(models + "gpt2/model.onnx");
  for (const onnx::Tensor &tensor : gpt2->initializers) {
    ASSERT_EQ(tensor.storage, onnx::Storage::InModel) << tensor.name;
    auto bytes = onnx::readTensor(*gpt2, tensor, error);
    ASSERT_TRUE(bytes) << error;
    EXPECT_EQ(*bytes, file.substr(tensor.offset, tensor.length));
  }
  EXPECT_EQ(gpt2->signature.size(), 57u);
}

TEST_F(ReaderTest, ReadsWhatTheExporterSaysOfANode) {
  std::string error;
  auto gpt2 = onnx::readModel(models + "gpt2/model.onnx", error);
  ASSERT_TRUE(gpt2) << error;
  for (const onnx::Node &node : gpt2->nodes)
    if (node.name == "node_addmm_2") {
      EXPECT_EQ(node.modulePath, "model.transformer.h.0.mlp.c_fc");
      EXPECT_EQ(node.sourceFile, "pytorch_utils.py");
      EXPECT_EQ(node.sourceLine, 119);
      EXPECT_EQ(node.floatAttribute("alpha", 0), 1.0);
      return;
    }
  FAIL() << "node_addmm_2 is missing";
}

TEST_F(ReaderTest, ReadsGzipAndRefusesDamagedGzip) {
  std::string plain = slurp(models + "mlp/model.onnx"), path = (folder / "m.onnx.gz").string(), error;
  gzFile out = gzopen(path.c_str(), "wb");
  gzwrite(out, plain.data(), plain.size());
  gzclose(out);
  auto mlp = onnx::readModel(path, error);
  ASSERT_TRUE(mlp) << error;
  EXPECT_TRUE(mlp->compressed);
  EXPECT_EQ(mlp->nodes.size(), 6u);
  fs::resize_file(path, fs::file_size(path) / 2);
  EXPECT_EQ(errorOf(path), "is a damaged gzip file");
}

TEST_F(ReaderTest, RefusesWhatIsNoModel) {
  EXPECT_EQ(errorOf((folder / "absent.onnx").string()), "cannot be opened: No such file or directory");
  EXPECT_EQ(errorOf(write("empty.onnx", "")), "is empty");
  EXPECT_EQ(errorOf(write("text.onnx", "this is no model")), "is not an ONNX model");
  std::string whole = model("", 10);
  EXPECT_EQ(errorOf(write("part.onnx", whole.substr(0, whole.size() - 1))),
            "is cut short: it begins as an ONNX model and ends within it; copy or export it again");
  EXPECT_EQ(errorOf(folder.string()), "cannot be opened: a folder, not a plain file");
  EXPECT_EQ(errorOf(write("ir.onnx", model("", 99))), "has IR version 99, this par-compile reads 3 to 13");
  EXPECT_EQ(errorOf(write("opset.onnx", model("", 10, 99))), "has opset 99 of ai.onnx, this par-compile reads 1 to 27");
}

TEST_F(ReaderTest, RefusesTwoGiBBeforeParsing) {
  std::string path = write("big.onnx", "x");
  fs::resize_file(path, uint64_t(1) << 31); // sparse: takes no room
  EXPECT_EQ(errorOf(path), "is 2147483648 bytes; a model file holds less than 2 GiB: export it with external data");
}

// The same for what a gzip file holds; a small limit stands for the 2 GiB.
TEST_F(ReaderTest, RefusesToInflateBeyondTheLimit) {
  std::string path = (folder / "zeros.gz").string(), zeros(5000, 0), error;
  gzFile out = gzopen(path.c_str(), "wb");
  gzwrite(out, zeros.data(), zeros.size());
  gzclose(out);
  EXPECT_FALSE(onnx::readModel(path, error, 5001));
  EXPECT_EQ(error, "is not an ONNX model");
  EXPECT_FALSE(onnx::readModel(path, error, 5000));
  EXPECT_EQ(error, "inflates to 5000 bytes or more; a model file holds less: export it with external data");
}

// Files of the kernel say another size than they have, and cannot be mapped.
TEST_F(ReaderTest, SaysWhatTheSystemRefuses) {
  const std::string odd = "/sys/devices/system/cpu/online";
  if (!fs::exists(odd))
    GTEST_SKIP() << odd << " is missing";
  EXPECT_EQ(errorOf(odd), "cannot be opened: No such device");
  std::string error;
  onnx::Model model;
  model.path = "/sys/devices/system/cpu/model.onnx";
  onnx::Tensor tensor;
  tensor.storage = onnx::Storage::External;
  tensor.file = "online";
  tensor.length = fs::file_size(odd);
  EXPECT_FALSE(onnx::readTensor(model, tensor, error));
  EXPECT_EQ(error, "external data \"online\" became shorter while it was read: it had " +
                       std::to_string(fs::file_size(odd)) + " bytes");
}

TEST_F(ReaderTest, ExternalDataStaysInTheFolder) {
  EXPECT_EQ(errorOf(write("up.onnx", external("../w.bin"))),
            "external data \"../w.bin\" is outside the model's folder");
  EXPECT_EQ(errorOf(write("in.onnx", external("a/../../w.bin"))),
            "external data \"a/../../w.bin\" is outside the model's folder");
  EXPECT_EQ(errorOf(write("abs.onnx", external("/etc/passwd"))),
            "external data \"/etc/passwd\" is outside the model's folder");
  EXPECT_EQ(errorOf(write("no.onnx", external(""))), "external data has no file name");
  for (auto [location, said] : {std::pair{"d\n.bin", "d?.bin"}, {"\x1b[31m", "?[31m"}, {"..\\d.bin", "..\\d.bin"}})
    EXPECT_EQ(errorOf(write("odd.onnx", external(location))),
              std::string("external data of \"w\" are in \"") + said +
                  "\"; the name of a file holds no backslash and no control character");
  fs::create_symlink("/etc/passwd", folder / "link.bin");
  EXPECT_EQ(errorOf(write("link.onnx", external("link.bin"))),
            "external data \"link.bin\" is a link out of the model's folder");
}

TEST_F(ReaderTest, ExternalDataIsReadOrAbsent) {
  std::string error, path = write("m.onnx", external("w.bin", entry("offset", "4")));
  auto absent = onnx::readModel(path, error);
  ASSERT_TRUE(absent) << error;
  EXPECT_EQ(absent->initializers[0].storage, onnx::Storage::Absent);
  EXPECT_FALSE(onnx::readTensor(*absent, absent->initializers[0], error));
  EXPECT_EQ(error, "the data of \"w\" is absent (\"w.bin\")");
  write("w.bin", std::string(20, 'a'));
  auto present = onnx::readModel(path, error);
  ASSERT_TRUE(present) << error;
  EXPECT_EQ(onnx::readTensor(*present, present->initializers[0], error), std::string(16, 'a'));
  write("w.bin", std::string(19, 'a'));
  EXPECT_FALSE(onnx::readTensor(*present, present->initializers[0], error)); // cut off since it was opened
  EXPECT_EQ(error, "external data \"w.bin\" has 19 bytes, wanted 16 at 4");
  EXPECT_EQ(errorOf(path), "external data of \"w\" ends at 20, \"w.bin\" has 19 bytes");
  EXPECT_EQ(errorOf(write("n.onnx", external("w.bin", entry("offset", "-1")))),
            "external data of \"w\" has the offset or length \"-1\"");
  EXPECT_EQ(errorOf(write("l.onnx", external("w.bin", entry("length", "12")))),
            "external data of \"w\" is 12 bytes, its shape takes 16");
}

TEST_F(ReaderTest, SizesMustAgree) {
  std::string tensor = number(1, 3) + number(2, 1) + bytesField(8, "w") + bytesField(9, std::string(8, 'a'));
  EXPECT_EQ(errorOf(write("short.onnx", model(bytesField(5, tensor)))),
            "tensor \"w\" holds 8 bytes, its shape takes 12");
  tensor = number(1, uint64_t(-1)) + number(2, 1) + bytesField(8, "w");
  EXPECT_EQ(errorOf(write("negative.onnx", model(bytesField(5, tensor)))), "tensor \"w\" has the negative dim -1");
  tensor = number(1, uint64_t(-1)) + number(2, 8) + bytesField(8, "w"); // of strings, which nothing reads
  EXPECT_EQ(errorOf(write("words.onnx", model(bytesField(5, tensor)))), "tensor \"w\" has the negative dim -1");
  tensor = number(1, uint64_t(1) << 40) + number(1, uint64_t(1) << 40) + number(2, 1) + bytesField(8, "w");
  EXPECT_EQ(errorOf(write("huge.onnx", model(bytesField(5, tensor)))), "tensor \"w\" is larger than any memory");
  // An input of 100,000 dims kept the compiler busy for minutes.
  tensor = number(2, 1) + bytesField(8, "w");
  std::string dims;
  for (int i = 0; i < 65; ++i) {
    tensor += number(1, 1);
    dims += bytesField(1, number(1, 1));
  }
  EXPECT_EQ(errorOf(write("rank.onnx", model(bytesField(5, tensor)))), "tensor \"w\" has 65 dims, at most 64 are read");
  std::string input = bytesField(1, "x") + bytesField(2, bytesField(1, number(1, 1) + bytesField(2, dims)));
  EXPECT_EQ(errorOf(write("deep.onnx", model(bytesField(11, input)))), "value \"x\" has 65 dims, at most 64 are read");
}

TEST_F(ReaderTest, RefusesSegmentsAndSparseTensors) {
  std::string tensor = number(1, 2) + number(2, 1) + bytesField(3, number(1, 0) + number(2, 2)) + bytesField(8, "w");
  EXPECT_EQ(errorOf(write("segment.onnx", model(bytesField(5, tensor)))),
            "tensor \"w\" is stored in segments, which is not supported");
  EXPECT_EQ(errorOf(write("sparse.onnx", model(bytesField(15, "")))),
            "has sparse initializers, which are not supported");
}

TEST_F(ReaderTest, PackedFloatsLieInOnePiece) {
  float values[] = {1, 2};
  std::string packed(reinterpret_cast<const char *>(values), 8), error;
  std::string tensor = number(1, 2) + number(2, 1) + bytesField(8, "w") + bytesField(4, packed);
  auto read = onnx::readModel(write("packed.onnx", model(bytesField(5, tensor))), error);
  ASSERT_TRUE(read) << error;
  EXPECT_EQ(read->initializers[0].storage, onnx::Storage::InModel);
  EXPECT_EQ(onnx::readTensor(*read, read->initializers[0], error), packed);
}

// Flips, cuts and repeats of real files: an error or a model, never a crash.
TEST_F(ReaderTest, SurvivesMutations) {
  std::mt19937 random(20240117);
  unsigned accepted = 0;
  for (const char *name : {"mlp/model.onnx", "mlp/model.legacy.onnx"}) {
    std::string original = slurp(models + name);
    for (unsigned trial = 0; trial < 400; ++trial) {
      std::string bytes = original;
      for (unsigned i = 0, flips = 1 + random() % 8; i < flips; ++i)
        bytes[random() % bytes.size()] = char(random());
      if (trial % 4 == 1)
        bytes.resize(random() % bytes.size());
      if (trial % 4 == 2)
        bytes.insert(random() % bytes.size(), bytes.substr(random() % bytes.size(), random() % 100));
      std::string error;
      auto read = onnx::readModel(write("mutant.onnx", bytes), error);
      EXPECT_NE(read.has_value(), !error.empty());
      if (!read)
        continue;
      ++accepted;
      for (const onnx::Tensor &tensor : read->initializers)
        (void)onnx::readTensor(*read, tensor, error);
    }
  }
  EXPECT_GT(accepted, 100u); // weights take most of the bytes, so many flips change nothing else
}

} // namespace

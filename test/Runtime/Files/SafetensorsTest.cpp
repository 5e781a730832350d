// Safetensors files are read back as written, and hostile ones are refused by name.
#include "par/files/Safetensors.h"
#include "../../../runtime/test/TemporaryFolder.h"
#include "par/messages/Failure.h"

#include <cstring>
#include <ctime>
#include <fstream>
#include <gtest/gtest.h>

using namespace par::core;

namespace {

std::string failureOf(const std::string &path) {
  try {
    SafetensorsReader reader(path);
    return "no failure";
  } catch (const Failure &failure) {
    return failure.what();
  }
}

std::string writeFile(const TemporaryFolder &folder, const std::string &header, const std::string &data,
                      int64_t length = -1) {
  std::string path = folder / "a.safetensors";
  std::ofstream out(path, std::ios::binary);
  uint64_t size = length < 0 ? header.size() : static_cast<uint64_t>(length);
  out.write(reinterpret_cast<const char *>(&size), sizeof size);
  out << header << data;
  return path;
}

TEST(Safetensors, writesWhatItReads) {
  TemporaryFolder folder;
  std::string path = folder / "w.safetensors";
  float values[6] = {1, 2, 3, 4, 5, 6};
  int64_t label = 7;
  {
    SafetensorsWriter writer(path, {{"w", DType::F32, {2, 3}}, {"y", DType::I64, {}}}, true, {{"format", "pt"}});
    writer.write(1, 0, std::as_bytes(std::span(&label, 1)));
    writer.write(0, 12, std::as_bytes(std::span(values + 3, 3)));
    writer.write(0, 0, std::as_bytes(std::span(values, 3)));
    writer.sync();
  }
  SafetensorsReader reader(path);
  ASSERT_TRUE(reader.find("w") && reader.find("y"));
  EXPECT_EQ(reader.find("w")->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(reader.find("w")->data.data(), values, sizeof values), 0);
  EXPECT_EQ(std::memcmp(reader.find("y")->data.data(), &label, sizeof label), 0);
  EXPECT_EQ(reader.metadata().at("format"), "pt");
  EXPECT_EQ(reader.find("z"), nullptr);
}

TEST(Safetensors, refusesWhatDoesNotFit) {
  TemporaryFolder folder;
  std::string p = folder / "a.safetensors";
  EXPECT_NE(failureOf(folder / "absent").find("cannot open: No such file"), std::string::npos);
  std::ofstream(p) << "abc";
  EXPECT_EQ(failureOf(p), p + ": error: is 3 bytes, too short for a safetensors file");
  writeFile(folder, "{}", "", 1000);
  EXPECT_EQ(failureOf(p), p + ": error: header of 1000 bytes does not fit into the file of 10");
  writeFile(folder, "[1]", "");
  EXPECT_EQ(failureOf(p), p + ": error: header is not a JSON object");
  writeFile(folder, "{\"w\":", "");
  EXPECT_NE(failureOf(p).find(": error: header: not JSON at byte "), std::string::npos);
  writeFile(folder, R"({"w":{"dtype":"F32"}})", "");
  EXPECT_NE(failureOf(p).find("entry \"w\" of the header needs dtype, shape and data_offsets: "), std::string::npos);
  writeFile(folder, R"({"w":{"dtype":"F7","shape":[1],"data_offsets":[0,4]}})", "abcd");
  EXPECT_EQ(failureOf(p), p + ": error: tensor \"w\" has the type F7, which is not supported");
  writeFile(folder, R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "abcd");
  EXPECT_EQ(failureOf(p), p + ": error: tensor \"w\" says bytes [0, 8) of 4, and its shape needs 8");
  writeFile(folder, R"({"w":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}})", "abcd");
  EXPECT_NE(failureOf(p).find("its shape needs more than can be"), std::string::npos);
  writeFile(folder, R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "abcd");
  EXPECT_NE(failureOf(p).find("its shape needs more than can be"), std::string::npos);
}

// Like huggingface/safetensors: every byte of the data belongs to one tensor, and each name occurs once.
TEST(Safetensors, refusesGapsOverlapsTrailingBytesAndRepeatedNames) {
  TemporaryFolder folder;
  std::string p = folder / "a.safetensors";
  auto entry = [](const std::string &name, int begin, int end) {
    return "\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(end - begin) + "],\"data_offsets\":[" +
           std::to_string(begin) + "," + std::to_string(end) + "]}";
  };
  writeFile(folder, "{" + entry("b", 4, 8) + "," + entry("a", 0, 4) + "," + entry("none", 4, 4) + "}", "abcdefgh");
  EXPECT_EQ(failureOf(p), "no failure") << "the order of the header is free, and so are empty tensors";
  writeFile(folder, "{" + entry("a", 0, 3) + "," + entry("b", 4, 8) + "}", "abcdefgh");
  EXPECT_EQ(failureOf(p), p + ": error: bytes [3, 4) of the data, before \"b\", belong to no tensor");
  writeFile(folder, "{" + entry("a", 0, 5) + "," + entry("b", 4, 8) + "}", "abcdefgh");
  EXPECT_EQ(failureOf(p), p + ": error: tensors \"a\" and \"b\" overlap from byte 4 of the data");
  writeFile(folder, "{" + entry("a", 0, 4) + "}", "abcdefgh");
  EXPECT_EQ(failureOf(p), p + ": error: bytes [4, 8) of the data, after the last tensor, belong to no tensor");
  writeFile(folder, "{" + entry("a", 0, 4) + "," + entry("a", 4, 8) + "}", "abcdefgh");
  EXPECT_EQ(failureOf(p), p + ": error: header: duplicate key 'a'");
  writeFile(folder, R"({"__metadata__":{"format":1}})", "");
  EXPECT_EQ(failureOf(p), p + ": error: __metadata__ of the header: \"format\" is no text");
  writeFile(folder, R"({"__metadata__":[]})", "");
  EXPECT_EQ(failureOf(p), p + ": error: __metadata__ of the header is no object of texts");
}

// The header of a file of many tensors is read and written in a time that grows as it does.
TEST(Safetensors, readsAHundredThousandTensorsAtOnce) {
  TemporaryFolder folder;
  std::string path = folder / "many.safetensors";
  std::vector<ArrayHeader> headers;
  for (int i = 0; i < 100'000; ++i)
    headers.push_back({"layer." + std::to_string(i) + ".weight", DType::F32, {1}});
  std::clock_t began = std::clock(); // of this process: other ones do not count
  SafetensorsWriter(path, headers, true).sync();
  SafetensorsReader reader(path);
  double took = double(std::clock() - began) / CLOCKS_PER_SEC;
  EXPECT_EQ(reader.arrays().size(), headers.size());
  // It takes about one second; a quadratic one half a minute.
  EXPECT_LT(took, 5);
}

} // namespace

// Arrays of numpy's and PyTorch's files are read as their libraries wrote them; hostile ones are refused by name, and
// no byte of any file makes the reader read elsewhere. test/Formats reads what the libraries themselves write.
#include "par/files/ArrayFile.h"

#include "../../../runtime/test/TemporaryFolder.h"
#include "par/files/Random.h"
#include "par/messages/Failure.h"

#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <zlib.h>

using namespace par::core;

namespace {

template <typename Number>
std::string number(Number value) {
  return {reinterpret_cast<const char *>(&value), sizeof value};
}

/// A member of an archive, as it is; of a compressed one also what is said of its unpacked bytes.
struct Member {
  std::string name, bytes;
  uint16_t method = 0;
  uint32_t unpacked = 0, checksum = 0;
};

/// A member that zlib compressed (raw deflate).
Member packed(const std::string &name, const std::string &bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, bytes.size()), '\0'), in = bytes;
  stream.next_in = reinterpret_cast<Bytef *>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef *>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  auto sum = static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size()));
  return {name, out, 8, static_cast<uint32_t>(bytes.size()), sum};
}

/// An archive as numpy and PyTorch write it: members as they are, then the directory.
std::string zip(const std::vector<Member> &members) {
  std::string file, directory;
  for (const auto &[name, bytes, method, unpacked, checksum] : members) {
    auto size = static_cast<uint32_t>(bytes.size()), begin = static_cast<uint32_t>(file.size());
    std::string common = number<uint16_t>(20) + number<uint16_t>(0) + number<uint16_t>(method) + number<uint32_t>(0) +
                         number(checksum) + number(size) + number(method ? unpacked : size) +
                         number(static_cast<uint16_t>(name.size())) + number<uint16_t>(0);
    file += number<uint32_t>(0x04034b50) + common + name + bytes;
    directory +=
        number<uint32_t>(0x02014b50) + number<uint16_t>(20) + common + std::string(10, '\0') + number(begin) + name;
  }
  auto count = static_cast<uint16_t>(members.size());
  return file + directory + number<uint32_t>(0x06054b50) + number<uint32_t>(0) + number(count) + number(count) +
         number(static_cast<uint32_t>(directory.size())) + number(static_cast<uint32_t>(file.size())) +
         number<uint16_t>(0);
}

std::string npy(const std::string &descr, const std::string &shape, const std::string &data,
                const std::string &columns = "False") {
  std::string text = "{'descr': '" + descr + "', 'fortran_order': " + columns + ", 'shape': " + shape + ", }\n";
  return "\x93NUMPY\x01" + std::string(1, '\0') + number(static_cast<uint16_t>(text.size())) + text + data;
}

std::string text(const std::string &word) { return "X" + number(static_cast<uint32_t>(word.size())) + word; }
std::string small(int value) { return "K" + std::string(1, static_cast<char>(value)); }

/// A tensor of f32 over data/0 as torch.save writes one.
std::string tensor(int elements, int offset, const std::string &shape, const std::string &strides) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\nFloatStorage\n" + text("0") +
         text("cpu") + small(elements) + "tQ" + small(offset) + shape + strides + "\x89" +
         "ccollections\nOrderedDict\n)RtR";
}

std::string torchFile(const std::string &value, const std::string &data, const std::string &order = "little") {
  return zip({{"w/data.pkl", "\x80\x02" + value + "."}, {"w/byteorder", order}, {"w/data/0", data}});
}

const std::string four = number(1.0f) + number(2.0f) + number(3.0f) + number(4.0f);

class ArrayFiles : public testing::Test {
protected:
  std::string write(const std::string &name, const std::string &bytes) {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    return folder / name;
  }
  std::string failureOf(const std::string &name, const std::string &bytes) {
    std::string path = write(name, bytes);
    try {
      ArrayFile file(path);
      return "no failure";
    } catch (const Failure &failure) {
      std::string said = failure.what();
      return said.substr(said.find("error: ") + 7);
    }
  }
  static std::vector<float> floatsOf(const ArrayFile &file, const std::string &name) {
    const ArrayView *array = file.find(name);
    if (!array)
      return {};
    std::vector<float> values(array->data.size() / sizeof(float));
    std::memcpy(values.data(), array->data.data(), array->data.size());
    return values;
  }

  TemporaryFolder folder;
};

TEST_F(ArrayFiles, ofNumpy) {
  ArrayFile one(write("x.npy", npy("<f4", "(2, 2)", four)));
  EXPECT_EQ(floatsOf(one, "x"), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(one.find("x")->shape, (std::vector<int64_t>{2, 2}));
  ArrayFile many(write("d.npz", zip({{"x.npy", npy("<f4", "(4,)", four)}, {"n.npy", npy("|b1", "()", "\x01")}})));
  EXPECT_EQ(many.arrays().size(), 2u);
  EXPECT_EQ(many.find("n")->type, DType::I1);
  EXPECT_TRUE(many.find("n")->shape.empty());
  // Columns of one row are rows.
  EXPECT_EQ(floatsOf(ArrayFile(write("c.npy", npy("<f4", "(4, 1)", four, "True"))), "c").size(), 4u);
}

TEST_F(ArrayFiles, ofTorch) {
  ArrayFile file(write(
      "w.pt", torchFile("}(" + text("w") + tensor(4, 0, small(2) + small(2) + "\x86", small(2) + small(1) + "\x86") +
                            text("epoch") + small(3) + text("turned") +
                            tensor(4, 0, small(2) + small(2) + "\x86", small(1) + small(2) + "\x86") + text("part") +
                            tensor(4, 1, small(2) + "\x85", small(1) + "\x85") + text("args") +
                            "cargparse\nNamespace\n)\x81}" + text("lr") + small(1) + "sb" + "u",
                        four)));
  EXPECT_EQ(floatsOf(file, "w"), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(floatsOf(file, "turned"), (std::vector<float>{1, 3, 2, 4})) << "a transposed view is written out";
  EXPECT_EQ(floatsOf(file, "part"), (std::vector<float>{2, 3}));
  EXPECT_EQ(file.arrays().size(), 3u) << "other values, of whatever class, are passed over";
}

TEST_F(ArrayFiles, thatAreRefused) {
  EXPECT_EQ(failureOf("x.npy", "abc"), "array \"x\" is no .npy array: it does not begin as one");
  EXPECT_EQ(failureOf("x.npy", npy(">f4", "(4,)", four)),
            "array \"x\" has the type >f4; numbers and truth values are read, the lowest byte first");
  EXPECT_EQ(failureOf("x.npy", npy("|O", "(4,)", four)),
            "array \"x\" has the type |O; numbers and truth values are read, the lowest byte first");
  EXPECT_EQ(failureOf("x.npy", npy("<f4", "(2, 2)", four, "True")),
            "array \"x\" is in Fortran's order; numpy.ascontiguousarray of it is read");
  EXPECT_EQ(failureOf("x.npy", npy("<f4", "(5,)", four)), "array \"x\" has 16 bytes of data, and its shape needs 20");
  EXPECT_EQ(failureOf("x.npy", npy("<f4", "(4611686018427387904, 4)", four)),
            "array \"x\" has 16 bytes of data, and its shape needs more than can be");
  EXPECT_EQ(failureOf("x.npy", npy("<f4", "(-4,)", four)),
            "array \"x\" has 16 bytes of data, and its shape needs more than can be");
  EXPECT_EQ(
      failureOf("x.npy", npy("<f4", "__import__('os')", four))
          .find("array \"x\" header is not what numpy writes, a dict of descr, fortran_order and shape: {'descr'"),
      0u);
  std::string later = npy("<f4", "(4,)", four);
  later[6] = 4;
  EXPECT_EQ(failureOf("x.npy", later), "array \"x\" is a .npy array of version 4; versions 1 to 3 are read");
  EXPECT_EQ(failureOf("d.npz", "PK"), "is no zip archive, or not whole: it has no directory at its end");
  EXPECT_EQ(failureOf("d.npz", zip({{"x.npy", "a"}, {"x.npy", "b"}})), "has two members \"x.npy\"");
}

TEST_F(ArrayFiles, thatAreCompressed) {
  std::vector<float> values(100'000);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i % 1000);
  std::string bytes(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float));
  ArrayFile file(write("d.npz", zip({packed("x.npy", npy("<f4", "(100000,)", bytes)),
                                     {"y.npy", npy("<f4", "(4,)", four)},
                                     packed("empty.npy", npy("<f4", "(0,)", ""))})));
  EXPECT_EQ(floatsOf(file, "x"), values);
  EXPECT_EQ(floatsOf(file, "y"), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(floatsOf(file, "empty"), std::vector<float>());

  Member whole = packed("x.npy", npy("<f4", "(4,)", four)), changed = whole;
  changed.method = 12;
  EXPECT_EQ(failureOf("d.npz", zip({changed})),
            "array \"x\" is compressed by method 12 of zip, and deflate (8) is read");
  changed = whole;
  changed.unpacked = 0xfffffff0;
  EXPECT_EQ(failureOf("d.npz", zip({changed})), "array \"x\" says that it has 4294967280 bytes, more than its " +
                                                    std::to_string(whole.bytes.size()) + " compressed ones can hold");
  const std::string damaged =
      "array \"x\" is damaged: its compressed bytes are not those that the archive's directory says";
  for (uint32_t more : {whole.unpacked - 1, whole.unpacked + 1, whole.unpacked + 1000, 0u}) {
    changed = whole;
    changed.unpacked = more;
    EXPECT_EQ(failureOf("d.npz", zip({changed})), damaged) << more;
  }
  for (size_t i = 0; i + 1 < whole.bytes.size(); ++i) { // the last byte has bits of no meaning
    changed = whole;
    changed.bytes[i] ^= 0x10;
    EXPECT_EQ(failureOf("d.npz", zip({changed})), damaged) << i;
  }
  for (size_t left = 0; left < whole.bytes.size(); ++left) {
    changed = whole;
    changed.bytes.resize(left);
    EXPECT_EQ(failureOf("d.npz", zip({changed})), damaged) << left;
  }
  changed = whole;
  changed.bytes += '\0';
  EXPECT_EQ(failureOf("d.npz", zip({changed})), damaged);
}

TEST_F(ArrayFiles, ofTorchThatAreRefused) {
  EXPECT_EQ(failureOf("w.pt", "\x80\x02}."),
            "is no archive of PyTorch 1.6 or later; torch.save of what torch.load reads writes one");
  EXPECT_EQ(failureOf("w.pt", zip({{"w/other", "a"}})),
            "is an archive, but none of PyTorch's tensors: it has no data.pkl");
  EXPECT_EQ(failureOf("w.pt", torchFile("}", four, "big")),
            "has its numbers in the byte order \"big\"; those with the lowest byte first are read");
  std::string flat = small(4) + "\x85";
  EXPECT_EQ(failureOf("w.pt", torchFile(tensor(4, 1, flat, small(1) + "\x85"), four)),
            "tensor \"w\" does not lie in its storage of 4 elements");
  EXPECT_EQ(failureOf("w.pt", torchFile(tensor(4, 0, small(200) + "\x85", small(0) + "\x85"), four)),
            "tensor \"w\" does not lie in its storage of 4 elements");
  EXPECT_EQ(failureOf("w.pt", torchFile("}" + text("q") + "ctorch._utils\n_rebuild_qtensor\n)Rs", four)),
            "holds \"q\", a tensor of a kind that is not read (torch._utils._rebuild_qtensor)");
  EXPECT_EQ(failureOf("w.pt", torchFile("i", four)),
            "pickle has at byte 2 the opcode 105, which files of tensors do not have");
  EXPECT_EQ(failureOf("w.pt", torchFile("s", four)), "pickle is broken at byte 2");
  EXPECT_EQ(failureOf("w.pt", zip({{"w/data.pkl", "}"}, {"w/data/0", four}})), "pickle ends before its end");
  // Two transposed views of a storage are written out; of more bytes than the file has, they are none of torch's.
  std::string turned = tensor(4, 0, small(2) + small(2) + "\x86", small(1) + small(2) + "\x86"), many = "}(";
  for (int i = 0; i < 400; ++i)
    many += text(std::to_string(i)) + (i ? "h\x01" : turned + "q\x01");
  EXPECT_EQ(failureOf("w.pt", torchFile(many + "u", four)),
            "holds tensors that share storages, of more bytes than it has");
  std::string pair = "}(" + text("a") + "h\x02" + text("a") + "h\x02" + "u";
  EXPECT_EQ(failureOf("w.pt", torchFile(tensor(4, 0, flat, small(1) + "\x85") + "q\x02" + "0" + pair, four)),
            "holds two arrays \"a\"");
  // A dict that holds itself, and one that holds its like twice, forty times over.
  EXPECT_EQ(failureOf("w.pt", torchFile("}q\x01" + text("a") + "h\x01s", four)),
            "nests dicts and lists deeper than 64 levels");
  std::string doubled = "]";
  for (int i = 0; i < 40; ++i)
    doubled += "q\x01h\x01\x86";
  EXPECT_EQ(failureOf("w.pt", torchFile(doubled, four)), "holds more than 1,000,000 values");
}

/// A command in a pickle is a value of no meaning.
TEST_F(ArrayFiles, runNothing) {
  std::string mark = folder / "mark";
  std::string path = write("w.pt", torchFile("cposix\nsystem\n(" + text("touch " + mark) + "tR", four));
  EXPECT_TRUE(ArrayFile(path).arrays().empty());
  EXPECT_FALSE(std::ifstream(mark).good());
}

/// Whatever bytes change, the arrays of a file that is still read lie in it.
TEST_F(ArrayFiles, withBytesChanged) {
  std::string shape = small(2) + small(2) + "\x86";
  std::pair<std::string, std::string> files[] = {
      {"x.npy", npy("<f4", "(2, 2)", four)},
      {"d.npz", zip({{"x.npy", npy("<f4", "(2, 2)", four)}, {"y.npy", npy("<i8", "(2,)", four)}})},
      {"packed.npz", zip({packed("x.npy", npy("<f4", "(2, 2)", four)), {"y.npy", npy("<i8", "(2,)", four)}})},
      {"w.pt", torchFile("}(" + text("w") + tensor(4, 0, shape, small(1) + small(2) + "\x86") + text("b") +
                             tensor(4, 2, small(2) + "\x85", small(1) + "\x85") + "u",
                         four)}};
  size_t refused = 0, read = 0;
  for (const auto &[name, whole] : files)
    for (uint32_t round = 0; round < 2000; ++round) {
      std::string bytes = whole;
      auto words = randomWords(7, round, 1, 0);
      for (size_t i = 0; i < 1 + words[0] % 3; ++i)
        bytes[words[i + 1] % bytes.size()] = static_cast<char>(words[i + 1] >> 24);
      if (words[0] % 16 == 0)
        bytes.resize(words[1] % bytes.size());
      try {
        ArrayFile file(write(name, bytes));
        ++read;
        for (const auto &[key, array] : file.arrays()) {
          unsigned sum = 0;
          for (std::byte byte : array.data)
            sum += std::to_integer<unsigned>(byte);
          EXPECT_LE(sum, 255 * array.data.size());
          EXPECT_LE(array.data.size(), bytes.size());
        }
      } catch (const Failure &) {
        ++refused;
      }
    }
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(read, 1000u);
}

} // namespace

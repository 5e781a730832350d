// A save is never taken for what it is not: whatever of it is of another run, step, width or content is refused by a
// sentence that names the file, and the tensor with both shapes.
#include "ToolFixture.h"

#include "par/core/Checksum.h"

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

using namespace par;
namespace fs = std::filesystem;

namespace {

std::string fileText(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void writeFile(const std::string &path, const std::string &text) { std::ofstream(path, std::ios::binary) << text; }

/// Replaces the first `from` of a file.
void edit(const std::string &path, const std::string &from, const std::string &to) {
  std::string text = fileText(path);
  size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from << " in " << text;
  writeFile(path, text.replace(at, from.size(), to));
}

/// Gives an index that was changed the checksum of its new text.
void mendIndex(const std::string &path) {
  std::string text = fileText(path), mark = ",\n \"checksum\": \"";
  size_t end = text.rfind(mark);
  ASSERT_NE(end, std::string::npos);
  writeFile(path, text.substr(0, end) + mark + core::checksumOf(std::as_bytes(std::span(text.data(), end))) + "\"\n}\n");
}

class Saves : public Tool {
protected:
  std::string save, two;

  /// Saves of steps 1 and 2 of two ranks.
  void SetUp() override {
    Tool::SetUp();
    save = folder / "ckpt";
    two = write(toy::training(2), "two");
    trains(save);
  }
  int runTwo(std::vector<std::string> more) {
    more.insert(more.begin(), {two, "--comm", "inproc", "-n", "2", "--text", folder / "text"});
    return run(more);
  }
  void trains(const std::string &where, const std::string &steps = "2") {
    ASSERT_EQ(runTwo({"--init", "--steps", steps, "--save", where, "--save-every", "1"}), 0) << err;
  }
  /// The save of step 2 is refused with this sentence, by --resume and by --weights, and the one of step 1 is offered.
  void refusesTwo(const std::string &says, const std::string &other = "1") {
    std::string hint = "; " + save + "/" + other + " is complete: --resume " + save + "/" + other + "\n";
    for (const char *flag : {"--resume", "--weights"}) {
      EXPECT_EQ(runTwo({flag, save + "/2", "--steps", "3"}), 1);
      expectSays(save + "/2: error: " + says);
      EXPECT_TRUE(err.ends_with(other.empty() ? "\n" : hint)) << err;
      EXPECT_EQ(out.find("step"), std::string::npos) << "before the first step";
    }
  }
  /// The index of step 2 says `to` instead, and its checksum fits; refused with this sentence.
  void refusesIndex(const std::string &from, const std::string &to, const std::string &says) {
    std::string path = save + "/2/index.json", before = fileText(path);
    edit(path, from, to);
    mendIndex(path);
    refusesTwo("index.json: " + says);
    writeFile(path, before);
  }
};

TEST(Checksum, isThatOfCrc32cInFourStreams) {
  // "123456789" has the well-known value e3069283; here its first 8 bytes, the ninth and zeros are words of streams 0 and 1.
  std::string_view text = "123456789";
  EXPECT_EQ(core::checksumOf(std::as_bytes(std::span(text))).size(), 32u);
  std::vector<std::byte> bytes(100'003);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(i * 131 >> 3);
  std::string whole = core::checksumOf(bytes);
  core::Checksum portable(true), pieces;
  portable.add(bytes);
  EXPECT_EQ(portable.digest(), whole);
  std::span<const std::byte> rest(bytes);
  for (size_t n = 0; !rest.empty(); rest = rest.subspan(std::min(n, rest.size())), ++n)
    pieces.add(rest.first(std::min(n, rest.size())));
  EXPECT_EQ(pieces.digest(), whole);
  for (size_t i : {size_t(0), size_t(31), size_t(99'999), bytes.size() - 1}) {
    bytes[i] ^= std::byte(16);
    EXPECT_NE(core::checksumOf(bytes), whole) << i;
    bytes[i] ^= std::byte(16);
  }
  EXPECT_NE(core::checksumOf(std::vector<std::byte>(5)), core::checksumOf(std::vector<std::byte>(6)));
}

TEST_F(Saves, sayWhatTheyAre) {
  core::SafetensorsReader rank1(save + "/2/rank1.safetensors");
  auto index = nlohmann::json::parse(fileText(save + "/2/index.json"));
  for (auto [key, value] : {std::pair<std::string, std::string>{"step", "2"}, {"rank", "1"}, {"ranks", "2"},
                            {"run", index.at("run")}, {"plan", index.at("plan")},
                            {"checksum", core::checksumOf(rank1.dataBytes())}})
    EXPECT_EQ(rank1.metadata().at(key), value) << key;
  EXPECT_EQ(index.at("files").at("rank1.safetensors").at("header"), core::checksumOf(rank1.headerBytes()));
}

TEST_F(Saves, ofAnotherWidthAreRefused) {
  format::Bundle wide = toy::training(2);
  format::Tensor &w = wide.manifest.tensors[0];
  w.stored = {16, 4};
  w.layout = {{16, 4}, {8, 4}, {{{0, 0}, {8, 4}, {0}}, {{8, 0}, {8, 4}, {1}}}};
  std::string other = write(wide, "other");
  for (const char *flag : {"--resume", "--weights"}) {
    EXPECT_EQ(run({other, "--comm", "inproc", "-n", "2", "--text", folder / "text", flag, save + "/2", "--steps", "3"}), 1);
    expectSays(save + "/2/index.json: error: \"w\" is [8, 8], the bundle has [16, 4]; the ");
  }
}

// The bundle has a tensor that the save lacks: --weights started it from its rule, in silence.
TEST_F(Saves, thatLackATensorAreRefused) {
  format::Bundle more = toy::training(2);
  more.manifest.tensors[0].name = "v";
  for (format::Buffer &buffer : more.programs[0].buffers)
    if (buffer.tensor == "w")
      buffer.tensor = "v";
  std::string other = write(more, "other");
  for (const char *flag : {"--resume", "--weights"}) {
    EXPECT_EQ(run({other, "--comm", "inproc", "-n", "2", "--text", folder / "text", flag, save + "/2", "--steps", "3"}), 1);
    expectSays(save + "/2: error: holds no \"v\"; ");
  }
}

TEST_F(Saves, withFilesOfAnotherStepOrRunAreRefused) {
  fs::copy_file(save + "/1/rank1.safetensors", save + "/2/rank1.safetensors", fs::copy_options::overwrite_existing);
  refusesTwo("rank1.safetensors is not of this save: its step is 1, that of index.json is 2");
  trains(folder / "again");
  fs::copy_file(folder / "again/2/rank1.safetensors", save + "/2/rank1.safetensors", fs::copy_options::overwrite_existing);
  refusesTwo("rank1.safetensors is not of this save: its run is ");
  fs::remove_all(save);
  trains(save);
  edit(save + "/2/rank1.safetensors", "\"rank\":\"1\"", "\"rank\":\"0\"");
  refusesTwo("rank1.safetensors is not of this save: its rank is 0, that of index.json is 1");
  fs::remove(save + "/2/rank1.safetensors");
  refusesTwo("rank1.safetensors is not there");
}

TEST_F(Saves, withAnIndexOfAnotherStepAreRefused) {
  fs::copy_file(save + "/1/index.json", save + "/2/index.json", fs::copy_options::overwrite_existing);
  refusesTwo("index.json is of step 1; a folder that is named by a number holds the save of that step");
  fs::rename(save + "/2", save + "/best");
  EXPECT_EQ(runTwo({"--resume", save + "/best"}), 1);
  expectSays("best: error: rank0.safetensors is not of this save: its step is 2, that of index.json is 1");
}

// One bit anywhere: in data, in what says where the data is, in the index.
TEST_F(Saves, withAFlippedBitAreRefused) {
  for (const char *name : {"rank0.safetensors", "rank1.safetensors", "index.json"}) {
    std::string path = save + "/2/" + name, before = fileText(path);
    for (size_t at = 0; at < before.size(); at += before.size() / 23) {
      std::string after = before;
      after[at] = static_cast<char>(after[at] ^ 1 << at % 7);
      writeFile(path, after);
      EXPECT_EQ(runTwo({"--resume", save + "/2", "--steps", "3"}), 1) << name << " at " << at;
      expectSays(save + "/2");
      EXPECT_EQ(out.find("step "), std::string::npos);
    }
    writeFile(path, before);
  }
  std::string path = save + "/2/rank1.safetensors", text = fileText(path);
  text.back() = static_cast<char>(text.back() ^ 4);
  writeFile(path, text);
  refusesTwo("rank1.safetensors is not as it was written: its checksum is that of other content");
}

TEST_F(Saves, whoseIndexIsOutOfRangeAreRefused) {
  edit(save + "/2/index.json", "\"step\": 2", "\"step\": 3");
  refusesTwo("index.json: it is not as it was written: its checksum is that of another text");
  edit(save + "/2/index.json", "\"step\": 3", "\"step\": 2");
  refusesIndex("\"step\": 2", "\"step\": -2", "\"step\" is -2, not a whole number from 1 to 1099511627776");
  refusesIndex("\"step\": 2", "\"step\": 0", "\"step\" is 0, not a whole number from 1 to 1099511627776");
  refusesIndex("\"step\": 2", "\"step\": 2.5", "\"step\" is 2.5, not a whole number");
  refusesIndex("\"rows\": 8", "\"rows\": 1", "\"rows\" is 1, not a whole number from 2 to 1152921504606846976");
  refusesIndex("\"rows\": 8", "\"rows\": [[[]]]", "\"rows\" is an array of 1, not a whole number");
  refusesIndex("\"seed\": 0", "\"seed\": 18446744073709551616", "\"seed\" is 1.8446744073709552e+19, not a whole number");
  refusesIndex("\"order\": \"shuffled\"", "\"order\": \"sorted\"", "\"order\" is \"sorted\", neither shuffled nor sequential");
  refusesIndex("\"order\": \"shuffled\"", "\"order\": 1", "\"order\" is 1, not text");
  refusesIndex("\"order\"", "\"ordre\"", "has no \"order\"");
  refusesIndex("[\n  2,\n  0\n ]", "\"2\"", "\"par_checkpoint\" is \"2\", not a version");
  refusesIndex("\"par_checkpoint\": [\n  2", "\"par_checkpoint\": [\n  3", "written by a newer par-run");
}

// Rectangles that are not inside, are not all, overlap, or lie in files that are none of the save's.
TEST_F(Saves, whosePartsDoNotCoverAreRefused) {
  std::string start = "\"start\": [\n      4,";
  refusesIndex(start, "\"start\": [\n      5,", "a part of \"w\" at [5, 0] of size [4, 8] is not inside of [8, 8]");
  refusesIndex(start, "\"start\": [\n      3,", "two parts of \"w\" overlap, at [0, 0] and [3, 0]");
  refusesIndex(start, "\"start\": [\n      -4,", "\"tensors.w.parts.start\" is an array of 2, which is no shape");
  refusesIndex("\"shape\": [\n    8,", "\"shape\": [\n    16,", "\"w\" is [16, 8] and stored as [8, 8]");
  refusesIndex("\"file\": \"rank1.safetensors\"", "\"file\": \"../1/rank1.safetensors\"",
               "a part of \"w\" is in \"../1/rank1.safetensors\", which is none of its files");
  refusesIndex("\"file\": \"rank1.safetensors\"", "\"file\": \"rank0.safetensors\"",
               "a part of \"w\" is in \"rank0.safetensors\", which holds another one");
  refusesIndex("\"type\": \"f32\"", "\"type\": \"f33\"", "\"w\" has the type f33, which is unknown");
  std::string path = save + "/2/index.json";
  edit(path, "\"type\": \"f32\"", "\"type\": \"i64\"");
  mendIndex(path);
  refusesTwo("rank0.safetensors holds \"w\" as f32[4, 8], index.json has i64[4, 8]");
}

// Ranks that a launcher started look each for themselves, and one may find another save than the others.
TEST_F(Saves, thatRanksSeeDifferentlyAreRefused) {
  trains(folder / "again");
  std::string address = "127.0.0.1:" + std::to_string(20000 + getpid() % 20000);
  auto runRank = [&](const std::string &rank, const std::string &where) {
    return run({two, "--rank", rank, "--world", "2", "--master", address, "--text", folder / "text", "--steps", "3",
                "--resume", where});
  };
  fflush(nullptr);
  pid_t other = fork();
  if (other == 0) {
    runRank("1", folder / "again");
    writeFile(folder / "said", err);
    _exit(0);
  }
  EXPECT_EQ(runRank("0", save), 1);
  waitpid(other, nullptr, 0);
  err += fileText(folder / "said"); // one of them says it for both
  expectSays("/2: error: rank 1 sees step 2 of run ");
  expectSays(" here, rank 0 step 2 of run ");
  expectSays("; name the folder of one step with --resume");
}

// What an earlier par-run wrote has no checksums: it is compared as far as it can be, and that is said.
TEST_F(Saves, ofFormatOneAreReadWithAWarning) {
  std::string straight = folder / "straight.safetensors", resumed = folder / "resumed.safetensors";
  ASSERT_EQ(runTwo({"--resume", save + "/2", "--steps", "4", "--export", straight}), 0) << err;
  auto index = nlohmann::ordered_json::parse(fileText(save + "/2/index.json"));
  index["par_checkpoint"] = {1, 0};
  for (const char *name : {"rank0.safetensors", "rank1.safetensors"})
    index["files"][name] = fs::file_size(save + "/2/" + name);
  for (const char *key : {"run", "serial", "checksum"})
    index.erase(key);
  for (auto &[name, tensor] : index["tensors"].items())
    tensor.erase("stored");
  writeFile(save + "/2/index.json", index.dump(1));
  ASSERT_EQ(runTwo({"--resume", save + "/2", "--steps", "4", "--export", resumed}), 0) << err;
  EXPECT_NE(out.find("ckpt/2: warning: was written by an earlier par-run, without checksums"), std::string::npos) << out;
  EXPECT_EQ(fileText(straight), fileText(resumed));
}

} // namespace

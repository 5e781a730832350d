// A wrong save is never accepted: parts of another run, step, width or content are refused by a message that names the
// file, and the tensor with both shapes.
#include "../App/ToolFixture.h"

#include "par/files/Checksum.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace par;
namespace fs = std::filesystem;

namespace {

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
  writeFile(path,
            text.substr(0, end) + mark + core::checksumOf(std::as_bytes(std::span(text.data(), end))) + "\"\n}\n");
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
  // "123456789" has the well-known value e3069283; here its first 8 bytes, the ninth and zeros are words of streams 0
  // and 1.
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
  for (auto [key, value] : {std::pair<std::string, std::string>{"step", "2"},
                            {"rank", "1"},
                            {"ranks", "2"},
                            {"run", index.at("run")},
                            {"plan", index.at("plan")},
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
    EXPECT_EQ(run({other, "--comm", "inproc", "-n", "2", "--text", folder / "text", flag, save + "/2", "--steps", "3"}),
              1);
    expectSays(save + "/2/index.json: error: \"w\" is [8, 8], the bundle has [16, 4]; of the others ");
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
    EXPECT_EQ(run({other, "--comm", "inproc", "-n", "2", "--text", folder / "text", flag, save + "/2", "--steps", "3"}),
              1);
    expectSays(save + "/2: error: holds no \"v\"; ");
  }
}

TEST_F(Saves, withFilesOfAnotherStepOrRunAreRefused) {
  fs::copy_file(save + "/1/rank1.safetensors", save + "/2/rank1.safetensors", fs::copy_options::overwrite_existing);
  refusesTwo("rank1.safetensors is not of this save: its step is 1, that of index.json is 2");
  trains(folder / "again");
  fs::copy_file(folder / "again/2/rank1.safetensors", save + "/2/rank1.safetensors",
                fs::copy_options::overwrite_existing);
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

// One bit anywhere: in data, in the headers, in the index.
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
  refusesIndex("\"seed\": 0", "\"seed\": 18446744073709551616",
               "\"seed\" is 1.8446744073709552e+19, not a whole number");
  refusesIndex("\"order\": \"shuffled\"", "\"order\": \"sorted\"",
               "\"order\" is \"sorted\", neither shuffled nor sequential");
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

// A tensor in a grid of parts: two are compared though others lie between them, and a whole grid is taken.
TEST_F(Saves, whosePartsAreAGridAreComparedInAllDims) {
  std::string path = save + "/2/index.json";
  auto index = nlohmann::ordered_json::parse(fileText(path));
  index.erase("checksum");
  auto &parts = index["tensors"]["w"]["parts"] = nlohmann::ordered_json::array();
  for (int rank = 0; rank < 64; ++rank) {
    std::string file = "rank" + std::to_string(rank) + ".safetensors";
    if (rank > 1)
      index["files"][file] = {{"bytes", 1}, {"header", ""}};
    parts.push_back({{"file", file}, {"start", {rank / 8, rank % 8}}, {"size", {1, 1}}});
  }
  auto refused = [&](const std::string &says) {
    std::string text = index.dump(1);
    writeFile(path, text.substr(0, text.size() - 2) + ",\n \"checksum\": \"\"\n}\n");
    mendIndex(path);
    refusesTwo(says);
  };
  refused("rank0.safetensors is not of this save: its ranks is 2, that of index.json is 64");
  parts[3 * 8 + 5]["start"] = {3, 4};
  refused("index.json: two parts of \"w\" overlap, at [3, 4] and [3, 4]");
  parts[3 * 8 + 5]["start"] = {6, 5};
  refused("index.json: two parts of \"w\" overlap, at [6, 5] and [6, 5]");
}

/// Rendezvous address of two ranks of this process. Linux gives the ports from 32768 on to outgoing connections.
static std::string masterAddress() { return "127.0.0.1:" + std::to_string(20000 + getpid() % 12000); }

// Ranks that a launcher started look each for themselves, and one may find another save than the others.
TEST_F(Saves, thatRanksSeeDifferentlyAreRefused) {
  trains(folder / "again");
  std::string address = masterAddress();
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

// Each rank reads its own command line: replicas that start from other weights would train apart without a word.
TEST_F(Saves, ofRanksWithOtherFlagsAreRefused) {
  std::string address = masterAddress(), text = folder / "text";
  auto apart = [&](std::vector<std::string> zero, std::vector<std::string> one) {
    auto runRank = [&](const std::string &rank, std::vector<std::string> flags) {
      flags.insert(flags.begin(), {two, "--rank", rank, "--world", "2", "--master", address, "--text", text});
      return run(flags);
    };
    fflush(nullptr);
    pid_t other = fork();
    if (other == 0) {
      runRank("1", one);
      writeFile(folder / "said", err);
      _exit(0);
    }
    EXPECT_EQ(runRank("0", zero), 2);
    waitpid(other, nullptr, 0);
    err += fileText(folder / "said");
  };
  apart({"--weights", save + "/1", "--steps", "3"}, {"--weights", save + "/2", "--steps", "3"});
  expectSays(": error: rank 1 was started with --weights " + save + "/2, rank 0 with --weights " + save +
             "/1; all ranks of a job take the same");
  apart({"--weights", save + "/1", "--steps", "3"}, {"--weights", save + "/1", "--steps", "4"});
  expectSays(": error: rank 1 was started with 4 steps, rank 0 with 3 steps; all ranks of a job take the same");
  apart({"--init", "--steps", "3", "--set", "lr=0.5"}, {"--init", "--steps", "3"});
  expectSays(
      ": error: rank 1 was started with no --set lr, rank 0 with --set lr=0.5; all ranks of a job take the same");
}

// Each is a copy of the state after its step, whatever the steps that run while it is written.
TEST_F(Saves, holdTheStateOfTheirStep) {
  std::string beside = folder / "beside", alone = folder / "alone";
  ASSERT_EQ(runTwo({"--init", "--steps", "40", "--save", beside, "--save-every", "3", "--keep", "20"}), 0) << err;
  for (const char *step : {"3", "21", "39"}) {
    ASSERT_EQ(runTwo({"--init", "--steps", step, "--save", alone}), 0) << err;
    for (const char *file : {"/rank0.safetensors", "/rank1.safetensors"}) {
      core::SafetensorsReader one(beside + "/" + step + file), other(alone + "/" + step + file);
      ASSERT_FALSE(one.arrays().empty());
      for (const auto &[name, array] : one.arrays())
        EXPECT_TRUE(std::ranges::equal(array.data, other.find(name)->data)) << step << file << ": " << name;
    }
    fs::remove_all(alone);
  }
}

// A folder that is no save keeps its place, whatever its name.
TEST_F(Saves, doNotTakeThePlaceOfOtherFiles) {
  std::string other = folder / "other";
  fs::create_directories(other + "/2");
  writeFile(other + "/2/precious", "mine");
  std::vector<std::string> flags{"--init", "--steps", "2", "--save", other};
  EXPECT_EQ(runTwo(flags), 1);
  EXPECT_EQ(err, other + ": error: 2 has the name of a save and is none; --save would take its place: move it, or give "
                         "another folder\n");
  EXPECT_EQ(fileText(other + "/2/precious"), "mine");
  fs::rename(other + "/2", other + "/3"); // which two steps do not reach
  EXPECT_EQ(runTwo(flags), 0) << err;
  EXPECT_EQ(fileText(other + "/3/precious"), "mine");
}

// A kill leaves folders that are no saves; their owner's successor deletes them, and nothing that is somebody else's.
TEST_F(Saves, areCleanedUpByTheNextOwner) {
  std::string run(16, 'a');
  for (const std::string &name :
       {"9." + run + ".tmp", "1." + run + ".gone", "2." + run + ".old", std::string("7.tmp")}) {
    fs::create_directory(save + "/" + name);
    fs::copy_file(save + "/1/index.json", save + "/" + name + "/index.json");
  }
  for (const char *name : {"notes.tmp", "7.notes.tmp", "007.tmp", "99999999999999999999999999", "2.old"})
    fs::create_directory(save + "/" + name);
  fs::copy_file(save + "/1/index.json", save + "/99999999999999999999999999/index.json");
  EXPECT_EQ(core::newestCheckpoint(save), save + "/2");
  ASSERT_EQ(runTwo({"--resume", "auto", "--save", save, "--steps", "3"}), 0) << err;
  std::set<std::string> left;
  for (const auto &item : fs::directory_iterator(save))
    left.insert(item.path().filename());
  EXPECT_EQ(left, (std::set<std::string>{".lock", "2", "3", "2.old", "007.tmp", "7.notes.tmp", "notes.tmp",
                                         "99999999999999999999999999"}));
}

// Notes that somebody has put into a save's folder while it ran do not go with the save.
TEST_F(Saves, leaveWhatElseTheirFoldersHold) {
  std::string gone = save + "/9." + std::string(16, 'a') + ".gone";
  for (const std::string &path : {gone, folder / "old", folder / "new"}) {
    fs::create_directory(path);
    writeFile(path + "/index.json", "a save");
    writeFile(path + "/notes.txt", path);
  }
  ASSERT_EQ(runTwo({"--resume", "auto", "--save", save, "--steps", "3"}), 0) << err;
  EXPECT_EQ(fileText(gone + "/notes.txt"), gone);
  EXPECT_FALSE(fs::exists(gone + "/index.json"));
  core::replaceFolder(folder / "new", folder / "old", folder / "aside", true);
  EXPECT_EQ(fileText((folder / "old") + "/notes.txt"), folder / "new");
  EXPECT_EQ(fileText((folder / "aside") + "/notes.txt"), folder / "old");
  EXPECT_FALSE(fs::exists((folder / "aside") + "/index.json"));
}

// If folders cannot be exchanged, a kill leaves the old save under another name: it is found, and gets its name again.
TEST_F(Saves, thatWereMovedAsideAreFound) {
  std::string aside = save + "/2." + std::string(16, 'b') + ".old";
  fs::rename(save + "/2", aside);
  EXPECT_EQ(core::newestCheckpoint(save), aside);
  ASSERT_EQ(runTwo({"--resume", save, "--steps", "3"}), 0) << err;
  ASSERT_EQ(runTwo({"--resume", "auto", "--save", save, "--steps", "3", "--keep", "9"}), 0) << err;
  EXPECT_NE(out.find("step    3/3"), std::string::npos) << out;
  EXPECT_TRUE(fs::exists(save + "/2/index.json") && !fs::exists(aside));
}

// How many are kept is not cut to 32 bits: 2^32 was none, and the last save went with the others.
TEST_F(Saves, areKeptHoweverManyMay) {
  ASSERT_EQ(runTwo({"--resume", save, "--save", save, "--save-every", "1", "--keep", "4294967296", "--steps", "3"}), 0)
      << err;
  EXPECT_TRUE(fs::exists(save + "/1/index.json") && fs::exists(save + "/2/index.json") &&
              fs::exists(save + "/3/index.json"));
}

TEST_F(Saves, takeTheirNameAtOnce) {
  for (bool exchanges : {true, false}) {
    for (const char *name : {"new", "old"}) {
      fs::create_directory(folder / name);
      writeFile((folder / name) + "/index.json", name);
    }
    core::replaceFolder(folder / "new", folder / "old", folder / "aside", exchanges);
    EXPECT_EQ(fileText((folder / "old") + "/index.json"), "new");
    EXPECT_FALSE(fs::exists(folder / "new") || fs::exists(folder / "aside"));
    core::replaceFolder(folder / "old", folder / "fresh", folder / "aside", exchanges);
    EXPECT_EQ(fileText((folder / "fresh") + "/index.json"), "new");
    fs::remove_all(folder / "fresh");
  }
}

// The newest is known by its index: cp -r and touch change times, and a later run in the same folder may be at fewer
// steps.
TEST_F(Saves, areOrderedByTheirIndex) {
  auto goOn = [&](const std::string &from, const std::string &steps) {
    return runTwo({"--resume", from, "--save", save, "--save-every", "1", "--keep", "9", "--steps", steps});
  };
  ASSERT_EQ(goOn(save, "5"), 0) << err;
  fs::last_write_time(save + "/4/index.json", fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(core::newestCheckpoint(save), save + "/5");
  fs::copy(save, folder / "copy", fs::copy_options::recursive);
  EXPECT_EQ(core::newestCheckpoint(folder / "copy"), (folder / "copy") + "/5");
  ASSERT_EQ(goOn(save + "/2", "3"), 0) << err;
  EXPECT_EQ(core::newestCheckpoint(save), save + "/3");
}

// A run that goes on from none of a folder's saves, or from a copy that lies elsewhere, takes the place of none.
TEST_F(Saves, ofAnotherRunAreNotReplaced) {
  fs::copy(save + "/2", folder / "elsewhere", fs::copy_options::recursive);
  for (const std::vector<std::string> &start :
       {std::vector<std::string>{"--init"}, {"--resume", folder / "elsewhere"}}) {
    std::vector<std::string> flags{"--save", save, "--steps", "9", "--save-every", "1"};
    flags.insert(flags.begin(), start.begin(), start.end());
    EXPECT_EQ(runTwo(flags), 1);
    EXPECT_EQ(err,
              save +
                  ": error: holds saves, the newest of step 2, that this run does not go on from and would replace or "
                  "delete: --resume auto goes on from it, or give --save another folder\n");
  }
  EXPECT_TRUE(fs::exists(save + "/1/index.json") && fs::exists(save + "/2/index.json") && !fs::exists(save + "/3"));
}

// The order of rows is that of the data: of other data it goes on at another row.
TEST_F(Saves, tellOtherData) {
  ASSERT_EQ(runTwo({"--resume", save, "--steps", "3"}), 0) << err;
  EXPECT_EQ(out.find("warning"), std::string::npos) << out;
  writeFile(folder / "text", fileText(folder / "text") + "and more");
  ASSERT_EQ(runTwo({"--resume", save, "--steps", "3"}), 0) << err;
  std::string said =
      save +
      "/2: warning: was trained on other data; training goes on after the 8 rows that it took, in an order of these ";
  EXPECT_NE(out.find(said), std::string::npos) << out;
}

// A broken save with more steps than all others is reported; an older one is ignored.
TEST_F(Saves, thatAreBrokenDoNotHide) {
  fs::copy(save + "/1", save + "/8", fs::copy_options::recursive);
  EXPECT_EQ(runTwo({"--resume", "auto", "--save", save, "--steps", "3"}), 1);
  expectSays(save +
             "/8: error: index.json is of step 1; a folder that is named by a number holds the save of that step; " +
             save + "/2 is complete: --resume " + save + "/2");
  fs::remove_all(save + "/8");
  writeFile(save + "/1/index.json", "{");
  EXPECT_EQ(runTwo({"--resume", "auto", "--save", save, "--steps", "4", "--save-every", "1"}), 0) << err;
  EXPECT_TRUE(fs::exists(save + "/1") && fs::exists(save + "/3") && fs::exists(save + "/4")) << "not counted by --keep";
}

// So is one that has lost its index, or a folder without access; a folder that never was a save is ignored.
TEST_F(Saves, withoutAnIndexDoNotHide) {
  fs::copy(save + "/2", save + "/5", fs::copy_options::recursive);
  fs::create_directory(save + "/7");
  fs::create_directory(save + "/8");
  writeFile(save + "/8/notes", "mine");
  auto refused = [&](const std::string &says) {
    for (std::vector<std::string> flags :
         {std::vector<std::string>{"--resume", save}, {"--resume", "auto", "--save", save}}) {
      flags.insert(flags.end(), {"--steps", "6"});
      EXPECT_EQ(runTwo(flags), 1);
      EXPECT_EQ(err, save + "/5: error: " + says + "; " + save + "/2 is complete: --resume " + save + "/2\n");
    }
  };
  std::string index = save + "/5/index.json";
  fs::remove(index);
  refused("no complete checkpoint in this folder");
  ASSERT_EQ(mkfifo(index.c_str(), 0600), 0);
  refused("no complete checkpoint in this folder");
  fs::remove_all(save + "/5");
  EXPECT_EQ(runTwo({"--resume", "auto", "--save", save, "--steps", "3"}), 0) << err;
  EXPECT_EQ(fileText(save + "/8/notes"), "mine");
}

// --resume auto starts from the beginning if nothing was saved, not if the folder cannot be read. (Root reads
// everything: it becomes another user.)
TEST_F(Saves, inAFolderThatCannotBeReadAreNotBegunAnew) {
  fs::permissions(fs::path(save).parent_path(), fs::perms::all);
  fs::permissions(save, fs::perms(0333));
  pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && seteuid(65534) != 0)
      _exit(99);
    try {
      core::findNewestCheckpoint(save);
      _exit(1);
    } catch (const core::Failure &failure) {
      _exit(failure.what() == save + ": error: cannot open: Permission denied" ? 0 : 2);
    }
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  fs::permissions(save, fs::perms::owner_all);
}

/// Changes of names in a folder since the begin of the watch.
class NameChanges {
public:
  explicit NameChanges(const std::string &folder) : descriptor(inotify_init1(IN_NONBLOCK)) {
    inotify_add_watch(descriptor, folder.c_str(), IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO);
  }
  ~NameChanges() { close(descriptor); }

  /// "gone 1", "from 1" and "to 1", in order; a run's additions to names are left out.
  std::vector<std::string> take() {
    std::vector<std::string> changes;
    alignas(inotify_event) char bytes[16384];
    for (ssize_t n; (n = read(descriptor, bytes, sizeof bytes)) > 0;)
      for (char *at = bytes; at < bytes + n;) {
        auto *event = reinterpret_cast<inotify_event *>(at);
        std::string name = event->name, run = name.size() > 17 ? name.substr(name.find('.'), 17) : "";
        if (size_t where = name.find(run); !run.empty())
          name.erase(where, run.size());
        changes.push_back((event->mask & IN_DELETE ? "gone " : event->mask & IN_MOVED_FROM ? "from " : "to ") + name);
        at += sizeof *event + event->len;
      }
    return changes;
  }

private:
  int descriptor;
};

// At no moment stands half a save under its name: it comes by a move, goes by a move, and is deleted under another one.
TEST_F(Saves, comeAndGoByMoves) {
  NameChanges changes(save);
  ASSERT_EQ(runTwo({"--resume", save, "--save", save, "--save-every", "1", "--keep", "2", "--steps", "3"}), 0) << err;
  EXPECT_EQ(changes.take(), (std::vector<std::string>{"from 3.tmp", "to 3", "from 1", "to 1.gone", "gone 1.gone"}));
  // In exchange, where the file system can, as those in memory and ext4 can: no moment without a save of that name.
  ASSERT_EQ(runTwo({"--resume", save + "/2", "--save", save, "--save-every", "1", "--keep", "2", "--steps", "3"}), 0)
      << err;
  std::vector<std::string> names = changes.take();
  ASSERT_GE(names.size(), 4u);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.begin() + 4),
            (std::set<std::string>{"from 3.tmp", "to 3", "from 3", "to 3.tmp"}));
  EXPECT_EQ(std::count(names.begin(), names.end(), "gone 3"), 0);
  EXPECT_EQ(names.back(), "gone 3.old");
}

// Nothing is called complete that was not read.
TEST_F(Saves, areOfferedOnlyIfTheyAreWhole) {
  std::string path = save + "/1/rank0.safetensors", text = fileText(path);
  text.back() = static_cast<char>(text.back() ^ 1);
  writeFile(path, text);
  fs::remove(save + "/2/rank1.safetensors");
  EXPECT_EQ(runTwo({"--resume", save, "--steps", "3"}), 1);
  EXPECT_EQ(err, save + "/2: error: rank1.safetensors is not there\n");
}

TEST_F(Saves, haveOneOwner) {
  char host[256];
  gethostname(host, sizeof host);
  {
    core::SaveFolder owner(save);
    EXPECT_EQ(runTwo({"--init", "--steps", "1", "--save", save}), 1);
    expectSays(save + ": error: pid " + std::to_string(getpid()) + " on " + host + ", since 20");
    expectSays(" writes its saves here; wait for it or end it, or give --save another folder\n");
    EXPECT_EQ(out, "");
    EXPECT_EQ(runTwo({"--resume", save, "--steps", "3"}), 0) << "reading needs no lock: " << err;
  }
  EXPECT_EQ(fileText(save + "/.lock"), "") << "who ends well says so";
  // A dead owner's name, and one that no lock stands for.
  pid_t dead = fork();
  if (dead == 0)
    _exit(0);
  waitpid(dead, nullptr, 0);
  for (const std::string &left :
       {"pid " + std::to_string(dead) + " on " + host + ", since 2026-01-01 00:00:00\n",
        std::string("pid 1 on another-host, since 2026-01-01 00:00:00\n"), std::string("\1\2")}) {
    writeFile(save + "/.lock", left);
    EXPECT_EQ(runTwo({"--resume", "auto", "--save", save, "--steps", "3"}), 0) << err;
  }
}

/// FolderLock's message on a file system without locks, if the file holds this text.
std::string lockSays(const std::string &folder, const std::string &text) {
  writeFile(folder + "/.lock", text);
  try {
    core::FolderLock lock(folder, false);
    return "";
  } catch (const core::Failure &failure) {
    return failure.what();
  }
}

TEST_F(Saves, haveOneOwnerByNameWhereThereAreNoLocks) {
  char host[256];
  gethostname(host, sizeof host);
  std::string since = ", since 2026-01-01 00:00:00", alive = "pid 1 on " + std::string(host) + since;
  EXPECT_EQ(lockSays(save, alive + "\n"),
            save + ": error: " + alive +
                " writes its saves here; wait for it or end it, or give --save another folder");
  EXPECT_EQ(lockSays(save, "pid 7 on node17" + since + "\n"),
            save + ": error: pid 7 on node17" + since +
                " writes its saves here, or died, which cannot be seen on a file "
                "system without locks; if it died, remove " +
                save + "/.lock");
  EXPECT_EQ(lockSays(save, "pid 4194305 on " + std::string(host) + since), "") << "more than any process";
  fs::remove(save + "/.lock");
  ASSERT_EQ(mkfifo((save + "/.lock").c_str(), 0600), 0);
  EXPECT_EQ(runTwo({"--init", "--steps", "1", "--save", save}), 1);
  expectSays("/.lock: error: cannot write: not a plain file");
}

// A full disk, here a limit on the size of files: half a save is taken away, and the last good one is named.
TEST_F(Saves, thatCannotBeWrittenNameTheLastOne) {
  rlimit before, small;
  getrlimit(RLIMIT_FSIZE, &before);
  small = {400, before.rlim_max};
  for (const std::string &from : {std::string("--resume=auto"), std::string("--init")}) {
    std::string where = from == "--init" ? folder / "fresh" : save;
    setrlimit(RLIMIT_FSIZE, &small);
    int code = runTwo({from, "--save", where, "--steps", "3"});
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_EQ(code, 1);
    expectSays(".tmp/rank");
    expectSays(
        ".safetensors: error: cannot write: File too large\n  note: " +
        (from == "--init" ? "nothing was saved before" : "the last save is " + save + "/2: --resume " + save + "/2"));
    EXPECT_FALSE(fs::exists(where + "/3"));
  }
  EXPECT_EQ(core::newestCheckpoint(save), save + "/2");
  ASSERT_EQ(runTwo({"--resume", "auto", "--save", save, "--steps", "3"}), 0) << err;
}

// Nor does a file of weights or of results stay half written.
TEST_F(Saves, exportsThatCannotBeWrittenLeaveNothing) {
  rlimit before, small;
  getrlimit(RLIMIT_FSIZE, &before);
  small = {200, before.rlim_max};
  std::string file = folder / "e.safetensors";
  setrlimit(RLIMIT_FSIZE, &small);
  int code = runTwo({"--init", "--steps", "1", "-q", "--export", file});
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(code, 1);
  expectSays(".tmp: error: cannot write: File too large");
  for (const auto &entry : fs::directory_iterator(folder / ""))
    EXPECT_FALSE(entry.path().filename().string().starts_with("e.safetensors")) << entry.path();
}

// A save of an earlier par-run has no checksums: it is compared as far as possible, with a warning.
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
  EXPECT_NE(out.find("ckpt/2: warning: was written by an earlier par-run, without checksums"), std::string::npos)
      << out;
  EXPECT_EQ(fileText(straight), fileText(resumed));
}

} // namespace

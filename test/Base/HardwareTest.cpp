// Hardware files: what is read of them, and what is refused.
#include "par/Base/Hardware.h"
#include "par/Base/MachineLevels.h"
#include "par/Base/RankGrid.h"
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <random>

using namespace par;

static const char *text = "name: x\npeak: {f32: 1000, f64: 500}\nmemory: 100\nlink: 10\nlatency: 7\nlaunch: 3\n";

/// Two ranks a host.
TEST(Hardware, Hosts) {
  Hardware hardware = *Hardware::parse(std::string(text) + "ranks: 2\nbetween: {link: 2, latency: 11}\n", "x.yaml");
  EXPECT_EQ(hardware.groupOf({2, 3}).hosts, 1);
  EXPECT_EQ(hardware.groupOf({1, 3, 5, 7}).hosts, 4);
  EXPECT_EQ(hardware.groupOf({0, 1, 2, 3}).fewest, 2);
  EXPECT_EQ(hardware.groupOf({1, 2, 3}).fewest, 1);
  EXPECT_EQ(hardware.endsOf({0, 1}, {1, 0}).hosts, 1);
  EXPECT_EQ(hardware.endsOf({0, 1}, {1, 2}).hosts, 2);
  // Each to any.
  EXPECT_EQ(hardware.endsOf({0}, {1, 2}).hosts, 2);
  // A file without `between` has one link everywhere.
  Hardware flat = *Hardware::parse(std::string(text) + "ranks: 2\n", "x.yaml");
  EXPECT_EQ(flat.groupOf({0, 1, 2, 3}).hosts, 1);
  EXPECT_EQ(flat.endsOf({0}, {3}).hosts, 1);
}

TEST(Hardware, ShippedFile) {
  auto hardware = Hardware::find("cpu");
  ASSERT_TRUE(bool(hardware));
  EXPECT_EQ(hardware->name, "cpu");
  EXPECT_FALSE(hardware->overlap);
  // The cores of the machine that predicts, one at least.
  EXPECT_EQ(hardware->cores, Hardware::HostCores);
  EXPECT_GE(hardware->onThisHost().cores, 1);
}

TEST(Hardware, Cores) {
  auto cores = [](std::string line) { return Hardware::parse(text + line, "x.yaml")->onThisHost().cores; };
  EXPECT_EQ(cores(""), 0);
  EXPECT_EQ(cores("cores: 12\n"), 12);
  EXPECT_EQ(cores("cores: host\n"), Hardware::find("cpu")->onThisHost().cores);
}

/// Generated code is for the devices of the file.
TEST(Hardware, Isa) {
  auto isaOf = [](std::string line) { return Hardware::parse(text + line, "x.yaml")->isa; };
  EXPECT_EQ(isaOf(""), "");
  EXPECT_EQ(isaOf("isa: sm_80\n"), "sm_80");
  EXPECT_EQ(isaOf("isa: x86-64-v3\n"), "x86-64-v3");
  EXPECT_EQ(Hardware::find("a100-40g")->isa, "sm_80");
  EXPECT_EQ(Hardware::find("a100-80g")->isa, "sm_80");
  EXPECT_EQ(Hardware::find("h200-sxm")->isa, "sm_90");
  EXPECT_TRUE(Hardware::find("h100-sxm")->isGpuIsa());
  EXPECT_FALSE(Hardware::find("cpu")->isGpuIsa());
  for (const std::string &wrong : std::vector<std::string>{"\"a b\"", "\"sm_80\\n\"", std::string(65, 'a')})
    EXPECT_EQ(llvm::toString(Hardware::parse(text + ("isa: " + wrong + "\n"), "x.yaml").takeError()),
              "x.yaml: isa is no name of up to 64 letters, digits, '_', '-' or '.'; write one as sm_80");
}

TEST(Hardware, Errors) {
  auto refused = [](std::string from, std::string to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return llvm::toString(Hardware::parse(changed, "x.yaml").takeError());
  };
  EXPECT_EQ(refused("link: 10\n", ""), "x.yaml: 1: missing required key 'link'");
  EXPECT_EQ(refused("link: 10", "link: 10\nlinks: 10"), "x.yaml: 5: unknown key 'links'");
  EXPECT_EQ(refused("link: 10", "link: 0"), "x.yaml: link is 0, expected 1 to 2^40");
  EXPECT_EQ(refused("latency: 7", "latency: -7"), "x.yaml: latency is -7, expected 0 to 2^40");
  EXPECT_EQ(refused("link: 10", "link: 10\ncores: all"), "x.yaml: 5: expected a number of cores, or host");
  std::string largest = std::to_string(INT64_MAX);
  EXPECT_EQ(refused("link: 10", "link: 10\ncores: " + largest),
            "x.yaml: cores is " + largest + ", expected at most 65536");
  EXPECT_EQ(refused("link: 10", "link: 10\nranks: 2\nbetween: {link: " + largest + ", latency: 7}"),
            "x.yaml: between.link is " + largest + ", expected 0 to 2^40");
  for (std::string key : {"f32", "f64", "memory", "link", "latency", "launch"}) {
    std::string whole = text, line = whole.substr(whole.find(key + ": "));
    line = line.substr(0, line.find_first_of(",}\n"));
    EXPECT_NE(refused(line, key + ": " + largest).find(key + " is " + largest + ", expected "), std::string::npos)
        << key;
  }
  EXPECT_EQ(refused("link: 10", "link: 10\nranks: -1"), "x.yaml: ranks is -1, expected 0 to 2^40");
  EXPECT_EQ(refused("link: 10", "link: 10\nbetween: {link: 5, latency: 7}"),
            "x.yaml: between is a link of hosts, but ranks (of a host) is 0: all ranks are on one host");
  EXPECT_EQ(refused("link: 10", "link: 10\nranks: 2\nbetween: {link: 0, latency: 7}"),
            "x.yaml: 6: between.link is 0, expected more than 0");
  EXPECT_EQ(refused("link: 10", "link: 10\nranks: 2\nbetween: {link: 5}"), "x.yaml: 6: missing required key 'latency'");
  EXPECT_EQ(refused("link: 10", "link: fast"), "x.yaml: 4: invalid number");
  EXPECT_EQ(llvm::toString(Hardware::find("abacus").takeError()),
            "abacus: no hardware file of this name; there are a100-40g, a100-80g, cpu, h100-sxm, h200-sxm, or name a "
            ".yaml file");
  EXPECT_EQ(llvm::toString(Hardware::find("/nowhere/a.yaml").takeError()),
            "/nowhere/a.yaml: No such file or directory");
}

TEST(Hardware, ShippedFilesAreRead) {
  for (const char *name : {"a100-40g", "a100-80g", "cpu", "h100-sxm", "h200-sxm"}) {
    auto hardware = Hardware::find(name);
    ASSERT_TRUE(bool(hardware)) << llvm::toString(hardware.takeError());
    EXPECT_EQ(hardware->name, name);
  }
  Hardware a100 = *Hardware::find("a100-80g"), small = *Hardware::find("a100-40g"), h200 = *Hardware::find("h200-sxm");
  EXPECT_EQ(a100.waves.units, 108);
  EXPECT_EQ(a100.ranks, 8);
  EXPECT_GT(a100.memory, small.memory);
  EXPECT_GT(h200.memory, Hardware::find("h100-sxm")->memory);
}

TEST(Hardware, Levels) {
  std::string head = "name: x\npeak: {f32: 1000, f64: 500}\nmemory: 100\nlaunch: 3\n";
  auto refused = [&](std::string levels) {
    auto hardware = Hardware::parse(head + levels, "x.yaml");
    return hardware ? "" : llvm::toString(hardware.takeError());
  };
  std::string node = "- {name: node, ranks: 4, link: 10, latency: 7}\n";
  EXPECT_EQ(refused("levels:\n" + node), "");
  EXPECT_EQ(refused("levels: []\n"), "x.yaml: levels has 0 entries, expected 1 to 4");
  EXPECT_EQ(refused("levels:\n" + node + "link: 10\n"),
            "x.yaml: levels says what link, latency, ranks and between say; leave those out");
  EXPECT_EQ(refused("levels:\n" + node + "- {name: rack, ranks: 6, link: 5, latency: 7}\n"),
            "x.yaml: level rack: ranks is 6, expected several times the 4 of the level within, or none: all");
  EXPECT_EQ(refused("levels:\n- {name: node, link: 10, latency: 7}\n" + node),
            "x.yaml: level node: ranks is 0, expected several times the 1 of the level within");
  EXPECT_EQ(refused("levels:\n- {name: node, link: 0, latency: 7}\n"),
            "x.yaml: level node: link is 0, expected 1 to 2^40");
  EXPECT_EQ(refused("levels:\n- {name: node, link: 5, latency: -7}\n"),
            "x.yaml: level node: latency is -7, expected 0 to 2^40");
  EXPECT_EQ(refused("levels:\n- {name: node, link: 5, latency: 7, share: 1000}\n"),
            "x.yaml: level node: share is 1000, expected 0 to 999 (of 1000 of the compute)");
}

// Levels by name: a file without them has nodes, and all where it says how nodes are joined.
TEST(Hardware, LevelNames) {
  auto spell = [](const Hardware &hardware) {
    std::string text;
    for (const MachineLevel &level : levelsOf(hardware))
      text += level.name + " " + std::to_string(level.ranks) + ", ";
    return text;
  };
  Hardware hardware = llvm::cantFail(Hardware::parse(R"(
name: racks
peak: {f32: 1000, f64: 1000}
memory: 1000
launch: 250
levels:
  - {name: board, ranks: 2, link: 4000, latency: 1000}
  - {name: rack, ranks: 8, link: 1000, latency: 2000}
  - {name: all, link: 100, latency: 4000}
)",
                                                     "racks.yaml"));
  EXPECT_EQ(spell(hardware), "board 2, rack 8, all 0, ");
  EXPECT_EQ(spell(Hardware()), "node 0, ");
  Hardware hosts;
  hosts.ranks = 4;
  hosts.hostLink = 100;
  EXPECT_EQ(spell(hosts), "node 4, all 0, ");
  std::vector<MachineLevel> levels = levelsOf(hardware);
  EXPECT_EQ(levelOf(hardware.groupOf({0, 1}), levels).name, "board");
  EXPECT_EQ(levelOf(hardware.groupOf({0, 7}), levels).name, "rack");
  EXPECT_EQ(levelOf(hardware.groupOf({0, 8}), levels).name, "all");
}

TEST(Hardware, Models) {
  auto refused = [](std::string line) {
    auto hardware = Hardware::parse(text + line, "x.yaml");
    return hardware ? "" : llvm::toString(hardware.takeError());
  };
  EXPECT_EQ(refused("source: \"here: and there\"\n"), "");
  EXPECT_EQ(refused("matmul: {units: 132, tile: [128, 256]}\n"), "");
  EXPECT_EQ(refused("matmul: {units: 132, tile: [128]}\n"),
            "x.yaml: 7: matmul.tile has 1 numbers, expected rows and columns");
  EXPECT_EQ(refused("matmul: {units: 132, depth: 0}\n"), "x.yaml: matmul.depth is 0, expected 1 to 65536");
  EXPECT_EQ(refused("matmul: {units: -1}\n"), "x.yaml: matmul.units is -1, expected 1 to 65536");
  EXPECT_EQ(refused("attention: {rate: 1.5}\n"), "x.yaml: 7: expected a part of the peak, 0.001 to 1");
  EXPECT_EQ(refused("attention: {rate: nan}\n"), "x.yaml: 7: expected a part of the peak, 0.001 to 1");
  EXPECT_EQ(refused("kernels: {flops: -1}\n"), "x.yaml: kernels.flops is -1, expected 0 to 2^40");
  EXPECT_EQ(refused("kernels: {speed: 1}\n"), "x.yaml: 7: unknown key 'speed'");
}

TEST(Hardware, MeasuredRows) {
  auto refused = [](std::string rows) {
    auto hardware = Hardware::parse(text + ("measured: {" + rows + "}\n"), "x.yaml");
    return hardware ? "" : llvm::toString(hardware.takeError());
  };
  std::string range = ", numbers up to 2^40, sizes that multiply to at most 2^56, and ns from 1";
  EXPECT_EQ(refused("matmuls: [[f32, nn, 1, 2, 3, 4, 5]], kernels: [], launch: [[7]]"), "");
  EXPECT_EQ(refused("matmuls: [[f32, nn, 1, 2, 3, 4, 5], [f32, nx, 1, 2, 3, 4, 5]]"),
            "x.yaml: 7: measured.matmuls, row 2 is [f32, nx, 1, 2, 3, 4, 5], expected "
            "[f32|f64|bf16|f16, nn|nt|tn|tt, batch, m, n, k, ns]" +
                range);
  EXPECT_EQ(refused("kernels: [[100, 0]]"),
            "x.yaml: 7: measured.kernels, row 1 is [100, 0], expected [bytes, flops, ns]" + range);
  EXPECT_EQ(refused("speeds: [[1]]"), "x.yaml: 7: unknown key 'speeds'");
  // Too few, too many, negative, huge, empty, of other kinds: refused with the row, never read.
  for (const char *rows : {"launch: [[0]]",
                           "launch: [[1, 2]]",
                           "launch: [[]]",
                           "kernels: [[-1, 0, 1]]",
                           "kernels: [[1, 0, 0]]",
                           "kernels: [[99999999999999999999, 0, 1]]",
                           "copies: [[disk, 1, 1]]",
                           "sends: [[1, 3, 1]]",
                           "collectives: [[gather, 1, 2, 1, 1]]",
                           "collectives: [[all_reduce, 1, 1, 1, 1]]",
                           "attentions: [[f32, sideways, 1, 1, 1, 1, 1, 1, 0, 1]]",
                           "attentions: [[f32, forward, 1, 1, 1, 1, 1, 1, 2, 1]]",
                           "convolutions: [[f32, data, 1, 1, 0, 1, 1, 1, 1]]",
                           "together: [[matmul, 0, 1]]",
                           "feeds: [[read, 1, 1]]",
                           "feeds: [[feed, 0, 1]]",
                           "wakeups: [[1]]",
                           "wakeups: [[-1, 1]]",
                           "spread: [[1, 2, 3]]",
                           "matmuls: [[f32, nn, 1, 1099511627776, 1099511627776, 1099511627776, 1]]"})
    EXPECT_NE(refused(rows).find(", row 1 is ["), std::string::npos) << rows << ": " << refused(rows);
  for (const char *rows : {"matmuls: [1]", "matmuls: 1", "matmuls: {a: 1}", "matmuls: [[[1]]]", "launch: 5"})
    EXPECT_NE(refused(rows), "") << rows;
}

/// Bytes of a file that are changed at random are read or refused, and never end the process.
TEST(Hardware, Fuzz) {
  std::string whole = std::string(text) + "ranks: 2\nbetween: {link: 2, latency: 11}\n"
                                          "matmul: {units: 4, tile: [16, 16], depth: 8, overhead: 1}\n"
                                          "attention: {rate: 0.5}\nkernels: {flops: 10}\n"
                                          "measured: {matmuls: [[f32, nn, 1, 2, 3, 4, 5]], launch: [[7]]}\n";
  std::minstd_rand random(1);
  unsigned read = 0;
  for (unsigned i = 0; i < 3000; ++i) {
    std::string changed = whole;
    for (unsigned n = 1 + random() % 3; n > 0; --n) {
      size_t at = random() % changed.size();
      if (random() % 2)
        changed[at] = "0123456789-[]{},: \nax"[random() % 21];
      else
        changed.erase(at, 1 + random() % 4);
    }
    auto hardware = Hardware::parse(changed, "x.yaml");
    read += bool(hardware);
    if (!hardware)
      EXPECT_EQ(llvm::toString(hardware.takeError()).rfind("x.yaml: ", 0), 0u);
  }
  EXPECT_GT(read, 0u);
}

/// Groups of a grid without a look at each rank are those of the ranks, for random meshes, orders of their axes, chosen
/// axes and units.
TEST(Hardware, GroupsOfAGrid) {
  std::mt19937 random(1);
  int known = 0, unknown = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<int64_t> sizes, steps;
    int64_t count = 1;
    for (unsigned axis = 0; axis < 1 + random() % 4; ++axis)
      count *= sizes.emplace_back(1 + random() % 4);
    std::vector<unsigned> order(sizes.size()), chosen;
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    steps.resize(sizes.size());
    int64_t step = 1, first = random() % 3 * count;
    for (unsigned axis : order) {
      steps[axis] = step;
      step *= sizes[axis];
    }
    for (unsigned axis = 0; axis < sizes.size(); ++axis)
      if (random() % 2)
        chosen.push_back(axis);
    Hardware hardware;
    hardware.hostLink = 1;
    hardware.ranks = 1 + random() % 8;
    hardware.wider.push_back({hardware.ranks * int64_t(1 + random() % 4), 1, 0, 0});
    std::vector<int64_t> ranks;
    std::map<std::vector<int64_t>, std::vector<int64_t>> groups; // by the coordinates of the other axes
    for (int64_t place = 0; place < count; ++place) {
      int64_t rest = place, rank = first;
      std::vector<int64_t> others;
      for (unsigned axis = sizes.size(); axis-- > 0; rest /= sizes[axis]) {
        rank += rest % sizes[axis] * steps[axis];
        if (std::find(chosen.begin(), chosen.end(), axis) == chosen.end())
          others.push_back(rest % sizes[axis]);
      }
      ranks.push_back(rank);
      groups[others].push_back(rank);
    }
    std::optional<RankGrid> grid = RankGrid::find(sizes, ranks);
    ASSERT_TRUE(grid.has_value()) << "trial " << trial;
    std::optional<RankGroup> group = grid->groupOf(chosen, hardware);
    ++(group ? known : unknown);
    for (const auto &[others, members] : groups)
      if (RankGroup own = hardware.groupOf(members); group) {
        EXPECT_EQ(group->members, own.members) << "trial " << trial;
        EXPECT_EQ(group->hosts, own.hosts) << "trial " << trial;
        EXPECT_EQ(group->fewest, own.fewest) << "trial " << trial;
        EXPECT_EQ(group->wider, own.wider) << "trial " << trial;
      }
    if (count > 2) {
      std::swap(ranks[1], ranks[count - 1]);
      EXPECT_FALSE(RankGrid::find(sizes, ranks)) << "trial " << trial;
    }
  }
  EXPECT_GT(known, 500);
  EXPECT_GT(unknown, 500);
}

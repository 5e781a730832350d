#include "par/Simulator/Hardware.h"
#include <gtest/gtest.h>

using namespace par;

static const char *text =
    "name: x\npeak: {f32: 1000, f64: 500}\nmemory: 100\nlink: 10\nlatency: 7\nlaunch: 3\n";

TEST(Hardware, Times) {
  Hardware hardware = *Hardware::parse(text, "x.yaml");
  EXPECT_TRUE(hardware.overlap);
  EXPECT_EQ(hardware.localTime(1000000, 10), 3 + 1000000); // bound by FLOP
  EXPECT_EQ(hardware.localTime(1000000, 10, format::DType::F64), 3 + 2000000);
  EXPECT_EQ(hardware.localTime(10, 1001), 3 + 10010); // bound by memory
  EXPECT_EQ(hardware.transferTime(100), 7 + 10000);
  EXPECT_EQ(hardware.collectiveTime(format::CollKind::AllReduce, 100, 4), 4 * 7 + 15000);
  EXPECT_EQ(hardware.collectiveTime(format::CollKind::AllGather, 100, 4), 2 * 7 + 30000);
  EXPECT_EQ(hardware.collectiveTime(format::CollKind::ReduceScatter, 100, 3), 2 * 7 + 20000);
  EXPECT_EQ(hardware.collectiveTime(format::CollKind::Broadcast, 100, 2), 7 + 10000);
  EXPECT_EQ(hardware.collectiveTime(format::CollKind::AllReduce, 100, 1), 0);
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

TEST(Hardware, Errors) {
  auto refused = [](std::string from, std::string to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return llvm::toString(Hardware::parse(changed, "x.yaml").takeError());
  };
  EXPECT_EQ(refused("link: 10\n", ""), "x.yaml: 1: missing required key 'link'");
  EXPECT_EQ(refused("link: 10", "link: 10\nlinks: 10"), "x.yaml: 5: unknown key 'links'");
  EXPECT_EQ(refused("link: 10", "link: 0"), "x.yaml: link is 0, expected more than 0");
  EXPECT_EQ(refused("latency: 7", "latency: -7"), "x.yaml: latency is -7, expected 0 to 2^40");
  EXPECT_EQ(refused("link: 10", "link: 10\ncores: all"), "x.yaml: 5: expected a number of cores, or host");
  EXPECT_EQ(refused("link: 10", "link: 10\nranks: -1"), "x.yaml: ranks is -1, expected 0 to 2^40");
  EXPECT_EQ(refused("link: 10", "link: fast"), "x.yaml: 4: invalid number");
  EXPECT_EQ(llvm::toString(Hardware::find("abacus").takeError()),
            "abacus: no hardware file of this name; there are cpu, h100-sxm, or name a .yaml file");
  EXPECT_EQ(llvm::toString(Hardware::find("/nowhere/a.yaml").takeError()),
            "/nowhere/a.yaml: No such file or directory");
}

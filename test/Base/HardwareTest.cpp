#include "par/Base/Hardware.h"
#include <gtest/gtest.h>

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
            "abacus: no hardware file of this name; there are cpu, h100-sxm, or name a .yaml file");
  EXPECT_EQ(llvm::toString(Hardware::find("/nowhere/a.yaml").takeError()),
            "/nowhere/a.yaml: No such file or directory");
}

// The comparison of ranks before they call NCCL, and the end of a job that NCCL does not join in time.
#include "CudaFixture.h"
#include "cuda/comm/NcclFacts.h"
#include "par/messages/NcclMessages.h"

#include <fstream>
#include <sstream>

using namespace par;
using namespace par::cuda;
using toy::failureOf;

namespace {

const std::vector<Interface> twoPorts = {{"lo", "127.0.0.1"}, {"docker0", "172.17.0.1"}, {"eth0", "10.77.0.1"}};

/// Ranks 0 and 1 on a, 2 and 3 on b, each with a GPU of its own.
std::vector<NcclFacts> fourRanks() {
  std::vector<NcclFacts> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    NcclFacts facts;
    facts.host = rank < 2 ? "a" : "b";
    facts.rank = std::to_string(rank) + " on " + facts.host;
    facts.version = "NCCL 2.28.9";
    facts.gpu = "f" + std::to_string(rank);
    facts.visible = "not set";
    facts.byRendezvous = "eth0";
    facts.interfaces = twoPorts;
    ranks.push_back(facts);
  }
  return ranks;
}

std::string chosen(const std::string &list) {
  std::optional<Interface> interface = chosenByNccl(list, twoPorts);
  return interface ? interface->name : "none";
}

TEST(NcclFacts, suitWhereNothingDiffers) {
  std::vector<NcclFacts> ranks = fourRanks();
  ranks[1].settings = {{"NCCL_DEBUG", "INFO"}, {"NCCL_IB_HCA", "mlx5_0"}}; // each rank's own affair
  NcclVerdict verdict = compare(ranks);
  EXPECT_EQ(verdict.error, "");
  EXPECT_TRUE(verdict.warnings.empty());
}

TEST(NcclFacts, travelWhole) {
  NcclFacts facts = fourRanks()[2];
  facts.settings = {{"NCCL_ALGO", "Ring"}, {"NCCL_DEBUG", ""}};
  NcclFacts there = NcclFacts::read(facts.write());
  EXPECT_EQ(there.write(), facts.write());
  EXPECT_EQ(there.setting("NCCL_ALGO"), "Ring");
  EXPECT_EQ(there.interfaces.at(2).address, "10.77.0.1");
  EXPECT_THROW(NcclFacts::read(facts.write().substr(0, 40)), std::runtime_error);
}

TEST(NcclFacts, versionsMustBeOne) {
  std::vector<NcclFacts> ranks = fourRanks();
  ranks[2].version = ranks[3].version = "NCCL 2.27.5";
  EXPECT_EQ(compare(ranks).error, "rank 2 on b has NCCL 2.27.5, and rank 0 on a has NCCL 2.28.9; all hosts need one "
                                  "version (PAR_NCCL_LIBRARY names the file)");
}

TEST(NcclFacts, settingsMustAgree) {
  for (const char *name : {"NCCL_ALGO", "NCCL_PROTO", "NCCL_IB_DISABLE", "NCCL_P2P_DISABLE", "NCCL_BUFFSIZE"}) {
    std::vector<NcclFacts> ranks = fourRanks();
    ranks[3].settings[name] = "1";
    EXPECT_EQ(compare(ranks).error, std::string(name) + " is 1 for rank 3 on b, and not set for rank 0 on a; NCCL "
                                                        "hangs where ranks differ in it: give all one value");
    for (NcclFacts &rank : ranks)
      rank.settings[name] = "1";
    EXPECT_EQ(compare(ranks).error, "");
  }
}

/// The id of such a job is no secret.
TEST(NcclFacts, anAddressOfTheUserIsRefused) {
  std::vector<NcclFacts> ranks = fourRanks();
  for (NcclFacts &rank : ranks)
    rank.settings["NCCL_COMM_ID"] = "10.77.0.1:4000";
  EXPECT_EQ(compare(ranks).error, "NCCL_COMM_ID is set for rank 0 on a: NCCL would take whoever comes to that "
                                  "address; unset it");
}

TEST(NcclFacts, twoRanksOnOneGpuAreNamed) {
  std::vector<NcclFacts> ranks = fourRanks();
  ranks[3].gpu = ranks[2].gpu;
  ranks[2].visible = "1";
  ranks[3].visible = "1,0";
  EXPECT_EQ(compare(ranks).error, "rank 2 on b and rank 3 on b have one GPU (f2); NCCL needs a GPU for each rank: "
                                  "CUDA_VISIBLE_DEVICES is 1 and 1,0");
  for (NcclFacts &rank : ranks)
    rank.settings["NCCL_MULTI_RANK_GPU_ENABLE"] = "1";
  EXPECT_EQ(compare(ranks).error, "");
}

TEST(NcclFacts, interfacesAreChosenAsNcclDoes) {
  EXPECT_EQ(chosen(""), "eth0");
  EXPECT_EQ(chosen("e"), "eth0"); // as if it were not set
  EXPECT_EQ(chosen("docker,eth"), "docker0");
  EXPECT_EQ(chosen("=eth0"), "eth0");
  EXPECT_EQ(chosen("=eth"), "none");
  EXPECT_EQ(chosen("^lo"), "docker0");
  EXPECT_EQ(chosen("^lo,docker"), "eth0");
  EXPECT_EQ(chosen("^=docker0,lo"), "eth0");
  EXPECT_EQ(chosen("ib"), "none");
  EXPECT_EQ(chosenByNccl("", {{"eth0", "10.0.0.1"}, {"ib0", "10.1.0.1"}})->name, "ib0");
  EXPECT_EQ(chosenByNccl("", {{"lo", "127.0.0.1"}, {"docker0", "172.17.0.1"}})->name, "docker0");
  EXPECT_EQ(chosenByNccl("", {{"lo", "127.0.0.1"}})->name, "lo");
}

TEST(NcclFacts, anInterfaceThatIsNotThereIsNamed) {
  std::vector<NcclFacts> ranks = fourRanks();
  ranks[2].settings["NCCL_SOCKET_IFNAME"] = "=eth7";
  EXPECT_EQ(compare(ranks).error, "NCCL_SOCKET_IFNAME==eth7 of rank 2 on b names no interface of its host, which has "
                                  "lo (127.0.0.1), docker0 (172.17.0.1), eth0 (10.77.0.1); the rendezvous came by "
                                  "eth0: NCCL_SOCKET_IFNAME=eth0");
  ranks[2].byRendezvous = "";
  EXPECT_TRUE(compare(ranks).error.ends_with("eth0 (10.77.0.1)"));
}

TEST(NcclFacts, anInterfaceThatDoesNotLeadOutIsNamed) {
  std::vector<NcclFacts> ranks = fourRanks();
  ranks[1].settings["NCCL_SOCKET_IFNAME"] = "lo";
  EXPECT_EQ(compare(ranks).error, "NCCL of rank 1 on a would listen on lo (127.0.0.1), which other hosts do not "
                                  "reach; the rendezvous came by eth0: NCCL_SOCKET_IFNAME=eth0");
  for (NcclFacts &rank : ranks) // on one host it may
    rank.host = "a";
  EXPECT_EQ(compare(ranks).error, "");
}

TEST(NcclFacts, anotherInterfaceThanTheRendezvousIsDoubted) {
  std::vector<NcclFacts> ranks = fourRanks();
  for (int rank : {2, 3})
    ranks[rank].settings["NCCL_SOCKET_IFNAME"] = "docker";
  NcclVerdict verdict = compare(ranks);
  EXPECT_EQ(verdict.error, "");
  ASSERT_EQ(verdict.warnings.size(), 1u);
  EXPECT_EQ(verdict.warnings[0], "NCCL of rank 2 on b listens on docker0 (172.17.0.1), and the rendezvous came by "
                                 "eth0; if ranks do not find each other, set NCCL_SOCKET_IFNAME=eth0");
}

TEST(NcclFacts, unevenHostsAreSaid) {
  std::vector<NcclFacts> ranks = fourRanks();
  ranks.pop_back();
  NcclVerdict verdict = compare(ranks);
  EXPECT_EQ(verdict.error, "");
  ASSERT_EQ(verdict.warnings.size(), 1u);
  EXPECT_EQ(verdict.warnings[0], "hosts have different numbers of ranks (a 2, b 1); NCCL then uses as many channels "
                                 "everywhere as the host with the fewest allows");
}

class NcclTest : public toy::Cuda {
protected:
  void SetUp() override {
    toy::Cuda::SetUp();
    setenv("NCCL_CONF_FILE", "/dev/null", 1);
  }
  void TearDown() override {
    for (const char *name : {"NCCL_CONF_FILE", "NCCL_SOCKET_IFNAME", "NCCL_COMM_ID", "PAR_NCCL_CHECK", "PAR_NCCL_START",
                             "CUDA_VISIBLE_DEVICES"})
      unsetenv(name);
  }
  static std::string failure() {
    return failureOf([] { toy::runOn("cuda nccl", toy::pipeline(1), [](core::Session &) {}); });
  }
};

TEST_F(NcclTest, theEnvironmentGoesBeforeTheFile) {
  std::string file = std::filesystem::temp_directory_path() / ("par-nccl-conf-" + std::to_string(getpid()));
  std::ofstream(file) << "# of the site\nNCCL_SOCKET_IFNAME==eth1\nNCCL_ALGO=Tree\n";
  setenv("NCCL_CONF_FILE", file.c_str(), 1);
  setenv("NCCL_ALGO", "Ring", 1);
  std::map<std::string, std::string> settings = ncclSettings();
  unsetenv("NCCL_ALGO");
  std::filesystem::remove(file);
  EXPECT_EQ(settings["NCCL_SOCKET_IFNAME"], "=eth1");
  EXPECT_EQ(settings["NCCL_ALGO"], "Ring");
}

TEST_F(NcclTest, whatDoesNotSuitEndsTheJobBeforeNcclIsCalled) {
  setenv("NCCL_SOCKET_IFNAME", "=nosuch0", 1);
  std::string text = failure();
  EXPECT_TRUE(text.starts_with("toy.par: error: NCCL_SOCKET_IFNAME==nosuch0 of rank 0 names no interface")) << text;
  EXPECT_TRUE(text.ends_with("\n  note: PAR_NCCL_CHECK=0 goes on all the same")) << text;
  EXPECT_EQ(count("ncclCommInitRankConfig"), 0u);
  setenv("PAR_NCCL_CHECK", "0", 1);
  EXPECT_EQ(failure(), "");
  EXPECT_EQ(count("ncclCommInitRankConfig"), 2u);
}

TEST_F(NcclTest, whatIsDoubtfulIsRemarked) {
  setenv("NCCL_SOCKET_IFNAME", "=nosuch0", 1);
  setenv("PAR_NCCL_CHECK", "0", 1);
  std::string remark;
  toy::runOn("cuda nccl", toy::pipeline(1), [&](core::Session &session) {
    if (session.rank() == 0)
      remark = session.onDevice().remark();
  });
  EXPECT_NE(remark.find("warning: NCCL_SOCKET_IFNAME==nosuch0 of rank 0 names no interface"), std::string::npos)
      << remark;
}

/// An error on one rank ends all, which wait for it in NCCL.
TEST_F(NcclTest, anErrorOfOneRankEndsAll) {
  machine.reset("ncclCommInitRankConfig:2:2");
  std::string text = failure();
  EXPECT_NE(text.find("toy.par: error: communicator \"world\" of rank "), std::string::npos) << text;
  EXPECT_NE(text.find(" failed, ncclCommInitRankConfig: unhandled system error"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  note: rank 0's NCCL listens on "), std::string::npos) << text;
  EXPECT_NE(text.find("), at ports that the system chooses: each host must reach it"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  note: NCCL_DEBUG=INFO shows what NCCL does"), std::string::npos) << text;
  EXPECT_EQ(count("ncclCommAbort"), 1u); // of the rank that waited
}

TEST_F(NcclTest, aStartThatDoesNotEndIsNamed) {
  setenv("PAR_NCCL_START", "0.3", 1);
  machine.reset("hang:1"); // the first send that connects two ranks
  testing::internal::CaptureStderr();
  int code = toy::runOn("cuda nccl", toy::pipeline(1), [](core::Session &) {});
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(code, 4);
  EXPECT_NE(text.find("toy.par: error: communicator \"pb\" of rank "), std::string::npos) << text;
  EXPECT_NE(text.find(" is not made after 0.3 s (PAR_NCCL_START); it waits in its first sends and receives"),
            std::string::npos)
      << text;
}

TEST_F(NcclTest, moreRanksThanVisibleGpusAreNamed) {
  setenv("CUDA_VISIBLE_DEVICES", "3,5", 1);
  std::string text = failureOf([] { toy::runOn("cuda nccl", toy::pipeline(2), [](core::Session &) {}); });
  EXPECT_NE(text.find(" (from 0) on its host, which has 2 GPUs\n  note: CUDA_VISIBLE_DEVICES is 3,5 there"),
            std::string::npos)
      << text;
  setenv("CUDA_VISIBLE_DEVICES", "3", 1);
  text = failure();
  EXPECT_NE(text.find("rank 0 and rank 1 have one GPU ("), std::string::npos) << text;
}

/// The longest piece of a sentence between values.
std::string longestPiece(const std::string &sentence) {
  std::string longest;
  for (size_t at = 0; at <= sentence.size();) {
    size_t end = std::min(sentence.find("{}", at), sentence.size());
    if (end - at > longest.size())
      longest = sentence.substr(at, end - at);
    at = end + 2;
  }
  return longest;
}

/// The C++ tests of this folder, adjacent string literals joined, and the rest as it stands.
std::string textOfTests() {
  std::string text;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(PAR_TEST_CUDA)) {
    if (!entry.is_regular_file())
      continue;
    std::ostringstream one;
    one << std::ifstream(entry.path()).rdbuf();
    std::string all = one.str();
    for (size_t i = 0; i < all.size(); ++i) {
      size_t next = all[i] == '"' ? all.find_first_not_of(" \n", i + 1) : all.npos;
      if (next != all.npos && all[next] == '"')
        i = next;
      else
        text += all[i];
    }
  }
  return text;
}

TEST(NcclMessages, eachIsQuotedByATest) {
  std::string tests = textOfTests();
  for (const core::MessageText &sentence : ncclSentences)
    EXPECT_NE(tests.find(longestPiece(std::string(sentence.text))), std::string::npos)
        << sentence.key << " is quoted by no test";
}

} // namespace

// Several ranks on the stub GPU, sharing it or over the stub NCCL: the numbers of the CPU device, and errors of
// communication.
#include "CudaFixture.h"

using namespace par;
using toy::failureOf;

namespace {

class CommTest : public toy::Cuda {
protected:
  void TearDown() override {
    unsetenv("PAR_CUDA_STALL");
    unsetenv("PAR_STUB_NCCL_VERSION");
  }
};

std::vector<float> floatsOf(core::Session &session, const std::string &tensor) {
  core::HostBytes bytes = session.tensor(tensor);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// Three steps: every rank's state, by rank and name, and the bytes it has sent.
using States = std::map<std::string, std::vector<float>>;
States threeSteps(const std::string &device, const format::Bundle &bundle) {
  toy::SineRows rows(3 * bundle.manifest.batch,
                     bundle.manifest.inputs.empty() ? 4 : bundle.manifest.inputs[0].shape[1]);
  core::RowOrder order(rows.rows(), false, 0);
  States states;
  std::mutex mutex;
  toy::runOn(device, bundle, [&](core::Session &session) {
    session.initialize(nullptr, 5);
    std::vector<float> fetched;
    session.onResult([&](const format::Output &, int64_t, std::span<const std::byte> bytes) {
      for (size_t i = 0; i + sizeof(float) <= bytes.size(); i += sizeof(float)) {
        float value;
        std::memcpy(&value, bytes.data() + i, sizeof value);
        fetched.push_back(value);
      }
    });
    for (uint64_t step = 0; step < 3; ++step)
      session.run("train", {&rows, &order, step * bundle.manifest.batch});
    std::lock_guard held(mutex);
    std::string rank = std::to_string(session.rank());
    for (const format::Tensor &tensor : bundle.manifest.tensors)
      states[rank + " " + tensor.name] = floatsOf(session, tensor.name);
    states[rank + " fetched"] = fetched;
    states[rank + " sent"] = {static_cast<float>(session.sentBytes())};
  });
  return states;
}

TEST_F(CommTest, computesWhatTheCpuComputes) {
  for (const format::Bundle &bundle : {toy::pipeline(1), toy::pipeline(2), toy::allReduce(4), toy::groups()}) {
    States expected = threeSteps("cpu", bundle);
    ASSERT_FALSE(expected.empty());
    for (const char *device : {"cuda", "cuda nccl"})
      for (const char *graphs : {"0", "1"})
        for (uint64_t seed = 1; seed <= 5; ++seed) {
          setenv("PAR_CUDA_GRAPHS", graphs, 1);
          machine.reset("", seed);
          EXPECT_EQ(threeSteps(device, bundle), expected) << device << ", graphs " << graphs << ", seed " << seed
                                                          << ", " << bundle.manifest.ranks.size() << " ranks";
        }
  }
}

/// The test above can fail: a program without one of its waits gives other numbers in some order.
TEST_F(CommTest, aForgottenWaitShows) {
  setenv("PAR_CUDA_GRAPHS", "0", 1);
  format::Bundle bundle = toy::allReduce(2);
  States expected = threeSteps("cpu", bundle);
  auto &instructions = bundle.programs[0].blocks[0].instructions;
  std::erase_if(instructions, [&](const format::Instruction &it) {
    return it.op == format::Op::Wait && bundle.programs[0].events[it.event].name == "reduced";
  });
  size_t different = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    machine.reset("", seed);
    different += threeSteps("cuda", bundle) != expected;
  }
  EXPECT_GT(different, 0u);
}

TEST_F(CommTest, capturesWhatDoesNotCommunicate) {
  setenv("PAR_CUDA_GRAPHS", "1", 1);
  threeSteps("cuda", toy::pipeline(1));
  // Stage 1's block of three matmuls, with two slots, is captured twice, and launched for microbatches 0 to 3.
  EXPECT_GT(count("cuGraphLaunch", "rank 1"), 4u);
  EXPECT_LT(count("cuGraphInstantiate", "rank 1"), count("cuGraphLaunch", "rank 1"));
}

TEST_F(CommTest, communicatorsAreSplitInTableOrderAndConnected) {
  toy::runOn("cuda nccl", toy::pipeline(2), [](core::Session &) {});
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<std::string> calls;
    for (const stub::Call &call : machine.calls("rank " + std::to_string(rank)))
      if (call.name.starts_with("nccl") && call.name != "ncclGetUniqueId" && call.name != "ncclCommFinalize" &&
          call.name != "ncclCommDestroy")
        calls.push_back(call.name + " " + call.arguments.substr(0, call.arguments.find(" member")));
    ASSERT_EQ(calls.size(), 10u);
    std::string color = std::to_string(rank % 2), key = std::to_string(rank / 2);
    std::string stage = std::to_string(rank / 2), copy = std::to_string(rank % 2);
    EXPECT_EQ(calls[0], "ncclCommInitRankConfig " + std::to_string(rank) + " of 4");
    EXPECT_EQ(calls[1], "ncclCommSplit world color " + color + " key " + key);  // pf
    EXPECT_EQ(calls[2], "ncclCommSplit world color " + color + " key " + key);  // pb
    EXPECT_EQ(calls[3], "ncclCommSplit world color " + stage + " key " + copy); // dp
    // One element to and from the peer on pf, then on pb; nothing is sent on dp.
    EXPECT_TRUE(calls[4].starts_with("ncclSend split")) << calls[4];
    EXPECT_TRUE(calls[5].starts_with("ncclRecv split")) << calls[5];
    EXPECT_EQ(calls[6], "ncclGroupEnd 2");
    EXPECT_TRUE(calls[7].starts_with("ncclSend split")) << calls[7];
    EXPECT_NE(calls[4].substr(4), calls[7].substr(4));
  }
}

TEST_F(CommTest, aRemoteErrorEndsTheJob) {
  setenv("PAR_CUDA_GRAPHS", "0", 1);
  machine.reset("nccl:12:6");
  int code = 0;
  std::string text;
  try {
    threeSteps("cuda nccl", toy::pipeline(1));
  } catch (const core::Failure &failure) {
    text = failure.what();
    code = failure.exitCode();
  }
  EXPECT_EQ(code, 4);
  EXPECT_TRUE(text.starts_with("toy.par: error: communicator \"")) << text;
  EXPECT_NE(text.find(" failed, while a step ran: remote process exited or there was a network error\n"
                      "  note: stub: peer closed the connection"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\n  note: rank "), std::string::npos) << text;
  EXPECT_NE(text.find(" waited for stage"), std::string::npos) << text;
  // No communicator is left: all were aborted. Two ranks have that of all ranks, and both that are used.
  EXPECT_EQ(count("ncclCommAbort"), 6u);
}

TEST_F(CommTest, aHangIsNamed) {
  setenv("PAR_CUDA_GRAPHS", "0", 1);
  setenv("PAR_CUDA_STALL", "0.3", 1);
  machine.reset("hang:9");
  std::string text = failureOf([] { threeSteps("cuda nccl", toy::pipeline(1)); });
  EXPECT_TRUE(text.starts_with("toy.par: error: rank ")) << text;
  EXPECT_NE(text.find(" has not moved for 0.3 s; it waits for stage"), std::string::npos) << text;
  EXPECT_NE(text.find(" of 8 f32 with tag "), std::string::npos) << text;
}

TEST_F(CommTest, oldLibrariesAndGpusAreRefused) {
  setenv("PAR_STUB_NCCL_VERSION", "22304", 1);
  EXPECT_EQ(failureOf([] { threeSteps("cuda nccl", toy::allReduce(2)); }),
            "error: " PAR_STUB_NCCL ": NCCL is version 2.23.4, and 2.26.0 or later is needed");
  unsetenv("PAR_STUB_NCCL_VERSION");
  format::Bundle bundle = toy::allReduce(1);
  bundle.manifest.needs = {"sm: 100"};
  EXPECT_EQ(failureOf([&] { threeSteps("cuda", bundle); }),
            "toy.par: error: this bundle is for sm_100 and Stub is sm_90; compile it again for that");
}

TEST_F(CommTest, anErrorAtTheStartIsSaid) {
  machine.reset("ncclCommSplit:2:5");
  std::string text = failureOf([] { threeSteps("cuda nccl", toy::pipeline(1)); });
  EXPECT_NE(text.find("toy.par: error: communicator \"world\" of rank "), std::string::npos) << text;
  EXPECT_NE(text.find(" failed, ncclCommSplit: invalid usage"), std::string::npos) << text;
}

TEST_F(CommTest, communicationsThatDoNotMatchAreNamed) {
  format::Bundle bundle = toy::groups();
  for (format::Instruction &it : bundle.programs[1].blocks[0].instructions)
    if (it.op == format::Op::Coll && it.tag == 1)
      it.tag = 9;
  std::string text = failureOf([&] { threeSteps("cuda", bundle); });
  EXPECT_TRUE(text == "toy.par: error: rank0/step:5: tag 1 on communicator \"dp\" meets tag 9" ||
              text == "toy.par: error: rank1/step:5: tag 9 on communicator \"dp\" meets tag 1")
      << text;
}

} // namespace

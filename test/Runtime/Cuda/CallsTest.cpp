// The CUDA backend without a GPU: the calls and arguments of 8 ranks of dp 2 x pp 2 x tp 2 are compared with their
// programs, instruction by instruction.
#include "CudaFixture.h"
#include "par/format/Sha256.h"

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace par;

namespace {

/// The bundle's kernels exist in name only: as generated ones, they are entries of a PTX file.
std::string withKernels(format::Bundle &bundle) {
  std::string folder = std::filesystem::temp_directory_path() / ("par-calls-" + std::to_string(getpid()) + ".par");
  std::filesystem::create_directories(folder);
  std::ostringstream ptx;
  ptx << ".version 8.4\n.target sm_90\n.address_size 64\n";
  std::set<std::string> written;
  for (format::Program &program : bundle.programs)
    for (format::Kernel &kernel : program.kernels) {
      kernel.builtin = false;
      kernel.launch = {{7, 2, 1}, {128, 1, 1}, 64 << 10};
      if (!written.insert(kernel.symbol).second)
        continue;
      ptx << ".visible .entry " << kernel.symbol << "(";
      for (size_t i = 0; i < kernel.operands.size() + kernel.imms; ++i)
        ptx << (i ? ", " : "") << ".param .u64 p" << i;
      ptx << ") { ret; }\n";
    }
  std::ofstream(folder + "/kernels.ptx") << ptx.str();
  bundle.manifest.files = {{"kernels.ptx", ptx.str().size(), format::sha256(ptx.str())}};
  return folder;
}

/// Numbers that are whatever they are, but always the same for the same thing: streams of queues, events of
/// slots, communicators.
class Names {
public:
  bool agree(const std::string &thing, const std::string &name) {
    auto [place, isNew] = nameOf.try_emplace(thing, name);
    if (isNew && !taken.insert(name).second)
      return false;
    return place->second == name;
  }

private:
  std::map<std::string, std::string> nameOf;
  std::set<std::string> taken;
};

/// Walks one rank's calls beside its program.
class Follower {
public:
  Follower(std::vector<stub::Call> given, const format::Program &program, const core::ExpandedEntry &entry)
      : program(program), entry(entry) {
    for (stub::Call &call : given)
      if (call.name != "cuEventQuery" && call.name != "cuEventCreate")
        calls.push_back(std::move(call));
  }

  void follow() {
    forkAll();
    for (const core::Command &step : entry.steps)
      if (!testing::Test::HasFailure())
        one(step);
    if (testing::Test::HasFailure())
      return;
    size_t queues = program.queues.size();
    for (size_t i = 1; i < queues; ++i) {
      expect("cuEventRecord");
      expect("cuStreamWaitEvent");
    }
    expect("cuEventRecord"); // the end of the entry
    EXPECT_EQ(at, calls.size()) << calls[std::min(at, calls.size() - 1)].name;
  }
  size_t followed() const { return at; }

private:
  void forkAll() {
    expect("cuEventRecord");
    for (size_t i = 1; i < program.queues.size(); ++i)
      expect("cuStreamWaitEvent");
  }

  /// The words of the next call's arguments, which must be one of `name`.
  std::vector<std::string> expect(const std::string &name, const char *id = "begin or end") {
    std::vector<std::string> words;
    if (at >= calls.size()) {
      ADD_FAILURE() << id << ": no call is left, expected " << name;
      return words;
    }
    EXPECT_EQ(calls[at].name, name) << id << ", call " << at << ": " << calls[at].arguments;
    std::istringstream text(calls[at++].arguments);
    for (std::string word; text >> word;)
      words.push_back(word);
    return words;
  }

  std::string after(const std::vector<std::string> &words, const std::string &key) {
    auto place = std::find(words.begin(), words.end(), key);
    return place == words.end() || place + 1 == words.end() ? "" : place[1];
  }

  static std::string hex(const void *pointer) {
    std::ostringstream out;
    out << std::hex << reinterpret_cast<uintptr_t>(pointer);
    return out.str();
  }

  void onQueue(const std::vector<std::string> &words, const core::Command &step) {
    EXPECT_TRUE(streams.agree("queue " + std::to_string(step.queue), after(words, "stream"))) << step.id;
  }

  void one(const core::Command &step) {
    using format::Op;
    void *const *operands = entry.pointers.data() + step.operands;
    switch (step.op) {
    case Op::Kernel: {
      auto words = expect("cuLaunchKernel", step.id);
      const format::Kernel &kernel = program.kernels[step.instruction->kernel];
      std::vector<std::string> wanted{kernel.symbol, "7", "2",     "1",      "128",
                                      "1",           "1", "65536", "stream", after(words, "stream")};
      for (size_t i = 0; i < kernel.operands.size(); ++i)
        wanted.push_back(hex(operands[i]));
      EXPECT_EQ(words, wanted) << step.id;
      return onQueue(words, step);
    }
    case Op::Call: {
      auto words = expect("cublasLtMatmul", step.id);
      const format::Call &call = program.calls[step.instruction->call];
      EXPECT_EQ(words.at(0) + " " + words.at(1) + " " + words.at(2),
                std::to_string(call.m) + " " + std::to_string(call.n) + " " + std::to_string(call.k))
          << step.id;
      return onQueue(words, step);
    }
    case Op::Copy: {
      auto words = expect("cuMemcpyAsync", step.id);
      EXPECT_EQ(words.at(0) + " " + words.at(1), hex(operands[1]) + " " + hex(operands[0])) << step.id;
      return onQueue(words, step);
    }
    case Op::Fill: {
      auto words = expect(step.value == 0 ? "cuMemsetD8Async" : "cuMemsetD32Async", step.id);
      EXPECT_EQ(words.at(0), hex(operands[0])) << step.id;
      return onQueue(words, step);
    }
    case Op::Signal:
    case Op::Wait:
      return event(step);
    case Op::Feed:
    case Op::Fetch: {
      auto words = expect(step.op == Op::Feed ? "cuMemcpyHtoDAsync" : "cuMemcpyDtoHAsync", step.id);
      EXPECT_EQ(words.at(0) + " " + words.at(1), hex(operands[0]) + " " + std::to_string(step.bytes)) << step.id;
      return onQueue(words, step);
    }
    default:
      return communication(step);
    }
  }

  void event(const core::Command &step) {
    if (step.op == format::Op::Wait && step.awaited < 0)
      return;
    const format::Instruction &it = *step.instruction;
    auto words = expect(step.op == format::Op::Wait ? "cuStreamWaitEvent" : "cuEventRecord", step.id);
    uint32_t slot = format::slotOf(it.eventSlot, program.events[it.event].depth, entry.runs[step.run]);
    EXPECT_TRUE(events.agree(program.events[it.event].name + "@" + std::to_string(slot), after(words, "event")))
        << step.id;
    onQueue(words, step);
  }

  void communication(const core::Command &step) {
    for (uint32_t i = 0; i < step.units; ++i) {
      const comm::Communication &c = entry.communications[step.firstUnit + i];
      bool collective = c.op == format::Op::Coll;
      auto words = expect(collective ? "ncclAllReduce" : c.op == format::Op::Send ? "ncclSend" : "ncclRecv", c.id);
      if (words.empty())
        return;
      EXPECT_TRUE(communicators.agree(std::to_string(c.communicator), words[0])) << c.id;
      EXPECT_EQ(after(words, "n"), std::to_string(c.n)) << c.id;
      EXPECT_EQ(after(words, "type"), "7") << c.id;
      EXPECT_EQ(after(words, "op"), "0") << c.id;
      EXPECT_EQ(after(words, "peer"), std::to_string(c.peer)) << c.id;
      onQueue(words, step);
    }
    EXPECT_EQ(expect("ncclGroupEnd", step.id).at(0), std::to_string(step.units)) << step.id;
    onQueue(expect("cuEventRecord", step.id), step); // names it if it stands still
  }

  const format::Program &program;
  const core::ExpandedEntry &entry;
  std::vector<stub::Call> calls;
  size_t at = 0;
  Names streams, events, communicators;
};

class CallsTest : public toy::Cuda {};

TEST_F(CallsTest, areThoseOfTheProgram) {
  format::Bundle bundle = toy::stack({});
  ASSERT_EQ(bundle.manifest.ranks.size(), 8u);
  std::string folder = withKernels(bundle);
  toy::SineRows rows(2 * bundle.manifest.batch, 16);
  core::RowOrder order(rows.rows(), false, 0);
  size_t followed = 0;
  std::mutex mutex;
  toy::runOn(
      "cuda nccl", bundle,
      [&](core::Session &session) {
        std::string rank = "rank " + std::to_string(session.rank());
        size_t before = machine.calls(rank).size();
        session.run("train", {&rows, &order, 0});
        std::vector<stub::Call> calls = machine.calls(rank);
        calls.erase(calls.begin(), calls.begin() + static_cast<long>(before));
        // Calls that prepare an entry come before its first one.
        while (!calls.empty() && calls.front().name != "cuEventRecord")
          calls.erase(calls.begin());
        const format::Program &program = bundle.programs[bundle.manifest.ranks[session.rank()].role];
        std::lock_guard held(mutex);
        Follower follower(std::move(calls), program, session.lastEntry());
        follower.follow();
        followed += follower.followed();
      },
      folder);
  std::filesystem::remove_all(folder);
  EXPECT_GT(followed, 8 * 100u);
  RecordProperty("calls", static_cast<int>(followed));
}

// A file of the folder that is not listed is not run, nor one that took a listed file's place after it was checked.
TEST_F(CallsTest, areOfListedKernelsOnly) {
  format::Bundle bundle = toy::stack({});
  std::string folder = withKernels(bundle), ptx = folder + "/kernels.ptx";
  auto made = [&] {
    try {
      toy::runOn("cuda nccl", bundle, [](core::Session &) {}, folder);
    } catch (const core::Failure &failure) {
      return std::string(failure.what());
    }
    return std::string("well");
  };
  std::ofstream(folder + "/kernels-sm" + std::to_string(machine.sm) + ".cubin") << "a stranger's";
  EXPECT_EQ(made(), "well");
  std::fstream(ptx, std::ios::in | std::ios::out) << '/';
  EXPECT_EQ(made(), ptx + ": error: its SHA-256 is not that of the manifest");
  bundle.manifest.files.clear();
  EXPECT_EQ(made(), ptx + ": error: is not in the manifest's list of files, so its content is not known");
  std::filesystem::remove_all(folder);
}

} // namespace

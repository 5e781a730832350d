#include "CudaFixture.h"

#include "par/app/Devices.h"

#include <filesystem>
#include <fstream>

namespace par::toy {

std::string builtinImageFile() {
  static const std::string path = [] {
    std::string file = std::filesystem::temp_directory_path() / ("par-builtins-" + std::to_string(getpid()));
    // As much of a fatbin as the stub looks at.
    std::ofstream(file, std::ios::binary) << "\x50\xed\x55\xba";
    return file;
  }();
  return path;
}

int runOn(const std::string &device, const format::Bundle &bundle, const std::function<void(core::Session &)> &body,
          const std::string &folder) {
  comm::Launch launch;
  launch.bundle = "toy.par";
  launch.bundleRanks = static_cast<uint32_t>(bundle.manifest.ranks.size());
  launch.n = launch.bundleRanks;
  launch.transport = comm::Transport::inproc;
  std::mutex mutex;
  std::optional<core::Failure> first;
  int code = comm::run(launch, [&](comm::Control &control) {
    try {
      stub::Machine::get().nameThread("rank " + std::to_string(control.rank()));
      core::SessionOptions options;
      options.comm = device == "cuda nccl" ? "nccl" : "inproc";
      options.tuning.times = device.starts_with(
          "cuda tuned "); // TuningTest.cpp: elsewhere a program's work is counted from its first piece on
      if (options.tuning.times)
        options.tuning.read = options.tuning.write = device.substr(std::string("cuda tuned ").size());
      core::Session session(bundle, folder, control, core::deviceNamed(device.substr(0, device.find(' '))), options);
      body(session);
      return 0;
    } catch (const core::Failure &failure) {
      {
        std::lock_guard held(mutex);
        if (!first)
          first = failure;
      }
      control.fail(failure.exitCode(), failure.what());
    }
  });
  if (first)
    throw *first;
  return code;
}

namespace {

/// Tokens made up from their place.
class Tokens : public core::Dataset {
public:
  uint64_t rows() const override { return 64; }
  std::string describe() const override { return "tokens"; }
  bool has(const std::string &) const override { return true; }
  std::string feeds() const override { return "tokens feed all"; }
  const std::byte *row(const format::Input &, uint64_t, std::vector<std::byte> &) const override {
    return reinterpret_cast<const std::byte *>(values.data());
  }
  const std::byte *whole(const format::Input &) const override {
    return reinterpret_cast<const std::byte *>(values.data());
  }

private:
  std::vector<int64_t> values = std::vector<int64_t>(1024, 5);
};

} // namespace

std::vector<float> trainOn(const std::string &device, const format::Bundle &bundle) {
  Tokens tokens;
  core::RowOrder order(tokens.rows(), false, 0);
  std::vector<float> values;
  runOn(device, bundle, [&](core::Session &session) {
    session.initialize(nullptr, 5);
    for (uint64_t step = 0; step < steps; ++step) {
      session.setHyper("lr", 0.1 / static_cast<double>(step + 1));
      session.run("train", {&tokens, &order, 0});
      if (session.rank() == 0)
        values.push_back(static_cast<float>(session.results().at("loss")));
    }
    if (session.rank() != 0)
      return;
    core::HostBytes w = session.tensor("w");
    size_t before = values.size();
    values.resize(before + w.size() / sizeof(float));
    std::memcpy(values.data() + before, w.data(), w.size());
  });
  return values;
}

std::vector<uint8_t> filled(format::DType type, double value) {
  format::Bundle bundle = toy::training();
  format::Program &program = bundle.programs[0];
  // One more state buffer would move all others: a program of its own, with one fill.
  ProgramBuilder b("fill", {"compute"});
  b.buffer("w", format::BufferKind::State, {4}, format::Index::None, 1, "w");
  b.program.buffers[0].type = type;
  b.program.arena.state = 256;
  b.block("fill");
  b.fill("compute", 4, value, "w");
  b.run("train", "fill");
  program = b.program;
  bundle.manifest.tensors.resize(1);
  bundle.manifest.tensors[0].type = type;
  bundle.manifest.hypers.clear();
  std::vector<uint8_t> first, bytes;
  runOn("cuda", bundle, [&](core::Session &session) {
    session.run("train", {});
    core::HostBytes w = session.tensor("w");
    bytes.assign(reinterpret_cast<const uint8_t *>(w.data()), reinterpret_cast<const uint8_t *>(w.data()) + w.size());
  });
  size_t size = format::sizeOf(type);
  first.assign(bytes.begin(), bytes.begin() + static_cast<long>(size));
  for (size_t i = size; i < bytes.size(); ++i)
    EXPECT_EQ(bytes[i], bytes[i - size]) << "element " << i / size << " differs";
  return first;
}

} // namespace par::toy

// Runs a bundle on made-up data and tells what came out.
#include "Simulate.h"
#include "par/app/Devices.h"
#include "par/comm/job/Launch.h"
#include "par/messages/Failure.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <sys/wait.h>
#include <unistd.h>

using namespace par;
using namespace par::toy;

/// Writes element `n` of an input.
static void makeUp(const format::Input &input, uint64_t n, std::byte *to) {
  uint64_t mixed = (n + 1) * 0x9e3779b97f4a7c15u;
  int64_t limit = INT64_MAX;
  for (const format::Limits &run : input.limits)
    limit = run.limit > 0 ? std::min(limit, run.limit) : limit;
  limit = limit == INT64_MAX ? 2 : limit;
  auto integer = static_cast<int64_t>((mixed >> 32) % static_cast<uint64_t>(limit));
  double real = std::sin(1.0 + static_cast<double>(n));
  auto put = [&](auto value) { std::memcpy(to, &value, sizeof value); };
  switch (input.type) {
  case format::DType::F32:
    return put(static_cast<float>(real));
  case format::DType::F64:
    return put(real);
  case format::DType::I64:
    return put(integer);
  case format::DType::I32:
    return put(static_cast<int32_t>(integer));
  case format::DType::I1:
    return put(static_cast<uint8_t>(mixed >> 63));
  default:
    std::memset(to, static_cast<int>(integer), format::sizeOf(input.type));
  }
}

static void makeUp(const format::Input &input, uint64_t first, uint64_t count, std::vector<std::byte> &to) {
  to.resize(count * format::sizeOf(input.type));
  for (uint64_t i = 0; i < count; ++i)
    makeUp(input, first + i, to.data() + i * format::sizeOf(input.type));
}

const std::byte *MadeUpRows::row(const format::Input &input, uint64_t row, std::vector<std::byte> &scratch) const {
  uint64_t elements = 1;
  for (size_t dim = 1; dim < input.shape.size(); ++dim)
    elements *= static_cast<uint64_t>(input.shape[dim]);
  makeUp(input, row * elements, elements, scratch);
  return scratch.data();
}

const std::byte *MadeUpRows::whole(const format::Input &input) const {
  uint64_t elements = 1;
  for (int64_t size : input.shape)
    elements *= static_cast<uint64_t>(size);
  makeUp(input, 0, elements, wholeInput);
  return wholeInput.data();
}

namespace {

/// FNV-1a.
void digestInto(uint64_t &digest, std::span<const std::byte> bytes) {
  for (std::byte byte : bytes)
    digest = (digest ^ static_cast<uint64_t>(byte)) * 0x100000001b3u;
}

/// The floats among them; others as they are.
std::vector<double> toDoubles(format::DType type, std::span<const std::byte> bytes) {
  std::vector<double> values;
  uint64_t size = format::sizeOf(type);
  for (size_t at = 0; at + size <= bytes.size(); at += size) {
    auto get = [&](auto value) {
      std::memcpy(&value, bytes.data() + at, sizeof value);
      values.push_back(static_cast<double>(value));
    };
    if (type == format::DType::F32) {
      get(0.0f);
    } else if (type == format::DType::F64) {
      get(0.0);
    } else if (type == format::DType::BF16) {
      uint16_t half = 0;
      std::memcpy(&half, bytes.data() + at, sizeof half);
      values.push_back(std::bit_cast<float>(static_cast<uint32_t>(half) << 16));
    } else {
      values.push_back(static_cast<double>(std::to_integer<int>(bytes[at])));
    }
  }
  return values;
}

/// One rank's part of runBundle(); the digest of what it holds and has fetched.
uint64_t runEntries(core::Session &session, const format::Bundle &bundle, std::vector<std::vector<double>> *values) {
  uint64_t digest = 0xcbf29ce484222325u;
  MadeUpRows rows(bundle.manifest);
  core::RowOrder order(rows.rows(), false, 0);
  session.initialize(nullptr, 5);
  session.onResult([&](const format::Output &output, int64_t, std::span<const std::byte> bytes) {
    digestInto(digest, bytes);
    if (values)
      values->push_back(toDoubles(output.type, bytes));
  });
  for (uint64_t step = 0; step < 2; ++step)
    for (const format::Entry &entry : bundle.programs.front().entries)
      session.run(entry.name, {&rows, &order, step * bundle.manifest.batch});
  for (const format::Tensor &tensor : bundle.manifest.tensors) {
    digestInto(digest, session.tensor(tensor.name));
    if (values)
      values->push_back(toDoubles(tensor.type, session.tensor(tensor.name)));
  }
  return digest;
}

} // namespace

Ran par::toy::runBundle(const format::Bundle &bundle, const std::string &folder, std::shared_ptr<sim::World> world,
                        bool withValues) {
  Ran ran;
  comm::Launch launch;
  launch.bundle = folder;
  launch.n = launch.bundleRanks = static_cast<uint32_t>(bundle.manifest.ranks.size());
  launch.transport = comm::Transport::inproc;
  std::vector<uint64_t> digests(bundle.manifest.ranks.size());
  std::vector<std::vector<std::vector<double>>> values(digests.size());
  std::mutex mutex;
  auto complain = [&](const char *what) {
    std::lock_guard lock(mutex);
    if (ran.trouble.empty())
      ran.trouble = what;
    return 1;
  };
  comm::run(launch, [&](comm::Control &control) {
    try {
      core::Session session(bundle, folder, control, core::deviceNamed(world ? "sim" : "cpu"), {1, false, world});
      digests[control.rank()] = runEntries(session, bundle, withValues ? &values[control.rank()] : nullptr);
      if (control.rank() == 0)
        ran.stamps = session.stamps();
      return 0;
    } catch (const comm::Aborted &) {
      throw; // another rank knows why
    } catch (const std::exception &failure) {
      return complain(failure.what());
    }
  });
  ran.digest = 0xcbf29ce484222325u;
  digestInto(ran.digest, std::as_bytes(std::span(digests)));
  for (auto &list : values)
    ran.values.insert(ran.values.end(), list.begin(), list.end());
  return ran;
}

Ran par::toy::simulate(const format::Bundle &bundle, const std::string &folder, const sim::Options &options) {
  return runBundle(bundle, folder,
                   std::make_shared<sim::World>(static_cast<uint32_t>(bundle.manifest.ranks.size()), options));
}

/// Result that a separate process sends: digest, values, trouble.
static std::string packed(const Ran &ran) {
  std::string text;
  auto number = [&](uint64_t n) { text.append(reinterpret_cast<const char *>(&n), sizeof n); };
  number(ran.digest);
  number(ran.values.size());
  for (const std::vector<double> &list : ran.values) {
    number(list.size());
    text.append(reinterpret_cast<const char *>(list.data()), list.size() * sizeof(double));
  }
  return text + ran.trouble;
}

static std::optional<Ran> unpacked(std::string_view text) {
  Ran ran;
  auto number = [&](uint64_t &n) {
    bool fits = text.size() >= sizeof n;
    if (fits)
      std::memcpy(&n, text.data(), sizeof n), text.remove_prefix(sizeof n);
    return fits;
  };
  uint64_t lists = 0, size = 0;
  if (!number(ran.digest) || !number(lists))
    return std::nullopt;
  for (; lists > 0; --lists) {
    if (!number(size) || text.size() < size * sizeof(double))
      return std::nullopt;
    std::vector<double> &list = ran.values.emplace_back(size);
    std::memcpy(list.data(), text.data(), size * sizeof(double));
    text.remove_prefix(size * sizeof(double));
  }
  ran.trouble = text;
  return ran;
}

/// A kernel may crash, or loop.
template <typename Run>
static Ran apart(unsigned seconds, Run run) {
  int ends[2];
  if (pipe(ends) != 0)
    return {"no pipe", 0, {}, {}};
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    alarm(seconds);
    std::string text = packed(run());
    for (size_t done = 0; done < text.size();) {
      ssize_t n = write(ends[1], text.data() + done, text.size() - done);
      if (n <= 0)
        _exit(1);
      done += static_cast<size_t>(n);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[65536];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  std::optional<Ran> ran = WIFSIGNALED(status) ? std::nullopt : unpacked(text);
  if (!ran)
    return {"died with signal " + std::to_string(WIFSIGNALED(status) ? WTERMSIG(status) : 0), 0, {}, {}};
  return *ran;
}

Ran par::toy::simulateApart(const format::Bundle &bundle, const std::string &folder, const sim::Options &options) {
  return apart(60, [&] { return simulate(bundle, folder, options); });
}

Ran par::toy::runApart(const format::Bundle &bundle, const std::string &folder, unsigned seconds) {
  return apart(seconds, [&] { return runBundle(bundle, folder, nullptr, true); });
}

double par::toy::largestDifference(const Ran &a, const Ran &b) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (a.values.size() != b.values.size())
    return infinite;
  double worst = 0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    if (a.values[i].size() != b.values[i].size())
      return infinite;
    double largest = 1e-30, difference = 0;
    for (size_t j = 0; j < a.values[i].size(); ++j) {
      double one = a.values[i][j], other = b.values[i][j];
      if (!std::isfinite(one) && !std::isfinite(other))
        continue;
      if (!std::isfinite(one) || !std::isfinite(other))
        return infinite;
      largest = std::max(largest, std::abs(one));
      difference = std::max(difference, std::abs(one - other));
    }
    worst = std::max(worst, difference / largest);
  }
  return worst;
}

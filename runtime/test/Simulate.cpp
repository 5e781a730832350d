//===- Simulate.cpp - Runs a bundle on made-up data and tells what came out --------------===//
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Simulate.h"
#include "par/comm/Launch.h"
#include "par/core/Failure.h"

#include <cmath>
#include <cstring>
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

const std::byte *MadeUpRows::row(const format::Input &input, uint64_t row,
                                 std::vector<std::byte> &scratch) const {
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

/// One rank's part of runBundle(); the digest of what it holds and has fetched.
uint64_t runEntries(core::Session &session, const format::Bundle &bundle) {
  uint64_t digest = 0xcbf29ce484222325u;
  MadeUpRows rows(bundle.manifest);
  core::RowOrder order(rows.rows(), false, 0);
  session.initialize(nullptr, 5);
  session.onResult(
      [&](const format::Output &, int64_t, std::span<const std::byte> bytes) { digestInto(digest, bytes); });
  for (uint64_t step = 0; step < 2; ++step)
    for (const format::Entry &entry : bundle.programs.front().entries)
      session.run(entry.name, {&rows, &order, step * bundle.manifest.batch});
  for (const format::Tensor &tensor : bundle.manifest.tensors)
    digestInto(digest, session.tensor(tensor.name));
  return digest;
}

} // namespace

Ran par::toy::runBundle(const format::Bundle &bundle, const std::string &folder,
                        std::shared_ptr<sim::World> world) {
  Ran ran;
  comm::Launch launch;
  launch.bundle = folder;
  launch.n = launch.bundleRanks = static_cast<uint32_t>(bundle.manifest.ranks.size());
  launch.transport = comm::Transport::inproc;
  std::vector<uint64_t> digests(bundle.manifest.ranks.size());
  std::mutex mutex;
  auto complain = [&](const char *what) {
    std::lock_guard lock(mutex);
    if (ran.trouble.empty())
      ran.trouble = what;
    return 1;
  };
  comm::run(launch, [&](comm::Control &control) {
    try {
      core::Session session(bundle, folder, control, {1, false, world ? "sim" : "cpu", world});
      digests[control.rank()] = runEntries(session, bundle);
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
  return ran;
}

Ran par::toy::simulate(const format::Bundle &bundle, const std::string &folder, const sim::Options &options) {
  return runBundle(
      bundle, folder,
      std::make_shared<sim::World>(static_cast<uint32_t>(bundle.manifest.ranks.size()), options));
}

Ran par::toy::simulateApart(const format::Bundle &bundle, const std::string &folder,
                            const sim::Options &options) {
  int ends[2];
  if (pipe(ends) != 0)
    return {"no pipe", 0, {}};
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    alarm(60);
    Ran ran = simulate(bundle, folder, options);
    std::string text(sizeof ran.digest, '\0');
    std::memcpy(text.data(), &ran.digest, sizeof ran.digest);
    text += ran.trouble;
    _exit(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  Ran ran;
  if (WIFSIGNALED(status) || text.size() < sizeof ran.digest) {
    ran.trouble = "died with signal " + std::to_string(WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    return ran;
  }
  std::memcpy(&ran.digest, text.data(), sizeof ran.digest);
  ran.trouble = text.substr(sizeof ran.digest);
  return ran;
}

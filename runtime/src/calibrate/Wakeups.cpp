// A rank that waits spins first, then gives up its core, then sleeps and must be woken: what the last arrival costs
// grows with the time waited, by steps that depend on the machine. All ranks of a host have one clock, so that begins
// and ends of all can be compared.
#include "Wakeups.h"

#include "par/messages/Failure.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <random>

namespace par::calibrate {

namespace {

constexpr int sizes = 12;              ///< 1, 2, ... 2048 copies
constexpr int roundsOfSize = 8;        ///< in one entry
constexpr uint64_t copyBytes = 65'536; ///< one or two microseconds
constexpr uint64_t seed = 1;

/// One meeting: who comes late, and by how many copies.
struct Round {
  size_t late = 0;
  int size = -1; ///< copies are 2^size; -1: all come at once
};

std::vector<Round> drawRounds(size_t ranks) {
  std::vector<Round> rounds;
  for (int size = -1; size < sizes; ++size)
    for (int i = 0; i < roundsOfSize; ++i)
      rounds.push_back({static_cast<size_t>(i) % ranks, size});
  std::shuffle(rounds.begin(), rounds.end(), std::mt19937_64(seed));
  return rounds;
}

/// Begins and ends of this rank's communications.
std::string stampsOf(const Bench &bench, const std::vector<size_t> &meetings) {
  nlohmann::json times = nlohmann::json::array();
  for (size_t step : meetings)
    times.push_back({bench.stamps()[step].begin, bench.stamps()[step].end});
  return times.dump();
}

/// Times by size, from the first at -1.
struct Times {
  std::vector<double> waited[sizes + 1], over[sizes + 1];

  void add(const std::vector<Round> &rounds, const std::vector<std::string> &ofRanks) {
    std::vector<nlohmann::json> all;
    for (const std::string &text : ofRanks)
      if (!text.empty())
        all.push_back(nlohmann::json::parse(text));
    for (size_t i = 0; i < rounds.size(); ++i) {
      int64_t first = INT64_MAX, last = INT64_MIN, end = INT64_MIN;
      for (const nlohmann::json &times : all) {
        auto begin = times[i][0].get<int64_t>();
        first = std::min(first, begin);
        last = std::max(last, begin);
        end = std::max(end, times[i][1].get<int64_t>());
      }
      waited[rounds[i].size + 1].push_back(static_cast<double>(last - first));
      over[rounds[i].size + 1].push_back(static_cast<double>(end - last));
    }
  }
};

/// The smallest communication whose ranks share a host.
const Link *smallestLink(const std::vector<Link> &links, const std::vector<std::string> &hosts) {
  const Link *smallest = nullptr;
  auto bytes = [](const Link &link) { return link.what.n * format::sizeOf(link.what.type); };
  for (const Link &link : links) {
    bool oneHost = std::all_of(link.ranks.begin(), link.ranks.end(),
                               [&](uint32_t rank) { return hosts[rank] == hosts[link.ranks.front()]; });
    if (oneHost && link.ranks.size() > 1 && (!smallest || bytes(link) < bytes(*smallest)))
      smallest = &link;
  }
  return smallest;
}

} // namespace

void measureWakeups(Bench &bench, const std::vector<Link> &links, const std::vector<std::string> &hosts, double seconds,
                    Rows &rows) {
  const Link *link = smallestLink(links, hosts);
  if (!link || !bench.hasStamps())
    return;
  auto mine = std::find(link->ranks.begin(), link->ranks.end(), bench.rank);
  std::vector<Round> rounds = drawRounds(link->ranks.size());
  std::vector<size_t> meetings;
  MadeEntry &entry = bench.newEntry();
  for (const Round &round : rounds) {
    if (mine == link->ranks.end())
      break;
    bool isLate = link->ranks.begin() + static_cast<std::ptrdiff_t>(round.late) == mine;
    for (int copy = 0; isLate && round.size >= 0 && copy < 1 << round.size; ++copy)
      entry.copy(bench.scratch(copyBytes), bench.scratch(), copyBytes, bench.queue);
    meetings.push_back(entry.size());
    addLink(bench, *link, entry);
  }
  Times times;
  comm::Control &control = bench.setting.control;
  double spent = 0;
  for (int play = 0; play < 3 || (play < 50 && spent < seconds); ++play) {
    control.barrier("calibrate wakeups");
    double took = mine == link->ranks.end() ? 0 : bench.play(entry.expanded());
    for (const std::string &text : control.allGather("calibrate", core::format("{}", took)))
      spent += std::stod(text) / static_cast<double>(link->ranks.size());
    std::vector<std::string> all =
        control.allGather("calibrate", mine == link->ranks.end() ? "" : stampsOf(bench, meetings));
    if (play > 0)
      times.add(rounds, all);
  }
  if (bench.rank != 0)
    return;
  double base = median(times.over[0]);
  for (int size = 1; size <= sizes; ++size)
    rows.add({"wakeups", {}, {std::llround(median(times.waited[size]))}}, median(times.over[size]) - base);
}

} // namespace par::calibrate

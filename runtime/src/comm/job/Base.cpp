// The part of a control plane that every kind shares: its use of the board.
#include "Base.h"
#include "Serialization.h"
#include "comm/shared/Diagnosis.h"
#include "par/messages/CommMessages.h"

#include <algorithm>
#include <cstdio>
#include <map>

using namespace par::comm;

Control::~Control() = default;

namespace {

std::string helloText(const Hello &hello) {
  Writer writer;
  writer.text(hello.format).text(hello.bundleHash).text(hello.planHash);
  return writer.take();
}

std::string wordOfSharing(Sharing sharing) {
  return sharing == Sharing::broadcast ? "broadcast" : sharing == Sharing::gather ? "gather" : "all_gather";
}

std::string shortHash(const std::string &hash) { return hash.substr(0, 6); }

/// "rank 3 on b holds plan 81d0ee, the 7 others 3f9c2a: its copy of the bundle is stale", or "" where all agree. The
/// host is named where there are several.
std::string disagreement(SharedState &board, const std::vector<std::string> &values, const std::string &what,
                         bool hash) {
  std::map<std::string, std::vector<uint32_t>> holders;
  for (uint32_t rank = 0; rank < values.size(); ++rank)
    holders[values[rank]].push_back(rank);
  if (holders.size() < 2)
    return "";
  auto most = std::max_element(holders.begin(), holders.end(), [](const auto &a, const auto &b) {
    // In a tie the group with rank 0 counts as the majority.
    return std::pair(a.second.size(), b.second.front()) < std::pair(b.second.size(), a.second.front());
  });
  auto odd = std::find_if(holders.begin(), holders.end(), [&](const auto &entry) { return &entry != &*most; });
  auto shown = [&](const std::string &value) { return hash ? shortHash(value) : value; };
  size_t others = most->second.size();
  uint32_t rank = odd->second.front();
  std::string host = board[rank].host.get();
  return say(Sentence::staleBundle, rank, host.empty() ? "" : " on " + host, what, shown(odd->first),
             others == 1 ? "other" : std::to_string(others) + " others", shown(most->first));
}

/// " with 3 of 4 ranks"; "" without --shrink.
std::string ranksOf(const SharedState &sharedState, const Supervised *supervised) {
  if (!supervised || supervised->keptOther.empty())
    return "";
  return " with " + std::to_string(sharedState.world()) + " of " + std::to_string(supervised->keptOther.size()) +
         " ranks";
}

/// Lost ranks have been started again, or others have come again, and the job goes on. `ranks`: " with 3 of 4 ranks".
void sayGoesOn(const std::string &bundle, uint64_t after, const std::string &ranks, Lives *lives) {
  int64_t since = lives ? lives->takeLoss() : 0;
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.2f", since ? double(now() - since) / 1e9 : 0.0);
  bool grew = lives && lives->grows().exchange(0);
  printLine(noteLine(bundle, say(Sentence::goesOn, after, ranks, seconds, grew ? "that step" : "the loss")));
}

} // namespace

void SharedStateControl::meet(const Hello &hello) {
  sharedState[rank()].coordinates.set(hello.coordinates);
  if (supervised)
    supervised->life().coordinates.set(hello.coordinates);
  std::vector<std::string> formats, bundles, plans;
  for (const std::string &text : allGather("hello", helloText(hello))) {
    Reader reader(text);
    formats.push_back(reader.text());
    bundles.push_back(reader.text());
    plans.push_back(reader.text());
  }
  for (const std::string &error :
       {disagreement(sharedState, formats, "format", false), disagreement(sharedState, plans, "plan", true),
        disagreement(sharedState, bundles, "bundle", true)})
    if (!error.empty())
      fail(1, errorLine(bundle, error));
}

std::vector<std::string> SharedStateControl::share(Sharing sharing, std::string_view label, std::string_view value,
                                                   uint32_t root) {
  Waiting waiting{{}, wordOfSharing(sharing), std::string(label)};
  for (uint32_t other = 0; other < world(); ++other)
    if (other != rank())
      waiting.ranks.push_back(other);
  sharedState[rank()].wait(waiting);
  std::vector<std::string> values = exchange(sharing, label, value, root);
  sharedState[rank()].run();
  return values;
}

std::string SharedStateControl::broadcast(std::string_view label, std::string_view value, uint32_t root) {
  std::vector<std::string> values = share(Sharing::broadcast, label, rank() == root ? value : "", root);
  return std::move(values.at(0));
}

std::vector<std::string> SharedStateControl::gather(std::string_view label, std::string_view value, uint32_t root) {
  return share(Sharing::gather, label, value, root);
}

std::vector<std::string> SharedStateControl::allGather(std::string_view label, std::string_view value) {
  return share(Sharing::allGather, label, value, 0);
}

void SharedStateControl::barrier(std::string_view label) { share(Sharing::broadcast, label, "", 0); }

bool SharedStateControl::startStep(uint64_t step) {
  if (sharedState.aborted())
    throw Aborted(sharedState.message());
  bool first = !std::exchange(hasStarted, true), mended = sharedState.attempt.load() > 1;
  if (first && mended)
    sharedState.goesOnFrom.store(step);
  bool starts = sharedState.startStep(rank(), step);
  if (supervised && starts)
    supervised->life().step.store(step);
  if (first && mended && starts && rank() == 0)
    sayGoesOn(bundle, step - 1, ranksOf(sharedState, supervised), supervised ? &supervised->lives : nullptr);
  hasStopped |= !starts;
  return starts;
}

// An error after a loss may be the result of that.
void SharedStateControl::fail(int code, std::string_view message) {
  if (isLost(sharedState))
    throw Aborted(sharedState.message());
  if (sharedState.claim())
    printLine(message);
  sharedState.abort(code, message);
  throw Aborted(std::string(message));
}

void SharedStateControl::finish() {
  sharedState[rank()].finished.store(1);
  if (supervised)
    supervised->life().finished.store(1);
}

std::string par::comm::differentExchange(uint32_t a, Sharing sharingA, std::string_view labelA, uint32_t b,
                                         Sharing sharingB, std::string_view labelB) {
  return say(Sentence::otherExchange, a, wordOfSharing(sharingA), labelA, b, wordOfSharing(sharingB), labelB);
}

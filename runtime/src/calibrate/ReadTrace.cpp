// Reads a trace of par-run --trace. Each interval has the instruction's id, from which the bundle's instruction
// follows.
#include "TraceRows.h"

#include "par/format/PlainFile.h"
#include "par/messages/Failure.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace par::calibrate {

using core::Failure;
using core::Message;
using nlohmann::json;

namespace {

constexpr uint64_t maxTrace = uint64_t(2) << 30;
constexpr double maxMicroseconds = 1e12;

/// The instructions of a program by their ids.
using Places = std::map<std::string, std::pair<const format::Block *, size_t>>;

Places placesOf(const format::Program &program) {
  Places places;
  for (uint32_t block = 0; block < program.blocks.size(); ++block)
    for (size_t i = 0; i < program.blocks[block].instructions.size(); ++i)
      places[format::instructionId(program, block, i)] = {&program.blocks[block], i};
  return places;
}

std::optional<double> microseconds(const json &event, const char *key) {
  auto found = event.find(key);
  if (found == event.end() || !found->is_number())
    return std::nullopt;
  auto value = found->get<double>();
  return std::abs(value) < maxMicroseconds ? std::optional(value) : std::nullopt;
}

std::optional<uint64_t> count(const json &event, const char *key) {
  auto found = event.find(key);
  return found == event.end() || !found->is_number_unsigned() ? std::nullopt : std::optional(found->get<uint64_t>());
}

class Reader {
public:
  Reader(const format::Bundle &bundle, const std::string &path) : bundle(bundle), path(path) {
    for (const format::Program &program : bundle.programs)
      places.push_back(placesOf(program));
  }

  void add(const json &event) {
    auto ts = microseconds(event, "ts"), dur = microseconds(event, "dur");
    auto rank = count(event, "pid");
    auto args = event.find("args"), name = event.find("name");
    bool whole = ts && dur && *dur >= 0 && rank && args != event.end() && args->is_object() && name != event.end() &&
                 name->is_string() && args->contains("microbatch") && (*args)["microbatch"].is_number_integer();
    std::optional<uint64_t> step = whole ? count(*args, "step") : std::nullopt;
    if (!step)
      throw Failure::at(path, Message::traceNone, excerptOf(event));
    auto id = name->get<std::string>();
    uint64_t ranks = bundle.manifest.ranks.size();
    uint32_t role = *rank < ranks ? bundle.manifest.ranks[*rank].role : 0;
    auto place = places[role].find(id);
    if (*rank >= ranks || place == places[role].end())
      throw Failure::at(path, Message::traceOther, *rank, id);
    auto begin = std::llround(*ts * 1000), length = std::llround(*dur * 1000);
    auto [block, index] = place->second;
    steps[*step][static_cast<uint32_t>(*rank)].push_back({&bundle.programs[role], block, index,
                                                          static_cast<uint32_t>(*rank),
                                                          (*args)["microbatch"].get<int64_t>(), begin, begin + length});
  }

  std::vector<TracedStep> all() {
    std::vector<TracedStep> found;
    for (const auto &[number, ranks] : steps) {
      TracedStep &step = found.emplace_back();
      for (const auto &[rank, ofRank] : ranks)
        step.insert(step.end(), ofRank.begin(), ofRank.end());
    }
    return found;
  }

private:
  static std::string excerptOf(const json &event) { return event.dump(-1, ' ', false, json::error_handler_t::replace); }

  const format::Bundle &bundle;
  const std::string &path;
  std::vector<Places> places;
  std::map<uint64_t, std::map<uint32_t, TracedStep>> steps; ///< by number and rank
};

} // namespace

std::vector<TracedStep> readTrace(const format::Bundle &bundle, const std::string &path) {
  auto text = format::readPlainFile(path, maxTrace);
  if (!text)
    throw Failure(path, text.message());
  const json trace = json::parse(*text, nullptr, false);
  if (!trace.is_object() || !trace.contains("traceEvents") || !trace["traceEvents"].is_array())
    throw Failure::at(path, Message::traceNone, "no list \"traceEvents\"");
  Reader reader(bundle, path);
  for (const json &event : trace["traceEvents"])
    if (!event.is_object() || event.value("ph", json()) == "X" || !event.contains("ph"))
      reader.add(event);
  std::vector<TracedStep> steps = reader.all();
  if (steps.empty())
    throw Failure::at(path, Message::traceNone, "no instruction");
  return steps;
}

} // namespace par::calibrate

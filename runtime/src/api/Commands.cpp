#include "api/Commands.h"

#include <bit>
#include <nlohmann/json.hpp>

namespace par::api {

using nlohmann::json;

/// Numbers as their bits: exact, and they know NaN, which JSON does not.
static uint64_t bitsOf(double value) { return std::bit_cast<uint64_t>(value); }
static double fromBits(const json &bits) { return std::bit_cast<double>(bits.get<uint64_t>()); }

/// Names and paths may be any bytes.
static std::string dump(const json &value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

static json encodeArray(const core::FedArray &array) { return {static_cast<int>(array.type), array.shape}; }

static core::FedArray decodeArray(const json &value) {
  return {static_cast<format::DType>(value[0].get<int>()), value[1].get<std::vector<int64_t>>(), nullptr};
}

static json encodeArrays(const FedArrays &arrays) {
  json fed = json::array();
  for (const auto &[index, array] : arrays)
    fed.push_back({index, encodeArray(array)});
  return fed;
}

static FedArrays decodeArrays(const json &value) {
  FedArrays arrays;
  for (const json &array : value)
    arrays.emplace_back(array[0].get<size_t>(), decodeArray(array[1]));
  return arrays;
}

/// Two lines: dumped JSON has no line break.
std::string encode(const Command &command) {
  const Ahead &ahead = command.ahead;
  return dump({static_cast<int>(command.verb), command.name, bitsOf(command.value), command.keep, command.paths,
               encodeArrays(command.fed), encodeArray(command.tensor)}) +
         "\n" + dump({encodeArrays(ahead.fed), ahead.number, ahead.place});
}

std::string_view agreedPart(std::string_view encoded) { return encoded.substr(0, encoded.find('\n')); }

Command decodeCommand(const std::string &text) {
  std::string_view agreed = agreedPart(text);
  json value = json::parse(agreed), ahead = json::parse(std::string_view(text).substr(agreed.size()));
  Command command;
  command.verb = static_cast<Verb>(value[0].get<int>());
  command.name = value[1];
  command.value = fromBits(value[2]);
  command.keep = value[3];
  command.paths = value[4].get<std::vector<std::string>>();
  command.fed = decodeArrays(value[5]);
  command.tensor = decodeArray(value[6]);
  command.ahead = {decodeArrays(ahead[0]), ahead[1].get<uint64_t>(), ahead[2].get<uint64_t>()};
  return command;
}

std::string encode(const Answer &answer) {
  json scalars = json::array();
  for (const auto &call : answer.scalars) {
    json values = json::object();
    for (const auto &[name, value] : call)
      values[name] = bitsOf(value);
    scalars.push_back(values);
  }
  const core::RunPosition &at = answer.position;
  return dump({scalars, answer.text, at.step, at.rows, at.skipped, bitsOf(answer.rate), answer.events, answer.error,
               answer.code});
}

Answer decodeAnswer(const std::string &text) {
  json value = json::parse(text);
  Answer answer;
  for (const json &call : value[0]) {
    auto &values = answer.scalars.emplace_back();
    for (const auto &[name, bits] : call.items())
      values[name] = fromBits(bits);
  }
  answer.text = value[1];
  answer.position.step = value[2];
  answer.position.rows = value[3];
  answer.position.skipped = value[4];
  answer.rate = fromBits(value[5]);
  answer.events = value[6].get<std::vector<std::string>>();
  answer.error = value[7];
  answer.code = value[8];
  return answer;
}

} // namespace par::api

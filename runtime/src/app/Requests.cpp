// Requests as lines of strict JSON: an unknown key is an error that names it.
#include "Requests.h"

#include "par/messages/Failure.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace par::core {

namespace {

class RequestReader {
public:
  RequestReader(const std::string &place, uint64_t slots, int64_t vocabulary)
      : place(place), slots(slots), vocabulary(vocabulary) {}

  Request read(const nlohmann::json &values) {
    if (!values.is_object())
      refuse("a line", "an object of JSON", "other text");
    for (const auto &[key, value] : values.items())
      take(key, value);
    if (request.prompts.empty())
      refuse("\"prompts\"", "a list of prompts, each a list of tokens", "none");
    for (const std::vector<int64_t> &prompt : request.prompts)
      if (prompt.size() + request.newTokens > slots)
        throw Failure::at(place, Message::promptTooLong, prompt.size(), request.newTokens, slots,
                          prompt.size() + request.newTokens);
    return std::move(request);
  }

private:
  [[noreturn]] void refuse(const std::string &what, const std::string &wanted, const std::string &found) const {
    throw Failure::at(place, Message::requestBad, what, wanted, format::excerpt(found, 200));
  }

  void take(const std::string &key, const nlohmann::json &value) {
    std::string name = "\"" + key + "\"";
    if (key == "prompts") {
      if (!value.is_array() || value.empty())
        refuse(name, "a list of prompts, each a list of tokens", value.dump());
      for (const nlohmann::json &prompt : value)
        request.prompts.push_back(tokensOf("a prompt", prompt, /*some=*/true));
    } else if (key == "stop") {
      request.stops = tokensOf(name, value, /*some=*/false);
    } else if (key == "max_new_tokens") {
      request.newTokens = whole(name, value, 1);
    } else if (key == "top_k") {
      request.sampling.topK = whole(name, value, 0);
    } else if (key == "seed") {
      request.sampling.seed = whole(name, value, 0);
    } else if (key == "temperature") {
      request.sampling.temperature = real(name, value, 0, 1e6);
    } else if (key == "top_p") {
      request.sampling.topP = real(name, value, 0, 1);
    } else {
      refuse("a request", "prompts, max_new_tokens, stop, temperature, top_k, top_p and seed", name);
    }
  }

  std::vector<int64_t> tokensOf(const std::string &what, const nlohmann::json &value, bool some) const {
    std::vector<int64_t> tokens;
    if (!value.is_array() || (some && value.empty()))
      refuse(what, "a list of tokens", value.dump());
    for (const nlohmann::json &token : value) {
      if (!token.is_number_integer() || token < 0 || token >= vocabulary)
        refuse(what, core::format("tokens from 0 to {}", vocabulary - 1), token.dump());
      tokens.push_back(token.get<int64_t>());
    }
    return tokens;
  }

  uint64_t whole(const std::string &what, const nlohmann::json &value, uint64_t least) const {
    constexpr uint64_t most = uint64_t(1) << 53;
    if (!value.is_number_integer() || value < least || value > most)
      refuse(what, core::format("a whole number from {} to 2^53", least), value.dump());
    return value.get<uint64_t>();
  }

  double real(const std::string &what, const nlohmann::json &value, double least, double most) const {
    if (!value.is_number() || !(value >= least && value <= most))
      refuse(what, core::format("a number from {} to {}", least, most), value.dump());
    return value.get<double>();
  }

  const std::string &place;
  uint64_t slots;
  int64_t vocabulary;
  Request request;
};

} // namespace

bool isDeepJson(std::string_view text) {
  constexpr int deepest = 70;
  int depth = 0;
  bool inText = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inText)
      c == '\\' ? ++i : inText = c != '"';
    else if (c == '"')
      inText = true;
    else if (c == '[' || c == '{')
      ++depth;
    else if (c == ']' || c == '}')
      --depth;
    if (depth > deepest)
      return true;
  }
  return false;
}

Request requestOf(const nlohmann::json &values, const std::string &place, uint64_t slots, int64_t vocabulary) {
  return RequestReader(place, slots, vocabulary).read(values);
}

Request readRequest(const std::string &line, const std::string &place, uint64_t slots, int64_t vocabulary) {
  if (isDeepJson(line))
    throw Failure::at(place, Message::requestBad, "\"prompts\"", "a list of prompts, each a list of tokens",
                      "lists in more than 70 lists");
  return requestOf(nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false), place, slots, vocabulary);
}

} // namespace par::core

#include "Prompts.h"

#include "par/messages/Failure.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace par::serve {

using core::Failure;
using nlohmann::json;

uint64_t PromptReader::maxBytes() const {
  constexpr uint64_t ofToken = 12, ofRest = 64 << 10;
  return shape.rows * shape.slots * ofToken + ofRest;
}

void PromptReader::read(const Frame &frame, Request &request) const {
  if (frame.form != Form::Json)
    throw Failure("request", "a decoder takes lines of JSON: {\"prompts\": [[1, 2]]}");
  json values = readObject(frame.body, "{\"prompts\": [[1, 2]]}", request);
  if (auto streams = values.find("stream"); streams != values.end()) {
    if (!streams->is_boolean())
      throw Failure("request", "\"stream\" takes true or false, not " + shownValue(*streams));
    request.streams = streams->get<bool>();
  }
  values.erase("stream");
  values.erase("id");
  request.decoding = core::requestOf(values, "request", shape.slots, shape.vocabulary);
  request.rows = std::min<uint64_t>(request.decoding.prompts.size(), shape.rows);
}

} // namespace par::serve

#include "par/Base/Json.h"

using namespace llvm;

namespace par {

/// Arrays and objects that are open at once at most; brackets in strings do not count.
static size_t depthOf(StringRef text) {
  size_t depth = 0, most = 0;
  bool isString = false;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (isString && c == '\\')
      ++at;
    else if (c == '"')
      isString = !isString;
    else if (!isString && (c == '[' || c == '{'))
      most = std::max(most, ++depth);
    else if (!isString && (c == ']' || c == '}') && depth > 0)
      --depth;
  }
  return most;
}

Expected<json::Value> parseJson(StringRef text) {
  if (size_t depth = depthOf(text); depth > maxJsonDepth)
    return createStringError("arrays and objects nest " + std::to_string(depth) + " deep, at most " +
                             std::to_string(maxJsonDepth) + " are read");
  return json::parse(text);
}

} // namespace par

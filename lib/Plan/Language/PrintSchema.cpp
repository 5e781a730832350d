// The table of plan keys as JSON Schema.
#include "par/Plan/Language/Schema.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace par {

/// One alternative of PlanKey::values as a schema.
static json::Object alternativeSchema(StringRef alternative) {
  static constexpr std::pair<const char *, const char *> types[] = {
      {"<int>", "integer"},    {"<number>", "number"},  {"<bool>", "boolean"},
      {"<list>", "array"},     {"<ints>", "array"},     {"<numbers>", "array"},
      {"<patterns>", "array"}, {"<elements>", "array"}, {"<meshes>", "array"},
  };
  for (auto [sort, type] : types)
    if (alternative == sort)
      return json::Object{{"type", type}};
  if (alternative == "<axes>" || alternative == "<size>")
    return json::Object{{"type", json::Array{"string", alternative == "<axes>" ? "array" : "number"}}};
  if (alternative.starts_with("<"))
    return json::Object{{"type", "string"}};
  int64_t number;
  if (!alternative.getAsInteger(10, number))
    return json::Object{{"const", number}};
  if (alternative == "true" || alternative == "false")
    return json::Object{{"const", alternative == "true"}};
  return json::Object{{"const", alternative}};
}

static json::Object mapSchema(StringRef path);

static json::Object keySchema(const PlanKey &key) {
  json::Array anyOf;
  SmallVector<StringRef> alternatives;
  StringRef(key.values).split(alternatives, '|');
  for (StringRef alternative : alternatives)
    if (!alternative.starts_with("!"))
      anyOf.push_back(alternative == "<map>" ? mapSchema(key.path) : alternativeSchema(alternative));
  json::Object schema{{"description", key.doc}};
  if (key.fallback[0])
    schema["default"] = key.fallback;
  schema["anyOf"] = std::move(anyOf);
  return schema;
}

static json::Object mapSchema(StringRef path) {
  json::Object properties, patterns;
  for (const PlanKey &key : planKeys()) {
    StringRef full = key.path;
    StringRef parent = full.contains('.') ? full.rsplit('.').first : "";
    StringRef last = full.contains('.') ? full.rsplit('.').second : full;
    if (parent != path || StringRef(key.values) == "!")
      continue;
    if (last == "<dim>")
      patterns["^-?[0-9]+$"] = keySchema(key);
    else if (last.starts_with("<"))
      patterns["."] = keySchema(key);
    else
      properties[last] = keySchema(key);
  }
  json::Object schema{{"type", "object"}, {"additionalProperties", false}};
  if (!properties.empty())
    schema["properties"] = std::move(properties);
  if (!patterns.empty())
    schema["patternProperties"] = std::move(patterns);
  return schema;
}

json::Value planSchema() {
  json::Object schema = mapSchema("");
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "Par plan, language 1";
  return schema;
}

} // namespace par

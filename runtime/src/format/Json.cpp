// Strict reading of JSON.
#include "Json.h"

#include "par/format/Printable.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

using namespace par::format;

static constexpr size_t maxDepth = 16;

namespace {
/// Receives nlohmann's events and builds the tree; its own recursion is only as deep as maxDepth.
class Builder {
public:
  using json = nlohmann::json;
  Json root;
  std::string problem;

  bool null() { return add({}); }
  bool boolean(bool v) { return add({Json::Bool, v, 0, {}, {}, {}}); }
  bool number_integer(json::number_integer_t v) { return add({Json::Int, v, 0, {}, {}, {}}); }
  bool number_unsigned(json::number_unsigned_t v) {
    if (v > uint64_t(INT64_MAX))
      return refuse("integer " + std::to_string(v) + " does not fit 63 bits");
    return number_integer(int64_t(v));
  }
  bool number_float(json::number_float_t v, const std::string &) { return add({Json::Float, 0, v, {}, {}, {}}); }
  bool string(std::string &v) { return add({Json::String, 0, 0, std::move(v), {}, {}}); }
  bool binary(json::binary_t &) { return false; }
  bool start_object(size_t) { return open(Json::Object); }
  bool start_array(size_t) { return open(Json::Array); }
  bool key(std::string &k) {
    if (isKnown(k))
      return refuse("duplicate key '" + k + "'");
    stack.back()->keys.push_back(std::move(k));
    return true;
  }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(size_t position, const std::string &token, const json::exception &) {
    return refuse("not JSON at byte " + std::to_string(position) + (token.empty() ? "" : ", near '" + token + "'"));
  }

private:
  // Parents' vectors do not grow while a child is open, so the pointers stay.
  std::vector<Json *> stack;
  std::vector<std::unordered_set<std::string>> seen;

  /// Whether the innermost object has the key; only large objects get a set of their keys.
  bool isKnown(const std::string &key) {
    constexpr size_t few = 16;
    const std::vector<std::string> &keys = stack.back()->keys;
    if (keys.size() < few)
      return std::find(keys.begin(), keys.end(), key) != keys.end();
    if (keys.size() == few)
      seen.back().insert(keys.begin(), keys.end());
    return !seen.back().insert(key).second;
  }
  bool refuse(std::string text) {
    if (problem.empty())
      problem = std::move(text);
    return false;
  }
  Json *place(Json value) {
    if (stack.empty()) {
      root = std::move(value);
      return &root;
    }
    stack.back()->items.push_back(std::move(value));
    return &stack.back()->items.back();
  }
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json::Kind kind) {
    if (stack.size() >= maxDepth)
      return refuse("more than " + std::to_string(maxDepth) + " levels deep");
    Json value;
    value.kind = kind;
    stack.push_back(place(std::move(value)));
    seen.emplace_back();
    return true;
  }
  bool close() {
    stack.pop_back();
    seen.pop_back();
    return true;
  }
};
} // namespace

// A zero would end the text for the parser, whatever follows it.
Status par::format::checkNoZero(std::string_view json) {
  size_t zero = json.find('\0');
  return zero == std::string_view::npos ? Status() : Error{"not JSON at byte " + std::to_string(zero) + ": a zero"};
}

Expected<Json> par::format::parseJson(std::string_view text, const std::string &where) {
  Builder builder;
  if (Status status = checkNoZero(text); !status)
    return Error{where + ": " + status.message()};
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder))
    return Error{where + ": " + excerpt(printable(builder.problem.empty() ? "not JSON" : builder.problem))};
  return std::move(builder.root);
}

/// Finds `wanted` below `value` and appends the way to it. Only failures need paths, so none is kept.
static bool pathTo(const Json &value, const Json *wanted, std::string &path) {
  if (&value == wanted)
    return true;
  for (size_t i = 0; i < value.items.size(); ++i) {
    size_t size = path.size();
    path += value.kind == Json::Object ? "." + value.keys[i] : "[" + std::to_string(i) + "]";
    if (pathTo(value.items[i], wanted, path))
      return true;
    path.resize(size);
  }
  return false;
}

void Node::fail(const std::string &message) const {
  if (document->error)
    return;
  std::string path;
  pathTo(document->root, value, path);
  if (!path.empty() && path[0] == '.')
    path.erase(0, 1);
  document->error = Error{document->where + ": " + excerpt(printable(path), 300) + (path.empty() ? "" : ": ") +
                          excerpt(printable(message))};
}

const Json *Node::lookup(Word key) const {
  for (size_t i = 0; i < value->keys.size(); ++i)
    if (value->keys[i] == key)
      return &value->items[i];
  return nullptr;
}

/// Stands in for a missing value.
static const Json emptyJson;

Node Node::at(Word key) const {
  if (const Json *found = lookup(key))
    return Node(document, found);
  fail("missing key '" + std::string(key) + "'");
  return Node(document, &emptyJson);
}

const Node &Node::only(std::initializer_list<Word> keys) const {
  if (value->kind != Json::Object)
    fail("expected an object");
  for (const std::string &key : value->keys)
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      fail("unknown key '" + key + "'");
  return *this;
}

std::vector<Node> Node::list() const {
  std::vector<Node> nodes;
  if (value->kind != Json::Array)
    fail("expected a list");
  else
    for (const Json &item : value->items)
      nodes.push_back(Node(document, &item));
  return nodes;
}

std::vector<std::pair<std::string, Node>> Node::members() const {
  std::vector<std::pair<std::string, Node>> nodes;
  if (value->kind != Json::Object)
    fail("expected an object");
  else
    for (size_t i = 0; i < value->keys.size(); ++i)
      nodes.emplace_back(value->keys[i], Node(document, &value->items[i]));
  return nodes;
}

int64_t Node::integer(int64_t min, int64_t max) const {
  if (value->kind != Json::Int)
    return fail(value->kind == Json::Float ? "expected an integer, got a float" : "expected an integer"), min;
  if (value->integer < min || value->integer > max)
    return fail(std::to_string(value->integer) + " is not in [" + std::to_string(min) + ", " + std::to_string(max) +
                "]"),
           min;
  return value->integer;
}

double Node::number() const {
  if (value->kind == Json::Int)
    return double(value->integer);
  if (value->kind == Json::String) {
    if (value->text == "inf" || value->text == "-inf")
      return value->text == "inf" ? HUGE_VAL : -HUGE_VAL;
    if (value->text == "nan")
      return std::numeric_limits<double>::quiet_NaN();
  }
  if (value->kind != Json::Float)
    fail("expected a number");
  return value->real;
}

bool Node::boolean() const {
  if (value->kind != Json::Bool)
    fail("expected true or false");
  return value->integer != 0;
}

const std::string &Node::text() const {
  if (value->kind != Json::String)
    fail("expected a string");
  return value->text;
}

const std::string &Node::name() const {
  const std::string &word = text();
  if (word.empty() || word.size() > 256)
    fail("a name has 1 to 256 characters, this one " + std::to_string(word.size()));
  for (unsigned char c : word)
    if (c <= ' ' || c == '@' || c == '"' || c == 127)
      fail("a name has no blank, '@', quote or control character: '" + word + "'");
  return word;
}

std::vector<int64_t> Node::integers(int64_t min, int64_t max) const {
  std::vector<int64_t> values;
  for (const Node &node : list())
    values.push_back(node.integer(min, max));
  return values;
}

std::vector<uint32_t> Node::indices() const {
  std::vector<uint32_t> values;
  for (const Node &node : list())
    values.push_back(node.index());
  return values;
}

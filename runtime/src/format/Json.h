// Strict reading and plain writing of JSON.
#pragma once

#include "Names.h"

#include <deque>
#include <initializer_list>

namespace par::format {

/// A parsed value. Objects keep their order; integers and floats are different kinds.
struct Json {
  enum Kind : uint8_t { Null, Bool, Int, Float, String, Array, Object } kind = Null;
  int64_t integer = 0; ///< Bool and Int
  double real = 0;
  std::string text;
  std::vector<Json> items;       ///< of Array, or the values of Object
  std::vector<std::string> keys; ///< of Object
};

/// Refuses duplicate keys, depth over 16, and integers that do not fit 63 bits. Files of more than 256 MiB are not
/// read in the first place.
Expected<Json> parseJson(std::string_view text, const std::string &where);
/// For other JSON parsers: a text with a zero byte is refused.
Status checkNoZero(std::string_view json);

/// A document being read. The first failure is kept, later ones follow from it.
struct Document {
  std::string where;
  Json root;
  std::optional<Error> error;
};

/// A value of a document, read with its expectations. After a failure every reading gives a default.
class Node {
public:
  Node(Document &document) : document(&document), value(&document.root) {}

  /// Refuses keys that are not listed, and anything but an object.
  const Node &only(std::initializer_list<Word> keys) const;
  bool has(Word key) const { return lookup(key) != nullptr; }
  Node at(Word key) const;
  /// Elements of an array; fails on anything else.
  std::vector<Node> list() const;
  /// Members of an object.
  std::vector<std::pair<std::string, Node>> members() const;

  int64_t integer(int64_t min = 0, int64_t max = INT64_MAX) const;
  uint32_t index(uint32_t max = noIndex - 1) const { return uint32_t(integer(0, max)); }
  double number() const;
  bool boolean() const;
  const std::string &text() const;
  /// A text of 1 to 256 characters, without blanks, '@', quotes and control characters.
  const std::string &name() const;
  std::vector<int64_t> integers(int64_t min = 0, int64_t max = INT64_MAX) const;
  std::vector<uint32_t> indices() const;
  template <typename E>
  E word(Word what) const {
    std::optional<E> found = valueOf<E>(text());
    if (!found)
      fail("unknown " + std::string(what) + " '" + text() + "'");
    return found.value_or(E(0));
  }
  bool isObject() const { return value->kind == Json::Object; }
  bool isArray() const { return value->kind == Json::Array; }

  /// Keeps `message` with this value's path, unless something failed before.
  void fail(const std::string &message) const;
  bool failed() const { return document->error.has_value(); }

private:
  Node(Document *document, const Json *value) : document(document), value(value) {}
  const Json *lookup(Word key) const;
  Document *document;
  const Json *value;
};

/// Builds JSON text; the caller places line ends.
class Writer {
public:
  Writer &raw(Word text) {
    out += text;
    return *this;
  }
  /// "key": with the comma before it, except after '{', '[' or a line end that follows one.
  Writer &key(Word name);
  Writer &comma();
  Writer &text(Word value);
  Writer &number(int64_t value);
  Writer &real(double value);
  Writer &boolean(bool value);
  template <typename T>
  Writer &numbers(const std::vector<T> &values) {
    out += "[";
    for (size_t i = 0; i < values.size(); ++i)
      (i ? raw(",") : *this).number(int64_t(values[i]));
    return raw("]");
  }
  Writer &texts(const std::vector<std::string> &values);
  std::string take() { return std::move(out); }

private:
  std::string out;
};

} // namespace par::format

// A value or the reason why there is none. The compiler calls this library and is built without exceptions, so a
// function that can fail returns a value.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace par::format {

/// A mistake with its place: "role-0.json: blocks.forward[3].op: unknown opcode 'kernal'".
struct Error {
  std::string message;
};

/// A `T`, or the Error that stands in its place. Convertible to true when there is a value.
template <typename T>
class [[nodiscard]] Expected {
public:
  Expected(T value) : content(std::in_place_index<0>, std::move(value)) {}
  Expected(Error error) : content(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return content.index() == 0; }
  T &operator*() { return *std::get_if<0>(&content); }
  const T &operator*() const { return *std::get_if<0>(&content); }
  T *operator->() { return std::get_if<0>(&content); }
  const T *operator->() const { return std::get_if<0>(&content); }
  /// Only when there is no value.
  const Error &error() const { return *std::get_if<1>(&content); }
  const std::string &message() const { return error().message; }

private:
  std::variant<T, Error> content;
};

/// Nothing, or an Error. Convertible to true when all went well.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Error error) : failed(true), content(std::move(error)) {}
  explicit operator bool() const { return !failed; }
  const Error &error() const { return content; }
  const std::string &message() const { return content.message; }

private:
  bool failed = false;
  Error content;
};

} // namespace par::format

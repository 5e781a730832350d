// Reads and writes arrays as nested lists of JSON.
#include "JsonArray.h"

#include "par/files/Convert.h"
#include "par/files/Safetensors.h"
#include "par/messages/Failure.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

namespace par::serve {

using core::Failure;
using core::Message;
using format::DType;
using nlohmann::json;

namespace {

/// Appends the numbers of a nested list to bytes.
class ListReader {
public:
  ListReader(const format::Input &input, std::vector<int64_t> &shape, std::vector<std::byte> &bytes)
      : input(input), shape(shape), bytes(bytes), width(format::sizeOf(input.type)) {}

  void read(const json &value) {
    for (const json *inner = &value; inner->is_array(); inner = &inner->front()) {
      shape.push_back(static_cast<int64_t>(inner->size()));
      if (inner->empty())
        break;
    }
    take(value, 0);
  }

private:
  void take(const json &value, size_t dim) {
    if (dim == shape.size())
      return takeNumber(value);
    if (!value.is_array() || static_cast<int64_t>(value.size()) != shape[dim])
      throw Failure(input.name, core::format("is no array: of two lists beside each other one has {} elements, and the "
                                             "other {}",
                                             shape[dim], value.is_array() ? std::to_string(value.size()) : "none"));
    for (const json &inner : value)
      take(inner, dim + 1);
  }

  [[noreturn]] void refuse(const json &value, const std::string &wanted) const {
    throw Failure::at(input.name, Message::requestBad, "\"" + input.name + "\"", wanted,
                      value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 60));
  }

  void takeNumber(const json &value) {
    size_t at = bytes.size();
    bytes.resize(at + width);
    if (core::isFloat(input.type)) {
      double number = real(value);
      if (core::convertElements(&bytes[at], input.type, reinterpret_cast<const std::byte *>(&number), DType::F64, 1) ==
          0)
        refuse(value, core::format("numbers of {}", format::toString(input.type)));
      return;
    }
    int64_t number = whole(value);
    std::memcpy(&bytes[at], &number, width); // little-endian
  }

  double real(const json &value) const {
    if (value.is_number())
      return value.get<double>();
    if (value == "NaN")
      return std::numeric_limits<double>::quiet_NaN();
    if (value == "Infinity" || value == "-Infinity")
      return value == "Infinity" ? HUGE_VAL : -HUGE_VAL;
    refuse(value, "numbers");
  }

  int64_t whole(const json &value) const {
    if (input.type == DType::I1) {
      if (!value.is_boolean() && value != 0 && value != 1)
        refuse(value, "true and false");
      return value == true || value == 1;
    }
    if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(INT64_MAX)))
      refuse(value, "whole numbers");
    int64_t number = value.get<int64_t>(), back = number;
    if (width < sizeof back) {
      bool isSigned = input.type == DType::I32 || input.type == DType::I16 || input.type == DType::I8;
      auto unused = static_cast<int>(64 - 8 * width);
      back = isSigned ? number << unused >> unused
                      : static_cast<int64_t>(static_cast<uint64_t>(number) << unused >> unused);
    }
    if (back != number)
      refuse(value, core::format("whole numbers of {}", format::toString(input.type)));
    return number;
  }

  const format::Input &input;
  std::vector<int64_t> &shape;
  std::vector<std::byte> &bytes;
  size_t width;
};

class ListWriter {
public:
  ListWriter(std::string &text, DType type, std::span<const int64_t> shape, std::span<const std::byte> bytes)
      : text(text), type(type), shape(shape), bytes(bytes) {}

  void write(size_t dim = 0) {
    if (dim == shape.size())
      return writeNumber();
    text += '[';
    for (int64_t i = 0; i < shape[dim]; ++i) {
      if (i)
        text += ',';
      write(dim + 1);
    }
    text += ']';
  }

private:
  void writeNumber() {
    uint64_t i = next++;
    if (type == DType::I1)
      text += core::integerAt(type, bytes.data(), i) ? "true" : "false";
    else if (!core::isFloat(type))
      text += std::to_string(core::integerAt(type, bytes.data(), i));
    else if (type == DType::F64)
      writeReal(core::floatAt(type, bytes.data(), i));
    else
      writeReal(static_cast<float>(core::floatAt(type, bytes.data(), i)));
  }

  template <typename Real>
  void writeReal(Real value) {
    if (std::isnan(value) || std::isinf(value)) {
      text += std::isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
      return;
    }
    char digits[64];
    text.append(digits, std::to_chars(digits, std::end(digits), value).ptr);
  }

  std::string &text;
  DType type;
  std::span<const int64_t> shape;
  std::span<const std::byte> bytes;
  uint64_t next = 0;
};

} // namespace

std::vector<std::byte> readArray(const json &value, const format::Input &input, std::vector<int64_t> &shape) {
  std::vector<std::byte> bytes;
  ListReader(input, shape, bytes).read(value);
  return bytes;
}

void writeArray(std::string &text, DType type, std::span<const int64_t> shape, std::span<const std::byte> bytes) {
  ListWriter(text, type, shape, bytes).write();
}

} // namespace par::serve

// Reads a request's arrays, and checks all of it before anything is computed.
#include "Request.h"

#include "JsonArray.h"
#include "par/data/FedBatch.h"
#include "par/data/InputChecks.h"
#include "par/files/Safetensors.h"
#include "par/format/NearestWord.h"
#include "par/format/SafetensorsHeader.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace par::serve {

using core::Failure;
using core::Message;
using nlohmann::json;

/// An array for the input of the manifest with that index.
struct RequestReader::Array {
  size_t index = 0;
  core::FedArray fed;
  std::vector<std::byte> bytes;
};

uint64_t RequestReader::maxBytes() const {
  constexpr uint64_t ofNumber = 32, ofNames = 64 << 10;
  uint64_t numbers = 0;
  for (size_t index : takes.inputs)
    numbers += static_cast<uint64_t>(core::elementCount(takes.manifest->inputs[index].shape));
  return numbers * ofNumber + ofNames;
}

void RequestReader::read(const Frame &frame, Request &request) const {
  request.form = frame.form;
  if (frame.form == Form::Json)
    readJson(frame.body, request);
  else
    readFile(frame.body, request);
}

std::string shownValue(const json &value) {
  return format::excerpt(value.dump(-1, ' ', false, json::error_handler_t::replace), 60);
}

void RequestReader::want(const std::string &name, Request &request) const {
  std::vector<std::string_view> names;
  for (const format::Output *output : takes.outputs)
    names.push_back(output->name);
  if (std::ranges::find(names, name) == names.end()) {
    core::NameList all;
    for (std::string_view one : names)
      all.add("\"" + std::string(one) + "\"");
    throw Failure("request", "this bundle has no output \"" + format::excerpt(format::printable(name), 120) +
                                 "\"; its outputs are " + all.str());
  }
  request.wanted.insert(name);
}

json readObject(const std::string &text, const std::string &form, Request &request) {
  if (core::isDeepJson(text))
    throw Failure("request", "lists in more than 70 lists are no array");
  json values = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!values.is_object())
    throw Failure("request", "is no object of JSON: " + form);
  if (auto id = values.find("id"); id != values.end()) {
    constexpr size_t longest = 1024;
    if ((!id->is_string() && !id->is_number()) ||
        id->dump(-1, ' ', false, json::error_handler_t::replace).size() > longest)
      throw Failure("request", core::format("\"id\" takes a text or a number of at most {} bytes", longest));
    request.id = id->dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return values;
}

void RequestReader::readJson(const std::string &text, Request &request) const {
  json values = readObject(text, "{\"inputs\": {NAME: nested lists}}", request);
  for (const auto &[key, value] : values.items())
    if (key != "id" && key != "inputs" && key != "outputs")
      throw Failure("request", "takes \"inputs\", \"outputs\" and \"id\", not \"" +
                                   format::excerpt(format::printable(key), 60) + "\"");
  if (auto wanted = values.find("outputs"); wanted != values.end()) {
    if (!wanted->is_array() || wanted->empty() ||
        !std::ranges::all_of(*wanted, [](const json &one) { return one.is_string(); }))
      throw Failure("request", "\"outputs\" takes a list of names, not " + shownValue(*wanted));
    for (const json &name : *wanted)
      want(name.get<std::string>(), request);
  }
  auto inputs = values.find("inputs");
  if (inputs == values.end() || !inputs->is_object())
    throw Failure("request", "\"inputs\" takes an object: {NAME: nested lists}, not " +
                                 (inputs == values.end() ? "nothing" : shownValue(*inputs)));
  std::vector<Array> arrays;
  for (const auto &[name, value] : inputs->items()) {
    const format::Input *input = takes.manifest->findInput(name);
    Array &array = arrays.emplace_back();
    if (!input)
      throw Failure::at("request", Message::fedUnknown, name, core::describeInputs(*takes.manifest));
    array.index = static_cast<size_t>(input - takes.manifest->inputs.data());
    array.bytes = readArray(value, *input, array.fed.shape);
    array.fed.type = input->type;
  }
  take(std::move(arrays), request);
}

void RequestReader::readFile(const std::string &bytes, Request &request) const {
  auto header = format::readSafetensors(bytes);
  if (!header)
    throw Failure("request", header.message());
  for (const auto &[key, value] : header->metadata)
    if (key == "id" && value.size() <= 1024)
      request.id = json(value).dump(-1, ' ', false, json::error_handler_t::replace);
  std::vector<Array> arrays;
  for (const format::SafetensorsEntry &entry : header->arrays) {
    const format::Input *input = takes.manifest->findInput(entry.name);
    if (!input)
      throw Failure::at("request", Message::fedUnknown, entry.name, core::describeInputs(*takes.manifest));
    Array &array = arrays.emplace_back();
    array.index = static_cast<size_t>(input - takes.manifest->inputs.data());
    auto *data = reinterpret_cast<const std::byte *>(bytes.data());
    array.bytes.assign(data + entry.begin, data + entry.end);
    array.fed.type = entry.type;
    array.fed.shape = entry.shape;
  }
  take(std::move(arrays), request);
}

/// The rows that all inputs with rows have; those of a call where none has.
uint64_t RequestReader::rowsOf(const std::vector<Array> &arrays) const {
  const Array *first = nullptr;
  for (const Array &array : arrays) {
    const format::Input &input = takes.manifest->inputs[array.index];
    core::checkArray(input, input.name, array.fed.type, array.fed.shape, input.name);
    if (!input.microbatched)
      continue;
    if (first && array.fed.shape[0] != first->fed.shape[0])
      throw Failure::at(input.name, Message::arrayRows, input.name, array.fed.shape[0],
                        takes.manifest->inputs[first->index].name, first->fed.shape[0]);
    first = first ? first : &array;
  }
  uint64_t rows = first ? static_cast<uint64_t>(first->fed.shape[0]) : takes.rows;
  std::string name = first ? takes.manifest->inputs[first->index].name : "";
  if (takes.gathers && (rows < 1 || rows > takes.rows))
    throw Failure(name, core::format("a request has 1 to {} rows, the bundle's batch, and this one has {}; send it in "
                                     "parts, or compile with --set batch={}",
                                     takes.rows, rows, std::max<uint64_t>(rows, 1)));
  if (!takes.gathers && rows != takes.rows)
    throw Failure(name, core::format("results of this bundle depend on all rows of a batch: a request has {} rows, and "
                                     "this one has {}",
                                     takes.rows, rows));
  return rows;
}

void RequestReader::take(std::vector<Array> &&arrays, Request &request) const {
  request.rows = rowsOf(arrays);
  core::FedBatch batch(*takes.manifest, request.rows);
  for (Array &array : arrays) {
    array.fed.data = array.bytes.data();
    batch.feed(takes.manifest->inputs[array.index].name, array.fed);
  }
  batch.check("request", takes.inputs);
  std::vector<std::byte> scratch;
  for (size_t index : takes.inputs) {
    const format::Input &input = takes.manifest->inputs[index];
    uint64_t elements = static_cast<uint64_t>(core::elementCount(input.shape));
    uint64_t count = input.microbatched ? request.rows : 1;
    uint64_t each =
        elements / (input.microbatched ? static_cast<uint64_t>(input.shape[0]) : 1) * format::sizeOf(input.type);
    std::vector<std::byte> &to = request.arrays.emplace_back();
    to.reserve(count * each);
    for (uint64_t row = 0; row < count; ++row) {
      const std::byte *from = input.microbatched ? batch.row(input, row, scratch) : batch.whole(input);
      to.insert(to.end(), from, from + each);
    }
  }
}

} // namespace par::serve

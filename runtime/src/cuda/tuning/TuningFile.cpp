// Reads and writes the JSON file of tuned matmul algorithms and graph engines. Every value is checked; an error names
// its place in the file.
#include "TuningFile.h"

#include "par/format/PlainFile.h"
#include "par/messages/Failure.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace par::cuda {

using core::Failure;
using core::Message;
using json = nlohmann::ordered_json;

namespace {

constexpr int fileVersion = 2, withoutGraphs = 1;
constexpr size_t digits = 16; ///< of a word

std::string encode(const Algorithms &algorithms) {
  std::string text;
  for (const BlasAlgorithm &algorithm : algorithms)
    for (uint64_t word : algorithm) {
      char some[digits];
      size_t many = static_cast<size_t>(std::to_chars(some, some + digits, word, 16).ptr - some);
      text += std::string(digits - many, '0') + std::string(some, many);
    }
  return text;
}

/// A value of the file with the place where it stands.
class Value {
public:
  Value(const std::string &path, std::string place, const json &value)
      : path(path), place(std::move(place)), value(value) {}

  [[noreturn]] void refuse(const std::string &what) const {
    throw Failure::at(path, Message::tuningBroken, (place.empty() ? "" : place + ": ") + what);
  }
  Value at(const std::string &key) const {
    if (!value.is_object() || !value.contains(key))
      refuse("no key \"" + key + "\"");
    return {path, place.empty() ? key : place + "." + key, value.at(key)};
  }
  std::string text() const {
    if (!value.is_string())
      refuse("not a text");
    return value.get<std::string>();
  }
  double number() const {
    if (!value.is_number())
      refuse("not a number");
    return value.get<double>();
  }
  Algorithms algorithms() const {
    std::string all = text();
    constexpr size_t each = std::tuple_size_v<BlasAlgorithm> * digits;
    Algorithms found(all.size() / each);
    bool good = !found.empty() && all.size() % each == 0;
    const char *from = all.data();
    for (BlasAlgorithm &algorithm : found)
      for (uint64_t &word : algorithm) {
        auto [end, error] = std::from_chars(from, from + digits, word, 16);
        good = good && error == std::errc() && end == from + digits;
        from += digits;
      }
    if (!good)
      refuse("not " + std::to_string(each) + " hexadecimal digits, or several times as many");
    return found;
  }
  DnnChoice choice() const {
    auto found = DnnChoice::read(text());
    if (!found)
      refuse("not an engine with its knobs");
    return *found;
  }
  std::vector<std::string> keys() const {
    std::vector<std::string> names;
    if (!value.is_object())
      refuse("not an object");
    for (const auto &[key, member] : value.items())
      names.push_back(key);
    return names;
  }

private:
  const std::string &path;
  std::string place;
  const json &value;
};

json parse(const std::string &path) {
  auto text = format::readPlainFile(path);
  if (!text)
    throw Failure::at(path, Message::cannotOpen, text.message());
  try {
    return json::parse(*text);
  } catch (const json::parse_error &error) {
    throw Failure::at(path, Message::tuningBroken, "byte " + std::to_string(error.byte) + " is not JSON's");
  }
}

} // namespace

void writeTuning(const std::string &path, const TuningFile &file) {
  json products = json::object();
  for (const auto &[key, product] : file.products)
    products[key] = {{"algorithm", encode(product.algorithms)}, {"microseconds", product.microseconds}};
  json graphs = json::object();
  for (const auto &[key, graph] : file.graphs)
    graphs[key] = {{"engine", graph.choice.text()}, {"microseconds", graph.microseconds}};
  json whole = {{"par_tuning", fileVersion}, {"gpu", file.of.gpu},   {"cublaslt", file.of.library},
                {"bundle", file.of.bundle},  {"products", products}, {"cudnn", file.dnn},
                {"graphs", graphs}};
  std::string part = path + "." + std::to_string(getpid());
  errno = 0;
  std::ofstream out(part);
  out << whole.dump(1) << '\n';
  out.close();
  if (!out || std::rename(part.c_str(), path.c_str()) != 0) {
    int reason = errno;
    std::remove(part.c_str());
    throw Failure::at(path, Message::cannotWrite, strerror(reason));
  }
}

TuningFile readTuning(const std::string &path) {
  json text = parse(path);
  Value whole(path, "", text);
  Value version = whole.at("par_tuning");
  if (version.number() != fileVersion && version.number() != withoutGraphs)
    version.refuse("not version " + std::to_string(withoutGraphs) + " or " + std::to_string(fileVersion));
  TuningFile file;
  file.of = {whole.at("gpu").text(), whole.at("cublaslt").text(), whole.at("bundle").text()};
  Value products = whole.at("products");
  for (const std::string &key : products.keys()) {
    Value product = products.at(key);
    file.products[key] = {product.at("algorithm").algorithms(), product.at("microseconds").number()};
  }
  if (version.number() == withoutGraphs)
    return file;
  file.dnn = whole.at("cudnn").text();
  Value graphs = whole.at("graphs");
  for (const std::string &key : graphs.keys()) {
    Value graph = graphs.at(key);
    file.graphs[key] = {graph.at("engine").choice(), graph.at("microseconds").number()};
  }
  return file;
}

} // namespace par::cuda

// A request: arrays for the inputs of predict, and the results that are wanted; or prompts for a decoder.
#pragma once

#include "Frame.h"
#include "app/Requests.h"
#include "par/format/Manifest.h"

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <vector>

namespace par::serve {

/// Facts about the entry that answers.
struct Takes {
  const format::Manifest *manifest = nullptr;
  std::vector<size_t> inputs;                  ///< indices in the manifest
  std::vector<const format::Output *> outputs; ///< that it gives
  uint64_t rows = 1;                           ///< of a call
  /// Whether a row's results depend on its own row only, so that requests share a call. Else each has all rows.
  bool gathers = true;
};

struct Request {
  Form form = Form::Json;
  std::string id; ///< JSON that comes back with the answer; "": none
  uint64_t rows = 0;
  std::vector<std::vector<std::byte>> arrays; ///< by input of the entry, in its type
  std::set<std::string> wanted;               ///< results; empty: all
  core::Request decoding;                     ///< prompts, of a decoder
  bool streams = false;                       ///< each token of them goes out when it is chosen
};

/// Reads the requests of one bundle.
class MessageReader {
public:
  virtual ~MessageReader() = default;
  /// The most bytes that a message takes.
  virtual uint64_t maxBytes() const = 0;
  /// Throws Failure, whose place is the input's name or "request". The form and, if it can be read, the id are in
  /// `request` then, too.
  virtual void read(const Frame &frame, Request &request) const = 0;
};

/// A message as an object of JSON; its id goes into the request. `form`: what the object is to be. Throws Failure.
nlohmann::json readObject(const std::string &text, const std::string &form, Request &request);
/// The begin of a value, for messages.
std::string shownValue(const nlohmann::json &value);

/// Reads arrays for one entry.
class RequestReader : public MessageReader {
public:
  explicit RequestReader(const Takes &takes) : takes(takes) {}

  /// The bytes of a full batch, each number of it as a line of JSON may spell it.
  uint64_t maxBytes() const override;
  void read(const Frame &frame, Request &request) const override;

private:
  struct Array;
  void readJson(const std::string &text, Request &request) const;
  void readFile(const std::string &bytes, Request &request) const;
  void want(const std::string &name, Request &request) const;
  uint64_t rowsOf(const std::vector<Array> &arrays) const;
  void take(std::vector<Array> &&arrays, Request &request) const;

  const Takes &takes;
};

} // namespace par::serve

// An open bundle that predicts, for the server: facts of its entry, and one call for the rows of several requests.
#pragma once

#include "Request.h"
#include "api/Caller.h"

#include <memory>
#include <span>

namespace par::serve {

/// A result for one request.
struct ResultArray {
  std::string name;
  format::DType type = format::DType::F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};

class Served {
public:
  /// `bundle`: its name, for messages. Throws Failure.
  Served(const std::string &bundle, api::Caller &caller);

  const Takes &takes() const { return facts; }
  /// Results of each of these requests, which have no more rows than a batch, or several batches where they are one.
  std::vector<std::vector<ResultArray>> predict(std::span<const Request *const> requests);

private:
  void feed(std::span<const Request *const> requests);
  ResultArray part(const format::Output &output, uint64_t first, uint64_t rows) const;

  api::Caller &caller;
  const format::Manifest &manifest;
  Takes facts;
  std::vector<std::vector<std::byte>> batches; ///< by input of the entry
};

} // namespace par::serve

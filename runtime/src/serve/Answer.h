// Answers as they go out, in their request's form.
#pragma once

#include "Served.h"

namespace par::serve {

/// A result or an error, with the line before a safetensors file.
struct Answer {
  std::vector<ResultArray> results;
  std::string error; ///< as Failure has it; "" where there are results
};

/// The bytes that go over the connection. An error is a line of JSON in both forms:
/// {"id": 7, "error": {"input": "x", "message": "...", "notes": "..."}}.
std::string encode(const Request &request, const Answer &answer);

} // namespace par::serve

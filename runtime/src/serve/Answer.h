// Answers as they go out, in their request's form.
#pragma once

#include "Served.h"

namespace par::serve {

/// How a prompt went on.
struct Continuation {
  std::vector<int64_t> tokens;
  std::string end; ///< "stop" or "length"
};

/// A result or an error, with the line before a safetensors file.
struct Answer {
  std::vector<ResultArray> results;
  std::vector<Continuation> continuations; ///< by prompt of a decoder
  std::string error;                       ///< as Failure has it; "" where there are results
};

/// The bytes that go over the connection. An error is a line of JSON in both forms:
/// {"id": 7, "error": {"input": "x", "message": "...", "notes": "..."}}.
///
/// A decoder's is {"tokens": [[3, 4]], "ends": ["length"], "prompt_tokens": 2}, or, after lines of encodeToken,
/// {"done": {"prompt_tokens": 2, "tokens": 2}}.
std::string encode(const Request &request, const Answer &answer);
/// A token as it is chosen: {"id": 7, "prompt": 0, "token": 3}, and "end" beside the last one of a prompt, if not "".
std::string encodeToken(const Request &request, uint64_t prompt, int64_t token, const std::string &end);

} // namespace par::serve

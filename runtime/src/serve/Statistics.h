// Latencies and batch sizes since the server began, in bounded memory.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace par::serve {

/// Times in buckets that are one percent wide.
class Latencies {
public:
  void add(double seconds);
  /// Milliseconds within which that share of the times lies, to one percent; 0 where there is none.
  double percentile(double share) const;
  uint64_t count() const { return all; }

private:
  static constexpr double least = 1e-6, step = 1.01;
  std::array<uint64_t, 2400> buckets{}; ///< to 6 hours
  uint64_t all = 0;
};

/// Used from any thread.
class Statistics {
public:
  void addCall(uint64_t rows);
  void addAnswer(double seconds);
  void addError();
  /// A token of any sequence of a decoder; the first of one, so long after its request came.
  void addToken();
  void addFirstToken(double seconds);
  /// One line: requests, rows a call, percentiles, rate, errors.
  std::string sentence() const;
  /// The same as one line of JSON, with the number of calls by their rows.
  std::string json() const;

private:
  double elapsed() const;

  mutable std::mutex mutex;
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  Latencies latencies, firstTokens;
  std::map<uint64_t, uint64_t> calls; ///< by rows
  uint64_t rows = 0, called = 0, errors = 0, tokens = 0;
};

} // namespace par::serve

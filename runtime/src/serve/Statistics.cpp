#include "Statistics.h"

#include "par/messages/Failure.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace par::serve {

void Latencies::add(double seconds) {
  double bucket = std::log(std::max(seconds, least) / least) / std::log(step);
  ++buckets[std::min(static_cast<size_t>(bucket), buckets.size() - 1)];
  ++all;
}

double Latencies::percentile(double share) const {
  auto place = static_cast<uint64_t>(std::ceil(share * static_cast<double>(all)));
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets.size() && all > 0; ++i)
    if ((seen += buckets[i]) >= std::max<uint64_t>(place, 1))
      return 1e3 * least * std::pow(step, static_cast<double>(i) + 0.5);
  return 0;
}

void Statistics::addCall(uint64_t ofCall) {
  std::lock_guard lock(mutex);
  ++called;
  rows += ofCall;
  ++calls[ofCall];
}

void Statistics::addAnswer(double seconds) {
  std::lock_guard lock(mutex);
  latencies.add(seconds);
}

void Statistics::addError() {
  std::lock_guard lock(mutex);
  ++errors;
}

void Statistics::addToken() {
  std::lock_guard lock(mutex);
  ++tokens;
}

void Statistics::addFirstToken(double seconds) {
  std::lock_guard lock(mutex);
  firstTokens.add(seconds);
}

double Statistics::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

static nlohmann::ordered_json percentiles(const Latencies &of) {
  return {{"p50", of.percentile(0.5)}, {"p90", of.percentile(0.9)}, {"p99", of.percentile(0.99)}};
}

static std::string rounded(double value) {
  char text[32];
  snprintf(text, sizeof text, "%.3f", value);
  return text;
}

std::string Statistics::sentence() const {
  std::lock_guard lock(mutex);
  double mean = called ? static_cast<double>(rows) / static_cast<double>(called) : 0;
  std::string text =
      core::format("served  {} requests, {} rows in {} calls ({} a call), {} errors; latency p50 {} ms, p90 {}, p99 "
                   "{}; {} requests/s",
                   latencies.count(), rows, called, rounded(mean), errors, rounded(latencies.percentile(0.5)),
                   rounded(latencies.percentile(0.9)), rounded(latencies.percentile(0.99)),
                   rounded(static_cast<double>(latencies.count()) / elapsed()));
  if (tokens > 0)
    text += core::format("; {} tokens, {}/s, the first of a prompt after p50 {} ms, p99 {}", tokens,
                         rounded(static_cast<double>(tokens) / elapsed()), rounded(firstTokens.percentile(0.5)),
                         rounded(firstTokens.percentile(0.99)));
  return text;
}

std::string Statistics::json() const {
  std::lock_guard lock(mutex);
  nlohmann::ordered_json byRows = nlohmann::ordered_json::object();
  for (const auto &[ofCall, count] : calls)
    byRows[std::to_string(ofCall)] = count;
  double seconds = elapsed();
  nlohmann::ordered_json facts = {
      {"seconds", seconds},
      {"requests", latencies.count()},
      {"errors", errors},
      {"rows", rows},
      {"calls", called},
      {"calls_by_rows", byRows},
      {"latency_ms", percentiles(latencies)},
      {"requests_per_s", static_cast<double>(latencies.count()) / seconds},
      {"rows_per_s", static_cast<double>(rows) / seconds},
  };
  if (tokens > 0) {
    facts["tokens"] = tokens;
    facts["tokens_per_s"] = static_cast<double>(tokens) / seconds;
    facts["first_token_ms"] = percentiles(firstTokens);
  }
  return facts.dump();
}

} // namespace par::serve

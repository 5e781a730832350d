#include "Queue.h"

#include <utility>

namespace par::serve {

void Lines::add(std::string_view line) {
  std::lock_guard lock(mutex);
  lines += line;
}

std::string Lines::take() {
  std::lock_guard lock(mutex);
  return std::exchange(lines, {});
}

void Queue::add(PendingRequest request) {
  {
    std::lock_guard lock(mutex);
    waiting.push_back(std::move(request));
  }
  changed.notify_one();
}

void Queue::close() {
  {
    std::lock_guard lock(mutex);
    isClosed = true;
  }
  changed.notify_one();
}

/// Whether a batch cannot take another request, or the next one.
bool Queue::isFull() const {
  uint64_t have = 0;
  for (const PendingRequest &request : waiting)
    if ((have += request->request.rows) >= rows)
      return true;
  return !gathers && !waiting.empty();
}

PendingRequest Queue::takeNow() {
  std::lock_guard lock(mutex);
  while (!waiting.empty()) {
    PendingRequest next = std::move(waiting.front());
    waiting.pop_front();
    if (!next->isAbandoned)
      return next;
  }
  return nullptr;
}

std::vector<PendingRequest> Queue::gather() {
  std::unique_lock lock(mutex);
  std::vector<PendingRequest> batch;
  while (batch.empty()) {
    changed.wait(lock, [&] { return isClosed || !waiting.empty(); });
    if (waiting.empty())
      return batch;
    changed.wait_until(lock, waiting.front()->arrived + maxWait, [&] { return isClosed || isFull(); });
    uint64_t have = 0;
    while (!waiting.empty() && have + waiting.front()->request.rows <= rows && (gathers || batch.empty())) {
      PendingRequest next = std::move(waiting.front());
      waiting.pop_front();
      if (next->isAbandoned)
        continue;
      have += next->request.rows;
      batch.push_back(std::move(next));
    }
  }
  return batch;
}

} // namespace par::serve

// A comparison of a file's content that runs beside what reads the file.
#pragma once

#include <functional>
#include <future>

namespace par::core {

class ContentCheck {
public:
  /// `compare` throws Failure where the content is another one.
  explicit ContentCheck(std::function<void()> compare) : compare(std::move(compare)) {}

  /// Begins in a thread of its own, in the process that is to finish it.
  void start();
  /// Waits for the end. Throws what the comparison threw, each time.
  void finish();

private:
  std::function<void()> compare;
  std::shared_future<void> outcome;
};

} // namespace par::core

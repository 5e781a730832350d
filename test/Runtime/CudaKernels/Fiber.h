// Stacks that one thread switches between.
#pragma once

#include <cstddef>
#include <memory>

namespace emulation {

/// Runs a function on a stack of its own, until it pauses or ends.
class Fiber {
public:
  Fiber();
  ~Fiber();
  Fiber(Fiber &&) noexcept;
  /// Starts again with `function(argument)`, which must pause for the last time at its end and not be resumed then.
  void start(void (*function)(void *), void *argument);
  /// Runs until the fiber pauses.
  void resume();
  /// Called on the fiber: back to whom resumed it.
  void pause();

private:
  struct Stack;
  std::unique_ptr<Stack> stack;
};

} // namespace emulation

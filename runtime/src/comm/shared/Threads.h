// Threads that cannot be started say why.
#pragma once

#include <functional>
#include <thread>

namespace par::comm {

/// Throws std::runtime_error with a sentence where the system gives no thread.
std::thread startThread(std::function<void()> body);

} // namespace par::comm

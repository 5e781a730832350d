//===- Threads.h - threads that cannot be started say why ------------------===//
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#pragma once

#include <functional>
#include <thread>

namespace par::comm {

/// Throws std::runtime_error with a sentence where the system gives no thread.
std::thread startThread(std::function<void()> body);

} // namespace par::comm

//===- Interrupt.h - what Ctrl-C does --------------------------------------===//
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef PAR_SRC_COMM_INTERRUPT_H
#define PAR_SRC_COMM_INTERRUPT_H

#include "comm/Board.h"

namespace par::comm {

/// While it lives, the first SIGINT or SIGTERM lets the job finish its step, the second ends this process at
/// once. One at a time in a process.
class Interrupt {
public:
  explicit Interrupt(Board &board);
  Interrupt(const Interrupt &) = delete;
  ~Interrupt();

  /// 128 + the signal that came (130 for SIGINT), 0 if none.
  int exitCode() const;
};

} // namespace par::comm

#endif // PAR_SRC_COMM_INTERRUPT_H

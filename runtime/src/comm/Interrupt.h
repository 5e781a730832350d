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

/// While it lives, the first SIGINT or SIGTERM in this process lets the job finish its step, the second ends
/// the process at once. One at a time in a process.
class Interrupt {
public:
  explicit Interrupt(Board &board);
  Interrupt(const Interrupt &) = delete;
  ~Interrupt();
};

/// 128 + the signal that any process of the job got (130 for SIGINT), 0 if none.
int interruptCode(const Board &board);

} // namespace par::comm

#endif // PAR_SRC_COMM_INTERRUPT_H

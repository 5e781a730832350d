//===- Interrupt.cpp - what Ctrl-C does ------------------------------------===//
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "comm/Interrupt.h"

#include <csignal>
#include <unistd.h>

using namespace par::comm;

// A signal handler reaches nothing but globals.
static std::atomic<Board *> interrupted{nullptr};
static std::atomic<int> signalled{0};

static void onSignal(int signal) {
  if (signalled.exchange(signal) != 0)
    _exit(128 + signal);
  if (Board *board = interrupted.load()) {
    board->signal.store(signal);
    board->stop();
  }
}

// Who read what the job prints has gone (par-run ... | head): it ends as by Ctrl-C, with its step done and its save
// complete, and a second line that nobody reads is no reason to hurry.
static void onClosedPipe(int signal) {
  if (Board *board = interrupted.load()) {
    int none = 0;
    board->signal.compare_exchange_strong(none, signal);
    board->stop();
  }
}

Interrupt::Interrupt(Board &board) {
  signalled.store(0);
  interrupted.store(&board);
  struct sigaction action{};
  action.sa_handler = onSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = onClosedPipe;
  sigaction(SIGPIPE, &action, nullptr);
}

Interrupt::~Interrupt() {
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  interrupted.store(nullptr);
}

int par::comm::interruptCode(const Board &board) {
  return board.signal.load() ? 128 + board.signal.load() : 0;
}

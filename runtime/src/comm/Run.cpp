//===- Run.cpp - every way of starting ends in rankMain --------------------===//
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "comm/Diagnosis.h"
#include "comm/Local.h"

using namespace par::comm;

int par::comm::run(const Launch &launch, const std::function<int(Control &)> &rankMain) {
  if (launch.n.value_or(1) > 1 && launch.transport == Transport::shm) {
    printLine(errorLine(launch.bundle, "--comm shm is not supported yet"));
    return 2;
  }
  return runThreads(launch, launch.n.value_or(1), rankMain);
}

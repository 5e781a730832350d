//===- Table.cpp - a bundle's communicators as one table -------------------===//
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "par/comm/Communicator.h"
#include "par/comm/Sentences.h"

#include <algorithm>

using namespace par;
using namespace par::comm;

std::vector<Members> par::comm::tableOf(const format::Manifest &manifest) {
  std::vector<Members> table;
  for (const format::Communicator &communicator : manifest.communicators)
    for (const std::vector<uint32_t> &group : communicator.groups)
      table.push_back({communicator.name, group});
  return table;
}

uint32_t par::comm::indexOf(const format::Manifest &manifest, std::string_view name, uint32_t rank) {
  uint32_t index = 0;
  for (const format::Communicator &communicator : manifest.communicators)
    for (const std::vector<uint32_t> &group : communicator.groups) {
      if (communicator.name == name && std::find(group.begin(), group.end(), rank) != group.end())
        return index;
      ++index;
    }
  throw std::invalid_argument(say(Sentence::noGroup, rank, name));
}

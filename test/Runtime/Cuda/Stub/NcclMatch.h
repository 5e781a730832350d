// The members' sides of one communication of the stub NCCL, and its result.
#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace par::stub {

struct Comm;

struct Part {
  Comm *comm = nullptr;
  std::string kind;
  const char *in = nullptr;
  char *out = nullptr;
  size_t n = 0;
  int type = 0, op = 0, peer = 0;

  bool isTransfer() const { return kind == "send" || kind == "recv"; }
};

struct Match {
  std::map<int, Part> sides;
  bool done = false;
};

/// Bytes of an element of an ncclDataType_t.
size_t sizeOf(int type);
/// Reads the inputs of all sides and writes their outputs.
void perform(Match &match);

} // namespace par::stub

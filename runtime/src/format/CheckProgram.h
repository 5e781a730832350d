// The checks of one program.
#pragma once

#include "Check.h"
#include "par/format/Printable.h"

namespace par::format {

struct Checker {
  const Program &program;
  const std::string &where;

  /// CheckTables.cpp: names, buffers, calls, communicators, events, entries.
  Status tables() const;
  /// CheckInstructions.cpp: indices and operands of every instruction; needs sound tables.
  Status instructions() const;

private:
  template <typename T>
  Status unique(const std::vector<T> &table, const char *what) const;
  Status alias(const Buffer &buffer, const std::string &place) const;
  Status buffer(const Buffer &buffer) const;
  Status call(const Call &call) const;
  Status epilogue(const Call &call, const std::string &place) const;
  Status dependences(const Kernel &kernel) const;
  Status launch(const Kernel &kernel) const;
  Status entry(const Entry &entry) const;
  Status instruction(const Block &block, size_t n) const;
  Status operands(const Instruction &it, const std::string &place) const;
  Status kernel(const Instruction &it, const std::string &place) const;
  Status product(const Instruction &it, const std::string &place) const;
  Status communication(const Instruction &it, const std::string &place) const;
  Status group(const Block &block, size_t n, const std::string &place) const;
  Status signature(const Instruction &it, std::initializer_list<Access> accesses, const std::string &place) const;
  Status elements(const Instruction &it, const std::string &place) const;

  Error fail(const std::string &place, const std::string &message) const {
    return Error{printable(where + ": " + place + ": " + message)};
  }
};

} // namespace par::format

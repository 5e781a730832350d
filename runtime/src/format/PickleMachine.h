// Pickle's machine, without its code: values of a pickle as a graph.
#pragma once

#include "par/format/Error.h"

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

namespace par::format {

struct PickleValue;

/// Held by the machine; a value may hold itself.
using PickleRef = const PickleValue *;

struct PickleValue {
  enum Kind {
    None,
    Integer,
    Text,
    Global, ///< a function or class by its name, `text` "module.name"
    List,   ///< or a tuple
    Dict,   ///< `items` are keys and values in turn
    Stored, ///< what the file keeps beside the pickle: persistent id `items`
    Call,   ///< `items`: the function, then its arguments
    Other,  ///< of no meaning here: floats, bytes, sets
    Mark    ///< only on the stack
  };
  Kind kind = Other;
  int64_t integer = 0; ///< truth values too
  std::string text;
  std::vector<PickleRef> items;
};

/// The program, from its begin; false where it ends too early.
class PickleBytes {
public:
  explicit PickleBytes(std::string_view program) : left(program), size(program.size()) {}

  size_t place() const { return size - left.size(); }
  bool take(uint64_t count, std::string_view &bytes);
  bool takeNumber(size_t bytes, uint64_t &number);
  bool takeLine(std::string_view &line);

private:
  std::string_view left;
  size_t size;
};

/// The values that were made, and those that are being put together.
class PickleStack {
public:
  PickleValue *make(PickleValue::Kind kind);
  size_t made() const { return values.size(); }
  void push(PickleValue *value) { stack.push_back(value); }
  /// Null if there is none, or a mark.
  PickleValue *top() const;
  /// Takes the top; null likewise.
  PickleValue *pop();
  /// The values above the last mark, which goes too; false if there is none.
  bool popGroup(std::vector<PickleRef> &group);
  /// The last values as a list; false if there are fewer.
  bool popList(size_t count, std::vector<PickleRef> &list);

private:
  std::deque<PickleValue> values;
  std::vector<PickleValue *> stack;
};

class PickleMachine {
public:
  explicit PickleMachine(std::string_view program) : bytes(program) {}

  /// The value that the program leaves; lives as long as the machine.
  Expected<PickleRef> run();

private:
  enum class Next { goOn, stop, unknown, broken };

  Next step(unsigned char code);
  Next stepText(unsigned char code);
  Next stepNumber(unsigned char code);
  Next stepMemo(unsigned char code);
  Next stepStack(unsigned char code);
  Next stepGroup(unsigned char code);
  Next stepName(unsigned char code);
  Next stepCall(unsigned char code);

  Next push(PickleValue *value);
  Next pushText(PickleValue::Kind kind, uint64_t lengthBytes);
  /// Adds values to the list or dict on the top.
  Next add(PickleValue::Kind kind, const std::vector<PickleRef> &group);

  PickleBytes bytes;
  PickleStack stack;
  std::vector<PickleValue *> memo;
};

} // namespace par::format

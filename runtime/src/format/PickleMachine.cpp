// Opcodes of protocols 0 to 5 that writers of tensors use, as of Python's pickletools. Each reads at most the bytes
// that it names, and makes at most one value: a program of n bytes leaves at most n of them.
#include "PickleMachine.h"

#include <cstring>

using namespace par::format;
using Kind = PickleValue::Kind;

/// Parts of a persistent id; torch's has five.
static constexpr size_t maxId = 16, maxGlobal = 1024;

bool PickleBytes::take(uint64_t count, std::string_view &bytes) {
  if (count > left.size())
    return false;
  bytes = left.substr(0, count);
  left.remove_prefix(count);
  return true;
}

bool PickleBytes::takeNumber(size_t count, uint64_t &number) {
  std::string_view at;
  number = 0;
  if (!take(count, at))
    return false;
  std::memcpy(&number, at.data(), count);
  return true;
}

bool PickleBytes::takeLine(std::string_view &line) {
  size_t end = left.find('\n');
  if (end == std::string_view::npos)
    return false;
  line = left.substr(0, end);
  left.remove_prefix(end + 1);
  return true;
}

PickleValue *PickleStack::make(Kind kind) {
  values.emplace_back().kind = kind;
  return &values.back();
}

PickleValue *PickleStack::top() const {
  return stack.empty() || stack.back()->kind == Kind::Mark ? nullptr : stack.back();
}

PickleValue *PickleStack::pop() {
  PickleValue *value = top();
  if (value)
    stack.pop_back();
  return value;
}

bool PickleStack::popGroup(std::vector<PickleRef> &group) {
  size_t at = stack.size();
  while (at > 0 && stack[at - 1]->kind != Kind::Mark)
    --at;
  if (at == 0)
    return false;
  group.assign(stack.begin() + static_cast<std::ptrdiff_t>(at), stack.end());
  stack.resize(at - 1);
  return true;
}

bool PickleStack::popList(size_t count, std::vector<PickleRef> &list) {
  list.resize(count);
  while (count-- > 0)
    if (!(list[count] = pop()))
      return false;
  return true;
}

PickleMachine::Next PickleMachine::push(PickleValue *value) {
  stack.push(value);
  return Next::goOn;
}

PickleMachine::Next PickleMachine::pushText(Kind kind, uint64_t lengthBytes) {
  uint64_t length = 0;
  std::string_view text;
  if (!bytes.takeNumber(lengthBytes, length) || !bytes.take(length, text))
    return Next::broken;
  PickleValue *value = stack.make(kind);
  if (kind == Kind::Text)
    value->text = text;
  return push(value);
}

PickleMachine::Next PickleMachine::add(Kind kind, const std::vector<PickleRef> &group) {
  PickleValue *to = stack.top();
  if (!to || (kind == Kind::Dict && group.size() % 2))
    return Next::broken;
  if (to->kind == kind)
    to->items.insert(to->items.end(), group.begin(), group.end());
  return Next::goOn;
}

PickleMachine::Next PickleMachine::stepText(unsigned char code) {
  switch (code) {
  case 'X': // BINUNICODE
    return pushText(Kind::Text, 4);
  case 0x8c: // SHORT_BINUNICODE
    return pushText(Kind::Text, 1);
  case 0x8d: // BINUNICODE8
    return pushText(Kind::Text, 8);
  case 'T': // BINSTRING
  case 'B': // BINBYTES
    return pushText(Kind::Other, 4);
  case 'U': // SHORT_BINSTRING
  case 'C': // SHORT_BINBYTES
    return pushText(Kind::Other, 1);
  case 0x8e: // BINBYTES8
  case 0x96: // BYTEARRAY8
    return pushText(Kind::Other, 8);
  default:
    return Next::unknown;
  }
}

PickleMachine::Next PickleMachine::stepNumber(unsigned char code) {
  uint64_t number = 0, length = code == 'K' ? 1 : code == 'M' ? 2 : code == 'J' ? 4 : code == 'G' ? 8 : 0;
  bool isLong = code == 0x8a; // LONG1
  if (isLong && !bytes.takeNumber(1, length))
    return Next::broken;
  bool isWide = length > 8; // the state of a random generator; no dim has so many
  std::string_view wide;
  if (isWide ? !bytes.take(length, wide) : !bytes.takeNumber(length, number))
    return Next::broken;
  PickleValue *value = stack.make(code == 'G' || isWide ? Kind::Other : Kind::Integer); // BINFLOAT
  bool isSigned = isLong || code == 'J';
  if (isSigned && length > 0 && length < 8 && number >> (8 * length - 1))
    number |= ~uint64_t(0) << (8 * length);
  value->integer = static_cast<int64_t>(number);
  return push(value);
}

PickleMachine::Next PickleMachine::stepMemo(unsigned char code) {
  bool gets = code == 'h' || code == 'j';                                    // BINGET, LONG_BINGET
  uint64_t place = memo.size(), length = code == 'h' || code == 'q' ? 1 : 4; // BINPUT, LONG_BINPUT
  if (code != 0x94 && !bytes.takeNumber(length, place))                      // MEMOIZE
    return Next::broken;
  if (gets)
    return place < memo.size() && memo[place] ? push(memo[place]) : Next::broken;
  if (!stack.top() || place > stack.made()) // they count values
    return Next::broken;
  if (place >= memo.size())
    memo.resize(place + 1, nullptr);
  memo[place] = stack.top();
  return Next::goOn;
}

PickleMachine::Next PickleMachine::stepStack(unsigned char code) {
  uint64_t ignored = 0;
  PickleValue *value = nullptr;
  switch (code) {
  case 0x80: // PROTO
    return bytes.takeNumber(1, ignored) ? Next::goOn : Next::broken;
  case 0x95: // FRAME
    return bytes.takeNumber(8, ignored) ? Next::goOn : Next::broken;
  case '(': // MARK
    return push(stack.make(Kind::Mark));
  case '0': // POP
    return stack.pop() ? Next::goOn : Next::broken;
  case '2': // DUP
    return stack.top() ? push(stack.top()) : Next::broken;
  case 'N': // NONE
    return push(stack.make(Kind::None));
  case 0x88: // NEWTRUE
  case 0x89: // NEWFALSE
    value = stack.make(Kind::Integer);
    value->integer = code == 0x88;
    return push(value);
  case ']': // EMPTY_LIST
  case ')': // EMPTY_TUPLE
    return push(stack.make(Kind::List));
  case '}': // EMPTY_DICT
    return push(stack.make(Kind::Dict));
  case 0x8f: // EMPTY_SET
    return push(stack.make(Kind::Other));
  case '.': // STOP
    return Next::stop;
  default:
    return Next::unknown;
  }
}

PickleMachine::Next PickleMachine::stepGroup(unsigned char code) {
  std::vector<PickleRef> group;
  PickleValue *value = nullptr;
  switch (code) {
  case 0x85: // TUPLE1 to TUPLE3
  case 0x86:
  case 0x87:
    if (!stack.popList(code - 0x84u, group))
      return Next::broken;
    value = stack.make(Kind::List);
    break;
  case 't':  // TUPLE
  case 'l':  // LIST
  case 'd':  // DICT
  case 0x91: // FROZENSET
    if (!stack.popGroup(group) || (code == 'd' && group.size() % 2))
      return Next::broken;
    value = stack.make(code == 'd' ? Kind::Dict : code == 0x91 ? Kind::Other : Kind::List);
    break;
  case 'a': // APPEND
    return stack.popList(1, group) ? add(Kind::List, group) : Next::broken;
  case 's': // SETITEM
    return stack.popList(2, group) ? add(Kind::Dict, group) : Next::broken;
  case 'e':  // APPENDS
  case 'u':  // SETITEMS
  case 0x90: // ADDITEMS
    if (!stack.popGroup(group))
      return Next::broken;
    return add(code == 'e' ? Kind::List : code == 'u' ? Kind::Dict : Kind::Other, group);
  default:
    return Next::unknown;
  }
  value->items = std::move(group);
  return push(value);
}

PickleMachine::Next PickleMachine::stepName(unsigned char code) {
  std::string_view module, name;
  std::vector<PickleRef> both;
  if (code == 'c' && (!bytes.takeLine(module) || !bytes.takeLine(name))) // GLOBAL
    return Next::broken;
  if (code != 'c' && (!stack.popList(2, both) || both[0]->kind != Kind::Text || both[1]->kind != Kind::Text))
    return Next::broken; // STACK_GLOBAL
  if (code != 'c' && both[0]->text.size() + both[1]->text.size() > maxGlobal)
    return Next::broken;
  PickleValue *made = stack.make(Kind::Global);
  made->text = code == 'c' ? std::string(module) + "." + std::string(name) : both[0]->text + "." + both[1]->text;
  return push(made);
}

PickleMachine::Next PickleMachine::stepCall(unsigned char code) {
  PickleValue *made = nullptr, *id = nullptr;
  std::vector<PickleRef> items; // the function and its arguments
  switch (code) {
  case 'c':
  case 0x93:
    return stepName(code);
  case 'Q': // BINPERSID
    if (!(id = stack.pop()) || id->items.size() > maxId)
      return Next::broken;
    made = stack.make(Kind::Stored);
    made->items = id->items;
    return push(made);
  case 'R':  // REDUCE
  case 0x81: // NEWOBJ
  case 0x92: // NEWOBJ_EX
    if (!stack.popList(code == 0x92 ? 3 : 2, items))
      return Next::broken;
    // An empty OrderedDict is filled by the opcodes that follow.
    if (items[0]->kind == Kind::Global && items[0]->text == "collections.OrderedDict")
      return push(stack.make(Kind::Dict));
    made = stack.make(Kind::Call);
    made->items = std::move(items);
    return push(made);
  case 'b': // BUILD: the state of an object; attributes of an OrderedDict are no entries
    return stack.pop() && stack.top() ? Next::goOn : Next::broken;
  default:
    return Next::unknown;
  }
}

PickleMachine::Next PickleMachine::step(unsigned char code) {
  constexpr std::string_view numbers = "KMJG\x8a", memos = "hjqr\x94";
  if (numbers.find(static_cast<char>(code)) != std::string_view::npos)
    return stepNumber(code);
  if (memos.find(static_cast<char>(code)) != std::string_view::npos)
    return stepMemo(code);
  for (auto group : {&PickleMachine::stepStack, &PickleMachine::stepGroup, &PickleMachine::stepText})
    if (Next next = (this->*group)(code); next != Next::unknown)
      return next;
  return stepCall(code);
}

Expected<PickleRef> PickleMachine::run() {
  uint64_t code = 0;
  for (size_t at = 0; bytes.takeNumber(1, code); at = bytes.place())
    switch (step(static_cast<unsigned char>(code))) {
    case Next::goOn:
      continue;
    case Next::stop:
      if (PickleValue *result = stack.pop())
        return PickleRef(result);
      [[fallthrough]];
    case Next::broken:
      return Error{"pickle is broken at byte " + std::to_string(at)};
    case Next::unknown:
      return Error{"pickle has at byte " + std::to_string(at) + " the opcode " + std::to_string(code) +
                   ", which files of tensors do not have"};
    }
  return Error{"pickle ends before its end"};
}

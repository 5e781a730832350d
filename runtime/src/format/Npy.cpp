// Takes the header of a .npy apart: the text is compared with what numpy writes, key by key.
#include "par/format/Npy.h"

#include "par/format/Printable.h"

#include <charconv>
#include <cstring>

using namespace par::format;

static constexpr std::string_view npyMagic = "\x93NUMPY";
/// A dict of three keys is seldom above a hundred bytes; numpy itself reads no more than this.
static constexpr uint64_t maxNpyHeader = 10'000;
static constexpr size_t maxNpyDims = 64;

static constexpr struct {
  std::string_view name; ///< without the byte order
  DType type;
} npyTypes[] = {{"f8", DType::F64}, {"f4", DType::F32}, {"f2", DType::F16}, {"i8", DType::I64},
                {"i4", DType::I32}, {"i2", DType::I16}, {"i1", DType::I8},  {"u8", DType::U64},
                {"u4", DType::U32}, {"u2", DType::U16}, {"u1", DType::U8},  {"b1", DType::I1}};

std::optional<uint64_t> par::format::bytesOfShape(const std::vector<int64_t> &shape, DType type) {
  uint64_t bytes = sizeOf(type);
  for (int64_t dim : shape)
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes) || bytes >> 62)
      return std::nullopt;
  return bytes;
}

namespace {

/// Takes a text apart, from its begin.
class NpyScanner {
public:
  explicit NpyScanner(std::string_view text) : text(text) {}

  /// Passes blanks, and `word` if it comes next.
  bool take(std::string_view word) {
    passBlanks();
    if (!text.starts_with(word))
      return false;
    text.remove_prefix(word.size());
    return true;
  }

  /// The text in quotes of one kind; nullopt if nothing does.
  std::optional<std::string_view> quoted() {
    passBlanks();
    if (text.empty() || (text[0] != '\'' && text[0] != '"'))
      return std::nullopt;
    size_t end = text.find(text[0], 1);
    if (end == std::string_view::npos)
      return std::nullopt;
    std::string_view inner = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    return inner;
  }

  std::optional<int64_t> number() {
    passBlanks();
    int64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc())
      return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return value;
  }

private:
  void passBlanks() { text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size())); }

  std::string_view text;
};

/// The three keys, each once.
struct NpyKeys {
  std::optional<std::string_view> descr;
  std::optional<bool> columns;
  std::optional<std::vector<int64_t>> shape;
};

} // namespace

static std::optional<std::vector<int64_t>> readTuple(NpyScanner &scanner) {
  std::vector<int64_t> shape;
  if (!scanner.take("("))
    return std::nullopt;
  while (!scanner.take(")")) {
    std::optional<int64_t> dim = scanner.number();
    if (!dim || shape.size() == maxNpyDims)
      return std::nullopt;
    shape.push_back(*dim);
    if (!scanner.take(",")) {
      if (!scanner.take(")"))
        return std::nullopt;
      break;
    }
  }
  return shape;
}

static bool readNpyKey(NpyScanner &scanner, NpyKeys &keys) {
  std::optional<std::string_view> key = scanner.quoted();
  if (!key || !scanner.take(":"))
    return false;
  if (*key == "descr" && !keys.descr)
    return (keys.descr = scanner.quoted()).has_value();
  if (*key == "shape" && !keys.shape)
    return (keys.shape = readTuple(scanner)).has_value();
  if (*key != "fortran_order" || keys.columns)
    return false;
  keys.columns = scanner.take("True");
  return *keys.columns || scanner.take("False");
}

static std::optional<NpyKeys> readNpyKeys(std::string_view text) {
  NpyScanner scanner(text);
  NpyKeys keys;
  if (!scanner.take("{"))
    return std::nullopt;
  while (!scanner.take("}")) {
    if (!readNpyKey(scanner, keys))
      return std::nullopt;
    if (!scanner.take(",")) {
      if (!scanner.take("}"))
        return std::nullopt;
      break;
    }
  }
  return keys.descr && keys.columns && keys.shape ? std::optional(std::move(keys)) : std::nullopt;
}

/// "<f4", "|u1"; of one byte any order.
static std::optional<DType> npyTypeOf(std::string_view descr) {
  if (descr.size() != 3 || std::string_view("<|=>").find(descr[0]) == std::string_view::npos)
    return std::nullopt;
  for (const auto &entry : npyTypes)
    if (entry.name == descr.substr(1))
      return descr[0] == '<' || sizeOf(entry.type) == 1 ? std::optional(entry.type) : std::nullopt;
  return std::nullopt;
}

/// The text of the header, and where it ends.
static Expected<std::pair<std::string_view, uint64_t>> headerText(std::string_view file) {
  if (!file.starts_with(npyMagic) || file.size() < npyMagic.size() + 4)
    return Error{"is no .npy array: it does not begin as one"};
  auto version = static_cast<unsigned char>(file[npyMagic.size()]);
  if (version < 1 || version > 3)
    return Error{"is a .npy array of version " + std::to_string(version) + "; versions 1 to 3 are read"};
  size_t width = version == 1 ? 2 : 4, at = npyMagic.size() + 2;
  uint64_t length = 0;
  if (file.size() < at + width)
    return Error{"is no .npy array: it ends within its header"};
  std::memcpy(&length, file.data() + at, width);
  at += width;
  if (length > maxNpyHeader || length > file.size() - at)
    return Error{"header of " + std::to_string(length) + " bytes does not fit into the array of " +
                 std::to_string(file.size()) + ", or is longer than 10,000"};
  return std::pair(file.substr(at, length), at + length);
}

Expected<NpyHeader> par::format::readNpy(std::string_view file) {
  auto found = headerText(file);
  if (!found)
    return found.error();
  auto [text, begin] = *found;
  std::optional<NpyKeys> keys = readNpyKeys(text);
  if (!keys)
    return Error{"header is not what numpy writes, a dict of descr, fortran_order and shape: " +
                 excerpt(printable(std::string(text)), 120)};
  std::optional<DType> type = npyTypeOf(*keys->descr);
  if (!type)
    return Error{"has the type " + excerpt(printable(std::string(*keys->descr)), 40) +
                 "; numbers and truth values are read, the lowest byte first"};
  size_t wide = 0;
  for (int64_t dim : *keys->shape)
    wide += dim != 1;
  if (*keys->columns && wide > 1)
    return Error{"is in Fortran's order; numpy.ascontiguousarray of it is read"};
  std::optional<uint64_t> bytes = bytesOfShape(*keys->shape, *type);
  if (!bytes || *bytes != file.size() - begin)
    return Error{"has " + std::to_string(file.size() - begin) + " bytes of data, and its shape needs " +
                 (bytes ? std::to_string(*bytes) : "more than can be")};
  return NpyHeader{*type, std::move(*keys->shape), begin};
}

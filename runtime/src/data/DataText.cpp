// Next-token windows over the bytes of a file, or over its integers.
#include "par/data/Data.h"
#include "par/files/Convert.h"
#include "par/messages/Failure.h"

#include <cstring>

namespace par::core {
namespace {

using format::Input;
using format::TextFeed;

/// The integers of a file.
struct TokenArray {
  DType type = DType::U8;
  std::span<const std::byte> bytes;

  uint64_t count() const { return bytes.size() / format::sizeOf(type); }
};

class WindowDataset : public Dataset {
public:
  /// `file` holds the tokens; `unit`: what a message calls them, "bytes" or "tokens".
  WindowDataset(std::shared_ptr<const ArrayFile> arrays, MappedFile mapped, TokenArray tokens, std::string flag,
                const format::Manifest &manifest, const WindowFeed &given)
      : arrays(std::move(arrays)), file(std::move(mapped)), tokens(tokens), flag(std::move(flag)), feed(*manifest.text),
        shift(shiftOf(manifest, given, place(), this->flag)) {
    const Input *input = manifest.findInput(feed.tokens);
    if (!input || input->shape.size() != 2 || input->type != DType::I64)
      throw Failure::at(place(), Message::textWithoutFeed, this->flag);
    const Input *labels = manifest.findInput(feed.labels);
    if (!input->microbatched ||
        (labels && (labels->type != input->type || labels->shape != input->shape || !labels->microbatched)))
      throw Failure::at(place(), Message::labelsUnlike, this->flag, feed.tokens,
                        describeArray(input->type, input->shape), feed.labels,
                        labels ? describeArray(labels->type, labels->shape) : "not there");
    length = static_cast<uint64_t>(input->shape[1]);
    stride = given.stride.value_or(length);
    uint64_t count = this->tokens.count();
    windows = count < shift + length ? 0 : (count - shift - length) / stride + 1;
    if (windows < manifest.batch)
      throw Failure::at(place(), Message::textTooShort, grouped(count), unit(), manifest.batch, length);
    symbols = std::min(minLimit(*input), labels ? minLimit(*labels) : INT64_MAX);
    for (uint64_t i = 0; isText() && symbols < 256 && i < count; ++i)
      tokenAt(i);
  }

  uint64_t rows() const override { return windows; }
  bool has(const std::string &input) const override { return input == feed.tokens || input == feed.labels; }
  std::string describe() const override {
    return core::format("{}: {} {}, {} windows of {}{}", place(), grouped(tokens.count()), unit(), windows, length,
                        stride == length ? "" : core::format(", {} apart", stride));
  }
  std::string feeds() const override {
    return flag + " " + place() + " feeds \"" + feed.tokens + "\"" +
           (feed.labels.empty() ? "" : " and \"" + feed.labels + "\"");
  }
  std::string place() const override { return arrays ? arrays->path() : file.path(); }

  const std::byte *row(const Input &input, uint64_t row, std::vector<std::byte> &scratch) const override {
    uint64_t first = row * stride + (input.name == feed.labels && feed.labels != feed.tokens ? shift : 0);
    scratch.resize(length * sizeof(int64_t));
    for (uint64_t i = 0; i < length; ++i) {
      int64_t token = tokenAt(first + i);
      std::memcpy(scratch.data() + i * sizeof token, &token, sizeof token);
    }
    return scratch.data();
  }

  const std::byte *whole(const Input &) const override { return nullptr; }
  void checkWhole() const override { arrays ? arrays->checkWhole() : file.checkWhole(); }

private:
  bool isText() const { return flag == "--text"; }
  const char *unit() const { return isText() ? "bytes" : "tokens"; }

  /// Throws Failure where the model has no such symbol: as an index it would read other memory.
  int64_t tokenAt(uint64_t i) const {
    int64_t token = integerAt(tokens.type, tokens.bytes.data(), i);
    if (token < 0 || token >= symbols)
      throw Failure::at(place(), Message::textVocabulary, isText() ? "byte" : "token", token, i, symbols);
    return token;
  }

  static uint64_t shiftOf(const format::Manifest &manifest, const WindowFeed &given, const std::string &place,
                          const std::string &flag) {
    TextFeed::Mode mode = manifest.text->mode;
    if (given.labels == "next")
      mode = TextFeed::Next;
    else if (given.labels == "same")
      mode = TextFeed::Same;
    if (mode == TextFeed::Unknown && !manifest.text->labels.empty())
      throw Failure::at(place, Message::labelsUnknown).exitsWith(exitUsage);
    return mode == TextFeed::Next ? 1 : 0;
  }

  static int64_t minLimit(const Input &input) {
    int64_t least = INT64_MAX;
    for (const format::Limits &run : input.limits)
      least = run.limit > 0 ? std::min(least, run.limit) : least;
    return least;
  }

  std::shared_ptr<const ArrayFile> arrays; ///< of a .npy, else null
  MappedFile file;                         ///< of all others
  TokenArray tokens;
  std::string flag;
  TextFeed feed;
  uint64_t shift; ///< labels are the tokens so much later
  uint64_t length = 0, stride = 0, windows = 0;
  int64_t symbols = 0;
};

/// The types that have names in files of tokens; those of numpy, too.
std::optional<DType> tokenType(const std::string &word) {
  constexpr std::pair<const char *, DType> words[] = {
      {"u8", DType::U8},     {"u16", DType::U16},  {"u32", DType::U32},    {"i32", DType::I32},
      {"i64", DType::I64},   {"uint8", DType::U8}, {"uint16", DType::U16}, {"uint32", DType::U32},
      {"int32", DType::I32}, {"int64", DType::I64}};
  for (const auto &[name, type] : words)
    if (word == name)
      return type;
  return std::nullopt;
}

std::unique_ptr<Dataset> openTokenArray(const TokenSpec &spec, const format::Manifest &manifest,
                                        const WindowFeed &feed) {
  auto file = std::make_shared<ArrayFile>(spec.path);
  const ArrayView &array = file->arrays().begin()->second;
  if (!spec.type.empty() && tokenType(spec.type) != array.type)
    throw Failure::at("par-run", Message::flagBad, "--tokens",
                      core::format("{}, which says itself that it holds {}", spec.path, format::toString(array.type)),
                      spec.path + ":" + spec.type)
        .exitsWith(exitUsage);
  if (!isInteger(array.type) || array.shape.size() != 1)
    throw Failure::at(spec.path, Message::tokensType, describeArray(array.type, array.shape));
  TokenArray tokens{array.type, array.data};
  return std::make_unique<WindowDataset>(std::move(file), MappedFile(), tokens, "--tokens", manifest, feed);
}

} // namespace

std::unique_ptr<Dataset> openText(const std::string &path, const format::Manifest &manifest, const WindowFeed &feed) {
  if (!manifest.text)
    throw Failure::at(path, Message::textWithoutFeed, "--text");
  MappedFile file(path);
  TokenArray tokens{DType::U8, file.bytes()};
  return std::make_unique<WindowDataset>(nullptr, std::move(file), tokens, "--text", manifest, feed);
}

std::unique_ptr<Dataset> openTokens(const std::string &spec, const format::Manifest &manifest, const WindowFeed &feed) {
  TokenSpec given = readTokenSpec(spec);
  if (!manifest.text)
    throw Failure::at(given.path, Message::textWithoutFeed, "--tokens");
  if (given.path.ends_with(".npy"))
    return openTokenArray(given, manifest, feed);
  if (isArrayFile(given.path))
    throw Failure::at("par-run", Message::flagBad, "--tokens", "a .npy file or one of integers only", given.path)
        .exitsWith(exitUsage);
  std::optional<DType> type = tokenType(given.type);
  if (!type)
    throw Failure::at(given.path, Message::tokensUntyped, given.path).exitsWith(exitUsage);
  MappedFile file(given.path);
  if (file.bytes().size() % format::sizeOf(*type) != 0)
    throw Failure::at(given.path, Message::tokensPart, grouped(file.bytes().size()), format::toString(*type));
  TokenArray tokens{*type, file.bytes()};
  return std::make_unique<WindowDataset>(nullptr, std::move(file), tokens, "--tokens", manifest, feed);
}

} // namespace par::core

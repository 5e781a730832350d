// Next-token windows over the bytes of a file.
#include "par/data/Data.h"
#include "par/messages/Failure.h"

#include <cstring>

namespace par::core {
namespace {

using format::Input;
using format::TextFeed;

class TextDataset : public Dataset {
public:
  TextDataset(const std::string &path, const format::Manifest &manifest, const TextFeed &feed, uint64_t shift)
      : file(path), feed(feed), shift(shift) {
    const Input *tokens = manifest.findInput(feed.tokens);
    if (!tokens || tokens->shape.size() != 2 || tokens->type != DType::I64)
      throw Failure::at(path, Message::textWithoutFeed);
    const Input *labels = manifest.findInput(feed.labels);
    if (!tokens->microbatched ||
        (labels && (labels->type != tokens->type || labels->shape != tokens->shape || !labels->microbatched)))
      throw Failure::at(path, Message::labelsUnlike, feed.tokens, describeArray(tokens->type, tokens->shape),
                        feed.labels, labels ? describeArray(labels->type, labels->shape) : "not there");
    length = static_cast<uint64_t>(tokens->shape[1]);
    uint64_t bytes = file.bytes().size();
    windows = bytes < shift ? 0 : (bytes - shift) / length;
    if (windows < manifest.batch)
      throw Failure::at(path, Message::textTooShort, grouped(bytes), manifest.batch, length);
    int64_t symbols = std::min(minLimit(*tokens), labels ? minLimit(*labels) : INT64_MAX);
    for (uint64_t i = 0; symbols < 256 && i < bytes; ++i)
      if (std::to_integer<int64_t>(file.bytes()[i]) >= symbols)
        throw Failure::at(path, Message::textVocabulary, std::to_integer<int>(file.bytes()[i]), i, symbols);
  }

  uint64_t rows() const override { return windows; }
  bool has(const std::string &input) const override { return input == feed.tokens || input == feed.labels; }
  std::string describe() const override {
    return core::format("{}: {} bytes, {} windows of {}", file.path(), grouped(file.bytes().size()), windows, length);
  }
  std::string feeds() const override {
    return "--text " + file.path() + " feeds \"" + feed.tokens + "\"" +
           (feed.labels.empty() ? "" : " and \"" + feed.labels + "\"");
  }
  std::string place() const override { return file.path(); }

  const std::byte *row(const Input &input, uint64_t row, std::vector<std::byte> &scratch) const override {
    uint64_t first = row * length + (input.name == feed.labels && feed.labels != feed.tokens ? shift : 0);
    scratch.resize(length * sizeof(int64_t));
    for (uint64_t i = 0; i < length; ++i) {
      auto token = std::to_integer<int64_t>(file.bytes()[first + i]);
      std::memcpy(scratch.data() + i * sizeof token, &token, sizeof token);
    }
    return scratch.data();
  }

  const std::byte *whole(const Input &) const override { return nullptr; }
  void checkWhole() const override { file.checkWhole(); }

private:
  static int64_t minLimit(const Input &input) {
    int64_t least = INT64_MAX;
    for (const format::Limits &run : input.limits)
      least = run.limit > 0 ? std::min(least, run.limit) : least;
    return least;
  }

  MappedFile file;
  TextFeed feed;
  uint64_t shift; ///< labels are the tokens so much later
  uint64_t length = 0, windows = 0;
};

} // namespace

std::unique_ptr<Dataset> openText(const std::string &path, const format::Manifest &manifest,
                                  const std::string &labels) {
  if (!manifest.text)
    throw Failure::at(path, Message::textWithoutFeed);
  TextFeed::Mode mode = manifest.text->mode;
  if (labels == "next")
    mode = TextFeed::Next;
  else if (labels == "same")
    mode = TextFeed::Same;
  if (mode == TextFeed::Unknown && !manifest.text->labels.empty())
    throw Failure::at(path, Message::labelsUnknown).exitsWith(exitUsage);
  return std::make_unique<TextDataset>(path, manifest, *manifest.text, mode == TextFeed::Next ? 1 : 0);
}

} // namespace par::core

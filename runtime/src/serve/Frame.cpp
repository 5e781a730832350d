#include "Frame.h"

#include "par/messages/Failure.h"

#include <algorithm>
#include <charconv>

namespace par::serve {

using core::Failure;

static constexpr std::string_view fileWord = "safetensors ";
/// The word, and digits of 64 bits.
static constexpr size_t longestFileLine = fileWord.size() + 20;

std::string framed(Form form, std::string_view body) {
  std::string text;
  if (form == Form::Safetensors)
    text = std::string(fileWord) + std::to_string(body.size()) + "\n";
  text += body;
  if (form == Form::Json)
    text += '\n';
  return text;
}

void FrameReader::end() {
  if (hasBytes() && buffer[begin] == '{')
    buffer += '\n';
}

void FrameReader::skipBlanks() {
  while (hasBytes() && std::string_view(" \t\r\n").find(buffer[begin]) != std::string_view::npos)
    ++begin;
}

/// The rest moves to the front when that is no more than what goes: every byte moves once on the mean.
void FrameReader::drop(size_t bytes) {
  begin += bytes;
  scanned = 0;
  if (begin * 2 >= buffer.size()) {
    buffer.erase(0, begin);
    begin = 0;
  }
}

std::optional<Frame> FrameReader::next() {
  if (scanned == 0)
    skipBlanks();
  if (!hasBytes())
    return std::nullopt;
  std::string_view rest = std::string_view(buffer).substr(begin);
  if (rest.front() == '{')
    return nextLine();
  size_t known = std::min(rest.size(), fileWord.size());
  if (rest.substr(0, known) == fileWord.substr(0, known))
    return nextFile();
  throw Failure("request", "a message begins with { or with \"safetensors \" and its bytes, not with \"" +
                               format::excerpt(format::printable(std::string(rest.substr(0, 20))), 40) + "\"");
}

std::optional<Frame> FrameReader::nextLine() {
  size_t end = buffer.find('\n', begin + scanned), length = (end == std::string::npos ? buffer.size() : end) - begin;
  if (length > most)
    throw Failure("request", core::format("is longer than {} bytes, the most that a request of this bundle takes; "
                                          "send fewer rows, or safetensors",
                                          core::grouped(most)));
  if (end == std::string::npos) {
    scanned = length;
    return std::nullopt;
  }
  Frame frame{Form::Json, buffer.substr(begin, length)};
  drop(length + 1);
  return frame;
}

std::optional<Frame> FrameReader::nextFile() {
  size_t end = buffer.find('\n', begin);
  size_t length = (end == std::string::npos ? buffer.size() : end) - begin;
  if (end == std::string::npos && length <= longestFileLine)
    return std::nullopt;
  std::string_view line = std::string_view(buffer).substr(begin, std::min(length, longestFileLine + 1));
  if (line.ends_with('\r'))
    line.remove_suffix(1);
  uint64_t bytes = 0;
  const char *first = line.data() + fileWord.size(), *last = line.data() + line.size();
  auto [stopped, error] = std::from_chars(first, last, bytes);
  if (error != std::errc() || stopped != last || first == last)
    throw Failure("request", "after \"safetensors \" stands the number of bytes that follow the line, not \"" +
                                 format::printable(std::string(first, last)) + "\"");
  if (bytes > most)
    throw Failure("request",
                  core::format("has {} bytes, and a request of this bundle takes at most {}; send fewer rows",
                               core::grouped(bytes), core::grouped(most)));
  if (buffer.size() - begin - length - 1 < bytes)
    return std::nullopt;
  Frame frame{Form::Safetensors, buffer.substr(begin + length + 1, bytes)};
  drop(length + 1 + bytes);
  return frame;
}

} // namespace par::serve

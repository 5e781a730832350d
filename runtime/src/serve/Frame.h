// Requests as they come in and answers as they go out: a line of JSON, or a safetensors file after a line that tells
// its length.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace par::serve {

enum class Form : uint8_t { Json, Safetensors };

struct Frame {
  Form form = Form::Json;
  std::string body; ///< without the line's end, and without the line before safetensors
};

/// The bytes that go over the connection for a body: "{...}\n", or "safetensors 1234\n" and that many bytes.
std::string framed(Form form, std::string_view body);

/// Takes the bytes of a connection apart.
class FrameReader {
public:
  /// `most`: bytes of a message.
  explicit FrameReader(uint64_t most) : most(most) {}

  void add(std::string_view bytes) { buffer.append(bytes); }
  /// No more bytes come: a last line needs no end.
  void end();
  /// The next message that is wholly there. Throws Failure where the bytes are none; all that follows is lost then.
  std::optional<Frame> next();
  /// Whether bytes of a message are there.
  bool hasBytes() const { return begin < buffer.size(); }

private:
  std::optional<Frame> nextLine();
  std::optional<Frame> nextFile();
  void skipBlanks();
  void drop(size_t bytes);

  uint64_t most;
  std::string buffer;
  size_t begin = 0;   ///< of the first message
  size_t scanned = 0; ///< bytes from there without the end of a line
};

} // namespace par::serve

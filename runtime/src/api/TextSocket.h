// Texts over a socket between a session and its ranks: eight bytes of length, then the text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace par::api {

/// Descriptors with which the program par-rank begins.
inline constexpr int socketDescriptor = 3, memoryDescriptor = 4;

class TextSocket {
public:
  explicit TextSocket(int socket) : socket(socket) {}
  TextSocket(const TextSocket &) = delete;
  TextSocket &operator=(const TextSocket &) = delete;
  ~TextSocket() { hangUp(); }

  /// False where the other end has gone.
  bool send(const std::string &text);
  /// Waits for the next text; nothing where the other end has gone.
  std::optional<std::string> receive();
  void hangUp();

private:
  bool receiveExactly(char *to, size_t bytes);

  int socket;
};

} // namespace par::api

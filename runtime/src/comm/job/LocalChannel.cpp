// Messages between ranks of one host. A request is one byte, 's' (secret) or 'm' (memory), and a proof of proofBytes:
// for memory that of the key, for the secret anything.
#include "LocalChannel.h"
#include "Secret.h"
#include "par/format/Sha256.h"
#include "par/messages/CommMessages.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

using namespace par::comm;

namespace {

constexpr std::string_view prefix = "par-";
constexpr size_t randomDigits = 32;
/// Requests taken at a time: other users may send them, too, and the host has more to do.
constexpr int maxRequests = 128;

/// The proof by which a rank gets the memory that is passed here.
std::string ticketOf(const std::string &key, const std::string &name) { return hmac(key, "par memory " + name); }

void patience(int socket, int milliseconds) {
  timeval limit{milliseconds / 1000, milliseconds % 1000 * 1000};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

std::optional<std::string> receiveExactly(int socket, size_t bytes) {
  std::string result(bytes, '\0');
  for (size_t have = 0; have < bytes;) {
    ssize_t n = recv(socket, result.data() + have, bytes - have, 0);
    if (n <= 0)
      return std::nullopt;
    have += size_t(n);
  }
  return result;
}

/// A socket at the other end of which is a process of this user, or -1.
int enter(const std::string &name) {
  int socket = isLocalChannelName(name) ? connectLocal(name) : -1;
  if (socket >= 0 && !sameUser(socket)) {
    close(socket);
    return -1;
  }
  if (socket >= 0)
    patience(socket, 5000);
  return socket;
}

void request(int socket, char what, const std::string &proof) {
  std::string bytes = what + proof;
  send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

} // namespace

bool par::comm::isLocalChannelName(std::string_view name) {
  return name.size() == prefix.size() + randomDigits && name.starts_with(prefix) &&
         name.find_first_not_of("0123456789abcdef", prefix.size()) == name.npos;
}

LocalChannel::LocalChannel(std::string token, std::string key)
    : LocalChannel(std::string(prefix) + randomHex(randomDigits / 2), std::move(token), std::move(key)) {}

LocalChannel::LocalChannel(std::string name, std::string token, std::string key)
    : token(std::move(token)), key(std::move(key)), address(std::move(name)), listener(Listener::local(address)) {}

std::string par::comm::localChannelOf(const std::string &key, const std::string &job, uint32_t host) {
  std::string text = hmac(key, "par channel of host " + std::to_string(host) + " of " + job);
  return std::string(prefix) + par::format::toHex(text).substr(0, randomDigits);
}

void LocalChannel::serve(const std::vector<int> &descriptors) const {
  for (int i = 0; i < maxRequests; ++i) {
    int socket = listener.accept();
    if (socket < 0)
      return;
    if (sameUser(socket))
      answer(socket, descriptors);
    close(socket);
  }
}

// The asking process is of this user: a slow one is waited for, but not for long.
void LocalChannel::answer(int socket, const std::vector<int> &descriptors) const {
  patience(socket, 200);
  std::optional<std::string> asked = receiveExactly(socket, 1 + proofBytes);
  if (!asked)
    return;
  if (asked->front() == 's' && !token.empty())
    send(socket, token.data(), token.size(), MSG_NOSIGNAL);
  else if (asked->front() == 'm' && sameBytes(asked->substr(1), ticketOf(key, address)))
    sendDescriptors(socket, descriptors);
}

std::optional<std::string> par::comm::askForSecret(const std::string &name) {
  int socket = enter(name);
  if (socket < 0)
    return std::nullopt;
  request(socket, 's', std::string(proofBytes, '\0'));
  std::optional<std::string> secret = receiveExactly(socket, proofBytes);
  close(socket);
  return secret;
}

std::vector<int> par::comm::fetchDescriptors(const std::string &name, const std::string &key, size_t count) {
  int socket = enter(name);
  if (socket < 0)
    throw LaunchError(exitRankLost, say(Sentence::notPassed));
  request(socket, 'm', ticketOf(key, name));
  std::vector<int> descriptors = receiveDescriptors(socket, count);
  close(socket);
  return descriptors;
}

// The secret by which ranks and host of a job know each other.
#include "Secret.h"
#include "par/comm/job/Launch.h"
#include "par/format/Sha256.h"
#include "par/messages/CommMessages.h"

#include <cerrno>
#include <cstdlib>
#include <sys/random.h>
#include <system_error>

using namespace par;
using namespace par::comm;

namespace {

constexpr size_t blockBytes = 64; // of SHA-256

std::string digest(std::string_view bytes) {
  format::Sha256 hash;
  hash.update(bytes);
  return hash.digest();
}

std::string padded(std::string_view key, char pad) {
  std::string block(key.size() > blockBytes ? digest(key) : std::string(key));
  block.resize(blockBytes);
  for (char &c : block)
    c = char(c ^ pad);
  return block;
}

/// Each block of the text is combined with one that only the key and the nonce give.
std::string masked(std::string_view key, std::string_view nonce, std::string text) {
  std::string mask;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i % proofBytes == 0)
      mask = hmac(key, "par mask " + std::to_string(i) + ' ' + std::string(nonce));
    text[i] = char(text[i] ^ mask[i % proofBytes]);
  }
  return text;
}

/// Shows that a holder of the key has sealed it.
std::string sealOf(std::string_view key, std::string_view nonceAndText) {
  return hmac(key, "par seal " + std::string(nonceAndText));
}

} // namespace

std::string par::comm::hmac(std::string_view key, std::string_view message) {
  return digest(padded(key, 0x5c) + digest(padded(key, 0x36) + std::string(message)));
}

bool par::comm::sameBytes(std::string_view a, std::string_view b) {
  if (a.size() != b.size())
    return false;
  volatile uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference = difference | uint8_t(a[i] ^ b[i]);
  return difference == 0;
}

std::string par::comm::randomBytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t have = 0; have < count;) {
    ssize_t n = getrandom(bytes.data() + have, count - have, 0);
    if (n < 0 && errno != EINTR)
      throw std::system_error(errno, std::generic_category());
    have += n > 0 ? size_t(n) : 0;
  }
  return bytes;
}

std::string par::comm::randomHex(size_t bytes) { return format::toHex(randomBytes(bytes)); }

std::string par::comm::tokenOfEnvironment() {
  const char *token = std::getenv("PAR_TOKEN");
  std::string text = token ? token : "";
  if (!text.empty() && text.size() < minToken)
    throw LaunchError(2, say(Sentence::tokenTooShort, text.size(), minToken));
  return text;
}

std::string par::comm::keyOf(std::string_view token, std::string_view job) {
  return hmac(token, "par job " + std::string(job));
}

std::string par::comm::proofOf(std::string_view key, Side side, const Encounter &encounter) {
  return hmac(key, (side == Side::host ? "par host " : "par rank ") + std::to_string(encounter.port) + ' ' +
                       encounter.hostNonce + encounter.rankNonce);
}

std::string par::comm::seal(std::string_view key, std::string_view text) {
  std::string nonce = randomBytes(proofBytes), body = nonce + masked(key, nonce, std::string(text));
  return sealOf(key, body) + body;
}

std::string par::comm::unseal(std::string_view key, std::string_view sealed) {
  std::string_view proof = sealed.substr(0, proofBytes);
  std::string_view body = sealed.substr(proof.size()), nonce = body.substr(0, proofBytes);
  if (nonce.size() != proofBytes || !sameBytes(proof, sealOf(key, body)))
    throw std::runtime_error(say(Sentence::brokenSeal));
  return masked(key, nonce, std::string(body.substr(proofBytes)));
}

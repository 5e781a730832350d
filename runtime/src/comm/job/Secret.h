// The secret by which ranks and host of a job know each other. Every job has a secret: PAR_TOKEN where it is set, else
// random bytes of rank 0, which it hands to processes of its own user on its own host (LocalChannel.h). It never
// crosses a network. Both sides show that they know it: each draws a nonce, and each answers with an HMAC over both,
// which side it is, and the port at which they met, so that no answer serves at another time, place or side.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace par::comm {

/// Bytes of nonces, keys and proofs.
inline constexpr size_t proofBytes = 32;
/// Minimum characters of a PAR_TOKEN: a listener to one exchange could try out short ones.
inline constexpr size_t minToken = 16;

/// HMAC-SHA256 (RFC 2104): 32 bytes.
std::string hmac(std::string_view key, std::string_view message);
/// Takes the same time wherever they differ.
bool sameBytes(std::string_view a, std::string_view b);
/// From the kernel.
std::string randomBytes(size_t count);
/// `bytes` random bytes in hex.
std::string randomHex(size_t bytes);

/// PAR_TOKEN, "" where it is not set. Throws LaunchError where it is too short.
std::string tokenOfEnvironment();
/// The key of proofs. `job` is the launcher's name of the job, so that two jobs of one user have different keys.
std::string keyOf(std::string_view token, std::string_view job);

/// Hides a text from those who do not have the key: every time with another nonce, and so that a change of it shows.
std::string seal(std::string_view key, std::string_view text);
/// Throws std::runtime_error where no holder of the key has sealed that.
std::string unseal(std::string_view key, std::string_view sealed);

/// The facts of one authentication between host and rank.
struct Encounter {
  std::string hostNonce, rankNonce;
  uint16_t port = 0; ///< at which the rank came
};

enum class Side : uint8_t { host, rank };

/// The answer by which `side` shows that it has the key.
std::string proofOf(std::string_view key, Side side, const Encounter &encounter);

} // namespace par::comm

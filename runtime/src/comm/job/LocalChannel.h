// Messages between ranks of one host. A local socket without a place in the file system. The kernel says whose process
// is at its other end, and both sides ask: only processes of one user hand each other anything. Rank 0 gives the job's
// secret, where no PAR_TOKEN is set, and to ranks that know it the descriptors of the job's memory.
#pragma once

#include "Socket.h"

#include <optional>

namespace par::comm {

/// Rank 0's side.
class LocalChannel {
public:
  /// `token`: the secret to give away, "" for none; `key`: a rank must know it to get the descriptors.
  LocalChannel(std::string token, std::string key);
  /// One with a name that ranks know beforehand.
  LocalChannel(std::string name, std::string token, std::string key);

  const std::string &name() const { return address; }
  int socket() const { return listener.socket(); }
  /// Answers all waiting processes.
  void serve(const std::vector<int> &descriptors) const;

private:
  void answer(int socket, const std::vector<int> &descriptors) const;

  std::string token, key, address;
  Listener listener;
};

/// The name that all ranks give the channel of the leader of `host`; `job`: a name that only this job has.
std::string localChannelOf(const std::string &key, const std::string &job, uint32_t host);
/// Whether this can be the name of a passage.
bool isLocalChannelName(std::string_view name);
/// The secret that the passage of this name gives away, if it is there, of this user, and gives one.
std::optional<std::string> askForSecret(const std::string &name);
/// `count` descriptors. Throws LaunchError where they do not come.
std::vector<int> fetchDescriptors(const std::string &name, const std::string &key, size_t count);

} // namespace par::comm

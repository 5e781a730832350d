// A rank's control plane over a socket.
#pragma once

#include "RendezvousServer.h"
#include "comm/carrier/HostCarrier.h"

namespace par::comm {

/// A connection that has been welcomed.
struct Joined {
  Connection connection;
  Welcome welcome;
  std::string key{}; ///< the job's
  uint16_t port = 0; ///< at which rank 0's host was found

  /// The rank's place in this attempt, where it has another rank than the one that it was started as (Seats.h).
  LaunchEnvironment placeIn(LaunchEnvironment place) const;
};

/// The host refused this rank; what() is the line to print.
struct Refused : LaunchError {
  using LaunchError::LaunchError;
};

Refused readRefusal(const std::string &body);

/// Joins over a connection to this job's host and waits until all ranks have come; nullopt where the host hangs
/// up. `look` is called often and may throw; `waits` gets the number of ranks of an attempt that goes on without this
/// one, whose end is waited for however long it takes. Throws LaunchError or Refused.
std::optional<Joined> enrol(
    Connection connection, const Join &join, double timeout, const std::function<void()> &look,
    const std::function<void(uint64_t)> &waits = [](uint64_t) {});

/// Looks for the host at the ports of `place` until `timeout` seconds have passed or `enters`, which gets each
/// connection to a host that has shown the secret, with the job's key and the port, says true. `token`: PAR_TOKEN, ""
/// where it is not set. `warn` gets the likely cause, once; `look` is called often and may throw. Throws LaunchError.
void seekServer(const LaunchEnvironment &place, const std::string &token, const Join &join, double timeout,
                const std::function<void(const std::string &)> &warn, const std::function<void()> &look,
                const std::function<bool(Connection, const std::string &, uint16_t)> &enters);

/// Looks for the host in this way, and joins. Throws LaunchError or Refused.
Joined joinServer(
    const LaunchEnvironment &place, const std::string &token, const Join &join, double timeout,
    const std::function<void(const std::string &)> &warn, const std::function<void()> &look = [] {});

/// Joins as a spare, and waits for a place or the end of the job: the word of the host; nullopt where its process has
/// hung up, whose next one will listen at the same port. Throws Refused.
std::optional<Message> awaitOrder(Connection connection, const Join &join);

/// Another connection of a rank that has joined to rank 0's host. Throws LaunchError.
Connection connectAgain(const LaunchEnvironment &place, const std::string &token, const Joined &joined);

/// The control plane of a rank that is a process.
class ClientControl final : public SharedStateControl {
public:
  ClientControl(SharedState &sharedState, std::string bundle, const LaunchEnvironment &place, Joined joined,
                SharedFiles &files, const Supervised *supervised = nullptr)
      : SharedStateControl(sharedState, std::move(bundle), place.rank, supervised), place(place),
        joined(std::move(joined)), connection(this->joined.connection), files(files) {}

  uint32_t localRank() const override;
  Placing placing() const override;
  std::string broadcastSecret(std::string_view label, std::string_view value, uint32_t root) override;
  std::unique_ptr<Endpoint> connect(std::span<const Members> table, size_t arenaBytes) override;

protected:
  std::vector<std::string> exchange(Sharing sharing, std::string_view label, std::string_view value,
                                    uint32_t root) override;

private:
  Message awaitValues();
  std::string address() const;
  std::shared_ptr<HostCarrier> makeCarrier();
  std::shared_ptr<HostCarrier> connectPeers(Control &control, const std::vector<bool> &linked) const;
  [[noreturn]] void regroup() const;

  LaunchEnvironment place;
  Joined joined;
  Connection &connection;
  SharedFiles &files;
};

} // namespace par::comm

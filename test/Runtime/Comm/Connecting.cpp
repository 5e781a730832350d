// Connections to a host that does not answer at first.
#include "Process.h"
#include "comm/job/Socket.h"

#include <arpa/inet.h>
#include <chrono>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace par::comm;
using namespace par::test;

namespace {

/// A listener that takes one connection at a time: requests beyond are dropped, as by a link that is down.
class Crowded {
public:
  Crowded() : listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr *>(&address), size), 0);
    EXPECT_EQ(listen(listener, 0), 0);
    getsockname(listener, reinterpret_cast<sockaddr *>(&address), &size);
    first = connectTo("127.0.0.1", port(), 1000);
    EXPECT_GE(first, 0);
  }
  ~Crowded() {
    close(first);
    close(listener);
  }
  uint16_t port() const { return ntohs(address.sin_port); }
  /// Makes room for the next one.
  void accept() const { close(::accept(listener, nullptr, nullptr)); }

private:
  int listener, first = -1;
  sockaddr_in address{};
};

TEST(Connecting, AskedAgainBeforeTheSystemDoes) {
  Crowded host;
  ASSERT_EQ(connectTo("127.0.0.1", host.port(), 200), -1) << "the listener drops no request";
  auto began = Clock::now();
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    host.accept();
  });
  int found = connectAgainTo("127.0.0.1", host.port(), 1000);
  EXPECT_GE(found, 0);
  // The system repeats a request after a second.
  EXPECT_GE(secondsSince(began), 0.25);
  later.join();
  close(found);
}

TEST(Connecting, NothingListens) {
  uint16_t port = 0;
  {
    Crowded host;
    port = host.port();
  }
  auto began = Clock::now();
  EXPECT_EQ(connectAgainTo("127.0.0.1", port, 5000), -1);
  EXPECT_LT(secondsSince(began), 4) << "a refusal is an answer";
}

TEST(Connecting, NoAnswerInTime) {
  Crowded host;
  auto began = Clock::now();
  EXPECT_EQ(connectAgainTo("127.0.0.1", host.port(), 300), -1);
  EXPECT_GE(secondsSince(began), 0.28);
}

} // namespace

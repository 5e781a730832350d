// Who does not know a job's secret can neither join it nor end it, nor keep its ranks from meeting.
#include "Harness.h"
#include "Rendezvous.h"

#include "comm/job/AuthGate.h"
#include "comm/job/LocalChannel.h"
#include "comm/job/RendezvousClient.h"

#include <array>
#include <atomic>
#include <fstream>
#include <thread>

using namespace par::test;

namespace {

const std::string testToken = "0123456789abcdef0123456789abcdef";
const Environment withToken = {{"PAR_TOKEN", testToken}};

/// An unauthenticated connection to a rendezvous, with the host's first message.
struct Stranger {
  explicit Stranger(int port) : connection(dial(port)), port(uint16_t(port)) { challenge = connection.await(5000); }
  /// Whether the host hangs up within `milliseconds`.
  bool hungUp(int milliseconds = 1000) {
    connection.await(milliseconds);
    return !connection.open();
  }
  Connection connection;
  uint16_t port;
  std::optional<Message> challenge;
};

/// This process as a rank of the job at `port`.
Joined playRank(int port, uint64_t rank, uint64_t world, const std::string &host = thisHost()) {
  Connection connection(dial(port));
  std::string key;
  EXPECT_EQ(knock(connection, testToken, "", uint16_t(port), 2000, key), Knock::admitted);
  std::optional<Joined> joined =
      enrol(std::move(connection), {host, "RANK", "WORLD_SIZE", rank, world, 4711}, 10, [] {});
  EXPECT_TRUE(joined);
  return std::move(*joined);
}

/// A host that accepts connections with the secret; the test gives its further messages.
struct PlayedHost {
  PlayedHost() : gate(Listener(dup(occupied.fd)), keyOf(testToken, ""), "") { fcntl(occupied.fd, F_SETFL, O_NONBLOCK); }
  Connection guest() {
    for (auto begin = Clock::now(); secondsSince(begin) < 10; usleep(1000))
      for (Connection &known : gate.admit(1))
        return std::move(known);
    ADD_FAILURE() << "nobody came";
    return Connection(-1);
  }
  Occupied occupied;
  AuthGate gate;
};

/// Processor seconds that a process has taken.
double processorSeconds(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  long user = 0, system = 0;
  std::sscanf(text.c_str() + text.rfind(')'), ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system);
  return double(user + system) / double(sysconf(_SC_CLK_TCK));
}

/// Whether a process has mapped a file of that name.
bool maps(pid_t pid, const std::string &name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/maps");
  return std::string((std::istreambuf_iterator<char>(file)), {}).find(name) != std::string::npos;
}

/// Connections that say nothing.
struct Idle {
  Idle(int port, int count) {
    for (int i = 0; i < count; ++i)
      sockets.push_back(dial(port));
  }
  ~Idle() {
    for (int socket : sockets)
      close(socket);
  }
  std::vector<int> sockets;
};

/// Connections that are opened as fast as it goes, each to stay open for as long as the host lets it.
class Flood {
public:
  explicit Flood(int port) : thread([this, port] { run(port); }) {}
  ~Flood() {
    ending = true;
    thread.join();
  }
  size_t opened() const { return count; }

private:
  void run(int port) {
    std::vector<int> sockets(400, -1);
    for (size_t i = 0; !ending; i = (i + 1) % sockets.size()) {
      close(sockets[i]);
      sockets[i] = dial(port);
      count += sockets[i] >= 0;
    }
    for (int socket : sockets)
      close(socket);
  }
  std::atomic<bool> ending{false};
  std::atomic<size_t> count{0};
  std::thread thread;
};

/// While nothing happens the process takes no time.
void expectNoSpinning(const Process &process) {
  usleep(500'000);
  double before = processorSeconds(process.pid());
  usleep(1'000'000);
  EXPECT_LT(processorSeconds(process.pid()) - before, 0.3) << "rank 0 spins";
}

void expectDone(std::initializer_list<Process *> ranks) {
  for (Process *rank : ranks)
    EXPECT_EQ(rank->wait(enough), 0) << rank->errors();
}

} // namespace

// RFC 4231, cases 1, 2 and 6.
TEST(Strangers, Hmac) {
  auto hex = [](const std::string &bytes) {
    std::string text;
    for (unsigned char c : bytes)
      for (int digit : {c >> 4, c & 15})
        text += "0123456789abcdef"[digit];
    return text;
  };
  EXPECT_EQ(hex(hmac(std::string(20, 0x0b), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac(std::string(131, char(0xaa)), "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

// A proof is good for one meeting: not at another port, not with another nonce, not for the other side.
TEST(Strangers, ProofsServeOnce) {
  Encounter encounter{std::string(32, 'h'), std::string(32, 'r'), 29500}, otherPort = encounter, otherNonce = encounter;
  otherPort.port = 29501;
  otherNonce.hostNonce[31] = 'x';
  std::string proof = proofOf("key", Side::rank, encounter);
  EXPECT_TRUE(sameBytes(proof, proofOf("key", Side::rank, encounter)));
  for (const std::string &other :
       {proofOf("key", Side::host, encounter), proofOf("yek", Side::rank, encounter),
        proofOf("key", Side::rank, otherPort), proofOf("key", Side::rank, otherNonce), std::string()})
    EXPECT_FALSE(sameBytes(proof, other));
  EXPECT_FALSE(sameBytes(keyOf("secret", "job 1"), keyOf("secret", "job 2")));
}

// A connection without the secret is closed, whatever it sends, and the job goes on. The host's messages to it hold no
// secret, and are different each time.
TEST(Secret, aSealedTextIsReadByHoldersOfTheKeyOnly) {
  std::string text(100, 'x'), sealed = seal("key", text);
  EXPECT_EQ(unseal("key", sealed), text);
  EXPECT_EQ(unseal("key", seal("key", "")), "");
  EXPECT_EQ(sealed.find("xxxx"), std::string::npos);
  EXPECT_NE(seal("key", text), sealed);
  std::string changed = sealed;
  changed.back() = char(changed.back() ^ 1);
  for (const std::string &other : {changed, sealed.substr(0, 40), std::string()})
    EXPECT_THROW(unseal("key", other), std::runtime_error);
  try {
    unseal("yek", sealed);
    FAIL();
  } catch (const std::runtime_error &error) {
    EXPECT_STREQ(error.what(), "a value of the control plane was not sealed with this job's secret");
  }
}

TEST(Strangers, CannotJoinOrEndAJob) {
  int port = unusedPort();
  Process first = byHand(0, 2, port, {}, withToken);
  ASSERT_TRUE(listens(port));
  Join join{thisHost(), "RANK", "WORLD_SIZE", 1, 2, 4711}, elsewhere{"node18", "RANK", "WORLD_SIZE", 1, 7, 4711};
  std::string nonce(32, 'n'), refusal = Writer().number(2).text("no").take(),
                              lie = Writer().text(nonce).text(std::string(32, 'p')).take();
  std::string before;
  for (const Message &message :
       {Message{Message::join, join.write()}, Message{Message::join, elsewhere.write()}, Message{Message::proof, lie},
        Message{Message::proof, "short"}, Message{Message::refuse, refusal}, Message{Message::welcome, ""},
        Message{Message::value, Writer().number(0).number(0).text("hello").text("").take()},
        Message{Message::challenge, lie}, Message{Message::proof, std::string(maxStranger + 1, 'x')}}) {
    Stranger stranger(port);
    ASSERT_TRUE(stranger.challenge);
    EXPECT_NE(stranger.challenge->body, before);
    before = stranger.challenge->body;
    stranger.connection.send(message);
    EXPECT_TRUE(stranger.hungUp());
  }
  // The host's own message is no proof of a peer's.
  Stranger mirror(port);
  std::string theirs = Reader(mirror.challenge->body).text();
  mirror.connection.send(
      {Message::proof,
       Writer().text(theirs).text(proofOf(keyOf("", ""), Side::rank, {theirs, theirs, uint16_t(port)})).take()});
  EXPECT_TRUE(mirror.hungUp());
  Process second = byHand(1, 2, port, {}, withToken);
  expectDone({&first, &second});
  EXPECT_EQ(first.errors() + second.errors(), "");
}

// Bytes that are not ours end their connection and nothing else.
TEST(Strangers, HostileBytes) {
  int port = unusedPort();
  Process first = byHand(0, 2, port);
  ASSERT_TRUE(listens(port));
  for (std::string bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100'000, '\xff'),
        std::string("\x10\0\0\0\x01\0PR", 8) + std::string(16, '\x7f'), std::string("\xff\xff\xff\x7f\x01\0PR", 8),
        std::string("\0\0\0\0\x04\0PR", 8), std::string("\0\0\0\0\x01\x02PR", 8), std::string("\0\0\0\0\x01\x01PR", 8),
        std::string("\x01\x02\0\0\x01\0PR", 8)}) {
    Stranger stranger(port);
    ASSERT_TRUE(stranger.challenge);
    EXPECT_GT(send(stranger.connection.socket(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
    EXPECT_TRUE(stranger.hungUp()) << bytes.substr(0, 16);
  }
  Process second = byHand(1, 2, port);
  expectDone({&first, &second});
}

// Hundreds of connections that say nothing lock no rank out, though the host has few descriptors, and cost it no time.
TEST(Strangers, IdleConnections) {
  int port = unusedPort();
  Process first = byHand(0, 3, port, {"--files", "256"}), second = byHand(1, 3, port);
  ASSERT_TRUE(listens(port));
  Idle idle(port, 300);
  expectNoSpinning(first);
  Process third = byHand(2, 3, port);
  expectDone({&first, &second, &third});
}

// Among strangers that come by the hundred between a rank's coming and its proof, the proof is read.
TEST(Strangers, CrowdsBetweenComingAndProof) {
  PlayedHost host;
  Connection rank(dial(host.occupied.port));
  EXPECT_TRUE(host.gate.admit(1).empty());
  std::optional<Message> challenge = rank.await(5000);
  ASSERT_TRUE(challenge);
  Encounter encounter{Reader(challenge->body).text(), std::string(32, 'r'), uint16_t(host.occupied.port)};
  std::string proof = proofOf(keyOf(testToken, ""), Side::rank, encounter);
  Idle before(host.occupied.port, 200);
  EXPECT_TRUE(host.gate.admit(1).empty());
  rank.send({Message::proof, Writer().text(encounter.rankNonce).text(proof).take()});
  Idle after(host.occupied.port, 200);
  EXPECT_EQ(host.gate.admit(1).size(), 1u);
}

// A flood of connections that never ends keeps no rank from meeting the others.
TEST(Strangers, Floods) {
  int port = unusedPort();
  Process first = byHand(0, 4, port);
  ASSERT_TRUE(listens(port));
  Flood floods[4] = {Flood(port), Flood(port), Flood(port), Flood(port)};
  while (floods[3].opened() < 500)
    usleep(1000);
  Process second = byHand(1, 4, port), third = byHand(2, 4, port), fourth = byHand(3, 4, port);
  expectDone({&first, &second, &third, &fourth});
}

// If the system has no descriptors left, rank 0 waits instead of spinning.
TEST(Strangers, NoDescriptorsLeft) {
  int port = unusedPort();
  Process first = byHand(0, 2, port, {"--files", "14"});
  ASSERT_TRUE(listens(port)) << (first.wait(0), first.errors());
  Idle idle(port, 60);
  expectNoSpinning(first);
  EXPECT_EQ(first.wait(0), -1) << first.errors();
}

// A stranger that says nothing is hung up on after five seconds.
TEST(Strangers, HaveADeadline) {
  int port = unusedPort();
  Process first = byHand(0, 2, port);
  ASSERT_TRUE(listens(port));
  Stranger stranger(port);
  EXPECT_FALSE(stranger.hungUp(1000));
  EXPECT_TRUE(stranger.hungUp(6000));
}

// A rank that joined and left does not count: the time-out names it.
TEST(Strangers, WhoLeavesIsMissing) {
  int port = unusedPort();
  Process first = byHand(0, 4, port, {"--join-timeout", "2"}, withToken);
  ASSERT_TRUE(listens(port));
  Connection connection(dial(port));
  std::string key;
  ASSERT_EQ(knock(connection, testToken, "", uint16_t(port), 2000, key), Knock::admitted);
  connection.send({Message::join, Join{thisHost(), "RANK", "WORLD_SIZE", 3, 4, 4711}.write()});
  usleep(200'000);
  connection.close();
  Stranger liar(port);
  liar.connection.send({Message::proof, Writer().text(std::string(32, 'n')).text("").take()});
  EXPECT_EQ(first.wait(10), 4);
  EXPECT_EQ(first.errors(), "job.par: error: only 1 of 4 ranks came in time; missing: 1, 2, 3; 1 connections did not "
                            "show the job's secret\n");
}

// Ranks that know the secret and do not fit: the error gives their values.
TEST(Strangers, RanksThatDoNotFit) {
  auto refusalOf = [](uint64_t rank, const std::string &host, std::string &said) {
    int port = unusedPort();
    Process first = byHand(0, 2, port, {"--comm", "shm"}, withToken);
    EXPECT_TRUE(listens(port));
    try {
      playRank(port, rank, 2, host);
    } catch (const Refused &refused) {
      said = refused.what();
      EXPECT_EQ(refused.code, 2);
    }
    EXPECT_EQ(first.wait(10), 2);
    EXPECT_EQ(first.errors(), said + "\n");
  };
  std::string said;
  refusalOf(1, "node18", said);
  EXPECT_EQ(said, "job.par: error: rank 1 runs on node18 and rank 0 on " + thisHost() +
                      "; --comm shm is for ranks of one host, tcp and mpi for several");
  refusalOf(2, thisHost(), said);
  EXPECT_EQ(said, "job.par: error: rank 2 is not below 2; check RANK");
}

// A listener that holds the port before rank 0 comes is passed over, whatever it says; above all a name longer than an
// address holds, which once overflowed the stack.
TEST(Strangers, ListenersThatAreNoHost) {
  auto frame = [](char kind, const std::string &body) {
    return Writer().number(body.size()).take().substr(0, 4) + kind + std::string("\0PR", 3) + body;
  };
  std::string nonce(32, 'n');
  auto challenge = [&](const std::string &localChannel) {
    return frame(Message::challenge, Writer().text(nonce).text(localChannel).take());
  };
  std::string greeting = frame(0, std::string(64, 'g'));
  for (auto [says, reason] :
       {std::pair(greeting + frame(2, std::string(300, 'A')),
                  ": who listens there is no rank 0 of Par; give another --master HOST:PORT"),
        {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), ": who listens there is no rank 0 of Par"},
        {challenge(std::string(300, 'A')),
         ": who listens there is on another host, of another user, or has a PAR_TOKEN "
         "that this rank lacks"},
        {challenge("par-" + std::string(32, '0')), ": who listens there is on another host"},
        {frame(Message::challenge, Writer().text("short").text("").take()), ": who listens there is no rank 0"},
        {frame(Message::refuse, Writer().number(4).text("go away").take()), ": who listens there is no rank 0"}}) {
    Occupied host;
    Process rank = byHand(1, 2, host.port, {"--join-timeout", "0.3"});
    int fd = accept(host.fd, nullptr, nullptr);
    EXPECT_GT(send(fd, says.data(), says.size(), MSG_NOSIGNAL), 0);
    close(host.fd);
    EXPECT_EQ(rank.wait(10), 4);
    close(fd);
    EXPECT_EQ(rank.errors().find("job.par: error: rank 1 found no rank 0 of this job at 127.0.0.1:" +
                                 std::to_string(host.port) + reason),
              0u)
        << rank.errors();
    host.fd = -1;
  }
  EXPECT_EQ(connectLocal(std::string(300, 'A')), -1);
  EXPECT_FALSE(isLocalChannelName(std::string(300, 'A')));
}

// A rank that finds only a host with another secret says so long before its time-out.
TEST(Strangers, AnotherTokenIsSaidEarly) {
  int port = unusedPort();
  Process first = byHand(0, 2, port, {}, withToken);
  ASSERT_TRUE(listens(port));
  Process other = byHand(1, 2, port, {"--join-timeout", "600"}, {{"PAR_TOKEN", "another secret of sixteen"}});
  std::string said = "job.par: warning: rank 1 waits for rank 0 at 127.0.0.1:" + std::to_string(port) +
                     ": who listens there has another secret: another job, or another PAR_TOKEN; it tries for 600 s "
                     "(--join-timeout)\n";
  for (auto begin = Clock::now(); other.errors().empty() && secondsSince(begin) < 20;)
    EXPECT_EQ(other.wait(0.1), -1) << "it goes on trying";
  EXPECT_EQ(other.errors(), said);
  Process second = byHand(1, 2, port, {}, withToken);
  expectDone({&first, &second});
}

// Ranks with different secrets do not meet, and both sides say why.
TEST(Strangers, AnotherToken) {
  int port = unusedPort();
  Process first = byHand(0, 2, port, {"--join-timeout", "2"}, withToken);
  ASSERT_TRUE(listens(port));
  Process other = byHand(1, 2, port, {"--join-timeout", "0.3"}, {{"PAR_TOKEN", "another secret of sixteen"}});
  EXPECT_EQ(other.wait(10), 4);
  EXPECT_EQ(other.errors(), "job.par: error: rank 1 found no rank 0 of this job at 127.0.0.1:" + std::to_string(port) +
                                ": who listens there has another secret: another job, or another PAR_TOKEN\n");
  EXPECT_EQ(first.wait(10), 4);
  EXPECT_NE(first.errors().find("only 1 of 2 ranks came in time; missing: 1; "), std::string::npos) << first.errors();
  Process brief = byHand(0, 2, port, {}, {{"PAR_TOKEN", "secret"}});
  EXPECT_EQ(brief.wait(10), 2);
  EXPECT_EQ(brief.errors(),
            "job.par: error: PAR_TOKEN has 6 characters and needs 16; openssl rand -hex 16 makes one\n");
}

// A local channel gives its secret only to this user's processes that ask correctly, and memory only with the key.
TEST(Strangers, LocalChannels) {
  std::string secret(32, 's'), key = keyOf(secret, "");
  LocalChannel giving(secret, key), silent("", key);
  std::atomic<bool> ending{false};
  std::thread host([&] {
    for (; !ending; usleep(1000))
      for (LocalChannel *localChannel : {&giving, &silent})
        localChannel->serve({giving.socket()});
  });
  EXPECT_EQ(askForSecret(giving.name()), secret);
  EXPECT_EQ(askForSecret(silent.name()), std::nullopt);
  std::vector<int> passed = fetchDescriptors(silent.name(), key, 1);
  EXPECT_EQ(passed.size(), 1u);
  close(passed.at(0));
  for (auto [name, with] : {std::pair(silent.name(), std::string("another key")), {"par-none", key}})
    EXPECT_THROW(fetchDescriptors(name, with, 1), std::runtime_error);
  EXPECT_THROW(fetchDescriptors(giving.name(), key, 2), std::runtime_error) << "fewer than asked for";
  ending = true;
  host.join();
}

namespace {

/// A process of another user that runs `what` and ends with its result. The destructor kills it.
class OtherUser {
public:
  template <typename What>
  explicit OtherUser(What what) : child(fork()) {
    if (child == 0)
      _exit(setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534) ? 99 : what());
  }
  ~OtherUser() {
    if (child > 0) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
  int wait() {
    int status = 0;
    waitpid(std::exchange(child, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

private:
  pid_t child;
};

/// Bytes that come over a local connection after `asked` has been sent; -1 where none is made.
int bytesFor(const std::string &name, const std::string &asked) {
  int socket = connectLocal(name);
  if (socket < 0)
    return -1;
  send(socket, asked.data(), asked.size(), MSG_NOSIGNAL);
  std::array<char, 64> bytes;
  int got = int(recv(socket, bytes.data(), bytes.size(), 0));
  close(socket);
  return std::max(got, 0);
}

} // namespace

// The kernel tells users apart: a process of another one is given nothing, and is believed nothing.
TEST(Strangers, OtherUsers) {
  if (geteuid() != 0)
    GTEST_SKIP() << "needs root, to become another user";
  std::string secret(32, 's'), asked = "s" + std::string(32, '\0');
  LocalChannel giving(secret, keyOf(secret, ""));
  std::atomic<bool> ending{false};
  std::thread host([&] {
    for (; !ending; usleep(1000))
      giving.serve({giving.socket()});
  });
  EXPECT_EQ(bytesFor(giving.name(), asked), 32) << "this user's";
  OtherUser asks([&] { return bytesFor(giving.name(), asked); });
  EXPECT_EQ(asks.wait(), 0);
  ending = true;
  host.join();

  // Another user's passage, under a name that a stranger at the port could have said.
  std::string name = "par-" + std::string(32, 'e');
  OtherUser lies([&] {
    Listener listener = Listener::local(name);
    for (auto begin = Clock::now(); secondsSince(begin) < 20; usleep(1000))
      if (int socket = listener.accept(); socket >= 0) {
        send(socket, secret.data(), secret.size(), MSG_NOSIGNAL);
        usleep(200'000);
        close(socket);
      }
    return 0;
  });
  int got = -1;
  for (auto begin = Clock::now(); got < 0 && secondsSince(begin) < 10; usleep(10'000))
    got = bytesFor(name, asked);
  EXPECT_EQ(got, 32) << "it answers everybody";
  EXPECT_EQ(askForSecret(name), std::nullopt);
}

// Hosts that know the secret and do not keep to the protocol end the rank, with a sentence.
TEST(Strangers, HostsThatBreakOff) {
  auto answered = [&](const Message &answer) {
    PlayedHost host;
    Process rank = byHand(1, 2, host.occupied.port, {}, withToken);
    Connection guest = host.guest();
    guest.send(answer);
    EXPECT_EQ(rank.wait(10), 4);
    return rank.errors();
  };
  Welcome nowhere{"par-" + std::string(32, '0'), "", HostMap::one(2), 0, {0, 1}};
  EXPECT_EQ(answered({Message::welcome, nowhere.write()}),
            "job.par: error: the first rank of this host did not pass its shared memory on\n");
  EXPECT_EQ(answered({Message::refuse, Writer().number(4).number(1000).take()}),
            "job.par: error: truncated message on the control plane\n");
  EXPECT_EQ(answered({Message::refuse, Writer().number(1000).text("no\x1b[2J").take()}), "no?[2J\n");
  PlayedHost silent;
  Process rank = byHand(1, 2, silent.occupied.port, {"--join-timeout", "0.2"}, withToken);
  Connection guest = silent.guest();
  EXPECT_EQ(rank.wait(10), 4);
  EXPECT_EQ(rank.errors(), "job.par: error: rank 1 has had no answer of rank 0, which should have said which ranks are "
                           "missing\n");
}

// Once the job runs: a rank that hangs up though its process is there, a host that does, and sizes that are not so.
TEST(Strangers, PeersThatBreakOff) {
  int port = unusedPort();
  Process first = byHand(0, 2, port, {}, withToken);
  ASSERT_TRUE(listens(port));
  playRank(port, 1, 2).connection.close();
  EXPECT_EQ(first.wait(10), 4);
  EXPECT_EQ(first.errors(), "job.par: error: rank 1 has hung up on rank 0\n");

  port = unusedPort();
  Process second = byHand(0, 2, port, {}, withToken);
  ASSERT_TRUE(listens(port));
  Joined joined = playRank(port, 1, 2);
  auto share = [&](const std::string &label, const std::string &value) {
    Writer writer;
    writer.number(uint64_t(Sharing::allGather)).number(0).text(label).text(value);
    joined.connection.send({Message::value, writer.take()});
    joined.connection.await(5000);
  };
  share("hello", Writer().text("1.0").text("b0b0b0b0").text("3f9c2aaa").take());
  std::string bytes = Writer().number(uint64_t(1) << 30).number(0).take();
  share("arenas", bytes);
  EXPECT_EQ(second.wait(10), 4);
  EXPECT_EQ(second.errors(), "job.par: error: rank 1 has other communicators than rank 0\n");

  PlayedHost host;
  SharedFiles files = SharedFiles::create(2);
  Mapping memory = files.sharedState.map(SharedState::bytesFor(2));
  SharedState::make(memory.bytes.data(), 2);
  LocalChannel localChannel("", keyOf(testToken, ""));
  Process third = byHand(1, 2, host.occupied.port, {}, withToken);
  Connection guest = host.guest();
  guest.send({Message::welcome, Welcome{localChannel.name(), "", HostMap::one(2), 0, {0, 1}}.write()});
  for (auto begin = Clock::now(); !maps(third.pid(), "par-board") && secondsSince(begin) < enough; usleep(10'000))
    localChannel.serve(files.descriptors(2));
  guest.close();
  EXPECT_EQ(third.wait(10), 4);
  EXPECT_EQ(third.errors(), "job.par: error: rank 0 has hung up on rank 1\n");

  SharedFile small = SharedFile::create("par-test");
  small.resize(100);
  try {
    small.map(101);
    ADD_FAILURE() << "mapped beyond the end";
  } catch (const std::runtime_error &error) {
    EXPECT_STREQ(error.what(), "shared memory of 100 bytes is smaller than the 101 that its rank says");
  }
}

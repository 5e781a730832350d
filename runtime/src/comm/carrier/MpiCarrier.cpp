// Buffers between hosts over MPI. Sends and receives are posted when the engine asks for them and tested when it polls;
// no call waits but the first and the last one. A send ends when its receiver has begun to receive. Other sends of MPI
// may end before, as the first one to a rank while MPI connects, and then need polls, which end with the step.
#include "MpiCarrier.h"
#include "Mpi.h"
#include "par/messages/CommMessages.h"

#include <algorithm>
#include <array>

using namespace par::comm;

namespace {

class MpiCarrier final : public HostCarrier {
public:
  explicit MpiCarrier(std::unique_ptr<Mpi> mpi) : mpi(std::move(mpi)) {}

  Ticket send(uint32_t rank, uint32_t tag, std::span<const std::byte> bytes) override {
    mpi->check(mpi->send(bytes.data(), int(bytes.size()), mpi->byte, int(rank), int(tag), mpi->world, slot()),
               "MPI_Issend");
    return tickets.back();
  }
  Ticket receive(uint32_t rank, uint32_t tag, std::span<std::byte> bytes) override {
    mpi->check(mpi->receive(bytes.data(), int(bytes.size()), mpi->byte, int(rank), int(tag), mpi->world, slot()),
               "MPI_Irecv");
    return tickets.back();
  }
  bool poll() override;
  void close() override { mpi->check(mpi->finalize(), "MPI_Finalize"); }
  std::string describe() const override { return "mpi (" + mpi->version() + ")"; }

private:
  MpiRequest *slot() {
    tickets.push_back(std::make_shared<bool>(false));
    requests.push_back(nullptr);
    return &requests.back();
  }

  std::unique_ptr<Mpi> mpi;
  std::vector<MpiRequest> requests; ///< under way, with their tickets
  std::vector<std::shared_ptr<bool>> tickets;
  std::vector<int> indices;
};

} // namespace

bool MpiCarrier::poll() {
  if (requests.empty())
    return false;
  indices.resize(requests.size());
  int done = 0;
  mpi->check(mpi->testSome(int(requests.size()), requests.data(), &done, indices.data(), nullptr), "MPI_Testsome");
  if (done <= 0) // negative where MPI has no request
    return false;
  std::sort(indices.begin(), indices.begin() + done, std::greater<>());
  for (int i = 0; i < done; ++i) {
    auto at = size_t(indices[size_t(i)]);
    *tickets[at] = true;
    tickets[at] = std::move(tickets.back());
    tickets.pop_back();
    requests[at] = requests.back();
    requests.pop_back();
  }
  return true;
}

// MPI's own wait for its ranks comes after the job's rendezvous, so that all of them are there.
std::shared_ptr<HostCarrier> par::comm::connectByMpi(const CarrierOf &of) {
  auto mpi = std::make_unique<Mpi>();
  uint32_t rank = of.control.rank();
  std::vector<std::string> versions = of.control.allGather("mpi", mpi->version());
  for (uint32_t other = 0; other < versions.size(); ++other)
    if (versions[other] != versions[0])
      throw std::runtime_error(say(Sentence::mixedMpi, other, of.hosts.names[of.hosts.hostOf[other]], versions[other],
                                   0, of.hosts.names[0], versions[0]));
  int given = 0, self = -1, size = 0;
  mpi->check(mpi->initThread(nullptr, nullptr, mpiThreadFunneled, &given), "MPI_Init_thread");
  mpi->check(mpi->setErrorHandler(mpi->world, mpi->errorsReturn), "MPI_Comm_set_errhandler");
  mpi->check(mpi->rankOf(mpi->world, &self), "MPI_Comm_rank");
  mpi->check(mpi->sizeOf(mpi->world, &size), "MPI_Comm_size");
  if (uint32_t(self) != rank || uint32_t(size) != of.control.world())
    throw std::runtime_error(say(Sentence::otherMpiWorld, rank, of.control.world(), self, size));
  return std::make_shared<MpiCarrier>(std::move(mpi));
}

#include "Watchdog.h"

#include "par/messages/NcclMessages.h"

#include <chrono>
#include <cstdlib>
#include <thread>

namespace par::cuda {

using core::Failure;
using core::Message;
using Clock = std::chrono::steady_clock;

namespace {

/// Seconds without progress after which a job ends.
double patienceOf() {
  const char *text = std::getenv("PAR_CUDA_STALL");
  double seconds = text ? std::atof(text) : 0;
  return seconds > 0 ? seconds : 600;
}

} // namespace

Watchdog::Watchdog(const Gpu &gpu, comm::Control &control, comm::Endpoint &link)
    : gpu(gpu), control(control), link(link), patience(patienceOf()) {}

void Watchdog::mark(Stream stream, const comm::Communication &communication) {
  Mark mark;
  if (spare.empty()) {
    mark.event = makeEvent(gpu);
  } else {
    mark.event = std::move(spare.back());
    spare.pop_back();
  }
  mark.id = communication.id;
  bool collective = communication.op == format::Op::Coll;
  mark.what = std::string(collective ? format::toString(communication.kind) : format::toString(communication.op)) +
              " of " + std::to_string(communication.n) + " " + std::string(format::toString(communication.type)) +
              " with tag " + std::to_string(communication.tag);
  gpu->check(gpu->eventRecord(mark.event, stream), "cuEventRecord");
  marks.push_back(std::move(mark));
}

bool Watchdog::forget() {
  size_t before = marks.size();
  for (size_t i = 0; i < marks.size();) {
    if (gpu->eventQuery(marks[i].event) != success) {
      ++i;
      continue;
    }
    spare.push_back(std::move(marks[i].event));
    marks.erase(marks.begin() + static_cast<long>(i));
  }
  return marks.size() != before;
}

void Watchdog::stalled(double seconds, const std::string &place) {
  if (marks.empty())
    throw Failure::at(place, Message::cudaStalled, control.rank(), seconds, "work of its own");
  throw Failure::at(place, Message::cudaStalled, control.rank(), seconds,
                    std::string(marks.front().id) + ", " + marks.front().what);
}

/// An error of a communicator says what this rank waited for.
void Watchdog::look(Communicators &communicators) {
  try {
    communicators.poll();
  } catch (const Failure &failure) {
    forget();
    if (marks.empty())
      throw;
    throw Failure(failure).note(
        say(NcclSentence::waitedFor, control.rank(), std::string(marks.front().id) + ", " + marks.front().what));
  }
}

void Watchdog::until(Event event, Communicators *communicators, const std::string &place) {
  auto moved = Clock::now();
  for (uint64_t looks = 0;; ++looks) {
    Result result = gpu->eventQuery(event);
    if (result == success)
      break;
    if (result != notReady)
      throw Failure::at(place, Message::cudaRunFailed, gpu.name(), gpu->describe(result))
          .note("which instruction it was is not known; PAR_CUDA_BLOCKING=1 runs one at a time and names it");
    link.poll();
    if (communicators)
      look(*communicators);
    // A step takes milliseconds: the first looks come one upon the other, later ones leave the core to
    // others.
    if (looks < 1000)
      continue;
    if (looks % 64 == 0 && forget())
      moved = Clock::now();
    double seconds = std::chrono::duration<double>(Clock::now() - moved).count();
    if (seconds > patience)
      stalled(patience, place);
    std::this_thread::sleep_for(std::chrono::microseconds(looks < 2000 ? 10 : 100));
  }
  while (!marks.empty()) {
    spare.push_back(std::move(marks.front().event));
    marks.pop_front();
  }
}

} // namespace par::cuda

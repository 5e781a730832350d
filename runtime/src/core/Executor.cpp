#include "par/core/Executor.h"

#include "par/core/Failure.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace par::core {

using format::Op;

EntryHost::~EntryHost() = default;

Executor::Executor(uint32_t mainQueue, size_t queueCount, comm::Endpoint &endpoint, comm::Control &control,
                   cpu::ThreadPool &pool)
    : mainQueue(mainQueue), endpoint(endpoint), control(control), pool(pool), queues(queueCount) {}

namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool communicates(Op op) { return op == Op::Coll || op == Op::Send || op == Op::Recv || op == Op::Group; }

template <typename T>
void fillWith(void *to, uint64_t bytes, double value) {
  std::fill_n(static_cast<T *>(to), bytes / sizeof(T), static_cast<T>(value));
}

void fillBuffer(void *to, format::DType type, uint64_t bytes, double value, const char *id) {
  if (value == 0) {
    std::memset(to, 0, bytes);
    return;
  }
  switch (type) {
  case format::DType::F32:
    return fillWith<float>(to, bytes, value);
  case format::DType::F64:
    return fillWith<double>(to, bytes, value);
  case format::DType::I64:
    return fillWith<int64_t>(to, bytes, value);
  case format::DType::I32:
    return fillWith<int32_t>(to, bytes, value);
  case format::DType::I1:
  case format::DType::U8:
    return fillWith<uint8_t>(to, bytes, value);
  default:
    throw Failure::at("", Message::unsupportedInstruction, id, "fill of " + std::string(format::toString(type)));
  }
}

} // namespace

void Executor::run(const ExpandedEntry &newEntry, EntryHost &newHost) {
  entry = &newEntry;
  host = &newHost;
  times.assign(entry->steps.size(), {});
  signalled.assign(entry->steps.size(), 0);
  for (Queue &queue : queues) {
    queue.issued.clear();
    queue.next = 0;
    queue.posted = false;
  }
  waiting = 0;
  control.entry(entry->name);
  for (uint32_t index = 0; index < entry->steps.size(); ++index) {
    uint32_t queue = entry->steps[index].queue;
    if (queue == mainQueue) {
      runNow(index);
    } else {
      queues[queue].issued.push_back(index);
      ++waiting;
    }
    if (waiting > 0) {
      endpoint.poll();
      advanceOthers();
    }
  }
  endpoint.wait([this] { return othersIdle(); }, [this] { return advanceOthers(); });
}

bool Executor::othersIdle() const { return waiting == 0; }

void Executor::runNow(uint32_t index) {
  const Step &step = entry->steps[index];
  control.at(step.id);
  times[index].begin = now();
  if (communicates(step.op)) {
    comm::Operation operation = post(step);
    endpoint.wait([&] { return endpoint.done(operation); }, [this] { return advanceOthers(); });
  } else if (step.op == Op::Wait) {
    if (step.awaited >= 0 && !signalled[step.awaited])
      endpoint.wait([&] { return signalled[step.awaited] != 0; }, [this] { return advanceOthers(); });
  } else if (step.op == Op::Signal) {
    markSignalled(index);
  } else {
    executeLocal(step);
  }
  times[index].end = now();
}

comm::Operation Executor::post(const Step &step) {
  return endpoint.post(step.queue, std::span(entry->communications).subspan(step.firstUnit, step.units));
}

void Executor::executeLocal(const Step &step) {
  void *const *operands = entry->pointers.data() + step.operands;
  switch (step.op) {
  case Op::Kernel:
    pool.run(step.function, operands, entry->immediates.data() + step.immediates, step.tiles);
    return;
  case Op::Call:
    return runCall(step);
  case Op::Copy:
    std::memcpy(operands[1], operands[0], step.bytes);
    return;
  case Op::Fill:
    return fillBuffer(operands[0], step.type, step.bytes, step.value, step.id);
  case Op::Feed:
    host->feed(*step.input, step.microbatch, {static_cast<std::byte *>(operands[0]), step.bytes});
    return;
  case Op::Fetch:
    host->fetch(*step.output, step.microbatch, step.type, {static_cast<const std::byte *>(operands[0]), step.bytes});
    return;
  default:
    throw Failure::at("", Message::unsupportedInstruction, step.id, format::toString(step.op));
  }
}

void Executor::runCall(const Step &step) {
  void *const *operand = entry->pointers.data() + step.operands;
  auto *a = static_cast<const float *>(*operand++), *b = static_cast<const float *>(*operand++);
  auto *bias = step.bias ? static_cast<const float *>(*operand++) : nullptr;
  auto *c = static_cast<float *>(*operand++);
  step.matmul->run(a, b, bias, c, step.workspace ? *operand : nullptr);
}

bool Executor::advanceOthers() {
  bool moved = false;
  for (Queue &queue : queues)
    while (queue.next < queue.issued.size() && advance(queue, moved))
      ;
  return moved;
}

/// Moves the head of a queue; true if it ended, so that the next one may begin.
bool Executor::advance(Queue &queue, bool &moved) {
  uint32_t index = queue.issued[queue.next];
  const Step &step = entry->steps[index];
  if (step.op == Op::Wait) {
    if (step.awaited >= 0 && !signalled[step.awaited])
      return false;
    times[index] = {now(), now()};
  } else if (communicates(step.op)) {
    if (!queue.posted) {
      times[index].begin = now();
      queue.operation = post(step);
      queue.posted = moved = true;
      endpoint.poll();
    }
    if (!endpoint.done(queue.operation))
      return false;
    queue.posted = false;
    times[index].end = now();
  } else {
    times[index].begin = now();
    if (step.op == Op::Signal)
      markSignalled(index);
    else
      executeLocal(step);
    times[index].end = now();
  }
  ++queue.next;
  --waiting;
  return moved = true;
}

} // namespace par::core

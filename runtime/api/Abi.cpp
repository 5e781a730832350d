// The functions of par.h: no exception passes them, and every error is kept for par_error().
#include "api/Caller.h"
#include "api/Start.h"
#include "par/api/par.h"

#include <array>
#include <atomic>
#include <unistd.h>

using par::api::Caller;
using par::core::Failure;
using par::core::Message;
using DType = par::format::DType;

/// An error, and its form for C, which points into it.
struct StoredError {
  std::string place, message, notes, text;
  ParError c{};

  StoredError() = default;
  StoredError(std::string said, int code);
  StoredError &operator=(const StoredError &) = delete;
};

/// "PLACE: error: SENTENCE\n  note: NOTE\n ...", as Failure has it, taken apart.
StoredError::StoredError(std::string said, int code) : text(std::move(said)) {
  constexpr std::string_view mark = "error: ", noteMark = "  note: ";
  size_t line = text.find('\n'), at = text.substr(0, line).find(mark);
  std::string first = text.substr(0, line);
  place = at == std::string::npos || at < 2 ? "" : first.substr(0, at - 2);
  message = at == std::string::npos ? first : first.substr(at + mark.size());
  while (line != std::string::npos) {
    size_t end = text.find('\n', line + 1);
    std::string note = text.substr(line + 1, end == std::string::npos ? end : end - line - 1);
    notes += (notes.empty() ? "" : "\n") + (note.starts_with(noteMark) ? note.substr(noteMark.size()) : note);
    line = end;
  }
  c = {code, place.c_str(), message.c_str(), notes.c_str(), text.c_str()};
}

struct ParJob {
  std::unique_ptr<Caller> caller; ///< null where opening failed
  std::unique_ptr<StoredError> error;
  std::string opened; ///< why it failed
  pid_t process = getpid();
  std::atomic_flag busy;
  // what calls returned
  std::string text, event, facts;
  std::vector<ParScalar> scalars;
  std::vector<int64_t> shape;
};

namespace {

/// Ends a call that had the job for itself.
class Turn {
public:
  explicit Turn(ParJob &job) : job(job), mine(!job.busy.test_and_set(std::memory_order_acquire)) {}
  ~Turn() {
    if (mine)
      job.busy.clear(std::memory_order_release);
  }
  explicit operator bool() const { return mine; }

private:
  ParJob &job;
  bool mine;
};

int keep(ParJob &job, const std::string &text, int code) {
  job.error = std::make_unique<StoredError>(text, code);
  return code;
}

/// Runs one call: what it throws becomes the job's error.
template <typename Body>
int guarded(ParJob *job, Body body) {
  if (!job)
    return par::core::exitUsage;
  Turn turn(*job);
  if (!turn)
    return PAR_BUSY;
  try {
    job->error.reset();
    job->text.clear();
    if (job->process != getpid())
      throw Failure::at("", Message::sessionForked, job->process, getpid()).exitsWith(par::core::exitUsage);
    if (!job->caller)
      throw Failure::at("", Message::sessionClosed, job->opened).exitsWith(par::core::exitUsage);
    body(*job->caller);
    return 0;
  } catch (const Failure &failure) {
    return keep(*job, failure.what(), failure.exitCode());
  } catch (const std::exception &error) {
    return keep(*job, Failure("", error.what()).what(), par::core::exitError);
  }
}

/// A string argument. Throws Failure.
std::string required(const char *text, const char *what) {
  if (!text)
    throw Failure::at("", Message::nullArgument, what).exitsWith(par::core::exitUsage);
  return text;
}

constexpr std::array types = {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64,
                              DType::I32, DType::I16, DType::I8,  DType::U8,   DType::I1};

par::core::FedArray arrayOf(const void *data, ParType type, const int64_t *shape, size_t dims) {
  auto index = static_cast<size_t>(type);
  if (index >= types.size())
    throw Failure::at("", Message::unknownType, static_cast<int>(type)).exitsWith(par::core::exitUsage);
  if (dims && !shape)
    throw Failure::at("", Message::nullArgument, "shape").exitsWith(par::core::exitUsage);
  return {types[index], std::vector<int64_t>(shape, shape + dims), static_cast<const std::byte *>(data)};
}

ParType typeOf(DType type) {
  for (size_t i = 0; i < types.size(); ++i)
    if (types[i] == type)
      return static_cast<ParType>(i);
  throw Failure::at("", Message::unknownType, par::format::toString(type));
}

void openInto(ParJob &job, const ParOpenOptions *options) {
  if (!options || options->size < sizeof(ParOpenOptions))
    throw Failure::at("", Message::nullArgument, "options").exitsWith(par::core::exitUsage);
  if (options->argument_count && !options->arguments)
    throw Failure::at("", Message::nullArgument, "arguments").exitsWith(par::core::exitUsage);
  std::vector<std::string> arguments;
  for (size_t i = 0; i < options->argument_count; ++i)
    arguments.push_back(required(options->arguments[i], "an argument"));
  bool isolated = options->flags & PAR_ISOLATED;
  std::string worker = options->worker ? options->worker : "";
  job.caller = std::make_unique<Caller>(par::api::startRanks(arguments, isolated, worker));
}

} // namespace

unsigned par_runtime_abi(void) { return PAR_RUNTIME_ABI; }

ParJob *par_open(const ParOpenOptions *options) {
  auto *job = new (std::nothrow) ParJob;
  if (!job)
    return nullptr;
  try {
    openInto(*job, options);
  } catch (const Failure &failure) {
    keep(*job, failure.what(), failure.exitCode());
  } catch (const std::exception &error) {
    keep(*job, Failure("", error.what()).what(), par::core::exitError);
  }
  job->opened = job->error ? job->error->message : "";
  return job;
}

int par_close(ParJob *job) {
  if (!job)
    return 0;
  int code = 0;
  {
    Turn turn(*job);
    if (!turn)
      return PAR_BUSY;
    // In a fork the ranks are the parent's.
    if (job->process != getpid()) {
      [[maybe_unused]] Caller *parents = job->caller.release();
    } else if (job->caller) {
      try {
        job->caller->end();
      } catch (const Failure &failure) {
        code = failure.exitCode();
      } catch (const std::exception &) {
        code = par::core::exitError;
      }
    }
  }
  delete job;
  return code;
}

const ParError *par_error(const ParJob *job) { return job && job->error ? &job->error->c : nullptr; }

const char *par_facts(ParJob *job) {
  return guarded(job, [&](Caller &caller) { job->facts = par::api::describeBundle(caller.bundle()); })
             ? nullptr
             : job->facts.c_str();
}

int par_feed(ParJob *job, const char *input, const void *data, ParType type, const int64_t *shape, size_t dims) {
  return guarded(job, [&](Caller &caller) {
    try {
      caller.feeding().feed(required(input, "input"), arrayOf(data, type, shape, dims));
    } catch (...) {
      caller.feeding().forget();
      throw;
    }
  });
}

int par_feed_ahead(ParJob *job, const char *input, const void *data, ParType type, const int64_t *shape, size_t dims) {
  return guarded(job, [&](Caller &caller) {
    caller.feeding().feedAhead(required(input, "input"), arrayOf(data, type, shape, dims));
  });
}

int par_forget(ParJob *job) {
  return guarded(job, [](Caller &caller) { caller.feeding().forget(); });
}

int par_run(ParJob *job, const char *entry) {
  return guarded(job, [&](Caller &caller) { caller.run(required(entry, "entry")); });
}

const ParScalar *par_scalars(ParJob *job, uint64_t call, size_t *count) {
  bool there = false;
  int code = guarded(job, [&](Caller &caller) {
    job->scalars.clear();
    there = call < caller.lastAnswer().scalars.size();
    if (there)
      for (const auto &[name, value] : caller.lastAnswer().scalars[call])
        job->scalars.push_back({name.c_str(), value});
  });
  if (count)
    *count = code || !there ? 0 : job->scalars.size();
  return code || !there ? nullptr : job->scalars.data();
}

int par_result(ParJob *job, const char *output, ParArray *result) {
  return guarded(job, [&](Caller &caller) {
    if (!result)
      throw Failure::at("", Message::nullArgument, "result").exitsWith(par::core::exitUsage);
    par::api::ResultView view = caller.result(required(output, "output"));
    job->shape = view.shape;
    *result = {typeOf(view.type), job->shape.size(), job->shape.data(), view.data};
  });
}

int par_set(ParJob *job, const char *name, double value) {
  return guarded(job, [&](Caller &caller) { caller.set(required(name, "name"), value); });
}

int par_get(ParJob *job, const char *name, double *value) {
  return guarded(job, [&](Caller &caller) {
    double found = caller.get(required(name, "name"));
    if (value)
      *value = found;
  });
}

int par_read(ParJob *job, const char *tensor, void *to, size_t bytes) {
  return guarded(
      job, [&](Caller &caller) { caller.read(required(tensor, "tensor"), {static_cast<std::byte *>(to), bytes}); });
}

int par_write(ParJob *job, const char *tensor, const void *from, ParType type, const int64_t *shape, size_t dims) {
  return guarded(job,
                 [&](Caller &caller) { caller.write(required(tensor, "tensor"), arrayOf(from, type, shape, dims)); });
}

int par_load(ParJob *job, const char *const *paths, size_t count) {
  return guarded(job, [&](Caller &caller) {
    std::vector<std::string> files;
    for (size_t i = 0; i < count; ++i)
      files.push_back(required(paths ? paths[i] : nullptr, "a path"));
    if (files.empty())
      throw Failure::at("", Message::nullArgument, "paths").exitsWith(par::core::exitUsage);
    caller.load(std::move(files));
  });
}

int par_resume(ParJob *job, const char *path) {
  return guarded(job, [&](Caller &caller) { caller.resume(required(path, "path")); });
}

int par_save(ParJob *job, const char *folder, uint64_t keepNewest) {
  return guarded(job, [&](Caller &caller) { job->text = caller.save(folder ? folder : "", keepNewest); });
}

int par_open_folder(ParJob *job, const char *folder, uint64_t keepNewest) {
  return guarded(job, [&](Caller &caller) { caller.save(required(folder, "folder"), keepNewest, /*onlyOpens=*/true); });
}

int par_export(ParJob *job, const char *path) {
  return guarded(job, [&](Caller &caller) { caller.exportTo(required(path, "path")); });
}

int par_position(ParJob *job, ParPosition *position) {
  return guarded(job, [&](Caller &caller) {
    const par::core::RunPosition &at = caller.lastAnswer().position;
    if (position)
      *position = {at.step, at.skipped, at.rows};
  });
}

const char *par_text(ParJob *job) { return job ? job->text.c_str() : ""; }

const char *par_event(ParJob *job) {
  bool there = false;
  guarded(job, [&](Caller &caller) {
    std::optional<std::string> line = caller.nextEvent();
    there = line.has_value();
    job->event = line.value_or("");
  });
  return there ? job->event.c_str() : nullptr;
}

// Each rank writes its rectangles into one safetensors file, rank 0 the index when all are on the disk, and the
// finished folder is moved into place.
#include "par/save/CheckpointWriter.h"

#include "BackgroundTask.h"
#include "RankFile.h"

#include "files/NoSpace.h"

#include <algorithm>
#include <filesystem>

namespace par::core {

namespace fs = std::filesystem;
using format::Tensor;

namespace {

SaveIndex indexOf(const format::Manifest &manifest, const std::string &run, uint64_t serial,
                  const RunPosition &position) {
  SaveIndex index;
  index.run = run;
  index.serial = serial;
  index.plan = manifest.planHash;
  index.position = position;
  for (const Tensor &tensor : manifest.tensors) {
    if (!isSaved(tensor))
      continue;
    SavedTensor entry{tensor.type, tensor.layout.shape, tensor.stored, {}, tensor.aliases};
    for (const format::Rectangle &part : tensor.layout.parts)
      if (!part.ranks.empty() && elementCount(part.size) > 0)
        entry.parts.push_back({rankFile(part.ranks.front()), part.start, part.size});
    index.tensors.emplace_back(tensor.name, std::move(entry));
  }
  return index;
}

/// The index of a save whose other files are there; all of it is on the disk then.
void writeIndexFile(const std::string &part, const SaveIndex &index) {
  std::string path = part + "/index.json", text = writeIndex(index);
  FileWriter file(path, true);
  file.write(0, std::as_bytes(std::span(text)));
  file.sync();
  syncFolder(part);
}

} // namespace

/// The save that is being written, and the memory of copies.
struct CheckpointWriter::Writing {
  explicit Writing(const Session &session) : state(session) {}

  enum class Phase { none, parts, name } phase = Phase::none;
  RunPosition position;
  std::string whole, part; ///< DIR/STEP, and its name until then
  RankState state;
  SavedFile file; ///< this rank's
  BackgroundTask task;
  bool mayGiveUp = false; ///< where there is no space
  std::string fault;      ///< this rank's, for which it gives up
};

CheckpointWriter::CheckpointWriter(Session &session, SaveFolder *owner, std::string folder, uint64_t keep)
    : session(session), owner(owner), folder(std::move(folder)), keep(keep),
      writing(std::make_unique<Writing>(session)) {}

CheckpointWriter::~CheckpointWriter() = default;

bool CheckpointWriter::pending() const { return writing->phase != Writing::Phase::none; }

bool CheckpointWriter::busy() const { return !writing->task.done(); }

std::string CheckpointWriter::save(const RunPosition &position) {
  std::string before = finish();
  if (!before.empty() && writing->position.step == position.step)
    return before;
  start(position, /*copies=*/false);
  return finish();
}

std::string CheckpointWriter::begin(const RunPosition &position) {
  return start(position, /*copies=*/true) ? writing->whole : "";
}

/// False where the save was given up.
bool CheckpointWriter::start(const RunPosition &position, bool copies) {
  comm::Control &control = session.jobControl();
  Writing &w = *writing;
  if (run.empty())
    run = control.broadcast("run", owner ? owner->run() : "");
  w.position = position;
  w.whole = folder + "/" + std::to_string(position.step);
  w.part = w.whole + "." + run + ".tmp";
  w.mayGiveUp = givesUp && copies;
  if (w.mayGiveUp) {
    std::string fault = control.rank() == 0 ? makeFolder() : "";
    if (giveUp({control.broadcast("save folder", fault)}))
      return false;
  } else if (control.rank() == 0) {
    makeFolder();
  }
  w.state.forgetCopy();
  bool copied = copies && w.state.copy();
  std::vector<std::string> lacks = control.allGather("save", copies && !copied ? std::to_string(w.state.bytes()) : "");
  lacking.clear();
  for (size_t rank = lacks.size(); rank-- > 0;)
    if (!lacks[rank].empty())
      lacking =
          format("rank {} has no memory for a copy of its state ({} bytes)", rank, grouped(std::stoull(lacks[rank])));
  Facts facts = factsOf(session.manifest().planHash, run, position.step, control.rank(), control.world());
  auto write = [&w, facts, path = w.part + "/" + rankFile(control.rank())](const std::atomic<bool> &stop) {
    w.file = w.state.write(path, facts, stop);
  };
  w.phase = Writing::Phase::parts;
  copied ? w.task.start(write) : w.task.runHere(write);
  return true;
}

/// Returns the fault for which the save is given up, if there is one. Throws Failure of others.
std::string CheckpointWriter::makeFolder() const {
  std::error_code error;
  fs::create_directories(writing->part, error);
  if (!error)
    return "";
  Failure failure = Failure::at(folder, Message::cannotWrite, error.message());
  if (!writing->mayGiveUp || !isNoSpace(error.value()))
    throw failure;
  return failure.what();
}

/// Keeps the fault for which the save is given up. Throws Failure of others.
void CheckpointWriter::waitForTask() {
  try {
    writing->task.wait();
  } catch (const NoSpace &failure) {
    if (!writing->mayGiveUp)
      throw;
    writing->fault = failure.what();
  }
}

/// Whether a rank found no space: nothing is left of the save then.
bool CheckpointWriter::giveUp(const std::vector<std::string> &faults) {
  auto first = std::find_if(faults.begin(), faults.end(), [](const std::string &fault) { return !fault.empty(); });
  if (first == faults.end())
    return false;
  full = *first;
  writing->phase = Writing::Phase::none;
  std::error_code ignored;
  if (session.jobControl().rank() == 0)
    fs::remove_all(writing->part, ignored);
  return true;
}

std::string CheckpointWriter::advance() {
  comm::Control &control = session.jobControl();
  Writing &w = *writing;
  waitForTask();
  if (w.mayGiveUp && giveUp(control.allGather("save fits", std::exchange(w.fault, ""))))
    return "";
  if (w.phase == Writing::Phase::parts) {
    nameIt(control.gather("saved", std::to_string(w.file.bytes) + " " + w.file.header));
    w.phase = Writing::Phase::name;
    return "";
  }
  w.phase = Writing::Phase::none;
  if (control.rank() == 0)
    control.saved(w.whole);
  return w.whole;
}

/// Rank 0 writes the index and gives the save its name.
void CheckpointWriter::nameIt(const std::vector<std::string> &files) {
  if (session.jobControl().rank() != 0)
    return;
  SaveIndex index = indexOf(session.manifest(), run, owner->nextSerial(), writing->position);
  for (const std::string &text : files)
    index.files.push_back({std::stoull(text), text.substr(text.find(' ') + 1)});
  writing->task.start([this, index, part = writing->part](const std::atomic<bool> &) {
    try {
      writeIndexFile(part, index);
    } catch (const Failure &) {
      std::error_code ignored;
      fs::remove_all(part, ignored); // all ranks have written theirs
      throw;
    }
    owner->add(part, index.position.step, keep);
  });
}

std::string CheckpointWriter::finish() {
  std::string whole;
  while (pending()) {
    waitForTask();
    session.jobControl().barrier("save done");
    whole = advance();
  }
  return whole;
}

} // namespace par::core

#include "api/FolderSaves.h"

#include "par/messages/Failure.h"

#include <filesystem>
#include <limits>

namespace par::api {

using core::Failure;
using core::Message;

static std::unique_ptr<core::SaveFolder> lock(const std::string &folder, const std::string &from) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw Failure::at(folder, Message::cannotWrite, error.message());
  auto owner = std::make_unique<core::SaveFolder>(folder);
  core::refuseForeign(folder, std::numeric_limits<uint64_t>::max());
  core::refuseOthersSaves(folder, from);
  return owner;
}

void FolderSaves::open(const std::string &folder, uint64_t keep, const std::string &from) {
  if (has(folder))
    return;
  Folder made;
  std::string fault;
  if (session.rank() == 0)
    try {
      made.owner = lock(folder, from);
    } catch (const Failure &failure) {
      fault = failure.what();
    }
  fault = session.jobControl().broadcast("folder", fault);
  if (!fault.empty())
    throw Failure::verbatim(fault, core::exitError);
  uint64_t kept = keep ? keep : std::numeric_limits<uint64_t>::max();
  made.writer = std::make_unique<core::CheckpointWriter>(session, made.owner.get(), folder, kept);
  folders.emplace(folder, std::move(made));
}

std::string FolderSaves::save(const std::string &folder, const core::RunPosition &position) {
  return folders.at(folder).writer->save(position);
}

} // namespace par::api

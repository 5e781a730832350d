#include "Member.h"

#include "par/format/Family.h"
#include "par/messages/Failure.h"

#include <algorithm>

namespace par::core {

void chooseMember(Job &job, std::optional<uint32_t> ranks) {
  if (!ranks)
    return;
  auto members = format::membersIn(job.name);
  if (!members)
    return; // what is wrong with the bundle is said when it is opened
  auto member = std::find_if(members->begin(), members->end(),
                             [&](const format::FamilyMember &of) { return of.ranks == *ranks; });
  if (member == members->end())
    return;
  std::string settings;
  for (const std::string &setting : member->also)
    settings += (settings.empty() ? "" : ",") + setting;
  job.tell(job.name + format(": note: {} rank{} run{} its member {} (--also {})", *ranks, *ranks == 1 ? "" : "s",
                             *ranks == 1 ? "s" : "", member->name, settings));
  job.name = job.options.bundle = format::folderOf(job.name, *member);
}

void openFamily(Job &job) {
  if (!job.options.shrink)
    return;
  if (!job.trains())
    throw Failure::at(job.name, Message::flagNeeds, "--shrink", "a run that trains").exitsWith(exitUsage);
  std::string main = format::mainFolderOf(job.name);
  auto members = format::membersIn(main);
  if (!members)
    throw Failure(main, members.message());
  for (const format::FamilyMember &of : *members) {
    if (of.ranks >= job.bundle.manifest.ranks.size())
      continue;
    Member member{format::folderOf(main, of), openBundle(format::folderOf(main, of), job.options.device)};
    if (member.bundle.manifest.planHash != of.plan || member.bundle.manifest.ranks.size() != of.ranks)
      throw Failure::at(member.name, Message::otherMember, main);
    job.family.push_back(std::move(member));
  }
  if (job.family.empty())
    throw Failure::at(job.name, Message::flagNeeds, "--shrink",
                      "a bundle whose family has a member of fewer ranks: par-compile --also mesh.dp=N")
        .exitsWith(exitUsage);
}

void takeMember(Job &job, uint32_t ranks) {
  auto member = std::find_if(job.family.begin(), job.family.end(),
                             [&](const Member &of) { return of.bundle.manifest.ranks.size() == ranks; });
  if (member == job.family.end())
    return;
  std::swap(job.bundle, member->bundle);
  std::swap(job.name, member->name);
  job.options.bundle = job.name;
}

} // namespace par::core

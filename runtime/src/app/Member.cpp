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

} // namespace par::core

#include "NcclMeeting.h"

#include "NcclFacts.h"
#include "comm/job/Hosts.h"
#include "comm/job/Serialization.h"
#include "par/messages/NcclMessages.h"

#include <cstdlib>
#include <cstring>

namespace par::cuda {

using comm::Reader;
using comm::Writer;

namespace {

std::string textOf(const char *variable) {
  const char *text = std::getenv(variable);
  return text ? text : "";
}

NcclFacts factsHere(const CommunicatorsOf &of, const Nccl &nccl) {
  NcclFacts facts;
  facts.rank = describeRank(of.control);
  facts.host = comm::hostName();
  facts.version = nccl.describe();
  facts.gpu = of.gpu.uuid();
  facts.visible = textOf("CUDA_VISIBLE_DEVICES");
  if (facts.visible.empty())
    facts.visible = "not set";
  facts.byRendezvous = interfaceOf(of.control.placing().address);
  facts.settings = ncclSettings();
  facts.interfaces = interfacesHere(facts.setting("NCCL_SOCKET_FAMILY"));
  return facts;
}

/// At rank 0: NCCL's id, and notes on how the ranks may find each other.
std::string wordOfRoot(const CommunicatorsOf &of, const Nccl &nccl, const std::vector<std::string> &all) {
  std::vector<NcclFacts> ranks;
  for (const std::string &one : all)
    ranks.push_back(NcclFacts::read(one));
  NcclVerdict verdict = compare(ranks);
  std::vector<std::string> notes = verdict.warnings;
  if (!verdict.error.empty() && textOf("PAR_NCCL_CHECK") != "0")
    throw core::Failure(of.options.folder, verdict.error).note(say(NcclSentence::onlyWarned));
  if (!verdict.error.empty())
    notes.insert(notes.begin(), verdict.error);
  size_t warnings = notes.size();
  if (std::optional<Interface> listens = ranks[0].listens())
    notes.push_back(say(NcclSentence::whereRootListens, listens->name, listens->address));
  NcclId id{};
  if (int result = nccl.uniqueId(&id); result != ncclOk)
    throw core::Failure::at(of.options.folder, core::Message::ncclFailed, "world", describeRank(of.control),
                            "ncclGetUniqueId", nccl.errorText(result));
  Writer writer;
  writer.text({id.bytes, sizeof id.bytes}).number(warnings).number(notes.size());
  for (const std::string &note : notes)
    writer.text(note);
  return writer.take();
}

} // namespace

std::string describeRank(const comm::Control &control) {
  std::string rank = std::to_string(control.rank());
  return control.placing().address.empty() ? rank : rank + " on " + comm::hostName();
}

NcclMeeting meetForNccl(const CommunicatorsOf &of, const Nccl &nccl) {
  std::vector<std::string> all = of.control.gather("nccl facts", factsHere(of, nccl).write());
  std::string word = of.control.rank() == 0 ? wordOfRoot(of, nccl, all) : "";
  word = of.control.broadcastSecret("nccl", word, 0);
  Reader reader(word);
  NcclMeeting meeting;
  std::string id = reader.text();
  id.resize(sizeof meeting.id.bytes);
  std::memcpy(meeting.id.bytes, id.data(), id.size());
  uint64_t warnings = reader.number();
  for (uint64_t left = reader.number(); left > 0; --left)
    meeting.notes.push_back(reader.text());
  for (uint64_t i = 0; i < warnings && i < meeting.notes.size(); ++i)
    meeting.remark += (i ? "\n" : "") + std::string("warning: ") + meeting.notes[i];
  return meeting;
}

} // namespace par::cuda

// The file that says which bundles are a family.
#include "par/format/Family.h"
#include "Check.h"
#include "Json.h"
#include "par/format/PlainFile.h"
#include "par/format/Sha256.h"

#include <algorithm>
#include <filesystem>
#include <set>

using namespace par::format;

static constexpr Word mainName = "main";

const FamilyMember *Family::withRanks(uint32_t ranks) const {
  auto found =
      std::find_if(members.begin(), members.end(), [&](const FamilyMember &member) { return member.ranks == ranks; });
  return found == members.end() ? nullptr : &*found;
}

Family par::format::makeFamily(std::vector<FamilyMember> members) {
  Sha256 hash;
  for (const FamilyMember &member : members)
    hash.update(member.name + " " + std::to_string(member.ranks) + " " + member.plan + "\n");
  return {hash.finish(), std::move(members)};
}

std::string par::format::writeFamilyText(const Family &family) {
  Writer w;
  w.raw("{").key("par_family").numbers(std::vector<int64_t>{formatMajor, formatMinor});
  w.raw("\n").key("family").text(family.hash).raw("\n").key("members").raw("[");
  for (const FamilyMember &member : family.members) {
    w.raw("\n").comma().raw("{").key("name").text(member.name).key("also").texts(member.also);
    w.key("ranks").number(member.ranks).key("plan").text(member.plan).raw("}");
  }
  w.raw("]}\n");
  return w.take();
}

/// A name that is a folder's: letters, digits, '-', '_' and '.', the first one no dot.
static bool isFolderName(const std::string &name) {
  return !name.empty() && name.size() <= 256 && name[0] != '.' && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  });
}

static FamilyMember readMember(const Node &node) {
  node.only({"name", "also", "ranks", "plan"});
  FamilyMember member;
  member.name = node.at("name").text();
  if (!isFolderName(member.name))
    node.at("name").fail("'" + member.name + "' is no name of a folder");
  for (const Node &setting : node.at("also").list())
    member.also.push_back(setting.text());
  member.ranks = uint32_t(node.at("ranks").integer(1, 1 << 24));
  member.plan = node.at("plan").text();
  return member;
}

Expected<Family> par::format::parseFamily(std::string_view text, const std::string &where) {
  Expected<Json> json = parseJson(text, where);
  if (!json)
    return json.error();
  Document document{where, std::move(*json), std::nullopt};
  Node root(document);
  readVersion(root.only({"par_family", "family", "members"}).at("par_family"));
  std::vector<FamilyMember> members;
  std::set<std::string> names;
  std::set<uint32_t> ranks;
  for (const Node &node : root.at("members").list()) {
    members.push_back(readMember(node));
    const FamilyMember &member = members.back();
    if ((member.name == mainName) != (members.size() == 1))
      node.fail("the first member is '" + std::string(mainName) + "', and only that one");
    if (!names.insert(member.name).second || !ranks.insert(member.ranks).second)
      node.fail("two members have the name '" + member.name + "' or " + number(member.ranks) + " ranks");
  }
  Family family = makeFamily(std::move(members));
  if (family.hash != root.at("family").text())
    root.at("family").fail("is not the hash of its members, " + family.hash);
  if (document.error)
    return *document.error;
  return family;
}

Expected<Family> par::format::readFamily(const std::string &folder, const Manifest &manifest) {
  if (!lists(manifest, familyFile))
    return Family();
  Expected<std::string> text = readListed(folder, manifest, familyFile);
  if (!text)
    return Error{std::string(familyFile) + ": " + text.message()};
  return parseFamily(*text, std::string(familyFile));
}

std::string par::format::folderOf(const std::string &folder, const FamilyMember &member) {
  return folder + "/" + std::string(membersFolder) + "/" + member.name;
}

Expected<std::vector<FamilyMember>> par::format::membersIn(const std::string &folder) {
  std::string name = "manifest.json";
  Expected<std::string> text = readPlainFile(folder + "/" + name);
  if (!text)
    return Error{name + ": cannot open: " + text.message()};
  Expected<Manifest> manifest = parseManifest(*text, name);
  Expected<Family> family = manifest ? readFamily(folder, *manifest) : manifest.error();
  if (!family)
    return family.error();
  if (family->members.empty() || family->members.front().plan != manifest->planHash)
    return std::vector<FamilyMember>();
  return std::vector<FamilyMember>(family->members.begin() + 1, family->members.end());
}

std::string par::format::mainFolderOf(const std::string &folder) {
  std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
  if (!path.has_filename())
    path = path.parent_path();
  std::filesystem::path above = path.parent_path(), main = above.parent_path();
  std::error_code error;
  bool isMember = above.filename() == membersFolder && std::filesystem::exists(main / familyFile, error);
  return isMember ? main.string() : path.string();
}

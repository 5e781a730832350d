// Bundles of one family: the same step, and the same model, on other numbers of ranks.
//
//     m.par/                  the bundle itself, with family.json among its files
//     m.par/also/dp3/         a member: a bundle of its own, with the same family.json
#pragma once

#include "par/format/Bundle.h"

namespace par::format {

/// The file that each bundle of a family has; all have the same one.
inline constexpr std::string_view familyFile = "family.json";
/// The folder of the members.
inline constexpr std::string_view membersFolder = "also";

struct FamilyMember {
  std::string name;              ///< of its folder; "main" of the bundle that holds the others
  std::vector<std::string> also; ///< KEY=VALUE by which its plan differs from main's
  uint32_t ranks = 1;
  std::string plan; ///< its plan's hash
  bool operator==(const FamilyMember &) const = default;
};

struct Family {
  /// SHA-256 over the lines "name ranks plan\n" of `members`.
  std::string hash;
  /// Main first; no two have the same name or number of ranks.
  std::vector<FamilyMember> members;

  /// The member with this number of ranks; null: none has it.
  const FamilyMember *withRanks(uint32_t ranks) const;
};

/// The family of these members, with its hash.
Family makeFamily(std::vector<FamilyMember> members);
std::string writeFamilyText(const Family &family);
/// Reads family.json, as strictly as the manifest.
Expected<Family> parseFamily(std::string_view text, const std::string &where);
/// The family that the bundle in `folder` names; without members: it names none.
Expected<Family> readFamily(const std::string &folder, const Manifest &manifest);
/// The members' folders, main's excepted, where `folder` is main's.
std::string folderOf(const std::string &folder, const FamilyMember &member);
/// The folder of the main bundle where `folder` is that of a member in it; else `folder`, without slashes at its end.
std::string mainFolderOf(const std::string &folder);
/// The members whose folders are in that of this bundle: all others of main, none of another member, whose names
/// family.json has, too.
Expected<std::vector<FamilyMember>> membersIn(const std::string &folder);

struct NamedBundle {
  std::string name; ///< of its folder
  const Bundle *bundle;
};

/// As writeBundle, with members in its folder: all of them are there, or none. A file that two bundles have alike lies
/// on disk once, where the file system has hard links.
Expected<Manifest> writeFamily(const std::string &folder, const Bundle &main, const std::vector<NamedBundle> &members);

} // namespace par::format

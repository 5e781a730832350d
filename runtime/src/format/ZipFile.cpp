// Reads the directory of an archive from its end, and finds the bytes of each member by the member's own header.
#include "par/format/ZipFile.h"

#include "par/format/Printable.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

using namespace par::format;

// Numbers and layouts as of PKWARE's APPNOTE 6.3.10, sections 4.3.7, 4.3.12, 4.3.14 to 4.3.16 and 4.5.3.
static constexpr uint32_t localMark = 0x04034b50, entryMark = 0x02014b50, endMark = 0x06054b50, end64Mark = 0x06064b50,
                          locatorMark = 0x07064b50;
static constexpr size_t localSize = 30, entrySize = 46, endSize = 22, locatorSize = 20, end64Size = 56;
static constexpr uint32_t in64 = 0xffffffff;
static constexpr size_t maxComment = 65535, maxMemberName = 4096;

/// A number of the archive, the lowest byte first; the caller knows that it is there.
template <typename Number>
static Number numberAt(std::string_view bytes, size_t at) {
  Number value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// `length` bytes from `at`; nullopt where they are not all there.
static std::optional<std::string_view> zipPart(std::string_view file, uint64_t at, uint64_t length) {
  if (at > file.size() || length > file.size() - at)
    return std::nullopt;
  return file.substr(at, length);
}

namespace {

struct ZipDirectory {
  uint64_t begin = 0, entries = 0;
};

/// Numbers of a member; a number that stands for one of 64 bits is in64 until that is found.
struct ZipSizes {
  uint64_t size = 0, packed = 0, header = 0;
};

} // namespace

/// The last mark of an end within the comment's length.
static std::optional<size_t> findEnd(std::string_view file) {
  if (file.size() < endSize)
    return std::nullopt;
  size_t last = file.size() - endSize, first = last > maxComment ? last - maxComment : 0;
  for (size_t at = last + 1; at-- > first;)
    if (numberAt<uint32_t>(file, at) == endMark && numberAt<uint16_t>(file, at + 20) == last - at)
      return at;
  return std::nullopt;
}

static Expected<ZipDirectory> findDirectory(std::string_view file) {
  std::optional<size_t> end = findEnd(file);
  if (!end)
    return Error{"is no zip archive, or not whole: it has no directory at its end"};
  ZipDirectory found{numberAt<uint32_t>(file, *end + 16), numberAt<uint16_t>(file, *end + 10)};
  if (found.begin != in64 && found.entries != 0xffff)
    return found;
  if (*end < locatorSize || numberAt<uint32_t>(file, *end - locatorSize) != locatorMark)
    return found;
  auto far = zipPart(file, numberAt<uint64_t>(file, *end - locatorSize + 8), end64Size);
  if (!far || numberAt<uint32_t>(*far, 0) != end64Mark)
    return Error{"says where its directory ends, and none ends there"};
  return ZipDirectory{numberAt<uint64_t>(*far, 48), numberAt<uint64_t>(*far, 32)};
}

/// Numbers of 64 bits stand in field 1 of the extra fields, in this order, only those that do not fit 32 bits.
static bool readExtra(std::string_view extra, ZipSizes &sizes) {
  while (extra.size() >= 4) {
    auto kind = numberAt<uint16_t>(extra, 0), length = numberAt<uint16_t>(extra, 2);
    if (length > extra.size() - 4)
      return false;
    std::string_view field = extra.substr(4, length);
    extra.remove_prefix(4 + length);
    if (kind != 1)
      continue;
    for (uint64_t *number : {&sizes.size, &sizes.packed, &sizes.header}) {
      if (*number != in64)
        continue;
      if (field.size() < sizeof *number)
        return false;
      *number = numberAt<uint64_t>(field, 0);
      field.remove_prefix(sizeof *number);
    }
  }
  return true;
}

/// The data of a member, which begin after its own header, whose name may be followed by fields of another length.
static std::optional<std::string_view> dataOf(std::string_view file, const ZipSizes &sizes) {
  auto local = zipPart(file, sizes.header, localSize);
  if (!local || numberAt<uint32_t>(*local, 0) != localMark)
    return std::nullopt;
  uint64_t skip = localSize + numberAt<uint16_t>(*local, 26) + numberAt<uint16_t>(*local, 28);
  return zipPart(file, sizes.header + skip, sizes.packed);
}

/// The member whose entry begins at `at`, which then moves on.
static Expected<ZipMember> readEntry(std::string_view file, uint64_t &at) {
  auto entry = zipPart(file, at, entrySize);
  if (!entry || numberAt<uint32_t>(*entry, 0) != entryMark)
    return Error{"has a directory with fewer entries than it says"};
  uint64_t name = numberAt<uint16_t>(*entry, 28), extra = numberAt<uint16_t>(*entry, 30);
  auto flags = numberAt<uint16_t>(*entry, 8), method = numberAt<uint16_t>(*entry, 10);
  auto named = zipPart(file, at + entrySize, name), extras = zipPart(file, at + entrySize + name, extra);
  if (!named || !extras || name > maxMemberName)
    return Error{"has an entry that does not fit into its directory"};
  ZipSizes sizes{numberAt<uint32_t>(*entry, 24), numberAt<uint32_t>(*entry, 20), numberAt<uint32_t>(*entry, 42)};
  std::string shown = excerpt(printable(std::string(*named)), 120);
  auto data = readExtra(*extras, sizes) ? dataOf(file, sizes) : std::nullopt;
  if (!data || (method == 0 && sizes.size != sizes.packed))
    return Error{"says of \"" + shown + "\" bytes that are not there"};
  if (flags & 1)
    return Error{"has the member \"" + shown + "\", which is encrypted"};
  at += entrySize + name + extra + numberAt<uint16_t>(*entry, 32);
  return ZipMember{std::string(*named), *data, method != 0, method, sizes.size, numberAt<uint32_t>(*entry, 16)};
}

/// No two members share a byte: an archive of few bytes has no more data than bytes.
static Status checkApart(const std::vector<ZipMember> &members) {
  std::vector<const ZipMember *> sorted;
  for (const ZipMember &member : members)
    if (!member.bytes.empty())
      sorted.push_back(&member);
  std::sort(sorted.begin(), sorted.end(),
            [](const ZipMember *a, const ZipMember *b) { return a->bytes.data() < b->bytes.data(); });
  for (size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i - 1]->bytes.data() + sorted[i - 1]->bytes.size() > sorted[i]->bytes.data())
      return Error{"has the members \"" + excerpt(printable(sorted[i - 1]->name), 120) + "\" and \"" +
                   excerpt(printable(sorted[i]->name), 120) + "\", which overlap"};
  return {};
}

Expected<std::vector<ZipMember>> par::format::readZip(std::string_view file) {
  Expected<ZipDirectory> directory = findDirectory(file);
  if (!directory)
    return directory.error();
  std::vector<ZipMember> members;
  std::set<std::string> names;
  uint64_t at = directory->begin;
  for (uint64_t i = 0; i < directory->entries; ++i) {
    Expected<ZipMember> member = readEntry(file, at);
    if (!member)
      return member.error();
    if (!names.insert(member->name).second)
      return Error{"has two members \"" + excerpt(printable(member->name), 120) + "\""};
    members.push_back(std::move(*member));
  }
  if (Status status = checkApart(members); !status)
    return status.error();
  return members;
}

// Finds, checks, reads and writes the file of a start, and makes room in its folder.
#include "StartCache.h"

#include "par/app/Job.h"
#include "par/cpu/Machine.h"
#include "par/cpu/Matmul.h"
#include "par/files/FileIdentity.h"
#include "par/format/Sha256.h"
#include "par/format/WrittenBuffers.h"
#include "par/messages/Failure.h"
#include "par/save/Export.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace par::core {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view statePrefix = "state ", filterPrefix = "filter ";
constexpr const char *tensorsBlock = "tensors", *remarkBlock = "remark";

int64_t nanosecondsNow() {
  auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

std::string_view textOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

/// None where one of them cannot be looked at: who needs it says so.
std::vector<std::string> modelFilesOf(const Job &job) {
  try {
    return filesOfModel(job.bundle.manifest, job.name);
  } catch (const Failure &) {
    return {};
  }
}

/// Files from which the job's weights come, or none where they are more than plain files: an index or a save names
/// others, and which these are is known only when it is read.
std::vector<std::string> sourcesOf(const Job &job) {
  std::vector<std::string> files;
  if (format::lists(job.bundle.manifest, format::weightsFile))
    files = {(fs::path(job.name) / format::weightsFile).string()};
  else
    files = modelFilesOf(job);
  for (const std::string &path : job.options.weights) {
    std::error_code ignored;
    if (path.ends_with(".json") || fs::is_directory(path, ignored))
      return {};
    files.push_back(path);
  }
  for (std::string &path : files)
    path = fs::absolute(path).lexically_normal().string();
  return files;
}

/// Which files these are now; empty where a write could still leave one's times as they are.
std::string identitiesOf(const std::vector<std::string> &files, int64_t now) {
  std::string all;
  for (const std::string &path : files) {
    std::optional<FileIdentity> identity = identityOf(path);
    if (identity && !isSettled(*identity, now))
      return "";
    all += format("\nfile {} {}", path, identity ? identity->text() : "is not there");
  }
  return all;
}

/// All that the file depends on beside the files of weights: state by the bundle, packed filters by the machine.
std::string describe(const Job &job) {
  auto manifest = format::readPlainFile(job.name + "/manifest.json");
  int threads = job.options.threads ? job.options.threads : static_cast<int>(job.bundle.manifest.threads);
  return format("start 1\nbundle {} {}\nmachine {}, {}, {}\nthreads {}\npages {}", job.bundle.manifest.bundleHash,
                format::sha256(manifest ? *manifest : ""), cpu::processorName(), cpu::isaLevel(), cpu::libraryVersion(),
                threads, sysconf(_SC_PAGESIZE));
}

/// Makes the folder; false where another user may write there, or it cannot be made.
bool makeFolder(const std::string &folder) {
  std::error_code error;
  fs::create_directories(fs::path(folder).parent_path(), error);
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return false;
  return isOnlyOurs(folder) && fs::is_directory(folder, error);
}

/// Removes files that were not used for a week, and the oldest beyond 8 GiB with `coming` bytes. Returns whether these
/// fit.
bool makeRoom(const std::string &folder, uint64_t coming) {
  constexpr uint64_t most = uint64_t(8) << 30;
  constexpr auto week = std::chrono::hours(24 * 7);
  if (coming > most)
    return false;
  std::error_code ignored;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, ignored))
    if (entry.is_regular_file(ignored))
      files.emplace_back(entry.last_write_time(ignored), entry.path());
  std::sort(files.rbegin(), files.rend()); // the newest first
  uint64_t bytes = coming;
  for (const auto &[used, path] : files) {
    bytes += fs::file_size(path, ignored);
    if (bytes > most || used < fs::file_time_type::clock::now() - week)
      fs::remove(path, ignored);
  }
  return true;
}

/// The place of a program's state in its arena, and the tensors in it.
struct StateMap {
  std::vector<std::string> tensors;
  std::vector<std::pair<uint64_t, uint64_t>> pages; ///< [begin, end) from the arena's begin, ascending, apart
};

/// That of the tensors which `weights` gives values. Empty where a run may have changed one, or one lies elsewhere.
StateMap mapOf(const Session &session, const WeightStore &weights) {
  const format::Program &program = session.onProgram().program();
  auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::vector<bool> written = format::writtenBuffers(program);
  StateMap map;
  for (uint32_t i = 0; i < program.buffers.size(); ++i) {
    const format::Buffer &buffer = program.buffers[i];
    const format::Tensor *tensor = session.manifest().findTensor(buffer.tensor);
    if (buffer.kind != format::BufferKind::State || buffer.of != format::noIndex || !tensor || !isWeight(*tensor) ||
        !weights.find(sourceOf(session.manifest(), *tensor)))
      continue;
    if (written[i] || buffer.space != format::Space::Dev)
      return {};
    map.tensors.push_back(tensor->name);
    for (uint64_t at : buffer.at)
      map.pages.emplace_back(at / page * page, (at + buffer.bytes() + page - 1) / page * page);
  }
  std::sort(map.pages.begin(), map.pages.end());
  std::vector<std::pair<uint64_t, uint64_t>> merged;
  for (const auto &[begin, end] : map.pages)
    if (!merged.empty() && begin <= merged.back().second)
      merged.back().second = std::max(merged.back().second, end);
    else
      merged.emplace_back(begin, end);
  map.pages = std::move(merged);
  return map;
}

} // namespace

StartCache::StartCache(std::string folder, std::string about, std::vector<std::string> sources)
    : folder(std::move(folder)), about(std::move(about)), sources(std::move(sources)) {}

std::string StartCache::path() const {
  std::string name = about;
  for (const std::string &file : sources)
    name += "\n" + file;
  return (fs::path(folder) / (format::sha256(name) + ".start")).string();
}

std::shared_ptr<StartCache> StartCache::open(const Job &job, std::string &remark) {
  const RunOptions &options = job.options;
  int64_t now = nanosecondsNow();
  if (options.cache.empty() || !options.here || options.init || options.averages || !options.resume.empty() ||
      job.device() != "cpu" || job.bundle.manifest.ranks.size() != 1 || !job.predicts())
    return nullptr;
  std::vector<std::string> sources = sourcesOf(job);
  if (sources.empty())
    return nullptr;
  std::string folder = (fs::path(options.cache) / "starts").string();
  if (!makeFolder(folder)) {
    remark =
        format("{}: note: no start is kept there: it must be a folder that its user can make and that only its user "
               "writes; chmod go-w it, or name another folder in --cache or PAR_CACHE",
               folder);
    return nullptr;
  }
  std::shared_ptr<StartCache> cache(new StartCache(folder, describe(job), std::move(sources)));
  std::string identities = identitiesOf(cache->sources, now);
  cache->facts = identities.empty() ? "" : cache->about + identities;
  if (!cache->facts.empty())
    if (std::optional<BlockFile> kept = BlockFile::open(cache->path(), cache->facts))
      cache->file.emplace(std::move(*kept));
  if (cache->isFilled()) {
    const timespec times[] = {{0, UTIME_OMIT}, {0, UTIME_NOW}}; // by the time of its use it is kept
    ::futimens(cache->file->descriptor(), times);
  }
  return cache;
}

std::string StartCache::remark() const { return std::string(textOf(file->blocks().at(remarkBlock))); }

void StartCache::give(Session &session, uint64_t seed) const {
  const nlohmann::json tensors = nlohmann::json::parse(textOf(file->blocks().at(tensorsBlock)));
  Device &device = session.onDevice();
  std::vector<Prepared> filters;
  for (const auto &[name, bytes] : file->blocks()) {
    if (name.starts_with(filterPrefix))
      filters.push_back({name, bytes});
    if (!name.starts_with(statePrefix))
      continue;
    std::byte *at = device.arenas().dev + std::stoull(name.substr(statePrefix.size()));
    if (!device.mapFile(at, bytes.size(), file->descriptor(), file->offsetOf(bytes)))
      device.write(at, bytes);
  }
  std::set<std::string> given = tensors;
  session.initialize(nullptr, seed, [&](const format::Tensor &tensor) { return !given.count(tensor.name); });
  device.take(filters);
}

void StartCache::keep(const Session &session, const Job &job, const std::function<void(const std::string &)> &say) {
  if (std::exchange(isOver, true) || isFilled() || facts.empty() || !job.weights ||
      about + identitiesOf(sources, nanosecondsNow()) != facts)
    return;
  StateMap map = mapOf(session, *job.weights);
  if (map.tensors.empty())
    return;
  std::string tensors = nlohmann::json(map.tensors).dump();
  std::vector<Block> blocks = {{tensorsBlock, std::as_bytes(std::span(tensors))},
                               {remarkBlock, std::as_bytes(std::span(saidOfWeights))}};
  for (const auto &[begin, end] : map.pages)
    blocks.push_back(
        {std::string(statePrefix) + std::to_string(begin), {session.onDevice().arenas().dev + begin, end - begin}});
  for (const Prepared &filter : session.onDevice().prepared())
    blocks.push_back({filter.name, filter.bytes});
  uint64_t bytes = 0;
  for (const Block &block : blocks)
    bytes += block.bytes.size();
  try {
    if (makeRoom(folder, bytes))
      writeBlocks(path(), facts, blocks);
  } catch (const Failure &failure) {
    say(failure.what());
  }
}

} // namespace par::core

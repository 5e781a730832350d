// Members are compiled one after the other, each with the settings of its --also after those of the command line. They
// are compared with the main bundle, whose step they must compute, and written with it at the end: all or none.
#include "CompileFamily.h"

#include "CompileRun.h"

#include "par/Compiler/FamilyStep.h"
#include "par/Compiler/WriteBundle.h"
#include "par/Report/Text.h"
#include "par/format/Family.h"
#include "par/format/Printable.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace par {

/// A plan that wants one order of additions gets it on all members, unless it says how sums are made.
static CompileOptions withOrder(CompileOptions options) {
  PlanErrors reported; // the compilation reports them again
  std::optional<Plan> plan = readPlan(options.plans, options.settings, reported);
  if (plan && *plan->collectives.deterministic && !plan->collectives.sums.given())
    options.settings.push_back("collectives.sums=microbatches");
  return options;
}

namespace {

/// One call of par-compile with --also.
class FamilyRun {
public:
  FamilyRun(const CompileOptions &options, raw_ostream &out, DiagnosticSink sink)
      : options(withOrder(options)), out(out), sink(sink), timer(out, false) {}

  int run();

private:
  bool readSettings();
  int compileMember(const AlsoSettings &also);
  /// Reports an error if two members would have one number of ranks, by which par-run chooses.
  bool isDistinct(const AlsoSettings &also, const Compiled &member);
  int write();
  void reportError(const std::string &file, const Twine &message) {
    CompileDiagnostic finding;
    finding.file = file;
    finding.message = message.str();
    sink(finding);
  }
  static std::string flagOf(const AlsoSettings &also) { return "--also " + also.text; }
  static size_t ranksOf(const Compiled &compiled) { return compiled.bundle->manifest.ranks.size(); }

  const CompileOptions options;
  raw_ostream &out;
  DiagnosticSink sink;
  StepTimer timer;
  std::vector<AlsoSettings> settings;
  std::vector<std::string> warnings; ///< of the main bundle, which its members need not repeat
  FamilyPart main{nullptr};
  std::vector<FamilyPart> members;
};

} // namespace

bool FamilyRun::readSettings() {
  for (const std::string &text : options.also) {
    std::optional<AlsoSettings> also = readAlso(text);
    if (!also) {
      reportError("", "--also takes KEY=VALUE[,KEY=VALUE] of the plan, as mesh.dp=3, found \"" + text + "\"");
      return false;
    }
    for (const AlsoSettings &other : settings)
      if (other.name == also->name) {
        reportError("", "--also " + other.text + " and --also " + also->text + " are both called " + also->name);
        return false;
      }
    settings.push_back(std::move(*also));
  }
  return true;
}

bool FamilyRun::isDistinct(const AlsoSettings &also, const Compiled &member) {
  auto alike = [&](const Compiled &other, const std::string &called) {
    if (ranksOf(other) != ranksOf(member))
      return false;
    reportError(flagOf(also), "has " + Twine(ranksOf(member)) + (ranksOf(member) == 1 ? " rank" : " ranks") + ", as " +
                                  called + "; par-run chooses a member by the number of ranks");
    return true;
  };
  if (alike(*main.made, "the bundle itself"))
    return false;
  for (auto [index, other] : enumerate(members))
    if (alike(*other.made, flagOf(settings[index])))
      return false;
  return true;
}

/// The line `also ...`
static void printMember(const AlsoSettings &also, const Compiled &member, raw_ostream &out) {
  const format::Manifest &manifest = member.bundle->manifest;
  uint64_t peak = 0;
  for (const format::Peak &role : manifest.peak)
    peak = std::max(peak, role.state + role.pool + role.reserve);
  out << "also    " << also.text << ": " << manifest.ranks.size()
      << (manifest.ranks.size() == 1 ? " rank, " : " ranks, ") << manifest.microbatches
      << (manifest.microbatches == 1 ? " microbatch" : " microbatches") << " each, peak " << humanBytes(double(peak))
      << ", predicted step " << formatTime(int64_t(manifest.predictedNs)) << "; proved\n";
}

/// Why a member has the batch that it has.
static std::string noteOfBatch(const PlanBatch &batch) {
  return formatv("members keep the bundle's batch.size {0} and batch.microbatch_size {1}; give the bundle a "
                 "batch.microbatch_size that all of them can deal out",
                 batch.size->value_or(1), batch.microbatchSize->value_or(1));
}

int FamilyRun::compileMember(const AlsoSettings &also) {
  CompileOptions member = options;
  member.quiet = true;
  for (const std::string &setting : settingsOfStep(main.made->planned.plan.plan))
    member.settings.push_back(setting);
  for (const std::string &setting : also.settings)
    member.settings.push_back(setting);
  auto fromMember = [&](const CompileDiagnostic &finding) {
    if (finding.warning && is_contained(warnings, finding.message))
      return;
    CompileDiagnostic said = finding;
    if (StringRef(said.file).starts_with("--set") || said.file.empty())
      said.file = flagOf(also);
    else
      said.notes.push_back("of the member " + flagOf(also));
    // The member's batch is not of its own making.
    if (!said.warning && StringRef(finding.file).starts_with("--set batch."))
      said.notes.push_back(noteOfBatch(main.made->planned.plan.plan.batch));
    sink(said);
  };
  FamilyPart part{&*main.made};
  if (int code = CompileRun(member, out, fromMember, nullptr, &part).run())
    return code;
  if (!isDistinct(also, *part.made))
    return WrongInput;
  if (!options.quiet)
    printMember(also, *part.made, out);
  members.push_back(std::move(part));
  return Done;
}

int FamilyRun::write() {
  std::vector<format::FamilyMember> listed{
      {"main", {}, uint32_t(ranksOf(*main.made)), main.made->bundle->manifest.planHash}};
  std::vector<MemberBundle> bundles;
  for (auto [also, part] : zip(settings, members)) {
    listed.push_back({also.name, also.settings, uint32_t(ranksOf(*part.made)), part.made->bundle->manifest.planHash});
    bundles.push_back({also.name, &*part.made->bundle});
  }
  format::Blob family{std::string(format::familyFile), format::writeFamilyText(format::makeFamily(std::move(listed)))};
  main.made->bundle->blobs.push_back(family);
  for (MemberBundle &member : bundles)
    member.bundle->blobs.push_back(family);
  if (!writeBundle(*main.made->bundle, options.model, bundleFolder(options), sink, options.withWeights, bundles))
    return WrongInput;
  if (!options.quiet)
    out << "wrote   " << format::printable(bundleFolder(options)) << " with "
        << join(map_range(settings, [](const AlsoSettings &also) { return also.name; }), ", ")
        << llvm::format(" in %.1f s\n", timer.seconds());
  return Done;
}

int FamilyRun::run() {
  if (!readSettings())
    return WrongCommand;
  auto fromMain = [&](const CompileDiagnostic &finding) {
    if (finding.warning)
      warnings.push_back(finding.message);
    sink(finding);
  };
  if (int code = CompileRun(options, out, fromMain, nullptr, &main).run())
    return code;
  for (const AlsoSettings &also : settings)
    if (int code = compileMember(also))
      return code;
  return options.check ? int(Done) : write();
}

int compileFamily(const CompileOptions &options, raw_ostream &out, DiagnosticSink sink) {
  return FamilyRun(options, out, sink).run();
}

} // namespace par

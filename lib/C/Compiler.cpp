// The compiler as a C ABI.
#include "par/C/Compiler.h"
#include "par/Driver/Compile.h"
#include "par/Plugin/Plugin.h"

#include <deque>

using namespace par;

/// A finding, and its form for C, which points into it.
struct StoredDiagnostic {
  CompileDiagnostic finding;
  std::vector<const char *> notes;
  ParFinding c{};
};

struct ParResult {
  int code = Done;
  std::string text, bundle, report;
  std::deque<StoredDiagnostic> findings; // whose elements stay where they are
};

static const char *orNull(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

static void keep(ParResult &result, const CompileDiagnostic &finding) {
  StoredDiagnostic &kept = result.findings.emplace_back();
  kept.finding = finding;
  for (const std::string &note : kept.finding.notes)
    kept.notes.push_back(note.c_str());
  kept.c.warning = finding.warning;
  kept.c.file = orNull(kept.finding.file);
  kept.c.line = finding.line;
  kept.c.column = finding.column;
  kept.c.message = kept.finding.message.c_str();
  kept.c.shown = orNull(kept.finding.shown);
  kept.c.notes = kept.notes.data();
  kept.c.note_count = kept.notes.size();
}

static ParResult *refuse(const std::string &message, int code = WrongCommand) {
  auto result = std::make_unique<ParResult>();
  result->code = code;
  CompileDiagnostic finding;
  finding.message = message;
  keep(*result, finding);
  return result.release();
}

static ParResult *run(const CompileOptions &options) {
  auto result = std::make_unique<ParResult>();
  llvm::raw_string_ostream text(result->text);
  auto sink = [&](const CompileDiagnostic &finding) { keep(*result, finding); };
  bool compiles = !options.printPlan && !options.list;
  result->code = runCompiler(options, text, sink, compiles ? &result->report : nullptr);
  if (result->code == Done && compiles && !options.check)
    result->bundle = bundleFolder(options);
  return result.release();
}

/// Whether the caller's structure has the fields that came after the first version.
static bool hasPlugins(const ParCompileOptions &options) {
  return options.size >= offsetof(ParCompileOptions, plugin_count) + sizeof options.plugin_count;
}

/// The error in the options of a call; null if there is none.
static const char *checkOptions(const ParCompileOptions *options) {
  if (!options)
    return "options is NULL";
  if (options->size < offsetof(ParCompileOptions, plugins))
    return "options.size is smaller than that of any version of ParCompileOptions";
  if ((options->plan_count && !options->plans) || (options->setting_count && !options->settings) ||
      (hasPlugins(*options) && options->plugin_count && !options->plugins))
    return "options counts plans, settings or plugins that it does not hold";
  if (options->flags & ~unsigned(PAR_CHECK | PAR_CHECK_PHASES | PAR_WITH_WEIGHTS))
    return "options.flags has a flag that this version does not know";
  return nullptr;
}

static CompileOptions readOptions(const ParCompileOptions &given) {
  CompileOptions options;
  options.model = given.model ? given.model : "";
  options.plans.assign(given.plans, given.plans + given.plan_count);
  options.settings.assign(given.settings, given.settings + given.setting_count);
  options.output = given.output ? given.output : "";
  options.check = given.flags & PAR_CHECK;
  options.checkPhases = given.flags & PAR_CHECK_PHASES;
  options.withWeights = given.flags & PAR_WITH_WEIGHTS;
  return options;
}

/// Runs the compiler with the plugins that the caller names.
static ParResult *runWithPlugins(const ParCompileOptions &given, CompileOptions options) {
  for (size_t i = 0; hasPlugins(given) && i < given.plugin_count; ++i) {
    llvm::Expected<std::shared_ptr<const Plugin>> plugin = loadPlugin(given.plugins[i]);
    if (!plugin)
      return refuse(llvm::toString(plugin.takeError()), WrongInput);
    options.plugins.push_back(*plugin);
  }
  return run(options);
}

unsigned par_compiler_abi(void) { return PAR_COMPILER_ABI; }

ParResult *par_compile(const ParCompileOptions *options) {
  if (const char *wrong = checkOptions(options))
    return refuse(wrong);
  if (!options->model || !*options->model)
    return refuse("no model");
  return runWithPlugins(*options, readOptions(*options));
}

ParResult *par_complete_plan(const ParCompileOptions *options) {
  if (const char *wrong = checkOptions(options))
    return refuse(wrong);
  CompileOptions wanted = readOptions(*options);
  wanted.printPlan = true;
  return runWithPlugins(*options, wanted);
}

ParResult *par_fit(const ParCompileOptions *options, const char *gpus) {
  if (const char *wrong = checkOptions(options))
    return refuse(wrong);
  if (!options->model || !*options->model)
    return refuse("no model");
  CompileOptions wanted = readOptions(*options);
  wanted.fit = true;
  wanted.check = true; // no bundle is written
  wanted.gpus = gpus ? gpus : "";
  return runWithPlugins(*options, wanted);
}

ParResult *par_what_if(const ParCompileOptions *options, const char *const *changes, size_t change_count) {
  if (const char *wrong = checkOptions(options))
    return refuse(wrong);
  if (!options->model || !*options->model)
    return refuse("no model");
  if (!changes || !change_count)
    return refuse("no setting that changes");
  CompileOptions wanted = readOptions(*options);
  wanted.check = true; // no bundle is written
  wanted.whatIf.assign(changes, changes + change_count);
  return runWithPlugins(*options, wanted);
}

ParResult *par_list(const char *model, const char *kind) {
  if (!model || !*model)
    return refuse("no model");
  CompileOptions options;
  options.model = model;
  options.list = kind ? kind : "";
  return run(options);
}

int par_result_code(const ParResult *result) { return result->code; }

const char *par_result_text(const ParResult *result) { return result->text.c_str(); }

const char *par_result_report(const ParResult *result) { return orNull(result->report); }

const char *par_result_bundle(const ParResult *result) { return orNull(result->bundle); }

size_t par_result_finding_count(const ParResult *result) { return result->findings.size(); }

const ParFinding *par_result_finding(const ParResult *result, size_t index) {
  return index < result->findings.size() ? &result->findings[index].c : nullptr;
}

void par_result_free(ParResult *result) { delete result; }

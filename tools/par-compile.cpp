// ONNX model and plan to a bundle.
#include "par/Base/HostCores.h"
#include "par/Driver/Compile.h"
#include "par/Plan/Language/Schema.h"
#include "par/Report/PrintDiagnostic.h"
#include "par/Solver/Schedules/Schedules.h"
#include "par/format/Printable.h"
#include "par/format/Process.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Program.h"

#include <cstdlib>

using namespace llvm;
using namespace par;

// clang-format off
static const Flag flags[] = {
    {"-o", Flag::Value, true, "BUNDLE", "the folder to write; default: the model's name + .par"},
    {"-n", Flag::Value, true, "N", "number of ranks, as --set ranks=N"},
    {"--set", Flag::Value, true, "KEY=VALUE", "overrides a key of the plan; any YAML value", true},
    {"--target", Flag::Value, true, "T", "as --set target=T"},
    {"--also", Flag::Value, true, "KEY=VALUE[,...]",
     "also compiles the same step with these keys changed, as a member of the bundle's family", true},
    {"--print-plan", Flag::Nothing, true, "", "prints the plan, each key with where it was said; needs no model"},
    {"--print-schema", Flag::Nothing, true, "", "prints the plan language as JSON Schema"},
    {"--print-keys", Flag::Nothing, true, "", "prints the keys of the plan language as a page (docs/keys.md)"},
    {"-q", Flag::Nothing, true, "", "prints errors only"},
    {"-v", Flag::Nothing, true, "", "prints more"},
    {"--help", Flag::Nothing, true, "", "prints this"},
    {"--version", Flag::Nothing, true, "", "prints the version"},
    {"--color", Flag::Maybe, true, "auto|always|never",
     "colours of errors and warnings; --color is auto: on a terminal, unless NO_COLOR is set"},
    {"--json", Flag::Nothing, true, "", "prints facts of the bundle as JSON (docs/report.md) in place of the summary"},
    {"--list", Flag::Maybe, true, "params|modules|nodes|inputs", "prints the names that a plan can use"},
    {"--check", Flag::Nothing, true, "", "all but writing the bundle: plan, memory bound, proof, prediction"},
    {"--check-phases", Flag::Nothing, true, "", "interprets the program before and after every phase and compares"},
    {"--check-kernels", Flag::Nothing, true, "",
     "runs each generated kernel on random operands and compares with the interpreter"},
    {"--stop-after", Flag::Value, true, "PHASE", "prints the IR after a phase and stops"},
    {"--emit", Flag::Value, true, "PHASE|report|trace|kernels|onnx",
     "prints the IR after a phase, the report as a page, the simulated step as a Perfetto trace, or what each kernel "
     "takes of a GPU; onnx: writes the model to -o FILE.onnx with the plan as multi-device annotations"},
    {"--run-trace", Flag::Value, true, "F",
     "of --emit=trace: a file of par-run --trace, whose steps are put into the same trace, on one clock"},
    {"--open", Flag::Nothing, true, "", "opens the report of the bundle, report.html, with xdg-open"},
    {"--explain", Flag::Value, true, "NAME|collectives|memory|cuts|plan|recompute",
     "prints the rules, shardings, communication and bytes at a name of the model; every communication and what forced "
     "it; what forward keeps for backward; the stages; the plan's keys and who said them; what is recomputed and why"},
    {"--with-weights", Flag::Nothing, true, "", "a copy of the model's weights goes into the bundle, for par-run"},
    {"--threads", Flag::Value, true, "N", "threads of the compiler that run at once; default: one a core"},
    {"--host-code", Flag::Nothing, true, "",
     "compiles the kernels of a bundle for a GPU for this host: for runs on stub libraries"},
    {"--emit-reproducer", Flag::Maybe, true, "FILE",
     "where Par itself fails: keeps the program before that phase in FILE (par-reproducer.mlir), for a report"},
    {"--cache", Flag::Value, true, "DIR",
     "keeps the code of kernels in DIR, for the next plan of the model; default: $PAR_CACHE, else nothing is kept"},
    {"--load-plugin", Flag::Value, true, "FILE", "adds the ops, optimizers and passes of a library (docs/plugins.md)",
     true},
    {"--timing", Flag::Nothing, true, "", "prints the time of every phase"},
    {"--werror", Flag::Nothing, true, "", "a compilation with warnings writes nothing and ends with exit 1"},
    {"--auto", Flag::Nothing, true, "", "fills what the plan leaves open by a search for -n ranks, then compiles it"},
    {"--write-plan", Flag::Value, true, "F",
     "writes the plan that --auto completes, with the reason of each key, or that --onnx-sharding reads, to F"},
    {"--fit", Flag::Nothing, true, "",
     "searches a plan for the devices of --gpus (or -n and --target) and says what it takes; writes nothing"},
    {"--gpus", Flag::Value, true, "NUMBERxHARDWARE", "of --fit: the devices, as 8xh100-sxm"},
    {"--alternatives", Flag::Nothing, true, "", "of --fit and --auto: prints the plans around the best one"},
    {"--what-if", Flag::Value, true, "KEY=VALUE",
     "prints what a key of the plan would change: keys, time, memory, communication and what forces it", true},
    {"--compare", Flag::Nothing, true, "", "prints in what two plans of the model differ: A.yaml B.yaml"},
    {"--onnx-sharding", Flag::Maybe, true, "CONFIGURATION",
     "takes mesh, stages and shardings from the model's multi-device annotations (ONNX IR 11)"},
    {"--check-onnx-devices", Flag::Nothing, true, "",
     "checks the rules of the model's own multi-device annotations (ONNX IR 11), prints each finding and stops"},
};
// clang-format on

/// Positional arguments: plans end in .yaml or .yml, the other one is the model.
static bool splitFiles(const Arguments &arguments, CompileOptions &options) {
  for (const std::string &file : arguments.positional) {
    if (StringRef(file).ends_with(".yaml") || StringRef(file).ends_with(".yml")) {
      options.plans.push_back(file);
      continue;
    }
    if (!options.model.empty()) {
      errs() << "par-compile: error: two models: \"" << options.model << "\" and \"" << file
             << "\"; a plan ends in .yaml\n";
      return false;
    }
    options.model = file;
  }
  return true;
}

/// Sets options by the flags.
static void readFlags(const Arguments &arguments, CompileOptions &options) {
  for (const Arguments::Given &given : arguments.flags) {
    if (given.flag == "--set")
      options.settings.push_back(given.value);
    if (given.flag == "-n" && (arguments.has("--fit") || arguments.has("--auto")))
      (void)StringRef(given.value).getAsInteger(10, options.ranks); // 0, which is refused, where it is no number
    else if (given.flag == "-n")
      options.settings.push_back("ranks=" + given.value);
    if (given.flag == "--target")
      options.settings.push_back("target=" + given.value);
  }
  options.also = arguments.all("--also");
  options.fit = arguments.has("--fit");
  options.searches = arguments.has("--auto");
  options.alternatives = arguments.has("--alternatives");
  options.gpus = arguments.last("--gpus");
  options.writePlan = arguments.last("--write-plan");
  options.whatIf = arguments.all("--what-if");
  options.compare = arguments.has("--compare");
  options.withWeights = arguments.has("--with-weights");
  options.output = arguments.last("-o");
  options.printPlan = arguments.has("--print-plan");
  if (arguments.has("--list"))
    options.list = arguments.last("--list");
  options.stopAfter = arguments.last("--stop-after");
  if (arguments.has("--onnx-sharding"))
    options.onnxSharding = arguments.last("--onnx-sharding");
  options.checkDevices = arguments.has("--check-onnx-devices");
  options.explain = arguments.last("--explain");
  if (std::string emit = arguments.last("--emit"); emit == "trace")
    options.emitTrace = true;
  else if (emit == "report")
    options.emitReport = true;
  else if (emit == "kernels")
    options.emitKernels = true;
  else if (emit == "onnx")
    options.emitOnnx = true;
  else if (!emit.empty())
    options.stopAfter = emit;
  options.runTrace = arguments.last("--run-trace");
  options.open = arguments.has("--open");
  options.check = arguments.has("--check");
  options.checkPhases = arguments.has("--check-phases");
  // $PAR_CHECK_KERNELS: of every bundle that tests compile (ninja check-kernels), whose output stays as it is.
  options.sayCheckedKernels = arguments.has("--check-kernels");
  options.checkKernels = options.sayCheckedKernels || std::getenv("PAR_CHECK_KERNELS");
  options.hostCode = arguments.has("--host-code");
  const char *cache = std::getenv("PAR_CACHE");
  options.cache = arguments.last("--cache", cache ? cache : "");
  options.timing = arguments.has("--timing");
  options.json = arguments.has("--json");
  options.werror = arguments.has("--werror");
  options.quiet = arguments.has("-q");
  options.verbose = arguments.has("-v");
}

/// Loads what --load-plugin names; false after an error.
static bool loadPlugins(const Arguments &arguments, CompileOptions &options) {
  for (const std::string &file : arguments.all("--load-plugin")) {
    Expected<std::shared_ptr<const Plugin>> plugin = loadPlugin(file);
    if (!plugin) {
      errs() << "par-compile: error: " << format::printable(toString(plugin.takeError())) << "\n";
      return false;
    }
    options.plugins.push_back(*plugin);
    options.cache.clear(); // kept code is found by Par's build, and the ops of a plugin may be built again
  }
  return true;
}

/// The command as a shell would take it again.
static std::string commandOf(int argc, char **argv) {
  std::string command = "par-compile";
  for (StringRef word : ArrayRef(argv + 1, argc - 1)) {
    bool plain =
        !word.empty() && llvm::all_of(word, [](char c) { return isAlnum(c) || StringRef("-_./=:,+@").contains(c); });
    std::string text = word.str();
    for (size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4)
      text.replace(at, 1, "'\\''");
    command += plain ? " " + text : " '" + text + "'";
  }
  return command;
}

/// Colours of what is said on standard error; false, after an error, where --color has another value.
static bool setColors(const Arguments &arguments) {
  std::string when = arguments.has("--color") ? arguments.last("--color") : "never";
  if (when.empty())
    when = "auto";
  if (!is_contained({"auto", "always", "never"}, when)) {
    errs() << "par-compile: error: --color takes auto, always or never, found \"" << when << "\"\n";
    return false;
  }
  errs().enable_colors(when == "always" || (when == "auto" && errs().is_displayed() && !std::getenv("NO_COLOR")));
  return true;
}

/// Keeps this process on as many cores as --threads says, so that no more of its threads run at once; false, after an
/// error, where that is no number from 1.
static bool limitThreads(const Arguments &arguments) {
  if (!arguments.has("--threads"))
    return true;
  unsigned most = 0;
  if (StringRef(arguments.last("--threads")).getAsInteger(10, most) || most == 0) {
    errs() << "par-compile: error: --threads takes a number from 1, found \"" << arguments.last("--threads") << "\"\n";
    return false;
  }
  coresOfHost(); // predictions are of all of them
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) // more cores than the set has places for: none is left out
    return true;
  for (unsigned core = 0, kept = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &cores) && ++kept > most)
      CPU_CLR(core, &cores);
  (void)sched_setaffinity(0, sizeof cores, &cores); // fails only where the cores have changed since
  return true;
}

/// Opens the report of the bundle that was written.
static int openReport(const CompileOptions &options) {
  std::string page = par::bundleFolder(options) + "/report.html";
  auto opener = llvm::sys::findProgramByName("xdg-open");
  if (opener && llvm::sys::ExecuteAndWait(*opener, {*opener, page}) == 0)
    return Done;
  errs() << "par-compile: error: --open: xdg-open " << (opener ? "fails" : "is not installed") << "; the report is "
         << page << "\n";
  return WrongInput;
}

static int run(int argc, char **argv, CompileState &compileState) {
  Arguments arguments;
  if (!parseArguments(argc, argv, flags, arguments, errs()))
    return WrongCommand;
  if (arguments.has("--help")) {
    printHelp(outs(), "par-compile MODEL [PLAN...] [-o BUNDLE] [flags]", flags);
    outs() << "\npipeline.schedule of a plan (p stages, m microbatches), or the path of a table:\n";
    for (const Schedule *schedule : getSchedules())
      outs() << "  " << left_justify(schedule->name, 14) << schedule->summary << "\n";
    return Done;
  }
  if (arguments.has("--version")) {
    outs() << "par 0.1, plan language 1\n";
    return Done;
  }
  if (arguments.has("--print-schema")) {
    outs() << formatv("{0:2}\n", par::planSchema());
    return Done;
  }
  if (arguments.has("--print-keys")) {
    outs() << par::planKeysPage();
    return Done;
  }
  CompileOptions options;
  if (!splitFiles(arguments, options) || !setColors(arguments) || !limitThreads(arguments))
    return WrongCommand;
  readFlags(arguments, options);
  if (!loadPlugins(arguments, options))
    return WrongInput;
  compileState.command = commandOf(argc, argv);
  if (arguments.has("--emit-reproducer")) {
    std::string file = arguments.last("--emit-reproducer");
    compileState.reproducerFile = file.empty() ? "par-reproducer.mlir" : file;
  }
  options.compileState = &compileState;
  if (options.model.empty() && !options.printPlan) {
    errs() << "par-compile: error: no model; usage: par-compile MODEL [PLAN...] [-o BUNDLE]\n";
    return WrongCommand;
  }
  int code = runCompiler(options, outs(), [](const CompileDiagnostic &finding) {
    outs().flush(); // in the order in which both were said, also where both go to one file
    printDiagnostic(finding, errs(), "par-compile");
  });
  return code == Done && options.open ? openReport(options) : code;
}

int main(int argc, char **argv) {
  if (format::Status status = format::prepareProcess(); !status) {
    errs() << "par-compile: error: " << status.message() << '\n';
    return WrongInput;
  }
  CompileState compileState;
  catchFaults("par-compile", compileState);
  return endOutput("par-compile", run(argc, argv, compileState));
}

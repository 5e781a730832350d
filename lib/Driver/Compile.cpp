// The flags of par-compile: which go together, and what runs a call.
#include "par/Driver/Compile.h"

#include "CompareRun.h"
#include "CompileFamily.h"
#include "CompileRun.h"
#include "OnnxDevices.h"
#include "SearchRun.h"

#include "par/Compiler/WriteBundle.h"
#include "par/Report/Names.h"
#include "par/format/Printable.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace par {

/// Makes the folder that keeps kernels' code.
static std::error_code openCache(const std::string &folder) {
  if (folder.empty())
    return {};
  if (std::error_code error = sys::fs::create_directories(folder))
    return error;
  if (!sys::fs::is_directory(folder))
    return std::make_error_code(std::errc::not_a_directory);
  return sys::fs::access(folder, sys::fs::AccessMode::Write);
}

namespace {

/// Names of a model, a plan and files are printed: no terminal takes commands from them.
class PrintableStream : public raw_ostream {
public:
  explicit PrintableStream(raw_ostream &out) : out(out) {}
  ~PrintableStream() override { flush(); }

private:
  void write_impl(const char *data, size_t size) override {
    out << format::printable(std::string(data, size), "\n\t");
    out.flush();
    written += size;
  }
  uint64_t current_pos() const override { return written; }

  raw_ostream &out;
  uint64_t written = 0;
};

} // namespace

using GivenFlag = std::pair<const char *, bool>;

/// The flag that prints something of one bundle, or the one `more`, where it is given; null: none is.
static const char *printingFlag(const CompileOptions &options, GivenFlag more) {
  const GivenFlag flags[] = {{"--list", options.list.has_value()},
                             {"--print-plan", options.printPlan},
                             {"--explain", !options.explain.empty()},
                             {"--stop-after", !options.stopAfter.empty()},
                             {"--emit=kernels", options.emitKernels},
                             {"--emit=report", options.emitReport},
                             {"--emit=trace", options.emitTrace},
                             {"--emit=onnx", options.emitOnnx},
                             {"--what-if", !options.whatIf.empty()},
                             {"--compare", options.compare},
                             more};
  for (auto [flag, given] : flags)
    if (given)
      return flag;
  return nullptr;
}

/// `printingFlag` but for --what-if and --compare.
static const char *besideComparison(const CompileOptions &options, GivenFlag more) {
  CompileOptions others = options;
  others.whatIf.clear();
  others.compare = false;
  return printingFlag(others, more);
}

/// The flag that prints something else than the facts where they are asked for as JSON; null: none does.
static const char *besideJson(const CompileOptions &options) {
  return options.json ? besideComparison(options, {"--timing", options.timing}) : nullptr;
}

/// The flag that says something of one bundle where several are compiled; null: none does.
static const char *besideFamily(const CompileOptions &options) {
  return options.also.empty() ? nullptr : printingFlag(options, {"--json", options.json});
}

/// The flag with which no bundle is written whose report could be opened; null: one is.
static const char *besideOpen(const CompileOptions &options) {
  return options.open ? printingFlag(options, {"--check", options.check}) : nullptr;
}

/// Says of which plugin a pass runs before a phase that does not exist, or before Import; empty: of none.
static std::string checkPlugins(const Plugins &plugins) {
  for (const auto &plugin : plugins)
    for (const Plugin::Before &before : plugin->passes)
      if (!is_contained(phaseNames().drop_front(), before.phase))
        return "plugin \"" + plugin->file + "\" has passes before \"" + before.phase + "\", expected one of " +
               join(phaseNames().drop_front(), ", ");
  return "";
}

/// The message of a call whose flags are wrong; empty: they are not.
static std::string checkFlags(const CompileOptions &options) {
  if (!options.stopAfter.empty() && !is_contained(phaseNames(), options.stopAfter))
    return "--stop-after takes one of " + join(phaseNames(), ", ") + ", found \"" + options.stopAfter + "\"";
  if (options.list && !listNames(NameTable(), *options.list))
    return "--list takes params, modules, nodes or inputs, found \"" + *options.list + "\"";
  bool more = !options.plans.empty() || options.json || printingFlag(options, {"--open", options.open}) ||
              options.fit || options.searches || options.check || !options.output.empty() ||
              !options.settings.empty() || !options.also.empty() || options.onnxSharding || options.withWeights;
  if (options.checkDevices && more)
    return "--check-onnx-devices reads only the model and prints what it finds; leave out plans and other flags";
  if (const char *flag = besideJson(options))
    return std::string("--json prints all facts as one object; leave out ") + flag + ", which prints another text";
  if (const char *flag = besideFamily(options))
    return std::string("--also compiles bundles of one family; leave out ") + flag + ", which is about one bundle";
  if (const char *flag = besideOpen(options))
    return std::string("--open takes a bundle that is written; leave out ") + flag;
  if (!options.explain.empty() && options.emits())
    return "--explain and --emit each print one text; leave out one of them";
  if (!options.runTrace.empty() && !options.emitTrace)
    return "--run-trace puts a run into the trace of --emit=trace; add that";
  if (std::string wrong = checkSearchFlags(options); !wrong.empty())
    return wrong;
  if (std::string wrong = checkDeviceFlags(options); !wrong.empty())
    return wrong;
  if (std::string wrong = checkCompareFlags(options); !wrong.empty())
    return wrong;
  bool compares = options.compare || !options.whatIf.empty();
  if (const char *flag = compares ? besideComparison(options, {"--open", options.open}) : nullptr)
    return std::string("--what-if and --compare print one difference and write nothing; leave out ") + flag;
  if (std::string wrong = checkPlugins(options.plugins); !wrong.empty())
    return wrong;
  if (const char *flag = options.fit ? printingFlag(options, {"--open", options.open}) : nullptr)
    return std::string("--fit says what it finds and writes nothing; leave out ") + flag;
  if (std::error_code error = openCache(options.cache))
    return "cannot keep the code of kernels in \"" + options.cache + "\" (--cache or PAR_CACHE): " + error.message();
  return "";
}

/// Runs a call that is no search any more: `search` has completed its plan, or there was none.
static int runFound(const CompileOptions &options, raw_ostream &out, DiagnosticSink sink, std::string *report,
                    std::optional<SearchFacts> search) {
  if (options.compare || !options.whatIf.empty())
    return comparePlans(options, out, sink, report);
  if (!options.also.empty())
    return compileFamily(options, out, sink);
  BesideRun beside{std::move(search)};
  if (!options.runTrace.empty()) {
    Expected<RunTrace> trace = readRunTrace(options.runTrace);
    if (!trace) {
      CompileDiagnostic finding;
      finding.message = "--run-trace: " + toString(trace.takeError());
      sink(finding);
      return WrongInput;
    }
    beside.trace = std::move(*trace);
  }
  return CompileRun(options, out, sink, report, nullptr, std::move(beside)).run();
}

static int runCall(const CompileOptions &options, raw_ostream &out, DiagnosticSink sink, std::string *report) {
  if (options.checkDevices)
    return checkOnnxDevices(options, out, sink);
  if (options.fit)
    return fitModel(options, out, sink, report);
  if (!options.searches)
    return runFound(options, out, sink, report, std::nullopt);
  FoundPlan found;
  if (int code = completeBySearch(options, out, sink, found))
    return code;
  out.flush();
  CompileOptions completed = options;
  completed.settings.insert(completed.settings.end(), found.settings.begin(), found.settings.end());
  return runFound(completed, out, sink, report, std::move(found.facts));
}

int runCompiler(const CompileOptions &options, raw_ostream &out, DiagnosticSink sink, std::string *report) {
  CompileDiagnostic wrong;
  wrong.message = checkFlags(options);
  if (!wrong.message.empty()) {
    sink(wrong);
    return WrongCommand;
  }
  PrintableStream printable(out);
  std::string json;
  int code = runCall(options, printable, sink, options.json ? &json : report);
  printable << json;
  return code;
}

std::string bundleFolder(const CompileOptions &options) {
  return options.output.empty() ? bundleFolder(options.model) : options.output;
}

} // namespace par

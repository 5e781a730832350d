// The text form of the stage_cut problem.
#include "par/Solver/Cut/StageCut.h"
#include "llvm/ADT/StringMap.h"

using namespace par;
using llvm::Error;
using llvm::Twine;

/// Takes the number of a word that names a time; false for other words.
static bool parseWork(ProblemText &text, llvm::StringRef key, CutWork &work) {
  int64_t *place = key == "forward"    ? &work.forward
                   : key == "backward" ? &work.backward
                   : key == "gradient" ? &work.gradient
                   : key == "update"   ? &work.update
                                       : nullptr;
  if (place)
    *place = text.integer();
  return place;
}

static CutNode parseNode(ProblemText &text) {
  CutNode node;
  node.name = text.word().str();
  bool hasBackward = false;
  while (!text.atEnd()) {
    llvm::StringRef key = text.word();
    hasBackward |= key == "backward";
    if (parseWork(text, key, node.work))
      continue;
    if (key == "weights")
      node.weights = text.integer();
    else if (key == "saved")
      node.saved = text.integer();
    else
      text.fail("unknown word '" + key + "' of a node");
  }
  if (!hasBackward)
    node.work.backward = 2 * node.work.forward;
  return node;
}

using NodeNames = llvm::StringMap<unsigned>;

static unsigned parseName(ProblemText &text, const NodeNames &nodes) {
  llvm::StringRef name = text.word();
  auto found = nodes.find(name);
  if (found != nodes.end())
    return found->second;
  text.fail("no node '" + name + "' is defined above");
  return 0;
}

static CutValue parseValue(ProblemText &text, const NodeNames &nodes) {
  CutValue value;
  value.name = text.word().str();
  while (!text.atEnd()) {
    llvm::StringRef key = text.word();
    if (key == "bytes")
      value.bytes = text.integer();
    else if (key == "held")
      value.held = text.integer();
    else if (key == "from")
      value.producer = parseName(text, nodes);
    else if (key == "to")
      while (!text.atEnd())
        value.users.push_back(parseName(text, nodes));
    else
      text.fail("unknown word '" + key + "' of a value");
  }
  return value;
}

static CutBond parseBond(ProblemText &text, const NodeNames &nodes) {
  CutBond bond{parseName(text, nodes), parseName(text, nodes), {}};
  while (!text.atEnd())
    if (llvm::StringRef key = text.word(); !parseWork(text, key, bond.less))
      text.fail("unknown word '" + key + "' of a bond");
  return bond;
}

static void parseLink(ProblemText &text, StageCutProblem &problem) {
  std::optional<int64_t> into = text.accept("into") ? std::optional(text.integer()) : std::nullopt;
  if (into && *into >= int64_t(problem.stages)) {
    text.fail("a link into stage " + Twine(*into) + " of " + Twine(problem.stages));
    return;
  }
  if (into && problem.into.empty())
    problem.into.assign(problem.stages, problem.link);
  CutLink &link = into ? problem.into[*into] : problem.link;
  link.latency = text.accept("latency") ? text.integer() : 0;
  link.bandwidth = text.accept("bandwidth") ? text.integer() : 0;
}

/// Nodes, and what names them.
static void parsePart(ProblemText &text, llvm::StringRef key, StageCutProblem &problem, NodeNames &index) {
  if (key == "node") {
    problem.nodes.push_back(parseNode(text));
    if (!index.try_emplace(problem.nodes.back().name, problem.nodes.size() - 1).second)
      text.fail("a second node '" + problem.nodes.back().name + "'");
  } else if (key == "value" || key == "weight") {
    problem.values.push_back(parseValue(text, index));
    if ((key == "value") != problem.values.back().producer.has_value())
      text.fail("a value comes from a node, a weight from none");
  } else if (key == "bond") {
    problem.bonds.push_back(parseBond(text, index));
  } else {
    text.fail("unknown statement '" + key + "'");
  }
}

llvm::Expected<StageCutProblem> StageCutProblem::parse(ProblemText &text) {
  StageCutProblem problem;
  NodeNames index;
  while (text.next()) {
    llvm::StringRef key = text.word();
    if (key == "schedule")
      problem.schedule = text.word().str();
    else if (key == "stages")
      problem.stages = text.integer();
    else if (key == "devices")
      problem.devices = text.integer();
    else if (key == "microbatches")
      problem.microbatches = text.integer();
    else if (key == "in_flight")
      problem.inFlight = text.integers();
    else if (key == "limit")
      problem.limit = text.integers();
    else if (key == "width")
      problem.width = text.integers();
    else if (key == "link")
      parseLink(text, problem);
    else if (key == "blocking")
      problem.blocking = true;
    else if (key == "max_downsets")
      problem.maxDownsets = text.integer();
    else
      parsePart(text, key, problem, index);
  }
  if (Error error = text.takeError())
    return error;
  return problem;
}

static std::string textOf(const CutWork &work) {
  std::string text;
  llvm::raw_string_ostream(text) << " forward " << work.forward << " backward " << work.backward << " gradient "
                                 << work.gradient << " update " << work.update;
  return text;
}

std::string StageCutProblem::toText() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "problem stage_cut\nschedule " << schedule << "\nstages " << stages << "\ndevices " << numDevices()
     << "\nmicrobatches " << microbatches << '\n';
  os << statementOf("in_flight", inFlight) << statementOf("limit", limit) << statementOf("width", width);
  os << "link latency " << link.latency << " bandwidth " << link.bandwidth << '\n';
  for (auto [stage, own] : llvm::enumerate(into))
    os << "link into " << stage << " latency " << own.latency << " bandwidth " << own.bandwidth << '\n';
  os << (blocking ? "blocking\n" : "") << "max_downsets " << maxDownsets << '\n';
  for (const CutNode &node : nodes)
    os << "node " << node.name << textOf(node.work) << " weights " << node.weights << " saved " << node.saved << '\n';
  for (const CutBond &bond : bonds)
    os << "bond " << nodes[bond.first].name << ' ' << nodes[bond.second].name << textOf(bond.less) << '\n';
  for (const CutValue &value : values) {
    os << (value.producer ? "value " : "weight ") << value.name << " bytes " << value.bytes << " held " << value.held;
    if (value.producer)
      os << " from " << nodes[*value.producer].name;
    os << " to";
    for (unsigned user : value.users)
      os << ' ' << nodes[user].name;
    os << '\n';
  }
  return text;
}

std::string StageCut::toText(const StageCutProblem &problem) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (unsigned stage = 0; stage < stageTime.size(); ++stage) {
    os << "stage " << stage << " time " << stageTime[stage] << " memory " << memory[stage] << ':';
    for (auto [node, of] : llvm::enumerate(stageOf))
      if (of == stage)
        os << ' ' << problem.nodes[node].name;
    os << '\n';
  }
  os << "transfers " << transfers << " ns\nstep " << step << " ns, " << (exact ? "optimal" : "not proved optimal")
     << ", lower bound " << lowerBound << " ns\n";
  return text;
}

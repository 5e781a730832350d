// A manifest from manifest.json.
#include "Check.h"
#include "Json.h"

using namespace par::format;

static std::string readHash(const Node &node) {
  const std::string &hash = node.text();
  if (hash.size() != 64 || hash.find_first_not_of("0123456789abcdef") != std::string::npos)
    node.fail("'" + hash + "' is not a SHA-256 in 64 lower-case hex digits");
  return hash;
}

static File readFile(const Node &node) {
  node.only({"name", "size", "sha256"});
  return {node.at("name").text(), uint64_t(node.at("size").integer()), readHash(node.at("sha256"))};
}

static void readMesh(const Node &root, Manifest &manifest) {
  for (const Node &node : root.at("mesh").list()) {
    std::vector<Node> parts = node.list();
    if (parts.size() != 2)
      return node.fail("an axis is [name, size]");
    manifest.mesh.push_back({parts[0].name(), uint32_t(parts[1].integer(1, 1 << 24))});
  }
  manifest.roles = uint32_t(root.at("roles").integer(1, 1 << 20));
  for (const Node &node : root.at("ranks").list()) {
    node.only({"role", "at"});
    manifest.ranks.push_back({node.at("role").index(), node.at("at").indices()});
  }
  for (const Node &node : root.at("communicators").list()) {
    node.only({"name", "groups"});
    RankGroups::Lists groups;
    for (const Node &group : node.at("groups").list())
      groups.push_back(group.indices());
    manifest.communicators.push_back({node.at("name").name(), std::move(groups)});
  }
}

static std::vector<Layout> readLayouts(const Node &list) {
  std::vector<Layout> layouts;
  for (const Node &node : list.list()) {
    node.only({"shape", "local", "parts"});
    Rectangles::List parts;
    for (const Node &part : node.at("parts").list()) {
      part.only({"start", "size", "ranks"});
      parts.push_back({part.at("start").integers(), part.at("size").integers(), part.at("ranks").indices()});
    }
    layouts.push_back({node.at("shape").integers(), node.at("local").integers(), std::move(parts)});
  }
  return layouts;
}

static Layout layoutAt(const Node &node, const std::vector<Layout> &layouts) {
  uint32_t i = node.index();
  if (i < layouts.size())
    return layouts[i];
  node.fail("no layout " + std::to_string(i) + ", there are " + std::to_string(layouts.size()));
  return {};
}

static Source readSource(const Node &node) {
  return {node.at("file").text(), uint64_t(node.at("offset").integer()), uint64_t(node.at("length").integer()),
          node.at("type").word<DType>("type")};
}

static Tensor readTensor(const Node &node, const std::vector<Layout> &layouts) {
  node.only(
      {"name", "kind", "of", "type", "stored", "layout", "init", "source", "value", "aliases", "transposed", "copies"});
  Tensor tensor;
  tensor.name = node.at("name").text();
  tensor.kind = node.at("kind").word<TensorKind>("kind");
  if (node.has("of"))
    tensor.of = node.at("of").text();
  tensor.type = node.at("type").word<DType>("type");
  tensor.stored = node.at("stored").integers();
  tensor.layout = layoutAt(node.at("layout"), layouts);
  std::vector<Node> init = node.at("init").list();
  if (init.size() != 3)
    node.fail("init is [rule, a, b]");
  else
    tensor.init = {init[0].word<InitRule::Kind>("rule"), init[1].number(), init[2].number()};
  if (node.has("source")) {
    node.at("source").only({"file", "offset", "length", "type"});
    tensor.source = readSource(node.at("source"));
  }
  if (node.has("copies"))
    for (const Node &copy : node.at("copies").list()) {
      copy.only({"file", "offset", "length", "type", "transposed"});
      tensor.copies.push_back(readSource(copy));
      tensor.copies.back().transposed = copy.at("transposed").boolean();
    }
  if (node.has("value"))
    tensor.value = uint64_t(node.at("value").integer());
  if (node.has("aliases"))
    for (const Node &alias : node.at("aliases").list())
      tensor.aliases.push_back(alias.text());
  if (node.has("transposed"))
    for (const Node &name : node.at("transposed").list())
      tensor.transposed.push_back(name.text());
  return tensor;
}

static Limits runAt(const Node &node, uint64_t count, int64_t limit) {
  Limits run{count, limit, node.has("from_end") && node.at("from_end").boolean()};
  if (node.has("ignored"))
    run.ignored = node.at("ignored").integer(INT64_MIN);
  return run;
}

/// Up to 1.9 there was one limit for all, or one for each index of a dim.
static std::vector<Limits> limitsBefore(const Node &node) {
  std::vector<Limits> runs;
  if (!node.has("limits")) {
    int64_t limit = node.at("limit").integer();
    if (limit > 0)
      runs.push_back(runAt(node, 1, limit));
    return runs;
  }
  std::vector<int64_t> shape = node.at("shape").integers(), limits = node.at("limits").integers();
  int64_t dim = node.at("limit_dim").integer();
  if (dim < 1 || uint64_t(dim) >= shape.size() || int64_t(limits.size()) != shape[size_t(dim)]) {
    node.fail(std::to_string(limits.size()) + " limits along dim " + std::to_string(dim));
    return runs;
  }
  uint64_t inner = 1;
  for (size_t i = size_t(dim) + 1; i < shape.size(); ++i)
    inner *= uint64_t(shape[i]);
  for (int64_t limit : limits)
    runs.push_back(runAt(node, inner, limit));
  return runs;
}

static std::vector<Limits> limitsAt(const Node &node) {
  if (node.has("limit"))
    return limitsBefore(node);
  std::vector<Limits> runs;
  if (node.has("limits"))
    for (const Node &run : node.at("limits").list()) {
      run.only({"count", "limit", "from_end", "ignored"});
      runs.push_back(runAt(run, uint64_t(run.at("count").integer(1)), run.at("limit").integer()));
    }
  return runs;
}

static LrSchedule readRate(const Node &lr) {
  LrSchedule rate{lr.at("decay").word<LrSchedule::Decay>("decay"), lr.at("peak").number(), lr.at("floor").number(),
                  uint64_t(lr.at("warmup").integer()), uint64_t(lr.at("steps").integer())};
  if (rate.decay == LrSchedule::Step) {
    lr.only({"decay", "peak", "floor", "warmup", "steps", "gamma", "step_size", "milestones"});
    rate.gamma = lr.at("gamma").number();
    rate.stepSize = uint64_t(lr.at("step_size").integer());
    for (int64_t step : lr.at("milestones").integers())
      rate.milestones.push_back(uint64_t(step));
  } else if (rate.decay == LrSchedule::OneCycle) {
    lr.only({"decay", "peak", "floor", "warmup", "steps", "linear", "phases"});
    rate.isLinear = lr.at("linear").boolean();
    for (const Node &phase : lr.at("phases").list())
      if (std::vector<Node> parts = phase.list(); parts.size() == 3)
        rate.phases.push_back({parts[0].number(), parts[1].number(), parts[2].number()});
      else
        phase.fail("a phase is [end, from, to]");
    if (rate.phases.empty())
      lr.at("phases").fail("a cycle has phases");
  } else {
    lr.only({"decay", "peak", "floor", "warmup", "steps"});
  }
  return rate;
}

static void readInterface(const Node &root, Manifest &manifest, const std::vector<Layout> &layouts) {
  for (const Node &node : root.at("inputs").list()) {
    node.only({"name", "type", "shape", "microbatched", "layout", "more", "limit", "limit_dim", "limits", "from_end",
               "ignored"});
    manifest.inputs.push_back({node.at("name").text(), node.at("type").word<DType>("type"), node.at("shape").integers(),
                               node.at("microbatched").boolean(), layoutAt(node.at("layout"), layouts),
                               limitsAt(node)});
    if (node.has("more"))
      for (const Node &layout : node.at("more").list())
        manifest.inputs.back().more.push_back(layoutAt(layout, layouts));
  }
  for (const Node &node : root.at("outputs").list()) {
    node.only({"name", "type", "shape", "metric", "ranks", "microbatched", "layout", "batch_dim", "mean"});
    manifest.outputs.push_back({node.at("name").text(),
                                node.at("type").word<DType>("type"),
                                node.at("shape").integers(),
                                node.at("metric").boolean(),
                                node.at("ranks").indices(),
                                false,
                                {}});
    if (node.has("mean"))
      manifest.outputs.back().mean = node.at("mean").text();
    if (!node.has("layout"))
      continue;
    manifest.outputs.back().microbatched = node.at("microbatched").boolean();
    manifest.outputs.back().layout = layoutAt(node.at("layout"), layouts);
    if (node.has("batch_dim"))
      manifest.outputs.back().batchDim = node.at("batch_dim").integer();
  }
  for (const Node &node : root.at("hypers").list()) {
    std::vector<Node> parts = node.list();
    if (parts.size() != 2)
      return node.fail("a hyperparameter is [name, default]");
    manifest.hypers.push_back({parts[0].text(), parts[1].number()});
  }
  if (root.has("lr")) {
    manifest.lr = readRate(root.at("lr"));
  }
  if (root.has("text")) {
    Node text = root.at("text");
    text.only({"tokens", "labels", "mode"});
    manifest.text =
        TextFeed{text.at("tokens").text(), text.at("labels").text(), text.at("mode").word<TextFeed::Mode>("mode")};
  }
}

static void readNumbers(const Node &root, Manifest &manifest) {
  manifest.microbatches = uint64_t(root.at("microbatches").integer(1, INT32_MAX));
  if (root.has("calls"))
    manifest.calls = uint64_t(root.at("calls").integer(1, 4096));
  manifest.batch = uint64_t(root.at("batch").integer(1));
  manifest.seed = uint64_t(root.at("seed").integer());
  manifest.threads = uint32_t(root.at("threads").integer(1, 4096));
  if (root.has("device"))
    manifest.device = root.at("device").text();
  for (const Node &need : root.at("needs").list())
    manifest.needs.push_back(need.text());
  for (const Node &node : root.at("peak").list()) {
    node.only({"state", "pool", "reserve", "host"});
    manifest.peak.push_back({uint64_t(node.at("state").integer()), uint64_t(node.at("pool").integer()),
                             uint64_t(node.at("reserve").integer()),
                             node.has("host") ? uint64_t(node.at("host").integer()) : 0});
  }
  manifest.predictedNs = uint64_t(root.at("predicted_ns").integer());
}

static void read(const Node &root, Manifest &manifest) {
  manifest.minor = readVersion(root.at("par_manifest"));
  if (root.failed())
    return;
  root.only({"par_manifest", "bundle", "plan",          "model",        "data",        "files",  "mesh",
             "roles",        "ranks",  "communicators", "layouts",      "tensors",     "inputs", "outputs",
             "hypers",       "lr",     "text",          "microbatches", "calls",       "batch",  "seed",
             "threads",      "device", "needs",         "peak",         "predicted_ns"});
  manifest.bundleHash = root.at("bundle").text();
  manifest.planHash = root.at("plan").text();
  if (manifest.planHash.find_first_not_of("0123456789abcdef") != std::string::npos)
    root.at("plan").fail("'" + manifest.planHash + "' is no hash in lower-case hex digits");
  File model = readFile(root.at("model"));
  manifest.model = {model.name, model.size, model.sha256};
  if (root.has("data"))
    for (const Node &file : root.at("data").list())
      manifest.data.push_back(readFile(file));
  for (const Node &file : root.at("files").list())
    manifest.files.push_back(readFile(file));
  readMesh(root, manifest);
  std::vector<Layout> layouts = readLayouts(root.at("layouts"));
  for (const Node &node : root.at("tensors").list())
    manifest.tensors.push_back(readTensor(node, layouts));
  readInterface(root, manifest, layouts);
  readNumbers(root, manifest);
}

Expected<Manifest> par::format::parseManifest(std::string_view text, const std::string &where) {
  Expected<Json> json = parseJson(text, where);
  if (!json)
    return json.error();
  Document document{where, std::move(*json), std::nullopt};
  Manifest manifest;
  read(Node(document), manifest);
  if (document.error)
    return *document.error;
  if (Status sound = checkManifest(manifest, where); !sound)
    return sound.error();
  return manifest;
}

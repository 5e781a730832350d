// Manifest.json from a manifest.
#include "Json.h"

#include <algorithm>

using namespace par::format;

namespace {
/// Equal layouts are written once: a thousand tensors share a handful of them.
class Layouts {
public:
  size_t add(const Layout &layout) {
    auto it = std::find(table.begin(), table.end(), layout);
    if (it == table.end())
      return table.push_back(layout), table.size() - 1;
    return size_t(it - table.begin());
  }
  const std::vector<Layout> &all() const { return table; }

private:
  std::vector<Layout> table;
};
} // namespace

static void writeFile(Writer &w, Word name, uint64_t size, Word sha) {
  w.raw("{").key("name").text(name).key("size").number(int64_t(size)).key("sha256").text(sha).raw("}");
}

static void writeFiles(Writer &w, const char *key, const std::vector<File> &files) {
  w.raw("\n").key(key).raw("[");
  for (const File &file : files) {
    w.raw("\n").comma();
    writeFile(w, file.name, file.size, file.sha256);
  }
  w.raw("]");
}

static void writeLayouts(Writer &w, const std::vector<Layout> &layouts) {
  w.raw("\n").key("layouts").raw("[");
  for (const Layout &layout : layouts) {
    w.raw("\n").comma().raw("{").key("shape").numbers(layout.shape).key("local").numbers(layout.local);
    w.key("parts").raw("[");
    for (const Rectangle &part : layout.parts) {
      w.comma().raw("{").key("start").numbers(part.start).key("size").numbers(part.size);
      w.key("ranks").numbers(part.ranks).raw("}");
    }
    w.raw("]}");
  }
  w.raw("]");
}

/// All but the bracket at its end.
static void writeSource(Writer &w, const Source &source) {
  w.raw("{").key("file").text(source.file).key("offset").number(int64_t(source.offset));
  w.key("length").number(int64_t(source.length)).key("type").text(nameOf(source.type));
}

static void writeTensor(Writer &w, const Tensor &tensor, size_t layout) {
  w.raw("\n").comma().raw("{").key("name").text(tensor.name).key("kind").text(nameOf(tensor.kind));
  if (!tensor.of.empty())
    w.key("of").text(tensor.of);
  w.key("type").text(nameOf(tensor.type)).key("stored").numbers(tensor.stored);
  w.key("layout").number(int64_t(layout));
  w.key("init").raw("[").text(nameOf(tensor.init.kind)).raw(",").real(tensor.init.a).raw(",");
  w.real(tensor.init.b).raw("]");
  if (tensor.source) {
    writeSource(w.key("source"), *tensor.source);
    w.raw("}");
  }
  if (!tensor.copies.empty()) {
    w.key("copies").raw("[");
    for (const Source &copy : tensor.copies) {
      writeSource(w.comma(), copy);
      w.key("transposed").boolean(copy.transposed).raw("}");
    }
    w.raw("]");
  }
  if (tensor.value)
    w.key("value").number(int64_t(*tensor.value));
  if (!tensor.aliases.empty())
    w.key("aliases").texts(tensor.aliases);
  if (!tensor.transposed.empty())
    w.key("transposed").texts(tensor.transposed);
  w.raw("}");
}

static void writeMesh(Writer &w, const Manifest &manifest) {
  w.raw("\n").key("mesh").raw("[");
  for (const MeshAxis &axis : manifest.mesh)
    w.comma().raw("[").text(axis.name).raw(",").number(axis.size).raw("]");
  w.raw("]\n").key("roles").number(manifest.roles);
  w.raw("\n").key("ranks").raw("[");
  for (const Rank &rank : manifest.ranks)
    w.raw("\n").comma().raw("{").key("role").number(rank.role).key("at").numbers(rank.coordinate).raw("}");
  w.raw("]\n").key("communicators").raw("[");
  for (const Communicator &communicator : manifest.communicators) {
    w.raw("\n").comma().raw("{").key("name").text(communicator.name).key("groups").raw("[");
    for (const std::vector<uint32_t> &group : communicator.groups)
      w.comma().numbers(group);
    w.raw("]}");
  }
  w.raw("]");
}

static void writeLimits(Writer &w, const std::vector<Limits> &limits) {
  if (limits.empty())
    return;
  w.key("limits").raw("[");
  for (const Limits &run : limits) {
    w.comma().raw("{").key("count").number(int64_t(run.count)).key("limit").number(run.limit);
    if (run.fromEnd)
      w.key("from_end").boolean(true);
    if (run.ignored)
      w.key("ignored").number(*run.ignored);
    w.raw("}");
  }
  w.raw("]");
}

static void writeRate(Writer &w, const LrSchedule &lr) {
  w.raw("\n").key("lr").raw("{").key("decay").text(nameOf(lr.decay)).key("peak").real(lr.peak);
  w.key("floor").real(lr.floor).key("warmup").number(int64_t(lr.warmup)).key("steps").number(int64_t(lr.steps));
  if (lr.decay == LrSchedule::Step) {
    w.key("gamma").real(lr.gamma).key("step_size").number(int64_t(lr.stepSize)).key("milestones");
    w.numbers(std::vector<int64_t>(lr.milestones.begin(), lr.milestones.end()));
  } else if (lr.decay == LrSchedule::OneCycle) {
    w.key("linear").boolean(lr.isLinear).key("phases").raw("[");
    for (const LrPhase &phase : lr.phases)
      w.comma().raw("[").real(phase.end).raw(",").real(phase.from).raw(",").real(phase.to).raw("]");
    w.raw("]");
  }
  w.raw("}");
}

static void writeInterface(Writer &w, const Manifest &manifest, const std::vector<std::vector<size_t>> &layouts,
                           const std::vector<size_t> &ofOutputs) {
  w.raw("\n").key("inputs").raw("[");
  for (size_t i = 0; i < manifest.inputs.size(); ++i) {
    const Input &input = manifest.inputs[i];
    w.raw("\n").comma().raw("{").key("name").text(input.name).key("type").text(nameOf(input.type));
    w.key("shape").numbers(input.shape).key("microbatched").boolean(input.microbatched);
    w.key("layout").number(int64_t(layouts[i].front()));
    if (layouts[i].size() > 1)
      w.key("more").numbers(std::vector<int64_t>(layouts[i].begin() + 1, layouts[i].end()));
    writeLimits(w, input.limits);
    w.raw("}");
  }
  w.raw("]\n").key("outputs").raw("[");
  for (size_t i = 0; i < manifest.outputs.size(); ++i) {
    const Output &output = manifest.outputs[i];
    w.raw("\n").comma().raw("{").key("name").text(output.name).key("type").text(nameOf(output.type));
    w.key("shape").numbers(output.shape).key("metric").boolean(output.metric);
    w.key("ranks").numbers(output.ranks);
    if (!output.layout.parts.empty())
      w.key("microbatched").boolean(output.microbatched).key("layout").number(int64_t(ofOutputs[i]));
    if (output.batchDim)
      w.key("batch_dim").number(output.batchDim);
    if (!output.mean.empty())
      w.key("mean").text(output.mean);
    w.raw("}");
  }
  w.raw("]\n").key("hypers").raw("[");
  for (const Hyper &hyper : manifest.hypers)
    w.comma().raw("[").text(hyper.name).raw(",").real(hyper.value).raw("]");
  w.raw("]");
  if (manifest.lr)
    writeRate(w, *manifest.lr);
  if (manifest.text) {
    w.raw("\n").key("text").raw("{").key("tokens").text(manifest.text->tokens);
    w.key("labels").text(manifest.text->labels).key("mode").text(nameOf(manifest.text->mode)).raw("}");
  }
}

static void writeNumbers(Writer &w, const Manifest &manifest) {
  w.raw("\n").key("microbatches").number(int64_t(manifest.microbatches));
  if (manifest.calls > 1)
    w.key("calls").number(int64_t(manifest.calls));
  w.key("batch").number(int64_t(manifest.batch)).key("seed").number(int64_t(manifest.seed));
  w.key("threads").number(manifest.threads).key("device").text(manifest.device);
  w.raw("\n").key("needs").texts(manifest.needs).raw("\n").key("peak").raw("[");
  for (const Peak &peak : manifest.peak) {
    w.comma().raw("{").key("state").number(int64_t(peak.state)).key("pool").number(int64_t(peak.pool));
    w.key("reserve").number(int64_t(peak.reserve));
    if (peak.host)
      w.key("host").number(int64_t(peak.host));
    w.raw("}");
  }
  w.raw("]\n").key("predicted_ns").number(int64_t(manifest.predictedNs));
}

std::string par::format::writeManifest(const Manifest &manifest) {
  Layouts layouts;
  std::vector<size_t> ofTensors, ofOutputs;
  std::vector<std::vector<size_t>> ofInputs;
  for (const Tensor &tensor : manifest.tensors)
    ofTensors.push_back(layouts.add(tensor.layout));
  for (const Input &input : manifest.inputs) {
    ofInputs.push_back({layouts.add(input.layout)});
    for (const Layout &layout : input.more)
      ofInputs.back().push_back(layouts.add(layout));
  }
  for (const Output &output : manifest.outputs)
    ofOutputs.push_back(output.layout.parts.empty() ? 0 : layouts.add(output.layout));

  Writer w;
  w.raw("{").key("par_manifest").numbers(std::vector<int64_t>{formatMajor, formatMinor});
  w.raw("\n").key("bundle").text(manifest.bundleHash).raw("\n").key("plan").text(manifest.planHash);
  w.raw("\n").key("model");
  writeFile(w, manifest.model.name, manifest.model.size, manifest.model.sha256);
  if (!manifest.data.empty())
    writeFiles(w, "data", manifest.data);
  writeFiles(w, "files", manifest.files);
  writeMesh(w, manifest);
  writeLayouts(w, layouts.all());
  w.raw("\n").key("tensors").raw("[");
  for (size_t i = 0; i < manifest.tensors.size(); ++i)
    writeTensor(w, manifest.tensors[i], ofTensors[i]);
  w.raw("]");
  writeInterface(w, manifest, ofInputs, ofOutputs);
  writeNumbers(w, manifest);
  w.raw("}\n");
  return w.take();
}

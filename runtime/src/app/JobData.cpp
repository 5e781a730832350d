#include "JobData.h"

#include "BatchMeans.h"
#include "Decoder.h"
#include "par/messages/Failure.h"

namespace par::core {

static PixelFeeds pixelsOf(const RunOptions &options) {
  PixelFeeds pixels;
  for (const std::string &text : options.normalize)
    if (!readPixels(text, pixels))
      throw Failure::at("par-run", Message::flagBad, "--normalize",
                        "INPUT, or INPUT=MEAN/SPREAD with as many means as spreads, which are above 0, once an input",
                        text)
          .exitsWith(exitUsage);
  return pixels;
}

void openData(Job &job) {
  const RunOptions &options = job.options;
  const format::Manifest &manifest = job.bundle.manifest;
  WindowFeed windows{options.labels, options.stride};
  if (!options.data.empty() || !options.inputs.empty())
    job.dataset = openArrays({options.data, options.inputs, pixelsOf(options)}, manifest);
  else if (!options.text.empty())
    job.dataset = openText(options.text, manifest, windows);
  else if (!options.tokens.empty())
    job.dataset = openTokens(options.tokens, manifest, windows);
  else if (options.bench || options.synthetic)
    job.dataset = makeUpData(manifest, job.seed);
  if (!options.generate.empty())
    shapeOfDecoder(job.bundle, job.name);
  else if (!options.fed && !options.exportOnly && (!options.dryRun || job.dataset))
    checkFed(manifest, job.dataset.get(), job.name);
  if (!options.evalData.empty()) {
    if (isArrayFile(readDataSpec(options.evalData).path) && options.tokens.empty())
      job.evalDataset = openArrays({{options.evalData}, {}, pixelsOf(options)}, manifest);
    else
      job.evalDataset = options.tokens.empty() ? openText(options.evalData, manifest, windows)
                                               : openTokens(options.evalData, manifest, windows);
    checkFed(manifest, job.evalDataset.get(), job.name);
  }
  // A batch of an evaluation may be filled up.
  const format::Output *loss = manifest.findOutput("loss");
  uint64_t fewest = loss && addsUp(*loss) ? 1 : manifest.batch;
  for (const Dataset *dataset : {job.dataset.get(), job.evalDataset.get()})
    if (bool evaluates = options.eval || dataset == job.evalDataset.get();
        dataset && job.rowsOf(dataset) < (evaluates ? fewest : manifest.batch) && !job.predicts())
      throw Failure::at(dataset->place(), Message::tooFewRows, dataset->rows(), manifest.batch);
}

} // namespace par::core

// Every sentence that par-run says when something is wrong, in one table: a test walks it and finds each quoted.
// `{}` stands for a value. How a message is printed: Failure.h.
#pragma once

#include <iterator>
#include <string_view>

namespace par::core {

struct MessageText {
  std::string_view key, text;
};

#define PAR_MESSAGES(M)                                                                                                \
  /* files */                                                                                                          \
  M(cannotOpen, "cannot open: {}")                                                                                     \
  M(cannotWrite, "cannot write: {}")                                                                                   \
  M(badIndex, "is no index of weights: {}")                                                                            \
  M(indexLeaves, "says that \"{}\" is in {}; an index names files beside it")                                          \
  M(indexMissing, "says that \"{}\" is in {}, which is not there")                                                     \
  M(indexWrong, "says that \"{}\" is in {}, which does not hold it")                                                   \
  M(tensorTwice, "holds \"{}\", which {} holds too")                                                                   \
  M(badOffsets, "tensor \"{}\" says bytes [{}, {}) of {}, and its shape needs {}")                                     \
  /* bundle and machine */                                                                                             \
  M(absentBundle, "no such bundle; par-compile -o {} writes one")                                                      \
  M(notABundle, "is not a bundle: it has no manifest.json")                                                            \
  M(isModel, "is a model, not a bundle; compile it first: par-compile {} PLAN.yaml -o {}, then par-run {}")            \
  M(noDevice, "this bundle is for {} and this machine has no {} device; compile it again with --target cpu")           \
  M(unknownDevice, "there is no device \"{}\" in this runtime; it has cpu, sim and cuda")                              \
  M(cudaNoLibrary, "{} cannot be opened: {}: {}")                                                                      \
  M(cudaNoEntry, "{} has no entry point {}; a newer version of {} is needed")                                          \
  M(cudaOldLibrary, "{}: {} is version {}, and {} or later is needed")                                                 \
  M(cudaNoDevice, "{} finds no GPU on this machine")                                                                   \
  M(cudaFailed, "{} failed: {}")                                                                                       \
  M(cudaMemory, "{} bytes are needed and {} of {} are free on {}; --set batch.microbatches or recompute takes less")   \
  M(cudaNoBuiltins, "this runtime was built without nvcc and has no builtin kernels for cuda")                         \
  M(cudaModule, "{} (sm_{}) cannot load these kernels: {}")                                                            \
  M(cudaTooFewDevices, "rank {} is number {} (from 0) on its host, which has {} GPUs")                                 \
  M(cudaStepFailed, "{} failed on the GPU: {}")                                                                        \
  M(cudaRunFailed, "{} failed in this step: {}")                                                                       \
  M(cudaOldGpu, "this bundle is for sm_{} and {} is sm_{}; compile it again for that")                                 \
  M(cudaOtherTag, "{}: tag {} on communicator \"{}\" meets tag {}")                                                    \
  M(ncclFailed, "communicator \"{}\" of rank {} failed, {}: {}")                                                       \
  M(cudaStalled, "rank {} has not moved for {} s; it waits for {}")                                                    \
  M(blasFailed, "call \"{}\": {} failed (cuBLASLt status {})")                                                         \
  M(blasNoAlgorithm, "call \"{}\": cuBLASLt has no algorithm for it within a workspace of {} bytes")                   \
  M(dnnFailed, "{}: {} failed: {}")                                                                                    \
  M(dnnNoEngine, "kernel \"{}\" ({}): {} has no engine for it that gives the same bits each time, computes in f32 "    \
                 "and needs at most {} bytes of workspace: {}; compile it for cpu, or name another cuDNN in "          \
                 "PAR_CUDNN_LIBRARY")                                                                                  \
  M(tuningBroken, "is not a file of chosen algorithms: {}; without it they are chosen again")                          \
  M(tuningRefused, "matmul {}: cuBLASLt {} refuses its algorithm (status {}); without this file one is chosen again")  \
  M(otherDevice, "this bundle is for {}; --device {} runs bundles for cpu")                                            \
  M(missingIsa, "this bundle needs the instruction set {}, which this machine lacks; compile it again on it")          \
  M(unknownNeed, "this bundle needs \"{}\", which this par-run does not know")                                         \
  M(noKernel, "kernel \"{}\" is not in the kernel object: {}")                                                         \
  M(noBuiltin, "kernel \"{}\" asks for the builtin \"{}\", which this runtime does not have")                          \
  M(libraryFailed, "call \"{}\": oneDNN refused {} (status {})")                                                       \
  M(workspaceTooSmall, "call \"{}\" needs a workspace of {} bytes, the bundle allows {}")                              \
  M(noEntry, "this bundle has no entry \"{}\"; it has {}")                                                             \
  M(unsupportedInstruction, "{}: {} is not supported yet")                                                             \
  /* weights */                                                                                                        \
  M(noWeights, "no weights: {} was compiled without them; give --weights FILE, or --init to start from train.init")    \
  M(weightsCompressed, "no weights: those in {} are compressed and cannot be mapped; compile the unpacked file, give " \
                       "--weights FILE, or --init to start from train.init")                                           \
  M(dataMissing, "no weights: {}, the external data of {}, is not there (\"{}\" lies in it); give --weights FILE, or " \
                 "--init")                                                                                             \
  M(dataChanged,                                                                                                       \
    "no weights: {}, the external data of {}, is not what it was when that was compiled ({}); compile it again, "      \
    "or give --weights FILE")                                                                                          \
  M(dataLeaves, "external data \"{}\" of {} is a link out of the model's folder")                                      \
  M(modelMissing, "no weights: {} is neither here nor beside the bundle; give --weights FILE, or --init")              \
  M(modelChanged, "no weights: {} is not the file that was compiled ({}); give --weights FILE, or --init")             \
  M(wrongShape, "\"{}\" is {}, the bundle has {}; of the others {} match{}")                                           \
  M(wrongType, "\"{}\" is {}, the bundle has {}")                                                                      \
  M(unusedStates,                                                                                                      \
    "holds \"{}\", {} {} in all that this bundle's optimizer has not: they are not used, and later saves have none")   \
  M(weightRange, "\"{}\" holds {}, which is beyond the bundle's {}")                                                   \
  M(exportRange, "\"{}\" holds {}, which is beyond the file's {}: nothing is exported; a save keeps it")               \
  M(prefixAmbiguous, "its names are the bundle's in two ways, {} or {}; rename them")                                  \
  M(missingTensor, "holds no \"{}\"; {} of {} tensors are there")                                                      \
  M(tiedDiffer,                                                                                                        \
    "holds other numbers for \"{}\" than for \"{}\", which are one tensor of the bundle; leave one of both out")       \
  M(weightsSeveral, "holds several files of weights, among them {} and {}; name the one that is meant")                \
  M(unknownWeights,                                                                                                    \
    "is no .safetensors, .npz or .pt file and no checkpoint folder; the model's own weights need no --weights")        \
  /* data */                                                                                                           \
  M(inputWithoutData, "input \"{}\" {} gets no data ({}); add it to --data, or bind it in the plan: inputs.{}.value")  \
  M(arrayType, "array \"{}\" is {}; input \"{}\" takes {}{}")                                                          \
  M(arrayShape, "array \"{}\" is {}; input \"{}\" takes {} a sample")                                                  \
  M(arrayMissing, "holds no array \"{}\"; it has {}")                                                                  \
  M(arrayRows, "array \"{}\" has {} rows, \"{}\" has {}")                                                              \
  M(arraysDiffer,                                                                                                      \
    "array \"{}\" holds other numbers than that of {}; input \"{}\" is not cut into rows, so that one holds for all")  \
  M(valueRange, "array \"{}\" holds {} {}; input \"{}\" takes {}{}")                                                   \
  M(valuePads,                                                                                                         \
    "only labels of a loss can be ignored; fill up \"{}\" with an index from 0 to {} and ignore its label; one that "  \
    "is both is filled up in the module, after the loss: labels.masked_fill(labels < 0, 0)")                           \
  M(tooFewRows, "{} rows are fewer than one batch of {}")                                                              \
  M(inputRows, "feeds {} rows to input \"{}\" and {} to \"{}\"")                                                       \
  M(inputOfSeveral, "holds {} arrays: {}; say which one feeds \"{}\": {}:ARRAY")                                       \
  M(pixelsNeedFlag, "pixels of u8 become floats by --normalize {}=MEAN/SPREAD, and by --normalize {} from 0 to 1")     \
  M(pixelsUnlike, "--normalize: input \"{}\" is {}; pixels become floats, and {} numbers are one for each of its "     \
                  "channels, dim 1, or one for all")                                                                   \
  M(tokensType, "holds {}; --tokens takes integers of one dim")                                                        \
  M(tokensUntyped, "says nothing of its integers; --tokens {}:u16 does, or u8, u32, i32, i64")                         \
  M(tokensPart, "{} bytes are no whole number of tokens of {}")                                                        \
  M(unknownData, "data is read from .safetensors, .npy, .npz and .pt files, text by --text, integers by --tokens")     \
  M(textWithoutFeed, "this bundle has no input that takes tokens; {} needs one")                                       \
  M(labelsUnlike, "{} feeds windows of one length, and input \"{}\" is {}, \"{}\" is {}; give --data")                 \
  M(labelsUnknown, "whether labels are the next tokens or the same is not known; say --labels next or --labels same")  \
  M(textVocabulary, "{} {} at {} is outside of the model's {} symbols")                                                \
  M(textTooShort, "{} {} are fewer than one batch of {} windows of {}")                                                \
  M(requestBad, "{} takes {}, not {}")                                                                                 \
  M(promptTooLong, "a prompt of {} tokens and {} new ones do not fit into the cache of {} slots; ask for fewer, or "   \
                   "compile with --set dims.cache={}")                                                                 \
  M(notADecoder, "--generate needs a decoder that par.export_decoder wrote; this bundle lacks {}")                     \
  M(decoderStep, "--generate makes one token a call, and input \"{}\" takes {} of a sequence; compile with --set "     \
                 "dims.seq=1 --set prefill.seq={}")                                                                    \
  M(noData, "no data: give --data FILE or --text FILE (inputs: {})")                                                   \
  /* checkpoints */                                                                                                    \
  M(noCheckpoint, "no complete checkpoint in this folder")                                                             \
  M(checkpointSize, "{} is {} bytes, its manifest says {}")                                                            \
  M(checkpointMissing, "{} is not there")                                                                              \
  M(checkpointOther, "{} is not of this save: its {} is {}, that of index.json is {}")                                 \
  M(checkpointFolder, "index.json is of step {}; a folder that is named by a number holds the save of that step")      \
  M(checkpointArray, "{} holds \"{}\" as {}, index.json has {}")                                                       \
  M(checkpointDamaged, "{} is not as it was written: its checksum is that of other content{}")                         \
  M(checkpointIndex, "index.json: {}")                                                                                 \
  M(saveLocked, "{} writes its saves here; wait for it or end it, or give --save another folder")                      \
  M(saveLockedElsewhere, "{} writes its saves here, or died, which cannot be seen on a file system without locks; if " \
                         "it died, remove {}")                                                                         \
  M(savesHere, "holds saves, the newest of step {}, that this run does not go on from and would replace or delete: "   \
               "--resume auto goes on from it, or give --save another folder")                                         \
  M(noSaveHere, "{} has the name of a save and is none; --save would take its place: move it, or give another folder") \
  M(flagsDiffer, "rank {} was started with {}, rank 0 with {}; all ranks of a job take the same")                      \
  M(checkpointDiffers, "rank {} sees {} here, rank 0 {}; name the folder of one step with --resume")                   \
  M(cannotKeep, "rank {} cannot keep {} bytes of its state in memory: {}; without --restart it needs none")            \
  M(cannotMirror, "rank {} cannot hold {} bytes of the state of rank {}: {}; without --mirror it needs none")          \
  M(otherMember, "is not the member that family.json in {} says: compile the family again")                            \
  M(stateLost, "{}; --save DIR --save-every N keeps states to go back to")                                             \
  M(checkpointCover, "\"{}\": {} of the {} elements that rank {} holds are in no file")                                \
  /* sessions */                                                                                                       \
  M(fedUnknown, "this bundle has no input \"{}\"; its inputs are {}")                                                  \
  M(fedNull, "\"{}\" is fed from address 0; give the address of its first element")                                    \
  M(fedRows, "\"{}\" has {} rows; a call of this bundle takes {}, by the plan's batch")                                \
  M(fedMissing, "no array for {}; feed every input, or bind it in the plan: inputs.NAME.value")                        \
  M(nullArgument, "{} is missing: a null pointer or an empty list")                                                    \
  M(unknownType, "{} is no element type of this interface")                                                            \
  M(sessionFlag, "a session takes no {}: {}")                                                                          \
  M(sessionClosed, "the session did not open: {}")                                                                     \
  M(sessionEnded, "the session has ended, and no call works after that: {}")                                           \
  M(sessionForked, "the session is of process {}, this is {}; open another one here")                                  \
  M(noCallYet, "no entry has run since the session was opened: {} needs the results of one")                           \
  M(noResult, "entry \"{}\" has no result \"{}\"; it has {}")                                                          \
  M(noTensor, "this bundle has no tensor \"{}\" that is saved{}")                                                      \
  M(tensorShape, "\"{}\" is {}; the bundle's is {}")                                                                   \
  M(tensorRoom, "\"{}\" takes {} bytes, not {}")                                                                       \
  M(noSaveFolder, "no folder to save in: name one, or open the session with --save DIR")                               \
  M(seedIsFixed, "the seed is given when a session opens: --set seed={}")                                              \
  M(cannotStartRanks, "cannot start {}: {}")                                                                           \
  M(ranksEnded, "the process of the ranks {}{}")                                                                       \
  M(sessionStopped, "a signal ended the ranks")                                                                        \
  M(callsDiffer, "rank {} calls {}, rank 0 {}; all ranks of a job make the same calls in the same order")              \
  /* the run */                                                                                                        \
  M(lossIsNan, "{} is {} on rank {} ({}): {}")                                                                         \
  M(evalIsNan, "loss is {} in {} of {} batches, first in batch {} of {} samples")                                      \
  M(weightsAreNaN, "the results are NaN where they depend on it: {}")                                                  \
  M(race, "race on rank {} in entry {}: nothing orders two accesses to bytes [{}, {}) of its {} arena")                \
  M(simulationStuck, "ranks wait for each other in entry {}")                                                          \
  M(interleavingsDiffer, "{} of rank {} depends on the order in which the queues of entry {} move")                    \
  M(lossScaleExhausted, "loss scale exhausted: gradients overflow at {} already")                                      \
  M(unknownFlag, "unknown flag \"{}\"{}")                                                                              \
  M(foreignFlag, "unknown flag \"{}\"; par-run has {}")                                                                \
  M(planFlag, "unknown flag \"{}\"; that is in the plan: par-compile MODEL --set {}")                                  \
  M(flagTwice, "{} is given twice, with \"{}\" and \"{}\"; it takes one")                                              \
  M(planKey, "--set {}: a run takes lr, clip and seed, each a number; what else a plan says is compiled in: "          \
             "par-compile MODEL --set {}")                                                                             \
  M(exportMissing, "--export to .onnx needs the model {}, which is neither here nor beside the bundle")                \
  M(exportChanged, "--export to .onnx needs the model that was compiled; {} is another one ({})")                      \
  M(exportDataChanged,                                                                                                 \
    "--export to .onnx needs {}, the external data of {}, as it was compiled ({}); export to .safetensors")            \
  M(exportDataMissing,                                                                                                 \
    "--export to .onnx needs {} too, where \"{}\" lies, and it is not there; export to .safetensors")                  \
  M(exportOnModel, "is the model that was compiled, or its weights; give --export another name or folder")             \
  M(exportNoPlace, "cannot hold {}: {} was compiled without its weights or is compressed; export to .safetensors")     \
  M(exportKind, "{} needs a name that ends in .safetensors or .onnx, or a folder, not \"{}\"")                         \
  M(exportStale, "holds {}, which would be loaded in place of what is written beside it; remove it")                   \
  M(notYet, "{} is not supported yet")                                                                                 \
  M(flagValue, "{} needs {}")                                                                                          \
  M(flagBad, "{} takes {}, not \"{}\"")                                                                                \
  M(renamesNothing, "--data {}: this bundle has no input \"{}\"; its inputs are {}")                                   \
  M(tooManyThreads, "--threads {} is more than the {} that this machine takes, {} for each of {} cores")               \
  M(noThread, "cannot start thread {} of {}: {}; give fewer with --threads")                                           \
  M(noBundle, "no bundle given: par-run BUNDLE [flags]")                                                               \
  M(twoBundles, "two bundles given: \"{}\" and \"{}\"")                                                                \
  M(calibrationThere, "is there already, and --calibrate writes over no file; name another: --calibrate=FILE.yaml")    \
  M(calibrationForeign, "line {} is none of a file that --calibrate wrote, and --trace refines only such files")       \
  M(traceNone, "is no trace that par-run --trace wrote: {}")                                                           \
  M(traceOther, "is a trace of another bundle: rank {} of this one has no instruction \"{}\"")                         \
  M(traceShares, "is of {} ranks on {} cores, where times tell of others' turns too; trace as many ranks as cores")    \
  M(flagsExclude, "{} and {} exclude each other")                                                                      \
  M(flagNeeds, "{} needs {}")                                                                                          \
  M(seedOfSave,                                                                                                        \
    "--set seed={}: {} goes on with seed {}, by which its rows and random numbers come; leave the seed out")           \
  M(orderOfSave, "--order {}: {} was saved in the middle of an order that is {}; leave --order out")                   \
  M(outputIsRead, "{} would write over what {} reads; give it another file")                                           \
  M(outputsAlike, "{} and {} would both write it; give one of them another file")                                      \
  M(outputIsSave, "{} takes a name of --save's own; give it another file")                                             \
  M(stepsBetweenFlushes, "--steps {}: batches follow each other until the pipeline is flushed, {} at a time "          \
                         "(pipeline.flush_every), and {} are no multiple; give --steps {} or {}")                      \
  M(unknownHyper, "--set {}: this bundle has no such key; its keys are {}; "                                           \
                  "what else a plan says is compiled in: par-compile {} --set {}")

inline constexpr MessageText messageTable[] = {
#define M(KEY, TEXT) {#KEY, TEXT},
    PAR_MESSAGES(M)
#undef M
};

/// Names of the sentences: Message::cannotOpen, ...
enum class Message {
#define M(KEY, TEXT) KEY,
  PAR_MESSAGES(M)
#undef M
};

inline constexpr std::string_view textOf(Message message) { return messageTable[static_cast<int>(message)].text; }

} // namespace par::core

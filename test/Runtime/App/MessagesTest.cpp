// Every mistake is answered with the sentence of docs/plan.md, and every sentence of the table is quoted by a test.
#include "ToolFixture.h"

#include "par/format/Sha256.h"
#include "par/messages/TrainMessages.h"

#include <filesystem>
#include <sys/stat.h>
#include <thread>

using namespace par;

namespace {

class Mistakes : public Tool {
protected:
  /// A safetensors file with one array of that type and shape, filled with `value`.
  std::string writeFile(const std::string &name, const std::string &array, core::DType type, std::vector<int64_t> shape,
                        int64_t value = 0) {
    std::string path = folder / (name + ".safetensors");
    core::SafetensorsWriter writer(path, {{array, type, shape}}, true);
    auto elements = static_cast<size_t>(core::elementCount(shape));
    if (type == core::DType::I64)
      writeArray(writer, 0, std::vector<int64_t>(elements, value));
    else
      writeArray(writer, 0, std::vector<float>(elements, static_cast<float>(value)));
    return path;
  }
  std::string text() { return folder / "text"; }
};

TEST_F(Mistakes, ofFlags) {
  struct {
    std::vector<std::string> arguments;
    const char *says;
  } cases[] = {
      {{}, "par-run: error: no bundle given: par-run BUNDLE [flags]"},
      {{"a.par", "b.par"}, "par-run: error: two bundles given: \"a.par\" and \"b.par\""},
      {{"a.par", "--stpes", "3"}, "par-run: error: unknown flag \"--stpes\"; did you mean \"--steps\"?"},
      {{"a.par", "--resume-from", "ckpt"}, "par-run: error: unknown flag \"--resume-from\"; --help lists them"},
      {{"a.par", "--color=red"}, "par-run: error: --color takes auto, always or never, not \"red\""},
      {{"a.par", "--tokens", "f", "--text", "f"}, "par-run: error: --text and --tokens exclude each other"},
      {{"a.par", "--synthetic", "--input", "x=f"}, "par-run: error: --input and --synthetic exclude each other"},
      {{"a.par", "--stride", "2"}, "par-run: error: --stride needs --text F or --tokens F"},
      {{"a.par", "--normalize", "x"}, "par-run: error: --normalize needs --data F"},
      {{"a.par", "--from", "w"}, "par-run: error: --from needs --into F"},
      {{"a.par", "--into", "w.safetensors", "--steps", "2"}, "par-run: error: --into and --steps exclude each other"},
      {{"a.par", "--export", "w.safetensors", "--max-shard", "1MB"},
       "par-run: error: --max-shard needs --export FOLDER"},
      {{"a.par", "--export", "w/", "--max-shard", "0GB"},
       "par-run: error: --max-shard takes a number of bytes above 0, KB, MB or GB, not \"0GB\""},
      {{"a.par", "--on-nan", "ignore"}, "par-run: error: --on-nan takes stop, skip or skip:N, not \"ignore\""},
      {{"a.par", "--on-nan", "skip:0"},
       "par-run: error: --on-nan skip:N takes a whole number of at least 1, not \"0\""},
      {{"a.par", "--ema"}, "par-run: error: --ema needs --weights SAVE, or --export F"},
      {{"a.par", "--export", "m.pt"},
       "par-run: error: --export needs a name that ends in .safetensors or .onnx, or a folder, not \"m.pt\""},
      {{"a.par", "--steps"}, "par-run: error: --steps needs N"},
      {{"a.par", "--steps", "0"}, "par-run: error: --steps takes a whole number of at least 1, not \"0\""},
      {{"a.par", "-n=none"}, "par-run: error: -n takes a whole number of at least 1, not \"none\""},
      // Once cut to 32 bits: --keep 2^32 kept none, and deleted every save.
      {{"a.par", "--keep", "18446744073709551616"},
       "par-run: error: --keep takes a whole number from 1 to 1099511627776, not \"18446744073709551616\""},
      {{"a.par", "--keep", "1099511627777"},
       "par-run: error: --keep takes a whole number from 1 to 1099511627776, not \"1099511627777\""},
      {{"a.par", "-n", "4294967298"},
       "par-run: error: -n takes a whole number from 1 to 4294967295, not \"4294967298\""},
      {{"a.par", "--rank", "4294967296"},
       "par-run: error: --rank takes a whole number from 0 to 4294967295, not \"4294967296\""},
      {{"a.par", "--keep", "-1"}, "par-run: error: --keep takes a whole number of at least 1, not \"-1\""},
      {{"a.par", "--timeout", "0"}, "par-run: error: --timeout takes a number from 1 to 1000000, not \"0\""},
      {{"a.par", "--join-timeout", "1e300"},
       "par-run: error: --join-timeout takes a number from 1 to 1000000, not \"1e300\""},
      {{"a.par", "--restart=0"}, "par-run: error: --restart takes a whole number of at least 1, not \"0\""},
      {{"a.par", "--restart=often"}, "par-run: error: --restart takes a whole number of at least 1, not \"often\""},
      {{"a.par", "--restart", "--device", "sim"}, "par-run: error: --device sim and --restart exclude each other"},
      {{"a.par", "--spares", "2"}, "par-run: error: --spares needs --restart"},
      {{"a.par", "--mirror", "2"}, "par-run: error: --mirror needs --restart"},
      {{"a.par", "--save", ""}, "par-run: error: --save takes a folder, not \"\""},
      {{"a.par", "--metrics="}, "par-run: error: --metrics takes a file, not \"\""},
      {{"a.par", "--resume", "c", "--init"}, "par-run: error: --resume DIR and --init exclude each other"},
      {{"a.par", "--resume", "c", "--weights", "w"}, "par-run: error: --resume DIR and --weights exclude each other"},
      {{"a.par", "--set", "lr=nan"}, "par-run: error: --set takes a number, not \"nan\""},
      {{"a.par", "--eval", "--steps", "3"}, "par-run: error: --eval and --steps exclude each other"},
      {{"a.par", "--order=random"}, "par-run: error: --order takes shuffled or sequential, not \"random\""},
      {{"a.par", "--init=yes"}, "par-run: error: --init takes no value, not \"yes\""},
      {{"a.par", "--device", "sim", "--comm", "shm"}, "par-run: error: --device sim and --comm shm exclude each other"},
      {{"a.par", "--interleavings", "3"}, "par-run: error: --interleavings needs --device sim"},
      {{"a.par", "--save-every", "3"}, "par-run: error: --save-every needs --save DIR"},
      {{"a.par", "--eval-data", "t.txt"}, "par-run: error: --eval-data needs --eval-every N"},
      {{"a.par", "--text", "a", "--text", "b"},
       "par-run: error: --text is given twice, with \"a\" and \"b\"; it takes one"},
      {{"a.par", "--set", "lr=1", "--set", "train.optimizer.lr=2"},
       "par-run: error: --set lr is given twice, with \"1\" and \"2\"; it takes one"},
      {{"a.par", "--lr", "0.1"}, "par-run: error: unknown flag \"--lr\"; par-run has --set lr=VALUE"},
      {{"a.par", "--batch_size=4"},
       "par-run: error: unknown flag \"--batch_size\"; that is in the plan: par-compile MODEL --set batch=N"},
      {{"a.par", "--set", "precision=bf16"},
       "par-run: error: --set precision=bf16: a run takes lr, clip and seed, each a number; what else a plan says is "
       "compiled in: par-compile MODEL --set precision=bf16"},
  };
  for (const auto &mistake : cases) {
    EXPECT_EQ(run(mistake.arguments), 2);
    EXPECT_EQ(err, std::string(mistake.says) + "\n");
  }
  // More threads than this machine's cores can use.
  std::string cores = std::to_string(std::thread::hardware_concurrency()),
              most = std::to_string(4 * std::thread::hardware_concurrency());
  EXPECT_EQ(run({"a.par", "--threads", "100000"}), 2);
  EXPECT_EQ(err, "par-run: error: --threads 100000 is more than the " + most +
                     " that this machine takes, 4 for each of " + cores + " cores\n");
  EXPECT_EQ(core::parseOptions({"a.par", "--threads", most}).threads, 4 * int(std::thread::hardware_concurrency()));
  // A bundle's own number is no way around that, and no reason not to run.
  format::Bundle bundle = toy::training(1);
  bundle.manifest.threads = 4096;
  EXPECT_EQ(run({write(bundle), "--init", "--steps", "1", "--text", folder / "text"}), 0) << err;
  EXPECT_NE(out.find("toy.par: warning: the bundle asks for 4096 threads a rank and gets " + most +
                     ", the most that --threads takes here\n"),
            std::string::npos)
      << out;
  EXPECT_EQ(run({folder / "toy.par", "--init", "--steps", "1", "--text", folder / "text", "--threads", "2"}), 0);
  EXPECT_EQ(out.find("asks for 4096 threads"), std::string::npos) << out;
  // Who a process is comes before its files.
  EXPECT_EQ(run({"a.par", "--rank", "7", "--world", "4", "--data", "none.safetensors"}), 2);
  EXPECT_EQ(err, "a.par: error: --rank is 7 and --world is 4; ranks count from 0\n");
  EXPECT_EQ(run({"a.par", "--rank", "1", "--world", "4", "--master", "127.0.0.1:0"}), 2);
  EXPECT_EQ(err, "a.par: error: the port of --master is \"0\", not a number from 1 to 65535\n");
}

TEST_F(Mistakes, ofBundlesAndMachines) {
  format::Bundle bundle = toy::training();
  bundle.manifest.device = "cuda", bundle.manifest.needs = {"sm: 90"};
  std::string cuda = write(bundle, "cuda");
  setenv("PAR_CUDA_LIBRARY", "/nowhere", 1); // machines with a GPU test this too
  EXPECT_EQ(run({cuda, "--init"}), 1);
  expectSays(
      "cuda.par: error: this bundle is for cuda sm_90 and this machine has no CUDA device; compile it again with "
      "--target cpu");
  EXPECT_EQ(run({cuda, "--init", "--device", "sim"}), 1);
  expectSays("cuda.par: error: this bundle is for cuda; --device sim runs bundles for cpu");
  bundle.manifest.device = "cpu", bundle.manifest.needs = {"isa: avx9000"};
  EXPECT_EQ(run({write(bundle, "isa"), "--init"}), 1);
  expectSays("this bundle needs the instruction set avx9000, which this machine lacks; compile it again on it");
  bundle.manifest.needs = {"quantum: yes"};
  EXPECT_EQ(run({write(bundle, "quantum"), "--init"}), 1);
  expectSays("this bundle needs \"quantum: yes\", which this par-run does not know");
  std::string good = write(toy::training());
  EXPECT_EQ(run({good, "--init", "--text", text(), "--comm", "nccl"}), 2);
  expectSays("toy.par: error: --comm nccl needs a bundle for cuda");
  EXPECT_EQ(run({good, "--init", "--text", text(), "--set", "speed=3"}), 2);
  expectSays("--set speed: this bundle has no such key; its keys are seed, lr; what else a plan says is compiled in: "
             "par-compile "
             "squares.onnx --set speed=3");
  for (const char *lr : {"lr=-1", "lr=1e+39"}) {
    EXPECT_EQ(run({good, "--init", "--text", text(), "--set", lr}), 2);
    expectSays("toy.par: error: --set lr takes a number from 0 to 3.4e38, not \"" + std::string(lr + 3));
  }
  format::Bundle clipped = toy::training();
  clipped.manifest.hypers.push_back({"clip", 1});
  EXPECT_EQ(run({write(clipped, "clipped"), "--init", "--text", text(), "--set", "train.clip=0"}), 2);
  expectSays("clipped.par: error: --set clip takes a number above 0, to 3.4e38, not \"0\"");
  EXPECT_EQ(run({good, "--init", "--text", text(), "--set", "seed=-1"}), 2);
  expectSays("toy.par: error: --set seed takes a whole number from 0 to 2^53, not \"-1.000000\"");
  EXPECT_EQ(run({good, "--init", "--text", text(), "--steps", "1", "--set", "train.optimizer.lr=0.5"}), 0);
  EXPECT_NE(out.find("lr 5.0e-01"), std::string::npos) << out;
  EXPECT_EQ(run({good, "--init", "--text", text(), "--steps", "1", "--export", folder / "none/w.safetensors"}), 1);
  expectSays("none/w.safetensors: error: cannot write: No such file or directory");
  EXPECT_EQ(out.find("step"), std::string::npos) << "it is said before the first step";
  EXPECT_EQ(run({text(), "--init"}), 1);
  expectSays("text: error: is not a bundle: it has no manifest.json");
  format::Bundle trainOnly = toy::training();
  trainOnly.programs[0].entries.resize(1);
  EXPECT_EQ(run({write(trainOnly, "only"), "--init", "--eval", "--text", text()}), 1);
  expectSays("this bundle has no entry \"eval\"; it has train");
  trainOnly.programs[0].entries[0].name = "predict";
  EXPECT_EQ(run({write(trainOnly, "predict"), "--init", "--eval", "--text", text()}), 1);
  expectSays("this bundle has no entry \"eval\"; it has predict\n"
             "  note: a bundle without train does nothing but predict: compile the model with train");
  EXPECT_EQ(run({good, "--init", "--output", folder / "p.safetensors", "--text", text()}), 1);
  expectSays("this bundle has no entry \"predict\"; it has train, eval\n"
             "  note: a bundle that trains does not predict: compile its model without train (--set train=null) and "
             "run that bundle "
             "with --weights");
}

TEST_F(Mistakes, ofTheWrongNumberOfRanks) {
  std::string two = write(toy::training(2), "two");
  EXPECT_NE(run({two, "--comm", "inproc", "-n", "4", "--init", "--text", text()}), 0);
  expectSays("this bundle is for 2 ranks (dp 2)");
}

TEST_F(Mistakes, ofKernels) {
  format::Bundle bundle = toy::training();
  bundle.programs[0].kernels[0].symbol = "sum_cubes";
  EXPECT_EQ(run({write(bundle, "cubes"), "--init", "--text", text()}), 1);
  expectSays("kernel \"sum_squares\" asks for the builtin \"sum_cubes\", which this runtime does not have");
  bundle.programs[0].kernels[0].symbol = "softmax_backward";
  EXPECT_EQ(run({write(bundle, "mismatch"), "--init", "--text", text()}), 3);
  expectSays("builtin softmax_backward takes 3 operands with these immediates, found 2 (V1)");
}

TEST_F(Mistakes, ofWeights) {
  std::string toy = write(toy::training());
  EXPECT_EQ(run({toy, "--text", text()}), 1);
  expectSays(
      "toy.par: error: no weights: squares.onnx was compiled without them; give --weights FILE, or --init to start "
      "from train.init");
  EXPECT_EQ(run({toy, "--text", text(), "--weights", writeFile("shape", "w", core::DType::F32, {9, 8})}), 1);
  expectSays("shape.safetensors: error: \"w\" is [9, 8], the bundle has [8, 8]; of the others 0 match; to start it "
             "from new values (a head of other classes), leave it out of the file and say --init");
  EXPECT_EQ(run({toy, "--text", text(), "--weights", writeFile("type", "w", core::DType::I64, {8, 8})}), 1);
  expectSays("type.safetensors: error: \"w\" is i64[8, 8], the bundle has f32[8, 8]");
  EXPECT_EQ(run({toy, "--text", text(), "--weights", writeFile("other", "v", core::DType::F32, {8, 8})}), 1);
  expectSays("other.safetensors: error: holds no \"w\"; 0 of 1 tensors are there");
  EXPECT_EQ(run({toy, "--text", text(), "--weights", text()}), 1);
  expectSays(
      "text: error: is no .safetensors, .npz or .pt file and no checkpoint folder; the model's own weights need no "
      "--weights");
  // Other files in a folder, and several safetensors files.
  std::filesystem::create_directory(folder / "hub");
  std::ofstream(folder / "hub/pytorch_model.bin") << "pickled";
  EXPECT_EQ(run({toy, "--text", text(), "--weights", folder / "hub"}), 1);
  expectSays("pytorch_model.bin: error: is no archive of PyTorch 1.6 or later; torch.save of what torch.load reads "
             "writes one");
  for (const char *name : {"hub/a.safetensors", "hub/b.safetensors"})
    std::filesystem::copy_file(writeFile("whole", "w", core::DType::F32, {8, 8}), folder / name);
  EXPECT_EQ(run({toy, "--text", text(), "--weights", folder / "hub"}), 1);
  expectSays("hub: error: holds several files of weights, among them a.safetensors and b.safetensors; name the one "
             "that is meant");
  std::filesystem::rename(folder / "hub/b.safetensors", folder / "hub/model.safetensors");
  EXPECT_EQ(run({toy, "--text", text(), "--steps", "1", "--weights", folder / "hub"}), 0) << err;
  std::ofstream(folder / "hub/model.safetensors.index.json") << R"({"weight_map": {"w": "none.safetensors"}})";
  EXPECT_EQ(run({toy, "--text", text(), "--steps", "1", "--weights", folder / "hub"}), 1);
  expectSays("hub/model.safetensors.index.json: error: says that \"w\" is in ");
  // A shape of more dims than anybody reads is cut short.
  EXPECT_EQ(run({toy, "--text", text(), "--weights",
                 writeFile("long", "w", core::DType::F32, std::vector<int64_t>(100'000, 1))}),
            1);
  expectSays("long.safetensors: error: \"w\" is [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ... (100000 dims)], "
             "the bundle has [8, 8]; ");
  // Two saves; each holds all weights.
  std::filesystem::create_directory(folder / "one"), std::filesystem::create_directory(folder / "two");
  std::string one = folder / "one", two = folder / "two", v = writeFile("a", "v", core::DType::F32, {1});
  EXPECT_EQ(run({toy, "--text", text(), "--weights", one, "--weights", two}), 2);
  EXPECT_EQ(err, "par-run: error: --weights " + one + " (a folder is a save, with all weights) and --weights " + two +
                     " exclude each other\n");
  EXPECT_EQ(run({toy, "--text", text(), "--weights", v, "--weights", two}), 2);
  expectSays("par-run: error: --weights " + two + " (a folder is a save, with all weights) and --weights " + v +
             " exclude");
}

// A link that leads to itself is neither missing nor of the wrong kind.
TEST_F(Mistakes, ofLinksThatLeadNowhere) {
  std::string toy = write(toy::training()), loop = folder / "loop", file = folder / "loop.safetensors";
  std::filesystem::create_symlink("loop", loop);
  std::filesystem::create_symlink("loop.safetensors", file);
  for (const std::string &path : {loop, file})
    for (const char *flag : {"--weights", "--resume"}) {
      EXPECT_EQ(run({toy, "--text", text(), flag, path}), 1);
      EXPECT_EQ(err, path + ": error: cannot open: Too many levels of symbolic links\n");
    }
  EXPECT_EQ(run({toy, "--text", loop, "--init"}), 1);
  expectSays("loop: error: cannot open: Too many levels of symbolic links");
  EXPECT_EQ(run({loop, "--text", text(), "--init"}), 1);
  expectSays("loop/manifest.json: error: cannot open: Too many levels of symbolic links");
  EXPECT_EQ(run({"none.par", "--text", text(), "--init"}), 1);
  EXPECT_EQ(err, "none.par: error: no such bundle; par-compile -o none.par writes one\n");
  EXPECT_EQ(run({toy, "--text", text(), "--init", "--steps", "1", "--save", loop}), 1);
  expectSays("loop: error: cannot write: Too many levels of symbolic links");
}

// An index lists files next to it and their tensors.
TEST_F(Mistakes, ofAnIndexOfWeights) {
  std::string toy = write(toy::training()), index = folder / "model.safetensors.index.json";
  writeFile("model-1", "w", core::DType::F32, {8, 8}, 1);
  auto with = [&](const std::string &content) {
    std::ofstream(index) << content;
    return run({toy, "--text", this->text(), "--steps", "1", "--weights", index});
  };
  EXPECT_EQ(with(R"({"metadata": {"total_size": 256}, "weight_map": {"w": "model-1.safetensors"}})"), 0) << err;
  EXPECT_EQ(with(R"({"weight_map": {"w": "../model-1.safetensors"}})"), 1);
  expectSays(index + ": error: says that \"w\" is in ../model-1.safetensors; an index names files beside it");
  EXPECT_EQ(with(R"({"weight_map": {"v": "model-1.safetensors"}})"), 1);
  expectSays(index + ": error: says that \"v\" is in " + (folder / "model-1.safetensors") + ", which does not hold it");
  EXPECT_EQ(with(R"({"weight_map": {"w": "model-2.safetensors"}})"), 1);
  expectSays(index + ": error: says that \"w\" is in " + (folder / "model-2.safetensors") + ", which is not there");
  EXPECT_EQ(with("{}"), 1);
  expectSays(index + ": error: is no index of weights: ");
  EXPECT_EQ(run({toy, "--text", text(), "--weights", folder / "model-1.safetensors", "--weights",
                 writeFile("again", "w", core::DType::F32, {8, 8}, 2)}),
            1);
  expectSays("again.safetensors: error: holds \"w\", which " + (folder / "model-1.safetensors") + " holds too");
}

TEST_F(Mistakes, ofAnExportIntoTheModel) {
  format::Bundle bundle = toy::training(1);
  std::string model = folder / "squares.onnx";
  auto export_to = [&](const std::string &name, const std::string &path) {
    return run({write(bundle, name), "--text", text(), "--init", "--steps", "1", "--export", path});
  };
  EXPECT_EQ(export_to("gone", folder / "new.onnx"), 1);
  expectSays(
      "gone.par: error: --export to .onnx needs the model squares.onnx, which is neither here nor beside the bundle");
  std::ofstream(model) << "other";
  EXPECT_EQ(export_to("other", folder / "new.onnx"), 1);
  expectSays("other.par: error: --export to .onnx needs the model that was compiled; " + model +
             " is another one (5 bytes, "
             "not 0)");
  std::ofstream(model) << std::string(300, 'm');
  std::string content(300, 'm');
  bundle.manifest.model.size = 300;
  bundle.manifest.model.sha256 = format::sha256(content);
  EXPECT_EQ(export_to("place", folder / "new.onnx"), 1);
  expectSays("new.onnx: error: cannot hold w: " + model +
             " was compiled without its weights or is compressed; export to "
             ".safetensors");
  bundle.manifest.tensors[0].source = format::Source{"w.bin", 0, 256, format::DType::F32};
  EXPECT_EQ(export_to("nodata", folder / "new.onnx"), 1);
  EXPECT_EQ(err, (folder / "new.onnx") + ": error: --export to .onnx needs " + (folder / "w.bin") +
                     " too, where \"w\" lies, and it is not there; export to .safetensors\n");
  EXPECT_EQ(out, "") << "said before it trains";
  bundle.manifest.tensors[0].source = format::Source{"squares.onnx", 20, 256, format::DType::F32};
  EXPECT_EQ(export_to("same", model), 1) << "written before it trains";
  expectSays(
      "squares.onnx: error: is the model that was compiled, or its weights; give --export another name or folder");
}

TEST_F(Mistakes, ofAModelFileThatChanged) {
  format::Bundle bundle = toy::training();
  bundle.manifest.model.size = 7;
  bundle.manifest.tensors[0].source = format::Source{"squares.onnx", 0, 256, format::DType::F32};
  std::ofstream(folder / "squares.onnx") << "not seven";
  EXPECT_EQ(run({write(bundle), "--text", text()}), 1);
  expectSays("squares.onnx is not the file that was compiled (9 bytes, not 7); give --weights FILE, or --init");
  std::ofstream(folder / "squares.onnx") << "7 bytes";
  EXPECT_EQ(run({folder / "toy.par", "--text", text()}), 1);
  expectSays("squares.onnx is not the file that was compiled (other content); give --weights FILE, or --init");
  std::filesystem::remove(folder / "squares.onnx");
  EXPECT_EQ(run({folder / "toy.par", "--text", text()}), 1);
  expectSays("no weights: squares.onnx is neither here nor beside the bundle; give --weights FILE, or --init");
}

// A model whose place cannot be seen is looked for beside the bundle, and named if it is not there either.
TEST_F(Mistakes, ofAModelThatCannotBeLookedAt) {
  format::Bundle bundle = toy::training();
  std::string loop = folder / "loop/squares.onnx";
  std::filesystem::create_symlink("loop", folder / "loop");
  bundle.manifest.model = {loop, 256, format::sha256(std::string(256, '\0'))};
  bundle.manifest.tensors[0].source = format::Source{"squares.onnx", 0, 256, format::DType::F32};
  std::string toy = write(bundle);
  EXPECT_EQ(run({toy, "--text", text(), "--steps", "1"}), 1);
  EXPECT_EQ(err, loop + ": error: cannot open: Too many levels of symbolic links\n");
  std::ofstream(folder / "squares.onnx") << std::string(256, '\0');
  EXPECT_EQ(run({toy, "--text", text(), "--steps", "1"}), 0) << err;
}

// Names come from files; a terminal gets no command from them.
TEST_F(Mistakes, withoutControlCharacters) {
  std::string toy = write(toy::training()), file = writeFile("w", "\x1b[2Jw\n", core::DType::F32, {8, 8});
  EXPECT_EQ(run({toy, "--text", text(), "--weights", file, "--weights", file}), 1);
  EXPECT_EQ(err, file + ": error: holds \"?[2Jw?\", which " + file + " holds too\n");
  std::ofstream(file) << std::string("\x10\0\0\0\0\0\0\0", 8) << "{\"\\u001b[2J\": 1}  ";
  EXPECT_EQ(run({toy, "--text", text(), "--weights", file}), 1);
  expectSays("w.safetensors: error: entry \"?[2J\" of the header needs dtype");
}

// Values and samples that went missing while they were read are no zeros.
TEST_F(Mistakes, ofFilesThatBecomeShorter) {
  core::WeightStore store = core::openSafetensors({writeFile("w", "w", core::DType::F32, {8, 8}, 1)});
  store.release();
  std::filesystem::resize_file(folder / "w.safetensors", std::filesystem::file_size(folder / "w.safetensors") - 1);
  try {
    store.release();
    FAIL();
  } catch (const core::Failure &failure) {
    EXPECT_NE(std::string(failure.what()).find("w.safetensors: error: became shorter while it was read: it had "),
              std::string::npos)
        << failure.what();
  }
  std::string toy = write(toy::training()), metrics = folder / "metrics.jsonl";
  std::thread other([&] {
    while (fileText(metrics).empty()) // it trains
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::filesystem::resize_file(text(), 1999);
  });
  EXPECT_EQ(run({toy, "--text", text(), "--init", "--steps", "1000000000", "--metrics", metrics}), 1);
  other.join();
  expectSays(text() + ": error: became shorter while it was read: it had 2000 bytes\n  note: in step ");
  expectSays("; nothing was saved before\n");
}

/// The bundle with a note of the data file squares.bin.
static format::Bundle noting(format::Bundle bundle, const std::string &content) {
  bundle.manifest.data = {{"squares.bin", content.size(), format::sha256(content)}};
  return bundle;
}

TEST_F(Mistakes, ofDataBesideTheModel) {
  format::Bundle bundle = toy::training();
  std::string real = folder / "real", link = folder / "squares.onnx", data = folder / "squares.bin",
              exported = folder / "copy/of.onnx";
  std::filesystem::create_directory(folder / "copy");
  std::filesystem::create_directory(real);
  std::ofstream(real + "/squares.onnx") << "model";
  std::filesystem::create_symlink("real/squares.onnx", link);
  bundle.manifest.model = {link, 5, format::sha256("model")};
  bundle.manifest.tensors[0].source = format::Source{"squares.bin", 0, 256, format::DType::F32};
  std::string toy = write(bundle);
  EXPECT_EQ(run({toy, "--text", text()}), 1);
  expectSays("no weights: " + data + ", the external data of " + link +
             ", is not there (\"w\" lies in it); give --weights "
             "FILE, or --init");
  std::ofstream(real + "/squares.bin") << std::string(256, '\0');
  EXPECT_EQ(run({toy, "--text", text(), "--steps", "1"}), 0) << "a model that is a link finds its data: " << err;
  // The files of the time when the model was compiled; a bundle without their hashes accepts any.
  std::string noted = write(noting(bundle, std::string(256, '\0')), "noted");
  auto refusesData = [&](const std::string &content, const std::string &difference) {
    std::ofstream(real + "/squares.bin") << content;
    EXPECT_EQ(run({noted, "--text", text(), "--steps", "1"}), 1);
    expectSays(noted + ": error: no weights: " + real + "/squares.bin, the external data of " + link +
               ", is not what it was when that was compiled (" + difference +
               "); compile it again, or give --weights FILE");
    EXPECT_EQ(run({noted, "--text", text(), "--steps", "1", "--init", "--export", exported}), 1);
    expectSays(exported + ": error: --export to .onnx needs " + real + "/squares.bin, the external data of " + link +
               ", as it was compiled (" + difference + "); export to .safetensors");
    EXPECT_EQ(run({toy, "--text", text(), "--steps", "1"}), 0) << err;
  };
  refusesData(std::string(256, '<'), "other content"); // numbers of 0.01
  refusesData(std::string(300, '\0'), "300 bytes, not 256");
  std::ofstream(real + "/squares.bin") << std::string(256, '\0');
  EXPECT_EQ(run({noted, "--text", text(), "--steps", "1"}), 0) << err;
  std::filesystem::create_directory(folder / "other");
  std::filesystem::rename(real + "/squares.bin", folder / "other/squares.bin");
  std::filesystem::create_symlink("../other/squares.bin", real + "/squares.bin");
  EXPECT_EQ(run({toy, "--text", text(), "--steps", "1"}), 1);
  expectSays(real + "/squares.bin: error: external data \"squares.bin\" of " + link +
             " is a link out of the model's folder");
  std::filesystem::remove(real + "/squares.bin");
  ASSERT_EQ(mkfifo(data.c_str(), 0600), 0);
  EXPECT_EQ(run({toy, "--text", text()}), 1);
  expectSays(data + ": error: cannot open: a pipe, not a plain file");
  bundle.manifest.model.name = "squares.onnx.gz";
  bundle.manifest.tensors[0].source.reset();
  EXPECT_EQ(run({write(bundle, "packed"), "--text", text()}), 1);
  expectSays("packed.par: error: no weights: those in squares.onnx.gz are compressed and cannot be mapped; compile the "
             "unpacked file, give --weights FILE, or --init to start from train.init");
}

TEST_F(Mistakes, ofData) {
  std::string toy = write(toy::training());
  auto data = [&](const std::string &file) { return run({toy, "--init", "--order", "sequential", "--data", file}); };
  EXPECT_EQ(run({toy, "--init"}), 1);
  expectSays("no data: give --data FILE or --text FILE (inputs: \"input_ids\" i64[2, 16], \"labels\" i64[2, 16])");
  EXPECT_EQ(data(writeFile("some", "input_ids", core::DType::I64, {4, 16})), 1);
  expectSays("toy.par: error: input \"labels\" i64[2, 16] gets no data (--data " + (folder / "some.safetensors") +
             " feeds \"input_ids\"); add it to --data, or "
             "bind it in the plan: inputs.labels.value");
  EXPECT_EQ(data(writeFile("type", "labels", core::DType::F32, {4, 16})), 1);
  expectSays("type.safetensors: error: array \"labels\" is f32[4, 16]; input \"labels\" takes i64 in [0, 128) or the "
             "ignored -100");
  EXPECT_EQ(data(writeFile("shape", "labels", core::DType::I64, {4, 15})), 1);
  expectSays("array \"labels\" is i64[4, 15]; input \"labels\" takes i64[16] a sample");
  EXPECT_EQ(data(writeFile("other", "targets", core::DType::I64, {4, 16})), 1);
  expectSays("input \"input_ids\" i64[2, 16] gets no data (--data " + (folder / "other.safetensors") +
             " feeds nothing; arrays of other names: targets, which "
             "F:input=array renames); add it to --data, or bind it in the plan: inputs.input_ids.value");
  std::string both = writeFile("both", "x", core::DType::I64, {4, 16}, 130);
  EXPECT_EQ(data(both + ":input_ids=x,labels=y"), 1);
  expectSays("both.safetensors: error: holds no array \"y\"; it has x");
  EXPECT_EQ(data(both + ":input_id=x"), 2);
  expectSays("par-run: error: --data " + both + ":input_id=x: this bundle has no input \"input_id\"; its inputs are ");
  EXPECT_EQ(data(both + ":input_ids=x,labels=x"), 1);
  expectSays("array \"x\" holds 130 in row 0; input \"input_ids\" takes i64 in [0, 128)\n");
  std::string padded = writeFile("padded", "x", core::DType::I64, {4, 16}, -100);
  EXPECT_EQ(data(padded + ":input_ids=x,labels=x"), 1);
  expectSays(
      "array \"x\" holds -100 in row 0; input \"input_ids\" takes i64 in [0, 128)\n  note: only labels of a loss can "
      "be ignored; fill up \"input_ids\" with an index from 0 to 127 and ignore its label; one that is both is filled "
      "up "
      "in the module, after the loss: labels.masked_fill(labels < 0, 0)\n");
  {
    core::SafetensorsWriter writer(folder / "ignored.safetensors",
                                   {{"input_ids", core::DType::I64, {4, 16}}, {"labels", core::DType::I64, {4, 16}}},
                                   true);
    writeArray(writer, 0, std::vector<int64_t>(64, 127));
    writeArray(writer, 1, std::vector<int64_t>(64, -100));
  }
  EXPECT_EQ(run({toy, "--init", "--eval", "--data", folder / "ignored.safetensors"}), 0) << err;
  format::Bundle columns = toy::training();
  columns.manifest.inputs[0].limits = {{3}, {1, 129}, {4}};
  EXPECT_EQ(
      run({write(columns, "columns"), "--init", "--order", "sequential", "--data", both + ":input_ids=x,labels=x"}), 1);
  expectSays("array \"x\" holds 130 in row 0; input \"input_ids\" takes i64 in [0, 129) at [3]");
  {
    core::SafetensorsWriter writer(folder / "later.safetensors",
                                   {{"input_ids", core::DType::I64, {4, 16}}, {"labels", core::DType::I64, {4, 16}}},
                                   true);
    std::vector<int64_t> ids(64, 1000), labels(64, 5);
    for (size_t i = 3; i < 64; i += 8)
      ids[i] = 128;
    ids[27] = 129;
    writeArray(writer, 0, ids);
    writeArray(writer, 1, labels);
  }
  EXPECT_EQ(run({write(columns, "columns"), "--init", "--order", "sequential", "--data", folder / "later.safetensors"}),
            1);
  expectSays("array \"input_ids\" holds 129 in row 1; input \"input_ids\" takes i64 in [0, 129) at [11]");
  EXPECT_EQ(data(writeFile("few", "x", core::DType::I64, {1, 16}) + ":input_ids=x,labels=x"), 1);
  expectSays("1 rows are fewer than one batch of 2");
  EXPECT_EQ(data(both + ":input_ids"), 2);
  expectSays("--data takes F or F:input=array,..., not \"" + both + ":input_ids\"");
  EXPECT_EQ(data(folder / "d.csv"), 1);
  expectSays("data is read from .safetensors, .npy, .npz and .pt files, text by --text, integers by --tokens");
  {
    core::SafetensorsWriter writer(folder / "uneven.safetensors",
                                   {{"input_ids", core::DType::I64, {4, 16}}, {"labels", core::DType::I64, {3, 16}}},
                                   true);
  }
  EXPECT_EQ(data(folder / "uneven.safetensors"), 1);
  expectSays("array \"labels\" has 3 rows, \"input_ids\" has 4");
}

TEST_F(Mistakes, ofText) {
  format::Bundle bundle = toy::training();
  std::string toy = write(bundle);
  EXPECT_EQ(run({toy, "--init", "--text", writeText("short", 20)}), 1);
  expectSays("short: error: 20 bytes are fewer than one batch of 2 windows of 16");
  EXPECT_EQ(run({toy, "--init", "--text", writeText("high", 100, '\xe9')}), 1);
  expectSays("high: error: byte 233 at 99 is outside of the model's 128 symbols");
  bundle.manifest.text->mode = format::TextFeed::Unknown;
  EXPECT_EQ(run({write(bundle, "unknown"), "--init", "--text", text()}), 2);
  expectSays("whether labels are the next tokens or the same is not known; say --labels next or --labels same");
  bundle.manifest.text->mode = format::TextFeed::Next;
  bundle.manifest.inputs[1].type = core::DType::F32;
  bundle.programs[0].buffers[3].type = core::DType::F32;
  EXPECT_EQ(run({write(bundle, "unlike"), "--init", "--text", text()}), 1);
  expectSays("--text feeds windows of one length, and input \"input_ids\" is i64[2, 16], \"labels\" is f32[2, 16]; "
             "give --data");
  bundle = toy::training();
  bundle.manifest.text.reset();
  EXPECT_EQ(run({write(bundle, "none"), "--init", "--text", text()}), 1);
  expectSays("this bundle has no input that takes tokens; --text needs one");
}

TEST_F(Mistakes, ofCheckpoints) {
  std::string toy = write(toy::training()), save = folder / "ckpt";
  EXPECT_EQ(run({toy, "--text", text(), "--resume", save}), 1);
  expectSays("ckpt: error: no complete checkpoint in this folder");
  ASSERT_EQ(run({toy, "--init", "--text", text(), "--steps", "2", "--save", save, "--save-every", "1"}), 0);
  EXPECT_EQ(run({toy, "--init", "--text", text(), "--steps", "1", "--save", text()}), 1);
  expectSays("text: error: cannot write: ");
  EXPECT_EQ(out.find("step"), std::string::npos) << "it is said before the first step";
  EXPECT_EQ(run({toy, "--text", text(), "--steps", "2", "--resume", save}), 0);
  EXPECT_NE(out.find("done    nothing to do: " + save + "/2 is at step 2 of 2"), std::string::npos) << out;
  EXPECT_EQ(run({toy, "-q", "--text", text(), "--steps", "3", "--resume", save}), 0);
  EXPECT_EQ(out, "");
  std::string file = save + "/2/rank0.safetensors";
  uint64_t bytes = std::filesystem::file_size(file);
  std::filesystem::resize_file(file, bytes - 4);
  EXPECT_EQ(run({toy, "--text", text(), "--resume", save + "/2"}), 1);
  expectSays("ckpt/2: error: rank0.safetensors is " + core::grouped(bytes - 4) + " bytes, its manifest says " +
             core::grouped(bytes) + "; " + save + "/1 is complete: --resume " + save + "/1");
  std::ofstream(save + "/1/index.json") << "{\"par_checkpoint\": [3, 0]}";
  EXPECT_EQ(run({toy, "--text", text(), "--resume", save + "/1"}), 1);
  expectSays("ckpt/1: error: index.json: written by a newer par-run");
  std::ofstream(save + "/1/index.json") << "{}";
  EXPECT_EQ(run({toy, "--text", text(), "--resume", save + "/1"}), 1);
  expectSays("ckpt/1: error: index.json: ");
}

// Files that a run writes besides its saves fail as these do: an exit status and a message, before the run if possible.
TEST_F(Mistakes, ofMetricsAndTracesThatCannotBeWritten) {
  std::string toy = write(toy::training()), pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const char *flag : {"--metrics", "--trace"}) {
    auto to = [&](const std::string &path) {
      return run({toy, "--init", "--text", text(), "--steps", "2", flag, path});
    };
    EXPECT_EQ(to("/dev/full"), 1) << flag;
    EXPECT_EQ(err, "/dev/full: error: cannot write: No space left on device\n");
    std::string save = (folder / "ckpt") + flag;
    EXPECT_EQ(run({toy, "--init", "--text", text(), "--steps", "2", flag, "/dev/full", "--save", save}), 1);
    bool trains = flag == std::string("--metrics"); // a trace is written at the end
    EXPECT_EQ(err,
              "/dev/full: error: cannot write: No space left on device\n  note: " +
                  (trains ? "nothing was saved before" : "the last save is " + save + "/2: --resume " + save + "/2") +
                  "\n");
    for (auto [path, reason] : {std::pair<std::string, std::string>{folder / "none/f", "No such file or directory"},
                                {folder / "toy.par", "Is a directory"},
                                {pipe, "No such device or address"}}) {
      EXPECT_EQ(to(path), 1) << flag;
      EXPECT_EQ(err, path + ": error: cannot write: " + reason + "\n");
      EXPECT_EQ(out.find("step"), std::string::npos) << "it is said before the first step";
    }
  }
  for (const char *range : {":99999999999999999999999-1", ":3-2"}) {
    std::string trace = (folder / "t.json") + range;
    EXPECT_EQ(run({toy, "--init", "--text", text(), "--steps", "1", "--trace", trace}), 2);
    expectSays("par-run: error: --trace takes F or F:A-B, steps A to B, not \"" + trace + "\"");
  }
}

TEST_F(Mistakes, ofPartsThatCoverNotAll) {
  format::Tensor tensor = toy::training().manifest.tensors[0];
  core::StoredArray half{core::DType::F32, {8, 8}, {{{0, 0}, {4, 8}, nullptr}}};
  std::vector<std::byte> zeros(256), to(256);
  half.pieces[0].data = zeros.data();
  try {
    core::loadTensor(to.data(), tensor, 0, half, "ckpt/1");
    FAIL();
  } catch (const core::Failure &failure) {
    EXPECT_STREQ(failure.what(), "ckpt/1: error: \"w\": 32 of the 64 elements that rank 0 holds are in no file");
  }
}

/// The longest piece of a sentence between its values.
std::string longestPiece(std::string_view text) {
  std::string_view best;
  while (!text.empty()) {
    size_t end = text.find("{}");
    best = text.substr(0, end).size() > best.size() ? text.substr(0, end) : best;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
  }
  return std::string(best);
}

TEST(Messages, eachIsQuotedByATest) {
  std::string tests;
  for (std::string folder : {PAR_TEST_SOURCE "/..", PAR_TEST_SOURCE "/../../Execute", PAR_TEST_SOURCE "/../../Formats",
                             PAR_TEST_SOURCE "/../../../python/tests"})
    for (const auto &file : std::filesystem::recursive_directory_iterator(folder)) {
      if (std::string kind = file.path().extension(); kind != ".cpp" && kind != ".test" && kind != ".py")
        continue;
      std::ifstream in(file.path());
      tests += std::string(std::istreambuf_iterator<char>(in), {});
    }
  // Literals that are split over lines or hold quotes are joined again.
  for (auto [from, to] : {std::pair<std::string, std::string>{"\\\"", "\""}}) {
    for (size_t at = 0; (at = tests.find(from, at)) != std::string::npos;)
      tests.replace(at, from.size(), to);
  }
  for (size_t at = 0; (at = tests.find("\"\n", at)) != std::string::npos;) {
    size_t next = tests.find_first_not_of(" \n", at + 1);
    if (tests[next] == '"')
      tests.erase(at, next - at + 1);
    else
      at = next;
  }
  for (const core::MessageText &message : core::messageTable)
    EXPECT_NE(tests.find(longestPiece(message.text)), std::string::npos) << message.key << " is quoted by no test";
  for (const core::MessageText &message : core::trainSentences)
    EXPECT_NE(tests.find(longestPiece(message.text)), std::string::npos) << message.key << " is quoted by no test";
}

} // namespace

// Users' files and the messages about them: folders with colons, folders without access, samples of other types and
// without labels that count, lists of any length.
#include "ToolFixture.h"

#include "par/session/Session.h"

#include <cmath>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace par;
namespace fs = std::filesystem;
using core::DType;

namespace {

class UsersFiles : public Tool {
protected:
  /// Samples of the toy bundle under these names: 1, and 5 as the label.
  std::string samples(const std::string &name, const std::string &ids = "input_ids",
                      const std::string &labels = "labels", int64_t rows = 4, int64_t label = 5) {
    std::string path = folder / name;
    core::SafetensorsWriter writer(path, {{ids, DType::I64, {rows, 16}}, {labels, DType::I64, {rows, 16}}}, true);
    writeArray(writer, 0, std::vector<int64_t>(static_cast<size_t>(rows) * 16, 1));
    writeArray(writer, 1, std::vector<int64_t>(static_cast<size_t>(rows) * 16, label));
    return path;
  }
  int train(const std::string &data, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {folder / "toy.par", "--init", "--steps", "1", "--data", data});
    return run(more);
  }
};

TEST_F(UsersFiles, withColons) {
  write(toy::training(1));
  fs::create_directory(folder / "a:b=c");
  std::string plain = samples("a:b=c/d.safetensors"), other = samples("a:b=c/e:f.safetensors", "x", "y.safetensors:z");
  EXPECT_EQ(train(plain), 0) << err;
  EXPECT_EQ(train(other + ":input_ids=x,labels=y.safetensors:z"), 0) << err;
  EXPECT_EQ(train(plain, {"--eval-every", "1", "--eval-data", other + ":input_ids=x,labels=y.safetensors:z"}), 0)
      << err;
  EXPECT_NE(out.find("after step 1"), std::string::npos) << out;
  EXPECT_EQ(train(plain + ":labels"), 2);
  EXPECT_EQ(err, "par-run: error: --data takes F or F:input=array,..., not \"" + plain + ":labels\"\n");
  EXPECT_EQ(train(folder / "none:x/d.safetensors"), 1);
  EXPECT_EQ(err, (folder / "none:x/d.safetensors") + ": error: cannot open: No such file or directory\n");
  fs::rename(folder / "toy.par", folder / "to: y.par");
  std::ofstream(folder / "to: y.par/role-0.json", std::ios::app) << " ";
  EXPECT_EQ(run({folder / "to: y.par", "--init", "--data", plain}), 1);
  expectSays(folder / "to: y.par/role-0.json: error: ");
}

/// Another user, while it lives, where this one may do anything.
class Somebody {
public:
  Somebody() : was(geteuid()) { EXPECT_TRUE(was != 0 || seteuid(65534) == 0); }
  ~Somebody() { EXPECT_TRUE(was != 0 || seteuid(was) == 0); }

private:
  uid_t was;
};

// A folder without access is neither missing nor of the wrong kind.
TEST_F(UsersFiles, thatAreClosed) {
  std::string toy = write(toy::training(1)), data = samples("d.safetensors"), save = folder / "ckpt";
  ASSERT_EQ(train(data, {"--save", save}), 0) << err;
  chmod((folder / "").c_str(), 0755);
  auto closed = [&](const std::string &path, const std::string &says, std::vector<std::string> arguments) {
    struct stat before;
    ASSERT_EQ(stat(path.c_str(), &before), 0);
    chmod(path.c_str(), 0);
    {
      Somebody else_;
      arguments.insert(arguments.begin(), toy);
      EXPECT_EQ(run(arguments), 1);
    }
    chmod(path.c_str(), before.st_mode);
    EXPECT_EQ(err.substr(0, err.find('\n')), says + ": error: cannot open: Permission denied") << path;
  };
  closed(toy, toy + "/manifest.json", {"--init", "--data", data});
  closed(toy + "/manifest.json", toy + "/manifest.json", {"--init", "--data", data});
  closed(toy + "/role-0.json", toy + "/role-0.json", {"--init", "--data", data});
  closed(data, data, {"--init", "--data", data});
  for (const char *flag : {"--weights", "--resume"}) {
    closed(save, save + "/1", {flag, save + "/1", "--data", data});
    closed(save + "/1", save + "/1/index.json", {flag, save + "/1", "--data", data});
    closed(save + "/1", save + "/1/index.json", {flag, save, "--data", data});
    closed(save + "/1/rank0.safetensors", save + "/1/rank0.safetensors", {flag, save + "/1", "--data", data});
  }
}

// The file is named, and a list is no longer than anybody reads.
TEST_F(UsersFiles, areNamedInMessages) {
  std::string toy = write(toy::training(4)), few = samples("few.safetensors", "input_ids", "labels", 3);
  EXPECT_EQ(run({toy, "--init", "--data", few}), 1);
  EXPECT_EQ(err, few + ": error: 3 rows are fewer than one batch of 8\n");
  std::string unlabelled = samples("u.safetensors", "input_ids", "targets");
  EXPECT_EQ(run({toy, "--init", "--data", unlabelled}), 1);
  EXPECT_EQ(err, toy + ": error: input \"labels\" i64[8, 16] gets no data (--data " + unlabelled +
                     " feeds \"input_ids\"; arrays of "
                     "other names: targets, which F:input=array renames); add it to --data, or bind it in the plan: "
                     "inputs.labels.value\n");
  std::vector<core::ArrayHeader> headers;
  for (int i = 0; i < 30'000; ++i)
    headers.push_back({"t" + std::to_string(i), DType::U8, {0}});
  headers.push_back({std::string(1 << 20, 'n'), DType::U8, {0}});
  std::string many = folder / "many.safetensors";
  core::SafetensorsWriter(many, headers, true);
  EXPECT_EQ(run({toy, "--init", "--data", many}), 1);
  expectSays("feeds nothing; arrays of other names: ");
  expectSays(" and 29985 more, which F:input=array renames");
  EXPECT_LT(err.size(), 2000u);
  for (const char *flag : {"--weights", "--data"}) {
    EXPECT_EQ(run({toy, "--init", "--text", folder / "text", "--weights", many}), 1);
    EXPECT_LT(err.size(), 5000u) << flag;
  }
  EXPECT_EQ(run({toy, "--init", std::string("--") + std::string(100'000, 'x')}), 2);
  EXPECT_LT(err.size(), 5000u);
  expectSays("... (100002 bytes)");
}

TEST_F(UsersFiles, ofOtherFormats) {
  std::string toy = write(toy::training(1));
  std::ofstream(folder / "m.onnx") << "model";
  EXPECT_EQ(run({folder / "m.onnx", "--init"}), 1);
  EXPECT_EQ(err, (folder / "m.onnx") + ": error: is a model, not a bundle; compile it first: par-compile " +
                     (folder / "m.onnx") + " PLAN.yaml -o m.par, then par-run m.par\n");
}

// Masks are truth values, whatever the model computes with them.
TEST_F(UsersFiles, ofTruthValues) {
  format::Bundle bundle = toy::training(1);
  format::Input &mask = bundle.manifest.inputs[1];
  std::string path = folder / "m.safetensors";
  core::SafetensorsWriter writer(path, {{"labels", DType::I1, {2, 16}}}, true);
  std::vector<uint8_t> values(32, 0);
  values[1] = values[16] = 1;
  writeArray(writer, 0, values);
  std::vector<std::byte> scratch;
  auto dataset = core::openArrays({{path}, {}}, bundle.manifest);
  EXPECT_EQ(reinterpret_cast<const int64_t *>(dataset->row(mask, 0, scratch))[1], 1);
  EXPECT_EQ(reinterpret_cast<const int64_t *>(dataset->row(mask, 1, scratch))[1], 0);
  mask.type = DType::F32, mask.limits = {};
  auto floats = core::openArrays({{path}, {}}, bundle.manifest);
  EXPECT_EQ(reinterpret_cast<const float *>(floats->row(mask, 1, scratch))[0], 1);
}

// A loss of no label gives a message about the data, whatever the plan.
TEST_F(UsersFiles, withoutLabelsThatCount) {
  format::Bundle bundle = toy::training(1);
  auto says = [&](const std::string &path) {
    auto dataset = core::openArrays({{path}, {}}, bundle.manifest);
    core::RowOrder order(dataset->rows(), false, 1);
    return core::describeIgnored(bundle.manifest, {dataset.get(), &order, 0}, bundle.manifest.batch);
  };
  EXPECT_EQ(says(samples("d.safetensors")), "");
  std::string none = samples("n.safetensors", "input_ids", "labels", 2, -100);
  EXPECT_EQ(says(none), "no label of the batch counts: all 32 of \"labels\" are the ignored -100");
  // Nothing is known about a position that is no label; a label's position counts.
  bundle.manifest.inputs[1].limits = {{15, 128, false, -100}, {1, 0, false, {}}};
  EXPECT_EQ(says(none), "no label of the batch counts: all 30 of \"labels\" are the ignored -100");
  bundle.manifest.inputs[1].limits = {};
  EXPECT_EQ(says(none), "");
}

// A loss that is 0, or NaN, of such a batch.
TEST_F(UsersFiles, withoutLabelsThatCountInARun) {
  write(toy::training(1));
  std::string none = samples("n.safetensors", "input_ids", "labels", 4, -100), zero = folder / "z.safetensors";
  auto with = [&](float value, std::vector<std::string> more) {
    core::SafetensorsWriter writer(zero, {{"w", DType::F32, {8, 8}}}, true);
    writeArray(writer, 0, std::vector<float>(64, value));
    more.insert(more.begin(), {folder / "toy.par", "--weights", zero, "--data", none});
    return run(more);
  };
  std::string says = "no label of the batch counts: all 32 of \"labels\" are the ignored -100";
  EXPECT_EQ(with(0, {"--steps", "2", "--set", "lr=0"}), 0) << err;
  EXPECT_NE(out.find("step 1: warning: " + says + "\n"), std::string::npos) << out;
  EXPECT_EQ(out.find("step 2: warning"), std::string::npos) << "it is said once";
  EXPECT_EQ(with(0, {"--eval"}), 0) << err;
  EXPECT_NE(out.find("eval: warning: " + says + "\n"), std::string::npos) << out;
  EXPECT_EQ(with(NAN, {"--steps", "1"}), 5);
  expectSays("note: " + says + "; ");
  EXPECT_EQ(with(NAN, {"--eval"}), 5);
  expectSays("  note: " + says + "\n");
}

// Behind the text of an object a zero ends nothing.
TEST_F(UsersFiles, withZerosBehindTheirText) {
  std::string toy = write(toy::training(1)), index = folder / "w.json", zero(1, '\0');
  std::ofstream(index) << "{\"weight_map\": {}}" << zero;
  EXPECT_EQ(run({toy, "--text", folder / "text", "--weights", index}), 1);
  EXPECT_EQ(err, index + ": error: is no index of weights: not JSON at byte 18: a zero\n");
  std::string text = "{\"v\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", w = folder / "w.safetensors";
  for (auto [padding, good] : {std::pair(std::string("  "), true), {zero + zero, false}, {" " + zero, false}}) {
    uint64_t length = text.size() + padding.size();
    std::ofstream(w) << std::string(reinterpret_cast<char *>(&length), 8) << text << padding;
    EXPECT_EQ(run({toy, "--text", folder / "text", "--weights", w}), 1);
    expectSays(good ? "holds no \"w\""
                    : "w.safetensors: error: header: not JSON at byte " +
                          std::to_string(text.size() + padding.find('\0')));
    if (!good) {
      expectSays(": a zero\n");
    }
  }
  std::ofstream(toy + "/manifest.json", std::ios::app) << zero;
  EXPECT_EQ(run({toy, "--init", "--text", folder / "text"}), 1);
  expectSays("manifest.json: error: not JSON at byte ");
}

} // namespace

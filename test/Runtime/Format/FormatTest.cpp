// Reading and writing of bundles.
#include "ToyBundles.h"
#include "par/format/Sha256.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace par;
using namespace par::format;

namespace {
std::string scratch(const std::string &name) {
  return std::filesystem::temp_directory_path() / ("par-format-" + std::to_string(getpid()) + "-" + name);
}

std::string textOf(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The program's text with the first `from` replaced; the test fails when there is none.
std::string edited(const Program &program, const std::string &from, const std::string &to) {
  std::string text = writeProgram(program);
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " is not in\n" << text;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}
} // namespace

// The hash equals the standard's own examples, in one piece and in many.
TEST(Sha256, Examples) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  // FIPS 180-4 by the processor's instructions and without them, of every length around a block's and of many blocks.
  std::string text;
  for (size_t size = 0; size < 4096; size += size < 200 ? 1 : 97) {
    while (text.size() < size)
      text.push_back(static_cast<char>(text.size() * 167 + text.size() / 7));
    Sha256 plain(true), usual;
    plain.update(text), usual.update(text);
    ASSERT_EQ(plain.finish(), usual.finish()) << size << " bytes";
  }
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  Sha256 pieces;
  for (int i = 0; i < 1000; ++i)
    pieces.update(std::string(1000, 'a'));
  EXPECT_EQ(pieces.finish(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// A written program reads back and is written again byte for byte.
TEST(Program, RoundTrip) {
  for (const Bundle &bundle : {toy::allReduce(), toy::pipeline(), toy::pipeline(2), toy::groups(), toy::offloaded()}) {
    for (const Program &program : bundle.programs) {
      std::string text = writeProgram(program);
      Expected<Program> read = parseProgram(text, "role-0.json");
      ASSERT_TRUE(read) << read.message() << "\n" << text;
      EXPECT_EQ(writeProgram(*read), text);
    }
    std::string text = writeManifest(bundle.manifest);
    Expected<Manifest> read = parseManifest(text, "manifest.json");
    ASSERT_TRUE(read) << read.message() << "\n" << text;
    EXPECT_EQ(writeManifest(*read), text);
  }
}

// Everything that an instruction can say survives: slots, axis immediates, peer lists, odd floats, odd names.
TEST(Program, RoundTripOfRareParts) {
  Program p = toy::pipeline().programs[0];
  uint32_t x = p.findBuffer("x");
  p.buffers.push_back(p.buffers[x]);
  p.buffers.back().name = "view\\of/x";
  p.buffers.back().of = x, p.buffers.back().offset = 16, p.buffers.back().shape = {4}, p.buffers.back().at = {};
  p.kernels.push_back({"k", true, "axpy", {{Access::ReadWrite, 16}}, 3, 0, 2});
  p.kernels.push_back({"g", false, "par_k0", {{Access::ReadWrite, 16}}, 1, 12345, 0, {{64, 2, 1}, {256, 1, 1}, 4096}});
  Instruction it;
  it.kernel = 0;
  it.operands = {{Access::ReadWrite, uint32_t(p.buffers.size() - 1), {SlotExpr::Mb, -1}}};
  it.imms = {{-7, "", 1}, {3, "dp", 16}};
  it.provenance = 5;
  p.blocks[0].instructions.push_back(it);
  for (double value : {-HUGE_VAL, 1e-45, 0.1, -0.0}) {
    Instruction fill;
    fill.op = Op::Fill;
    fill.n = 4, fill.value = value;
    fill.operands = {{Access::Write, uint32_t(p.buffers.size() - 1), {SlotExpr::Fixed, 1}}};
    p.blocks[0].instructions.push_back(fill);
  }
  uint32_t send = p.findBlock("sendact");
  p.blocks[send].instructions[1].peer = {1, 1, 1, 1};
  std::string text = writeProgram(p);
  EXPECT_NE(text.find(R"("args":["rw view\\of/x@mb-1"])"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("imm":[-7,{"axis":"dp","scale":16,"add":3}])"), std::string::npos) << text;
  Expected<Program> read = parseProgram(text, "role-0.json");
  ASSERT_TRUE(read) << read.message();
  EXPECT_EQ(writeProgram(*read), text);
  EXPECT_EQ(read->kernels[1].launch, p.kernels[1].launch);
  EXPECT_TRUE(std::signbit(read->blocks[0].instructions.back().value));
}

// A slot is microbatch or version modulo the depth, also below zero; an alias adds its offset.
TEST(Program, Addresses) {
  Program p = toy::pipeline().programs[0];
  uint32_t x = p.findBuffer("x");
  EXPECT_EQ(slotOf({SlotExpr::Mb, -1}, 2, {0, 0, 0}), 1u);
  EXPECT_EQ(slotOf({SlotExpr::Mb, -3}, 2, {0, 2, 0}), 1u);
  EXPECT_EQ(slotOf({SlotExpr::Ver, 1}, 3, {0, 7, 4}), 2u);
  EXPECT_EQ(addressOf(p, {Access::Read, x, {SlotExpr::Mb, 0}}, {0, 3, 0}), p.buffers[x].at[1]);
  EXPECT_EQ(instructionId(p, 2, 1), "stage0/sendact:1");
  EXPECT_EQ(describe(p.buffers[x]), "f32[2x4]");
}

// Each mistake is refused with its place.
TEST(Program, Refusals) {
  Program p = toy::pipeline().programs[0];
  const std::tuple<const char *, const char *, const char *> cases[] = {
      {R"("op":"feed")", R"("op":"fed")", "r: blocks.feed[1].op: unknown opcode 'fed'"},
      {R"("op":"feed")", R"("op":"feed","x":1)", "r: blocks.feed[1]: unknown key 'x'"},
      {R"("op":"feed")", R"("op":"feed","op":"feed")", "r: duplicate key 'op'"},
      {R"("n":8)", R"("n":8.0)", "r: blocks.sendact[1].n: expected an integer, got a float"},
      {R"("n":8)", R"("n":-8)", "r: blocks.sendact[1].n: -8 is not in [1, 9223372036854775807]"},
      {R"("n":8)", R"("n":18446744073709551615)", "r: integer 18446744073709551615 does not fit 63 bits"},
      {R"("n":8)", R"("n":9)", "r: blocks.sendact[1]: 9 elements do not fit 'act', f32[2x4]"},
      {R"("n":8)", R"("n":[[[[[[[[[[[[[[8]]]]]]]]]]]]]])", "r: more than 16 levels deep"},
      {R"("par_program":[1,14])", R"("par_program":[2,0])",
       "r: par_program: version 2.0, this runtime reads 1.0 to 1.14"},
      {R"("par_program":[1,14])", R"("par_program":[1,15])",
       "r: par_program: version 1.15, this runtime reads 1.0 to 1.14"},
      {R"("comm":"pf")", R"("comm":"pq")", "r: blocks.sendact[1].comm: no communicator called 'pq'"},
      {R"("q":"forward","comm")", R"("q":"data","comm")",
       "r: blocks.sendact[1]: communicator 'pf' is bound to queue 'forward', not 'data'"},
      {R"("r act")", R"("w act")", "r: blocks.sendact[1]: send takes (r), got (w)"},
      {R"("r act")", R"("r act@ver")",
       "r: blocks.sendact[1]: the slot of 'r act@ver' does not fit its index 'mb' and depth 2"},
      {R"("r act")", R"("r act@mb*2")",
       "r: blocks.sendact[1].args[0]: '@mb*2' is not a slot: '@N', '@mb+N' or '@ver+N'"},
      {R"("r act")", R"("x act")",
       "r: blocks.sendact[1].args[0]: 'x act' is not an operand: 'r|w|rw|acc BUFFER[@SLOT]'"},
      {R"("r act")", R"("r acts")", "r: blocks.sendact[1].args[0]: no buffer called 'acts'"},
      {R"("shape":[2,4],"index":"mb","at")", R"("shape":[-1,4],"index":"mb","at")", "-1 is not in [0, "},
      {R"("shape":[2,4],"index":"mb","at")", R"("shape":[1099511627776,1099511627776],"index":"mb","at")",
       "has a dim below 0 or more than 2^47 bytes"},
      {R"("index":"none","at":[0])", R"("index":"none","at":[64])",
       "r: buffers.w0: bytes [64, +64) are outside its arena's [0, 64)"},
      {R"("index":"none","at":[0])", R"("index":"none","at":[4])", "r: buffers.w0: offset 4 is not a multiple of 64"},
      {R"("index":"none","at":[0])", R"("index":"none","at":[0,0])", "r: buffers.w0: 2 slots but no index"},
      {R"("name":"act")", R"("name":"x")", "r: buffers[2]: second buffer called 'x'"},
      {R"(["feed",0,0])", R"(["feed",0])", "r: entries.train[0]: a run is [block, microbatch, version]"},
      {R"(["feed",0,0])", R"(["food",0,0])", "r: entries.train[0][0]: no block called 'food'"},
      {R"("depth":2)", R"("depth":0)", "r: events[2].depth: 0 is not in [1, 1048576]"},
      {R"("kernels":[])",
       R"("kernels":[{"name":"k","symbol":"k","operands":[["r",4],["w",4],["w",4]],)"
       R"("deps":[[[0]],[[],[]]],"tiles":1,"imms":1}])",
       "r: kernels[0].deps[0]: a kernel's dependence is [operands, immediates]"},
      {R"("kernels":[])",
       R"("kernels":[{"name":"k","symbol":"k","operands":[["r",4],["w",4],["w",4]],)"
       R"("deps":[[[0],[]]],"tiles":1,"imms":1}])",
       "r: kernels.k.deps: 1 dependences for 2 operands that are written"},
      {R"("kernels":[])",
       R"("kernels":[{"name":"k","symbol":"k","operands":[["r",4],["w",4],["w",4]],)"
       R"("deps":[[[0],[]],[[1],[]]],"tiles":1,"imms":1}])",
       "r: kernels.k.deps: the kernel does not read operand 1"},
      {R"("kernels":[])",
       R"("kernels":[{"name":"k","symbol":"k","operands":[["r",4],["w",4],["w",4]],)"
       R"("deps":[[[0],[]],[[],[1]]],"tiles":1,"imms":1}])",
       "r: kernels.k.deps: no immediate 1 among 1"},
      {R"("kernels":[])", R"("kernels":[{"name":"k","symbol":"k","operands":[["r"]],"tiles":1,"imms":0}])",
       "r: kernels[0].operands[0]: a kernel's operand is [access, bytes]"},
      {R"("kernels":[])", R"("kernels":[{"name":"k","symbol":"k","operands":[],"tiles":1,"imms":0,"launch":{}}])",
       "r: kernels[0].launch: missing key 'grid'"},
      {R"("kernels":[])",
       R"("kernels":[{"name":"k","symbol":"k","operands":[],)"
       R"("tiles":1,"imms":0,"launch":{"grid":[1,1],"block":[1,1,1],"shared":0}}])",
       "r: kernels[0].launch.grid: three sizes: x, y and z"},
      {R"("lda":4)", R"("lda":3)", "r: calls.product: a leading stride is shorter than its row"},
      {R"("kind":"matmul")", R"("kind":"conv")", "r: calls.product: unknown kind 'conv'"},
  };
  for (const auto &[from, to, message] : cases) {
    Expected<Program> read = parseProgram(edited(p, from, to), "r");
    ASSERT_FALSE(read) << "accepted " << to;
    EXPECT_NE(read.message().find(message), std::string::npos) << read.message();
  }
}

// No prefix and no single changed byte of a program or a manifest crashes the reader.
TEST(Program, HostileBytes) {
  Bundle bundle = toy::groups();
  for (std::string text : {writeProgram(bundle.programs[0]), writeManifest(bundle.manifest)}) {
    for (size_t i = 0; i < text.size(); i += 3) {
      (void)parseProgram(text.substr(0, i), "r");
      (void)parseManifest(text.substr(0, i), "m");
      for (char c : {'9', '"', '-', '\0', '\xff', '{'}) {
        std::string changed = text;
        changed[i] = c;
        (void)parseProgram(changed, "r");
        (void)parseManifest(changed, "m");
      }
    }
  }
}

// A bundle is written, read and replaced; a changed byte or another folder is refused.
TEST(Bundle, WriteReadReplace) {
  Bundle bundle = toy::pipeline();
  bundle.provenance = {"node_MatMul_1 · h.0", "b"};
  bundle.blobs = {{"kernels-x86.so", std::string(100, 'k')}};
  std::string folder = scratch("write");
  for (int i = 0; i < 2; ++i) {
    Expected<Manifest> written = writeBundle(folder, bundle);
    ASSERT_TRUE(written) << written.message();
    Expected<Bundle> read = readBundle(folder);
    ASSERT_TRUE(read) << read.message();
    EXPECT_EQ(read->manifest.bundleHash, written->bundleHash);
    EXPECT_EQ(read->provenance, bundle.provenance);
    EXPECT_EQ(writeProgram(read->programs[1]), writeProgram(bundle.programs[1]));
  }
  std::ofstream(folder + "/kernels-x86.so", std::ios::in | std::ios::out) << 'x';
  EXPECT_TRUE(readPrograms(folder));
  // The manifest's own hash, and files that are none.
  auto messageOf = [&](auto change) {
    std::string manifest = folder + "/manifest.json", kept = textOf(manifest);
    change(manifest);
    Expected<Bundle> read = readPrograms(folder);
    std::filesystem::remove_all(manifest);
    std::ofstream(manifest) << kept;
    return read ? std::string("accepted") : read.message();
  };
  std::string hash = readPrograms(folder)->manifest.bundleHash, other(64, '0');
  EXPECT_EQ(messageOf([&](const std::string &manifest) {
              std::string text = textOf(manifest);
              std::ofstream(manifest) << text.replace(text.find(hash), 64, other);
            }),
            "manifest.json: bundle: the hash of its files is not " + other);
  EXPECT_EQ(messageOf([](const std::string &manifest) {
              std::filesystem::remove(manifest);
              std::filesystem::create_directory(manifest);
            }),
            folder + "/manifest.json: cannot open: a folder, not a plain file");
  EXPECT_EQ(messageOf([](const std::string &manifest) { std::filesystem::resize_file(manifest, (256 << 20) + 1); }),
            folder + "/manifest.json: cannot open: 268435457 bytes, at most 268435456 are read");
  Expected<Bundle> changed = readBundle(folder);
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.message(), "kernels-x86.so: its SHA-256 is not that of the manifest");
  std::ofstream(folder + "/role-1.json", std::ios::app) << '\n';
  Expected<Bundle> longer = readPrograms(folder);
  ASSERT_FALSE(longer);
  EXPECT_NE(longer.message().find("role-1.json: "), std::string::npos);
  EXPECT_NE(longer.message().find("the manifest says"), std::string::npos);
  std::filesystem::remove_all(folder);

  std::filesystem::create_directories(folder + "/mine");
  Expected<Manifest> refused = writeBundle(folder, bundle);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.message(), folder + ": exists and is not a bundle, so it is not replaced");
  EXPECT_TRUE(std::filesystem::exists(folder + "/mine"));
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(readBundle(folder));

  std::filesystem::create_symlink(folder, folder);
  Expected<Manifest> loop = writeBundle(folder, bundle);
  ASSERT_FALSE(loop);
  EXPECT_EQ(loop.message(), folder + ": cannot open: Too many levels of symbolic links");
  std::filesystem::remove(folder);
  std::ofstream(folder) << "mine";
  Expected<Manifest> inside = writeBundle(folder + "/x", bundle);
  ASSERT_FALSE(inside);
  EXPECT_EQ(inside.message(), folder + "/x: cannot create: Not a directory");
  std::filesystem::remove(folder);
}

// Contradictions within a manifest are refused with their place. Up to 1.9 one limit held for all, or one for each
// index of a dim.
TEST(Manifest, LimitsAsTheyWere) {
  Manifest manifest = toy::pipeline().manifest;
  manifest.inputs[0].limits = {{1, 4321}};
  std::string text = writeManifest(manifest), now = R"("limits":[{"count":1,"limit":4321}])";
  auto readAs = [&](const std::string &before) {
    std::string old = text;
    EXPECT_NE(old.find(now), std::string::npos);
    Expected<Manifest> read = parseManifest(old.replace(old.find(now), now.size(), before), "m");
    return read ? read->inputs[0].limits : std::vector<Limits>{{1, 0, false, -1}};
  };
  ASSERT_EQ(manifest.inputs[0].shape.back(), 4);
  int64_t dim = int64_t(manifest.inputs[0].shape.size()) - 1;
  EXPECT_EQ(readAs(R"("limit":0)"), std::vector<Limits>());
  EXPECT_EQ(readAs(R"("limit":7,"from_end":true)"), (std::vector<Limits>{{1, 7, true}}));
  EXPECT_EQ(readAs(R"("limit":7,"ignored":-100)"), (std::vector<Limits>{{1, 7, false, -100}}));
  EXPECT_EQ(readAs(R"("limit":9,"limit_dim":)" + std::to_string(dim) + R"(,"limits":[0,9,0,3])"),
            (std::vector<Limits>{{1, 0}, {1, 9}, {1, 0}, {1, 3}}));
}

TEST(Manifest, Refusals) {
  auto refused = [](auto change) {
    Manifest manifest = toy::pipeline().manifest;
    change(manifest);
    Expected<Manifest> read = parseManifest(writeManifest(manifest), "m");
    return read ? std::string("accepted") : read.message();
  };
  EXPECT_EQ(refused([](Manifest &m) { m.ranks[0].role = 7; }), "m: ranks[0]: no role 7, there are 2");
  EXPECT_EQ(refused([](Manifest &m) { m.device = "tpu"; }), "m: device: unknown device 'tpu': cpu or cuda");
  EXPECT_EQ(refused([](Manifest &m) { m.ranks[0].coordinate = {1, 0}; }),
            "m: ranks[1]: another rank has the same coordinates");
  EXPECT_EQ(refused([](Manifest &m) { m.ranks[1].coordinate = {2, 0}; }),
            "m: ranks[1]: coordinate 2 on axis 'pp' of size 2");
  EXPECT_EQ(refused([](Manifest &m) { m.communicators[0].groups = {{0, 2}}; }),
            "m: communicators.pf: no rank 2, there are 2");
  EXPECT_EQ(refused([](Manifest &m) { m.communicators[0].groups = {{0, 0}}; }),
            "m: communicators.pf: rank 0 stands there twice");
  EXPECT_EQ(refused([](Manifest &m) { m.tensors[0].layout.parts[0].size = {4, 5}; }),
            "m: tensors.w0: in dim 1, [0, +5) is not in the global 4 or longer than the local 4");
  EXPECT_EQ(refused([](Manifest &m) { m.inputs[0].limits = {{1, 7}, {2, 9}}; }),
            "m: inputs.x: limits of 3 elements do not fill the 4 of a row");
  EXPECT_EQ(refused([](Manifest &m) { m.inputs[0].limits = {{1, 7}, {4, 9}}; }),
            "m: inputs.x: limits of more than the 4 elements of a row");
  EXPECT_EQ(refused([](Manifest &m) { m.tensors[0].stored = {15}; }),
            "m: tensors.w0: stored and global shape have different numbers of elements, or more than 2^47");
  EXPECT_EQ(refused([](Manifest &m) { m.tensors[0].source = Source{"../secret", 0, 64, DType::F32}; }),
            "m: tensors.w0: source '../secret' leaves the model's folder");
  EXPECT_EQ(refused([](Manifest &m) { m.tensors[0].aliases = {"w1"}; }),
            "m: tensors.w0: the alias 'w1' is the name of a tensor");
  EXPECT_EQ(refused([](Manifest &m) { m.tensors[0].transposed = {"w1"}; }),
            "m: tensors.w0: 'w1' is no transposed matrix with a name of its own");
  EXPECT_EQ(refused([](Manifest &m) { m.tensors[1].name = "w0"; }), "m: tensors: 'w0' stands there twice");
  EXPECT_EQ(refused([](Manifest &m) { m.planHash = "none"; }), "m: plan: 'none' is no hash in lower-case hex digits");
  EXPECT_EQ(refused([](Manifest &m) { m.tensors[0].name = std::string("w\0", 2); }),
            "m: tensors: a name holds the control character 0x00");
  EXPECT_EQ(refused([](Manifest &m) { m.inputs[0].name = "x\nerror: y"; }),
            "m: inputs: a name holds the control character 0x0a");
  EXPECT_EQ(refused([](Manifest &m) { m.files = {{"a\nb 1 2", 1, sha256("")}}; }),
            "m: files: a name holds the control character 0x0a");
  EXPECT_EQ(refused([](Manifest &m) { m.model.name = ""; }), "m: model: an empty name");
  EXPECT_EQ(refused([](Manifest &m) { m.files = {{"../x", 1, sha256("")}}; }),
            "m: files: '../x' is not the plain name of a file");
  EXPECT_EQ(refused([](Manifest &m) { m.model.sha256 = "abc"; }),
            "m: model.sha256: 'abc' is not a SHA-256 in 64 lower-case hex digits");
}

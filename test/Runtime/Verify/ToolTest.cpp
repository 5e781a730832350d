// par-verify as it is called.
#include "ToyBundles.h"
#include "par/format/Sha256.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

using namespace par;

namespace {
/// Exit status and all output of par-verify.
std::pair<int, std::string> call(const std::string &arguments) {
  FILE *pipe = popen((std::string(PAR_TEST_BIN "/par-verify ") + arguments + " 2>&1").c_str(), "r");
  std::string text;
  for (int c; pipe && (c = std::fgetc(pipe)) != EOF;)
    text += char(c);
  int status = pclose(pipe);
  return {WEXITSTATUS(status), text};
}
} // namespace

// Proof, counterexample, wrong arguments and no bundle have the exit statuses 0, 3, 2 and 1.
TEST(Tool, ExitStatusAndText) {
  std::string folder = std::filesystem::temp_directory_path() / ("par-tool-" + std::to_string(getpid()));
  ASSERT_TRUE(format::writeBundle(folder, toy::stack({})));
  EXPECT_EQ(call(folder),
            std::pair(0, folder + ": proved: 2 programs, 8 ranks: 208 communications, 8 groups, longest wait "
                                  "chain 30; arenas 0.008 and 0.007 MiB; hashes match\n"));
  EXPECT_EQ(
      call(folder + " --json --rank 3").second.find("{\"bundle\":\"" + folder + "\",\"proved\":true,\"programs\":2"),
      0u);
  EXPECT_EQ(call(folder + " --rank 8"),
            std::pair(2, "par-verify: error: --rank 8: " + folder + " has 8 ranks, the first is 0\n"));
  EXPECT_EQ(call(folder + " --rank x"),
            std::pair(2, std::string("par-verify: error: --rank takes a number, got 'x'\n")));
  EXPECT_EQ(call("--loud").first, 2);
  EXPECT_NE(call("--loud").second.find("par-verify: error: unexpected argument '--loud'"), std::string::npos);
  EXPECT_EQ(call("").first, 2);
  EXPECT_EQ(call("/nonexistent"),
            std::pair(1, std::string("/nonexistent: error: not a bundle: it has no manifest.json\n")));

  format::Bundle broken = toy::groups();
  for (format::Program &program : broken.programs)
    program.blocks[0].instructions.erase(program.blocks[0].instructions.begin() + 7);
  ASSERT_TRUE(format::writeBundle(folder, broken));
  auto [status, text] = call(folder);
  EXPECT_EQ(status, 3);
  EXPECT_EQ(text.find(folder + ": error: deadlock: ranks 0 and 1 wait for each other in entry train (V3)\n  rank 0  "
                               "rank0/step:7  send f32[8] to 1"),
            0u)
      << text;
  EXPECT_NE(call(folder + " --json").second.find("\"proved\":false,\"property\":\"V3\",\"message\":\"deadlock: "),
            std::string::npos);
  EXPECT_EQ(call(folder + " --rank 0 --rank 1"),
            std::pair(2, std::string("par-verify: error: --rank is given twice, with 0 and '1'; it takes one\n")));
  EXPECT_EQ(call("$(printf 'no\\033[2J')"),
            std::pair(1, std::string("no?[2J: error: not a bundle: it has no manifest.json\n")));
  std::filesystem::resize_file(folder + "/role-1.json", 100);
  EXPECT_NE(call(folder).second.find(": error: role-1.json: 100 bytes, the manifest says "), std::string::npos);
  EXPECT_EQ(call(folder).first, 1) << "what cannot be read is no bundle, and nothing was refuted";
  std::filesystem::remove_all(folder);
}

// Every file of a bundle that runs is listed, and so hashed; a change of the list must be explicit.
TEST(Tool, ListsWhatItIsRunFrom) {
  std::string folder = std::filesystem::temp_directory_path() / ("par-listed-" + std::to_string(getpid()));
  format::Bundle bundle = toy::stack({});
  bundle.blobs = {{"kernels-x86.so", "code"}};
  format::Expected<format::Manifest> manifest = format::writeBundle(folder, bundle);
  ASSERT_TRUE(manifest);
  auto with = [&](auto keep) {
    format::Manifest changed = *manifest;
    std::erase_if(changed.files, [&](const format::File &file) { return !keep(file.name); });
    std::string lines;
    for (const format::File &file : changed.files)
      lines += file.name + " " + std::to_string(file.size) + " " + file.sha256 + "\n";
    changed.bundleHash = format::sha256(lines);
    std::ofstream(folder + "/manifest.json") << format::writeManifest(changed);
    return call(folder);
  };
  EXPECT_EQ(with([](const std::string &) { return true; }).first, 0);
  EXPECT_EQ(with([](const std::string &) { return false; }),
            std::pair(1, folder + ": error: manifest.json: files: none is listed, so nothing is hashed (V1)\n"));
  EXPECT_EQ(with([](const std::string &name) { return name != "provenance.json"; }),
            std::pair(1, folder + ": error: manifest.json: files: provenance.json is missing (V1)\n"));
  EXPECT_EQ(with([](const std::string &name) { return name != "role-1.json"; }),
            std::pair(1, folder + ": error: manifest.json: files: role-1.json is missing (V1)\n"));
  EXPECT_EQ(with([](const std::string &name) { return name != "kernels-x86.so"; }).first, 0)
      << "it calls no kernel of it";
  for (format::Program &program : bundle.programs)
    for (format::Kernel &kernel : program.kernels)
      kernel.builtin = false;
  std::filesystem::remove_all(folder); // which holds a file that is no longer listed
  manifest = format::writeBundle(folder, bundle);
  ASSERT_TRUE(manifest);
  auto [status, text] = with([](const std::string &name) { return name != "kernels-x86.so"; });
  EXPECT_EQ(status, 1);
  EXPECT_EQ(text.find(folder + ": error: manifest.json: files: kernels-x86.so, which holds kernel '"), 0u) << text;
  std::filesystem::remove_all(folder);
}

// Symbols that programs call are in the file of kernels, or nothing is proved; a loaded file holds only code.
TEST(Tool, LooksAtTheFilesOfKernels) {
  std::string folder = std::filesystem::temp_directory_path() / ("par-kernels-" + std::to_string(getpid()));
  format::Bundle bundle = toy::stack({});
  for (format::Program &program : bundle.programs)
    for (format::Kernel &kernel : program.kernels) {
      kernel.builtin = false;
      kernel.symbol = "scale";
    }
  auto with = [&](const std::string &object) {
    std::ifstream in(std::string(PAR_TEST_KERNELS) + "/" + object, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    bundle.blobs = {{"kernels-x86.so", bytes.empty() ? object : bytes}};
    EXPECT_TRUE(format::writeBundle(folder, bundle));
    return call(folder);
  };
  EXPECT_EQ(with("good.so").first, 0);
  EXPECT_EQ(with("garbage"),
            std::pair(3, folder + ": error: kernels-x86.so: is not an ELF shared object for x86-64 (V1)\n"));
  EXPECT_EQ(with("undefined.so"),
            std::pair(3, folder + ": error: kernels-x86.so: has an undefined symbol; a kernel object has no "
                                  "dependency, no undefined symbol and no initialiser (V1)\n"));
  format::Kernel &kernel = bundle.programs[0].kernels[0];
  kernel.symbol = "absent";
  EXPECT_EQ(with("good.so"), std::pair(3, folder + ": error: kernels-x86.so: kernel \"" + kernel.name +
                                              "\" is not in it: no symbol absent (V1)\n"));
  std::filesystem::remove_all(folder);
}

// Texts of a bundle are printed without a terminal's control characters, and a zero ends no line.
TEST(Tool, PrintsNoControlCharacters) {
  std::string folder = std::filesystem::temp_directory_path() / ("par-control-" + std::to_string(getpid()));
  format::Bundle bundle = toy::stack({});
  bundle.provenance = {"node \x1b[2J"};
  format::Expected<format::Manifest> manifest = format::writeBundle(folder, bundle);
  ASSERT_TRUE(manifest);
  EXPECT_EQ(format::readBundle(folder)->provenance.at(0), "node ?[2J");
  auto contentOf = [&](const std::string &name) {
    std::ifstream in(folder + "/" + name);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  auto with = [&](const std::string &name, const std::string &from, const std::string &to) {
    std::string kept = contentOf(name), text = kept, lines;
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    std::ofstream(folder + "/" + name) << text.replace(at, from.size(), to);
    if (name != "manifest.json") {
      format::Manifest mended = *manifest;
      for (format::File &file : mended.files) {
        if (file.name == name)
          file = {name, text.size(), format::sha256(text)};
        lines += file.name + " " + std::to_string(file.size) + " " + file.sha256 + "\n";
      }
      mended.bundleHash = format::sha256(lines);
      std::ofstream(folder + "/manifest.json") << format::writeManifest(mended);
    }
    std::string said = call(folder).second;
    std::ofstream(folder + "/" + name) << kept;
    std::ofstream(folder + "/manifest.json") << format::writeManifest(*manifest);
    return said;
  };
  std::string error = folder + ": error: ";
  EXPECT_EQ(with("provenance.json", "node ?", "node \\u001b"),
            error + "provenance.json: lines[0]: a line holds a control character: 'node ?[2J' (V1)\n");
  EXPECT_EQ(with("provenance.json", "\"lines\"", "\"li\\u0000nes\""),
            error + "provenance.json: unknown key 'li?nes' (V1)\n");
  EXPECT_EQ(with("manifest.json", "\"device\":\"cpu\"", "\"device\":\"c\\u0000\\u001b[2J\""),
            error + "manifest.json: device: unknown device 'c??[2J': cpu or cuda (V1)\n");
  EXPECT_EQ(with("manifest.json", "\"role-0.json\"", "\".\\u001b[2J\""),
            error + "manifest.json: files: '.?[2J' is not the plain name of a file (V1)\n");
  std::filesystem::remove_all(folder);
}

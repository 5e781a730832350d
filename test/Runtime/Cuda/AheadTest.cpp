// A session on `cuda`, whose driver is a stub: it reads the rows of the next run beside the one before.
#include "CudaToolFixture.h"
#include "api/Caller.h"
#include "api/Start.h"

#include <cstring>
#include <sys/mman.h>

using namespace par;

namespace {

/// The inputs of the toy, i64[2, 16] each, on a page of its own.
class Batch {
public:
  Batch() : page(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Batch() { munmap(page, bytes); }
  Batch(const Batch &) = delete;
  /// Whoever reads it from now on is ended by SIGSEGV.
  void hide() { ASSERT_EQ(mprotect(page, bytes, PROT_NONE), 0); }
  core::FedArray array(size_t input) const {
    return {format::DType::I64, {2, 16}, static_cast<const std::byte *>(page) + input * 256};
  }

private:
  static constexpr size_t bytes = 4096;
  void *page;
};

class AheadTest : public CudaTool {
protected:
  /// Without limits, for which the caller's own check reads the rows.
  std::unique_ptr<api::Caller> open() {
    format::Bundle bundle = forCuda(toy::training());
    for (format::Input &input : bundle.manifest.inputs)
      input.limits.clear();
    return std::make_unique<api::Caller>(api::startRanks({write(bundle), "--init"}, false, ""));
  }
};

TEST_F(AheadTest, rowsThatAreToldAreReadInTheRunBefore) {
  std::unique_ptr<api::Caller> caller = open();
  Batch batches[6];
  for (const char *input : {"input_ids", "labels"})
    caller->feeding().feed(input, batches[0].array(input[0] == 'l'));
  for (int step = 0; step < 5; ++step) {
    for (const char *input : {"input_ids", "labels"})
      caller->feeding().feedAhead(input, batches[step + 1].array(input[0] == 'l'));
    caller->run("train");
    batches[step + 1].hide();
  }
  caller->run("train");
  EXPECT_EQ(caller->lastAnswer().position.step, 6u);
  caller->end();
}

} // namespace

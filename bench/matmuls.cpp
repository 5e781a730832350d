// The matmuls and convolutions of a bundle, computed by bare oneDNN: the bound for the runtime.
//
// Reads one of these a line,
//     matmul transA transB m n k lda ldb ldc batch beta
//     convolution PASS and the immediates of the builtin (PASS: 0 forward, 1 of the input, 2 of the filter)
// and answers each with the quickest and the median seconds of its repetitions (CPU time of the calling thread:
// neighbours do not count). Matmuls are sgemm's. Convolutions are in the library's preferred layouts: the measured time
// holds no reorders.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <dnnl.hpp>
#include <functional>
#include <iostream>
#include <memory>
#include <sstream>
#include <vector>

namespace {

struct Product {
  int transA, transB;
  int64_t m, n, k, lda, ldb, ldc, batch;
  float beta;
};

using Buffer = std::unique_ptr<float, decltype(&std::free)>;

/// `count` floats of `value`, on a 64-byte boundary: a misaligned right-hand matrix loses a fifth.
Buffer filled(int64_t count, float value) {
  auto *data = static_cast<float *>(std::aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64));
  std::fill_n(data, count, value);
  return {data, &std::free};
}

double threadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Seconds of each repetition, quickest first; the one that warms up is left out.
std::vector<double> measure(int repetitions, const std::function<void()> &run) {
  std::vector<double> seconds;
  for (int turn = 0; turn <= repetitions; ++turn) {
    double start = threadSeconds();
    run();
    if (turn > 0)
      seconds.push_back(threadSeconds() - start);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

std::vector<double> measureProduct(const Product &p, int repetitions) {
  int64_t sizeA = (p.transA ? p.k : p.m) * p.lda, sizeB = (p.transB ? p.n : p.k) * p.ldb, sizeC = p.m * p.ldc;
  Buffer a = filled(sizeA * p.batch, 0.5f), b = filled(sizeB * p.batch, 0.25f);
  Buffer c = filled(sizeC * p.batch, 0.0f);
  return measure(repetitions, [&] {
    for (int64_t i = 0; i < p.batch; ++i)
      dnnl_sgemm(p.transA ? 'T' : 'N', p.transB ? 'T' : 'N', p.m, p.n, p.k, 1.0f, a.get() + i * sizeA, p.lda,
                 b.get() + i * sizeB, p.ldb, p.beta, c.get() + i * sizeC, p.ldc);
  });
}

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;

/// Runs a primitive over the tensors of these descriptors.
std::vector<double> measurePrimitive(const dnnl::engine &engine, const dnnl::primitive &primitive,
                                     const std::vector<std::pair<int, Desc>> &tensors, int repetitions) {
  std::vector<Buffer> buffers;
  std::unordered_map<int, dnnl::memory> arguments;
  for (const auto &[argument, desc] : tensors) {
    buffers.push_back(filled(int64_t(desc.get_size() / sizeof(float)) + 16, 0.25f));
    arguments.emplace(argument, dnnl::memory(desc, engine, buffers.back().get()));
  }
  dnnl::stream stream(engine);
  return measure(repetitions, [&] {
    primitive.execute(stream, arguments);
    stream.wait();
  });
}

/// `imm` as the runtime's table has it: n, groups, c, o, then three of each of i, k, y, s, l, h, d.
std::vector<double> measureConvolution(int pass, const std::vector<int64_t> &imm, int repetitions) {
  int64_t n = imm[0], groups = imm[1], c = imm[2], o = imm[3];
  int first = imm[4] == 1 && imm[7] == 1 && imm[10] == 1 ? 1 : 0;
  auto spatial = [&](Dims dims, int at, int64_t less = 0) {
    for (int dim = first; dim < 3; ++dim)
      dims.push_back(imm[at + dim] - less);
    return dims;
  };
  auto any = [](const Dims &dims) { return Desc(dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any); };
  Desc x = any(spatial({n, groups * c}, 4)), y = any(spatial({n, o}, 10));
  Desc w = any(spatial(groups == 1 ? Dims{o, c} : Dims{groups, o / groups, c}, 7));
  Dims stride = spatial({}, 13), low = spatial({}, 16), high = spatial({}, 19), gap = spatial({}, 22, 1);
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  auto direct = dnnl::algorithm::convolution_direct;
  dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, direct, x, w, y, stride, gap, low, high}, engine);
  if (pass == 0)
    return measurePrimitive(engine, dnnl::convolution_forward(forward),
                            {{DNNL_ARG_SRC, forward.src_desc()},
                             {DNNL_ARG_WEIGHTS, forward.weights_desc()},
                             {DNNL_ARG_DST, forward.dst_desc()}},
                            repetitions);
  if (pass == 1) {
    dnnl::convolution_backward_data::primitive_desc chosen({direct, x, w, y, stride, gap, low, high}, engine, forward);
    return measurePrimitive(engine, dnnl::convolution_backward_data(chosen),
                            {{DNNL_ARG_DIFF_DST, chosen.diff_dst_desc()},
                             {DNNL_ARG_WEIGHTS, chosen.weights_desc()},
                             {DNNL_ARG_DIFF_SRC, chosen.diff_src_desc()}},
                            repetitions);
  }
  dnnl::convolution_backward_weights::primitive_desc chosen({direct, x, w, y, stride, gap, low, high}, engine, forward);
  return measurePrimitive(engine, dnnl::convolution_backward_weights(chosen),
                          {{DNNL_ARG_SRC, chosen.src_desc()},
                           {DNNL_ARG_DIFF_DST, chosen.diff_dst_desc()},
                           {DNNL_ARG_DIFF_WEIGHTS, chosen.diff_weights_desc()}},
                          repetitions);
}

} // namespace

int main(int argc, char **argv) {
  int repetitions = argc > 1 ? std::max(1, std::atoi(argv[1])) : 3;
  for (std::string line, kind; std::getline(std::cin, line);) {
    std::istringstream fields(line);
    std::vector<double> seconds;
    fields >> kind;
    if (kind == "matmul") {
      Product p;
      fields >> p.transA >> p.transB >> p.m >> p.n >> p.k >> p.lda >> p.ldb >> p.ldc >> p.batch >> p.beta;
      seconds = measureProduct(p, repetitions);
    } else {
      int pass = 0;
      fields >> pass;
      std::vector<int64_t> imm(25);
      for (int64_t &value : imm)
        fields >> value;
      seconds = measureConvolution(pass, imm, repetitions);
    }
    std::cout << seconds.front() << ' ' << seconds[seconds.size() / 2] << std::endl;
  }
}

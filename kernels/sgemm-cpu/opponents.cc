// Sets candidates for `matmul` beside the matrix products of OpenBLAS, oneDNN and BLIS.
//
//   g++ -std=c++20 -O2 -Iinclude kernels/sgemm-cpu/opponents.cc -o sgemm_opponents -ldl
//   g++ -std=c++20 -O3 -march=native -fopenmp -fPIC -shared -Iinclude
//       kernels/sgemm-cpu/14_threads.cpp -o 14_threads.so
//   OPENBLAS_CORETYPE=SkylakeX OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 BLIS_NUM_THREADS=1
//       taskset -c 1 ./sgemm_opponents 1024 1024 1024 ./14_threads.so
//
// Arguments: rows, inner, columns, shared objects. All take turns in one process, on matrices that
// no cache holds any more, for about ten seconds; printed are the medians and the best times.
// Libraries are loaded where they are found (Debian: libopenblas0, libdnnl2, libblis4) and left out
// elsewhere. Libraries that do not know the processor fall back to slow kernels: OpenBLAS takes
// OPENBLAS_CORETYPE, BLIS 0.9 BLIS_ARCH_TYPE (0 is AVX-512).
// Not part of the build, and no judge: nothing is checked but one element.
#include <assay/kernel.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace {

struct Shape {
  int64_t rows, inner, columns;
  double Operations() const { return 2.0 * double(rows) * double(inner) * double(columns); }
  size_t Bytes() const {
    return sizeof(float) * size_t(rows * inner + inner * columns + rows * columns);
  }
};

using Product = std::function<void(float*, float*, float*)>;

struct Contender {
  std::string name;
  Product product;
  std::vector<double> seconds;
};

struct Matrices {
  std::vector<float> a, b, c;
};

using CblasSgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*,
                            int, float, float*, int);
using DnnlSgemm = int (*)(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t,
                          const float*, int64_t, float, float*, int64_t);

void* Find(const char* library, const char* name) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  return handle ? dlsym(handle, name) : nullptr;
}

Product Cblas(const char* library, Shape shape) {
  const auto sgemm = reinterpret_cast<CblasSgemm>(Find(library, "cblas_sgemm"));
  if (!sgemm) return nullptr;
  const int m = int(shape.rows), k = int(shape.inner), n = int(shape.columns);
  constexpr int kRowMajor = 101, kNoTranspose = 111;
  return [=](float* a, float* b, float* c) {
    sgemm(kRowMajor, kNoTranspose, kNoTranspose, m, n, k, 1, a, k, b, n, 0, c, n);
  };
}

Product Dnnl(const char* library, Shape shape) {
  const auto sgemm = reinterpret_cast<DnnlSgemm>(Find(library, "dnnl_sgemm"));
  if (!sgemm) return nullptr;
  return [=](float* a, float* b, float* c) {
    sgemm('N', 'N', shape.rows, shape.columns, shape.inner, 1, a, shape.inner, b, shape.columns, 0,
          c, shape.columns);
  };
}

Product Candidate(const char* library, Shape shape) {
  const auto* kernel = static_cast<const AssayKernel*>(Find(library, "assay_kernel_v1"));
  if (!kernel) return nullptr;
  return [=](float* a, float* b, float* c) {
    std::array<std::array<int64_t, 2>, 3> sizes{
        {{shape.rows, shape.inner}, {shape.inner, shape.columns}, {shape.rows, shape.columns}}};
    std::array<std::array<int64_t, 2>, 3> strides{
        {{shape.inner, 1}, {shape.columns, 1}, {shape.columns, 1}}};
    const std::array<float*, 3> data{a, b, c};
    std::array<DLTensor, 3> tensors{};
    std::array<AssayArgument, 3> arguments{};
    for (size_t i = 0; i < 3; ++i) {
      tensors[i].data = data[i];
      tensors[i].ndim = 2;
      tensors[i].dtype = {2, 32, 1};  // float32
      tensors[i].shape = sizes[i].data();
      tensors[i].strides = strides[i].data();
      arguments[i].tensor = &tensors[i];
    }
    kernel->invoke(arguments.data());
  };
}

double Seconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// As many as fill 96 MB, three at least. The vectors are over-long, so that each start can be moved
// to a cache line.
std::vector<Matrices> Fill(Shape shape) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  const size_t count = std::clamp<size_t>((96u << 20) / shape.Bytes(), 3, 256);
  std::vector<Matrices> slots(count);
  for (Matrices& slot : slots) {
    slot.a.resize(size_t(shape.rows * shape.inner) + 16);
    slot.b.resize(size_t(shape.inner * shape.columns) + 16);
    slot.c.resize(size_t(shape.rows * shape.columns) + 16);
    for (float& x : slot.a) x = normal(generator);
    for (float& x : slot.b) x = normal(generator);
  }
  return slots;
}

float* Aligned(std::vector<float>& values) {
  const auto address = reinterpret_cast<uintptr_t>(values.data());
  return values.data() + (64 - address % 64) % 64 / sizeof(float);
}

// Whether the last element of C is right.
bool Right(Matrices& slot, Shape shape) {
  const float* a = Aligned(slot.a) + (shape.rows - 1) * shape.inner;
  const float* b = Aligned(slot.b) + shape.columns - 1;
  double sum = 0;
  for (int64_t k = 0; k < shape.inner; ++k) sum += double(a[k]) * double(b[k * shape.columns]);
  return std::abs(double(Aligned(slot.c)[shape.rows * shape.columns - 1]) - sum) < 1e-2;
}

void TakeTurns(std::vector<Contender>& contenders, std::vector<Matrices>& slots, Shape shape) {
  const int calls = std::max(1, int(0.004 * 200e9 / shape.Operations()));
  size_t slot = 0;
  const auto run = [&](const Contender& contender) {
    slot = (slot + 1) % slots.size();
    contender.product(Aligned(slots[slot].a), Aligned(slots[slot].b), Aligned(slots[slot].c));
  };
  for (const Contender& contender : contenders) {
    run(contender);
    if (!Right(slots[slot], shape)) std::printf("%s: wrong\n", contender.name.c_str());
  }
  const double end = Seconds() + 10;
  for (size_t round = 0; round < 5 || (round < 200 && Seconds() < end); ++round) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      Contender& contender = contenders[(i + round) % contenders.size()];
      const double begin = Seconds();
      for (int call = 0; call < calls; ++call) run(contender);
      contender.seconds.push_back((Seconds() - begin) / calls);
    }
  }
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) {
    std::printf("usage: %s ROWS INNER COLUMNS [SHARED_OBJECT ...]\n", words[0]);
    return 2;
  }
  const Shape shape{std::atoll(words[1]), std::atoll(words[2]), std::atoll(words[3])};
  std::vector<Contender> contenders;
  const auto enter = [&](const char* name, Product product) {
    if (product)
      contenders.push_back({name, std::move(product), {}});
    else
      std::printf("%s: not found\n", name);
  };
  enter("OpenBLAS", Cblas("libopenblas.so.0", shape));
  enter("oneDNN", Dnnl("libdnnl.so.2", shape));
  enter("BLIS", Cblas("libblis.so.4", shape));
  for (int i = 4; i < count; ++i) enter(words[i], Candidate(words[i], shape));
  std::vector<Matrices> slots = Fill(shape);
  TakeTurns(contenders, slots, shape);
  std::printf("%-24s %12s %12s %10s\n", "", "median [us]", "best [us]", "GFLOP/s");
  for (Contender& contender : contenders) {
    std::vector<double>& seconds = contender.seconds;
    std::sort(seconds.begin(), seconds.end());
    const double median = seconds[seconds.size() / 2];
    std::printf("%-24s %12.1f %12.1f %10.1f\n", contender.name.c_str(), median * 1e6,
                seconds[0] * 1e6, shape.Operations() / median / 1e9);
  }
}

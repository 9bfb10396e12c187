// Sets candidates for `matmul` beside the matrix products of OpenBLAS, oneDNN and BLIS.
//
//   g++ -std=c++20 -O2 -Iinclude kernels/sgemm-cpu/opponents.cc -o sgemm_opponents -ldl
//   g++ -std=c++20 -O3 -march=native -fopenmp -fPIC -shared -Iinclude
//       kernels/sgemm-cpu/14_threads.cpp -o 14_threads.so
//   OPENBLAS_CORETYPE=Cooperlake BLIS_ARCH_TYPE=0 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
//       taskset -c 1 ./sgemm_opponents 1024 1024 1024 rows.jsonl ./14_threads.so
//
// Arguments: rows, inner, columns, a file to which raw results are added, shared objects. All take
// turns in one process, on the same matrices, which no cache holds any more, for about ten seconds
// (200 rounds at most, nine at least). Printed are medians, and the time of each in the last one's,
// round by round: the median, and its interval with a confidence of 95% or more.
// Libraries are loaded where they are found and left out elsewhere. The packages (Debian 12):
// libopenblas0-pthread, libdnnl2, libblis4-serial. scripts/setup does not install the last one.
// Libraries that do not know the processor fall back to slow kernels: OpenBLAS takes
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
#include <ctime>
#include <fstream>
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
  std::string kernels;  // as the library names them, or empty
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

// The answer of a function of a library that says which kernels it has chosen.
std::string Text(const char* library, const char* name) {
  const auto text = reinterpret_cast<const char* (*)()>(Find(library, name));
  return text ? text() : "";
}

// BLIS says it in two steps, after its initialisation.
std::string BlisKernels(const char* library) {
  const auto initialise = reinterpret_cast<void (*)()>(Find(library, "bli_init"));
  const auto id = reinterpret_cast<int (*)()>(Find(library, "bli_arch_query_id"));
  const auto name = reinterpret_cast<const char* (*)(int)>(Find(library, "bli_arch_string"));
  if (!initialise || !id || !name) return "";
  initialise();
  return name(id());
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

// Returns the calls of a turn.
int TakeTurns(std::vector<Contender>& contenders, std::vector<Matrices>& slots, Shape shape) {
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
  for (size_t round = 0; round < 9 || (round < 200 && Seconds() < end); ++round) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      Contender& contender = contenders[(i + round) % contenders.size()];
      const double begin = Seconds();
      for (int call = 0; call < calls; ++call) run(contender);
      contender.seconds.push_back((Seconds() - begin) / calls);
    }
  }
  return calls;
}

// The median, and the order statistics that hold the true one with a confidence of 95% or more.
std::array<double, 3> Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t count = values.size();
  double chance = std::pow(0.5, double(count));  // of `below` values under the true median
  double tail = 0;
  size_t below = 0;
  while (below < count / 2 && tail + chance <= 0.025) {
    tail += chance;
    chance *= double(count - below) / double(below + 1);
    ++below;
  }
  const size_t low = below > 0 ? below - 1 : 0;
  return {values[count / 2], values[low], values[count - 1 - low]};
}

void Print(const std::vector<Contender>& contenders, Shape shape) {
  const std::vector<double>& last = contenders.back().seconds;
  std::printf("%-20s %12s %9s %18s\n", "", "median [us]", "GFLOP/s", "time in the last's");
  for (const Contender& contender : contenders) {
    std::vector<double> ratios;
    for (size_t i = 0; i < last.size(); ++i) ratios.push_back(contender.seconds[i] / last[i]);
    const double median = Median(contender.seconds)[0];
    const auto [ratio, low, high] = Median(ratios);
    std::printf("%-20s %12.1f %9.1f %6.3f [%.3f, %.3f] %s\n", contender.name.c_str(), median * 1e6,
                shape.Operations() / median / 1e9, ratio, low, high, contender.kernels.c_str());
  }
}

// "unknown" where /proc does not say it.
std::string Processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

// Adds one row of JSON a contender.
bool Add(const char* path, const std::vector<Contender>& contenders, Shape shape, int calls) {
  std::FILE* file = std::fopen(path, "a");
  if (!file) return false;
  const std::time_t now = std::time(nullptr);
  std::array<char, 32> date{};
  std::strftime(date.data(), date.size(), "%FT%TZ", std::gmtime(&now));
  for (const Contender& contender : contenders) {
    std::fprintf(file, R"({"date": "%s", "cpu": "%s", )", date.data(), Processor().c_str());
    std::fprintf(file, R"("rows": %lld, "inner": %lld, "columns": %lld, )",
                 static_cast<long long>(shape.rows), static_cast<long long>(shape.inner),
                 static_cast<long long>(shape.columns));
    std::fprintf(file, R"("contender": "%s", "kernels": "%s", "calls": %d, "us": [)",
                 contender.name.c_str(), contender.kernels.c_str(), calls);
    const char* comma = "";
    for (double seconds : contender.seconds) {
      std::fprintf(file, "%s%.2f", comma, seconds * 1e6);
      comma = ", ";
    }
    std::fprintf(file, "]}\n");
  }
  return std::fclose(file) == 0;
}

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

int main(int count, char** words) {
  if (count < 5) {
    std::printf("usage: %s ROWS INNER COLUMNS FILE [SHARED_OBJECT ...]\n", words[0]);
    return 2;
  }
  const Shape shape{std::atoll(words[1]), std::atoll(words[2]), std::atoll(words[3])};
  std::vector<Contender> contenders;
  const auto enter = [&](const std::string& name, const std::string& kernels, Product product) {
    if (product)
      contenders.push_back({name, kernels, std::move(product), {}});
    else
      std::printf("%s: not found\n", name.c_str());
  };
  constexpr const char *kOpenBlas = "libopenblas.so.0", *kBlis = "libblis.so.4";
  enter("OpenBLAS", Text(kOpenBlas, "openblas_get_corename"), Cblas(kOpenBlas, shape));
  enter("oneDNN", "", Dnnl("libdnnl.so.2", shape));
  enter("BLIS", BlisKernels(kBlis), Cblas(kBlis, shape));
  for (int i = 5; i < count; ++i) enter(FileName(words[i]), "", Candidate(words[i], shape));
  if (contenders.empty()) return 1;
  std::vector<Matrices> slots = Fill(shape);
  const int calls = TakeTurns(contenders, slots, shape);
  Print(contenders, shape);
  return Add(words[4], contenders, shape, calls) ? 0 : 1;
}

// The one header that a native candidate needs: typed views of the arguments, and the entry that
// Assay calls. C++17 or newer, or C11; docs/candidate-abi.md has the rules. It is light, since
// every candidate compiles it. Arguments are inputs, then parameters, then outputs:
//
//   #include <assay/kernel.h>
//   ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y) {
//     for (int64_t row = 0; row < x.size(0); ++row) ...
//   }
//
// and in C:
//
//   ASSAY_KERNEL_C(ASSAY_TENSOR(const float, 2, x), ASSAY_TENSOR(float, 2, y)) {
//     for (int64_t row = 0; row < x_size[0]; ++row) ...
//   }
//
// and in CUDA, where tensors lie on the device:
//
//   ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y, cudaStream_t stream) {
//     twice<<<x.size(0), 256, 0, stream>>>(x, y);
//   }
#ifndef ASSAY_KERNEL_H_
#define ASSAY_KERNEL_H_

#include <dlpack/dlpack.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#else
#include <stdbool.h>
#endif

// ---- The C ABI between the host and a candidate. ----

#define ASSAY_ABI_VERSION 1
#define ASSAY_RANK_MAX 8

typedef enum {
  ASSAY_KIND_TENSOR = 1,
  ASSAY_KIND_INT = 2,
  ASSAY_KIND_FLOAT = 3,
  ASSAY_KIND_BOOL = 4,
  ASSAY_KIND_STREAM = 5,  // CUDA: the last argument, a cudaStream_t to work on
} AssayKind;

typedef enum {
  ASSAY_FLOAT64 = 1,
  ASSAY_FLOAT32 = 2,
  ASSAY_FLOAT16 = 3,
  ASSAY_BFLOAT16 = 4,
  ASSAY_INT64 = 5,
  ASSAY_INT32 = 6,
  ASSAY_INT16 = 7,
  ASSAY_INT8 = 8,
  ASSAY_UINT8 = 9,
  ASSAY_BOOL = 10,
  ASSAY_FLOAT8_E4M3 = 11,  // PyTorch's float8_e4m3fn: no infinities, NaN at 127 and 255
  ASSAY_FLOAT8_E5M2 = 12,
  // Reserved numbers: refused when a candidate loads.
  ASSAY_INT4X2 = 13,  // two values in a byte, the first in the low half
  ASSAY_UINT4X2 = 14,
  ASSAY_FLOAT4_E2M1X2 = 15,
} AssayDType;

// DLPack's type code of bool (8 bits), which DLPack 0.6 does not name.
#define ASSAY_DLPACK_BOOL 6
// Those of DLPack 1.1.
#define ASSAY_DLPACK_FLOAT8_E4M3 10
#define ASSAY_DLPACK_FLOAT8_E5M2 12

// One argument of a call. A bool arrives in `integer`, as 0 or 1.
typedef union {
  const DLTensor* tensor;  // shape and strides are set, byte_offset is 0
  int64_t integer;
  double real;
  void* stream;
} AssayArgument;

// A candidate's declaration of one argument; dtype, rank and is_output count for tensors only.
typedef struct {
  uint32_t kind;   // AssayKind
  uint32_t dtype;  // AssayDType
  uint32_t rank;
  uint32_t is_output;
} AssayParameter;

typedef enum {
  ASSAY_LANGUAGE_OTHER = 0,
  ASSAY_LANGUAGE_CPP = 1,
  ASSAY_LANGUAGE_C = 2
} AssayLanguage;

typedef struct {
  uint32_t abi_version;
  uint32_t language;  // AssayLanguage, in which messages show the right declaration
  uint32_t parameter_count;
  const AssayParameter* parameters;
  const char* declaration;  // as written in the source, for messages
  void (*invoke)(const AssayArgument* arguments);
} AssayKernel;

// The symbol that the host looks up. ASSAY_KERNEL or ASSAY_KERNEL_C defines it, once a candidate.
extern __attribute__((visibility("default"))) const AssayKernel assay_kernel_v1;

#ifdef __cplusplus
}  // extern "C"
#endif

// ---- 16-bit floating point: storage types, with conversions that round to nearest even. ----

#if defined(__F16C__) && defined(__clang__)
#define ASSAY_HALF_ __fp16
#elif defined(__F16C__) && defined(__FLT16_MAX__)
#define ASSAY_HALF_ _Float16
#elif defined(__aarch64__)
#define ASSAY_HALF_ __fp16
#endif

static inline uint32_t assay_bits_of_float_(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float assay_float_of_bits_(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

static inline float assay_float16_bits_to_float(uint16_t half) {
#ifdef ASSAY_HALF_
  ASSAY_HALF_ value;
  __builtin_memcpy(&value, &half, sizeof value);
  return (float)value;
#else
  // Without branches, so that loops vectorise; without subnormal floats, so that it holds under
  // -ffast-math.
  const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
  const uint32_t magnitude = (uint32_t)(half & 0x7FFFu) << 13;
  const uint32_t moved = magnitude + (112u << 23);
  const uint32_t normal = magnitude >= (31u << 23) ? (moved | 0x7F800000u) : moved;
  const uint32_t two_to_minus_14 = 113u << 23;
  const float subnormal =
      assay_float_of_bits_(magnitude + two_to_minus_14) - assay_float_of_bits_(two_to_minus_14);
  return assay_float_of_bits_(sign |
                              (magnitude < (1u << 23) ? assay_bits_of_float_(subnormal) : normal));
#endif
}

static inline uint16_t assay_float_to_float16_bits(float value) {
#ifdef ASSAY_HALF_
  const ASSAY_HALF_ half = (ASSAY_HALF_)value;
  uint16_t result;
  __builtin_memcpy(&result, &half, sizeof result);
  return result;
#else
  const uint32_t sign = (assay_bits_of_float_(value) >> 16) & 0x8000u;
  const uint32_t magnitude = assay_bits_of_float_(value) & 0x7FFFFFFFu;
  const uint32_t normal = (magnitude - (112u << 23) + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
  const uint32_t half_unit =
      126u << 23;  // 0.5: adding it leaves a multiple of 2^-24 in the low bits, rounded to even
  const uint32_t subnormal =
      assay_bits_of_float_(assay_float_of_bits_(magnitude) + assay_float_of_bits_(half_unit)) -
      half_unit;
  const uint32_t special = magnitude > 0x7F800000u ? 0x7E00u : 0x7C00u;
  const uint32_t finite = magnitude < (113u << 23) ? subnormal : normal;
  return (uint16_t)(sign | (magnitude >= (143u << 23) ? special : finite));
#endif
}

static inline float assay_bfloat16_bits_to_float(uint16_t bits) {
  return assay_float_of_bits_((uint32_t)bits << 16);
}

static inline uint16_t assay_float_to_bfloat16_bits(float value) {
  const uint32_t bits = assay_bits_of_float_(value);
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40u;
  return (uint16_t)((bits & 0x7FFFFFFFu) > 0x7F800000u ? quiet : rounded);
}

// ---- 8-bit floating point: storage types. ----

// e5m2 is the upper half of a float16.
static inline float assay_float8_e5m2_bits_to_float(uint8_t bits) {
  return assay_float16_bits_to_float((uint16_t)(bits << 8));
}

// The seven bits of size, moved to a float's place, are the number times 2^-120.
static inline float assay_float8_e4m3_bits_to_float(uint8_t bits) {
  const uint32_t size = bits & 0x7Fu, sign = (uint32_t)(bits & 0x80u) << 24;
  // Without subnormal floats, so that it holds under -ffast-math: those of e4m3 are below 8 here.
  const float value =
      size < 8u ? (float)size * 0x1p-9f : assay_float_of_bits_((size << 20) + (120u << 23));
  return assay_float_of_bits_(sign | (size == 0x7Fu ? 0x7FC00000u : assay_bits_of_float_(value)));
}

// Rounds to nearest even. Infinities, and what rounds beyond the largest number, become NaN, as in
// PyTorch.
static inline uint8_t assay_float_to_float8_e4m3_bits(float value) {
  const uint32_t sign = (assay_bits_of_float_(value) >> 24) & 0x80u;
  const uint32_t magnitude = assay_bits_of_float_(value) & 0x7FFFFFFFu;
  const uint32_t normal = (magnitude - (120u << 23) + 0x7FFFFu + ((magnitude >> 20) & 1u)) >> 20;
  const uint32_t unit = 141u << 23;  // 2^14: adding it leaves a multiple of 2^-9 in the low bits
  const uint32_t subnormal =
      assay_bits_of_float_(assay_float_of_bits_(magnitude) + assay_float_of_bits_(unit)) - unit;
  const uint32_t finite = magnitude < (121u << 23) ? subnormal : normal;
  return (uint8_t)(sign | (magnitude > 0x43E80000u ? 0x7Fu : finite));  // 464 is half-way to 480
}

// Rounds to nearest even, once; what rounds beyond the largest number becomes an infinity.
static inline uint8_t assay_float_to_float8_e5m2_bits(float value) {
  const uint32_t sign = (assay_bits_of_float_(value) >> 24) & 0x80u;
  const uint32_t magnitude = assay_bits_of_float_(value) & 0x7FFFFFFFu;
  const uint32_t normal = (magnitude - (112u << 23) + 0xFFFFFu + ((magnitude >> 21) & 1u)) >> 21;
  const uint32_t unit = 134u << 23;  // 2^7: adding it leaves a multiple of 2^-16 in the low bits
  const uint32_t subnormal =
      assay_bits_of_float_(assay_float_of_bits_(magnitude) + assay_float_of_bits_(unit)) - unit;
  const uint32_t special = magnitude > 0x7F800000u ? 0x7Fu : 0x7Cu;
  const uint32_t finite = magnitude < (113u << 23) ? subnormal : normal;
  return (uint8_t)(sign | (magnitude >= 0x47700000u ? special : finite));  // 61440: half-way
}

#ifdef __cplusplus

// ---- C++ ----

// CUDA's cudaStream_t and its short types, declared here so that its headers are not needed.
struct CUstream_st;
#ifdef __CUDACC__
struct __half;
struct __nv_bfloat16;
struct __nv_fp8_e4m3;
struct __nv_fp8_e5m2;
#define ASSAY_HOST_DEVICE_ __host__ __device__
#else
#define ASSAY_HOST_DEVICE_
#endif

namespace assay {

// 16-bit storage types. Arithmetic happens in float: they convert to it, and can be assigned from
// it. Construction from float is explicit, so that `x > 0 ? x : 0.0f` has one meaning.
struct float16 {
  uint16_t bits;
  float16() = default;
  explicit float16(float value) : bits(assay_float_to_float16_bits(value)) {}
  float16& operator=(float value) {
    bits = assay_float_to_float16_bits(value);
    return *this;
  }
  operator float() const { return assay_float16_bits_to_float(bits); }
};

struct bfloat16 {
  uint16_t bits;
  bfloat16() = default;
  explicit bfloat16(float value) : bits(assay_float_to_bfloat16_bits(value)) {}
  bfloat16& operator=(float value) {
    bits = assay_float_to_bfloat16_bits(value);
    return *this;
  }
  operator float() const { return assay_bfloat16_bits_to_float(bits); }
};

struct float8_e4m3 {
  uint8_t bits;
  float8_e4m3() = default;
  explicit float8_e4m3(float value) : bits(assay_float_to_float8_e4m3_bits(value)) {}
  float8_e4m3& operator=(float value) {
    bits = assay_float_to_float8_e4m3_bits(value);
    return *this;
  }
  operator float() const { return assay_float8_e4m3_bits_to_float(bits); }
};

struct float8_e5m2 {
  uint8_t bits;
  float8_e5m2() = default;
  explicit float8_e5m2(float value) : bits(assay_float_to_float8_e5m2_bits(value)) {}
  float8_e5m2& operator=(float value) {
    bits = assay_float_to_float8_e5m2_bits(value);
    return *this;
  }
  operator float() const { return assay_float8_e5m2_bits_to_float(bits); }
};

// Reserved names: a Tensor of them does not compile in this version.
struct int4x2;
struct uint4x2;
struct float4_e2m1x2;

namespace detail {

template <typename T>
inline constexpr uint32_t kDType = 0;
template <typename T>
inline constexpr uint32_t kDType<const T> = kDType<T>;
#define ASSAY_NUMBER_(type, number) \
  template <>                       \
  inline constexpr uint32_t kDType<type> = number
ASSAY_NUMBER_(double, ASSAY_FLOAT64);
ASSAY_NUMBER_(float, ASSAY_FLOAT32);
ASSAY_NUMBER_(float16, ASSAY_FLOAT16);
ASSAY_NUMBER_(bfloat16, ASSAY_BFLOAT16);
ASSAY_NUMBER_(int64_t, ASSAY_INT64);
ASSAY_NUMBER_(int32_t, ASSAY_INT32);
ASSAY_NUMBER_(int16_t, ASSAY_INT16);
ASSAY_NUMBER_(int8_t, ASSAY_INT8);
ASSAY_NUMBER_(uint8_t, ASSAY_UINT8);
ASSAY_NUMBER_(bool, ASSAY_BOOL);
ASSAY_NUMBER_(float8_e4m3, ASSAY_FLOAT8_E4M3);
ASSAY_NUMBER_(float8_e5m2, ASSAY_FLOAT8_E5M2);
ASSAY_NUMBER_(int4x2, ASSAY_INT4X2);
ASSAY_NUMBER_(uint4x2, ASSAY_UINT4X2);
ASSAY_NUMBER_(float4_e2m1x2, ASSAY_FLOAT4_E2M1X2);
#ifdef __CUDACC__
ASSAY_NUMBER_(__half, ASSAY_FLOAT16);
ASSAY_NUMBER_(__nv_bfloat16, ASSAY_BFLOAT16);
ASSAY_NUMBER_(__nv_fp8_e4m3, ASSAY_FLOAT8_E4M3);
ASSAY_NUMBER_(__nv_fp8_e5m2, ASSAY_FLOAT8_E5M2);
#endif
#undef ASSAY_NUMBER_

template <typename T>
inline constexpr bool kIsConst = false;
template <typename T>
inline constexpr bool kIsConst<const T> = true;

}  // namespace detail

// A view of one argument: contiguous, row-major, 64-byte aligned, never overlapping another
// argument. `const T` for inputs and parameters, `T` for outputs and for inputs that the reference
// changes. Cheap to copy. Indices are not checked.
template <typename T, int Rank>
class Tensor {
  static_assert(detail::kDType<T> != 0,
                "assay::Tensor: the element type must be float, double, assay::float16, "
                "assay::bfloat16, int64_t, int32_t, int16_t, int8_t, uint8_t, bool, "
                "assay::float8_e4m3 or assay::float8_e5m2 (const for inputs and parameters)");
  static_assert(detail::kDType<T> <= ASSAY_FLOAT8_E5M2,
                "assay::Tensor: packed 4-bit types are reserved; this version of Assay cannot "
                "pass them");
  static_assert(Rank >= 0 && Rank <= ASSAY_RANK_MAX, "assay::Tensor: the rank must be 0 to 8");

 public:
  explicit Tensor(const DLTensor& tensor) : data_(static_cast<T*>(tensor.data)), size_{} {
    for (int axis = 0; axis < Rank; ++axis) size_[axis] = tensor.shape[axis];
  }

  ASSAY_HOST_DEVICE_ T* data() const {
    return static_cast<T*>(__builtin_assume_aligned(data_, 64));
  }

  ASSAY_HOST_DEVICE_ int64_t size(int axis) const { return size_[axis]; }  // elements along an axis

  // Elements from one index of an axis to the next.
  ASSAY_HOST_DEVICE_ int64_t stride(int axis) const {
    int64_t result = 1;
    for (int inner = axis + 1; inner < Rank; ++inner) result *= size_[inner];
    return result;
  }

  // Elements of the whole tensor; 1 for rank 0.
  ASSAY_HOST_DEVICE_ int64_t count() const {
    int64_t result = 1;
    for (int axis = 0; axis < Rank; ++axis) result *= size_[axis];
    return result;
  }

  // The element at one index an axis: x(row, column); x() for rank 0.
  template <typename... Indices>
  ASSAY_HOST_DEVICE_ T& operator()(Indices... indices) const {
    static_assert(sizeof...(Indices) == Rank, "assay::Tensor: give one index for each axis");
    [[maybe_unused]] int axis = 0;
    int64_t offset = 0;
    ((offset = offset * size_[axis++] + static_cast<int64_t>(indices)), ...);
    return data()[offset];
  }

 private:
  T* data_;
  int64_t size_[static_cast<unsigned>(Rank > 0 ? Rank : 1)];
};

namespace detail {

// For each parameter type of a kernel: its declaration to the host, and the conversion of an
// argument to it.
template <typename T>
struct Passing {
  static constexpr bool kKnown = false;
  static constexpr AssayParameter kParameter = {};
  static T Unpack(const AssayArgument& argument);
};
template <typename T>
struct Passing<const T> : Passing<T> {};
template <typename T>
struct Passing<const T&> : Passing<T> {};
template <typename T, int Rank>
struct Passing<Tensor<T, Rank>> {
  static constexpr bool kKnown = true;
  static constexpr AssayParameter kParameter = {ASSAY_KIND_TENSOR, kDType<T>, Rank,
                                                kIsConst<T> ? 0 : 1};
  static Tensor<T, Rank> Unpack(const AssayArgument& argument) {
    return Tensor<T, Rank>(*argument.tensor);
  }
};
template <>
struct Passing<int64_t> {
  static constexpr bool kKnown = true;
  static constexpr AssayParameter kParameter = {ASSAY_KIND_INT, 0, 0, 0};
  static int64_t Unpack(const AssayArgument& argument) { return argument.integer; }
};
template <>
struct Passing<double> {
  static constexpr bool kKnown = true;
  static constexpr AssayParameter kParameter = {ASSAY_KIND_FLOAT, 0, 0, 0};
  static double Unpack(const AssayArgument& argument) { return argument.real; }
};
template <>
struct Passing<bool> {
  static constexpr bool kKnown = true;
  static constexpr AssayParameter kParameter = {ASSAY_KIND_BOOL, 0, 0, 0};
  static bool Unpack(const AssayArgument& argument) { return argument.integer != 0; }
};
template <>
struct Passing<CUstream_st*> {
  static constexpr bool kKnown = true;
  static constexpr AssayParameter kParameter = {ASSAY_KIND_STREAM, 0, 0, 0};
  static CUstream_st* Unpack(const AssayArgument& argument) {
    return static_cast<CUstream_st*>(argument.stream);
  }
};

// The indices 0 .. N-1, made by halves: a deep recursion would stop at a few hundred parameters.
// std::integer_sequence would need <utility>.
template <int... I>
struct Indices {};
template <typename First, typename Second>
struct Join;
template <int... I, int... J>
struct Join<Indices<I...>, Indices<J...>> {
  using Type = Indices<I..., (static_cast<int>(sizeof...(I)) + J)...>;
};
template <int N>
struct Count {
  using Type = typename Join<typename Count<N / 2>::Type, typename Count<N - N / 2>::Type>::Type;
};
template <>
struct Count<0> {
  using Type = Indices<>;
};
template <>
struct Count<1> {
  using Type = Indices<0>;
};

template <typename Function, Function* kernel>
struct Entry;
template <typename... Arguments, void (*kernel)(Arguments...)>
struct Entry<void(Arguments...), kernel> {
  static_assert((Passing<Arguments>::kKnown && ...),
                "ASSAY_KERNEL: every argument must be an assay::Tensor<T, Rank>, or int64_t, "
                "double or bool for a scalar of forward(); in CUDA also a cudaStream_t at the end");
  static constexpr uint32_t kCount = sizeof...(Arguments);
  static constexpr AssayParameter kParameters[] = {Passing<Arguments>::kParameter...,
                                                   AssayParameter{}};

  static void Invoke(const AssayArgument* arguments) {
    Call(arguments, typename Count<static_cast<int>(kCount)>::Type());
  }
  template <int... I>
  static void Call([[maybe_unused]] const AssayArgument* arguments, Indices<I...>) {
    kernel(Passing<Arguments>::Unpack(arguments[I])...);
  }
};

}  // namespace detail
}  // namespace assay

// Defines the candidate's entry; the kernel's body follows. A second one in a candidate does not
// compile or link.
#define ASSAY_KERNEL(...)                                                                  \
  static void assay_kernel_body(__VA_ARGS__);                                              \
  extern "C" {                                                                             \
  __attribute__((used)) const AssayKernel assay_kernel_v1 = {                              \
      ASSAY_ABI_VERSION,                                                                   \
      ASSAY_LANGUAGE_CPP,                                                                  \
      ::assay::detail::Entry<decltype(assay_kernel_body), assay_kernel_body>::kCount,      \
      ::assay::detail::Entry<decltype(assay_kernel_body), assay_kernel_body>::kParameters, \
      "ASSAY_KERNEL(" #__VA_ARGS__ ")",                                                    \
      ::assay::detail::Entry<decltype(assay_kernel_body), assay_kernel_body>::Invoke};     \
  }                                                                                        \
  static void assay_kernel_body(__VA_ARGS__)

#define ASSAY_KERNEL_C(...)                                                                 \
  static_assert(false, "in C++, write ASSAY_KERNEL(assay::Tensor<const float, 2> x, ...)"); \
  [[maybe_unused]] static void assay_kernel_body()

#else  // C

// ---- C ----

typedef struct {
  uint16_t bits;
} assay_float16;
typedef struct {
  uint16_t bits;
} assay_bfloat16;
typedef struct {
  uint8_t bits;
} assay_float8_e4m3;
typedef struct {
  uint8_t bits;
} assay_float8_e5m2;

static inline float assay_float16_to_float(assay_float16 value) {
  return assay_float16_bits_to_float(value.bits);
}
static inline assay_float16 assay_float_to_float16(float value) {
  return (assay_float16){assay_float_to_float16_bits(value)};
}
static inline float assay_bfloat16_to_float(assay_bfloat16 value) {
  return assay_bfloat16_bits_to_float(value.bits);
}
static inline assay_bfloat16 assay_float_to_bfloat16(float value) {
  return (assay_bfloat16){assay_float_to_bfloat16_bits(value)};
}
static inline float assay_float8_e4m3_to_float(assay_float8_e4m3 value) {
  return assay_float8_e4m3_bits_to_float(value.bits);
}
static inline assay_float8_e4m3 assay_float_to_float8_e4m3(float value) {
  return (assay_float8_e4m3){assay_float_to_float8_e4m3_bits(value)};
}
static inline float assay_float8_e5m2_to_float(assay_float8_e5m2 value) {
  return assay_float8_e5m2_bits_to_float(value.bits);
}
static inline assay_float8_e5m2 assay_float_to_float8_e5m2(float value) {
  return (assay_float8_e5m2){assay_float_to_float8_e5m2_bits(value)};
}

// Returns a tensor's number of elements, from its rank and the sizes that ASSAY_KERNEL_C gives.
static inline int64_t assay_count(const int64_t* size, int rank) {
  int64_t result = 1;
  for (int axis = 0; axis < rank; ++axis) result *= size[axis];
  return result;
}

// The arguments of ASSAY_KERNEL_C. ASSAY_TENSOR(const float, 2, x) gives the kernel `const float*
// restrict x`, and `const int64_t* x_size` with the elements along each axis. ASSAY_SCALAR(int64_t,
// n) gives it `int64_t n`.
#define ASSAY_TENSOR(type, rank, name) (assay_tensor_, type, rank, name)
#define ASSAY_SCALAR(type, name) (assay_scalar_, type, 0, name)

// Applies a macro to each item of a list, up to 64, with commas between.
#define ASSAY_EXPAND_(...) \
  ASSAY_EXPAND_3_(ASSAY_EXPAND_3_(ASSAY_EXPAND_3_(ASSAY_EXPAND_3_(__VA_ARGS__))))
#define ASSAY_EXPAND_3_(...) \
  ASSAY_EXPAND_2_(ASSAY_EXPAND_2_(ASSAY_EXPAND_2_(ASSAY_EXPAND_2_(__VA_ARGS__))))
#define ASSAY_EXPAND_2_(...) \
  ASSAY_EXPAND_1_(ASSAY_EXPAND_1_(ASSAY_EXPAND_1_(ASSAY_EXPAND_1_(__VA_ARGS__))))
#define ASSAY_EXPAND_1_(...) __VA_ARGS__
#define ASSAY_EMPTY_PAIR_ ()
#define ASSAY_EACH_(macro, ...) ASSAY_EXPAND_(ASSAY_EACH_STEP_(macro, __VA_ARGS__))
#define ASSAY_EACH_STEP_(macro, item, ...) \
  macro item __VA_OPT__(, ASSAY_EACH_AGAIN_ ASSAY_EMPTY_PAIR_(macro, __VA_ARGS__))
#define ASSAY_EACH_AGAIN_() ASSAY_EACH_STEP_

// The element type's number, plus ASSAY_CONST_ if it is const. An unknown type is an error here:
// use float, double, assay_float16, assay_bfloat16, int64_t, int32_t, int16_t, int8_t, uint8_t,
// bool, assay_float8_e4m3 or assay_float8_e5m2.
#define ASSAY_CONST_ 0x100
#define ASSAY_CASE_(type, number) type* : number, const type* : (number | ASSAY_CONST_)
#define ASSAY_ELEMENT_(type)                                                                       \
  _Generic((type*)0, ASSAY_CASE_(double, ASSAY_FLOAT64), ASSAY_CASE_(float, ASSAY_FLOAT32),        \
           ASSAY_CASE_(assay_float16, ASSAY_FLOAT16), ASSAY_CASE_(assay_bfloat16, ASSAY_BFLOAT16), \
           ASSAY_CASE_(int64_t, ASSAY_INT64), ASSAY_CASE_(int32_t, ASSAY_INT32),                   \
           ASSAY_CASE_(int16_t, ASSAY_INT16), ASSAY_CASE_(int8_t, ASSAY_INT8),                     \
           ASSAY_CASE_(uint8_t, ASSAY_UINT8), ASSAY_CASE_(bool, ASSAY_BOOL),                       \
           ASSAY_CASE_(assay_float8_e4m3, ASSAY_FLOAT8_E4M3),                                      \
           ASSAY_CASE_(assay_float8_e5m2, ASSAY_FLOAT8_E5M2))
// A scalar is int64_t, double or bool.
#define ASSAY_SCALAR_KIND_(type) \
  _Generic((type)0, int64_t : ASSAY_KIND_INT, double : ASSAY_KIND_FLOAT, bool : ASSAY_KIND_BOOL)

#define ASSAY_DECLARE_(form, type, rank, name) ASSAY_DECLARE_##form(type, name)
#define ASSAY_DECLARE_assay_tensor_(type, name) \
  type* restrict name, __attribute__((unused)) const int64_t* name##_size
#define ASSAY_DECLARE_assay_scalar_(type, name) type name

#define ASSAY_INDEX_(form, type, rank, name) assay_index_of_##name

#define ASSAY_DESCRIBE_(form, type, rank, name) ASSAY_DESCRIBE_##form(type, rank)
#define ASSAY_DESCRIBE_assay_tensor_(type, rank)                   \
  {                                                                \
    ASSAY_KIND_TENSOR, ASSAY_ELEMENT_(type) & ~ASSAY_CONST_, rank, \
        !(ASSAY_ELEMENT_(type) & ASSAY_CONST_)                     \
  }
#define ASSAY_DESCRIBE_assay_scalar_(type, rank) \
  { ASSAY_SCALAR_KIND_(type), 0, 0, 0 }

#define ASSAY_PASS_(form, type, rank, name) ASSAY_PASS_##form(type, assay_index_of_##name)
#define ASSAY_PASS_assay_tensor_(type, index) \
  (type*)__builtin_assume_aligned(arguments[index].tensor->data, 64), arguments[index].tensor->shape
#define ASSAY_PASS_assay_scalar_(type, index) \
  (type) _Generic((type)0, double : arguments[index].real, default : arguments[index].integer)

// Defines the candidate's entry; the kernel's body follows. A second one in a candidate does not
// compile or link.
#define ASSAY_KERNEL_C(...)                                                                      \
  static void assay_kernel_body(ASSAY_EACH_(ASSAY_DECLARE_, __VA_ARGS__));                       \
  enum { ASSAY_EACH_(ASSAY_INDEX_, __VA_ARGS__), assay_parameter_count_ };                       \
  static const AssayParameter assay_parameters_[] = {ASSAY_EACH_(ASSAY_DESCRIBE_, __VA_ARGS__)}; \
  static void assay_invoke_(const AssayArgument* arguments) {                                    \
    assay_kernel_body(ASSAY_EACH_(ASSAY_PASS_, __VA_ARGS__));                                    \
  }                                                                                              \
  __attribute__((used)) const AssayKernel assay_kernel_v1 = {ASSAY_ABI_VERSION,                  \
                                                             ASSAY_LANGUAGE_C,                   \
                                                             assay_parameter_count_,             \
                                                             assay_parameters_,                  \
                                                             "ASSAY_KERNEL_C(" #__VA_ARGS__ ")", \
                                                             assay_invoke_};                     \
  static void assay_kernel_body(ASSAY_EACH_(ASSAY_DECLARE_, __VA_ARGS__))

#define ASSAY_KERNEL(...)                                                                \
  _Static_assert(0, "in C, write ASSAY_KERNEL_C(ASSAY_TENSOR(const float, 2, x), ...)"); \
  __attribute__((unused)) static void assay_kernel_body(void)

#endif  // C

#endif  // ASSAY_KERNEL_H_

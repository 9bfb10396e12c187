// Compiles one CUDA source to machine code with NVRTC, inside the builder's sandbox: 0.05 to 0.2 s,
// where nvcc with PyTorch's headers takes a minute. The library is opened at run time, so Assay is
// built and runs without CUDA.
//
//   nvrtc_build LIBRARY SOURCE OUTPUT KERNEL... -- OPTION...
//
// Each KERNEL is a name as C++ writes it ("row_max", "softmax<128>"). OUTPUT becomes a device image
// (src/wire/device_image.h): the kernels' names in the cubin, then the cubin. The compiler's log
// goes to stderr. Exit code 0; 1: the source does not compile; 2: wrong arguments; 3: no NVRTC that
// fits.
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "wire/write_device_image.h"

namespace {

// NVRTC's C interface, as its documentation gives it; results are an enum whose 0 is success.
struct Nvrtc {
  using Program = void*;
  int (*version)(int* major, int* minor);
  const char* (*error_text)(int result);
  int (*create)(Program*, const char* source, const char* name, int headers, const char* const*,
                const char* const*);
  int (*add_name)(Program, const char* expression);
  int (*compile)(Program, int options, const char* const*);
  int (*log_size)(Program, size_t*);
  int (*log)(Program, char*);
  int (*lowered_name)(Program, const char* expression, const char** name);
  int (*cubin_size)(Program, size_t*);
  int (*cubin)(Program, char*);

  bool Open(const char* library) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      fprintf(stderr, "%s\n", dlerror());
      return false;
    }
    const auto find = [&](auto* function, const char* name) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(handle, name));
      if (*function == nullptr) fprintf(stderr, "%s has no %s\n", library, name);
      return *function != nullptr;
    };
    return find(&version, "nvrtcVersion") && find(&error_text, "nvrtcGetErrorString") &&
           find(&create, "nvrtcCreateProgram") && find(&add_name, "nvrtcAddNameExpression") &&
           find(&compile, "nvrtcCompileProgram") && find(&log_size, "nvrtcGetProgramLogSize") &&
           find(&log, "nvrtcGetProgramLog") && find(&lowered_name, "nvrtcGetLoweredName") &&
           find(&cubin_size, "nvrtcGetCUBINSize") && find(&cubin, "nvrtcGetCUBIN");
  }
};

// no_driver.so, which lies beside this program. Without it compiling takes longer, that is all.
void OpenInsteadOfTheDriver() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return;
  std::string beside(path, static_cast<size_t>(length));
  beside.resize(beside.rfind('/') + 1);
  dlopen((beside + "no_driver.so").c_str(), RTLD_NOW | RTLD_LOCAL);
}

std::string ReadAll(const char* path, bool* ok) {
  std::string text;
  FILE* file = fopen(path, "rb");
  char buffer[1 << 16];
  size_t count = 0;
  while (file != nullptr && (count = fread(buffer, 1, sizeof buffer, file)) > 0)
    text.append(buffer, count);
  *ok = file != nullptr && ferror(file) == 0;
  if (file != nullptr) fclose(file);
  return text;
}

void PrintLog(const Nvrtc& nvrtc, Nvrtc::Program program) {
  size_t size = 0;
  if (nvrtc.log_size(program, &size) != 0 || size <= 1) return;
  std::string log(size, '\0');
  if (nvrtc.log(program, log.data()) != 0) return;
  fputs(log.c_str(), stderr);
}

// A device image of a compiled program; empty where a name or the code is not to be had.
std::string Image(const Nvrtc& nvrtc, Nvrtc::Program program,
                  const std::vector<const char*>& kernels) {
  size_t cubin_size = 0;
  if (nvrtc.cubin_size(program, &cubin_size) != 0 || cubin_size == 0) {
    fputs("no machine code was made: is the architecture a real one (sm_90a)?\n", stderr);
    return {};
  }
  std::vector<std::string> names;
  for (const char* expression : kernels) {
    const char* lowered = nullptr;
    if (nvrtc.lowered_name(program, expression, &lowered) != 0 || lowered == nullptr) {
      fprintf(stderr, "error: the source has no kernel %s\n", expression);
      return {};
    }
    names.emplace_back(lowered);
  }
  std::string cubin(cubin_size, '\0');
  if (nvrtc.cubin(program, cubin.data()) != 0) return {};
  const std::string image = assay::wire::WriteDeviceImage(names, cubin);
  if (image.empty()) fputs("error: too many kernels, or one's name is too long\n", stderr);
  return image;
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<const char*> kernels, options;
  bool in_options = false;
  for (int i = 4; i < count; ++i) {
    if (!in_options && strcmp(arguments[i], "--") == 0)
      in_options = true;
    else
      (in_options ? options : kernels).push_back(arguments[i]);
  }
  if (kernels.empty() || !in_options) {
    fputs("usage: nvrtc_build LIBRARY SOURCE OUTPUT KERNEL... -- OPTION...\n", stderr);
    return 2;
  }
  OpenInsteadOfTheDriver();
  Nvrtc nvrtc;
  if (!nvrtc.Open(arguments[1])) return 3;
  bool ok = false;
  const std::string source = ReadAll(arguments[2], &ok);
  if (!ok) {
    fprintf(stderr, "cannot read %s\n", arguments[2]);
    return 2;
  }
  Nvrtc::Program program = nullptr;
  int result = nvrtc.create(&program, source.c_str(), arguments[2], 0, nullptr, nullptr);
  for (size_t i = 0; result == 0 && i < kernels.size(); ++i)
    result = nvrtc.add_name(program, kernels[i]);
  if (result == 0)
    result = nvrtc.compile(program, static_cast<int>(options.size()), options.data());
  PrintLog(nvrtc, program);
  if (result != 0) {
    fprintf(stderr, "NVRTC: %s\n", nvrtc.error_text(result));
    return 1;
  }
  const std::string image = Image(nvrtc, program, kernels);
  if (image.empty()) return 1;
  FILE* output = fopen(arguments[3], "wb");
  if (output == nullptr || fwrite(image.data(), 1, image.size(), output) != image.size() ||
      fclose(output) != 0) {
    fprintf(stderr, "cannot write %s\n", arguments[3]);
    return 2;
  }
  return 0;
}

#include "toolchain/cubin.h"

#include <cxxabi.h>
#include <elf.h>
#include <string.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>

namespace assay {
namespace {

constexpr Elf64_Half kMachineCuda = 190;
// What is read of an image, so that none keeps the judge busy: CUDA's own are far below.
constexpr uint16_t kSectionsMax = 8192;
constexpr size_t kNameBytesMax = 4096;
constexpr size_t kSymbolsMax = 1 << 16;
constexpr size_t kCubinsMax = 256;
constexpr int kFalseStartsMax = 256;
// Names can be written so that they double every few letters as they are taken apart.
constexpr size_t kMangledBytesMax = 128;
// From this architecture on a section of shared memory has what CUDA reserves, too.
constexpr uint32_t kReservesShared = 90;
constexpr int64_t kReservedSharedBytes = 1024;
constexpr std::string_view kCode = ".text.", kShared = ".nv.shared.", kInfo = ".nv.info";

// Attributes of .nv.info: four bytes (format, attribute, size), then a symbol and a value.
constexpr uint8_t kSizedFormat = 4, kRegisterCount = 0x2f, kFrameSize = 0x11;
constexpr unsigned char kEntry = 0x10;  // in a symbol's st_other: STO_CUDA_ENTRY

// A copy of a T at `offset`; nothing beyond the end.
template <typename T>
std::optional<T> At(std::string_view bytes, uint64_t offset) {
  T value;
  if (offset > bytes.size() || bytes.size() - offset < sizeof value) return std::nullopt;
  memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string_view Range(std::string_view bytes, uint64_t offset, uint64_t size) {
  if (offset > bytes.size() || bytes.size() - offset < size) return {};
  return bytes.substr(offset, size);
}

std::string_view Name(std::string_view names, uint32_t offset) {
  if (offset >= names.size()) return {};
  const std::string_view rest = names.substr(offset, kNameBytesMax);
  return rest.substr(0, std::min(rest.find('\0'), rest.size()));
}

struct Elf {
  std::string_view bytes;
  Elf64_Ehdr header;
  std::vector<Elf64_Shdr> sections;

  std::string_view Content(const Elf64_Shdr& section) const {
    return section.sh_type == SHT_NOBITS ? std::string_view()
                                         : Range(bytes, section.sh_offset, section.sh_size);
  }
  std::string_view NameOf(const Elf64_Shdr& section) const {
    return Name(Content(sections[header.e_shstrndx]), section.sh_name);
  }
  // sm_90: 90. The eighth version of the format moved the number.
  uint32_t Architecture() const {
    const bool moved = header.e_ident[EI_ABIVERSION] >= 8;
    return (moved ? header.e_flags >> 8 : header.e_flags) & 0xff;
  }
};

bool HasCubinHeader(std::string_view bytes) {
  const auto header = At<Elf64_Ehdr>(bytes, 0);
  return header && memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
         header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_machine == kMachineCuda &&
         header->e_shentsize == sizeof(Elf64_Shdr) && header->e_shnum <= kSectionsMax &&
         header->e_shstrndx < header->e_shnum;
}

std::optional<Elf> ReadElf(std::string_view bytes) {
  if (!HasCubinHeader(bytes)) return std::nullopt;
  const auto header = At<Elf64_Ehdr>(bytes, 0);
  Elf elf{bytes, *header, {}};
  for (uint16_t i = 0; i < header->e_shnum; ++i) {
    const auto section = At<Elf64_Shdr>(bytes, header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) return std::nullopt;
    elf.sections.push_back(*section);
  }
  return elf;
}

struct Symbol {
  std::string_view name;
  bool is_entry = false;  // of a kernel: functions that were not inlined are symbols, too
};

// By their number: of the first table, as there is one.
std::vector<Symbol> Symbols(const Elf& elf) {
  std::vector<Symbol> found;
  for (const Elf64_Shdr& section : elf.sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= elf.sections.size()) continue;
    const std::string_view symbols = elf.Content(section);
    const std::string_view texts = elf.Content(elf.sections[section.sh_link]);
    for (uint64_t at = 0; found.size() < kSymbolsMax; at += sizeof(Elf64_Sym)) {
      const auto symbol = At<Elf64_Sym>(symbols, at);
      if (!symbol) break;
      found.push_back({Name(texts, symbol->st_name), (symbol->st_other & kEntry) != 0});
    }
    break;
  }
  return found;
}

struct Attributes {
  std::map<std::string_view, uint32_t> registers, frames;  // by a kernel's name
};

Attributes ReadAttributes(std::string_view info, const std::vector<Symbol>& symbols) {
  Attributes attributes;
  for (uint64_t at = 0; info.size() >= 4 && at <= info.size() - 4;) {
    const auto format = static_cast<uint8_t>(info[at]);
    const auto attribute = static_cast<uint8_t>(info[at + 1]);
    const uint16_t size = *At<uint16_t>(info, at + 2);
    at += 4;
    if (format != kSizedFormat) continue;
    const auto symbol = At<uint32_t>(info, at), value = At<uint32_t>(info, at + 4);
    if (size >= 8 && symbol && value && *symbol < symbols.size() && symbols[*symbol].is_entry) {
      if (attribute == kRegisterCount) attributes.registers[symbols[*symbol].name] = *value;
      if (attribute == kFrameSize) attributes.frames[symbols[*symbol].name] = *value;
    }
    at += size;
  }
  return attributes;
}

// Where an ELF file that begins here ends.
uint64_t EndOf(const Elf& elf) {
  uint64_t end = elf.header.e_shoff + elf.header.e_shnum * sizeof(Elf64_Shdr);
  for (const Elf64_Shdr& section : elf.sections)
    if (section.sh_type != SHT_NOBITS) end = std::max(end, section.sh_offset + section.sh_size);
  end = std::max(end, elf.header.e_phoff + elf.header.e_phnum * sizeof(Elf64_Phdr));
  return std::min<uint64_t>(end, elf.bytes.size());
}

}  // namespace

std::vector<CompiledKernel> ReadCubin(std::string_view image) {
  std::vector<CompiledKernel> kernels;
  const auto elf = ReadElf(image);
  if (!elf) return kernels;
  std::optional<Attributes> attributes;
  std::map<std::string_view, uint64_t> shared;
  for (const Elf64_Shdr& section : elf->sections) {
    const std::string_view name = elf->NameOf(section);
    if (name == kInfo && !attributes)
      attributes = ReadAttributes(elf->Content(section), Symbols(*elf));
    else if (name.starts_with(kShared))
      shared[name.substr(kShared.size())] = section.sh_size;
  }
  if (!attributes) return kernels;
  const int64_t reserved =
      elf->Architecture() >= kReservesShared ? kReservedSharedBytes : int64_t{0};
  for (const Elf64_Shdr& section : elf->sections) {
    const std::string_view name = elf->NameOf(section);
    if (!name.starts_with(kCode)) continue;
    const std::string_view kernel = name.substr(kCode.size());
    const auto registers = attributes->registers.find(kernel);
    if (registers == attributes->registers.end()) continue;
    CompiledKernel found;
    found.name = std::string(kernel);
    found.registers = static_cast<int>(std::min<uint32_t>(registers->second, 1024));
    if (const auto frame = attributes->frames.find(kernel); frame != attributes->frames.end())
      found.stack_bytes = frame->second;
    if (const auto bytes = shared.find(kernel); bytes != shared.end())
      found.shared_bytes = std::max<int64_t>(
          0, static_cast<int64_t>(std::min<uint64_t>(bytes->second, 1 << 30)) - reserved);
    kernels.push_back(std::move(found));
  }
  return kernels;
}

std::vector<std::string_view> FindCubins(std::string_view file) {
  std::vector<std::string_view> cubins;
  const std::string_view magic(ELFMAG, SELFMAG);
  int false_starts = 0;
  for (size_t at = file.find(magic, 1); at != std::string_view::npos && cubins.size() < kCubinsMax;
       at = file.find(magic, at)) {
    const auto elf = ReadElf(file.substr(at));
    if (elf) {
      cubins.push_back(elf->bytes.substr(0, EndOf(*elf)));
      at += std::max<size_t>(cubins.back().size(), SELFMAG);
      continue;
    }
    // The shared library's own magic is none that is like a cubin's.
    if (HasCubinHeader(file.substr(at)) && ++false_starts == kFalseStartsMax) break;
    at += SELFMAG;
  }
  return cubins;
}

namespace {

// "at::native::copy_kernel<...>" for a mangled name of any length: its own path alone, of which
// each part stands behind its length (Itanium C++ ABI, 5.1.3). Empty: it is none.
std::string MangledPath(std::string_view name) {
  if (!name.starts_with("_Z")) return {};
  name.remove_prefix(name.starts_with("_ZN") ? 3 : 2);
  std::string path;
  size_t size = 0;
  while (true) {
    const auto [end, status] = std::from_chars(name.data(), name.data() + name.size(), size);
    if (status != std::errc()) break;
    name.remove_prefix(static_cast<size_t>(end - name.data()));
    if (size == 0 || size > name.size()) return {};
    // That of an unnamed namespace is made of a hash.
    if (!name.starts_with("_GLOBAL__N_"))
      path.append(path.empty() ? "" : "::").append(name.substr(0, size));
    name.remove_prefix(size);
  }
  if (!path.empty() && name.starts_with('I')) path += "<...>";
  return path;
}

}  // namespace

std::string KernelDisplayName(const std::string& name) {
  if (name.size() > kMangledBytesMax) {
    const std::string path = MangledPath(name);
    return path.empty() ? name : path;
  }
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || plain == nullptr) return name;
  std::string text = plain.get();
  // "void outer::(anonymous namespace)::softmax<256>(float const*, float*)"
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  for (size_t at = text.find(kUnnamed); at != std::string::npos; at = text.find(kUnnamed))
    text.erase(at, kUnnamed.size());
  int depth = 0;
  size_t end = text.size(), begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<') ++depth;
    if (text[i] == '>') --depth;
    if (depth == 0 && text[i] == ' ' && end == text.size()) begin = i + 1;
    if (depth == 0 && text[i] == '(' && i > begin) {
      end = i;
      break;
    }
  }
  return text.substr(begin, end - begin);
}

}  // namespace assay

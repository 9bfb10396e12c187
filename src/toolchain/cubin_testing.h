// Makes small cubins for tests: the sections that cubin.cc reads, in ptxas's layout.
#pragma once

#include <elf.h>
#include <string.h>

#include <cstdint>
#include <string>
#include <vector>

#include "toolchain/cubin.h"

namespace assay {

struct TestCubin {
  std::vector<CompiledKernel> kernels;  // shared_bytes as in the section: with CUDA's reserve
  uint32_t architecture = 90;
  int format = 8;  // of the file: 7 from CUDA 12 and older

  std::string Write() const;
};

inline std::string TestCubin::Write() const {
  std::string names(1, '\0'), content(sizeof(Elf64_Ehdr), '\0');
  std::vector<Elf64_Shdr> sections(1);
  const auto add_name = [&](const std::string& name) {
    const auto at = static_cast<uint32_t>(names.size());
    names += name + '\0';
    return at;
  };
  const auto add = [&](const std::string& name, uint32_t type, const std::string& bytes,
                       uint64_t size) {
    Elf64_Shdr section{};
    section.sh_name = add_name(name);
    section.sh_type = type;
    section.sh_offset = content.size();
    section.sh_size = size;
    content += bytes;
    sections.push_back(section);
  };
  std::string symbol_names(1, '\0'), info;
  std::string symbols(sizeof(Elf64_Sym), '\0');
  const auto attribute = [&](uint8_t number, uint32_t symbol, uint32_t value) {
    const unsigned char head[4] = {4, number, 8, 0};
    info.append(reinterpret_cast<const char*>(head), sizeof head);
    info.append(reinterpret_cast<const char*>(&symbol), sizeof symbol);
    info.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (size_t i = 0; i < kernels.size(); ++i) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<uint32_t>(symbol_names.size());
    symbol.st_other = 0x10;  // a kernel's entry
    symbol_names += kernels[i].name + '\0';
    symbols.append(reinterpret_cast<const char*>(&symbol), sizeof symbol);
    const auto number = static_cast<uint32_t>(i + 1);
    attribute(0x2f, number, static_cast<uint32_t>(kernels[i].registers));
    attribute(0x11, number, static_cast<uint32_t>(kernels[i].stack_bytes));
  }
  add(".strtab", SHT_STRTAB, symbol_names, symbol_names.size());
  add(".symtab", SHT_SYMTAB, symbols, symbols.size());
  sections.back().sh_link = 1;
  add(".nv.info", SHT_LOPROC, info, info.size());
  for (const CompiledKernel& kernel : kernels) {
    add(".text." + kernel.name, SHT_PROGBITS, std::string(128, '\x11'), 128);
    if (kernel.shared_bytes > 0)
      add(".nv.shared." + kernel.name, SHT_NOBITS, "", static_cast<uint64_t>(kernel.shared_bytes));
  }
  Elf64_Shdr of_names{};
  of_names.sh_name = add_name(".shstrtab");
  of_names.sh_type = SHT_STRTAB;
  of_names.sh_offset = content.size();
  of_names.sh_size = names.size();
  content += names;
  sections.push_back(of_names);
  Elf64_Ehdr header{};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_ABIVERSION] = static_cast<unsigned char>(format);
  header.e_machine = 190;
  header.e_flags = format >= 8 ? architecture << 8 : architecture;
  header.e_shoff = content.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(sections.size());
  header.e_shstrndx = static_cast<Elf64_Half>(sections.size() - 1);
  memcpy(content.data(), &header, sizeof header);
  for (const Elf64_Shdr& section : sections)
    content.append(reinterpret_cast<const char*>(&section), sizeof section);
  return content;
}

}  // namespace assay

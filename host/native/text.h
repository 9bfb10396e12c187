// Writes text of bounded length into the caller's memory, for messages to the judge. Never
// allocates, so a signal handler may use it. Longer text is cut, with "..." at the end.
#pragma once

#include <stdint.h>

namespace assay::native {

class Text {
 public:
  // `bytes` must be at least 4; the text is always NUL-terminated.
  Text(char* begin, uint32_t bytes) : at_(begin), last_(begin + bytes - 1) { *at_ = '\0'; }

  Text& Add(const char* text) { return Add(text, UINT32_MAX); }

  // Adds at most `bytes_max` bytes of a string, which need not be NUL-terminated within them.
  Text& Add(const char* text, uint32_t bytes_max) {
    for (; bytes_max > 0 && *text != '\0'; ++text, --bytes_max) {
      if (at_ == last_) {
        for (int i = 1; i <= 3; ++i) last_[-i] = '.';
        break;
      }
      *at_++ = *text;
    }
    *at_ = '\0';
    return *this;
  }

  Text& Add(int64_t number) {
    if (number < 0) return Add("-").AddDigits(0 - static_cast<uint64_t>(number), 10);
    return AddDigits(static_cast<uint64_t>(number), 10);
  }
  Text& AddHex(uint64_t number) { return Add("0x").AddDigits(number, 16); }

 private:
  Text& AddDigits(uint64_t number, uint64_t base) {
    char digits[24];
    char* at = digits + sizeof digits - 1;
    *at = '\0';
    do {
      *--at = "0123456789abcdef"[number % base];
      number /= base;
    } while (number != 0);
    return Add(at);
  }

  char* at_;
  char* last_;
};

}  // namespace assay::native

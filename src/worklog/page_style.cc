#include "worklog/page_style.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/chart_style.h"
#include "report/svg.h"
#include "report/text.h"

namespace assay {
namespace {

constexpr std::string_view kStyle = R"(:root{color-scheme:light dark;--panel:#f6f8fa;
--good:#1a7f37;--bad:#b3261e;--open:#57606a;--add:#e6f6ea;--cut:#fdeceb}
@media screen and (prefers-color-scheme:dark){:root{--panel:#161b22;--good:#3fb950;--bad:#ff7b72;
--open:#9198a1;--add:#12261a;--cut:#2d1618}}
*{box-sizing:border-box}html{scroll-behavior:smooth}
body{margin:0;background:var(--page);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
main{max-width:60rem;margin:0 auto;padding:2.2rem 1.2rem 3rem}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .5rem;overflow-wrap:anywhere}
h2{font-size:1.35rem;margin:3rem 0 .8rem;padding-top:.9rem;border-top:2px solid var(--grid)}
h2 span{color:var(--faint);font-weight:400;margin-right:.35rem}
h3{font-size:1.05rem;margin:1.8rem 0 .4rem}
p,li{max-width:46rem;overflow-wrap:anywhere}p{margin:.5rem 0}.faint{color:var(--faint)}
a{color:var(--first)}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.3rem 1.1rem;margin:1rem 0 0;padding:0}
.tiles,.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(14rem,1fr));gap:.8rem;
margin:1.2rem 0}
.tile,.card{background:var(--panel);border:1px solid var(--grid);border-radius:10px;
padding:.8rem 1rem;overflow-wrap:anywhere}
.tile b{display:block;font-size:1.8rem;line-height:1.2;font-variant-numeric:tabular-nums}
.tile span{display:block;color:var(--faint)}.tile small{color:var(--faint)}
.hand{border-top:4px solid var(--first)}.model{border-top:4px solid var(--second)}
.together{border-top:4px solid var(--third)}
.mechanism{font-weight:700}.card p{margin:.35rem 0}
.card ul{margin:.3rem 0;padding-left:1.1rem}
.found::before{content:"\2713  found: ";color:var(--good);font-weight:600}
.against::before{content:"\2717  not found: ";color:var(--bad);font-weight:600}
.open::before{content:"?  open: ";color:var(--open);font-weight:600}
.quote{border-left:4px solid var(--first);background:var(--panel);border-radius:0 8px 8px 0;
padding:.6rem 1rem;margin:.8rem 0}
.race{font-size:1.15rem;font-weight:600;margin:1rem 0}
.version{border:1px solid var(--grid);border-radius:10px;padding:.2rem 1rem .8rem;margin:1rem 0}
.version h3{margin:.8rem 0 .3rem}
.version h3 small{font-weight:400;color:var(--faint);margin-left:.5rem}
.scroll{overflow-x:auto}svg{display:block;width:100%;min-width:34rem;height:auto;
margin:.6rem 0}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.6rem 0}
th,td{text-align:left;vertical-align:top;padding:.32rem 1rem .32rem 0;
border-bottom:1px solid var(--grid)}
th{font-weight:600;color:var(--faint);white-space:nowrap}tbody th{color:var(--ink)}
.n{text-align:right;white-space:nowrap}td.good{color:var(--good)}td.bad{color:var(--bad)}
details{margin:.5rem 0}summary{cursor:pointer;color:var(--first);padding:.15rem 0}
pre{background:var(--panel);border:1px solid var(--grid);border-radius:8px;padding:.7rem .9rem;
overflow:auto;max-height:32rem;margin:.4rem 0;
font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace;tab-size:2}
code{font:.9em ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace}
pre code{font:inherit}
.wrap{white-space:pre-wrap;overflow-wrap:anywhere}
pre ins,pre del,pre b{display:block;text-decoration:none;font-weight:400;margin:0 -.9rem;
padding:0 .9rem;min-width:max-content}
pre ins{background:var(--add)}pre del{background:var(--cut)}pre b{color:var(--faint)}
:focus-visible{outline:3px solid var(--first);outline-offset:2px}
footer{margin-top:3rem;border-top:1px solid var(--grid);padding-top:.8rem;font-size:.9rem}
@media(max-width:640px){main{padding:1.2rem .9rem 2rem}h1{font-size:1.45rem}
.versions thead{position:absolute;left:-99in}
.versions tr{display:flex;flex-wrap:wrap;gap:0 1rem;padding:.5rem 0;
border-bottom:1px solid var(--grid)}
.versions td,.versions th{border:0;padding:0}
.versions tbody th{width:100%;font-weight:600}
.versions td[data-is]::before{content:attr(data-is) " ";color:var(--faint)}}
@page{size:A4;margin:14mm 14mm 16mm;
@bottom-right{content:counter(page) " of " counter(pages);font:8pt sans-serif;color:#57606a}}
@media print{:root{color-scheme:light;--page:#fff;--ink:#000;--panel:#fff;--faint:#444}
body{font-size:10.5pt}main{max-width:none;padding:0}
nav,.screen,details:not([open],.paper){display:none}
h2,h3,summary,thead{break-after:avoid}footer{break-before:avoid}
svg,.tile,.tiles,.card,tr,table,footer{break-inside:avoid}p{orphans:3;widows:3}
summary{color:inherit;list-style:none;font-weight:600}
pre{max-height:none;white-space:pre-wrap;overflow-wrap:anywhere;padding:.1rem 0 .1rem .8rem;
font-size:7.5pt;line-height:1.4;border:0;
border-left:2px solid #bbb;border-radius:0}
pre ins,pre del,pre b{min-width:0;margin:0;padding:0}
details.paper::details-content{content-visibility:visible;block-size:auto}
svg{min-width:0;max-width:17cm}a{color:inherit}
body{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
.class main{max-width:90rem}
.slides{scroll-snap-type:y mandatory}.slides main{max-width:none;padding:0}
.slides section,.slides header{min-height:100vh;scroll-snap-align:start;padding:4vh 6vw;
display:flex;flex-direction:column;justify-content:center;font-size:1.25rem}
.slides h1{font-size:3rem}.slides h2{font-size:2.1rem;border:0;margin:0 0 1rem}
.slides svg{max-height:62vh}.slides .race{font-size:1.7rem}
@media(max-width:640px){.slides h1{font-size:1.8rem}.slides section,.slides header{font-size:1rem}}
@media print{.slides section,.slides header{break-after:page;min-height:0}}
)";

}  // namespace

std::string PageStyle() {
  return fmt::format("<style>\n{}{}{}</style>\n", ChartVariables(), ChartClasses(), kStyle);
}

std::string PageHead(std::string_view title, std::string_view kind) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"{}>\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"generator\" content=\"assay worklog\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>{}</title>\n{}</head>\n<body>\n<main>\n",
      kind.empty() ? "" : fmt::format(" class=\"{}\"", kind), HtmlText(title), PageStyle());
}

std::string HtmlText(std::string_view text) { return XmlEscaped(std::string(text)); }

std::string HtmlLines(std::string_view text) {
  std::string html;
  html.reserve(text.size() + text.size() / 8);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    // A tab at the line's begin keeps its width.
    while (line.starts_with('\t')) {
      html += "  ";
      line.remove_prefix(1);
    }
    html += XmlEscaped(std::string(line));
    if (end < text.size()) html += '\n';
    at = end + 1;
  }
  return html;
}

std::string DiffHtml(std::string_view diff) {
  std::string html;
  for (size_t at = 0; at < diff.size();) {
    const size_t end = std::min(diff.find('\n', at), diff.size());
    const std::string_view line = diff.substr(at, end - at);
    const bool head = line.starts_with("+++") || line.starts_with("---") || line.starts_with("@@");
    const char* tag = head                    ? "b"
                      : line.starts_with('+') ? "ins"
                      : line.starts_with('-') ? "del"
                                              : "";
    if (*tag != '\0')
      html += fmt::format("<{0}>{1}</{0}>", tag, HtmlLines(line));
    else
      html += HtmlLines(line) + "\n";
    at = end + 1;
  }
  return html;
}

std::string FoldedHtml(std::string_view summary, std::string_view content, bool on_paper) {
  return fmt::format("<details{}><summary>{}</summary>\n{}</details>\n",
                     on_paper ? " class=\"paper\"" : "", HtmlText(summary), content);
}

std::string ScrollingPre(std::string_view html, std::string_view label) {
  // A region that scrolls can be reached by the keyboard.
  return fmt::format("<pre tabindex=\"0\" role=\"region\" aria-label=\"{}\">{}</pre>\n",
                     HtmlText(label), html);
}

std::string_view EvidenceWord(Evidence::Kind kind) {
  return kind == Evidence::Kind::kFound     ? "found"
         : kind == Evidence::Kind::kAgainst ? "against"
                                            : "open";
}

}  // namespace assay

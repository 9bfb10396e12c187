// Pages at the door: signing in, joining a class, and what went wrong. Pure.
#pragma once

#include <string>

#include "web/layout.h"

namespace assay {

// `next`: the page to go on to; empty: the board.
std::string RenderLoginPage(const std::string& fault, PageFrame frame,
                            const std::string& next = {});

struct JoinView {
  std::string code, class_name;
  std::string name = {};   // as sent and refused; else empty
  std::string fault = {};  // may be empty
  bool is_over = false;    // the invitation has been used or has expired
};
std::string RenderJoinPage(const JoinView& view, PageFrame frame);

// The token of a new account, which is shown once.
std::string RenderWelcomePage(const std::string& name, const std::string& token, PageFrame frame);

// An error of HTTP in words: what it is, why, and where to go on.
struct ErrorView {
  int status = 404;
  std::string message;    // may be empty: the status' own words
  int retry_after_s = 0;  // of 429 and 503; 0: not told
};
std::string RenderErrorPage(const ErrorView& view, PageFrame frame);

}  // namespace assay

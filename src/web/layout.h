// The frame of every page: head, navigation, footer. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "serve/types.h"
#include "web/html.h"

namespace assay {

// The reader of a page. `csrf`: the token that each form must send; empty: nobody is signed in.
struct Viewer {
  std::optional<Account> account = {};
  std::string csrf = {};

  bool IsMentor() const { return account && account->role == Role::kMentor; }
};

// The part of the site that the navigation shows as current.
enum class Place {
  kBoard,
  kProblems,
  kLadders,
  kRuns,
  kJobs,
  kClasses,
  kWorklogs,
  kMachine,
  kElsewhere
};

struct PageFrame {
  std::string title;  // before " · Assay"
  Place place = Place::kElsewhere;
  Viewer viewer = {};
  std::string notice = {};  // a line above the page; may be empty
  bool example = false;     // the server shows examples: each page says so
  int reload_s = 0;         // without scripts, the page is loaded again after this; 0: never
  bool narrow = false;      // a short form
};

// A whole document.
std::string RenderPage(const PageFrame& frame, const Html& main);

// A hidden field with the token, for forms.
Html CsrfField(const Viewer& viewer);

}  // namespace assay

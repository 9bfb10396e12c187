#include "cli/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

namespace assay {
namespace {

// A command by its words ("problems show"), parents first.
struct Node {
  std::string path;
  const CLI::App* app;
};

void Collect(const CLI::App& app, const std::string& path, std::vector<Node>* nodes) {
  nodes->push_back({path, &app});
  for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!child->get_group().empty())
      Collect(*child, path.empty() ? child->get_name() : path + " " + child->get_name(), nodes);
}

std::vector<Node> Tree(const CLI::App& app) {
  std::vector<Node> nodes;
  Collect(app, "", &nodes);
  return nodes;
}

std::vector<const CLI::Option*> Options(const CLI::App& app) {
  std::vector<const CLI::Option*> named;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty() &&
        (!option->get_lnames().empty() || !option->get_snames().empty()))
      named.push_back(option);
  return named;
}

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// Words that an option takes, where they are few and known.
std::string_view ValuesOf(std::string_view option) {
  if (option == "size") return "tiny small large";
  if (option == "baseline")
    return "eager compiled compiled-reduce-overhead compiled-max-autotune eager,compiled best";
  if (option == "precision") return "float64 float32 tf32 float16 bfloat16";
  if (option == "tolerance") return "error-ratio allclose:1e-4 allclose:1e-2";
  if (option == "form") return "native c python cuda device";
  return {};
}

std::vector<std::string> ChildNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!child->get_group().empty()) names.push_back(child->get_name());
  return names;
}

std::string Words(const Node& node) {
  std::string words;
  for (const std::string& name : ChildNames(*node.app)) words += name + " ";
  for (const CLI::Option* option : Options(*node.app)) {
    for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
    for (const std::string& name : option->get_snames()) words += "-" + name + " ";
  }
  if (!words.empty()) words.pop_back();
  return words;
}

// Commands whose first free word is a problem.
bool TakesProblem(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional() && option->get_name(true) == "PROBLEM") return true;
  return false;
}

// A shell's case over "$path $word": the words so far become the path of a command.
std::string PathCases(const CLI::App& app) {
  std::string text;
  for (const Node& node : Tree(app)) {
    if (node.path.empty()) continue;
    const bool nested = node.path.find(' ') != std::string::npos;
    text += fmt::format("      '{}{}') path='{}' ;;\n", nested ? "" : " ", node.path, node.path);
  }
  return text;
}

std::string Bash(const CLI::App& app) {
  std::string text =
      "# bash completion for assay: source it, or keep it in\n"
      "# ~/.local/share/bash-completion/completions/assay\n"
      "_assay() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} path= i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \"$path ${COMP_WORDS[i]}\" in\n";
  text += PathCases(app);
  text += "    esac\n  done\n  case $before in\n";
  for (const char* option : {"size", "baseline", "precision", "tolerance", "form"})
    text += fmt::format("    --{}) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n",
                        option, ValuesOf(option));
  text += "  esac\n  local words=\n  case $path in\n";
  for (const Node& node : Tree(app))
    text += fmt::format(
        "    '{}') words='{}'{} ;;\n", node.path, Words(node),
        TakesProblem(*node.app) ? "\" $(assay problems --names 2>/dev/null | tr '\\n' ' ')\"" : "");
  text +=
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
      "  [[ $word == -* || -z $path ]] || COMPREPLY+=($(compgen -f -- \"$word\"))\n"
      "}\n"
      "complete -o filenames -F _assay assay\n";
  return text;
}

std::string EscapedForQuotes(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\'') {
      escaped += "'\\''";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string FirstLine(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

std::string ZshOption(const CLI::Option& option) {
  std::string description;
  for (const char c : FirstLine(option.get_description())) {
    if (c == '[' || c == ']' || c == ':') description += '\\';
    description += c;
  }
  std::string text;
  const auto add = [&](const std::string& name) {
    std::string value;
    if (TakesValue(option)) {
      const std::string_view words = ValuesOf(name.substr(std::min<size_t>(2, name.size())));
      value = words.empty() ? ":value:_files" : fmt::format(":value:({})", words);
    }
    text += fmt::format(" \\\n        '*{}[{}]{}'", name, EscapedForQuotes(description), value);
  };
  for (const std::string& name : option.get_lnames()) add("--" + name);
  for (const std::string& name : option.get_snames()) add("-" + name);
  return text;
}

std::string Zsh(const CLI::App& app) {
  std::string text =
      "#compdef assay\n"
      "# zsh completion for assay: keep it as _assay in a folder of $fpath.\n"
      "_assay_problems() {\n"
      "  local -a names=(${(f)\"$(assay problems --names 2>/dev/null)\"})\n"
      "  _alternative 'problems:problem:compadd -a names' 'files:file:_files'\n"
      "}\n"
      "_assay() {\n"
      "  local path= word\n"
      "  for word in ${words[2,CURRENT-1]}; do\n"
      "    case \"$path $word\" in\n";
  text += PathCases(app);
  text += "    esac\n  done\n  case $path in\n";
  for (const Node& node : Tree(app)) {
    text += fmt::format("    '{}')\n      _arguments", node.path);
    for (const CLI::Option* option : Options(*node.app)) text += ZshOption(*option);
    const auto children = ChildNames(*node.app);
    if (!children.empty()) {
      text += fmt::format(" \\\n        '*:command:({})'", fmt::join(children, " "));
    } else {
      text += TakesProblem(*node.app) ? " \\\n        '*:problem or file:_assay_problems'"
                                      : " \\\n        '*:file:_files'";
    }
    text += "\n      ;;\n";
  }
  return text + "  esac\n}\n_assay \"$@\"\n";
}

std::string Fish(const CLI::App& app) {
  std::string text =
      "# fish completion for assay: keep it as ~/.config/fish/completions/assay.fish\n"
      "complete -c assay -f\n";
  for (const Node& node : Tree(app)) {
    const std::string seen = node.path.empty() ? std::string() : node.path;
    const std::string last = seen.substr(seen.rfind(' ') + 1);
    const std::string condition =
        seen.empty() ? "__fish_use_subcommand" : "__fish_seen_subcommand_from " + last;
    for (const CLI::App* child : node.app->get_subcommands([](const CLI::App*) { return true; }))
      if (!child->get_group().empty())
        text +=
            fmt::format("complete -c assay -n '{}' -a {} -d '{}'\n", condition, child->get_name(),
                        EscapedForQuotes(FirstLine(child->get_description())));
    for (const CLI::Option* option : Options(*node.app)) {
      text += fmt::format("complete -c assay -n '{}'", condition);
      for (const std::string& name : option->get_lnames()) text += " -l " + name;
      for (const std::string& name : option->get_snames()) text += " -s " + name;
      if (TakesValue(*option)) {
        const auto& names = option->get_lnames();
        const std::string_view words = names.empty() ? std::string_view() : ValuesOf(names[0]);
        text += words.empty() ? " -r -F" : fmt::format(" -x -a '{}'", words);
      }
      text += fmt::format(" -d '{}'\n", EscapedForQuotes(FirstLine(option->get_description())));
    }
    if (TakesProblem(*node.app))
      text += fmt::format(
          "complete -c assay -n '{}' -F -a '(assay problems --names 2>/dev/null)'\n", condition);
    else if (!seen.empty() && ChildNames(*node.app).empty())
      text += fmt::format("complete -c assay -n '{}' -F\n", condition);
  }
  return text;
}

// Text for man(7): backslashes and leading dots mean something there, and a minus is not a hyphen.
std::string Roff(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if ((c == '.' || c == '\'') && (escaped.empty() || escaped.back() == '\n')) {
      escaped += std::string("\\&") + c;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// "INT" of "INT:INT in [1 - 4096]".
std::string TypeOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

void ManualOptions(const CLI::App& app, std::string* text) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    std::vector<std::string> names;
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    if (names.empty()) names.push_back(option->get_name(true));
    std::string value;
    if (TakesValue(*option) && !option->get_positional())
      value = " \\fI" + Roff(TypeOf(*option)) + "\\fR";
    *text +=
        fmt::format(".TP\n\\fB{}\\fR{}\n{}{}\n", Roff(fmt::format("{}", fmt::join(names, ", "))),
                    value, Roff(option->get_description()),
                    option->get_default_str().empty()
                        ? std::string()
                        : Roff(fmt::format(" (default: {})", option->get_default_str())));
  }
}

std::string Upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// The head of a page, up to the heading of its synopsis.
std::string ManualTitle(const std::string& name, std::string_view version,
                        const std::string& what) {
  return fmt::format(
      ".TH {} 1 \"\" \"assay {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n",
      Upper(name), version, Roff(name), Roff(what));
}

std::string Synopsis(const Node& node) {
  std::string text = fmt::format(".B assay {}\n[\\fIOPTIONS\\fR]", Roff(node.path));
  if (!ChildNames(*node.app).empty()) text += " [\\fISUBCOMMAND\\fR]";
  for (const CLI::Option* option : node.app->get_options()) {
    if (!option->get_positional()) continue;
    const std::string many = option->get_items_expected_max() > 1 ? "..." : "";
    const std::string name = "\\fI" + Roff(option->get_name(true)) + "\\fR" + many;
    text += option->get_required() ? " " + name : " [" + name + "]";
  }
  return text + "\n";
}

std::string ManualSection(const Node& node, const std::string& heading) {
  std::string text =
      fmt::format(".SH \"{}\"\n{}\n", Upper(heading), Roff(node.app->get_description()));
  ManualOptions(*node.app, &text);
  if (!node.app->get_footer().empty())
    text += fmt::format(".PP\n.nf\n{}\n.fi\n", Roff(node.app->get_footer()));
  return text;
}

}  // namespace

Result<std::string> CompletionScript(const CLI::App& app, std::string_view shell) {
  if (shell == "bash") return Bash(app);
  if (shell == "zsh") return Zsh(app);
  if (shell == "fish") return Fish(app);
  return UsageError(fmt::format("no completions for '{}': use bash, zsh or fish", shell));
}

std::string ManualPage(const CLI::App& app, std::string_view version) {
  std::string text = ManualTitle("assay", version, "judge compute kernels") +
                     ".B assay\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n" +
                     Roff(app.get_description()) + "\n";
  for (const Node& node : Tree(app))
    if (!node.path.empty()) text += ManualSection(node, "ASSAY " + node.path);
  return text;
}

void ManOptions::AddTo(CLI::App& app) {
  app.add_option("COMMAND", command, "A command, such as judge (default: all on one page)");
  app.add_option("--folder", folder, "Write all pages into this folder, which exists");
  app.footer("Examples:\n  assay man judge | man -l -\n  assay man --folder pages");
}

std::vector<std::string> CommandNames(const CLI::App& app) { return ChildNames(app); }

Result<std::string> ManualPageOf(const CLI::App& app, std::string_view version,
                                 const std::string& command) {
  const std::vector<Node> nodes = Tree(app);
  const auto found = std::ranges::find(nodes, command, &Node::path);
  if (command.empty() || command.contains(' ') || found == nodes.end())
    return UsageError(fmt::format("assay has no command '{}': assay --help lists them", command));
  std::string text =
      ManualTitle("assay-" + command, version, found->app->get_description()) + Synopsis(*found);
  text += ManualSection(*found, "DESCRIPTION");
  for (const Node& node : nodes)
    if (node.path.starts_with(command + " ")) text += ManualSection(node, "ASSAY " + node.path);
  return text + ".SH SEE ALSO\n.BR assay (1)\n";
}

}  // namespace assay

#include "cli/command_line.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <map>

#include "base/error.h"
#include "base/version.h"

namespace renkei::cli {
namespace {

constexpr const char* kSettingsPage =
    "# Settings\n\n"
    "This page is made by `renkei help settings`. Each setting is a key of the TOML file "
    "(`--config FILE.toml`),\ncan be given as `--set section.key=value`, and some have a flag of "
    "their own. Later wins: defaults,\nfile, `--set`, flags. `--print-config` shows the result.\n";

// A parsed command line before it is applied: flags of settings keep their text until the file and
// the --set assignments are in.
struct Parsed {
  Invocation invocation;
  std::string config_file;
  std::vector<std::string> assignments;
  bool print_config = false;
  std::map<std::string, std::string> setting_flags;  // name of the setting → text
};

void add_common_flags(Arguments& arguments, Parsed& parsed) {
  Invocation& invocation = parsed.invocation;
  arguments.flag("--json", invocation.json, "print one JSON object on stdout, all else on stderr");
  arguments.flag("--quiet", invocation.quiet, "no progress and no banner");
  arguments.option("--config", parsed.config_file, "read settings from a TOML file");
  arguments.option("--set", parsed.assignments, "set any setting (renkei help settings lists them)")
      .value_name("KEY=VALUE")
      .one_value_each();
  arguments.flag("--print-config", parsed.print_config, "print all settings as TOML and stop");
  arguments.option("-n", invocation.ranks, "start this many local ranks")
      .value_name("RANKS")
      .range(1, 1 << 20);
}

void add_setting_flags(Arguments& arguments, const Command& command, Parsed& parsed) {
  for (const Setting& setting : parsed.invocation.settings.declared()) {
    const std::string section = setting.name.substr(0, setting.name.find('.'));
    const bool wanted = section == "run" || std::ranges::count(command.sections, section) > 0;
    const bool replaced = std::ranges::count(command.own_flags, setting.flag) > 0;
    if (setting.flag.empty() || !wanted || replaced) continue;
    const std::string help =
        setting.default_value.empty() || setting.default_value == "auto"
            ? setting.help
            : fmt::format("{} (default {})", setting.help, setting.default_value);
    arguments.option(setting.flag, parsed.setting_flags[setting.name], help).value_name("VALUE");
  }
}

CLI::App* find_inner(CLI::App& app, const std::string& name) {
  const auto found =
      app.get_subcommands([&](CLI::App* inner) { return inner->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

// The app of a command; "data synth" is made below the group "data".
CLI::App& add_app(CLI::App& root, const Command& command) {
  const size_t blank = command.name.find(' ');
  if (blank == std::string::npos) return *root.add_subcommand(command.name, command.summary);
  const std::string group_name = command.name.substr(0, blank);
  CLI::App* group = find_inner(root, group_name);
  if (!group) {
    const std::map<std::string, std::string> summaries{{"data", "commands for data sets"},
                                                       {"model", "what can be trained"},
                                                       {"bench", "measure, beside the peers"},
                                                       {"study", "published experiments again"}};
    group = root.add_subcommand(group_name, summaries.at(group_name));
    group->require_subcommand(1);
  }
  return *group->add_subcommand(command.name.substr(blank + 1), command.summary);
}

// CLI11 stops at the first flag it does not know; say which flag was probably meant.
void refuse_unknown(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    known.push_back(option->get_name(false, false));
  for (const CLI::App* inner : app.get_subcommands({})) known.push_back(inner->get_name());
  const auto near = nearest_name(word.substr(0, word.find('=')), known);
  std::string path = app.get_name();
  for (const CLI::App* parent = app.get_parent(); parent; parent = parent->get_parent())
    path = parent->get_name() + " " + path;
  const std::string more = fmt::format("'{} --help' lists what there is", path);
  throw Error(
      ErrorCode::usage,
      fmt::format("{}: unknown {} '{}'", path, word.starts_with("-") ? "flag" : "argument", word),
      near ? fmt::format("did you mean {}? {}", *near, more) : more);
}

void refuse_former(const Command& command, const std::string& word) {
  const std::string flag = word.substr(0, word.find('='));
  const auto former = command.former_flags.find(flag);
  if (former != command.former_flags.end())
    throw Error(ErrorCode::usage, fmt::format("renkei {} has no {} any more", command.name, flag),
                former->second);
}

const CLI::App& innermost(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

void apply(Parsed& parsed, const Command& command, const CLI::App& app) {
  Settings& settings = parsed.invocation.settings;
  if (command.earlier_settings)
    if (const auto file = command.earlier_settings(); !file.empty()) settings.load_toml(file);
  if (!parsed.config_file.empty()) settings.load_toml(parsed.config_file);
  constexpr std::string_view kCluster = "cluster.";
  for (const std::string& assignment : parsed.assignments)
    if (command.changes_cluster && assignment.starts_with(kCluster))
      parsed.invocation.cluster_changes.push_back(assignment.substr(kCluster.size()));
    else
      settings.set_assignment(assignment, "--set");
  for (const Setting& setting : std::vector<Setting>(settings.declared())) {
    // A command may have a flag of its own with the name of another section's.
    const auto value = parsed.setting_flags.find(setting.name);
    if (value == parsed.setting_flags.end()) continue;
    const CLI::Option* option = app.get_option_no_throw(setting.flag);
    if (option && option->count() > 0) settings.set(setting.name, value->second, setting.flag);
  }
}

// renkei help [COMMAND … | settings]
int help(CLI::App& root, const std::vector<std::string>& words, const Settings& settings) {
  if (words == std::vector<std::string>{"settings"}) {
    fmt::print("{}{}", kSettingsPage, settings.to_markdown());
    return 0;
  }
  CLI::App* app = &root;
  for (const std::string& word : words) {
    CLI::App* inner = find_inner(*app, word);
    if (!inner) refuse_unknown(*app, word);
    app = inner;
  }
  fmt::print("{}", app->help());
  return 0;
}

}  // namespace

int run_command_line(const std::vector<std::string>& arguments, const Settings& settings,
                     const std::vector<Command>& commands) {
  CLI::App root("Renkei trains neural networks on many devices, and explains the result.",
                "renkei");
  root.set_version_flag("--version", fmt::format("renkei {}", kVersion));
  root.require_subcommand(1);
  root.footer("'renkei help settings' lists all settings, 'renkei COMMAND --help' the flags.");

  std::vector<std::string> help_words;
  CLI::App* help_app = root.add_subcommand("help", "help on a command, or on settings");
  Arguments(*help_app).option("topic", help_words, "a command, or 'settings'");

  // Words behind -- belong to another program, for the commands that start one with them.
  const bool has_rest =
      arguments.size() > 1 && std::ranges::any_of(commands, [&](const Command& c) {
        return c.takes_rest && c.name == arguments[1];
      });
  const auto mark =
      has_rest ? std::find(arguments.begin() + 1, arguments.end(), "--") : arguments.end();
  std::vector<Parsed> parsed(commands.size());
  std::vector<CLI::App*> apps;
  for (size_t i = 0; i < commands.size(); ++i) {
    parsed[i].invocation.command = commands[i].name;
    parsed[i].invocation.settings = settings;
    parsed[i].invocation.arguments = arguments;
    if (mark != arguments.end()) parsed[i].invocation.rest.assign(mark + 1, arguments.end());
    apps.push_back(&add_app(root, commands[i]));
    apps[i]->allow_extras();
    apps[i]->prefix_command(commands[i].starts_program);
    apps[i]->set_version_flag("--version", fmt::format("renkei {}", kVersion));
    Arguments own(*apps[i]);
    add_common_flags(own, parsed[i]);
    add_setting_flags(own, commands[i], parsed[i]);
    if (commands[i].add_flags) commands[i].add_flags(own);
  }
  root.allow_extras();

  try {
    std::vector<std::string> words(std::make_reverse_iterator(mark), arguments.rend() - 1);
    root.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", innermost(root).help());
    return 0;
  } catch (const CLI::CallForVersion&) {
    fmt::print("renkei {}\n", kVersion);
    return 0;
  } catch (const CLI::ParseError& error) {
    const CLI::App& app = innermost(root);
    if (!root.remaining().empty()) refuse_unknown(root, root.remaining().front());
    throw Error(ErrorCode::usage, fmt::format("{}: {}", app.get_name(), error.what()),
                "'renkei --help' lists the commands, 'renkei COMMAND --help' the flags");
  }
  if (!root.remaining().empty()) refuse_unknown(innermost(root), root.remaining().front());
  if (help_app->parsed()) return help(root, help_words, settings);

  for (size_t i = 0; i < commands.size(); ++i) {
    if (!apps[i]->parsed()) continue;
    if (commands[i].starts_program) parsed[i].invocation.program = apps[i]->remaining();
    if (!commands[i].takes_anything) {
      const bool programs = commands[i].starts_program && !apps[i]->remaining().empty() &&
                            !apps[i]->remaining().front().starts_with("-");
      if (!apps[i]->remaining().empty() && !programs) {
        const std::string word = apps[i]->remaining().front();
        refuse_former(commands[i], word);
        refuse_unknown(*apps[i], word);
      }
      apply(parsed[i], commands[i], *apps[i]);
    }
    if (parsed[i].print_config) {
      fmt::print("{}", parsed[i].invocation.settings.to_toml());
      return 0;
    }
    return commands[i].run(parsed[i].invocation);
  }
  throw Error(ErrorCode::bug, "no command was chosen");
}

}  // namespace renkei::cli

#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/settings.h"
#include "cli/arguments.h"

namespace renkei::cli {

// What the user asked for: flags that all commands have, and all settings.
struct Invocation {
  std::string command;  // "train", "data synth"
  Settings settings;
  bool json = false;
  bool quiet = false;
  int ranks = 0;                       // -n; 0: not given
  int restarts = 0;                    // of a job that loses ranks, where the command can go on
  std::vector<std::string> arguments;  // the command line, to start ranks with
  std::vector<std::string> program;    // of a command that starts one: its words
  std::vector<std::string> cluster_changes;  // --set cluster.KEY=VALUE, without "cluster."
  std::vector<std::string> rest;             // what follows --, where the command takes that
};

// One command: a file in this folder makes it, main lists it.
struct Command {
  std::string name;     // "train"; "data synth" is the command synth of the group data
  std::string summary;  // one line
  std::vector<std::string> sections;               // whose settings have flags here
  std::function<void(Arguments&)> add_flags = {};  // its own arguments, where it has some
  std::function<int(Invocation&)> run;             // returns the exit code
  // A file of settings that comes before all others, where the arguments name one.
  std::function<std::filesystem::path()> earlier_settings = {};
  bool changes_cluster = false;             // takes --set cluster.KEY=VALUE
  std::vector<std::string> own_flags = {};  // of these sections, that it has its own version of
  bool takes_rest = false;                  // -- and words that are not its own may follow
  bool takes_anything = false;  // accepts every flag: it will only say why it cannot run
  bool starts_program =
      false;  // the first word that is no flag, and all behind it, are a program's
  std::map<std::string, std::string> former_flags = {};  // that are gone, and what to do instead
};

}  // namespace renkei::cli

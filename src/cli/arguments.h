// What a command asks for on its command line. The parser behind it, CLI11, is known to
// arguments.cpp and command_line.cpp only: its header takes longer to compile than any of ours.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace renkei::cli {

// One argument that was added; the functions narrow what it takes and return it again.
class Argument {
 public:
  explicit Argument(CLI::Option* option) : option_(option) {}

  Argument required();
  Argument show_default();                       // in the help: the value of its variable now
  Argument value_name(const std::string& name);  // in the help: KEY=VALUE
  Argument one_value_each();                     // of a list: --set A --set B, not --set A B
  Argument optional_value();                     // --resume, or --resume RUN
  Argument one_of(std::vector<std::string> names);
  Argument excludes(Argument other);
  Argument range(int low, int high);  // both ends are allowed
  Argument range(int64_t low, int64_t high);
  Argument range(double low, double high);

 private:
  CLI::Option* option_;
};

// The arguments of a command. A variable is set when its argument is given, keeps its value
// otherwise, and must outlive the parsing. Names with dashes are options; others are positional.
class Arguments {
 public:
  explicit Arguments(CLI::App& app) : app_(app) {}

  Argument flag(const std::string& name, bool& variable, const std::string& help);

  Argument option(const std::string& name, std::string& variable, const std::string& help);
  Argument option(const std::string& name, std::filesystem::path& variable,
                  const std::string& help);
  Argument option(const std::string& name, std::vector<std::string>& variable,
                  const std::string& help);
  Argument option(const std::string& name, int& variable, const std::string& help);
  Argument option(const std::string& name, int64_t& variable, const std::string& help);
  Argument option(const std::string& name, double& variable, const std::string& help);

 private:
  CLI::App& app_;
};

}  // namespace renkei::cli

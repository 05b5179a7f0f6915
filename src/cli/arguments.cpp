#include "cli/arguments.h"

#include <CLI/CLI.hpp>

#include <utility>

namespace renkei::cli {

Argument Argument::required() {
  return Argument(option_->required());
}

Argument Argument::show_default() {
  return Argument(option_->capture_default_str());
}

Argument Argument::value_name(const std::string& name) {
  return Argument(option_->type_name(name));
}

Argument Argument::one_value_each() {
  return Argument(option_->allow_extra_args(false));
}

Argument Argument::optional_value() {
  return Argument(option_->expected(0, 1));
}

Argument Argument::one_of(std::vector<std::string> names) {
  return Argument(option_->check(CLI::IsMember(std::move(names))));
}

Argument Argument::excludes(Argument other) {
  return Argument(option_->excludes(other.option_));
}

Argument Argument::range(int low, int high) {
  return Argument(option_->check(CLI::Range(low, high)));
}

Argument Argument::range(int64_t low, int64_t high) {
  return Argument(option_->check(CLI::Range(low, high)));
}

Argument Argument::range(double low, double high) {
  return Argument(option_->check(CLI::Range(low, high)));
}

Argument Arguments::flag(const std::string& name, bool& variable, const std::string& help) {
  return Argument(app_.add_flag(name, variable, help));
}

Argument Arguments::option(const std::string& name, std::string& variable,
                           const std::string& help) {
  return Argument(app_.add_option(name, variable, help));
}

Argument Arguments::option(const std::string& name, std::filesystem::path& variable,
                           const std::string& help) {
  return Argument(app_.add_option(name, variable, help));
}

Argument Arguments::option(const std::string& name, std::vector<std::string>& variable,
                           const std::string& help) {
  return Argument(app_.add_option(name, variable, help));
}

Argument Arguments::option(const std::string& name, int& variable, const std::string& help) {
  return Argument(app_.add_option(name, variable, help));
}

Argument Arguments::option(const std::string& name, int64_t& variable, const std::string& help) {
  return Argument(app_.add_option(name, variable, help));
}

Argument Arguments::option(const std::string& name, double& variable, const std::string& help) {
  return Argument(app_.add_option(name, variable, help));
}

}  // namespace renkei::cli

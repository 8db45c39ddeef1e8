#include "capstan/config/toml_file.h"

#include <sstream>

#include <toml++/toml.h>

#include "capstan/config/given.h"

namespace capstan::config {
namespace {

// Not with toml++: it sorts keys and prints more digits than a number needs.
void write(std::ostream& out, const Field& field) {
  const auto& value = field.setting.value;
  const auto text = text_of(value);
  out << field.name() << " = ";
  if (std::holds_alternative<std::string*>(value) || std::holds_alternative<std::filesystem::path*>(value))
    out << toml::toml_formatter(toml::value<std::string>(text), toml::format_flags::allow_literal_strings);
  else
    out << text;
  out << "\n";
}

}  // namespace

std::string JobConfig::to_toml() const {
  auto all = resolved(), own = *this;
  const auto values = fields(all), given_values = fields(own);
  std::ostringstream out, derived;
  for (std::size_t i = 0; i < values.size(); ++i) {
    // Unset although resolved: an option of another optimizer.
    if (values[i].is_kept() && !is_unset(values[i]))
      write(is_unset(given_values[i]) ? derived : out, values[i]);
  }
  out << "\n# Not given: derived from the fields above and from the machine. This table is not read.\n["
      << kDerivedTable << "]\n"
      << derived.str();
  return out.str();
}

JobConfig load(const std::filesystem::path& file) {
  JobConfig config;
  const auto table = fields(config);
  const auto given = read_file(file, table);
  apply(table, {given});
  for (const auto& g : given) config.given.emplace(g.field->target());
  return config;
}

}  // namespace capstan::config

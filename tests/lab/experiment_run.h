#pragma once

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cluster/program.h"

// Runs an experiment of `capstan bench ps` as a user would.
namespace capstan::lab {

// The measured run of one configuration.
struct Measured {
  std::string name;
  nlohmann::json run;
  std::filesystem::path folder;  // with what it saved
};

// The name of a configuration as that of a folder.
inline std::string folder_name(std::string name) {
  for (auto& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && !std::strchr(".-_=", c)) c = '_';
  return name;
}

// One experiment, in a folder of its own. Not thread-safe.
class ExperimentRun {
 public:
  explicit ExperimentRun(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  const testing::Folder& folder() const { return folder_; }

  std::unique_ptr<testing::Program> run(const testing::Flags& flags) const {
    testing::Flags arguments = {"bench",   "ps",         "--experiment=" + name_,
                                "--quick", "--repeat=1", "--save=" + saved().string(),
                                "--json"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return std::make_unique<testing::Program>(folder_, arguments);
  }

  // Every configuration. Checks the result's other forms, too.
  std::vector<Measured> measure(testing::Flags flags) const {
    const auto csv = folder_ / "result.csv", file = folder_ / "result.json";
    flags.push_back("--csv=" + csv.string());
    const auto program = run(flags);
    EXPECT_EQ(program->exit_code(), 0) << program->errors();
    const auto result = program->json();
    EXPECT_EQ(result.value("ok", false), true) << program->errors();
    if (::testing::Test::HasFailure()) return {};
    std::ofstream(file) << program->output();
    expect_rows(csv, result);
    expect_report(file, result);
    return measured(result);
  }

 private:
  std::filesystem::path saved() const { return folder_ / "saved"; }

  std::vector<Measured> measured(const nlohmann::json& result) const {
    std::vector<Measured> list;
    const auto& all = result.at("configurations");
    for (const auto& configuration : all) {
      const auto name = configuration.at("name").get<std::string>();
      EXPECT_TRUE(configuration.at("error").is_null()) << name;
      EXPECT_EQ(configuration.at("runs").size(), 1u) << name;
      const auto folder = all.size() == 1 ? saved() : saved() / folder_name(name);
      list.push_back({name, configuration.at("runs").at(0), folder / "run-1"});
    }
    return list;
  }

  // A row for each metric, with the same values.
  static void expect_rows(const std::filesystem::path& csv, const nlohmann::json& result);
  void expect_report(const std::filesystem::path& file, const nlohmann::json& result) const {
    testing::Program report(folder_, {"report", file.string()});
    EXPECT_EQ(report.exit_code(), 0) << report.errors();
    EXPECT_THAT(report.output(), ::testing::HasSubstr(name_));
    // Its tables have the names without the types.
    for (const auto& metric : result.at("configurations").at(0).at("runs").at(0).at("metrics")) {
      const auto name = metric.at("name").get<std::string>();
      EXPECT_THAT(report.output(), ::testing::HasSubstr("\n" + name.substr(name.find(',') + 1) + " "));
    }
  }

  const std::string name_;
  const testing::Folder folder_;
};

// The fields of a line, of which some have quotes.
inline std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      fields.emplace_back();
    else
      fields.back() += c;
  }
  return fields;
}

inline void ExperimentRun::expect_rows(const std::filesystem::path& csv, const nlohmann::json& result) {
  std::ifstream file(csv);
  std::string line;
  std::getline(file, line);
  const auto header = fields_of(line);
  const auto next = [&] {
    std::map<std::string, std::string> row;
    if (!std::getline(file, line)) return row;
    const auto fields = fields_of(line);
    EXPECT_EQ(fields.size(), header.size()) << line;
    for (std::size_t i = 0; i < std::min(fields.size(), header.size()); ++i) row[header[i]] = fields[i];
    return row;
  };
  for (const auto& configuration : result.at("configurations")) {
    const auto& run = configuration.at("runs").at(0);
    const auto whole = next();
    EXPECT_EQ(whole.at("rank"), "run");
    const auto whole_value = [&](const char* key) { return std::strtod(whole.at(key).c_str(), nullptr); };
    EXPECT_EQ(whole_value("loss"), run.at("loss").get<double>());
    EXPECT_EQ(whole_value("bytes_pushed"), run.at("bytes").at("pushed").get<double>());
    EXPECT_EQ(whole_value("backward_ms"), run.at("step").at("backward").get<double>());
    for (const auto& metric : run.at("metrics")) {
      auto row = next();
      EXPECT_EQ(row["configuration"], configuration.at("name"));
      EXPECT_EQ(row["run"], "1");
      for (const auto* key : {"rank", "name", "unit"}) EXPECT_EQ(row[key], metric.at(key)) << key;
      for (const auto* key : {"count", "min", "max", "mean", "variance", "stdev", "p50", "p95", "p99"})
        if (metric.at(key).is_null())
          EXPECT_EQ(row[key], "") << key;
        else
          EXPECT_EQ(std::strtod(row[key].c_str(), nullptr), metric.at(key).get<double>()) << key;
    }
  }
  EXPECT_FALSE(std::getline(file, line)) << line;
}

}  // namespace capstan::lab

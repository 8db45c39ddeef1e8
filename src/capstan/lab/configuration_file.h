#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "capstan/lab/configuration.h"

namespace capstan::lab {

// What a configuration file is about: which member of an entry names the class.
enum class Kind { kData, kModel, kTrainer, kServer };

// An entry of a configuration file: which class, and with which values.
struct Entry {
  std::string class_name;
  Configuration values;
};

// The entries of one JSON file by name:
//
//   {"DummyData": {"data_class": "DummyData", "configurations": {"max_val": 1024, …}}, …}
//
// An entry without the two members is the values themselves, of the class with the entry's name. Immutable.
class ConfigurationFile {
 public:
  // Throws UserError with file, line and column for text that is not JSON, for a name that appears twice, and
  // with file and key for other members and for values that are not numbers, texts, true or false.
  ConfigurationFile(const std::filesystem::path& path, Kind kind);

  // Throws UserError that lists the names for an unknown one.
  const Entry& entry(const std::string& name) const;
  std::vector<std::string> names() const;

 private:
  const std::string path_;
  std::map<std::string, Entry> entries_;
};

}  // namespace capstan::lab

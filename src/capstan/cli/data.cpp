#include <fmt/format.h>
#include <signal.h>

#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/signals.h"
#include "capstan/cli/status_line.h"
#include "capstan/fetch/get.h"
#include "capstan/fetch/listing.h"
#include "capstan/fetch/transfer_progress.h"
#include "capstan/fetch/verify.h"
#include "capstan/user_error.h"

namespace capstan::cli {
namespace {

using fetch::Entry;

struct Flags {
  std::string data_dir = "data", mirror;
  bool json = false;
};

template <class Result>
void print(const Result& result, const Flags& flags) {
  fmt::print("{}\n", flags.json ? json_line(result.json()) : result.text());
}

void add_flags(CommandLine& line, Flags& flags) {
  line.flag("data-dir", &flags.data_dir, "Folder with one subfolder per dataset");
  line.flag("json", &flags.json, "Print one JSON object");
}

int run_list(const Arguments& arguments) {
  Flags flags;
  CommandLine line("data list", "Lists the known datasets, and which of them are downloaded.\n");
  add_flags(line, flags);
  if (!line.parse(arguments)) return kSuccess;
  print(fetch::list_datasets(flags.data_dir), flags);
  return kSuccess;
}

int run_get(const Entry& entry, const Arguments& arguments) {
  Flags flags;
  CommandLine line("data get NAME",
                   "Downloads a dataset into the folder of its name, checks it and unpacks it. An\n"
                   "interrupted download is resumed.\n\n"
                   "  capstan data get mnist\n"
                   "  capstan data get cifar10 --data-dir /data --mirror http://mirror.example/cifar\n");
  add_flags(line, flags);
  line.flag("mirror", &flags.mirror, "URL or folder to get the files from, instead of the published ones");
  if (!line.parse(arguments)) return kSuccess;
  if (const auto nothing = fetch::built_in(entry)) {
    print(*nothing, flags);
    return kSuccess;
  }

  ::signal(SIGPIPE, SIG_IGN);  // a connection closed by the server is an error of that transfer only
  Interrupts interrupts;
  StatusLine shown;
  fetch::TransferProgress transfer;
  fetch::GetOptions options;
  options.data_dir = flags.data_dir;
  options.mirror = flags.mirror;
  options.say = [&](const std::string& text) { shown.say(text); };
  if (!flags.json)
    options.progress = [&](const auto& file, auto done, auto total) {
      shown.show(transfer.line(file, done, total, SteadyClock::now()));
    };
  options.interrupted = [&] { return interrupts.requests() > 0; };
  const auto result = fetch::get(entry, options);
  shown.erase();
  print(result, flags);
  return kSuccess;
}

int run_verify(const Entry& entry, const Arguments& arguments) {
  Flags flags;
  CommandLine line("data verify NAME",
                   "Reads every file of a dataset and checks it against the published checksums, or\n"
                   "against those recorded when it was unpacked.\n");
  add_flags(line, flags);
  if (!line.parse(arguments)) return kSuccess;
  if (const auto nothing = fetch::built_in(entry)) {
    print(*nothing, flags);
    return kSuccess;
  }
  const auto verdict = fetch::verify(entry, flags.data_dir);
  if (flags.json || verdict.good()) print(verdict, flags);
  for (const auto& problem : verdict.problems) say(problem);
  if (!verdict.good()) say("capstan: " + verdict.text());
  return verdict.good() ? kSuccess : kFailed;
}

void print_help() {
  fmt::print(
      "Usage: capstan data list [FLAGS]\n"
      "       capstan data get NAME [FLAGS]\n"
      "       capstan data verify NAME [FLAGS]\n\n"
      "  list    list the known datasets, and which are downloaded\n"
      "  get     download a dataset, check it and unpack it\n"
      "  verify  check the files of a dataset\n");
}

bool asks_for_help(const std::string& word) {
  return word == "--help" || word == "-h";
}

}  // namespace

int run_data(const Arguments& arguments) {
  const std::string verb = arguments.empty() ? "" : arguments[0];
  if (asks_for_help(verb)) {
    print_help();
    return kSuccess;
  }
  if (verb == "list") return run_list(Arguments(arguments.begin() + 1, arguments.end()));
  if (verb != "get" && verb != "verify")
    throw UserError("capstan data needs a subcommand: list, get NAME or verify NAME");
  const auto run = verb == "get" ? run_get : run_verify;
  const std::string name = arguments.size() > 1 ? arguments[1] : "";
  if (asks_for_help(name)) return run({}, {"--help"});
  if (name.empty() || name.starts_with('-'))
    throw UserError(fmt::format("capstan data {0} needs a dataset's name: capstan data {0} mnist", verb));
  return run(fetch::find_entry(name), Arguments(arguments.begin() + 2, arguments.end()));
}

}  // namespace capstan::cli

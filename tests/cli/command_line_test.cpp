#include "capstan/cli/command_line.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "capstan/user_error.h"

#include "support/temporary_folder.h"

namespace capstan::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using testing::write_file;

// A command with the fields of train and flags of its own.
struct Command {
  config::JobConfig job;
  std::uint64_t total_steps = 0;
  std::optional<std::uint32_t> rank;
  double connect_timeout = 30;
  bool json = false, verbose = false, hidden = false, found = true;

  explicit Command(const Arguments& arguments, config::Commands fields = config::kTrain) {
    CommandLine line("try", "What it does.\n\n  capstan try this\n");
    line.add(job, fields);
    line.flag("total-steps", &total_steps, "Updates of the whole run");
    line.flag("rank", &rank, "Rank of this worker");
    line.flag("connect-timeout", &connect_timeout, "Seconds", config::NumberRange{0.1, 1e6});
    line.flag("json", &json, "Print one JSON object\nand nothing else");
    line.flag("verbose", &verbose, "Log members that join and leave").also = "-v";
    line.flag("hidden", &hidden, "").hidden = true;
    found = line.parse(arguments);
  }
};

// The message of the UserError that these arguments cause.
std::string error(const Arguments& arguments) {
  try {
    const Command command(arguments);
  } catch (const UserError& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("not a UserError: ") + error.what();
  }
  return "no error";
}

class ConfigFile : public ::testing::Test {
 protected:
  // Writes `text`, and returns the arguments that read it, and more.
  Arguments with(const std::string& text, const Arguments& more = {}) {
    write_file(path_, text);
    Arguments out = {"--config", path_};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  std::string at(int line) const { return path_ + ":" + std::to_string(line) + ": "; }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "c.toml";
};

// ---- values ----

TEST(CommandLine, NetworkFlagsAreRead) {
  const Command none({});
  EXPECT_EQ(none.job.num_classes, 0u);
  EXPECT_EQ(none.job.init_seed, std::nullopt);
  const Command all({"--num_classes=7", "--image-size", "64", "--init-seed=0", "--weights=w.safetensors"});
  EXPECT_EQ(all.job.num_classes, 7u);
  EXPECT_EQ(all.job.image_size, 64u);
  EXPECT_EQ(all.job.init_seed, 0u);
  EXPECT_EQ(all.job.weights, "w.safetensors");
}

TEST(CommandLine, NumbersAreFiniteAndInTheirRange) {
  EXPECT_EQ(error({"--join-timeout", "nan"}), "--join-timeout nan: should be a number from 0.1 to 1000000");
  for (const std::string wrong : {"inf", "-inf", "1e400", "0", "1e7", "fast", "3s", " 3", "0.1.2"}) {
    EXPECT_EQ(error({"--join-timeout=" + wrong}),
              "--join-timeout " + wrong + ": should be a number from 0.1 to 1000000");
  }
  for (const std::string flag : {"--lr", "--momentum", "--weight-decay", "--eps"}) {
    for (const std::string wrong : {"nan", "inf", "fast"})
      EXPECT_EQ(error({flag, wrong}), flag + " " + wrong + ": should be a number");
  }
  const Command good({"--join-timeout=1e2", "--lr", "-1", "--momentum", ".5", "--eps=1e-8"});
  EXPECT_EQ(good.job.join_timeout, 100);
  EXPECT_EQ(good.job.optimizer.lr, -1);  // wrong, but checked by the optimizer
  EXPECT_EQ(good.job.optimizer.momentum, 0.5);
  EXPECT_EQ(good.job.optimizer.eps, 1e-8);
}

TEST(CommandLine, WholeNumbersDoNotWrapAround) {
  for (const std::string flag : {"--seed", "--max-steps", "--warmup", "--total-steps"}) {
    for (const std::string wrong :
         {"-1", "9223372036854775808", "99999999999999999999", "1.5", "1e3", "0x"}) {
      EXPECT_EQ(error({flag, wrong}),
                flag + " " + wrong + ": should be a whole number from 0 to 9223372036854775807");
    }
  }
  EXPECT_EQ(error({"--workers", "abc"}), "--workers abc: should be a whole number from 1 to 4096");
  EXPECT_EQ(error({"--workers=0"}), "--workers 0: should be a whole number from 1 to 4096");
  EXPECT_EQ(error({"--num-aggregate=-1"}), "--num-aggregate -1: should be a whole number from 1 to 4096");
  EXPECT_EQ(error({"--epochs=4294967297"}),
            "--epochs 4294967297: should be a whole number from 1 to 1048576");
  EXPECT_EQ(error({"--rank=4294967296"}), "--rank 4294967296: should be a whole number from 0 to 4294967295");
  const Command good({"--seed=9223372036854775807", "--rank=010", "--num-aggregate", "011", "--warmup=0x10"});
  EXPECT_EQ(good.job.seed, 9223372036854775807u);
  EXPECT_EQ(good.rank, 10u);
  EXPECT_EQ(good.job.strategy, "batch:11");
  EXPECT_EQ(good.job.optimizer.warmup, 16u);
}

TEST(CommandLine, AWrongWordListsTheValidOnes) {
  EXPECT_EQ(error({"--device", "x"}), "--device x: should be cpu or cuda");
  EXPECT_EQ(error({"--transport", "tcp"}), "--transport tcp: should be auto, local or ucx");
  EXPECT_EQ(error({"--json=maybe"}), "--json maybe: should be true or false");
  EXPECT_EQ(Command({"--device", "cuda"}).job.device, "cuda");
  EXPECT_FALSE(Command({"--json", "--json=false"}).json);
}

TEST(CommandLine, EmptyAndMissingValuesDoNotConsumeArguments) {
  EXPECT_EQ(error({"--listen", "", "--max-steps", "2"}), "--listen: is empty");
  EXPECT_EQ(error({"--listen=", "--max-steps", "2"}), "--listen: is empty");
  EXPECT_EQ(error({"--epochs="}), "--epochs: is empty");
  EXPECT_EQ(error({"--config", ""}), "--config: is empty");
  EXPECT_EQ(error({"--epochs"}), "--epochs needs a value");
  EXPECT_EQ(error({"--epochs", "--lr", "1"}), "--epochs needs a value");
}

TEST(CommandLine, TheLastOfEqualFlagsWins) {
  EXPECT_EQ(error({"--max-steps", "2", "--max-steps", "abc"}),
            "--max-steps abc: should be a whole number from 0 to 9223372036854775807");
  const Command twice({"--max-steps=2", "--max_steps", "3", "--train_dir=a_b", "-vv"});
  EXPECT_EQ(twice.job.max_steps, 3u);
  EXPECT_EQ(twice.job.train_dir, "a_b");
  EXPECT_TRUE(twice.verbose);
}

// ---- words that are not flags ----

TEST(CommandLine, UnknownWordsAreOneLine) {
  EXPECT_EQ(error({"--batchsize=3"}),
            "unknown flag --batchsize, did you mean --batch-size? (see capstan try --help)");
  EXPECT_EQ(error({"digits"}), "unexpected argument \"digits\" (see capstan try --help)");
  for (const std::string dashes : {"--", "-", "---", "--=3", "---=3"})
    EXPECT_EQ(error({dashes}), "unexpected argument \"" + dashes + "\" (see capstan try --help)");
  EXPECT_EQ(error({"--", "foo"}), "unexpected argument \"--\" (see capstan try --help)");
  EXPECT_EQ(error({"-x"}), "unknown flag -x (see capstan try --help)");
  EXPECT_EQ(error({"-vx"}), "unknown flag -x (see capstan try --help)");
  EXPECT_THAT(error({"--workers=1\n2", "--"}), Not(HasSubstr("\n")));
  EXPECT_THAT(error({"a\nb"}), Not(HasSubstr("\n")));
}

TEST(CommandLine, RequiredFlagsAreNamed) {
  std::string server;
  CommandLine line("try", "");
  line.flag("server", &server, "").required = true;
  EXPECT_THAT([&] { line.parse({}); },
              ::testing::ThrowsMessage<UserError>("--server is required (see capstan try --help)"));
}

TEST(CommandLine, OneFlagMayBePositional) {
  std::filesystem::path path;
  bool json = false;
  CommandLine line("try", "");
  line.positional("PATH", &path, "").required = true;
  line.flag("json", &json, "");
  EXPECT_THAT([&] { line.parse({"--json"}); },
              ::testing::ThrowsMessage<UserError>("PATH is required (see capstan try --help)"));
  EXPECT_THAT(
      [&] {
        line.parse({"a", "b"});
      },
      ::testing::ThrowsMessage<UserError>("unexpected argument \"b\" (see capstan try --help)"));
  EXPECT_TRUE(line.parse({"some/path_of", "--json"}));
  EXPECT_EQ(path, "some/path_of");
  EXPECT_TRUE(json);
}

TEST(CommandLine, AStrategysColonIsFollowedByItsOption) {
  for (const std::string name : {"sync", "async", "batch"}) {
    const Command command({"--strategy", name + ":"});
    try {
      command.job.validate();
      ADD_FAILURE() << name;
    } catch (const UserError& error) {
      EXPECT_EQ(error.what(), "strategy \"" + name + ":\": an option is missing after the colon");
    }
  }
}

// ---- configuration files ----

TEST_F(ConfigFile, IsOverriddenByFlags) {
  const Command command(
      with("epochs = 2\nbatch_size = 5\nlr = 0.5\njson = true\ntransport = \"ucx\"\n", {"--epochs=3"}));
  EXPECT_EQ(command.job.epochs, 3u);
  EXPECT_EQ(command.job.batch_size, 5u);
  EXPECT_EQ(command.job.optimizer.lr, 0.5);
  EXPECT_EQ(command.job.transport, "ucx");
  EXPECT_TRUE(command.json);
}

TEST_F(ConfigFile, IsOverriddenByFlagsThatSetTheSame) {
  const auto strategy = [&](const std::string& text, const Arguments& more) {
    return Command(with(text, more)).job.strategy;
  };
  EXPECT_EQ(strategy("num-aggregate = 2\n", {}), "batch:2");
  EXPECT_EQ(strategy("num-aggregate = 2\n", {"--strategy", "async"}), "async");
  EXPECT_EQ(strategy("strategy = \"async\"\nstaleness-damping = true\n", {"--strategy=sync"}), "sync");
  EXPECT_EQ(strategy("strategy = \"async\"\nstaleness-damping = true\n", {"--num-aggregate=3"}), "batch:3");
  EXPECT_EQ(strategy("strategy = \"async\"\n", {"--staleness-damping"}), "async:damped");
  EXPECT_EQ(strategy("strategy = \"async\"\nnum-aggregate = 2\n", {"--staleness_damping"}), "async:damped");
  EXPECT_EQ(strategy("num-aggregate = 2\n", {"--staleness-damping=false"}), "batch:2");
  EXPECT_EQ(Command(with("enable-gpu = true\n", {"--device", "cpu"})).job.device, "cpu");
  EXPECT_EQ(Command(with("device = \"cpu\"\n", {"--enable-gpu"})).job.device, "cuda");
}

TEST_F(ConfigFile, IsOverriddenUnderAnotherNameOfCheckpointEvery) {
  const auto every = [&](const std::string& text, const Arguments& more) {
    return Command(with(text, more)).job.checkpoint_every;
  };
  EXPECT_EQ(every("eval-freq = 100\n", {}), "100");
  EXPECT_EQ(every("eval-freq = 100\n", {"--checkpoint-every=5m"}), "5m");
  EXPECT_EQ(every("checkpoint-every = \"5m\"\n", {"--eval_freq", "7"}), "7");
}

// Every process of a job reads the job's file.
TEST_F(ConfigFile, MaySetFieldsOfOtherCommands) {
  const Command work(with("workers = 7\nepochs = 2\nstrategy = \"async\"\n"), config::kWork);
  EXPECT_EQ(work.job.epochs, 2u);
  EXPECT_EQ(work.job.workers, 7u) << "threads are derived from it";
  const auto of_work = [&](const Arguments& arguments) -> std::string {
    try {
      const Command command(arguments, config::kWork);
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(of_work({"--workers=7"}), "unknown flag --workers (see capstan try --help)");
  EXPECT_EQ(of_work(with("worker = 7\n")), at(1) + "worker: unknown key (did you mean workers?)");
  EXPECT_EQ(of_work(with("workers = 0\n")),
            at(1) + "workers: should be a whole number from 1 to 4096, not \"0\"");
}

// For example, bench data has its own --threads.
TEST_F(ConfigFile, AFlagOfTheCommandHidesTheFieldOfTheSameName) {
  std::uint32_t own = 1;
  for (const bool before : {false, true}) {
    config::JobConfig job;
    CommandLine line("try", "");
    if (before) line.flag("threads", &own, "My threads");
    line.add(job, config::kTrain);
    if (!before) line.flag("threads", &own, "My threads");
    EXPECT_THAT(line.help(), AllOf(HasSubstr("My threads [1]"), Not(HasSubstr("Compute threads"))));
    ASSERT_TRUE(line.parse(with("threads = 5\n")));
    EXPECT_EQ(own, 5u);
    ASSERT_TRUE(line.parse({"--threads=6"}));
    EXPECT_EQ(own, 6u);
    EXPECT_EQ(job.threads, 0u);
    EXPECT_THAT(job.given, ::testing::IsEmpty());
    own = 1;
  }
}

TEST_F(ConfigFile, OfARunIsReadFirst) {
  write_file(folder_ / "run.toml", "epochs = 5\nbatch-size = 6\nseed = 7\n");
  config::JobConfig job;
  CommandLine line("try", "");
  line.add(job, config::kTrain);
  line.read_first(folder_ / "run.toml");
  ASSERT_TRUE(line.parse(with("batch-size = 60\nseed = 70\n", {"--seed=700"})));
  EXPECT_EQ(job.epochs, 5u);
  EXPECT_EQ(job.batch_size, 60u);
  EXPECT_EQ(job.seed, 700u);
}

TEST_F(ConfigFile, AndFlagsRecordTheGivenFields) {
  EXPECT_THAT(Command({}).job.given, ::testing::IsEmpty());
  EXPECT_THAT(Command(with("epochs = 15\nenable-gpu = true\n", {"--lr=1", "--json"})).job.given,
              ::testing::ElementsAre("device", "epochs", "lr"));
}

TEST_F(ConfigFile, EmptyValueMeansTheDefault) {
  const Command command(with("train_dir = \"\"\nlisten = \"\"\n", {"--max-steps", "2"}));
  EXPECT_EQ(command.job.train_dir, "");
  EXPECT_EQ(command.job.listen, "127.0.0.1:0");
  EXPECT_EQ(command.job.max_steps, 2u);
}

TEST_F(ConfigFile, ErrorsNameTheLine) {
  EXPECT_EQ(error(with("epochs = \"two\"\n")),
            at(1) + "epochs: should be a whole number from 1 to 1048576, not \"two\"");
  EXPECT_EQ(error(with("\nworkers = 0\n")),
            at(2) + "workers: should be a whole number from 1 to 4096, not \"0\"");
  EXPECT_EQ(error(with("seed = -1\n")),
            at(1) + "seed: should be a whole number from 0 to 9223372036854775807, not \"-1\"");
  EXPECT_EQ(error(with("join-timeout = nan\n")),
            at(1) + "join-timeout: should be a number from 0.1 to 1000000, not \"nan\"");
  EXPECT_EQ(error(with("device = \"x\"\n")), at(1) + "device: should be cpu or cuda, not \"x\"");
  EXPECT_EQ(error(with("json = \"maybe\"\n")), at(1) + "json: should be true or false, not \"maybe\"");
  EXPECT_EQ(error(with("epochs = [1]\n")),
            at(1) + "epochs: a value must be a string, a number, true or false");
  EXPECT_EQ(error(with("workers = 2\nbatchsize = 3\n")),
            at(2) + "batchsize: unknown key (did you mean batch-size?)");
  EXPECT_THAT(error(with("strategy = \"sync\"\nstaleness-damping = true\n")), StartsWith(at(2)));
  EXPECT_THAT(error(with("workers = 2\nepochs =\n")), StartsWith(at(2)));
  EXPECT_EQ(error(with("config = \"other.toml\"\n")), at(1) + "a configuration file cannot include another");
  EXPECT_THAT(error(with("zero = 1\nalmost = 2\n")), StartsWith(at(1)));  // the first of several
  EXPECT_EQ(error(with("epochs = 2\n", {"--epochs=two"})),
            "--epochs two: should be a whole number from 1 to 1048576");
}

TEST_F(ConfigFile, MustBeAReadableRegularFile) {
  const auto missing = (folder_ / "nope.toml").string();
  EXPECT_EQ(error({"--config", missing}), missing + ": cannot be read: No such file or directory");
  EXPECT_EQ(error({"--config", "."}), ".: cannot be read: not a regular file");
  const auto fifo = (folder_ / "fifo").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(error({"--config=" + fifo}), fifo + ": cannot be read: not a regular file");
}

// ---- help ----

TEST(Help, FitsEightyColumnsAndPrecedesErrors) {
  for (const Arguments& arguments : {Arguments{"--help"},
                                     {"-h"},
                                     {"--workers=0", "--help"},
                                     {"--nope", "--help=yes"},
                                     {"--config=nope", "-h"}}) {
    ::testing::internal::CaptureStdout();
    EXPECT_FALSE(Command(arguments).found);
    const auto help = ::testing::internal::GetCapturedStdout();
    EXPECT_THAT(help, StartsWith("What it does.\n\n  capstan try this\n\nUsage: capstan try [FLAGS]\n\n"));
    EXPECT_THAT(help, AllOf(HasSubstr("\n\nJob:\n"), HasSubstr("  --workers N "), HasSubstr("  --lr X "),
                            HasSubstr("  --num-aggregate K "), HasSubstr("  --config FILE ")));
    EXPECT_THAT(help, AllOf(Not(HasSubstr("UINT")), Not(HasSubstr("FLOAT")), Not(HasSubstr("\n\n\n")),
                            Not(HasSubstr("hidden"))));
    EXPECT_THAT(help, HasSubstr("  --json                    Print one JSON object and nothing else\n"));
    EXPECT_THAT(help,
                HasSubstr("  --staleness-damping       With async: the learning rate of a gradient that is\n"
                          "                            t updates old is divided by 1 + t\n"));
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) {
      const auto columns = std::ranges::count_if(line, [](unsigned char c) { return (c & 0xc0) != 0x80; });
      EXPECT_LE(columns, 80) << line;
    }
  }
}

TEST(Help, HasEveryFieldOfTheCommand) {
  using namespace config;
  for (const auto command : {kTrain, kServe, kWork, kEval, kBenchWire, kBenchData}) {
    JobConfig job;
    CommandLine line("try", "");
    line.add(job, command);
    const auto help = line.help();
    for (const auto& field : fields(job)) {
      const auto flag = fmt::format("\n  --{}{}", field.name(), field.setting.also.empty() ? " " : ",");
      const bool expected = (field.commands & command) != 0 && !field.setting.hidden;
      EXPECT_EQ(help.find(flag) != help.npos, expected) << field.name();
    }
  }
}

// Each field is a flag of train and of its other commands; tests/config checks types and ranges.
TEST(CommandLine, EveryFieldOfTrainIsAFlag) {
  config::JobConfig job;
  for (const auto& field : config::fields(job)) {
    if ((field.commands & config::kTrain) == 0) continue;
    const auto flag = "--" + std::string(field.name());
    if (is_switch(field.setting)) {
      EXPECT_EQ(error({flag + "=maybe"}), flag + " maybe: should be true or false");
    } else if (!std::holds_alternative<std::string*>(field.setting.value) &&
               !std::holds_alternative<std::filesystem::path*>(field.setting.value)) {
      EXPECT_THAT(error({flag, "much"}), StartsWith(flag + " much: should be a ")) << flag;
    }
  }
}

// ---- failures ----

struct Failed {
  int code;
  std::string output, errors;
};

Failed failed(const cli::Command& command, const Arguments& arguments) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = run_command(command, arguments);
  std::fflush(stdout);
  return {code, ::testing::internal::GetCapturedStdout(), ::testing::internal::GetCapturedStderr()};
}

const cli::Command kWrong{"wrong", [](const Arguments&) -> int { throw UserError("it is wrong"); }};

TEST_F(ConfigFile, AndFlagsMakeAFailureAJsonObject) {
  const std::string object = "{\"ok\":false,\"error\":\"it is wrong\"}\n";
  const std::pair<Arguments, std::string> cases[] = {
      {{}, ""},
      {{"--json"}, object},
      {{"--json=true"}, object},
      {{"--json=false"}, ""},
      {{"--json", "--json=false"}, ""},
      {{"--json=maybe"}, ""},
      {with("json = true\n"), object},
      {with("json = true\n", {"--json=false"}), ""},
      {{"--config", folder_ / "nowhere"}, ""},
  };
  for (const auto& [arguments, output] : cases) {
    const auto wrong = failed(kWrong, arguments);
    EXPECT_EQ(wrong.code, kWrongUsage);
    EXPECT_EQ(wrong.output, output) << fmt::format("{}", fmt::join(arguments, " "));
    EXPECT_EQ(wrong.errors, "capstan: it is wrong\n");
  }
}

TEST(Failures, OfAFileSystemAreOneLineWithThePath) {
  const cli::Command command{"look", [](const Arguments& arguments) -> int {
                               return std::filesystem::exists(arguments[0]) ? kSuccess : kFailed;
                             }};
  const auto name = std::string(300, 'x');
  const auto wrong = failed(command, {name});
  EXPECT_EQ(wrong.code, kWrongUsage);
  EXPECT_EQ(wrong.errors, "capstan: " + name + ": File name too long\n");
}

// A command that takes several words without a name.
struct WordsCommand {
  Arguments words;
  bool json = false;
  std::string help, problem;

  explicit WordsCommand(const Arguments& arguments) {
    CommandLine line("show", "Shows.\n");
    line.positionals("PATH", &words, "What to show");
    line.flag("json", &json, "Print one JSON object");
    help = line.help();
    try {
      line.parse(arguments);
    } catch (const UserError& error) {
      problem = error.what();
    }
  }
};

TEST(CommandLine, TakesSeveralWordsInTheirOrder) {
  const WordsCommand command({"b", "--json", "a", "c"});
  EXPECT_THAT(command.words, ::testing::ElementsAre("b", "a", "c"));
  EXPECT_TRUE(command.json);
  EXPECT_EQ(command.problem, "");
  EXPECT_THAT(command.help, HasSubstr("  PATH                      What to show\n"));
}

TEST(CommandLine, NeedsOneOfSeveralWords) {
  EXPECT_EQ(WordsCommand({"--json"}).problem, "PATH is required (see capstan show --help)");
  EXPECT_EQ(WordsCommand({"a", "--jsno", "b"}).problem,
            "unknown flag --jsno, did you mean --json? (see capstan show --help)");
}

}  // namespace
}  // namespace capstan::cli

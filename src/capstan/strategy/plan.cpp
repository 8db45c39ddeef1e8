#include "capstan/strategy/plan.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "capstan/base/user_error.h"

namespace capstan::strategy {
namespace {

constexpr auto kEver = std::numeric_limits<std::uint64_t>::max();

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(at, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Phase parse_phase(const std::string& text, std::uint32_t workers) {
  const auto equals = text.find('=');
  std::uint64_t from = 0;
  const auto* const end = text.data() + std::min(equals, text.size());
  const auto [at, error] = std::from_chars(text.data(), end, from);
  if (equals == std::string::npos || error != std::errc() || at != end || from == 0)
    throw UserError(fmt::format("--switch {}: must be STEP=STRATEGY, such as 500=async", text));
  return {{from}, parse(text.substr(equals + 1), workers)};
}

// Calls visit(first version, version behind the last, pushes per update) for each stretch.
template <class Visit>
void for_each_stretch(const Plan& plan, Visit visit) {
  const Strategy* strategy = plan.first.get();
  std::uint64_t begin = 0;
  for (const auto& phase : plan.later) {
    visit(begin, phase.from.value, strategy->pushes_per_update(plan.workers));
    begin = phase.from.value;
    strategy = phase.strategy.get();
  }
  visit(begin, kEver, strategy->pushes_per_update(plan.workers));
}

}  // namespace

std::string Plan::spelling() const {
  auto text = first->spelling();
  for (const auto& phase : later) text += fmt::format(";{}={}", phase.from.value, phase.strategy->spelling());
  return text;
}

bool Plan::parks_all() const {
  return first->parks_all(workers) &&
         std::ranges::all_of(later, [&](const Phase& p) { return p.strategy->parks_all(workers); });
}

bool Plan::needs_mean_square() const {
  return first->needs_mean_square() ||
         std::ranges::any_of(later, [&](const Phase& p) { return p.strategy->needs_mean_square(); });
}

std::uint64_t Plan::pushes(Version from, Version to) const {
  std::uint64_t sum = 0;
  for_each_stretch(*this, [&](std::uint64_t begin, std::uint64_t end, std::uint64_t each) {
    const auto first_version = std::max(begin, from.value), last = std::min(end, to.value);
    if (last > first_version) sum += (last - first_version) * each;
  });
  return sum;
}

Version Plan::after(Version from, std::uint64_t pushes) const {
  auto version = from.value;
  for_each_stretch(*this, [&](std::uint64_t, std::uint64_t end, std::uint64_t each) {
    if (version >= end || pushes == 0) return;
    const auto updates = std::min(end - version, (pushes + each - 1) / each);
    version += updates;
    pushes -= std::min(pushes, updates * each);
  });
  return {version};
}

Plan parse_plan(const std::string& text, std::uint32_t workers) {
  const auto parts = split(text, ';');
  Plan plan{workers, parse(parts[0], workers), {}};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    plan.later.push_back(parse_phase(parts[i], workers));
    const auto& phase = plan.later.back();
    for (const auto* strategy : {plan.first.get(), phase.strategy.get()}) {
      if (strategy->round().is_local())
        throw UserError(
            fmt::format("--switch {}: with {} workers train by themselves: it is for a whole job, from its "
                        "begin to its end",
                        parts[i], strategy->spelling()));
    }
    if (i > 1 && phase.from <= plan.later[i - 2].from)
      throw UserError(fmt::format("--switch {}: the change before it is at step {}", parts[i],
                                  plan.later[i - 2].from.value));
  }
  return plan;
}

std::string plan_text(const std::string& strategy, const std::string& switches) {
  auto text = strategy;
  if (!switches.empty()) {
    for (const auto& part : split(switches, ',')) text += ";" + part;
  }
  return text;
}

}  // namespace capstan::strategy

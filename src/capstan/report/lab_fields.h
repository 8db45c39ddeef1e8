#pragma once

#include <concepts>
#include <type_traits>

#include "capstan/report/lab.h"

// The members of a lab result with their keys, in the order of its file. Both the writer and the reader use
// this list, so they cannot differ. `visit(key, member)` is called for each.
namespace capstan::report {

template <class Machine, class Visit>
requires std::same_as<std::remove_const_t<Machine>, LabMachine>
void visit_fields(Machine& m, Visit&& visit) {
  visit("cpu", m.cpu);
  visit("cores", m.cores);
  visit("memory_bytes", m.memory_bytes);
}

template <class Metric, class Visit>
requires std::same_as<std::remove_const_t<Metric>, LabMetric>
void visit_fields(Metric& m, Visit&& visit) {
  visit("rank", m.rank);
  visit("name", m.name);
  visit("unit", m.unit);
  auto& s = m.statistics;
  visit("count", s.count);
  visit("min", s.min);
  visit("max", s.max);
  visit("mean", s.mean);
  visit("variance", s.variance);
  visit("stdev", s.stdev);
  visit("p50", s.p50);
  visit("p95", s.p95);
  visit("p99", s.p99);
}

template <class Step, class Visit>
requires std::same_as<std::remove_const_t<Step>, LabStep>
void visit_fields(Step& s, Visit&& visit) {
  visit("data", s.data);
  visit("forward", s.forward);
  visit("backward", s.backward);
  visit("communication", s.communication);
  visit("optimizer", s.optimizer);
}

template <class Bytes, class Visit>
requires std::same_as<std::remove_const_t<Bytes>, LabBytes>
void visit_fields(Bytes& b, Visit&& visit) {
  visit("pushed", b.pushed);
  visit("pulled", b.pulled);
}

template <class Run, class Visit>
requires std::same_as<std::remove_const_t<Run>, LabRun>
void visit_fields(Run& r, Visit&& visit) {
  visit("seconds", r.seconds);
  visit("steps", r.steps);
  visit("samples", r.samples);
  visit("samples_per_second", r.samples_per_second);
  visit("loss", r.loss);
  visit("bytes", r.bytes);
  visit("hidden_communication", r.hidden_communication);
  visit("step", r.step);
  visit("metrics", r.metrics);
  visit("straggler_ms", r.straggler_ms);
}

template <class Configuration, class Visit>
requires std::same_as<std::remove_const_t<Configuration>, LabConfiguration>
void visit_fields(Configuration& c, Visit&& visit) {
  visit("name", c.name);
  visit("options", c.options);
  visit("axis", c.axis);
  visit("runs", c.runs);
  visit("error", c.error);
}

// Without kind and schema.
template <class Result, class Visit>
requires std::same_as<std::remove_const_t<Result>, LabResult>
void visit_fields(Result& r, Visit&& visit) {
  visit("ok", r.ok);
  visit("when", r.when);
  visit("versions", r.versions);
  visit("machine", r.machine);
  visit("experiment", r.experiment);
  visit("configurations", r.configurations);
}

}  // namespace capstan::report

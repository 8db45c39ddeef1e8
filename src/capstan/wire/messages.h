#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "capstan/base/ids.h"
#include "capstan/base/parameter_groups.h"
#include "capstan/base/update_rule.h"
#include "capstan/layout.h"
#include "capstan/status.h"
#include "capstan/wire/averaging_messages.h"
#include "capstan/wire/codec.h"
#include "capstan/wire/row_messages.h"

// Every message between processes. docs/wire_format.md describes the bytes and the order.
namespace capstan::wire {

// Incremented whenever the meaning of a byte on the wire changes.
inline constexpr std::uint16_t kProtocol = 9;

using Nonce = std::array<std::byte, 32>;
using Proof = std::array<std::byte, 32>;

enum class Role : std::uint8_t { kWorker, kObserver, kServer, kLast = kServer };

// One participant: workers by rank, observers and servers in the order in which they joined.
struct Member {
  Role role = Role::kWorker;
  std::uint32_t index = 0;
  friend auto operator<=>(const Member&, const Member&) = default;
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.role), v(m.index);
  }
};

// ---- handshake ----

struct Challenge {  // server → client, first
  std::uint16_t protocol = kProtocol;
  Nonce nonce{};
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.protocol), v(m.nonce);
  }
};

struct Hello {  // client → server
  std::uint16_t protocol = kProtocol;
  Nonce nonce{};
  Proof proof{};
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.protocol), v(m.nonce), v(m.proof);
  }
};

struct Trusted {  // server → client: proves that the server knows the token
  Proof proof{};
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.proof);
  }
};

struct Refused {  // both ways; the connection ends after it
  std::string reason;
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.reason);
  }
};

// ---- joining ----

struct Tensor {
  std::string name;
  std::vector<std::int64_t> dims;
  bool sparse = false;  // a row tensor
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.name), v(m.dims), v(m.sparse);
  }
};

// One phase of a step, base/parameter_groups.h.
struct Phase {
  std::string name;
  std::vector<std::string> globs;
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.name), v(m.globs);
  }
};

// A worker's training data. The same for all workers of a job.
struct DataSource {
  std::uint64_t samples = 0;  // of the training set; 0 if gradients do not come from a dataset
  std::uint64_t seed = 0;
  std::uint64_t batch = 0;  // per worker
  friend bool operator==(const DataSource&, const DataSource&) = default;
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.samples), v(m.seed), v(m.batch);
  }
};

// See base/data_segment.h.
struct DataSegment {
  std::uint64_t batch = 1;
  std::vector<std::uint64_t> steps;
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.batch), v(m.steps);
  }
};

struct Join {  // client → server
  Role role = Role::kWorker;
  std::optional<std::uint32_t> index;  // which worker or, at followers, observer; none: the leader chooses
  Incarnation incarnation;
  std::vector<Tensor> layout;        // empty from observers and servers
  std::vector<Tensor> buffers = {};  // of which each worker has its own, such as batch norm's
  DataSource data = {};
  std::string job = {};  // the job as this member was configured, config/shared_fields.h; may be empty
  std::vector<Phase> phases = {};         // of a step, beside `layout`; empty: one phase of all tensors
  std::vector<BucketShape> buckets = {};  // of a trainer of an averaging job, in place of `layout`
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.role), v(m.index), v(m.incarnation), v(m.layout), v(m.buffers), v(m.data), v(m.job), v(m.phases),
        v(m.buckets);
  }
};

// One option of an optimizer; true and false are 1 and 0.
struct OptimizerOption {
  std::string name;
  double value = 0;
  friend bool operator==(const OptimizerOption&, const OptimizerOption&) = default;
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.name), v(m.value);
  }
};

// One entry of optimizer/spec.h.
struct OptimizerEntry {
  std::string glob;
  std::string name;
  std::vector<OptimizerOption> options = {};  // all of optimizer/optimizer.h
  friend bool operator==(const OptimizerEntry&, const OptimizerEntry&) = default;
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.glob), v(m.name), v(m.options);
  }
};

// The optimizers of workers' local steps, and a learning-rate schedule over the worker's steps.
struct LocalOptimizer {
  std::vector<OptimizerEntry> entries = {};  // the default first
  std::string schedule = {};
  std::uint64_t warmup = 0;
  std::uint64_t total = 0;
  friend bool operator==(const LocalOptimizer&, const LocalOptimizer&) = default;
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.entries), v(m.schedule), v(m.warmup), v(m.total);
  }
};

// server → client; carries the segment of the weights, or averages, that the worker reads in place
struct Joined {
  Member member;
  ServerId server;
  std::uint32_t servers = 1;
  std::uint32_t workers = 1;  // expected
  std::uint64_t begin = 0;    // this server's elements
  std::uint64_t end = 0;
  std::string strategy;
  bool in_place = false;                   // weights are read in the server's memory (or sent from it)
  std::vector<Tensor> layout;              // for observers and servers; empty before the first worker joins
  Version start = {};                      // the version at which the job began: 0, or a checkpoint's
  std::vector<DataSegment> segments = {};  // the position in the data at that version
  std::string checkpoint = {};             // for servers: the folder to resume from; empty for none
  LocalOptimizer local = {};               // for workers that make local steps
  std::string job = {};            // the part of its configuration that members need, config/shared_fields.h
  std::vector<Phase> phases = {};  // of a step, beside `layout`
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.member), v(m.server), v(m.servers), v(m.workers), v(m.begin), v(m.end), v(m.strategy), v(m.in_place),
        v(m.layout), v(m.start), v(m.segments), v(m.checkpoint), v(m.local), v(m.job), v(m.phases);
  }
};

enum class Arena : std::uint8_t { kGradients, kWeights, kLast = kWeights };

struct Share {  // worker → server; carries the segment of the worker's whole flat array
  Arena arena = Arena::kGradients;
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.arena);
  }
};

struct SendWeights {  // leader → worker: send the initial weights to every server
  template <class V, class M>
  static void fields(V&&, M&&) {}
};

struct Initialize {  // worker → server; payload: the server's range of the initial weights
  template <class V, class M>
  static void fields(V&&, M&&) {}
};

// ---- training ----

struct Push {  // worker → server; payload: push_ranges() of its phase, unless memory is shared or it is empty
  WorkerId worker;
  Incarnation incarnation;
  Sequence sequence;
  StepCount steps;  // computed by the worker, including this push's
  Version version;  // of the weights that the push was computed on
  std::uint32_t samples = 0;
  float loss = 0;
  std::uint32_t compute_us = 0;
  std::uint32_t wait_us = 0;  // communication of the step before
  std::uint32_t data_us = 0;  // waiting for its samples
  std::uint32_t phase = 0;    // of its step
  std::optional<PushedRows> rows = {};
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.worker), v(m.incarnation), v(m.sequence), v(m.steps), v(m.version), v(m.samples), v(m.loss),
        v(m.compute_us), v(m.wait_us), v(m.data_us), v(m.phase), v(m.rows);
  }
};

struct Pull {  // client → leader: send the weights once their version is at least `at_least`
  std::uint64_t request = 0;
  Version at_least;
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.request), v(m.at_least);
  }
};

struct Weights {  // server → client, the answer to a push or a pull; payload: its range, unless shared
  std::uint64_t request = 0;  // the push's sequence, or the pull's request
  Version version;            // of these weights
  Version applied;            // the version that the push became part of; 0 for none
  bool stop = false;          // the job ends: the worker leaves
  bool buffers = false;       // from the leader: the worker sends its buffers
  std::optional<AnsweredRows> rows = {};
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.request), v(m.version), v(m.applied), v(m.stop), v(m.buffers), v(m.rows);
  }
};

struct Leave {  // worker → every server: done, not lost; server → worker: confirmed; then the connection ends
  std::uint64_t pulled_bytes = 0;  // as in PushedRows
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.pulled_bytes);
  }
};

struct Heartbeat {  // both ways
  template <class V, class M>
  static void fields(V&&, M&&) {}
};

// ---- between servers ----

struct Staged {  // follower → leader: a push has arrived completely
  WorkerId worker;
  Incarnation incarnation;
  Sequence sequence;
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.worker), v(m.incarnation), v(m.sequence);
  }
};

struct Initialized {  // follower → leader: the initial weights have arrived
  template <class V, class M>
  static void fields(V&&, M&&) {}
};

struct Gone {  // between servers: this member's connection ended; observer → leader: its process ended
  Member member;
  Incarnation incarnation;  // 0 from observers: the current one
  bool lost = false;        // ended without Leave
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.member), v(m.incarnation), v(m.lost);
  }
};

struct Contribution {
  WorkerId worker;
  Sequence sequence;
  float factor = 1;
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.worker), v(m.sequence), v(m.factor);
  }
};

struct ApplyOrder {  // leader → follower: make version before + 1 from these, merged in this order
  Version before;
  std::vector<Contribution> contributions;
  UpdateRule::Kind rule = UpdateRule::Kind::kStep;
  double rate = 1;           // see UpdateRule
  double strength = 0;       // see UpdateRule
  bool accumulated = false;  // and from the accumulated sum
  std::uint32_t group = 0;   // base/parameter_groups.h; `before` is this group's version
  Version scheduled = {};    // the job's version, for the learning-rate schedule
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.before), v(m.contributions), v(m.rule), v(m.rate), v(m.strength), v(m.accumulated), v(m.group),
        v(m.scheduled);
  }
};

struct DropOrder {  // leader → follower: do not use this push
  WorkerId worker;
  Sequence sequence;
  std::uint32_t group = 0;  // that drops it
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.worker), v(m.sequence), v(m.group);
  }
};

struct DeliverOrder {  // leader → follower: answer this member with the weights as they are now
  Member member;
  Weights reply;
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.member), v(m.reply);
  }
};

// ---- status and control ----

struct StatusRequest {  // observer → leader
  template <class V, class M>
  static void fields(V&&, M&&) {}
};

enum class WorkerState : std::uint8_t { kAbsent, kLive, kLeft, kLost, kLast = kLost };

struct WorkerRow {
  WorkerState state = WorkerState::kAbsent;
  StepCount steps;
  float loss = 0;
  std::uint64_t samples = 0;
  double compute_seconds = 0;
  double wait_seconds = 0;
  double data_seconds = 0;
  std::uint64_t pushes = 0;
  double staleness_mean = 0;
  std::uint64_t staleness_max = 0;
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.state), v(m.steps), v(m.loss), v(m.samples), v(m.compute_seconds), v(m.wait_seconds),
        v(m.data_seconds), v(m.pushes), v(m.staleness_mean), v(m.staleness_max);
  }
};

struct StatusReport {  // server → observer
  bool started = false;
  bool finished = false;  // every worker has left or is lost
  Version version;
  double seconds = 0;  // from the start to the last update
  std::uint64_t bytes_pushed = 0;
  std::uint64_t bytes_pulled = 0;
  std::uint64_t dropped_pushes = 0;
  double staleness_mean = 0;
  std::uint64_t staleness_max = 0;
  double loss = 0;  // mean over the samples of the last updates, within the job's window
  std::uint64_t samples = 0;
  std::uint64_t rss_bytes = 0;  // of this server, without mapped segments of workers
  double cpu_seconds = 0;
  std::vector<WorkerRow> workers;  // by rank
  Version checkpoint;              // of the newest checkpoint; 0 for none
  bool saving = false;             // a checkpoint is being written, or is about to be
  std::string checkpoint_error;    // why the newest checkpoint failed; empty if it did not
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.started), v(m.finished), v(m.version), v(m.seconds), v(m.bytes_pushed), v(m.bytes_pulled),
        v(m.dropped_pushes), v(m.staleness_mean), v(m.staleness_max), v(m.loss), v(m.samples), v(m.rss_bytes),
        v(m.cpu_seconds), v(m.workers), v(m.checkpoint), v(m.saving), v(m.checkpoint_error);
  }
};

// observer → leader: end the job at the next step; leader → worker that makes local steps: stop now; leader →
// follower: the job has ended
struct StopRequest {
  std::string reason;
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.reason);
  }
};

// ---- checkpoints ----

// Payload: the flat buffers. Worker → leader: its own, on request and before it leaves; leader → worker: the
// initial ones; leader → observer: the mean over the workers, empty if there is none.
struct Buffers {
  std::uint64_t request = 0;  // the observer's pull
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.request);
  }
};

struct CheckpointOrder {  // leader → follower: write your part of the weights as they are now
  Version version;
  std::string folder;
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.version), v(m.folder);
  }
};

struct CheckpointPiece {  // checkpoint/manifest.h
  std::string file, key, array, tensor;
  std::uint64_t begin = 0, end = 0;
  std::uint64_t checksum = 0;
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.file), v(m.key), v(m.array), v(m.tensor), v(m.begin), v(m.end), v(m.checksum);
  }
};

struct AccumulateOrder {  // leader → follower: add factor · this push to the sum for the next update
  Contribution contribution;
  bool first = false;  // begins a new sum
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.contribution), v(m.first);
  }
};

struct CheckpointWritten {  // follower → leader
  Version version;
  std::string error;  // empty on success
  std::vector<CheckpointPiece> pieces;
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.version), v(m.error), v(m.pieces);
  }
};

struct Progress {  // worker → leader: its progress between two pushes, for the progress display
  StepCount steps;
  std::uint32_t samples = 0;  // since its last push
  float loss = 0;             // mean over the samples
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.steps), v(m.samples), v(m.loss);
  }
};

// Every message. A message's number on the wire is its index here: add new ones at the end.
using Message = std::variant<Challenge, Hello, Trusted, Refused, Join, Joined, Share, SendWeights, Initialize,
                             Push, Pull, Weights, Leave, Heartbeat, Staged, Initialized, Gone, ApplyOrder,
                             DropOrder, DeliverOrder, StatusRequest, StatusReport, StopRequest, Buffers,
                             CheckpointOrder, CheckpointWritten, AccumulateOrder, Progress, Bucket, Average>;

// The name of a message's type, for error messages.
const char* name_of(const Message& message);

// 16-bit number of the type, then the fields. wire/frames.h adds the sequence number.
void append(const Message& message, std::vector<std::byte>& out);
std::vector<std::byte> encode(const Message& message);

// Rejects unknown types, values out of range, lengths beyond the given bytes, and bytes left over.
Result<Message> decode(Bytes bytes);

std::vector<Tensor> to_wire(const FlatLayout& layout);
std::vector<Phase> to_wire(const std::vector<StepPhase>& phases);
// Checks that names and globs are text of one line. Bounds their number and length, and the time to match
// them with the tensors of the layout.
Result<std::vector<StepPhase>> phases_from_wire(const std::vector<Phase>& phases, const FlatLayout& layout);
// Checks that every tensor has a name of one line and valid dimensions, and that the total size is
// addressable.
Result<FlatLayout> from_wire(const std::vector<Tensor>& tensors);

}  // namespace capstan::wire

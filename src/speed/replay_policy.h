// Decides whether blocks are replays of CUDA graphs (docs/protocol.md). The first pair decides for
// all. Once a host runs a block call by call that was to be a replay, no block is replayed. Pure.
#pragma once

namespace assay {

class ReplayPolicy {
 public:
  // `may_replay`: neither host runs a candidate's code, and both are on a device.
  explicit ReplayPolicy(bool may_replay) : may_replay_(may_replay) {}

  // Begins a pair: its first blocks launch their calls.
  void BeginPair() { replaying_ = missed_ = false; }
  // Returns true if this pair may have replays: it compares blocks of both kinds then.
  bool MayReplay() const { return may_replay_ && state_ != State::kNo; }
  // Returns true if no pair has tried replays. From then on no block is a replay unless Settle()
  // says so.
  bool BeginTry();
  // The next blocks are replays.
  void Start();
  // Notes whether a host replayed its block.
  void Note(bool replayed) { missed_ = missed_ || (replaying_ && !replayed); }
  // Blocks of this and all later pairs are replays.
  void Settle() { state_ = State::kYes; }
  // No block is replayed from now on: hosts cannot.
  void GiveUp();
  // No block is replayed from now on: launches do not show.
  void Decline();
  // The next blocks of this pair launch their calls.
  void Stop() { replaying_ = false; }

  bool replaying() const { return replaying_; }
  // A host of this pair ran a block call by call.
  bool missed() const { return missed_; }
  bool settled() const { return state_ == State::kYes; }
  bool given_up() const { return given_up_; }

 private:
  enum class State { kUntried, kYes, kNo };

  bool may_replay_;
  State state_ = State::kUntried;
  bool replaying_ = false;
  bool missed_ = false;
  bool given_up_ = false;
};

}  // namespace assay

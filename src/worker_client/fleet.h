// Worker processes (docs/worker.md), one or several a device, and the lines that go to and fro.
// WorkerClient knows what the lines mean.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay {

class Fleet {
 public:
  virtual ~Fleet() = default;
  virtual size_t size() const = 0;
  virtual std::string Name(size_t worker) const = 0;  // of its device: "cpu", "cuda:0"
  // Starts a worker, or starts it again after its end. Workers whose devices have the same name
  // share it. `sharers`: so many of its device run, and share its memory. Errors:
  // kEnvironment.
  virtual Result<void> Start(size_t worker, int sharers) = 0;
  // Sends a line, given without its end. A worker that has ended is told by Wait.
  virtual void Send(size_t worker, const std::string& line) = 0;
  // Ends a worker at once, and all that it runs.
  virtual void Kill(size_t worker) = 0;
  // Tells a worker that no more requests come: it ends once it has served those it has.
  virtual void Release(size_t worker) = 0;
  // Asks a worker to end now, by itself.
  virtual void Interrupt(size_t worker) = 0;

  struct Said {
    size_t worker = 0;
    std::optional<std::string> line;  // nullopt: it has ended, as `end` says
    std::string end;                  // "ended with exit code 70", "was killed by signal 9"
  };
  // Waits for the next line or end of any worker; nullopt: none came in time.
  virtual std::optional<Said> Wait(int timeout_ms) = 0;
};

struct WorkerPlace {
  std::string device;       // "cpu" or "cuda"
  std::string visible_gpu;  // of CUDA_VISIBLE_DEVICES; empty: as it is
  // The cores on which it measures, and those for all else; empty: all.
  std::vector<int> measuring_cores = {}, cores = {};
  std::string Name() const { return visible_gpu.empty() ? device : device + ":" + visible_gpu; }
};

// Returns how many workers each GPU has by default, by the cores that this process may use and the
// number of GPUs.
size_t WorkersOfGpu(size_t cores, size_t gpus);

// Gives each of `devices`, at least one and all of one kind, `workers` workers; 0: on a CPU one,
// on GPUs WorkersOfGpu(). `cpus`: all that may be used. Workers of one GPU measure on cores that
// are set apart for it, and share the others for all else; where cores are few, a device has one
// worker, with all of them.
std::vector<WorkerPlace> PlacesForWorkers(const std::vector<WorkerPlace>& devices, size_t workers,
                                          const std::vector<int>& cpus);

// Workers as child processes: `program` with the arguments `worker --device ... MORE`. They end
// with this process, also if it is killed.
class WorkerProcesses : public Fleet {
 public:
  WorkerProcesses(std::string program, std::vector<WorkerPlace> places,
                  std::vector<std::string> more_arguments);
  ~WorkerProcesses() override;
  size_t size() const override { return workers_.size(); }
  std::string Name(size_t worker) const override { return workers_[worker].place.Name(); }
  Result<void> Start(size_t worker, int sharers) override;
  void Send(size_t worker, const std::string& line) override;
  void Kill(size_t worker) override;
  void Release(size_t worker) override;
  void Interrupt(size_t worker) override;
  std::optional<Said> Wait(int timeout_ms) override;

 private:
  struct Worker {
    explicit Worker(WorkerPlace at) : place(std::move(at)) {}

    WorkerPlace place;
    pid_t pid = 0;  // 0: not running
    UniqueFd input, output;
    std::string sending;   // not written yet
    std::string received;  // not returned yet
  };
  // Returns a line that has come whole.
  std::optional<Said> TakeLine();
  // Waits until a worker can be read from or written to.
  void Move(int timeout_ms);
  void Write(Worker& worker);
  void Read(Worker& worker);
  Said Reap(size_t worker);

  const std::string program_;
  const std::vector<std::string> more_arguments_;
  std::vector<Worker> workers_;
};

}  // namespace assay

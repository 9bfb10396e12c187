#include <CLI/CLI.hpp>

#include "cli/serve_command.h"
#include "cli/validators.h"

namespace assay {

void ServeOptions::AddTo(CLI::App& command) {
  command.add_option("DIR", folder,
                     "The server's folder: accounts, jobs and the archive; made if it is missing");
  command.add_option("--archive", archive,
                     "The archive as the URL of a PostgreSQL database (default: a file in DIR)");
  command.add_option("--port", port, "Serve at this port; 0: a free one")
      ->capture_default_str()
      ->check(Between(0, 65535));
  command.add_option("--host", host, "The address: one of the loopback interface")
      ->capture_default_str();
  command
      .add_option("--devices", devices,
                  "Start a runner on this machine for each: cpu, or GPUs such as cuda:0,cuda:1")
      ->delimiter(',');
  cluster.AddTo(command);
  command.add_option("--queued", queued, "Jobs that may wait at a time")
      ->capture_default_str()
      ->check(Between(int64_t{1}, int64_t{1'000'000}));
  command.add_option("--quota", quota, "Jobs of an account in 24 hours")
      ->capture_default_str()
      ->check(Between(int64_t{1}, int64_t{1'000'000}));
  command.add_option("--verdict-seconds", verdict_seconds, "Seconds for gate 2 of each candidate")
      ->capture_default_str()
      ->check(Between(1.0, 3600.0));
  command
      .add_option("--spot-checks", spot_checks,
                  "Percent of promoted runners' verdicts that another one judges again")
      ->capture_default_str()
      ->check(Between(0.0, 100.0));
  command.add_flag("--behind-proxy", behind_proxy,
                   "A proxy on this machine takes requests by TLS and passes them on");
  command.add_flag("--public", is_public, "Anyone may read the board, without an account");
  command.add_flag("--demo", demo,
                   "Serve an example class from results that come with Assay, in a fresh folder");
  AddWeakSandboxFlag(command, &allow_weak_sandbox);
  command.footer(
      "The address is printed on stdout; stderr says where the mentor's token lies. The server\n"
      "runs no candidate: runners do, on this machine (--devices) or on others\n"
      "(assay worker --server URL), or pilots on nodes of a cluster (--slurm, --ssh, --queue).\n"
      "Plain HTTP stays on this machine: docs/serve.md has a proxy.\n"
      "Examples:\n"
      "  assay serve class --devices cpu\n"
      "  assay serve class --slurm --nodes 4 --gres gpu:1\n"
      "  assay serve --demo\n\n"
      "Exit codes: 2 usage, or another process serves the folder; 8 this machine lacks something;\n"
      "130 Ctrl-C, after the requests in hand were answered.");
}

}  // namespace assay

"""A private PostgreSQL server on a socket in a folder, without systemd. Needs Debian's packages."""
import contextlib
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile


def programs():
    """The folder of the newest server's programs; None: it is not installed."""
    found = sorted(
        pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        key=lambda path: int(path.parts[-3]),
    )
    return found[-1].parent if found else None


class Server:
    """Owned by 'owner', who needs no password. As root cannot run one, 'postgres' stands in."""

    def __init__(self, folder, durable=False):
        self.folder = pathlib.Path(folder)
        self.options = "-c shared_buffers=128MB -c max_connections=300"
        if not durable:  # tests end processes, and the system keeps what those have written
            self.options += " -c fsync=off"
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            os.chmod(self.folder, 0o755)
        if (self.folder / "data").exists():  # of an earlier server
            self.start()
            return
        flags = ["-U", "owner", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"]
        self._run("initdb", "-D", self.folder / "data", *flags, *([] if durable else ["-N"]))
        self.start()

    def _run(self, program, *words):
        step_down = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
        before = step_down if os.geteuid() == 0 else []
        words = [*before, programs() / program, *words]
        with open(self.folder / "programs.log", "ab") as log:
            subprocess.run(list(map(str, words)), cwd="/", stdout=log, stderr=log, check=True)

    def start(self):
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder} {self.options}"
        where = ["-D", self.folder / "data", "-l", self.folder / "server.log"]
        self._run("pg_ctl", *where, "-w", "-s", "-o", options, "start")

    def stop(self, mode="fast"):
        self._run("pg_ctl", "-D", self.folder / "data", "-m", mode, "-w", "-s", "stop")

    def restart(self, mode="immediate"):
        self.stop(mode)
        self.start()

    def url(self, database, role="owner"):
        return f"postgresql://{role}@/{database}?host={self.folder}"

    def sql(self, text, database="postgres"):
        words = ["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-c", text, self.url(database)]
        ran = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
        return ran.stdout.strip()

    def database(self, name):
        self.sql(f"CREATE DATABASE {name}")
        return self.url(name)


@contextlib.contextmanager
def server(folder, durable=False):
    """A running server in a new folder, which is removed."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    running = Server(folder, durable)
    try:
        yield running
    finally:
        running.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def temporary():
    """A running server in a folder of its own, short enough for a socket, which its user enters."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder).chmod(0o755)
        with server(pathlib.Path(folder) / "server") as running:
            yield running

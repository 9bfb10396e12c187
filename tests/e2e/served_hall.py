"""A real server at a free port, and a candidate for it."""
import json
import signal
import urllib.error
import urllib.request

from conftest import INTERRUPTED, SOFTMAX_BODY

ENDS_WITHIN_S = 60


def source():
    head = "#include <assay/kernel.h>\n#include <cmath>\n"
    arguments = "assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y"
    return f"{head}ASSAY_KERNEL({arguments}) {{{SOFTMAX_BODY}}}\n"


class Hall:
    """A server at a free port."""

    def __init__(self, home, folder, *arguments):
        self.folder = folder
        self.process = home.start("serve", folder, "--port", "0", *arguments)
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http://127.0.0.1:"), self.process.stderr.read()
        self.token = (folder / "mentor-token").read_text().strip()

    def ask(self, method, path, body=None, token=None, headers=None):
        """Returns (status, JSON or text)."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        request.add_header("Authorization", f"Bearer {token or self.token}")
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                status, text = reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode()
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def end(self):
        self.process.send_signal(signal.SIGINT)
        _, err = self.process.communicate(timeout=ENDS_WITHIN_S)
        assert self.process.returncode == INTERRUPTED, err
        return err

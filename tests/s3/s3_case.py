"""A renkei beside a server of object storage, which tests may kill; what the test files share."""

import os
import signal
import subprocess
import urllib.request
from pathlib import Path

from renkei import Case


class S3Case(Case):
    def setUp(self):
        super().setUp()
        self.port = 0
        self.start_server()
        self.addCleanup(self.kill_server)
        self.set_variable("AWS_ENDPOINT_URL", f"http://127.0.0.1:{self.port}")
        self.set_variable("AWS_ACCESS_KEY_ID", "S3RVER")
        self.set_variable("AWS_SECRET_ACCESS_KEY", "S3RVER")
        self.set_variable("HOME", str(self.path))
        self.set_variable("AWS_REGION", "us-east-1")
        self.set_variable("NO_PROXY", "127.0.0.1")

    def set_variable(self, name, value):
        before = os.environ.get(name)
        os.environ[name] = value

        def restore():
            if before is None:
                del os.environ[name]
            else:
                os.environ[name] = before
        self.addCleanup(restore)

    def put(self, file, key):
        """Not signed, which the server allows: renkei itself writes shards only."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/data/{key}",
                                         data=Path(file).read_bytes(), method="PUT")
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).close()

    def start_server(self):
        self.server = subprocess.Popen(
            # See s3_server.cpp.
            [os.environ["RENKEI_NODE"], "--openssl-legacy-provider", os.environ["RENKEI_S3_SERVER"], self.path / "objects",
             str(self.port), "data"], stdout=subprocess.PIPE, text=True)
        self.port = int(self.server.stdout.readline())

    def kill_server(self):
        self.server.send_signal(signal.SIGKILL)
        self.server.wait()
        self.server.stdout.close()

"""A git server over TLS: python git_server.py DIRECTORY CERTIFICATE KEY. Prints its port."""

import os
import ssl
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROOT, CERTIFICATE, KEY = sys.argv[1:4]


class Handler(BaseHTTPRequestHandler):
    def handle_git(self):
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        env = {**os.environ, "GIT_PROJECT_ROOT": ROOT, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path, "QUERY_STRING": query,
               "REQUEST_METHOD": self.command, "CONTENT_TYPE": self.headers.get("content-type", ""),
               "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""), "GIT_PROTOCOL": self.headers.get("git-protocol", "")}
        made = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True).stdout
        head, _, content = made.partition(b"\r\n\r\n")
        headers = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        self.send_response(int(dict(headers).get("Status", "200")[:3]))
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = handle_git

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE, KEY)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()

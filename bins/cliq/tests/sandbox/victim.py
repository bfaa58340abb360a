"""Another program of the person: python victim.py PLACE. It listens on a UNIX, an abstract, a TCP and a UDP socket."""

import json
import os
import signal
import socket
import sys
import threading
import time

place = sys.argv[1]
signals = []
signal.signal(signal.SIGURG, lambda *_: signals.append("URG"))


def serve(listener):
    while True:
        connection, _ = listener.accept()
        connection.sendall(b"the secret")
        connection.close()


def listen(family, address):
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.bind(address)
    listener.listen()
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    return listener


abstract = f"cliq-victim-{os.getpid()}"
listen(socket.AF_UNIX, f"{place}/victim.sock")
listen(socket.AF_UNIX, "\0" + abstract)
tcp = listen(socket.AF_INET, ("127.0.0.1", 0)).getsockname()[1]
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", 0))
with open(f"{place}/.victim.json", "w") as file:
    json.dump({"pid": os.getpid(), "abstract": abstract, "tcp": tcp, "udp": udp.getsockname()[1]}, file)
os.rename(f"{place}/.victim.json", f"{place}/victim.json")
while True:
    time.sleep(0.1)
    with open(f"{place}/signals.txt", "w") as file:
        file.write(" ".join(signals))

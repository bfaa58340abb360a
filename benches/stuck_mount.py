#!/usr/bin/env python3
"""Mounts a file system on a directory that answers no request until standard input ends.

    stuck_mount.py DIRECTORY

Prints `mounted`, or the reason why it cannot be mounted. Needs /dev/fuse and the right to mount.
"""

import ctypes
import os
import struct
import sys

INIT = 26
DETACH = 2


def main():
    path = sys.argv[1].encode()
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        device = os.open("/dev/fuse", os.O_RDWR)
    except OSError as error:
        sys.exit(f"/dev/fuse cannot be opened: {error.strerror}")
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
    if libc.mount(b"stuck", path, b"fuse.stuck", 0, options.encode()) != 0:
        sys.exit(f"it cannot be mounted: {os.strerror(ctypes.get_errno())}")
    request = os.read(device, 1 << 20)
    _, opcode, unique = struct.unpack_from("<IIQ", request)
    assert opcode == INIT, opcode
    answer = struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 0, 0, 1 << 16, 1, 0, 0, 0)
    os.write(device, struct.pack("<IiQ", 16 + len(answer), 0, unique) + answer)
    print("mounted", flush=True)
    sys.stdin.read()
    # Requests that wait fail once the device is closed.
    libc.umount2(path, DETACH)


if __name__ == "__main__":
    main()

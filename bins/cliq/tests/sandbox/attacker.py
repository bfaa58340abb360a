"""A hostile command: python attacker.py PLACE VICTIM. Tries each attack and writes `results.json`, with whether it succeeded."""

import ctypes
import json
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import termios

descriptors = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if int(fd) > 2 and os.path.exists(f"/proc/self/fd/{fd}")]
place, victim = sys.argv[1], json.loads(sys.argv[2])
home, pid = f"{place}/home", victim["pid"]
libc = ctypes.CDLL(None, use_errno=True)
attacks = []


def attack(name):
    return lambda function: attacks.append((name, function))


def secret_in(path):
    with open(path) as file:
        return "secret" in file.read()


def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True


def sh(script):
    return subprocess.run(["sh", "-c", script], capture_output=True).returncode == 0


def append(path, text="evil\n"):
    with open(path, "a") as file:
        file.write(text)
    return True


def connects(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(2)
        s.connect(address)
        return s.recv(20) == b"the secret"


def opens(*arguments):
    socket.socket(*arguments).close()
    return True


reads = {
    "read an SSH key": f"{home}/.ssh/id_rsa",
    "read .netrc": f"{home}/.netrc",
    "read the shell history": f"{home}/.bash_history",
    "read the cliq home's settings": f"{home}/.cliqrc/settings.json",
    "read the link of a review": f"{home}/.cliqrc/reviews/link.json",
    "read the environment of another program": f"/proc/{pid}/environ",
    "read the dispatch message of another phase": ".cliq/messages/other.1.json",
    "read the signals of another phase": ".cliq/signals/other.jsonl",
    "read the system's passwords": "/etc/shadow",
}
for name, path in reads.items():
    attack(name)(lambda path=path: bool(open(path).read()))
attack("read the environment of the orchestrator")(lambda: bool(open(f"/proc/{int(open('.cliq/lock').read())}/environ").read()))
attack("read a file of the home directory")(lambda: "note" in open(f"{home}/notes.txt").read())
attack("list names of secret files")(lambda: "id_rsa" in os.listdir(f"{home}/.ssh"))

writes = {
    "write a file outside": f"{place}/outside.txt",
    "append to a start-up file of the shell": f"{home}/.bashrc",
    "create a file in the home directory": f"{home}/new",
    "write a system file": "/etc/cliq-was-here",
    "write the journal": ".cliq/journal.jsonl",
    "write the signals of another phase": ".cliq/signals/other.jsonl",
    "write the channel of another phase": ".cliq/channels/other--after/handoff.json",
    "write a role": ".cliq/roles/after.md",
    "write the team": ".cliq/team.yml",
    "write the project's settings": ".cliq/settings.json",
    "write a git hook": ".git/hooks/post-commit",
    "write the git configuration": ".git/config",
    "write to another program's oom_score_adj": f"/proc/{pid}/oom_score_adj",
}
for name, path in writes.items():
    attack(name)(lambda path=path: append(path))


def replaced(directory):
    """Moves a directory away and puts another one in its place."""
    os.rename(directory, f"{directory}.old")
    os.mkdir(directory)
    return append(f"{directory}/config")


def redirected(file, target):
    """Makes a file of the git directory name another directory."""
    with open(file, "w") as opened:
        opened.write(target)
    return True


attack("lead git to another directory by commondir")(lambda: redirected(".git/commondir", "../evil"))
attack("lead git to another directory by a worktree")(lambda: redirected(".git/worktrees/tree/commondir", "../../../evil"))
attack("move the git hooks away")(lambda: replaced(".git/hooks"))
attack("lead git to another directory by a link")(lambda: os.rename(".git/config", "gone") is None and os.symlink("../evil", ".git/config") is None)


@attack("read a secret through a symbolic link")
def _():
    os.symlink(f"{home}/.ssh/id_rsa", "link")
    return secret_in("link")


@attack("write outside through a symbolic link")
def _():
    os.symlink(f"{place}/outside.txt", "link-out")
    return append("link-out")


@attack("hard-link a secret")
def _():
    os.link(f"{home}/.ssh/id_rsa", "hard")
    return secret_in("hard")


@attack("hard-link a file outside and write it")
def _():
    os.link(f"{place}/outside.txt", "hard-out")
    return append("hard-out")


attack("delete a file outside")(lambda: os.unlink(f"{place}/outside.txt") is None)
attack("move a file outside into the workspace")(lambda: os.rename(f"{place}/outside.txt", "moved") is None)
attack("move a file of the workspace outside")(lambda: append("mine") and os.rename("mine", f"{place}/mine") is None)
attack("truncate a file outside")(lambda: os.truncate(f"{place}/outside.txt", 0) is None)
attack("create a directory outside")(lambda: os.mkdir(f"{place}/dir") is None)
attack("create a FIFO outside")(lambda: os.mkfifo(f"{place}/fifo") is None)
attack("change the mode of a file outside")(lambda: os.chmod(f"{place}/outside.txt", 0o600) is None)
attack("change the owner of a file outside")(lambda: os.chown(f"{place}/outside.txt", os.getuid(), os.getgid()) is None)
attack("change the times of a file outside")(lambda: os.utime(f"{place}/outside.txt", (1, 1)) is None)
attack("set an attribute of a file outside")(lambda: os.setxattr(f"{place}/outside.txt", "user.evil", b"1") is None)
attack("create a device")(lambda: os.mknod("device", stat.S_IFBLK | 0o600, os.makedev(8, 0)) is None)
attack("read the machine's memory")(lambda: bool(os.open("/dev/mem", os.O_RDONLY)))
attack("read the kernel's log")(lambda: bool(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)))
attack("leave a file in the shared /tmp")(lambda: append(f"/tmp/cliq-attack-{pid}") and None)

attack("see another program")(lambda: os.path.exists(f"/proc/{pid}/cmdline"))
attack("read another program's memory")(lambda: bool(os.open(f"/proc/{pid}/mem", os.O_RDONLY)))
attack("trace another program")(lambda: call(101, 16, pid, 0, 0))
attack("read another program's memory by process_vm_readv")(lambda: call(310, pid, 0, 0, 0, 0, 0))
attack("send a signal to another program")(lambda: os.kill(pid, signal.SIGURG) is None)
attack("send a signal to the orchestrator")(lambda: os.kill(int(open(".cliq/lock").read()), 0) is None)
attack("send a signal by a pidfd")(lambda: signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGURG) is None)
attack("take a descriptor of another program")(lambda: call(438, os.pidfd_open(pid), 0, 0))
attack("find descriptors of the orchestrator")(lambda: bool([name for name in descriptors if "/fd" not in name]))
attack("see a variable of the orchestrator")(lambda: "SECRET_TOKEN" in os.environ)
attack("gain privileges by a setuid program")(lambda: "NoNewPrivs:\t0" in open("/proc/self/status").read())
attack("keep capabilities")(lambda: "CapEff:\t0000000000000000" not in open("/proc/self/status").read())


@attack("leave a process behind")
def _():
    subprocess.Popen(["sh", "-c", f"sleep 120; : {os.environ['CLIQ_RUN_ID']}-left"], start_new_session=True,
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return None


attack("connect to a UNIX socket outside")(lambda: connects(socket.AF_UNIX, f"{place}/victim.sock"))
attack("connect to an abstract UNIX socket")(lambda: connects(socket.AF_UNIX, "\0" + victim["abstract"]))
attack("connect by TCP")(lambda: connects(socket.AF_INET, ("127.0.0.1", victim["tcp"])))
attack("send by UDP")(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", victim["udp"])) == 1)
attack("resolve a name")(lambda: opens(socket.AF_INET6, socket.SOCK_DGRAM))
attack("listen for TCP")(lambda: socket.create_server(("127.0.0.1", 0)).close() is None)
attack("open a raw socket")(lambda: opens(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
attack("open a packet socket")(lambda: opens(socket.AF_PACKET, socket.SOCK_RAW))
attack("open a netlink socket")(lambda: opens(socket.AF_NETLINK, socket.SOCK_RAW, 9))
attack("open a vsock socket")(lambda: opens(socket.AF_VSOCK, socket.SOCK_STREAM))
attack("open a crypto socket")(lambda: opens(38, socket.SOCK_SEQPACKET))

attack("set up io_uring")(lambda: call(425, 1, ctypes.create_string_buffer(256)))
attack("load a BPF program")(lambda: call(321, 0, ctypes.create_string_buffer(128), 128))
attack("open a performance event")(lambda: call(298, ctypes.create_string_buffer(128), 0, -1, -1, 0))
attack("use the kernel's keys")(lambda: call(250, 0, -3, 1))
attack("use userfaultfd")(lambda: call(323, 1))
attack("mount a file system")(lambda: call(165, b"none", b"/mnt", b"tmpfs", 0, 0))
attack("mount in a namespace of its own")(lambda: sh("unshare -Urm mount -t tmpfs none /mnt"))
attack("change the root")(lambda: call(161, b"."))
attack("enter a namespace of another program")(lambda: call(308, os.open(f"/proc/{pid}/ns/net", os.O_RDONLY), 0))
attack("open a file by its handle")(lambda: call(303, -100, b"/etc/passwd", struct.pack("Ii", 0, 0) + bytes(128), ctypes.byref(ctypes.c_int()), 0))
attack("change the name of the host")(lambda: call(170, b"evil", 4))
attack("call by the x32 ABI")(lambda: call(0x40000000 | 101, 16, pid, 0, 0))
attack("write a kernel setting")(lambda: append("/proc/sys/kernel/hostname", "evil"))
attack("type into the terminal")(lambda: __import__("fcntl").ioctl(os.open("/dev/tty", os.O_RDWR), termios.TIOCSTI, b"x") is not None)
attack("approve a review with cliq")(lambda: sh(f"HOME={home} CLIQ_HOME={home}/.cliqrc {open('program').read()} review list"))

for name, result in (line.split(": ") for line in subprocess.run(["./attacker", str(pid)], capture_output=True, text=True, check=True).stdout.splitlines()):
    attack(name)(lambda result=result: result == "succeeds")
# Last: others name what these move.
attack("replace the git directory")(lambda: replaced(".git"))
attack("replace the directory of cliq")(lambda: replaced(".cliq"))

# The orchestrator ends a run whose journal is moved: the results are written within its grace period.
signal.signal(signal.SIGTERM, signal.SIG_IGN)
results = {}
for name, function in attacks:
    try:
        results[name] = function()
    except Exception as error:  # noqa: BLE001
        results[name] = False
        print(f"{name}: {error}", flush=True)
with open("results.json", "w") as file:
    json.dump(results, file)

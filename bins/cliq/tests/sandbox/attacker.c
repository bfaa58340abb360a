// Attacks by system calls that scripts have no names for: attacker PID. Prints a line for each attack.

#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *attack, int succeeds) {
    printf("%s: %s\n", attack, succeeds ? "succeeds" : "fails");
    fflush(stdout);
}

// Whether a child that does this ends with 0.
static int in_child(int (*attempt)(pid_t), pid_t pid) {
    int status = 1;
    pid_t child = fork();
    if (child == 0)
        _exit(attempt(pid) == 0 ? 0 : 1);
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int seize(pid_t pid) { return ptrace(PTRACE_SEIZE, pid, 0, 0); }

static int write_memory(pid_t pid) {
    char byte = 0;
    struct iovec local = {&byte, 1}, remote = {(void *)0x400000, 1};
    return process_vm_writev(pid, &local, 1, &remote, 1, 0) == 1 ? 0 : -1;
}

static int clone_into_namespace(pid_t pid) {
    (void)pid;
    struct clone_args args = {.flags = CLONE_NEWUSER | CLONE_NEWNS, .exit_signal = SIGCHLD};
    long child = syscall(SYS_clone3, &args, sizeof args);
    if (child == 0)
        _exit(mount("none", "/mnt", "tmpfs", 0, 0) == 0 ? 0 : 1);
    if (child < 0)
        return -1;
    int status = 1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

// A filter of its own that would let everything through does not lift the one above.
static int lift_filter(pid_t pid) {
    (void)pid;
    prctl(PR_SET_SECCOMP, 0, 0, 0, 0);
    char params[256] = {0};
    return syscall(425, 1, params) >= 0 ? 0 : -1;
}

static int gain_privileges(pid_t pid) {
    (void)pid;
    return prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 ? 0 : -1;
}

static int new_mount_api(pid_t pid) {
    (void)pid;
    return syscall(SYS_fsopen, "tmpfs", 0) >= 0 ? 0 : -1;
}

static int clone_mount(pid_t pid) {
    (void)pid;
    return syscall(SYS_open_tree, AT_FDCWD, "/", 1) >= 0 ? 0 : -1;
}

static int advise_memory(pid_t pid) {
    long fd = syscall(SYS_pidfd_open, pid, 0);
    struct iovec range = {(void *)0x400000, 4096};
    return fd >= 0 && syscall(SYS_process_madvise, fd, &range, 1, MADV_COLD, 0) >= 0 ? 0 : -1;
}

// A descriptor that was opened before stays open over exec, and a directory handed over a socket is one.
static int pass_directory(pid_t pid) {
    (void)pid;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return -1;
    int dir = open("/", O_PATH | O_DIRECTORY);
    char space[CMSG_SPACE(sizeof(int))] = {0}, byte = 'x';
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &dir, sizeof(int));
    if (sendmsg(pair[0], &message, 0) < 0 || recvmsg(pair[1], &message, 0) < 0)
        return -1;
    int received;
    memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
    return openat(received, "etc/shadow", O_RDONLY) >= 0 ? 0 : -1;
}

static int magic_link(pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/root/etc/shadow", pid);
    return open(path, O_RDONLY) >= 0 ? 0 : -1;
}

static int change_priority(pid_t pid) {
    struct sched_param param = {.sched_priority = 0};
    return sched_setscheduler(pid, SCHED_BATCH, &param);
}

int main(int count, char **words) {
    pid_t pid = count > 1 ? atoi(words[1]) : 1;
    say("trace another program by PTRACE_SEIZE", in_child(seize, pid));
    say("write another program's memory", in_child(write_memory, pid));
    say("mount in a namespace made by clone3", in_child(clone_into_namespace, pid));
    say("lift the filter of system calls", in_child(lift_filter, pid));
    say("take back that no privileges are gained", in_child(gain_privileges, pid));
    say("mount by fsopen", in_child(new_mount_api, pid));
    say("copy a mount by open_tree", in_child(clone_mount, pid));
    say("advise another program's memory", in_child(advise_memory, pid));
    say("read by a passed descriptor", in_child(pass_directory, pid));
    say("read by the root of another program", in_child(magic_link, pid));
    say("change the scheduling of another program", in_child(change_priority, pid));
    return 0;
}

//! Seccomp: system calls that no sandboxed process may make. They fail with EPERM.

use std::collections::BTreeMap;

use cliq_protocol::Network;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

use crate::SandboxError;
use crate::policy::{Mechanism, Policy};

/// Calls that are refused whatever their arguments are: they reach other processes, the kernel or the machine.
const REFUSED: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_fanotify_init,
    libc::SYS_lookup_dcookie,
    libc::SYS_vhangup,
];

/// First number of the calls of the x32 ABI.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// Bits of a socket's type without its flags.
const TYPE: u64 = 0xf;

/// Applies the filter of a policy to this process and all that it starts. Cannot be undone.
pub(crate) fn restrict(policy: &Policy) -> Result<(), SandboxError> {
    let failed = |reason: String| SandboxError::Mechanism { mechanism: "seccomp", reason };
    let program = program(policy).map_err(|error| failed(error.to_string()))?;
    seccompiler::apply_filter(&program).map_err(|error| failed(error.to_string()))
}

fn program(policy: &Policy) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_socket, sockets(policy)?);
    // Only pairs of UNIX sockets are of use, and harmless.
    let pair = SeccompRule::new(vec![argument(0, SeccompCmpOp::Ne, number(libc::AF_UNIX))?])?;
    rules.insert(libc::SYS_socketpair, vec![pair]);
    // Input for the terminal that others share: TIOCSTI and TIOCLINUX, which have another type in each C library.
    let inputs = [0x5412, 0x541c];
    let inputs =
        inputs.into_iter().map(|request| SeccompRule::new(vec![argument(1, SeccompCmpOp::Eq, request)?]));
    rules.insert(libc::SYS_ioctl, inputs.collect::<Result<_, _>>()?);
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let refuse = SeccompAction::Errno(u32::try_from(libc::EPERM).unwrap_or(1));
    let filter: BpfProgram = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?.try_into()?;
    #[cfg(target_arch = "x86_64")]
    let filter = refusing_x32(filter);
    Ok(filter)
}

/// Puts a refusal of every call of the x32 ABI before a filter. Other programs do not make such calls, and rules for each of them
/// would double the filter.
#[cfg(target_arch = "x86_64")]
fn refusing_x32(filter: BpfProgram) -> BpfProgram {
    use seccompiler::sock_filter;
    let step = |code: u32, jf: u8, k: u32| sock_filter {
        code: u16::try_from(code).unwrap_or_default(),
        jt: 0,
        jf,
        k,
    };
    let eperm = u32::try_from(libc::EPERM).unwrap_or(1);
    let mut program = vec![
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        // Smaller numbers skip the refusal.
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 1, X32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | eperm),
    ];
    program.extend(filter);
    program
}

/// Rules that refuse sockets: each refuses the families that none of the others allows.
fn sockets(policy: &Policy) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let mut families = Vec::new();
    // Landlock cannot tell sockets inside the sandbox from others, such as that of a container engine.
    if policy.mechanism == Mechanism::Bubblewrap {
        families.push(libc::AF_UNIX);
    }
    if policy.network != Network::None {
        families.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
    }
    let unknown = families.iter().map(|family| argument(0, SeccompCmpOp::Ne, number(*family)));
    let unknown: Vec<SeccompCondition> = unknown.collect::<Result<_, _>>()?;
    let mut rules = Vec::new();
    if unknown.is_empty() {
        return Ok(rules);
    }
    rules.push(SeccompRule::new(unknown)?);
    let internet = [libc::AF_INET, libc::AF_INET6];
    for family in internet.into_iter().filter(|family| families.contains(family)) {
        let own = argument(0, SeccompCmpOp::Eq, number(family))?;
        let kind = |kind: i32| argument(1, SeccompCmpOp::MaskedEq(TYPE), number(kind));
        rules.push(SeccompRule::new(vec![own.clone(), kind(libc::SOCK_RAW)?])?);
        if policy.network != Network::All {
            rules.push(SeccompRule::new(vec![own, kind(libc::SOCK_DGRAM)?])?);
        }
    }
    if families.contains(&libc::AF_NETLINK) {
        // Names of interfaces, which libraries ask for.
        let route = number(libc::NETLINK_ROUTE);
        let other = vec![
            argument(0, SeccompCmpOp::Eq, number(libc::AF_NETLINK))?,
            argument(2, SeccompCmpOp::Ne, route)?,
        ];
        rules.push(SeccompRule::new(other)?);
    }
    Ok(rules)
}

fn argument(n: u8, op: SeccompCmpOp, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(n, SeccompCmpArgLen::Dword, op, value)
}

fn number(value: i32) -> u64 {
    u64::try_from(value).unwrap_or_default()
}

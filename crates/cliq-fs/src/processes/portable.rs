//! Processes as `ps` lists them: its columns are those of POSIX. Of other users' processes it shows no variables.

use std::io;
use std::process::{Command, Stdio};

use nix::unistd::{Pid, getsid};

/// Option that adds variables to the commands.
const WITH_VARIABLES: &str = if cfg!(target_vendor = "apple") { "-E" } else { "-e" };

pub(super) fn process_group_is_alive(group: i32) -> Option<bool> {
    let table = table().ok()?;
    Some(table.iter().any(|process| process.group == group && process.alive))
}

pub(super) fn session_of(pid: i32) -> Option<i32> {
    // A session of zero is none: that of the kernel, or of a process that ends.
    getsid(Some(Pid::from_raw(pid))).ok().map(Pid::as_raw).filter(|session| *session != 0)
}

pub(super) fn parent_of(pid: i32) -> Option<i32> {
    let table = table().ok()?;
    table.iter().find(|process| process.pid == pid && process.alive).map(|process| process.parent)
}

pub(super) fn processes_with(
    candidates: Option<&[i32]>,
    is_wanted: impl Fn(&[u8]) -> bool,
) -> io::Result<Vec<i32>> {
    let list = ps(&["-A", WITH_VARIABLES, "-ww", "-o", "pid=,command="])?;
    let found = list.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let pid: i32 = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
        (candidates.is_none_or(|all| all.contains(&pid)) && words.any(&is_wanted)).then_some(pid)
    });
    Ok(found.collect())
}

struct Process {
    pid: i32,
    parent: i32,
    group: i32,
    alive: bool,
}

fn table() -> io::Result<Vec<Process>> {
    let list = ps(&["-A", "-o", "pid=,ppid=,pgid=,state="])?;
    Ok(String::from_utf8_lossy(&list).lines().filter_map(process).collect())
}

fn process(line: &str) -> Option<Process> {
    let mut words = line.split_ascii_whitespace();
    let mut number = || words.next()?.parse().ok();
    let (pid, parent, group) = (number()?, number()?, number()?);
    Some(Process { pid, parent, group, alive: !words.next()?.starts_with('Z') })
}

fn ps(arguments: &[&str]) -> io::Result<Vec<u8>> {
    let output = Command::new("/bin/ps").args(arguments).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(io::Error::other(format!("ps ended with {}: {said}", output.status)))
}

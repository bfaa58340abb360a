//! Processes as `/proc` describes them.

use std::fs::{self, File};
use std::io::{self, Read};

pub(super) fn process_group_is_alive(group: i32) -> Option<bool> {
    let mut seen_any = false;
    for pid in numbers().ok()? {
        let Some(stat) = stat(pid) else { continue };
        seen_any = true;
        if stat.group == group && stat.alive {
            return Some(true);
        }
    }
    seen_any.then_some(false)
}

pub(super) fn session_of(pid: i32) -> Option<i32> {
    stat(pid).filter(|stat| stat.alive).map(|stat| stat.session)
}

pub(super) fn parent_of(pid: i32) -> Option<i32> {
    stat(pid).filter(|stat| stat.alive).map(|stat| stat.parent)
}

pub(super) fn processes_with(
    candidates: Option<&[i32]>,
    is_wanted: impl Fn(&[u8]) -> bool,
) -> io::Result<Vec<i32>> {
    let all = match candidates {
        Some(candidates) => candidates.to_vec(),
        None => numbers()?.collect(),
    };
    // Room for nearly every environment, so that each is one read.
    let mut environment = Vec::with_capacity(64 * 1024);
    let has_mark = |pid: &i32| {
        environment.clear();
        // Processes of others and those that have gone cannot be read.
        let read = File::open(format!("/proc/{pid}/environ"))
            .and_then(|mut file| file.read_to_end(&mut environment));
        read.is_ok() && environment.split(|&byte| byte == 0).any(&is_wanted)
    };
    Ok(all.into_iter().filter(has_mark).collect())
}

/// Numbers of all processes.
fn numbers() -> io::Result<impl Iterator<Item = i32>> {
    let entries = fs::read_dir("/proc")?.filter_map(Result::ok);
    Ok(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()))
}

struct Stat {
    alive: bool,
    parent: i32,
    group: i32,
    session: i32,
}

fn stat(pid: i32) -> Option<Stat> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in brackets and may contain anything; what follows the last bracket is state, parent, group, session.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let alive = !matches!(fields.next(), Some("Z" | "X"));
    let mut numbers = fields.map(|field| field.parse().ok());
    Some(Stat { alive, parent: numbers.next()??, group: numbers.next()??, session: numbers.next()?? })
}

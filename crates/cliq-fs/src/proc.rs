//! Process groups, as `/proc` describes them.

use std::fs;

/// Whether a process of the group lives. Zombies do not count: in a container whose first
/// process reaps no children they would count for ever.
///
/// `None` on systems without `/proc`.
#[must_use]
pub fn process_group_is_alive(group: i32) -> Option<bool> {
    let entries = fs::read_dir("/proc").ok()?;
    let mut seen_any = false;
    for entry in entries.filter_map(Result::ok) {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Some(stat) = stat(pid) else { continue };
        seen_any = true;
        if stat.group == group && stat.alive {
            return Some(true);
        }
    }
    seen_any.then_some(false)
}

/// The session that a living process belongs to. `None` if there is no such process, or no `/proc`.
#[must_use]
pub fn session_of(pid: i32) -> Option<i32> {
    stat(pid).filter(|stat| stat.alive).map(|stat| stat.session)
}

/// The parent of a living process. `None` if there is no such process, or no `/proc`.
#[must_use]
pub fn parent_of(pid: i32) -> Option<i32> {
    stat(pid).filter(|stat| stat.alive).map(|stat| stat.parent)
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

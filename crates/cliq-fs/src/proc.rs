//! What `/proc` tells of process groups.

use std::fs;

/// Whether a process of the group lives. The dead that nobody has reaped yet do not count: in a container whose first
/// process reaps nobody they would count for ever.
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
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        seen_any = true;
        // The name stands in brackets and may contain anything; what follows the last bracket is state, parent, group.
        let Some((_, rest)) = stat.rsplit_once(')') else { continue };
        let mut fields = rest.split_ascii_whitespace();
        let (state, of_group) = (fields.next(), fields.nth(1).and_then(|field| field.parse::<i32>().ok()));
        if of_group == Some(group) && !matches!(state, Some("Z" | "X")) {
            return Some(true);
        }
    }
    seen_any.then_some(false)
}

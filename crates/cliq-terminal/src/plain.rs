//! Changes of runs as lines, for screen readers and for terminals without a full screen.

use std::collections::HashMap;

use cliq_protocol::Timestamp;

use crate::model::{RunKey, RunList, RunRow, Section};
use crate::text::{duration, plain};

/// Announcer of changes.
#[derive(Debug, Default)]
pub struct Announcer {
    known: HashMap<RunKey, Known>,
    is_started: bool,
    problems: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    status: &'static str,
    done: u32,
    needs: Option<String>,
}

impl Announcer {
    /// Returns lines about what changed since the last list; at first the runs that need a person, are active, or ended today.
    pub fn lines(&mut self, list: &RunList, now: Timestamp) -> Vec<String> {
        let mut lines = Vec::new();
        for problem in list.problems.iter().filter(|problem| !self.problems.contains(problem)) {
            lines.push(format!("problem: {}", plain(problem)));
        }
        self.problems.clone_from(&list.problems);
        let today = list.today.unwrap_or(now);
        let mut runs: Vec<&RunRow> = list.runs.iter().collect();
        runs.sort_by_key(|run| (run.section(today), run.key.clone()));
        for run in runs {
            let known = Known { status: run.status.as_str(), done: run.done, needs: run.needs.clone() };
            let before = self.known.insert(run.key.clone(), known.clone());
            let is_new = before.is_none();
            if before.as_ref() == Some(&known) || is_new && run.section(today) == Section::Earlier {
                continue;
            }
            lines.push(line(run, before.as_ref(), now));
        }
        if !self.is_started && !list.is_partial {
            self.is_started = true;
            if lines.is_empty() {
                lines.push("no run is active, and none ended today".to_owned());
            }
        }
        lines
    }
}

fn line(run: &RunRow, before: Option<&Known>, now: Timestamp) -> String {
    let mut parts = vec![run.status.as_str().to_owned()];
    if run.all > 0 {
        parts.push(format!("{} of {} phases done", run.done, run.all));
    }
    let took =
        run.started.map(|started| duration(run.ended.unwrap_or(now).unix_millis() - started.unix_millis()));
    if let Some(took) = took {
        parts.push(took);
    }
    if let Some(usd) = run.usd {
        parts.push(format!("${usd:.2}"));
    }
    let needs = run.needs.as_ref().filter(|_| run.status.is_active());
    if let Some(needs) =
        needs.filter(|needs| before.is_none_or(|before| before.needs.as_ref() != Some(needs)))
    {
        parts.push(format!("needs you: {}", plain(needs)));
    }
    // Ids grow with time: thirteen characters tell runs of different milliseconds apart.
    let id = run.id.get(..13).unwrap_or(&run.id);
    format!("{} ({}, run {id}): {}", plain(&run.title), plain(&run.project), parts.join(", "))
}

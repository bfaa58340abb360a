//! The workflow as a picture: text, Mermaid, Graphviz.

use std::fmt::Write;

use crate::model::{Phase, PhaseId, ValidatedWorkflow};

impl ValidatedWorkflow {
    /// Phases in the order in which they can run, by the longest way from a root: each wave can run at the same time.
    #[must_use]
    pub fn waves(&self) -> Vec<Vec<PhaseId>> {
        let mut missing: Vec<usize> = self.phases.iter().map(|phase| phase.depends_on.len()).collect();
        let mut wave: Vec<PhaseId> =
            self.phases().filter(|(_, p)| !p.support && p.depends_on.is_empty()).map(|(id, _)| id).collect();
        let mut waves = Vec::new();
        while !wave.is_empty() {
            let mut next = Vec::new();
            for id in &wave {
                for after in &self.phase(*id).dependents {
                    missing[after.index()] -= 1;
                    if missing[after.index()] == 0 {
                        next.push(*after);
                    }
                }
            }
            next.sort_unstable();
            waves.push(std::mem::replace(&mut wave, next));
        }
        waves
    }

    fn names(&self, ids: &[PhaseId]) -> String {
        ids.iter().map(|id| self.phase(*id).name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// One line per phase, wave by wave.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = format!("{}\n", self.name);
        let width = self.phases.iter().map(|p| p.name.as_str().len()).max().unwrap_or(0);
        let line = |out: &mut String, id: PhaseId, mark: &str| {
            let phase = self.phase(id);
            let _ = write!(out, "{mark:>3} {:width$}  {:<8}", phase.name, phase.kind);
            if !phase.depends_on.is_empty() {
                let _ = write!(out, "  after {}", self.names(&phase.depends_on));
            }
            let _ = write!(out, "{}", conditions(phase));
            if !phase.route_targets.is_empty() {
                let _ = write!(out, "  routes to {}", self.names(&phase.route_targets));
            }
            out.push('\n');
        };
        for (i, wave) in self.waves().into_iter().enumerate() {
            for (n, id) in wave.into_iter().enumerate() {
                line(&mut out, id, &if n == 0 { format!("{}.", i + 1) } else { String::new() });
            }
        }
        let support: Vec<PhaseId> = self.phases().filter(|(_, p)| p.support).map(|(id, _)| id).collect();
        if !support.is_empty() {
            out.push_str("support\n");
            for id in support {
                line(&mut out, id, "");
            }
        }
        out.lines().map(str::trim_end).fold(String::new(), |out, line| out + line + "\n")
    }

    /// Condition, list and attempts of a phase in a few words; `None` if it has none.
    #[must_use]
    pub fn conditions_of(&self, id: PhaseId) -> Option<String> {
        short_conditions(self.phase(id))
    }

    /// A Mermaid flowchart. Routes are dashed.
    #[must_use]
    pub fn to_mermaid(&self) -> String {
        let mut out = "flowchart TD\n".to_owned();
        for (id, phase) in self.phases() {
            let (open, close) = if phase.kind.is_gate() {
                ("{{", "}}")
            } else if phase.support {
                ("([", "])")
            } else {
                ("[", "]")
            };
            let conditions = short_conditions(phase).map_or_else(String::new, |text| format!("<br/>{text}"));
            let _ = writeln!(
                out,
                "    p{}{open}\"{}<br/>{}{conditions}\"{close}",
                id.index(),
                phase.name,
                phase.kind
            );
        }
        self.edges(|from, to, route| {
            let arrow = if route { "-. route .->" } else { "-->" };
            let _ = writeln!(out, "    p{} {arrow} p{}", from.index(), to.index());
        });
        out
    }

    /// A Graphviz digraph. Routes are dashed.
    #[must_use]
    pub fn to_dot(&self) -> String {
        let mut out = "digraph team {\n    rankdir=TB;\n    node [shape=box];\n".to_owned();
        for (_, phase) in self.phases() {
            let shape = if phase.kind.is_gate() { ", shape=diamond" } else { "" };
            let style = if phase.support { ", style=dashed" } else { "" };
            let conditions = short_conditions(phase).map_or_else(String::new, |text| format!("\\n{text}"));
            let _ = writeln!(
                out,
                "    \"{0}\" [label=\"{0}\\n{1}{conditions}\"{shape}{style}];",
                phase.name, phase.kind
            );
        }
        self.edges(|from, to, route| {
            let style = if route { " [style=dashed, constraint=false]" } else { "" };
            let _ = writeln!(out, "    \"{}\" -> \"{}\"{style};", self.phase(from).name, self.phase(to).name);
        });
        out.push_str("}\n");
        out
    }

    fn edges(&self, mut each: impl FnMut(PhaseId, PhaseId, bool)) {
        for (id, phase) in self.phases() {
            phase.depends_on.iter().for_each(|&before| each(before, id, false));
            phase.route_targets.iter().for_each(|&target| each(id, target, true));
        }
    }
}

/// Condition, list and attempts of a phase, as in team.yml.
fn conditions(phase: &Phase) -> String {
    let mut out = String::new();
    if let Some(when) = &phase.when {
        let _ = write!(out, "  when {}", one_line(when.source()));
    }
    if let Some(list) = &phase.for_each {
        let _ = write!(out, "  for each of {} (at most {})", one_line(list.items.source()), list.max_items);
    }
    if let Some(retry) = &phase.retry {
        let _ = write!(out, "  {} attempts", retry.attempts);
    }
    out
}

/// The same in a few characters, for pictures; `None` if the phase has none.
fn short_conditions(phase: &Phase) -> Option<String> {
    let when = phase.when.as_ref().map(|_| "when".to_owned());
    let list = phase.for_each.as_ref().map(|list| format!("for each, at most {}", list.max_items));
    let retry = phase.retry.as_ref().map(|retry| format!("{} attempts", retry.attempts));
    let parts: Vec<String> = [when, list, retry].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

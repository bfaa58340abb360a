//! Report of a run in markdown, for the conversation of a pull request and the summary of a job (docs/repositories.md). Pure.
// A new outcome has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

use cliq_model::Caveat;
use cliq_orchestrator::{PhaseStatus, PhaseView, RunView};
use cliq_project::{PhaseRow, RunState, Timeline};
use cliq_protocol::PhaseName;

use crate::render::{summary, usage};
use crate::ui;

/// Maximum number of phases in the table.
const PHASES: usize = 60;
/// Maximum number of outputs that are quoted.
const OUTPUTS: usize = 4;
/// Maximum length of a quoted output in characters: a comment of GitHub has at most 65,536.
const OUTPUT: usize = 6_000;
/// Maximum length of a text in a line, in characters.
const TEXT: usize = 300;
/// Maximum length of the reason in characters.
const REASON: usize = 3_000;

/// A run as its report needs it.
pub(crate) struct Report<'a> {
    /// Timeline of the run.
    pub(crate) timeline: &'a Timeline,
    /// State of its phases.
    pub(crate) view: &'a RunView,
    /// State of the run.
    pub(crate) state: RunState,
    /// Rows of its table, with those of teams within.
    pub(crate) rows: &'a [PhaseRow],
    /// Reasons why it is no plain success.
    pub(crate) caveats: &'a [Caveat],
    /// Address of a page with all of it.
    pub(crate) link: Option<&'a str>,
}

impl Report<'_> {
    /// Returns the report. The first line is a comment that names the team, by which a program finds its earlier report.
    pub(crate) fn markdown(&self) -> String {
        let title = self.timeline.title.as_deref().unwrap_or(&self.timeline.team);
        let parts = [
            format!("<!-- cliq-report: {} -->", marker(&self.timeline.team)),
            format!("### {} {}", self.sign(), text(title, TEXT)),
            self.facts(),
            self.table(),
            self.reservations(),
            self.waits(),
            self.timeline
                .reason
                .as_deref()
                .map(|reason| format!("**Why:** {}", text(reason, REASON)))
                .unwrap_or_default(),
            self.outputs(),
            self.link.map(|link| format!("[The run]({})", address(link))).unwrap_or_default(),
        ];
        let parts: Vec<&str> =
            parts.iter().map(|part| part.trim_end()).filter(|part| !part.is_empty()).collect();
        format!("{}\n", parts.join("\n\n"))
    }

    fn sign(&self) -> &'static str {
        match self.state {
            RunState::Completed if self.caveats.is_empty() && self.tolerated().next().is_none() => "✅",
            RunState::Completed => "⚠️",
            RunState::Escalated | RunState::Failed | RunState::Interrupted => "❌",
            RunState::Cancelled => "🚫",
            RunState::Waiting => "⏸️",
            RunState::None | RunState::Running => "⏳",
        }
    }

    /// Phases that completed although commands of theirs failed.
    fn tolerated(&self) -> impl Iterator<Item = (&PhaseName, Vec<String>)> {
        let completed = self.rows.iter().filter(|row| row.phase.status == PhaseStatus::Completed);
        completed.map(|row| (&row.phase.name, failing(&row.phase))).filter(|(_, failing)| !failing.is_empty())
    }

    /// Reasons that keep the run from being a plain success.
    fn reservations(&self) -> String {
        let caveats =
            self.caveats.iter().map(|caveat| format!("**{}:** {}", caveat.label(), caveat.sentence()));
        let tolerated = self.tolerated().map(|(phase, failing)| {
            format!("**commands failed:** {} completed without {}.", code(phase.as_ref()), failing.join(", "))
        });
        let lines: Vec<String> = caveats.chain(tolerated).map(|line| format!("> {line}")).collect();
        lines.join("  \n")
    }

    /// People and times that the run waits for.
    fn waits(&self) -> String {
        let asked = self.rows.iter().filter_map(|row| Some((&row.phase.name, row.phase.review.as_ref()?)));
        let asked = asked.filter(|(_, review)| !review.reviewers.is_empty()).map(|(phase, review)| {
            let (who, short) = (review.reviewers.join(", "), review.id.get(..8).unwrap_or(&review.id));
            let asks = review.asks.as_ref().map(|asks| format!("{}: ", text(asks, TEXT))).unwrap_or_default();
            let until = &review.until;
            format!(
                "{} {asks}waits for {} until {until} ({})",
                code(phase.as_ref()),
                text(&who, TEXT),
                code(&format!("cliq review show {short}"))
            )
        });
        let woken = self.view.waiting.as_ref().filter(|waiting| waiting.on.is_empty());
        let woken = woken.map(|waiting| format!("goes on at {}", waiting.until));
        let lines: Vec<String> = asked.chain(woken).map(|line| format!("* {line}")).collect();
        lines.join("\n")
    }

    fn facts(&self) -> String {
        let timeline = self.timeline;
        let mut facts = vec![
            format!("**{}** after {}", text(&timeline.status, 60), ui::duration(timeline.elapsed_ms)),
            format!("team {}", code(&timeline.team)),
            format!("run {}", code(&timeline.run_id)),
        ];
        facts.extend(self.view.changed.map(|changed| changed.to_string()));
        facts.extend(timeline.usage.as_ref().map(usage::sentence));
        facts.join(" · ")
    }

    fn table(&self) -> String {
        let mut lines = vec![
            "| | phase | state | verdict | times | took |".to_owned(),
            "|---|---|---|---|--:|--:|".to_owned(),
        ];
        lines.extend(self.rows.iter().take(PHASES).map(row));
        if self.rows.is_empty() {
            return "No phase has begun.".to_owned();
        }
        let left_out = self.rows.len().saturating_sub(PHASES);
        if left_out > 0 {
            lines.push(format!("\n{left_out} more phases are not shown."));
        }
        lines.join("\n")
    }

    fn outputs(&self) -> String {
        let mut parts: Vec<String> = self
            .timeline
            .outputs
            .iter()
            .take(OUTPUTS)
            .map(|output| {
                let (tail, is_cut) = end_of(&output.tail);
                let cut = if is_cut { ", its end" } else { "" };
                let fence = fence(&tail);
                format!(
                    "<details><summary>Output of {}{cut}</summary>\n\n{fence}text\n{tail}\n{fence}\n\n</details>",
                    html(&output.of)
                )
            })
            .collect();
        let left_out = self.timeline.outputs.len().saturating_sub(OUTPUTS);
        if left_out > 0 {
            parts.push(format!("{left_out} more outputs are not shown."));
        }
        parts.join("\n\n")
    }
}

fn row(PhaseRow { depth, phase, .. }: &PhaseRow) -> String {
    let (mark, is_idle) = (phase.status.mark(), phase.iterations == 0);
    let is_asking = phase.status == PhaseStatus::Running && phase.review.is_some();
    let state = if is_asking { "waits".to_owned() } else { text(&summary::word(phase), TEXT) };
    let title = phase.title.as_deref().map(|title| format!(" {}", text(title, 60))).unwrap_or_default();
    let verdict = phase.verdict.as_ref().map(|verdict| code(&verdict.to_string())).unwrap_or_default();
    let failing = failing(phase);
    let failing = if failing.is_empty() { String::new() } else { format!("failing: {}", failing.join(", ")) };
    let between = if verdict.is_empty() || failing.is_empty() { "" } else { ", " };
    let dash = |shown: String| if is_idle { "-".to_owned() } else { shown };
    format!(
        "| {mark} | {}{}{title} | {state} | {verdict}{between}{failing} | {} | {} |",
        "└ ".repeat(*depth),
        code(phase.name.as_ref()),
        dash(phase.iterations.to_string()),
        dash(ui::duration(phase.duration_ms)),
    )
}

/// Commands that failed the last time.
fn failing(phase: &PhaseView) -> Vec<String> {
    let own = phase.commands.iter().filter(|result| !result.pass).map(|result| &result.name);
    let mut names: Vec<&String> = own.chain(&phase.failing).collect();
    names.sort();
    names.dedup();
    names.into_iter().map(|name| code(name)).collect()
}

/// A text of others in one line: no markup of it has an effect, and nothing in it addresses a person.
fn text(words: &str, limit: usize) -> String {
    let mut out = String::new();
    let plain = ui::plain(words);
    let line: Vec<&str> = plain.split_whitespace().collect();
    for c in super::short(&line.join(" "), limit).chars() {
        match c {
            // Of `www.host` too.
            '.' if out.ends_with("www") => out.push_str("\u{200b}."),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A space of no width after it: `@name`, `#1`, `https://host` and `:tada:` are a mention, a reference, a link and a picture otherwise.
            '@' | '#' | ':' | '%' => out.extend([c, '\u{200b}']),
            '\\' | '`' | '*' | '_' | '[' | ']' | '(' | ')' | '|' | '~' | '!' | '$' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// A name as code, also within a table.
fn code(name: &str) -> String {
    let plain = ui::plain(name).replace(['\n', '`'], " ").replace('|', "\\|");
    format!("`{}`", super::short(&plain, 120))
}

fn html(words: &str) -> String {
    let plain = super::short(&ui::plain(words).replace('\n', " "), TEXT);
    plain.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('@', "@\u{200b}")
}

/// A name within a comment of HTML.
fn marker(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "._/@-".contains(c) { c } else { '_' };
    name.chars().map(allowed).collect::<String>().replace("--", "-_")
}

/// An address whose end is that of the link.
fn address(link: &str) -> String {
    let encoded = |c: char| match c {
        '(' | ')' | '<' | '>' | '\\' | '`' | '[' | ']' | '|' => format!("%{:02X}", u32::from(c)),
        c => c.to_string(),
    };
    link.chars().map(encoded).collect()
}

/// The end of an output, and whether something was left out.
fn end_of(output: &str) -> (String, bool) {
    let plain = ui::plain(output.trim_end());
    match plain.char_indices().rev().nth(OUTPUT - 1) {
        Some((at, _)) if at > 0 => (plain[at..].to_owned(), true),
        _ => (plain, false),
    }
}

/// A fence that no line of the output closes.
fn fence(output: &str) -> String {
    let longest = output.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_others_have_no_effect() {
        assert_eq!(
            text("see @ada, #1 <img src=x> [a](b) | **x**\n`c`", TEXT),
            "see @\u{200b}ada, #\u{200b}1 &lt;img src=x&gt; \\[a\\]\\(b\\) \\| \\*\\*x\\*\\* \\`c\\`"
        );
        assert_eq!(code("a`|b\nc"), "`a \\|b c`");
        assert_eq!(marker("@a/b --> x"), "@a/b_-___x");
        assert_eq!(
            text("www.a.b https://c :tada:", TEXT),
            "www\u{200b}.a.b https:\u{200b}//c :\u{200b}tada:\u{200b}"
        );
        assert_eq!(address("https://ci.example/1?a=b#c)(d"), "https://ci.example/1?a=b#c%29%28d");
        assert_eq!(fence("a ``` b"), "````");
    }

    #[test]
    fn long_outputs_keep_their_end() {
        let (tail, is_cut) = end_of(&format!("{}end\u{1b}[31m\n", "é".repeat(2 * OUTPUT)));
        assert!(is_cut && tail.ends_with("end·[31m") && tail.chars().count() == OUTPUT, "{tail}");
        assert_eq!(end_of("all\n"), ("all".to_owned(), false));
    }
}

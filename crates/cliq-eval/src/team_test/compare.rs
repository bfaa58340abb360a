//! Comparison of a run with the expectations of its test. Pure.

use cliq_project::{PhaseActivation, ScriptedReport, ScriptedVerdict};

use super::{CommandEnd, PromptExpectation, TeamTest};

/// Returns the differences of a run from its test, in sentences. Empty if there are none.
pub(super) fn differences(test: &TeamTest, report: &ScriptedReport) -> Vec<String> {
    let mut found = Vec::new();
    end(test, report, &mut found);
    order(test, report, &mut found);
    for (phase, expected) in &test.expect.runs {
        let runs = report.phases.iter().find(|row| row.name.as_str() == phase).map_or(0, |row| row.runs);
        if runs != *expected {
            let times = |number: u32| match number {
                1 => "once".to_owned(),
                number => format!("{number} times"),
            };
            found.push(match runs {
                0 => format!("phase `{phase}` did not start; expected: {}", times(*expected)),
                _ => format!("phase `{phase}` started {}; expected: {}", times(runs), times(*expected)),
            });
        }
    }
    for (gate, expected) in &test.expect.verdicts {
        let given: Vec<&str> =
            report.verdicts.iter().filter(|verdict| verdict.gate.as_str() == gate).map(word_of).collect();
        if given != expected.iter().map(String::as_str).collect::<Vec<_>>() {
            found.push(format!("verdicts of `{gate}`: {}; expected: {}", list(&given), list(expected)));
        }
    }
    for expected in &test.expect.prompts {
        prompt(expected, report, &mut found);
    }
    for ((phase, command), expected) in &test.expect.commands {
        let results = ends_of(report, phase, command);
        if results != *expected {
            let words = |ends: &[CommandEnd]| list(&ends.iter().map(|end| end.as_str()).collect::<Vec<_>>());
            let mut text =
                format!("results of `{phase}/{command}`: {}; expected: {}", words(&results), words(expected));
            if let Some(output) = failed_output(report, phase, command) {
                text.push('\n');
                text.push_str(output);
            }
            found.push(text);
        }
    }
    unused(test, report, &mut found);
    found
}

fn end(test: &TeamTest, report: &ScriptedReport, found: &mut Vec<String>) {
    let end = report.end.as_deref().unwrap_or("not recorded");
    let reason = report.reason.as_deref().unwrap_or_default();
    if end != test.expect.end {
        let why = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
        found.push(format!("the run {end}{why}; expected: {}", test.expect.end));
        return;
    }
    for text in test.expect.reasons.iter().filter(|text| !reason.contains(text.as_str())) {
        found.push(format!("the reason of the end is {reason:?}; expected in it: {text:?}"));
    }
}

/// Phases of `order` have to start one after the other. Others may start in between.
fn order(test: &TeamTest, report: &ScriptedReport, found: &mut Vec<String>) {
    let mut started = report.order.iter();
    let missing = test.expect.order.iter().find(|name| !started.any(|started| started.as_str() == *name));
    if let Some(missing) = missing {
        let order: Vec<&str> = report.order.iter().map(cliq_protocol::PhaseName::as_str).collect();
        found.push(format!(
            "order of the phases: {}; expected: {} (from `{missing}` on it differs)",
            list(&order),
            list(&test.expect.order)
        ));
    }
}

fn word_of(verdict: &ScriptedVerdict) -> &str {
    match (&verdict.target, verdict.outcome) {
        (Some(target), _) => target.as_str(),
        (None, "PASS") => "pass",
        (None, _) => "escalate",
    }
}

fn prompt(expected: &PromptExpectation, report: &ScriptedReport, found: &mut Vec<String>) {
    let is_meant = |row: &&PhaseActivation| {
        row.phase == expected.phase
            && expected.activation.is_none_or(|number| number == row.activation)
            && expected.item.is_none_or(|item| row.item == Some(item))
    };
    let rows: Vec<&PhaseActivation> = report.activations.iter().filter(is_meant).collect();
    if rows.is_empty() {
        let phase = &expected.phase;
        let which = expected.item.map(|item| format!(" for item {item}")).unwrap_or_default();
        found.push(match expected.activation {
            Some(number) => {
                format!("phase `{phase}` has no activation {number}{which}: its prompt cannot be compared")
            }
            None => {
                format!("the agent of phase `{phase}` did not start{which}: its prompt cannot be compared")
            }
        });
    }
    for row in rows {
        let place = match row.item {
            Some(item) => {
                format!("the prompt of `{}`, item {item}, activation {}", row.phase, row.activation)
            }
            None => format!("the prompt of `{}`, activation {}", row.phase, row.activation),
        };
        let Some(text) = &row.prompt else {
            found.push(format!("{place}, was not recorded"));
            continue;
        };
        let missing = expected.contains.iter().filter(|wanted| !text.contains(wanted.as_str()));
        found.extend(missing.map(|wanted| format!("{place}, does not contain {wanted:?}")));
        let present = expected.lacks.iter().filter(|unwanted| text.contains(unwanted.as_str()));
        found.extend(present.map(|unwanted| format!("{place}, contains {unwanted:?}")));
    }
}

/// Results of a command in the order of the activations. A command that ran in several repositories passes if it passed in all.
fn ends_of(report: &ScriptedReport, phase: &str, command: &str) -> Vec<CommandEnd> {
    let mut ends: Vec<(u32, CommandEnd)> = Vec::new();
    for row in report.commands.iter().filter(|row| row.phase.as_str() == phase && row.command == command) {
        let end = match (row.skipped, row.pass) {
            (true, _) => CommandEnd::Skip,
            (false, true) => CommandEnd::Pass,
            (false, false) => CommandEnd::Fail,
        };
        match ends.last_mut() {
            Some((activation, last)) if *activation == row.activation => {
                if end == CommandEnd::Fail {
                    *last = end;
                }
            }
            _ => ends.push((row.activation, end)),
        }
    }
    ends.into_iter().map(|(_, end)| end).collect()
}

/// End of the output of the last result of a command that failed.
fn failed_output<'r>(report: &'r ScriptedReport, phase: &str, command: &str) -> Option<&'r str> {
    let is_meant = |row: &&cliq_project::ScriptedCommand| {
        row.phase.as_str() == phase && row.command == command && !row.pass
    };
    report
        .commands
        .iter()
        .rev()
        .find(is_meant)?
        .output
        .as_deref()
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

/// Replies and results of the script that no activation used.
fn unused(test: &TeamTest, report: &ScriptedReport, found: &mut Vec<String>) {
    for (phase, replies) in &test.script.phases {
        let is_used = |index: usize| {
            report.activations.iter().any(|row| row.phase == *phase && row.reply == Some(index))
        };
        let unused: Vec<String> = (0..replies.len())
            .filter(|index| !is_used(*index))
            .map(|index| (index + 1).to_string())
            .collect();
        match unused.as_slice() {
            [] => {}
            [one] => found.push(format!("reply {one} of `{phase}` was not used")),
            several => found.push(format!("replies {} of `{phase}` were not used", several.join(", "))),
        }
    }
    for ((phase, command), results) in &test.scripted_results {
        let used = report
            .commands
            .iter()
            .filter(|row| {
                cliq_project::internals::split_item(row.phase.as_str()).0 == phase && row.command == *command
            })
            .map(|row| row.activation as usize)
            .max()
            .unwrap_or(0);
        if used < *results {
            found.push(format!("results of `{phase}/{command}`: {results} in the script, {used} used"));
        }
    }
}

fn list<T: AsRef<str>>(words: &[T]) -> String {
    match words {
        [] => "none".to_owned(),
        words => words.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(", "),
    }
}

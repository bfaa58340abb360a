//! Plan files: markdown with a goal, waves and tasks (docs/signals.md).

use std::fmt;

use cliq_protocol::Violations;
use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};
use serde::{Deserialize, Serialize};

/// Content of a plan file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanFile {
    /// Everything before the first wave.
    pub goal: String,
    /// Whether each task is done on a branch of its own: a line `Branches: yes` in the goal.
    #[serde(default)]
    pub branches: bool,
    /// The waves, in order. None where the plan is still to be planned.
    pub waves: Vec<WaveSpec>,
}

/// A wave: tasks that are done at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WaveSpec {
    /// Tasks of the wave.
    pub tasks: Vec<TaskSpec>,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskSpec {
    /// Title.
    pub title: String,
    /// Description of the task.
    pub body: String,
    /// Files that it is about: a line `Files: a.rs, b.rs` in its body.
    #[serde(default)]
    pub files: Vec<String>,
}

/// Problem of a plan file with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanProblem {
    /// The line, the first one being 1.
    pub line: usize,
    /// Problem and remedy.
    pub message: String,
}

impl fmt::Display for PlanProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

enum Heading {
    Wave(Option<u32>),
    Task(Option<u32>, String),
}

impl PlanFile {
    /// Reads a plan file.
    ///
    /// Time and memory are linear in the size of the text.
    ///
    /// # Errors
    /// The first 20 problems, in the order of the text, then the number of the others.
    pub fn parse(text: &str) -> Result<Self, Vec<PlanProblem>> {
        let mut problems = Vec::new();
        let mut plan = Self::default();
        let headings = headings(text);
        let lines: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
        let line_of = |at: usize| lines.partition_point(|end| *end < at) + 1;
        let first = headings.first().map_or(text.len(), |(start, ..)| *start);
        plan.goal = text[..first].trim().to_owned();
        plan.branches = value(&plan.goal, "Branches").is_some_and(|word| word.eq_ignore_ascii_case("yes"));
        for (at, (start, end, heading)) in headings.iter().enumerate() {
            let mut problem = |message: String| problems.push(PlanProblem { line: line_of(*start), message });
            let next = headings.get(at + 1).map_or(text.len(), |(start, ..)| *start);
            match heading {
                Heading::Wave(number) => {
                    let expected = plan.waves.len() + 1;
                    if number.is_none_or(|n| n as usize != expected) {
                        problem(format!(
                            "here `## Wave {expected}` is expected: waves are numbered from 1 on, in order"
                        ));
                    }
                    plan.waves.push(WaveSpec::default());
                }
                Heading::Task(number, title) => {
                    let Some(wave) = plan.waves.last_mut() else {
                        problem("a task stands in a wave: put `## Wave 1` before it".to_owned());
                        continue;
                    };
                    let expected = wave.tasks.len() + 1;
                    if number.is_none_or(|n| n as usize != expected) {
                        problem(format!(
                            "here `### Task {expected}: TITLE` is expected: the tasks of each wave are numbered from 1 on, in order"
                        ));
                    }
                    if title.is_empty() {
                        problem(format!("the task has no title: `### Task {expected}: TITLE`"));
                    }
                    let body = text[*end..next].trim().to_owned();
                    let files = value(&body, "Files").unwrap_or_default();
                    let files = files.split(',').map(|file| file.trim().trim_matches('`').to_owned());
                    wave.tasks.push(TaskSpec {
                        title: title.clone(),
                        files: files.filter(|file| !file.is_empty()).collect(),
                        body,
                    });
                }
            }
        }
        let waves = headings.iter().filter(|(_, _, heading)| matches!(heading, Heading::Wave(_)));
        for ((start, ..), wave) in waves.zip(&plan.waves) {
            if wave.tasks.is_empty() {
                let message = "this wave has no tasks: add `### Task 1: TITLE` below it".to_owned();
                problems.push(PlanProblem { line: line_of(*start), message });
            }
        }
        if plan.goal.is_empty() {
            problems.push(PlanProblem {
                line: 1,
                message: "the goal is missing: say before the first wave what is to be reached".to_owned(),
            });
        }
        if problems.is_empty() {
            return Ok(plan);
        }
        problems.sort_by_key(|problem| problem.line);
        let left_out = problems.len().saturating_sub(Violations::<PlanProblem>::MAX);
        if let (true, Some(line)) =
            (left_out > 0, problems.get(Violations::<PlanProblem>::MAX).map(|p| p.line))
        {
            problems.truncate(Violations::<PlanProblem>::MAX);
            problems
                .push(PlanProblem { line, message: format!("and {left_out} more problems from here on") });
        }
        Err(problems)
    }
}

/// The headings of waves and tasks, with where each begins and ends. What stands in code is none.
fn headings(text: &str) -> Vec<(usize, usize, Heading)> {
    let (mut found, mut open) = (Vec::new(), None);
    for (event, range) in Parser::new(text).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level, .. }) => open = Some((level, String::new())),
            Event::Text(part) | Event::Code(part) => {
                if let Some((_, title)) = &mut open {
                    title.push_str(&part);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let Some((level, title)) = open.take() else { continue };
                let heading = match level {
                    HeadingLevel::H2 => numbered(&title, "Wave").map(|(number, _)| Heading::Wave(number)),
                    HeadingLevel::H3 => numbered(&title, "Task").map(|(number, rest)| {
                        let title = rest.trim_start_matches([':', '-', '–', '—', '.']).trim();
                        Heading::Task(number, title.to_owned())
                    }),
                    _ => None,
                };
                found.extend(heading.map(|heading| (range.start, range.end, heading)));
            }
            _ => {}
        }
    }
    found
}

/// `Wave 3` or `Task 2: title`: the number, where it is one, and the rest. `None` for other headings.
fn numbered<'a>(title: &'a str, word: &str) -> Option<(Option<u32>, &'a str)> {
    let head = title.get(..word.len()).filter(|head| head.eq_ignore_ascii_case(word))?;
    let rest = title[head.len()..].trim_start();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    // `## Waves` and `### Tasks` are something else.
    let alone = title[head.len()..].starts_with([' ', '\t', ':']) || rest.is_empty();
    alone.then(|| (rest[..digits].parse().ok().filter(|n| *n > 0), rest[digits..].trim_start()))
}

/// The value of a line `Key: value`.
fn value(text: &str, key: &str) -> Option<String> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let found = lines.into_iter().find(|(name, _)| name.trim().trim_matches('*').eq_ignore_ascii_case(key));
    found.map(|(_, value)| value.trim().trim_matches('*').trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "# Ship it\n\nBranches: yes\n\n## Wave 1\n\n### Task 1: Parser\n\nFiles: `a.rs`, b.rs\nWrite it.\n\n```\n### Task 9: not one\n```\n\n### Task 2 - Printer\n\n## Wave 2\n### Task 1: Docs\nAll.\n\n## Notes\nnothing\n";

    #[test]
    fn waves_and_tasks() {
        let plan = PlanFile::parse(PLAN).expect("a plan");
        assert_eq!(plan.waves.iter().map(|wave| wave.tasks.len()).collect::<Vec<_>>(), [2, 1]);
        let task = &plan.waves[0].tasks[0];
        assert_eq!(
            (task.title.as_str(), task.files.as_slice()),
            ("Parser", &["a.rs".to_owned(), "b.rs".to_owned()][..])
        );
        assert!(task.body.contains("not one") && plan.branches && plan.goal.contains("Ship it"));
        assert_eq!(plan.waves[0].tasks[1].title, "Printer");
        let bare = PlanFile::parse("Just a goal.\n").expect("a plan without waves");
        assert!(bare.waves.is_empty() && !bare.branches);
    }

    #[test]
    fn large_plans_take_linear_time() {
        for piece in [
            "## Wave 1\n",
            "### Task 1\n",
            "## Wave 2\n### Task 1: x\n",
            "#",
            "> ",
            "- ",
            "`",
            "*a_",
            "[a](",
            "Files: a,\n",
            "\n",
        ] {
            let found = PlanFile::parse(&piece.repeat(100_000 / piece.len()));
            if let Err(problems) = found {
                let size: usize = problems.iter().map(|problem| problem.message.len()).sum();
                assert!(
                    problems.len() <= 21 && size < 10_000,
                    "{piece}: {} problems, {size} bytes",
                    problems.len()
                );
            }
        }
        let problems = PlanFile::parse(&"## Wave 1\n".repeat(100_000)).expect_err("100,000 first waves");
        assert_eq!(problems[20].to_string(), "line 11: and 199980 more problems from here on");
    }

    #[test]
    fn all_problems_at_once_with_their_lines() {
        let text = "### Task 1: early\n\n## Wave 2\n\n### Task 2: late\n### Task:\n\n## Wave 2\n";
        let problems = PlanFile::parse(text).expect_err("it is not a plan");
        let lines: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [1, 1, 3, 5, 6, 6, 8], "{problems:#?}");
    }
}

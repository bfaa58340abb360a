//! Agent Skills (docs/models.md): the head of a `SKILL.md`, by the published format. Pure.

use cliq_document::{Field, Kind, Record, Severity, Type, may, must};

/// Maximum number of characters of a name.
const NAME: usize = 64;
/// Maximum number of characters of a description.
const DESCRIPTION: usize = 1024;
/// Maximum number of characters of the text about compatibility.
const COMPATIBILITY: usize = 500;

static HEAD: &[Field] = &[
    must("name", Type::Text, "Its name, which is that of its directory."),
    must("description", Type::Text, "What it is for, and when to use it."),
    may("license", Type::Text, "Its license."),
    may("compatibility", Type::Text, "What it needs."),
    may("metadata", Type::Any, "Further facts."),
    may("allowed-tools", Type::Any, "Tools that it may use without a question. cliq does not read it."),
];

/// Skill: a text that an agent reads when a task needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Name: lower-case letters, digits and `-`.
    pub name: String,
    /// Purpose and use, for the model that chooses.
    pub description: String,
    /// Position of the body in the file, in bytes.
    pub body: usize,
}

/// Problem in a `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillProblem {
    /// Line, 1-based.
    pub line: usize,
    /// Description of the problem and its remedy.
    pub message: String,
    /// Whether agents cannot use the skill.
    pub is_error: bool,
}

impl Skill {
    /// Reads a `SKILL.md`. `directory` is the name of its directory. A skill that breaks a rule of the format and can be used all the same
    /// is returned with the problem.
    #[must_use]
    pub fn read(text: &str, directory: &str) -> (Option<Self>, Vec<SkillProblem>) {
        let error =
            |line: usize, message: &str| SkillProblem { line, message: message.to_owned(), is_error: true };
        let Some((head, body)) = split(text) else {
            let message =
                "it has no head: begin with a line `---`, `name:` and `description:`, and another line `---`";
            return (None, vec![error(1, message)]);
        };
        let mut diagnostics = Vec::new();
        let node = cliq_document::parse(head, "write `name:` and `description:`", &mut diagnostics);
        let record = node
            .as_ref()
            .filter(|node| matches!(node.kind, Kind::Map(_)))
            .and_then(|node| Record::read(node, HEAD, "the head of a skill", &mut diagnostics));
        let text_of = |name: &str| record.as_ref().and_then(|record| record.text(name));
        let (name, description) = (text_of("name"), text_of("description"));
        let mut problems: Vec<SkillProblem> = diagnostics
            .iter()
            .map(|found| SkillProblem {
                // The head begins in the second line.
                line: found.span.line + 1,
                message: format!("{}; {}", found.message, found.help),
                is_error: found.severity == Severity::Error && found.code != "unknown-field",
            })
            .collect();
        let mut rule = |line: usize, is_broken: bool, message: String| {
            if is_broken {
                problems.push(SkillProblem { line: line + 1, message, is_error: false });
            }
        };
        if let Some(name) = &name {
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            let is_name = name.value.chars().all(is_plain)
                && !name.value.starts_with('-')
                && !name.value.ends_with('-')
                && !name.value.contains("--")
                && (1..=NAME).contains(&name.value.len());
            rule(
                name.span.line,
                !is_name,
                format!(
                    "the name `{}` has other characters than a-z, 0-9 and single `-`, or more than {NAME}",
                    shown(&name.value)
                ),
            );
            rule(
                name.span.line,
                is_name && name.value != directory,
                format!(
                    "the name `{}` is not that of its directory, `{}`",
                    shown(&name.value),
                    shown(directory)
                ),
            );
        }
        if let Some(description) = &description {
            let length = description.value.chars().count();
            rule(
                description.span.line,
                length > DESCRIPTION,
                format!("the description has {length} characters, more than {DESCRIPTION}"),
            );
        }
        if let Some(needs) = text_of("compatibility") {
            let length = needs.value.chars().count();
            rule(
                needs.span.line,
                length > COMPATIBILITY,
                format!("`compatibility` has {length} characters, more than {COMPATIBILITY}"),
            );
        }
        let description = description.map(|text| text.value).filter(|text| !text.trim().is_empty());
        if description.is_none() && problems.iter().all(|problem| !problem.is_error) {
            problems.push(error(2, "its description is empty: a model cannot choose it"));
        }
        // The directory is the name if the head has none that is one: other programs do the same.
        let skill = description.map(|description| Self {
            name: name.map_or_else(|| directory.to_owned(), |name| name.value),
            description,
            body: text.len() - body.len(),
        });
        let is_usable = |skill: &Self| {
            !skill.name.is_empty()
                && skill.name.len() <= NAME
                && skill.name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        };
        (skill.filter(is_usable), problems)
    }
}

/// First characters of a text, for messages.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

/// Returns the head between two lines `---`, and the rest.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rest = text.strip_prefix("---")?;
    let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n'))?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn skill_is_read_with_its_body() {
        let text = "---\nname: pdf-forms\ndescription: Fills PDF forms. Use it for forms.\nlicense: MIT\nmetadata: {version: 1}\nallowed-tools: Bash(git:*) Read\n---\n\n# Forms\n";
        let (skill, problems) = Skill::read(text, "pdf-forms");
        let skill = skill.expect("a skill");
        assert_eq!(
            (skill.name.as_str(), &text[skill.body..], problems.len()),
            ("pdf-forms", "\n# Forms\n", 0)
        );
    }

    #[test]
    fn rules_of_the_format_are_named_with_their_line() {
        let problems = |text: &str| {
            Skill::read(text, "a").1.into_iter().map(|p| (p.line, p.is_error)).collect::<Vec<_>>()
        };
        assert_eq!(problems("# No head\n"), [(1, true)]);
        assert_eq!(problems("---\nname: a\n"), [(1, true)], "the head has no end");
        assert_eq!(problems("---\nname: b\ndescription: x\n---\n"), [(2, false)]);
        assert_eq!(problems("---\nname: A--b\ndescription: x\n---\n"), [(2, false)]);
        assert_eq!(
            problems(&format!("---\nname: a\ndescription: {}\n---\n", "x".repeat(1025))),
            [(3, false)]
        );
        assert!(
            Skill::read("---\nname: a\n---\n", "a").0.is_none(),
            "without a description nobody can choose it"
        );
        assert!(Skill::read("---\nname: ../b\ndescription: x\n---\n", "a").0.is_none());
        assert!(Skill::read("---\nname: [a\n---\n", "a").1.iter().any(|problem| problem.is_error));
    }

    proptest! {
        #[test]
        fn any_text_is_a_skill_or_a_problem(text in "(---\n)?[a-z:\\-\n \"'\\[{]{0,80}(\n---\n)?") {
            let (skill, problems) = Skill::read(&text, "a");
            prop_assert!(skill.is_some() || !problems.is_empty());
            if let Some(skill) = skill {
                prop_assert!(text.get(skill.body..).is_some());
            }
        }
    }
}

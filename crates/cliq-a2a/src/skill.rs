//! A team as a skill of the agent card (docs/a2a.md).

use serde_json::{Value, json};

/// A skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Id: the name of the team, `@scope/name`, or of a system capability.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Description: purpose, when to use the skill, parameters.
    pub description: String,
    /// Words to find it by.
    pub tags: Vec<String>,
}

/// An input of a team, as a caller needs to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameter<'a> {
    pub(crate) name: &'a str,
    pub(crate) description: Option<&'a str>,
    pub(crate) required: bool,
}

impl Skill {
    /// The skill of a team. `inputs` are name, description, and whether a caller must give it.
    #[must_use]
    pub fn of_team(
        team: &str,
        description: Option<&str>,
        use_when: &[String],
        not_for: &[String],
        tags: &[String],
        inputs: &[(&str, Option<&str>, bool)],
    ) -> Self {
        let parameters: Vec<Parameter<'_>> = inputs
            .iter()
            .map(|(name, description, required)| Parameter {
                name,
                description: *description,
                required: *required,
            })
            .collect();
        let title = team.rsplit('/').next().unwrap_or(team).replace(['-', '_'], " ");
        let title =
            title.char_indices().map(|(n, c)| if n == 0 { c.to_ascii_uppercase() } else { c }).collect();
        Self {
            id: team.to_owned(),
            name: title,
            description: compose(description, use_when, not_for, &parameters),
            tags: if tags.is_empty() { vec!["pipeline".to_owned()] } else { tags.to_vec() },
        }
    }

    /// The skill in the agent card: the same for both versions of the protocol.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({"id": self.id, "name": self.name, "description": self.description, "tags": self.tags})
    }
}

/// The description of a skill: what the team does, when to use it, and its parameters.
fn compose(
    description: Option<&str>,
    use_when: &[String],
    not_for: &[String],
    parameters: &[Parameter<'_>],
) -> String {
    let mut sentences = vec![sentence(description.unwrap_or("A team of agents"))];
    if !use_when.is_empty() {
        sentences.push(sentence(&format!("Use when: {}", joined(use_when))));
    }
    if !not_for.is_empty() {
        sentences.push(sentence(&format!("Not for: {}", joined(not_for))));
    }
    for (required, title) in [(true, "Required"), (false, "Optional")] {
        let list: Vec<String> = parameters
            .iter()
            .filter(|parameter| parameter.required == required)
            .map(|parameter| match parameter.description {
                Some(about) => format!("{} — {}", parameter.name, about.trim().trim_end_matches('.')),
                None => parameter.name.to_owned(),
            })
            .collect();
        if !list.is_empty() {
            let list = list.join("; ");
            sentences.push(format!("{title} parameters (provide as a JSON data part): {list}."));
        }
    }
    sentences.join(" ")
}

fn joined(list: &[String]) -> String {
    list.iter().map(|item| item.trim().trim_end_matches('.')).collect::<Vec<_>>().join("; ")
}

fn sentence(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.ends_with(['.', '!', '?']) { text } else { format!("{text}.") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_seed() {
        let when = ["The task requires code changes delivered as a pull request".to_owned()];
        let skill = Skill::of_team(
            "@local/feature-pipeline",
            Some("Feature development with git lifecycle for JS/TS projects"),
            &when,
            &[],
            &[],
            &[("target_branch", Some("Branch name for the feature"), true)],
        );
        assert_eq!(
            skill.description,
            "Feature development with git lifecycle for JS/TS projects. Use when: The task requires code changes delivered as a pull request. Required parameters (provide as a JSON data part): target_branch — Branch name for the feature."
        );
        assert_eq!(
            (skill.name.as_str(), skill.tags.as_slice()),
            ("Feature pipeline", &["pipeline".to_owned()][..])
        );
    }

    #[test]
    fn skill_description_omits_absent_parts() {
        let not_for = ["One-line answers.".to_owned(), "Images".to_owned()];
        let skill =
            Skill::of_team("@a/b", None, &[], &not_for, &[], &[("x", None, false), ("y", None, true)]);
        assert_eq!(
            skill.description,
            "A team of agents. Not for: One-line answers; Images. Required parameters (provide as a JSON data part): y. Optional parameters (provide as a JSON data part): x."
        );
    }
}

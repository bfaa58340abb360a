//! System capabilities (docs/a2a.md): teams built, improved and validated as tasks like any other.
//!
//! Each is a bundled team of one phase that the built-in agent `builder` does; its requirement is the parameters as JSON.

use cliq_a2a::{A2aError, PipelineRequest, Skill, Violation};
use serde_json::{Map, Value};

/// A system capability.
struct Capability {
    /// The id of its skill.
    id: &'static str,
    name: &'static str,
    description: &'static str,
    team: &'static str,
    /// Parameters: name, whether it is required, description.
    parameters: &'static [(&'static str, bool, &'static str)],
    /// The parameter that the text of the message stands for where it is missing.
    text: Option<&'static str>,
}

const CAPABILITIES: [Capability; 3] = [
    Capability {
        id: "build_team",
        name: "Build team",
        description: "Generates a complete team from a description: roles, phases, gate commands and metadata.",
        team: "@builder/build-team",
        parameters: &[
            ("intent", true, "What the team is to do"),
            ("auto_install", false, "Whether it is installed to @local"),
        ],
        text: Some("intent"),
    },
    Capability {
        id: "improve_role",
        name: "Improve role",
        description: "Improves the instructions of one role of a team.",
        team: "@builder/improve-role",
        parameters: &[
            ("role_name", true, "The role to improve"),
            ("role_content", true, "Its current text, in Markdown"),
            ("team_name", true, "The team that it belongs to"),
            ("instruction", false, "What in particular is to be improved"),
        ],
        text: Some("instruction"),
    },
    Capability {
        id: "validate_team",
        name: "Validate team",
        description: "Checks a team definition. Gives {valid, errors, warnings}. Needs no language model.",
        team: "@builder/validate-team",
        parameters: &[("team_json", true, "The team definition, as JSON")],
        text: None,
    },
];

/// The skills of the card.
pub(super) fn skills() -> Vec<Skill> {
    let skill = |capability: &Capability| {
        let list = |needed: bool| {
            let of = capability.parameters.iter().filter(|(_, required, _)| *required == needed);
            of.map(|(name, _, about)| format!("{name} — {about}")).collect::<Vec<_>>().join("; ")
        };
        let mut description = format!(
            "{} Send a data part with \"skill\": \"{}\". Required parameters (provide as a JSON data part): {}.",
            capability.description,
            capability.id,
            list(true)
        );
        if !list(false).is_empty() {
            let optional = list(false);
            description =
                format!("{description} Optional parameters (provide as a JSON data part): {optional}.");
        }
        Skill {
            id: capability.id.to_owned(),
            name: capability.name.to_owned(),
            description,
            tags: vec!["builder".to_owned()],
        }
    };
    CAPABILITIES.iter().map(skill).collect()
}

/// The team and the requirement of a capability, where a message asks for one.
pub(super) fn prepare(request: &PipelineRequest) -> Option<Result<(&'static str, String), A2aError>> {
    let name = request.skill.as_deref()?;
    let capability = CAPABILITIES.iter().find(|capability| capability.id == name)?;
    let mut given = Map::new();
    let mut wrong = Vec::new();
    for (name, required, about) in capability.parameters {
        let text = request.requirement.clone().filter(|_| capability.text == Some(name)).map(Value::from);
        match request.data.get(*name).cloned().filter(|value| !value.is_null()).or(text) {
            Some(value) => drop(given.insert((*name).to_owned(), value)),
            None if *required => {
                let description = format!("is missing: {} needs it ({about})", capability.id);
                wrong.push(Violation { field: format!("data.{name}"), description });
            }
            None => {}
        }
    }
    if !wrong.is_empty() {
        return Some(Err(A2aError::invalid(wrong)));
    }
    Some(Ok((capability.team, Value::Object(given).to_string())))
}

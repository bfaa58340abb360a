//! Resolving templates when a phase starts: in texts, and in scripts, whose text never gets a value (docs/team-yml.md).

use std::collections::BTreeMap;

use cliq_protocol::PhaseName;
use serde_json::Value;

use crate::shell;
use crate::template::{Step, Template, TemplateMatch, find};

/// The values of templates when a phase starts.
pub trait Values {
    /// The value of an input.
    fn input(&self, key: &str) -> Option<String>;
    /// The `data` of the newest handoff that a phase wrote.
    ///
    /// # Errors
    /// Says why there is none.
    fn handoff(&self, phase: &PhaseName) -> Result<Value, String>;
    /// The item of an activation, or `None` outside of `for_each`.
    fn item(&self) -> Option<Value>;
    /// Index of the item.
    fn index(&self) -> Option<u32>;
    /// The team's name.
    fn team_name(&self) -> String;
    /// Today, as YYYY-MM-DD, in UTC.
    fn date(&self) -> String;
    /// Now, in ISO-8601.
    fn timestamp(&self) -> String;
    /// The phase that starts.
    fn phase(&self) -> String;
    /// The run.
    fn run_id(&self) -> String;
}

/// A template that has no value, or one that a command cannot receive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{template}` {why}")]
#[non_exhaustive]
pub struct ResolveError {
    /// The template, as it was written.
    pub template: String,
    /// Predicate of the message: the reason.
    pub why: String,
}

/// The value of one template.
///
/// # Errors
/// The input, handoff or path does not exist.
fn value_of(template: &Template, values: &dyn Values) -> Result<String, ResolveError> {
    let fail =
        |why: String| ResolveError { template: template.to_string(), why: format!("has no value: {why}") };
    Ok(match template {
        Template::Input(key) => {
            values.input(key).ok_or_else(|| fail(format!("no input `{key}` was given")))?
        }
        Template::Handoff(phase, steps) => {
            let value = values.handoff(phase).map_err(fail)?;
            let found = follow(value, steps, "data");
            text_of(found.map_err(|trail| fail(format!("the handoff of `{phase}` has no `{trail}`")))?)
        }
        Template::Item(steps) => {
            let item = values.item().ok_or_else(|| fail("the phase has no `for_each`".to_owned()))?;
            text_of(follow(item, steps, "item").map_err(|trail| fail(format!("there is no `{trail}`")))?)
        }
        Template::Index => match values.index() {
            Some(index) => index.to_string(),
            None => return Err(fail("the phase has no `for_each`".to_owned())),
        },
        Template::TeamName => values.team_name(),
        Template::Date => values.date(),
        Template::Timestamp => values.timestamp(),
        Template::Phase => values.phase(),
        Template::RunId => values.run_id(),
    })
}

/// Follows a path into a value. Returns the part of the path that does not exist as the error.
fn follow(mut value: Value, steps: &[Step], root: &str) -> Result<Value, String> {
    let mut trail = root.to_owned();
    for step in steps {
        let next = match step {
            Step::Key(key) => {
                trail = format!("{trail}.{key}");
                value.get_mut(key).map(Value::take)
            }
            Step::Index(index) => {
                trail = format!("{trail}[{index}]");
                value.get_mut(index).map(Value::take)
            }
        };
        value = next.ok_or_else(|| trail.clone())?;
    }
    Ok(value)
}

fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// Replaces every template of a text that is not a script by its value.
///
/// # Errors
/// A template has no value.
pub fn resolve_text(text: &str, values: &dyn Values) -> Result<String, ResolveError> {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for TemplateMatch { range, template } in find(text) {
        let Ok(template) = template else { continue };
        out.push_str(&text[at..range.start]);
        out.push_str(&value_of(&template, values)?);
        at = range.end;
    }
    out.push_str(&text[at..]);
    Ok(out)
}

/// A script and the environment that carries the values of its templates.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Script {
    /// The text for `sh -c`. No value stands in it.
    pub text: String,
    /// Variables that the text refers to.
    pub env: BTreeMap<String, String>,
    /// Templates of the variables, as they were written.
    pub templates: BTreeMap<String, String>,
}

/// Prepares a script: each template becomes a reference to an environment variable, quoted as its place demands, so
/// that no value can become shell code. `$(date)` is the shell's own.
///
/// Time is linear in the size of the script and its values.
///
/// # Errors
/// Returns an error if a template has no value, if the value has a NUL character, which no shell variable can hold, or if the template is
/// in a place from which a shell would not pass its value on to the letter.
pub fn resolve_script(script: &str, values: &dyn Values) -> Result<Script, ResolveError> {
    let mut resolved = Script {
        text: String::with_capacity(script.len()),
        env: BTreeMap::new(),
        templates: BTreeMap::new(),
    };
    let mut names: BTreeMap<Template, String> = BTreeMap::new();
    let mut at = 0;
    for place in shell::templates(script) {
        let Ok(template) = place.found.template else { continue };
        if !place.context.is_safe() {
            let why = "cannot be used there, since a shell would not pass its value on to the letter: `cliq team validate` shows the remedy";
            return Err(ResolveError { template: template.to_string(), why: why.to_owned() });
        }
        let name = match names.get(&template) {
            Some(name) => name.clone(),
            None => {
                let name = format!("CLIQ_VALUE_{}", names.len() + 1);
                let value = value_of(&template, values)?;
                if let Some(at) = value.find('\0') {
                    let why = format!(
                        "contains a NUL character at byte {at}, which a command cannot receive: remove it, or hand the data over in a file"
                    );
                    return Err(ResolveError { template: template.to_string(), why });
                }
                resolved.env.insert(name.clone(), value);
                resolved.templates.insert(name.clone(), template.to_string());
                names.insert(template, name.clone());
                name
            }
        };
        resolved.text.push_str(&script[at..place.found.range.start]);
        let quote = if place.context == shell::Context::Plain { "\"" } else { "" };
        // A dollar sign before the template would begin an expansion with the reference.
        let dollar = if place.has_dollar { "\\$" } else { "" };
        resolved.text.extend([dollar, quote, "${", &name, "}", quote]);
        at = place.found.range.end;
    }
    resolved.text.push_str(&script[at..]);
    Ok(resolved)
}

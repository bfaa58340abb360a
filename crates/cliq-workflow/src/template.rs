//! Templates: `$(inputs.KEY)`, `$(handoff.PHASE.PATH)`, `$(team_name)`, `$(date)`, `$(timestamp)`, `$(phase)`,
//! `$(run_id)` (SPEC section 6). Any other `$(...)` belongs to the shell and is left alone.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use cliq_protocol::PhaseName;
use serde_json::Value;

/// One template.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Template {
    /// `$(inputs.KEY)`
    Input(String),
    /// `$(handoff.PHASE.PATH)`
    Handoff(PhaseName, Vec<Step>),
    /// `$(team_name)`
    TeamName,
    /// `$(date)`, as YYYY-MM-DD
    Date,
    /// `$(timestamp)`
    Timestamp,
    /// `$(phase)`
    Phase,
    /// `$(run_id)`
    RunId,
}

/// A step into the `data` of a handoff.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// `.key`
    Key(String),
    /// `[n]`
    Index(usize),
}

/// A template, or something that looks like one, in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its bytes, from `$` to `)`.
    pub(crate) range: Range<usize>,
    /// The template, or why it is none.
    pub(crate) template: Result<Template, String>,
}

/// Recognises what stands between `$(` and `)`; `None` where it belongs to the shell.
fn recognise(inner: &str) -> Option<Result<Template, String>> {
    let key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    Some(match inner {
        "team_name" => Ok(Template::TeamName),
        "date" => Ok(Template::Date),
        "timestamp" => Ok(Template::Timestamp),
        "phase" => Ok(Template::Phase),
        "run_id" => Ok(Template::RunId),
        _ => {
            if let Some(name) = inner.strip_prefix("inputs.") {
                if !name.is_empty() && name.chars().all(key) {
                    Ok(Template::Input(name.to_owned()))
                } else {
                    Err("it is `$(inputs.KEY)`, the key of letters, digits, `_` and `-`".to_owned())
                }
            } else if let Some(rest) = inner.strip_prefix("handoff.") {
                handoff(rest)
            } else {
                return None;
            }
        }
    })
}

fn handoff(rest: &str) -> Result<Template, String> {
    const FORM: &str =
        "it is `$(handoff.PHASE.PATH)`, the path of keys with dots between and `[n]` for list items";
    let (phase, path) = rest.split_once(['.', '[']).ok_or(FORM)?;
    let phase_name = PhaseName::parse(phase).map_err(|why| format!("{phase:?} is no phase name: {why}"))?;
    let mut path = if rest.as_bytes()[phase.len()] == b'[' { &rest[phase.len()..] } else { path };
    let mut steps = Vec::new();
    let mut first = !path.starts_with('[');
    while !path.is_empty() {
        if let Some(tail) = path.strip_prefix('[') {
            let (index, tail) = tail.split_once(']').ok_or(FORM)?;
            steps.push(Step::Index(index.parse().map_err(|_| FORM)?));
            path = tail;
        } else {
            let tail = if std::mem::take(&mut first) { path } else { path.strip_prefix('.').ok_or(FORM)? };
            let end = tail.find(['.', '[']).unwrap_or(tail.len());
            let key = &tail[..end];
            if key.is_empty() || key.contains(|c: char| c.is_whitespace() || "()$`\"'".contains(c)) {
                return Err(FORM.to_owned());
            }
            steps.push(Step::Key(key.to_owned()));
            path = &tail[end..];
        }
        first = false;
    }
    if steps.is_empty() { Err(FORM.to_owned()) } else { Ok(Template::Handoff(phase_name, steps)) }
}

/// Whether a template begins at the start of `text`.
pub(crate) fn at_start(text: &str) -> Option<Found> {
    let inner = text.strip_prefix("$(")?;
    let end = inner.find(|c: char| c == ')' || c == '(' || c.is_whitespace())?;
    if !inner[end..].starts_with(')') {
        // `$(inputs.a b)` and `$(handoff.x (…` are slips of the hand, `$(date +%s)` is the shell's.
        let close = inner.find(')')?;
        let slip = inner.starts_with("inputs.") || inner.starts_with("handoff.");
        return slip.then(|| Found {
            range: 0..close + 3,
            template: Err("there is a blank or a bracket within the template".to_owned()),
        });
    }
    Some(Found { range: 0..end + 3, template: recognise(&inner[..end])? })
}

/// Every template of a text that is no script.
pub(crate) fn find(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].find("$(") {
        at += next;
        match at_start(&text[at..]) {
            Some(Found { range, template }) => {
                found.push(Found { range: at..at + range.end, template });
                at += range.end;
            }
            None => at += 2,
        }
    }
    found
}

/// What templates stand for when a phase starts.
pub trait Values {
    /// The value of an input.
    fn input(&self, key: &str) -> Option<String>;
    /// The `data` of the newest handoff that a phase wrote.
    ///
    /// # Errors
    /// Says why there is none.
    fn handoff(&self, phase: &PhaseName) -> Result<Value, String>;
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

/// A template that has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{template}` has no value: {why}")]
pub struct ResolveError {
    /// The template, as it was written.
    pub template: String,
    /// Why it has none.
    pub why: String,
}

/// The value of one template.
///
/// # Errors
/// There is no such input, handoff or path.
pub(crate) fn value_of(template: &Template, values: &dyn Values) -> Result<String, ResolveError> {
    let fail = |why: String| ResolveError { template: template.to_string(), why };
    Ok(match template {
        Template::Input(key) => {
            values.input(key).ok_or_else(|| fail(format!("no input `{key}` was given")))?
        }
        Template::Handoff(phase, steps) => {
            let mut value = values.handoff(phase).map_err(fail)?;
            let mut trail = "data".to_owned();
            for step in steps {
                let next = match step {
                    Step::Key(key) => {
                        let next = value.get_mut(key).map(Value::take);
                        trail = format!("{trail}.{key}");
                        next
                    }
                    Step::Index(index) => {
                        let next = value.get_mut(index).map(Value::take);
                        trail = format!("{trail}[{index}]");
                        next
                    }
                };
                value = next.ok_or_else(|| fail(format!("the handoff of `{phase}` has no `{trail}`")))?;
            }
            match value {
                Value::String(text) => text,
                other => other.to_string(),
            }
        }
        Template::TeamName => values.team_name(),
        Template::Date => values.date(),
        Template::Timestamp => values.timestamp(),
        Template::Phase => values.phase(),
        Template::RunId => values.run_id(),
    })
}

/// Replaces every template of a text that is no script by its value.
///
/// # Errors
/// A template has no value.
pub fn resolve_text(text: &str, values: &dyn Values) -> Result<String, ResolveError> {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for Found { range, template } in find(text) {
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
pub struct Script {
    /// The text for `sh -c`. No value stands in it.
    pub text: String,
    /// Variables that the text refers to.
    pub env: BTreeMap<String, String>,
}

/// Prepares a script: each template becomes a reference to an environment variable, quoted as its place demands, so
/// that no value can become shell code. `$(date)` is the shell's own.
///
/// # Errors
/// A template has no value.
pub fn resolve_script(script: &str, values: &dyn Values) -> Result<Script, ResolveError> {
    let mut resolved = Script { text: String::with_capacity(script.len()), env: BTreeMap::new() };
    let mut names: BTreeMap<Template, String> = BTreeMap::new();
    let mut at = 0;
    for place in crate::shell::templates(script) {
        let Ok(template) = place.found.template else { continue };
        let name = match names.get(&template) {
            Some(name) => name.clone(),
            None => {
                let name = format!("CLIQ_VALUE_{}", names.len() + 1);
                resolved.env.insert(name.clone(), value_of(&template, values)?);
                names.insert(template, name.clone());
                name
            }
        };
        resolved.text.push_str(&script[at..place.found.range.start]);
        let quote = if place.context == crate::shell::Context::Plain { "\"" } else { "" };
        resolved.text.extend([quote, "${", &name, "}", quote]);
        at = place.found.range.end;
    }
    resolved.text.push_str(&script[at..]);
    Ok(resolved)
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(key) => write!(f, "$(inputs.{key})"),
            Self::Handoff(phase, steps) => {
                write!(f, "$(handoff.{phase}")?;
                for step in steps {
                    match step {
                        Step::Key(key) => write!(f, ".{key}")?,
                        Step::Index(index) => write!(f, "[{index}]")?,
                    }
                }
                f.write_str(")")
            }
            Self::TeamName => f.write_str("$(team_name)"),
            Self::Date => f.write_str("$(date)"),
            Self::Timestamp => f.write_str("$(timestamp)"),
            Self::Phase => f.write_str("$(phase)"),
            Self::RunId => f.write_str("$(run_id)"),
        }
    }
}

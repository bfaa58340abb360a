//! Templates: `$(inputs.KEY)`, `$(handoff.PHASE.PATH)`, `$(team_name)`, `$(date)`, `$(timestamp)`, `$(phase)`,
//! `$(run_id)` (docs/team-yml.md). Any other `$(...)` belongs to the shell and is left alone.

use std::fmt;
use std::ops::Range;

use cliq_protocol::PhaseName;

/// One template.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Template {
    /// `$(inputs.KEY)`
    Input(String),
    /// `$(handoff.PHASE.PATH)`
    Handoff(PhaseName, Vec<Step>),
    /// `$(item)` or `$(item.PATH)`
    Item(Vec<Step>),
    /// `$(index)`
    Index,
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
pub(crate) struct TemplateMatch {
    /// Byte range from `$` to `)`.
    pub(crate) range: Range<usize>,
    /// The template, or why it is none.
    pub(crate) template: Result<Template, String>,
}

/// Recognises what stands between `$(` and `)`; `None` if it belongs to the shell.
fn recognise(inner: &str) -> Option<Result<Template, String>> {
    let key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    Some(match inner {
        "team_name" => Ok(Template::TeamName),
        "date" => Ok(Template::Date),
        "timestamp" => Ok(Template::Timestamp),
        "phase" => Ok(Template::Phase),
        "run_id" => Ok(Template::RunId),
        "item" => Ok(Template::Item(Vec::new())),
        "index" => Ok(Template::Index),
        _ => {
            if let Some(name) = inner.strip_prefix("inputs.") {
                if !name.is_empty() && name.chars().all(key) {
                    Ok(Template::Input(name.to_owned()))
                } else {
                    Err("it is `$(inputs.KEY)`, the key of letters, digits, `_` and `-`".to_owned())
                }
            } else if let Some(rest) = inner.strip_prefix("handoff.") {
                handoff(rest)
            } else if inner.starts_with("item.") || inner.starts_with("item[") {
                steps(&inner["item".len()..]).map(Template::Item).ok_or_else(|| {
                    "it is `$(item.PATH)`, the path of keys with dots between and `[n]` for list items"
                        .to_owned()
                })
            } else {
                return None;
            }
        }
    })
}

fn handoff(rest: &str) -> Result<Template, String> {
    const FORM: &str =
        "it is `$(handoff.PHASE.PATH)`, the path of keys with dots between and `[n]` for list items";
    let (phase, _) = rest.split_once(['.', '[']).ok_or(FORM)?;
    let phase_name =
        PhaseName::parse(phase).map_err(|why| format!("{phase:?} is not a valid phase name: {why}"))?;
    let steps = steps(&rest[phase.len()..]).ok_or(FORM)?;
    Ok(Template::Handoff(phase_name, steps))
}

/// Parses a path: `.key` and `[n]`, at least one.
fn steps(mut path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    while !path.is_empty() {
        if let Some(tail) = path.strip_prefix('[') {
            let (index, tail) = tail.split_once(']')?;
            steps.push(Step::Index(index.parse().ok()?));
            path = tail;
        } else {
            let tail = path.strip_prefix('.')?;
            let end = tail.find(['.', '[']).unwrap_or(tail.len());
            let key = &tail[..end];
            if key.is_empty() || key.contains(|c: char| c.is_whitespace() || "()$`\"'".contains(c)) {
                return None;
            }
            steps.push(Step::Key(key.to_owned()));
            path = &tail[end..];
        }
    }
    (!steps.is_empty()).then_some(steps)
}

/// Maximum number of bytes in which the end of a template with a blank is looked for.
const MAX_SLIP: usize = 500;
/// Maximum number of bytes of a template.
const MAX_TEMPLATE: usize = 4096;

/// Whether a template begins at the start of `text`. Time is bounded: a template has at most [`MAX_TEMPLATE`] bytes.
pub(crate) fn at_start(text: &str) -> Option<TemplateMatch> {
    let inner = text.strip_prefix("$(")?;
    let head = &inner[..inner.floor_char_boundary(MAX_TEMPLATE)];
    let end = head.find(|c: char| c == ')' || c == '(' || c.is_whitespace())?;
    if !inner[end..].starts_with(')') {
        // `$(inputs.a b)` and `$(handoff.x (…` are slips of the hand, `$(date +%s)` is the shell's.
        let is_slip = ["inputs.", "handoff.", "item."].iter().any(|prefix| inner.starts_with(prefix));
        let close = is_slip.then(|| inner.bytes().take(MAX_SLIP).position(|b| b == b')')).flatten()?;
        return Some(TemplateMatch {
            range: 0..close + 3,
            template: Err("there is a blank or a bracket within the template".to_owned()),
        });
    }
    Some(TemplateMatch { range: 0..end + 3, template: recognise(&inner[..end])? })
}

/// Every template of a text that is not a script.
pub(crate) fn find(text: &str) -> Vec<TemplateMatch> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].find("$(") {
        at += next;
        match at_start(&text[at..]) {
            Some(TemplateMatch { range, template }) => {
                found.push(TemplateMatch { range: at..at + range.end, template });
                at += range.end;
            }
            None => at += 2,
        }
    }
    found
}

fn write_steps(steps: &[Step], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for step in steps {
        match step {
            Step::Key(key) => write!(f, ".{key}")?,
            Step::Index(index) => write!(f, "[{index}]")?,
        }
    }
    f.write_str(")")
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(key) => write!(f, "$(inputs.{key})"),
            Self::Handoff(phase, steps) => {
                write!(f, "$(handoff.{phase}")?;
                write_steps(steps, f)
            }
            Self::Item(steps) => {
                f.write_str("$(item")?;
                write_steps(steps, f)
            }
            Self::Index => f.write_str("$(index)"),
            Self::TeamName => f.write_str("$(team_name)"),
            Self::Date => f.write_str("$(date)"),
            Self::Timestamp => f.write_str("$(timestamp)"),
            Self::Phase => f.write_str("$(phase)"),
            Self::RunId => f.write_str("$(run_id)"),
        }
    }
}

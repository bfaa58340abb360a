//! Reviewers of a review: people, and groups of them (docs/reviews.md).

use serde_json::{Value, json};

use crate::FieldError;
use crate::fields::{Fields, describe};

/// The most characters of a reviewer's name.
pub const MAX_REVIEWER_LEN: usize = 100;
/// Maximum depth of nested groups, and maximum number of people and groups.
const MAX_DEPTH: usize = 8;
const MAX_NODES: usize = 200;

/// Number of members of a group that must approve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// One of them.
    Any,
    /// Each of them.
    All,
}

impl Policy {
    /// The word for it, as in team.yml.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::All => "all",
        }
    }
}

/// Reviewers: a person, or a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reviewers {
    /// A person, or a group that the settings declare under this name.
    Name(String),
    /// A group. It has at least one member.
    Group {
        /// Number of members that must approve.
        policy: Policy,
        /// Members of the group.
        members: Vec<Reviewers>,
    },
}

impl Reviewers {
    /// Reads `review.reviewer`: a name, a group, or a list. Names in a list are a group of which one has to approve; each group in a list
    /// has to be satisfied.
    ///
    /// # Errors
    /// Names the part that is wrong.
    pub fn from_value(value: Value, path: &str) -> Result<Self, FieldError> {
        let reviewers = read(value, path, 0)?;
        if reviewers.nodes() > MAX_NODES {
            let found = format!("{} of them", reviewers.nodes());
            let expected = format!("at most {MAX_NODES} people and groups");
            return Err(FieldError { field: path.to_owned(), expected, found });
        }
        Ok(reviewers)
    }

    /// As team.yml writes it.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Name(name) => json!(name),
            Self::Group { policy, members } => {
                let members: Vec<Value> = members.iter().map(Self::to_value).collect();
                json!({"policy": policy.as_str(), "members": members})
            }
        }
    }

    /// The names in it, in their order, each once.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.collect(&mut names);
        names
    }

    fn collect<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Self::Name(name) if names.contains(&name.as_str()) => {}
            Self::Name(name) => names.push(name),
            Self::Group { members, .. } => members.iter().for_each(|member| member.collect(names)),
        }
    }

    /// Whether enough people approve.
    pub fn is_satisfied(&self, approves: &impl Fn(&str) -> bool) -> bool {
        match self {
            Self::Name(name) => approves(name),
            Self::Group { policy: Policy::Any, members } => members.iter().any(|m| m.is_satisfied(approves)),
            Self::Group { policy: Policy::All, members } => members.iter().all(|m| m.is_satisfied(approves)),
        }
    }

    fn nodes(&self) -> usize {
        match self {
            Self::Name(_) => 1,
            Self::Group { members, .. } => 1 + members.iter().map(Self::nodes).sum::<usize>(),
        }
    }
}

impl std::fmt::Display for Reviewers {
    /// `ann or bob`, `ann and (bob or cleo)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Group { policy, members } => {
                let word = if *policy == Policy::Any { " or " } else { " and " };
                for (n, member) in members.iter().enumerate() {
                    if n > 0 {
                        f.write_str(word)?;
                    }
                    match member {
                        Self::Group { members: inner, .. } if inner.len() > 1 && members.len() > 1 => {
                            write!(f, "({member})")?
                        }
                        _ => write!(f, "{member}")?,
                    }
                }
                Ok(())
            }
        }
    }
}

impl serde::Serialize for Reviewers {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for Reviewers {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::from_value(value, "reviewer").map_err(serde::de::Error::custom)
    }
}

/// Whether a text can be the name of a reviewer.
fn is_name(text: &str) -> bool {
    let right = |c: char| {
        !c.is_control()
            && !matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    !text.trim().is_empty()
        && text.trim() == text
        && text.chars().count() <= MAX_REVIEWER_LEN
        && text.chars().all(right)
}

fn read(value: Value, path: &str, depth: usize) -> Result<Reviewers, FieldError> {
    const WANT: &str = "a name, a list, or a group {policy, members}";
    let wrong = |expected: &str, found: String| FieldError {
        field: path.to_owned(),
        expected: expected.to_owned(),
        found,
    };
    if depth > MAX_DEPTH {
        return Err(wrong(&format!("groups at most {MAX_DEPTH} deep"), "a deeper one".to_owned()));
    }
    match value {
        Value::String(name) if is_name(&name) => Ok(Reviewers::Name(name)),
        Value::String(_) => Err(wrong("a name of 1 to 100 characters in one line", describe(&value))),
        Value::Array(items) => {
            let members = members(items, path, depth)?;
            // Each group is a condition of its own; the names together are one.
            let (names, mut conditions): (Vec<_>, Vec<_>) =
                members.into_iter().partition(|member| matches!(member, Reviewers::Name(_)));
            if !names.is_empty() {
                conditions.insert(0, group(Policy::Any, names));
            }
            Ok(group(Policy::All, conditions))
        }
        Value::Object(_) => {
            let mut fields = Fields::new(value, path)?;
            let policy = fields.optional_text("policy")?;
            let policy = match policy.as_deref() {
                None | Some("any") => Policy::Any,
                Some("all") => Policy::All,
                Some(other) => return Err(fields.wrong("policy", "`any` or `all`", &other.into())),
            };
            let list_path = fields.path_of("members");
            let items = match fields.required("members", "a list of names and groups")? {
                Value::Array(items) => items,
                other => return Err(fields.wrong("members", "a list of names and groups", &other)),
            };
            if let Some((name, found)) = fields.rest().into_iter().next() {
                let found = describe(&found);
                return Err(FieldError {
                    field: format!("{path}.{name}"),
                    expected: "only `policy` and `members`".to_owned(),
                    found,
                });
            }
            Ok(group(policy, members(items, &list_path, depth)?))
        }
        other => Err(wrong(WANT, describe(&other))),
    }
}

fn members(items: Vec<Value>, path: &str, depth: usize) -> Result<Vec<Reviewers>, FieldError> {
    if items.is_empty() {
        let (expected, found) = ("at least one reviewer".to_owned(), "an empty list".to_owned());
        return Err(FieldError { field: path.to_owned(), expected, found });
    }
    let items = items.into_iter().enumerate();
    items.map(|(n, item)| read(item, &format!("{path}[{n}]"), depth + 1)).collect()
}

/// A group of one is its member.
fn group(policy: Policy, mut members: Vec<Reviewers>) -> Reviewers {
    if members.len() == 1 { members.remove(0) } else { Reviewers::Group { policy, members } }
}

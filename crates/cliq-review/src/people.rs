//! Reviewers and their channels: the setting `hug.reviewers`.

use std::collections::BTreeMap;
use std::fmt;

use cliq_protocol::{FieldError, Policy, Reviewers, shorten};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::Value;

/// Maximum depth of nested groups.
const MAX_DEPTH: usize = 16;
/// Maximum number of people and groups of a group, with those of the groups in it. A person counts as often as a group names them.
const MAX_NODES: u64 = 1000;

/// A way to reach a person: `slack:NAME`, `email:ADDRESS`, `webhook:NAME`, or another agent that delivers notifications.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Channel {
    /// The agent that delivers.
    pub agent: String,
    /// Destination in the terms of the agent.
    pub target: String,
}

impl Channel {
    /// Reads `agent:target`. `slack` alone means `slack:default`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (agent, target) = text.split_once(':').unwrap_or((text, "default"));
        let right = |part: &str| !part.is_empty() && !part.contains(char::is_control) && part.trim() == part;
        (right(agent) && right(target)).then(|| Self { agent: agent.to_owned(), target: target.to_owned() })
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.agent, self.target)
    }
}

impl Serialize for Channel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Channel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| D::Error::custom(format!("{text:?} is not a channel: write agent:target")))
    }
}

/// A person who can review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The name.
    pub name: String,
    /// Channels of the person.
    pub channels: Vec<Channel>,
}

/// The people and groups of the setting `hug.reviewers`, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Directory {
    people: BTreeMap<String, Person>,
    groups: BTreeMap<String, Reviewers>,
}

/// Size of a group with all groups in it.
#[derive(Debug, Clone, Copy)]
struct Extent {
    /// Number of people and groups.
    nodes: u64,
    /// Number of groups within each other.
    depth: usize,
}

/// Reason why the setting, or a group, cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// An entry of the setting is wrong.
    #[error("`hug.reviewers`: {0}")]
    Entry(String),
    /// A group contains itself.
    #[error("the group `{0}` of `hug.reviewers` contains itself")]
    Circle(String),
    /// A group has too many members.
    #[error(
        "the group `{0}` of `hug.reviewers` has more than {MAX_NODES} people and groups, or groups more than {MAX_DEPTH} deep: name each group once"
    )]
    TooLarge(String),
}

impl Directory {
    /// Reads the setting: a list of `{name, channels}` and `{name, members, policy}`.
    ///
    /// Time and memory are linear in the size of the setting: the sizes of groups are computed once per group, before any is expanded.
    /// An error has at most 1,000 bytes.
    ///
    /// # Errors
    /// Says which entry is wrong, and how.
    pub fn from_value(value: &Value) -> Result<Self, DirectoryError> {
        let wrong = |n: usize, why: &str| DirectoryError::Entry(format!("entry {}: {why}", n + 1));
        let Value::Array(items) = value else {
            return Err(DirectoryError::Entry(
                "it is a list of {name, channels} and {name, members, policy}".to_owned(),
            ));
        };
        let mut directory = Self::default();
        for (n, item) in items.iter().enumerate() {
            let Value::Object(map) = item else {
                return Err(wrong(n, "write {name, channels} or {name, members, policy}"));
            };
            let known = ["name", "channels", "members", "policy"];
            if let Some(other) = map.keys().find(|key| !known.contains(&key.as_str())) {
                return Err(wrong(
                    n,
                    &format!(
                        "it has no field `{}`; its fields are {}",
                        shorten(other, 100),
                        known.join(", ")
                    ),
                ));
            }
            let name = map.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            if !matches!(Reviewers::from_value(Value::from(name.clone()), "name"), Ok(Reviewers::Name(_))) {
                return Err(wrong(n, "`name` is a text of 1 to 100 characters in one line"));
            }
            if directory.people.contains_key(&name) || directory.groups.contains_key(&name) {
                return Err(wrong(n, &format!("the name `{name}` stands there twice")));
            }
            if map.contains_key("members") {
                let mut group = map.clone();
                group.remove("name");
                let explain = |error: FieldError| wrong(n, &error.to_string());
                let group = Reviewers::from_value(Value::Object(group), "group").map_err(explain)?;
                directory.groups.insert(name, group);
                continue;
            }
            let channels = match map.get("channels") {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::Array(items)) => {
                    let channel = |item: &Value| item.as_str().and_then(Channel::parse);
                    items.iter().map(channel).collect::<Option<Vec<_>>>().ok_or_else(|| {
                        wrong(n, "a channel is a text such as `slack:NAME` or `email:ADDRESS`")
                    })?
                }
                Some(_) => {
                    return Err(wrong(
                        n,
                        "`channels` is a list of texts such as `slack:NAME` or `email:ADDRESS`",
                    ));
                }
            };
            directory.people.insert(name.clone(), Person { name, channels });
        }
        let mut known = BTreeMap::new();
        for group in directory.groups.keys() {
            directory.extent_of_group(group, &mut known, 0)?;
        }
        Ok(directory)
    }

    /// Returns the extent of a group. `known` has `None` for a group that is being measured.
    fn extent_of_group<'a>(
        &'a self,
        name: &'a str,
        known: &mut BTreeMap<&'a str, Option<Extent>>,
        depth: usize,
    ) -> Result<Extent, DirectoryError> {
        let Some(group) = self.groups.get(name) else { return Ok(Extent { nodes: 1, depth: 0 }) };
        match known.get(name) {
            Some(Some(extent)) => return Ok(*extent),
            Some(None) => return Err(DirectoryError::Circle(name.to_owned())),
            None if depth >= MAX_DEPTH => return Err(DirectoryError::TooLarge(name.to_owned())),
            None => drop(known.insert(name, None)),
        }
        let inner = self.extent_of(group, known, depth + 1)?;
        let extent = Extent { depth: inner.depth + 1, ..inner };
        if extent.nodes > MAX_NODES || extent.depth > MAX_DEPTH {
            return Err(DirectoryError::TooLarge(name.to_owned()));
        }
        known.insert(name, Some(extent));
        Ok(extent)
    }

    fn extent_of<'a>(
        &'a self,
        reviewers: &'a Reviewers,
        known: &mut BTreeMap<&'a str, Option<Extent>>,
        depth: usize,
    ) -> Result<Extent, DirectoryError> {
        match reviewers {
            Reviewers::Name(name) => self.extent_of_group(name, known, depth),
            Reviewers::Group { members, .. } => {
                members.iter().try_fold(Extent { nodes: 1, depth: 0 }, |sum, member| {
                    let extent = self.extent_of(member, known, depth)?;
                    let nodes = sum.nodes.saturating_add(extent.nodes);
                    Ok(Extent { nodes, depth: sum.depth.max(extent.depth) })
                })
            }
        }
    }

    /// The reviewers with each name of a group in its members' place.
    ///
    /// The result has at most 1,000 people and groups per name in `reviewers`: larger groups are refused by [`Self::from_value`].
    ///
    /// # Errors
    /// A group contains itself.
    pub fn expand(&self, reviewers: &Reviewers) -> Result<Reviewers, DirectoryError> {
        self.expand_within(reviewers, 0)
    }

    fn expand_within(&self, reviewers: &Reviewers, depth: usize) -> Result<Reviewers, DirectoryError> {
        match reviewers {
            Reviewers::Name(name) => match self.groups.get(name) {
                Some(_) if depth >= MAX_DEPTH => Err(DirectoryError::Circle(name.clone())),
                Some(group) => self.expand_within(group, depth + 1),
                None => Ok(reviewers.clone()),
            },
            Reviewers::Group { policy, members } => {
                let members = members
                    .iter()
                    .map(|member| self.expand_within(member, depth))
                    .collect::<Result<_, _>>()?;
                Ok(Reviewers::Group { policy: *policy, members })
            }
        }
    }

    /// Returns the channels of a person. Empty for people who are not in the setting.
    #[must_use]
    pub fn channels(&self, name: &str) -> &[Channel] {
        self.people.get(name).map_or(&[], |person| &person.channels)
    }
}

/// The one person whose approval alone is enough, if any member's is: a group of which any one has to approve.
pub(crate) fn first_sufficient<'a>(
    reviewers: &'a Reviewers,
    approved: &dyn Fn(&str) -> bool,
) -> Option<&'a str> {
    let enough =
        |candidate: &&str| reviewers.is_satisfied(&|name: &str| name == *candidate || approved(name));
    reviewers.names().into_iter().filter(|name| !approved(name)).find(|name| enough(name))
}

/// Whether a group of any is there, for texts.
pub(crate) fn is_all(reviewers: &Reviewers) -> bool {
    match reviewers {
        Reviewers::Name(_) => false,
        Reviewers::Group { policy, members } => *policy == Policy::All || members.iter().any(is_all),
    }
}

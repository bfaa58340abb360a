//! Permissions of agents that ask before they act (docs/agents.md): kinds of tool calls, and policies for them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Kind of a tool call, as the Agent Client Protocol names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolKind {
    /// Reads files or data.
    Read,
    /// Changes files.
    Edit,
    /// Removes files.
    Delete,
    /// Moves or renames files.
    Move,
    /// Searches for something.
    Search,
    /// Runs commands.
    Execute,
    /// Plans or reasons.
    Think,
    /// Fetches something from the network.
    Fetch,
    /// Changes the mode of the agent.
    SwitchMode,
    /// Anything else, and kinds that this version does not know.
    Other,
}

impl ToolKind {
    /// All kinds.
    pub const ALL: [Self; 10] = [
        Self::Read,
        Self::Edit,
        Self::Delete,
        Self::Move,
        Self::Search,
        Self::Execute,
        Self::Think,
        Self::Fetch,
        Self::SwitchMode,
        Self::Other,
    ];

    /// Words of all kinds, in the same order.
    pub const WORDS: [&str; 10] =
        ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"];

    /// Word of the kind.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Edit => "edit",
            Self::Delete => "delete",
            Self::Move => "move",
            Self::Search => "search",
            Self::Execute => "execute",
            Self::Think => "think",
            Self::Fetch => "fetch",
            Self::SwitchMode => "switch_mode",
            Self::Other => "other",
        }
    }

    /// Returns the kind with this word, or `None` if there is none.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Whether calls of the kind change nothing.
    #[must_use]
    pub fn is_reading(self) -> bool {
        match self {
            Self::Read | Self::Search | Self::Think => true,
            Self::Edit
            | Self::Delete
            | Self::Move
            | Self::Execute
            | Self::Fetch
            | Self::SwitchMode
            | Self::Other => false,
        }
    }

    /// Whether calls of the kind change files.
    #[must_use]
    pub fn is_editing(self) -> bool {
        match self {
            Self::Edit | Self::Delete | Self::Move => true,
            Self::Read
            | Self::Search
            | Self::Think
            | Self::Execute
            | Self::Fetch
            | Self::SwitchMode
            | Self::Other => false,
        }
    }
}

/// Rule for calls of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionRule {
    /// Calls are allowed.
    Allow,
    /// A person is asked.
    Ask,
    /// Calls are refused.
    Deny,
}

impl PermissionRule {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "allow" => Some(Self::Allow),
            "ask" => Some(Self::Ask),
            "deny" => Some(Self::Deny),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// Policy for the requests of an agent for permission: `allow`, `edits`, `ask`, `deny`, or a list by kind of tool call.
///
/// An entry of a list is a kind, which is allowed, or `KIND=RULE` with the rule `allow`, `ask` or `deny`. Kinds that a list does not name are
/// refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permissions {
    /// Everything is allowed.
    Allow,
    /// Edits and reads inside the workspace are allowed, everything else is refused.
    Edits,
    /// A person is asked about everything.
    Ask,
    /// Everything is refused.
    Deny,
    /// A rule for each kind that is named.
    ByKind(BTreeMap<ToolKind, PermissionRule>),
}

impl Permissions {
    /// Words that stand for a policy.
    pub const WORDS: [&str; 4] = ["allow", "edits", "ask", "deny"];

    /// Parses a word or a list. Entries are separated by commas or blanks.
    ///
    /// # Errors
    /// Returns the first entry that is not one.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "allow" => Ok(Self::Allow),
            "edits" => Ok(Self::Edits),
            "ask" => Ok(Self::Ask),
            "deny" => Ok(Self::Deny),
            list => Self::of_entries(list.split([',', ' ', '\n']).filter(|entry| !entry.is_empty())),
        }
    }

    /// Makes a policy of the entries of a list. The strictest of several rules for one kind counts.
    ///
    /// # Errors
    /// Returns the first entry that is not one.
    pub fn of_entries<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut rules = BTreeMap::new();
        for entry in entries {
            let (kind, rule) = entry.split_once('=').unwrap_or((entry, "allow"));
            let (Some(kind), Some(rule)) = (ToolKind::parse(kind.trim()), PermissionRule::parse(rule.trim()))
            else {
                return Err(entry.to_owned());
            };
            let known = rules.entry(kind).or_insert(rule);
            *known = stricter(*known, rule);
        }
        Ok(Self::ByKind(rules))
    }

    /// Whether a person is asked about some calls.
    #[must_use]
    pub fn may_ask(&self) -> bool {
        match self {
            Self::Ask => true,
            Self::Allow | Self::Edits | Self::Deny => false,
            Self::ByKind(rules) => rules.values().any(|rule| *rule == PermissionRule::Ask),
        }
    }

    fn entries(&self) -> Option<Vec<String>> {
        let Self::ByKind(rules) = self else { return None };
        let entry = |(kind, rule): (&ToolKind, &PermissionRule)| match rule {
            PermissionRule::Allow => kind.as_str().to_owned(),
            PermissionRule::Ask | PermissionRule::Deny => format!("{}={}", kind.as_str(), rule.as_str()),
        };
        Some(rules.iter().map(entry).collect())
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Edits => "edits",
            Self::Ask => "ask",
            Self::Deny | Self::ByKind(_) => "deny",
        }
    }

    /// Describes the entries of a list, for messages.
    #[must_use]
    pub fn expected() -> String {
        format!(
            "`allow`, `edits`, `ask`, `deny`, or a list of {}, each with `=ask` or `=deny` if it is not allowed",
            ToolKind::WORDS.join(", ")
        )
    }
}

fn stricter(a: PermissionRule, b: PermissionRule) -> PermissionRule {
    match (a, b) {
        (PermissionRule::Deny, _) | (_, PermissionRule::Deny) => PermissionRule::Deny,
        (PermissionRule::Ask, _) | (_, PermissionRule::Ask) => PermissionRule::Ask,
        (PermissionRule::Allow, PermissionRule::Allow) => PermissionRule::Allow,
    }
}

impl fmt::Display for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entries() {
            Some(entries) if !entries.is_empty() => f.write_str(&entries.join(", ")),
            Some(_) | None => f.write_str(self.word()),
        }
    }
}

impl Serialize for Permissions {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.entries() {
            Some(entries) => entries.serialize(serializer),
            None => serializer.serialize_str(self.word()),
        }
    }
}

impl<'de> Deserialize<'de> for Permissions {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let unknown = |entry: String| {
            serde::de::Error::custom(format!("`{entry}` is not a permission; there are {}", Self::expected()))
        };
        match Value::deserialize(deserializer)? {
            Value::String(text) => Self::parse(&text).map_err(unknown),
            Value::Array(items) => {
                let entries: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
                let entries = entries
                    .ok_or_else(|| serde::de::Error::custom("expected a list of kinds of tool calls"))?;
                Self::of_entries(entries).map_err(unknown)
            }
            other => {
                Err(serde::de::Error::custom(format!("expected a word or a list of kinds, found {other}")))
            }
        }
    }
}

/// Decision about a request of an agent for permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionDecision {
    /// The call was allowed, once.
    Allowed,
    /// The call was refused.
    Refused,
    /// The request ended without an answer: the agent offered no fitting one, or its turn ended.
    Cancelled,
}

impl PermissionDecision {
    /// Word for people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Request of an agent for permission, with the decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermissionRecord {
    /// Id of the tool call.
    pub id: String,
    /// Title of the call, as the agent shows it.
    pub title: String,
    /// Kind of the call.
    pub kind: String,
    /// Files that the call concerns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Decision.
    pub decision: PermissionDecision,
    /// Source of the decision, for people: the policy, or a person.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn policies_survive_json_and_text() {
        for text in
            [r#""allow""#, r#""edits""#, r#""ask""#, r#""deny""#, r#"["read","edit","execute=ask"]"#, "[]"]
        {
            let policy: Permissions = serde_json::from_str(text).expect("valid");
            assert_eq!(serde_json::to_string(&policy).expect("written"), text);
        }
        assert_eq!(
            Permissions::parse("read, execute=deny"),
            Permissions::of_entries(["read", "execute=deny"])
        );
        assert_eq!(Permissions::parse("edits "), Ok(Permissions::Edits));
        assert_eq!(Permissions::parse("read, write"), Err("write".to_owned()));
        assert_eq!(Permissions::parse("read=maybe"), Err("read=maybe".to_owned()));
        let error = serde_json::from_str::<Permissions>(r#"["write"]"#).expect_err("unknown").to_string();
        assert!(error.contains("`write` is not a permission; there are `allow`"), "{error}");
        assert_eq!(Permissions::of_entries([]).expect("valid").to_string(), "deny");
        assert!(ToolKind::ALL.into_iter().zip(ToolKind::WORDS).all(|(kind, word)| kind.as_str() == word));
    }

    proptest! {
        #[test]
        fn any_text_is_a_policy_or_an_error(text in "[a-z_=, ]{0,40}") {
            if let Ok(policy) = Permissions::parse(&text) {
                let json = serde_json::to_value(&policy).expect("written");
                prop_assert_eq!(serde_json::from_value::<Permissions>(json).expect("read"), policy);
            }
        }
    }
}

//! Decisions about requests of an agent for permission (docs/agents.md). Pure.
//!
//! Only options for one call are chosen, by their kind: what an agent calls an option, and where it puts it, has no meaning.

#![deny(clippy::wildcard_enum_match_arm)]

use std::fmt;

use cliq_acp::client::OptionKind;
use cliq_protocol::{PermissionDecision, PermissionRule, Permissions, ToolKind};

/// Place of a file that a call concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the workspace.
    Inside,
    /// In the workspace, among the files of git or of cliq.
    Internal,
    /// Anywhere else.
    Outside,
}

/// Reason for a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The policy allows everything.
    AllAllowed,
    /// The policy refuses everything.
    AllRefused,
    /// The policy has a rule for the kind.
    KindRule(PermissionRule),
    /// The policy has no rule for the kind.
    KindMissing,
    /// All files are in the workspace.
    InWorkspace,
    /// The policy `edits` allows no calls of this kind.
    NoEdit,
    /// A file is outside of the workspace.
    OutsideWorkspace,
    /// A file belongs to git or to cliq.
    InternalFile,
    /// The agent did not report which files the call changes.
    UnknownFiles,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AllAllowed => "permissions: allow",
            Self::AllRefused => "permissions: deny",
            Self::KindRule(PermissionRule::Allow) => "permissions: the kind is allowed",
            Self::KindRule(PermissionRule::Deny) => "permissions: the kind is refused",
            Self::KindRule(PermissionRule::Ask) => "permissions: ask",
            Self::KindMissing => "permissions: the kind is not in the list",
            Self::InWorkspace => "permissions: edits, inside the workspace",
            Self::NoEdit => "permissions: edits, and this is no edit",
            Self::OutsideWorkspace => "permissions: edits, and a file is outside of the workspace",
            Self::InternalFile => "permissions: edits, and a file belongs to git or to cliq",
            Self::UnknownFiles => "permissions: edits, and the agent did not report the files",
        })
    }
}

/// Verdict of a policy about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The call is allowed.
    Allow(Reason),
    /// The call is refused.
    Refuse(Reason),
    /// A person decides.
    Ask,
}

/// Returns the verdict of a policy about a call that concerns files at these places.
pub(crate) fn verdict(policy: &Permissions, kind: ToolKind, places: &[Place]) -> Verdict {
    match policy {
        Permissions::Allow => Verdict::Allow(Reason::AllAllowed),
        Permissions::Deny => Verdict::Refuse(Reason::AllRefused),
        Permissions::Ask => Verdict::Ask,
        Permissions::Edits => edits(kind, places),
        Permissions::ByKind(rules) => match rules.get(&kind) {
            Some(rule @ PermissionRule::Allow) => Verdict::Allow(Reason::KindRule(*rule)),
            Some(rule @ PermissionRule::Deny) => Verdict::Refuse(Reason::KindRule(*rule)),
            Some(PermissionRule::Ask) => Verdict::Ask,
            None => Verdict::Refuse(Reason::KindMissing),
        },
    }
}

/// Returns the verdict of the policy `edits`.
fn edits(kind: ToolKind, places: &[Place]) -> Verdict {
    if !kind.is_editing() && !kind.is_reading() {
        return Verdict::Refuse(Reason::NoEdit);
    }
    if places.contains(&Place::Outside) {
        return Verdict::Refuse(Reason::OutsideWorkspace);
    }
    if kind.is_reading() {
        return Verdict::Allow(Reason::InWorkspace);
    }
    if places.contains(&Place::Internal) {
        return Verdict::Refuse(Reason::InternalFile);
    }
    if places.is_empty() {
        Verdict::Refuse(Reason::UnknownFiles)
    } else {
        Verdict::Allow(Reason::InWorkspace)
    }
}

/// Returns the index of the option that carries a decision out, and what is really decided. Without a fitting option for one call, the request
/// is cancelled: an option that also decides about later calls is never chosen.
pub(crate) fn choose(allow: bool, options: &[OptionKind]) -> (Option<usize>, PermissionDecision) {
    let (wanted, decision) = if allow {
        (OptionKind::AllowOnce, PermissionDecision::Allowed)
    } else {
        (OptionKind::RejectOnce, PermissionDecision::Refused)
    };
    let find = |kind: OptionKind| options.iter().position(|option| *option == kind);
    match find(wanted) {
        Some(index) => (Some(index), decision),
        None => match find(OptionKind::RejectOnce) {
            Some(index) => (Some(index), PermissionDecision::Refused),
            None => (None, PermissionDecision::Cancelled),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KINDS: [OptionKind; 5] = [
        OptionKind::AllowOnce,
        OptionKind::AllowAlways,
        OptionKind::RejectOnce,
        OptionKind::RejectAlways,
        OptionKind::Unknown,
    ];

    fn place() -> impl Strategy<Value = Place> {
        prop::sample::select(vec![Place::Inside, Place::Internal, Place::Outside])
    }

    fn kind() -> impl Strategy<Value = ToolKind> {
        prop::sample::select(ToolKind::ALL.to_vec())
    }

    #[test]
    fn edits_allow_files_of_the_workspace_alone() {
        let edits = |kind, places: &[Place]| verdict(&Permissions::Edits, kind, places);
        assert_eq!(edits(ToolKind::Edit, &[Place::Inside]), Verdict::Allow(Reason::InWorkspace));
        assert_eq!(edits(ToolKind::Edit, &[]), Verdict::Refuse(Reason::UnknownFiles));
        assert_eq!(edits(ToolKind::Delete, &[Place::Internal]), Verdict::Refuse(Reason::InternalFile));
        let outside = [Place::Inside, Place::Outside];
        assert_eq!(edits(ToolKind::Move, &outside), Verdict::Refuse(Reason::OutsideWorkspace));
        assert_eq!(edits(ToolKind::Read, &outside), Verdict::Refuse(Reason::OutsideWorkspace));
        assert_eq!(edits(ToolKind::Search, &[]), Verdict::Allow(Reason::InWorkspace));
        assert_eq!(edits(ToolKind::Execute, &[Place::Inside]), Verdict::Refuse(Reason::NoEdit));
    }

    proptest! {
        #[test]
        fn only_options_for_one_call_are_chosen(allow: bool, options in prop::collection::vec(prop::sample::select(KINDS.to_vec()), 0..8)) {
            let (index, decision) = choose(allow, &options);
            let chosen = index.map(|index| options[index]);
            prop_assert_ne!(chosen, Some(OptionKind::AllowAlways));
            prop_assert_ne!(chosen, Some(OptionKind::RejectAlways));
            prop_assert_ne!(chosen, Some(OptionKind::Unknown));
            prop_assert_eq!(chosen == Some(OptionKind::AllowOnce), decision == PermissionDecision::Allowed);
            prop_assert!(allow || decision != PermissionDecision::Allowed);
            prop_assert_eq!(index.is_none(), decision == PermissionDecision::Cancelled);
        }

        #[test]
        fn edits_never_allow_more_than_edits(kind in kind(), places in prop::collection::vec(place(), 0..5)) {
            if let Verdict::Allow(_) = verdict(&Permissions::Edits, kind, &places) {
                prop_assert!(kind.is_editing() || kind.is_reading());
                prop_assert!(!places.contains(&Place::Outside));
                prop_assert!(kind.is_reading() || !places.is_empty() && !places.contains(&Place::Internal));
            }
        }

        #[test]
        fn a_list_allows_what_it_names(kind in kind(), named in prop::collection::vec(kind(), 0..5), places in prop::collection::vec(place(), 0..3)) {
            let words: Vec<&str> = named.iter().map(|kind| kind.as_str()).collect();
            let policy = Permissions::of_entries(words).expect("kinds");
            let is_allowed = matches!(verdict(&policy, kind, &places), Verdict::Allow(_));
            prop_assert_eq!(is_allowed, named.contains(&kind));
        }

        #[test]
        fn another_place_outside_never_allows_more(kind in kind(), mut places in prop::collection::vec(place(), 0..4)) {
            places.push(Place::Outside);
            let after = matches!(verdict(&Permissions::Edits, kind, &places), Verdict::Allow(_));
            prop_assert!(!after);
        }
    }
}

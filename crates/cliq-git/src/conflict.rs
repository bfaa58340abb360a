//! Conflicts of a merge: unmerged entries, as `git merge-tree` lists them.

#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bytes::{joined, lossy};

/// Kind of a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConflictKind {
    /// Both sides changed the same lines. The file has conflict markers.
    Content,
    /// Both sides added the file with different content. The file has conflict markers.
    BothAdded,
    /// Both sides changed a file that git cannot merge by lines.
    Binary,
    /// Both sides changed a symbolic link.
    Symlink,
    /// Both sides changed the commit of a submodule.
    Submodule,
    /// The sides have different kinds of files, such as a link and a regular file.
    Types,
    /// The item deleted the file, and a change before the item changed it.
    DeletedByItem,
    /// The item changed the file, and a change before the item deleted it.
    DeletedBefore,
    /// The sides renamed a file or its directory differently.
    Renamed,
    /// One side has a file, and the other a directory of this name. The file was moved to another name.
    FileDirectory,
}

impl ConflictKind {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::Content,
        Self::BothAdded,
        Self::Binary,
        Self::Symlink,
        Self::Submodule,
        Self::Types,
        Self::DeletedByItem,
        Self::DeletedBefore,
        Self::Renamed,
        Self::FileDirectory,
    ];

    /// Description for people, or `None` for lines that conflict.
    #[must_use]
    pub fn note(self) -> Option<&'static str> {
        match self {
            Self::Content => None,
            Self::BothAdded => Some("added on both sides"),
            Self::Binary => Some("binary file, changed on both sides"),
            Self::Symlink => Some("symbolic link, changed on both sides"),
            Self::Submodule => Some("submodule, changed on both sides"),
            Self::Types => Some("of different types on the two sides"),
            Self::DeletedByItem => Some("deleted by the item, changed before it"),
            Self::DeletedBefore => Some("changed by the item, deleted before it"),
            Self::Renamed => Some("renamed differently on the two sides"),
            Self::FileDirectory => Some("a file on one side and a directory on the other"),
        }
    }

    /// Whether the merge writes conflict markers into the file.
    #[must_use]
    pub fn has_markers(self) -> bool {
        match self {
            Self::Content | Self::BothAdded | Self::Renamed | Self::FileDirectory => true,
            Self::Binary
            | Self::Symlink
            | Self::Submodule
            | Self::Types
            | Self::DeletedByItem
            | Self::DeletedBefore => false,
        }
    }
}

/// Version of a path on one side of a merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stage {
    pub(crate) mode: String,
    pub(crate) object: String,
    /// 1: common ancestor, 2: the workspace, 3: the item.
    pub(crate) number: u8,
}

/// Path that a merge left in conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// Path of the submodule below the workspace, empty for the workspace itself.
    pub repository: Vec<u8>,
    /// Path within the repository.
    pub path: Vec<u8>,
    /// Kind.
    pub kind: ConflictKind,
    pub(crate) stages: Vec<Stage>,
    /// Tree that the merge wrote.
    pub(crate) tree: String,
    /// Commits that were merged. They name the sides in conflict markers.
    pub(crate) sides: [String; 2],
}

impl Conflict {
    /// Path below the workspace, for people.
    #[must_use]
    pub fn name(&self) -> String {
        lossy(&joined(&self.repository, &self.path))
    }

    /// Name with the kind.
    #[must_use]
    pub fn describe(&self) -> String {
        match self.kind.note() {
            None => self.name(),
            Some(note) => format!("{} ({note})", self.name()),
        }
    }

    /// Whether neither side has the path, as for the old name of a renamed file.
    pub(crate) fn is_gone(&self) -> bool {
        self.stages.iter().all(|stage| stage.number == 1)
    }
}

/// Result of `git merge-tree`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MergedTree {
    pub(crate) tree: String,
    /// Conflicts of a repository, ordered by path.
    pub(crate) conflicts: Vec<(Vec<u8>, ConflictKind, Vec<Stage>)>,
}

/// Parses the output of `git merge-tree --write-tree -z`. Returns `None` if it has another form.
pub(crate) fn parse(output: &[u8]) -> Option<MergedTree> {
    let mut fields = output.split(|byte| *byte == 0);
    let tree = String::from_utf8(fields.next()?.to_vec()).ok().filter(|tree| !tree.is_empty())?;
    let mut stages: BTreeMap<Vec<u8>, Vec<Stage>> = BTreeMap::new();
    for entry in fields.by_ref().take_while(|field| !field.is_empty()) {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        let info = std::str::from_utf8(&entry[..tab]).ok()?;
        let mut words = info.split(' ');
        let stage = Stage {
            mode: words.next()?.to_owned(),
            object: words.next()?.to_owned(),
            number: words.next()?.parse().ok().filter(|number| (1..=3).contains(number))?,
        };
        stages.entry(entry[tab + 1..].to_vec()).or_default().push(stage);
    }
    let mut messages: BTreeMap<&[u8], Vec<&[u8]>> = BTreeMap::new();
    while let Some(count) = fields.next().filter(|field| !field.is_empty()) {
        let count: usize = std::str::from_utf8(count).ok()?.parse().ok()?;
        let paths: Vec<&[u8]> = fields.by_ref().take(count).collect();
        let (kind, _) = (fields.next()?, fields.next()?);
        for path in paths {
            messages.entry(path).or_default().push(kind);
        }
    }
    let conflicts = stages.into_iter().map(|(path, stages)| {
        let said = messages.get(path.as_slice()).map_or(&[][..], Vec::as_slice);
        let kind = kind_of(&stages, said);
        (path, kind, stages)
    });
    Some(MergedTree { tree, conflicts: conflicts.collect() })
}

fn kind_of(stages: &[Stage], messages: &[&[u8]]) -> ConflictKind {
    let said = |word: &str| {
        messages.iter().any(|message| message.windows(word.len()).any(|part| part == word.as_bytes()))
    };
    let type_of = |stage: &Stage| stage.mode.get(..3).unwrap_or_default().to_owned();
    let sides = || stages.iter().filter(|stage| stage.number > 1);
    let has = |number: u8| stages.iter().any(|stage| stage.number == number);
    let first = sides().next().map(type_of).unwrap_or_default();
    if said("file/directory") {
        ConflictKind::FileDirectory
    } else if said("(rename") || said("(directory rename") || said("(implicit dir rename") {
        ConflictKind::Renamed
    } else if sides().any(|stage| type_of(stage) != first) || said("distinct") {
        ConflictKind::Types
    } else if has(1) && !has(3) {
        if has(2) { ConflictKind::DeletedByItem } else { ConflictKind::Renamed }
    } else if has(1) && !has(2) {
        ConflictKind::DeletedBefore
    } else if !has(1) && (!has(2) || !has(3)) {
        ConflictKind::Renamed
    } else if first == "160" {
        ConflictKind::Submodule
    } else if first == "120" {
        ConflictKind::Symlink
    } else if said("(binary)") {
        ConflictKind::Binary
    } else if has(1) {
        ConflictKind::Content
    } else {
        ConflictKind::BothAdded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_truncation_is_parsed_or_refused() {
        let entry = |stage: u8| format!("100644 {} {stage}\tcaf\u{fffd}.txt", "a".repeat(40));
        let whole = [
            "b".repeat(40),
            entry(1),
            entry(2),
            entry(3),
            String::new(),
            "1".to_owned(),
            "caf\u{fffd}.txt".to_owned(),
            "CONFLICT (binary)".to_owned(),
            "warning: Cannot merge binary files\n".to_owned(),
            String::new(),
        ]
        .join("\0");
        let merged = parse(whole.as_bytes()).expect("parsed");
        assert_eq!(merged.conflicts.len(), 1);
        assert_eq!(merged.conflicts[0].1, ConflictKind::Binary);
        for end in 0..whole.len() {
            let _ = parse(&whole.as_bytes()[..end]);
        }
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"tree\x00no entry\x00"), None);
        assert_eq!(parse(b"tree\x00100644 a 7\tx\x00\x00"), None);
        assert!(parse(b"tree\x00").is_some_and(|merged| merged.conflicts.is_empty()));
    }

    #[test]
    fn kinds_without_markers_have_a_note() {
        for kind in ConflictKind::ALL {
            assert!(kind.has_markers() || kind.note().is_some(), "{kind:?}");
        }
    }
}

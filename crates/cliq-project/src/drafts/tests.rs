//! Tests of drafts: versions, limits, and folders that others change too.

use camino::{Utf8Path, Utf8PathBuf};
use cliq_settings::Environment;

use super::{DraftError, DraftName, DraftPath, Drafts, UnsavedTexts};
use crate::{Host, TeamText};

struct Place {
    _temporary: tempfile::TempDir,
    root: Utf8PathBuf,
    drafts: Drafts,
}

fn place() -> Place {
    let temporary = tempfile::tempdir().unwrap();
    let root = Utf8Path::from_path(temporary.path()).unwrap().to_owned();
    let host = Host::new(Environment::default(), "/bin/false".into()).with_home(root.clone());
    Place { drafts: host.drafts().unwrap(), root, _temporary: temporary }
}

fn name(text: &str) -> DraftName {
    DraftName::parse(text).unwrap()
}

fn path(text: &str) -> DraftPath {
    DraftPath::parse(text).unwrap()
}

#[test]
fn a_file_is_saved_over_the_version_that_was_read() {
    let Place { drafts, root, .. } = place();
    let (draft, file) = (name("a"), path("roles/x.md"));
    drafts.create(&draft).unwrap();
    assert!(matches!(drafts.create(&draft), Err(DraftError::Exists(_))));
    let first = drafts.save(&draft, &file, "one", None).unwrap();
    assert!(matches!(drafts.save(&draft, &file, "two", None), Err(DraftError::FileExists(_))));
    let second = drafts.save(&draft, &file, "two", Some(&first)).unwrap();
    assert!(matches!(drafts.save(&draft, &file, "three", Some(&first)), Err(DraftError::Conflict(_))));
    assert_eq!(
        drafts.save(&draft, &file, "two", Some(&first)).unwrap(),
        second,
        "the same text is no conflict"
    );
    // An editor on the machine counts too.
    std::fs::write(root.join("drafts/a/roles/x.md"), "from outside").unwrap();
    assert!(matches!(drafts.save(&draft, &file, "three", Some(&second)), Err(DraftError::Conflict(_))));
    std::fs::remove_file(root.join("drafts/a/roles/x.md")).unwrap();
    assert!(matches!(drafts.save(&draft, &file, "three", Some(&second)), Err(DraftError::Removed(_))));
    assert!(matches!(drafts.remove_file(&draft, &path("team.yml"), ""), Err(DraftError::TeamFile)));
}

#[test]
fn several_files_are_saved_all_or_none() {
    let Place { drafts, .. } = place();
    let draft = name("a");
    drafts.create_from_text(&draft, &TeamText::new("name: '@local/a'\n").with_role("x", "one")).unwrap();
    let version = drafts.file(&draft, &path("team.yml")).unwrap().version;
    let files = [
        (path("team.yml"), Some(version.clone()), "name: '@local/b'\n".to_owned()),
        (path("roles/x.md"), Some("old".to_owned()), "two".to_owned()),
    ];
    assert!(matches!(drafts.save_all(&draft, &files), Err(DraftError::Conflict(_))));
    assert_eq!(drafts.file(&draft, &path("team.yml")).unwrap().version, version);
}

#[test]
fn programs_are_executable_and_stay_so() {
    use std::os::unix::fs::PermissionsExt;
    let Place { drafts, root, .. } = place();
    let (draft, file) = (name("a"), path("agents/own.sh"));
    drafts.create(&draft).unwrap();
    let version = drafts.save(&draft, &file, "#!/bin/sh\n", None).unwrap();
    drafts.save(&draft, &file, "#!/bin/sh\ntrue\n", Some(&version)).unwrap();
    let mode = std::fs::metadata(root.join("drafts/a/agents/own.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0o111);
}

#[test]
fn copies_have_a_name_of_their_own() {
    let Place { drafts, .. } = place();
    let draft = name("mine");
    drafts.create_from_team(&draft, "@cliq/code").unwrap();
    let summary = drafts.list().unwrap().remove(0);
    assert_eq!(summary.team.as_deref(), Some("@local/mine"));
    assert!(matches!(drafts.create_from_team(&name("other"), "@cliq/none"), Err(DraftError::Project(_))));
    assert_eq!(drafts.list().unwrap().len(), 1, "nothing of a failed copy stays");
}

#[test]
fn unsaved_texts_are_checked_with_what_is_saved() {
    let Place { drafts, .. } = place();
    let draft = name("a");
    drafts.create(&draft).unwrap();
    let problems = |unsaved: &[(&str, Option<&str>)]| {
        let unsaved: UnsavedTexts =
            unsaved.iter().map(|(file, text)| (path(file), text.map(str::to_owned))).collect();
        let check = drafts.check(&draft, &unsaved).unwrap();
        check
            .problems
            .iter()
            .map(|found| format!("{}:{}", found.file, found.problem.code))
            .collect::<Vec<_>>()
    };
    assert_eq!(problems(&[]), Vec::<String>::new());
    assert_eq!(problems(&[("roles/fixer.md", None)]), ["team.yml:missing-role"]);
    assert_eq!(problems(&[("agents/worker.sh", None)]), ["team.yml:agent-entry"]);
    let skill = [("skills/words/SKILL.md", Some("no head"))];
    assert_eq!(problems(&skill), ["skills/words/SKILL.md:invalid-skill"]);
    assert_eq!(problems(&[("team.yml", Some("name: ["))]).len(), 1);
}

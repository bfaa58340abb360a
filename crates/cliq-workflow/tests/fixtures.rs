//! Whole team files: good ones in both dialects, bad ones with every problem they have.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_workflow::*;

struct Files;

impl TeamFiles for Files {
    fn has_role(&self, name: &str) -> bool {
        self.role_names().iter().any(|n| n == name)
    }
    fn role_names(&self) -> Vec<String> {
        let names =
            "architect developer tester reviewer git-finalize git-resolver hotfix-dev fixer dev a b x gate2";
        names.split(' ').map(str::to_owned).collect()
    }
    fn role_texts(&self) -> Vec<String> {
        Vec::new()
    }
    fn entry(&self, path: &Utf8Path) -> EntryFile {
        match path.extension() {
            _ if path.as_str().contains("gone") => EntryFile::Missing,
            Some("sh") => EntryFile::Executable,
            _ => EntryFile::NotExecutable,
        }
    }
    fn installed_agents(&self) -> Vec<String> {
        Vec::new()
    }
}

fn fixtures(kind: &str) -> Vec<(String, String)> {
    let dir = Utf8PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/workflow").join(kind);
    let mut files: Vec<_> = dir
        .read_dir_utf8()
        .expect("fixtures")
        .map(|entry| entry.expect("entry").into_path())
        .map(|path| (path.file_stem().expect("name").to_owned(), fs::read_to_string(&path).expect("text")))
        .collect();
    files.sort();
    files
}

fn show(checked: &TeamCheck) -> String {
    checked
        .diagnostics
        .iter()
        .map(|d| {
            format!(
                "{}:{} {:?} {}\n    {}\n    help: {}\n",
                d.span.line, d.span.column, d.severity, d.code, d.message, d.help
            )
        })
        .collect()
}

#[test]
fn good_teams_have_no_problem() {
    for (name, text) in fixtures("ok") {
        let checked = check(&text, &Files);
        assert_eq!(show(&checked), "", "{name}");
        let workflow = checked.workflow.expect("a workflow");
        insta::assert_snapshot!(
            format!("ok-{name}"),
            format!("{}\n{}\n{}", workflow.to_text(), workflow.to_mermaid(), workflow.to_dot())
        );
    }
}

#[test]
fn all_problems_of_a_team_are_reported() {
    for (name, text) in fixtures("bad") {
        let checked = check(&text, &Files);
        assert!(!checked.diagnostics.is_empty(), "{name}");
        assert_eq!(checked.workflow.is_some(), !checked.has_errors(), "{name}");
        insta::assert_snapshot!(format!("bad-{name}"), show(&checked));
    }
}

#[test]
fn every_code_is_documented_and_has_a_fixture() {
    let docs = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/team-yml.md")).unwrap();
    let mut sources = String::new();
    let src = Utf8PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src");
    for dir in [src.clone(), src.join("validate"), src.join("../../cliq-document/src")] {
        for entry in dir.read_dir_utf8().unwrap() {
            let path = entry.unwrap().into_path();
            if path.extension() == Some("rs") {
                sources.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    let seen: std::collections::BTreeSet<&str> = fixtures("bad")
        .iter()
        .flat_map(|(_, text)| check(text, &Files).diagnostics)
        .map(|d| d.code)
        .collect();
    for code in &seen {
        assert!(docs.contains(&format!("`{code}`")), "docs/team-yml.md does not explain `{code}`");
        assert!(sources.contains(&format!("\"{code}\"")));
    }
    assert!(seen.len() >= 45, "{} codes have a fixture", seen.len());
}

#[test]
fn every_field_is_documented() {
    let docs = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/team-yml.md")).unwrap();
    for (object, name, required, doc) in field_list() {
        let need = if required { "yes" } else { "" };
        let row = format!("| `{name}` | {need} | {doc} |");
        assert!(docs.contains(&row), "docs/team-yml.md: the table of {object} lacks the row\n{row}");
    }
}

#[test]
fn the_schema_is_pinned() {
    insta::assert_json_snapshot!(json_schema());
}

#[test]
fn both_dialects_lower_to_the_same_kinds() {
    let text = &fixtures("ok").into_iter().find(|(n, _)| n == "newer-dialect").unwrap().1;
    let workflow = check(text, &Files).workflow.unwrap();
    let kinds: Vec<String> = workflow.phases().map(|(_, p)| format!("{}={}", p.name, p.kind)).collect();
    let want =
        "ticket=standard developer=standard build=exec sub=team quality=gate approval=hug fixer=standard";
    assert_eq!(kinds.join(" "), want);
    let quality = workflow.phase(workflow.find("quality").unwrap());
    let targets: Vec<&str> = quality.route_targets.iter().map(|t| workflow.phase(*t).name.as_str()).collect();
    assert_eq!(targets, ["fixer", "developer"]);
    assert_eq!(quality.rules["unit"], Rule::Escalate);
}

#[test]
fn channels_are_one_per_edge_and_both_ways_for_gates() {
    let text = &fixtures("ok").into_iter().find(|(n, _)| n == "seed-simple").unwrap().1;
    let workflow = check(text, &Files).workflow.unwrap();
    let name = |id| workflow.phase(id).name.to_string();
    let channels: Vec<String> =
        workflow.channels().into_iter().map(|(a, b)| format!("{}--{}", name(a), name(b))).collect();
    assert_eq!(
        channels,
        [
            "architect--developer",
            "architect--reviewer",
            "developer--reviewer",
            "reviewer--architect",
            "reviewer--developer",
        ]
    );
}

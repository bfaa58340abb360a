//! `cliq markers`: what a coordinator would make of a text.

use std::io::Write;
use std::process::Stdio;

use cliq_testkit::env::{Env, done};

const TEXT: &str = "I tried.\n\nREADY_FOR_REVIEW: task-1\n\nSummary: small\n\nINFRA_BLOCKED: task-1\r\nIssue: no disk\nHEALTH_AUDIT: SICK\n";

#[test]
fn a_file_or_standard_input() {
    let env = Env::bare();
    env.write("answer.txt", TEXT);
    let from_file = env.cliq(["markers", "answer.txt", "--json"]).expect(0);
    let mut child =
        env.command(["markers", "--json"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(TEXT.as_bytes()).unwrap();
    assert_eq!(done(&child.wait_with_output().unwrap()).expect(0).stdout, from_file.stdout);
    insta::assert_snapshot!(from_file.stdout);
    insta::assert_snapshot!(env.cliq(["markers", "answer.txt"]).expect(0).stdout);
    env.write("empty.txt", "");
    let empty = env.cliq(["markers", "empty.txt", "--json"]).expect(0).json();
    assert_eq!(
        (empty["signal"].as_str(), empty["handler"].as_str()),
        (Some("unknown"), Some("REQUEST_CLARIFICATION"))
    );
    assert!(empty["decisive"].is_null());
    env.cliq(["markers", "missing.txt"]).expect(2).says("missing.txt");
    env.cliq(["markers", "."]).expect(2).says("directory");
}

#[test]
fn formats_for_prompts() {
    let env = Env::bare();
    let all = env.cliq(["markers", "--format"]).expect(0).stdout;
    assert_eq!(all.matches("[task_id]").count(), 12);
    let one = env.cliq(["markers", "--format", "file_conflict"]).expect(0).stdout;
    assert!(all.contains(&one) && one.starts_with("FILE CONFLICT: [file_path]\n\nAssigned To: "));
    assert_eq!(env.cliq(["markers", "--format", "FILE CONFLICT"]).expect(0).stdout, one);
    env.cliq(["markers", "--format", "AUDIT_PASED"]).expect(2).says("did you mean `AUDIT_PASSED`?");
}

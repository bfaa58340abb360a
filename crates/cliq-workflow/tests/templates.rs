//! Templates: what they resolve to, and that no value ever becomes shell code.

use std::collections::BTreeMap;
use std::process::Command;

use cliq_protocol::PhaseName;
use cliq_workflow::*;
use proptest::prelude::*;
use serde_json::{Value, json};

struct Facts(BTreeMap<String, String>);

impl Values for Facts {
    fn input(&self, key: &str) -> Option<String> {
        self.0.get(key).cloned()
    }
    fn handoff(&self, phase: &PhaseName) -> Result<Value, String> {
        if phase == "dev" {
            Ok(json!({"files": ["a.rs", "b.rs"], "n": 12, "deep": {"er": {"x-y": [[1], [2, "z"]]}}}))
        } else {
            Err(format!("`{phase}` has handed nothing over"))
        }
    }
    fn item(&self) -> Option<Value> {
        Some(json!({"file": "c.rs", "lines": [3, 9]}))
    }
    fn index(&self) -> Option<u32> {
        Some(4)
    }
    fn team_name(&self) -> String {
        "@local/x".into()
    }
    fn date(&self) -> String {
        "2026-05-29".into()
    }
    fn timestamp(&self) -> String {
        "2026-05-29T06:04:14.222Z".into()
    }
    fn phase(&self) -> String {
        "build".into()
    }
    fn run_id(&self) -> String {
        "r1".into()
    }
}

fn facts(value: &str) -> Facts {
    Facts(BTreeMap::from([("v".to_owned(), value.to_owned())]))
}

#[test]
fn texts_resolve_and_the_shells_own_is_left_alone() {
    let facts = facts("main");
    let text = "$(inputs.v) $(handoff.dev.files[1]) $(handoff.dev.n) $(handoff.dev.deep.er.x-y[1][1]) $(handoff.dev.deep.er) \
                $(team_name) $(date) $(timestamp) $(phase) $(run_id) $(git branch) $(date +%s) $x $( ";
    let want = "main b.rs 12 z {\"x-y\":[[1],[2,\"z\"]]} @local/x 2026-05-29 2026-05-29T06:04:14.222Z build r1 \
                $(git branch) $(date +%s) $x $( ";
    assert_eq!(resolve_text(text, &facts).unwrap(), want);
}

#[test]
fn items_resolve_by_path_and_as_a_whole() {
    let text = resolve_text("$(index): $(item.file):$(item.lines[1]) $(item)", &facts("x")).unwrap();
    assert_eq!(text, r#"4: c.rs:9 {"file":"c.rs","lines":[3,9]}"#);
    let error = resolve_text("$(item.none)", &facts("x")).unwrap_err().to_string();
    assert_eq!(error, "`$(item.none)` has no value: there is no `item.none`");
    let script = resolve_script("cat $(item.file)", &facts("x")).unwrap();
    assert_eq!(script.text, "cat \"${CLIQ_VALUE_1}\"");
}

#[test]
fn template_without_value_is_an_error() {
    let facts = facts("x");
    let why = |text: &str| resolve_text(text, &facts).unwrap_err().to_string();
    assert_eq!(why("$(inputs.w)"), "`$(inputs.w)` has no value: no input `w` was given");
    assert_eq!(why("$(handoff.qa.x)"), "`$(handoff.qa.x)` has no value: `qa` has handed nothing over");
    assert_eq!(
        why("$(handoff.dev.files[7])"),
        "`$(handoff.dev.files[7])` has no value: the handoff of `dev` has no `data.files[7]`"
    );
    assert_eq!(
        why("$(handoff.dev.deep.no)"),
        "`$(handoff.dev.deep.no)` has no value: the handoff of `dev` has no `data.deep.no`"
    );
}

#[test]
fn scripts_refer_to_variables_quoted_as_their_place_demands() {
    let script = |text: &str| resolve_script(text, &facts("x")).unwrap().text;
    assert_eq!(script("echo $(inputs.v)"), "echo \"${CLIQ_VALUE_1}\"");
    assert_eq!(
        script("echo \"a $(inputs.v)\" $(inputs.v)"),
        "echo \"a ${CLIQ_VALUE_1}\" \"${CLIQ_VALUE_1}\""
    );
    assert_eq!(script("echo \"$(ls $(inputs.v))\""), "echo \"$(ls \"${CLIQ_VALUE_1}\")\"");
    assert_eq!(script("# it's\necho $(inputs.v)"), "# it's\necho \"${CLIQ_VALUE_1}\"");
    assert_eq!(
        script("cat <<END\n$(inputs.v)'\nEND\necho $(phase)"),
        "cat <<END\n${CLIQ_VALUE_1}'\nEND\necho \"${CLIQ_VALUE_2}\""
    );
    assert_eq!(script("echo \\$(inputs.v) $(date)"), "echo \\$(inputs.v) $(date)");
    assert_eq!(
        script("echo \"${x:-$(inputs.v)}\" 'it'\"'\"'s' $(inputs.v)"),
        "echo \"${x:-${CLIQ_VALUE_1}}\" 'it'\"'\"'s' \"${CLIQ_VALUE_1}\""
    );
    assert_eq!(script("x=`echo $(inputs.v)`"), "x=`echo \"${CLIQ_VALUE_1}\"`");
    assert_eq!(
        script("git ls-remote origin $(git branch --show-current) | grep -q ."),
        "git ls-remote origin $(git branch --show-current) | grep -q ."
    );
}

fn run(script: &str, value: &str) -> String {
    let script = resolve_script(script, &facts(value)).expect("resolves");
    assert!(value.len() < 4 || !script.text.contains(value));
    let output = Command::new("sh").arg("-c").arg(&script.text).envs(&script.env).output().expect("sh");
    assert!(output.status.success(), "{script:?} {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// A real shell gives every value back to the letter, wherever the template stands.
    #[test]
    fn values_reach_the_shell_to_the_letter(value in "[^\\x00\\r]{0,30}") {
        prop_assert_eq!(run("printf %s $(inputs.v)", &value), value.as_str());
        prop_assert_eq!(run("printf %s \"$(inputs.v)\"", &value), value.as_str());
        prop_assert_eq!(run("f() { printf '%s' \"${1}\"; }; f $(inputs.v)", &value), value.as_str());
        prop_assert_eq!(run("cat <<END\n$(inputs.v)\nEND", &value), format!("{value}\n"));
        prop_assert_eq!(run("x=$(inputs.v); printf %s \"$x\"", &value), value.as_str());
    }
}

#[test]
fn hostile_values_run_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("pwned");
    let mark = mark.to_str().unwrap();
    for value in [
        format!("; touch {mark} #"),
        format!("$(touch {mark})"),
        format!("`touch {mark}`"),
        format!("\"; touch {mark}; \""),
        format!("' ; touch {mark} ; '"),
        "*".to_owned(),
        "-n".to_owned(),
    ] {
        for script in [
            "printf %s $(inputs.v)",
            "printf %s \"$(inputs.v)\"",
            "x=`printf %s $(inputs.v)`; printf %s \"$x\"",
            "cat <<E\n$(inputs.v)\nE\n",
        ] {
            run(script, &value);
            assert!(!std::path::Path::new(mark).exists(), "{script} with {value}");
        }
    }
}

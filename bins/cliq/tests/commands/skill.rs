//! `cliq skill`: a skill for assistants.

use std::fs;
use std::path::Path;
use std::process::Command;

use cliq_testkit::env::{Env, done};

fn env() -> Env {
    Env::new("workflow:\n  phases:\n    - {name: one, type: exec, commands: [{name: c, run: 'true'}]}\n", &[])
}

/// Text of the skill in a place of the project.
fn skill(env: &Env, place: &str) -> String {
    env.read(&format!("{place}/skills/cliq/SKILL.md"))
}

#[test]
fn a_skill_is_written_where_assistants_look() {
    let env = env();
    env.cliq(["skill"]).expect(0).says(".agents/skills/cliq").says(".claude/skills/cliq");
    let text = skill(&env, ".agents");
    assert_eq!(text, skill(&env, ".claude"));
    assert!(text.starts_with("---\nname: cliq\ndescription: ") && text.contains("\n  digest: "), "{text}");
    for reference in ["team-yml", "team-test", "patterns", "expressions", "exit-codes"] {
        assert!(text.contains(&format!("references/{reference}.md")), "{reference}");
        let page = env.read(&format!(".agents/skills/cliq/references/{reference}.md"));
        assert!(page.starts_with("# "), "{page}");
        assert!(!page.contains("](models.md"), "links lead to pages that are there");
    }
    env.cliq(["skill"]).expect(0);
    assert_eq!(text, skill(&env, ".agents"));
}

#[test]
fn edited_skills_are_kept() {
    let env = env();
    env.cliq(["skill"]).expect(0);
    env.write(".claude/skills/cliq/references/patterns.md", "Ours.\n");
    let refused = env.cliq(["skill"]).expect(4);
    refused.says(".claude/skills/cliq was edited").says("`--force` replaces it");
    assert_eq!(env.read(".claude/skills/cliq/references/patterns.md"), "Ours.\n");
    env.cliq(["skill", "--force"]).expect(0);
    assert!(env.read(".claude/skills/cliq/references/patterns.md").starts_with("# Patterns"));

    // A skill of this name by another program.
    fs::remove_dir_all(env.work().join(".agents")).unwrap();
    env.write(".agents/skills/cliq/SKILL.md", "---\nname: cliq\ndescription: Ours\n---\n");
    env.cliq(["skill"]).expect(4).says(".agents/skills/cliq was edited, or another program wrote it");
    assert!(skill(&env, ".agents").contains("Ours"));
}

#[test]
fn the_skill_is_valid_and_its_team_too() {
    let env = env();
    env.cliq(["skill"]).expect(0);
    let dir = env.work().join(".agents/skills/cliq");
    // The reference library of the format.
    let validator = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/agentskills");
    if validator.exists() {
        done(&Command::new(validator).arg("validate").arg(&dir).output().unwrap()).expect(0);
    } else {
        cliq_testkit::not_run("there is no Python with skills-ref in target/venv (./test makes it)");
    }
    // The team of the skill is valid as it stands there.
    let text = skill(&env, ".agents");
    let example = text.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a team");
    let example: String =
        example.lines().map(|line| format!("{}\n", line.strip_prefix("   ").unwrap_or(line))).collect();
    env.write("feature/team.yml", &example);
    for role in ["planner", "developer", "reviewer"] {
        env.write(&format!("feature/roles/{role}.md"), "Work.\n");
    }
    let valid = env.cliq(["team", "validate", "feature", "--json"]).expect(0).json();
    assert_eq!(
        (&valid["valid"], valid["diagnostics"].as_array().map(Vec::len)),
        (&true.into(), Some(0)),
        "{valid}"
    );

    // Its commands are those of the program.
    for line in text.split('`').filter(|code| code.starts_with("cliq ") && !code.contains('\n')) {
        let words: Vec<&str> = line
            .split_whitespace()
            .skip(1)
            .take_while(|word| word.bytes().all(|b| b.is_ascii_lowercase()))
            .collect();
        env.cliq(words.iter().copied().chain(["--help"])).expect(0);
        let help = env.cliq(words.iter().copied().chain(["--help"])).expect(0).stdout;
        for option in line.split_whitespace().filter(|word| word.starts_with("--")) {
            assert!(help.contains(option) || option == "--version", "{line}: {option} is not there");
        }
    }
}

#[test]
fn the_skill_of_all_projects_is_in_the_home_directory() {
    let env = env();
    let home = env.work().join("home-of-a-person");
    fs::create_dir(&home).unwrap();
    done(&env.command(["skill", "--global"]).env("HOME", &home).output().unwrap()).expect(0);
    assert!(home.join(".claude/skills/cliq/SKILL.md").exists());
    assert!(!env.exists(".claude"));
}

//! The teams of docs/patterns.md: each is valid and runs.

use std::process::Command;

use cliq_testkit::env::Env;

/// Stands for a model: hands over all that the patterns read.
const WORKER: &str = r#"ok
echo $CLIQ_PHASE >> $CLIQ_DIR/worked
data='{"findings":[{"file":"a.txt","blocking":true,"severity":3},{"file":"b.txt","blocking":false,"severity":5}],"files":["a.txt","b.md","c.txt"],"tasks":[{"title":"one"},{"title":"two"}],"changed":false,"vote":"yes"}'
for to in $(ls $CLIQ_DIR/channels | sed -n "s/^$CLIQ_PHASE--//p"); do hand $to '{"version":1,"ts":"2026-01-01T00:00:00.000Z","from":"'$CLIQ_PHASE'","phase":"'$CLIQ_PHASE'","phase_type":"standard","agent":"worker","timestamp":"2026-01-01T00:00:00.000Z","text":"t","data":'"$data"'}'; done
complete
"#;
const INNER: &str = "name: \"@local/inner\"
inputs: [{name: task}]
phases: [{name: greet, type: exec, commands: [{name: c, run: 'echo $(inputs.task) >> built'}]}]
";

#[test]
fn each_pattern_of_the_docs_is_valid_and_runs() {
    let docs = include_str!("../../../../docs/patterns.md");
    let teams: Vec<&str> =
        docs.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(teams.len(), 10);
    for team in teams {
        let name = team.lines().next().unwrap_or_default();
        let env = Env::bare();
        env.write("../inner/team.yml", INNER);
        env.team("", &[("worker", WORKER)]);
        env.write("../team/team.yml", &format!("{team}agents:\n  worker: {{entry: agents/worker}}\n"));
        for line in team.lines().filter_map(|line| line.trim_start().strip_prefix("- ")) {
            let phase =
                line.trim_start_matches('{').strip_prefix("name: ").and_then(|rest| rest.split(',').next());
            if let Some(phase) = phase {
                env.write(&format!("../team/roles/{phase}.md"), "Work.\n");
            }
        }
        assert!(
            Command::new("git").args(["init", "-q"]).current_dir(env.work()).status().expect("git").success()
        );
        env.write(".gitignore", ".cliq/\n");
        env.cliq(["init"]).expect(0);
        env.cliq(["team", "validate", "../team"]).expect(0).says("activations");
        env.cliq(["assemble", "../team"]).expect(0);
        let run = env.cliq(["run", "--headless", "--agent", "worker"]);
        assert_eq!(run.code, 0, "{name}\n{}\n{}", run.stdout, run.stderr);
        let worked = if env.exists(".cliq/worked") { env.read(".cliq/worked") } else { String::new() };
        let expected = match name {
            n if n.contains("findings") => "fix.0 fix.1 review",
            n if n.contains("/files") => "plan translate.0 translate.1",
            n if n.contains("failing") => "mend.0",
            n if n.contains("comments") => "answer.0 comments",
            n if n.contains("skip-docs") => "develop",
            n if n.contains("flaky") => "read",
            n if n.contains("vote") => "answer.0 answer.1 answer.2",
            n if n.contains("judge") => "plan work.0 work.1",
            n if n.contains("severity") => "fix scan",
            _ => "plan",
        };
        let mut worked: Vec<&str> = worked.lines().collect();
        worked.sort_unstable();
        assert_eq!(worked.join(" "), expected, "{name}");
    }
}

//! The supervisor as a library: the documented program, killed and started again.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Ten runs of a team that appends a line per run. `max_runs` is 4, so that some wait when the program is killed.
#[test]
fn killed_supervisor_loses_no_run_and_repeats_none() {
    let source = include_str!("../../../../crates/cliq-supervisor/examples/supervise.rs");
    let docs = include_str!("../../../../docs/embedding.md");
    assert!(docs.contains(source), "docs/embedding.md does not show the example as it is:\n{source}");
    assert!(source.lines().count() < 40);

    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    let team = home.join("teams/@local/steps");
    std::fs::create_dir_all(team.join("roles")).unwrap();
    let done = home.join("done");
    let phases = format!(
        "name: '@local/steps'\nworkflow:\n  phases:\n    - {{name: a, type: exec, commands: [{{name: c, run: 'sleep 0.5; echo x >> {}'}}]}}\n",
        done.display()
    );
    std::fs::write(team.join("team.yml"), phases).unwrap();
    let start = || {
        let cliq = env!("CARGO_BIN_EXE_cliq");
        let program = std::path::Path::new(cliq).with_file_name("examples").join("supervise");
        assert!(program.exists(), "{program:?} is not built: ./test builds it");
        Command::new(program)
            .args([home.as_os_str(), cliq.as_ref(), "@local/steps".as_ref()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut first = start();
    let lines = BufReader::new(first.stdout.take().unwrap()).lines();
    let submitted: Vec<String> = lines.map_while(Result::ok).take(7).collect();
    first.kill().unwrap();
    first.wait().unwrap();

    let output = start().wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let completed: BTreeSet<&str> = text.lines().filter_map(|line| line.strip_suffix(" completed")).collect();
    assert_eq!(completed.len(), 10, "{text}");
    for line in &submitted {
        let id = line.split_once(' ').unwrap().0;
        assert!(completed.contains(id), "{id} of the first program is lost: {text}");
    }
    assert_eq!(std::fs::read_to_string(done).unwrap(), "x\n".repeat(10), "each run did its work once");
}

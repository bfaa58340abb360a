//! The description of a run reaches the process of the run by its standard input, and not by its arguments.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use camino::Utf8Path;
use cliq_backends::{ChildProcess, RunMode};
use cliq_project::{Environment, Host, RunSpec, RunStart};

#[tokio::test]
async fn process_reads_the_description_from_its_input() {
    let place = tempfile::tempdir().unwrap();
    let dir = Utf8Path::from_path(place.path()).unwrap();
    let program = dir.join("cliq");
    fs::write(&program, "#!/bin/sh\ncd \"$(dirname \"$0\")\"\necho \"$@\" > arguments\ncat > input\n")
        .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let backend = ChildProcess::new(Host::new(Environment::new([]), program), dir.join("logs"));
    let spec = RunSpec {
        title: Some("-x \"quoted\"".to_owned()),
        inputs: [("who".to_owned(), "a\nsecret=1".repeat(20_000))].into(),
        max_parallel: Some(3),
        ..RunSpec::default()
    };
    let mode = RunMode::default().with_parking(true);
    let mut child = backend.spawn(dir, &"some-id".parse().unwrap(), &RunStart::Fresh, &spec, &mode).unwrap();
    assert!(child.wait().await.unwrap().success());
    let arguments = fs::read_to_string(dir.join("arguments")).unwrap();
    assert_eq!(arguments, format!("-C {dir} run --headless --force --run-id some-id --spec - --park\n"));
    assert_eq!(RunSpec::decode(&fs::read(dir.join("input")).unwrap()), Ok(spec));
}

//! The engine, its own client, and the image that `scripts/images` makes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cliq_testkit::env::{Env, not_run};
use serde_json::Value;

pub(crate) const IMAGE: &str = "cliq-runner:test";

/// The image that the tests run in. `None` if no engine answers: the test is recorded as one that could not be run.
pub(crate) fn image() -> Option<&'static str> {
    if let Ok(why) = std::env::var("CLIQ_NO_CONTAINERS") {
        not_run(&why);
        return None;
    }
    if !docker(&["version"]).status.success() {
        not_run("no container engine answers: `.ci/run` starts one");
        return None;
    }
    // Tests run side by side; one of them makes the image of this very program, the others wait for it.
    let stamp = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("runner-image");
    let lock = File::options().create(true).append(true).open(stamp.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let program = std::fs::metadata(env!("CARGO_BIN_EXE_cliq")).unwrap().modified().unwrap();
    let is_there = docker(&["image", "inspect", IMAGE]).status.success();
    if !is_there || std::fs::read_to_string(&stamp).unwrap_or_default() != format!("{program:?}") {
        let made = make_image("runner");
        if !made.status.success() {
            not_run(&format!("the image cannot be made: {}", String::from_utf8_lossy(&made.stderr).trim()));
            return None;
        }
        std::fs::write(&stamp, format!("{program:?}")).unwrap();
    }
    Some(IMAGE)
}

/// Makes an image of deploy/Dockerfile of this very program, with the tag `test`.
pub(crate) fn make_image(target: &str) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let bin = Path::new(env!("CARGO_BIN_EXE_cliq")).ancestors().nth(2).unwrap();
    Command::new(root.join("scripts/images"))
        .arg(target)
        .env("CLIQ_IMAGE_TAG", "test")
        .env("CARGO_TARGET_DIR", bin)
        .output()
        .unwrap()
}

/// Docker's own client.
pub(crate) fn docker(args: &[&str]) -> Output {
    let own = Path::new("/usr/bin/docker");
    Command::new(if own.exists() { own } else { Path::new("docker") }).args(args).output().unwrap_or_else(
        |_| {
            // As where it is not installed.
            Command::new("false").output().unwrap()
        },
    )
}

/// Runs the engine's client and returns its output.
#[track_caller]
pub(crate) fn said(args: &[&str]) -> String {
    let output = docker(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The containers of a home, running or not.
pub(crate) fn containers(home: &Path) -> Vec<String> {
    labelled(&format!("dev.cliq.home={}", home.display()))
}

/// The containers of a run, running or not.
pub(crate) fn of_run(id: &str) -> Vec<String> {
    labelled(&format!("dev.cliq.run={id}"))
}

fn labelled(label: &str) -> Vec<String> {
    said(&["ps", "-aq", "--filter", &format!("label={label}")]).lines().map(str::to_owned).collect()
}

/// The containers of a home that run.
pub(crate) fn running(home: &Path) -> usize {
    said(&["ps", "-q", "--filter", &format!("label=dev.cliq.home={}", home.display())]).lines().count()
}

/// Returns the engine's description of a container.
pub(crate) fn inspect(container: &str) -> Value {
    serde_json::from_str::<Value>(&said(&["inspect", container])).unwrap()[0].clone()
}

/// A project whose runs work in containers. Each setting is a key below `docker.` and a value.
pub(crate) fn project(workflow: &str, settings: &[(&str, &str)]) -> Option<Env> {
    use_containers(Env::new(workflow, &[]), settings)
}

/// A directory whose runs work in containers. Each setting is a key below `docker.` and a value.
pub(crate) fn use_containers(env: Env, settings: &[(&str, &str)]) -> Option<Env> {
    let image = image()?;
    for (key, value) in [("enabled", "true"), ("image", image), ("memory", "1g")].iter().chain(settings) {
        env.cliq(["settings", "set", "-g", &format!("docker.{key}"), value]).expect(0);
    }
    Some(env)
}

//! Programs in Go that tests speak to: built once for all processes of tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FlockOperation, flock};

use crate::{not_run, target};

/// Builds the Go module of a directory, unless it is built from the same files already. `None` without a Go, which counts as not run.
#[must_use]
pub fn go_program(name: &str, module: &Path) -> Option<PathBuf> {
    let Some(go) = go() else {
        not_run("there is no Go 1.24 (./test installs one into target/go)");
        return None;
    };
    let dir = target("go-programs");
    fs::create_dir_all(&dir).expect("a directory");
    // Several processes of tests want it at the same time.
    let lock = fs::File::create(dir.join(format!("{name}.lock"))).expect("a lock");
    flock(&lock, FlockOperation::LockExclusive).expect("locked");
    let (program, made_of) = (dir.join(name), dir.join(format!("{name}.sources")));
    let sources = sources(module);
    if program.exists() && fs::read(&made_of).is_ok_and(|last| last == sources) {
        return Some(program);
    }
    let built = Command::new(go)
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(module)
        .env("GOFLAGS", "-mod=readonly")
        .env("GOTOOLCHAIN", "local")
        .output()
        .expect("go starts");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    fs::write(made_of, sources).expect("written");
    Some(program)
}

/// Names and texts of the files of a module.
fn sources(module: &Path) -> Vec<u8> {
    let entries = fs::read_dir(module).expect("a module").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.is_file()).collect();
    files.sort();
    files
        .iter()
        .flat_map(|file| [file.as_os_str().as_encoded_bytes().to_vec(), fs::read(file).expect("read")])
        .flatten()
        .collect()
}

/// The Go that `./test` installed, else that of the system where it is 1.24 or newer.
fn go() -> Option<PathBuf> {
    let installed = target("go/go/bin/go");
    if installed.exists() {
        return Some(installed);
    }
    let output = std::process::Command::new("go").arg("version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let minor = text.split("go1.").nth(1)?.split(['.', ' ']).next()?.parse::<u32>().ok()?;
    (minor >= 24).then(|| PathBuf::from("go"))
}

//! The image of cliq alone.

use crate::containers::engine::{docker, image, make_image, said};

const SMALL: &str = "cliq:test";
/// The most bytes of the image beside cliq: with that of a release it has less than 60 MB.
const BESIDE: u64 = 14_000_000;

#[test]
fn small_image_runs_the_demo_and_a_team_with_git() {
    if image().is_none() {
        return;
    }
    let made = make_image("cliq");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let hardened =
        ["run", "--rm", "--network", "none", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"];
    let run = |arguments: &[&str]| said(&[&hardened, arguments].concat());
    assert_eq!(run(&[SMALL, "--version"]), concat!("cliq ", env!("CARGO_PKG_VERSION")));
    assert!(run(&[SMALL, "demo"]).contains("COMPLETED"));
    // Any user has a home.
    run(&["-u", "1234:1234", SMALL, "settings", "set", "-g", "max_parallel", "2"]);
    // Work on a branch of its own, on the machine's files, as its user.
    let place = tempfile::tempdir().unwrap();
    let script = "set -eu
        git init -q . && git config user.name n && git config user.email n@example.com
        echo one > file && git add file && git commit -qm one
        git clone -q . /tmp/clone && test -e /tmp/clone/file
        mkdir /tmp/team
        printf 'name: \"@local/t\"\nphases:\n- {name: a, type: exec, commands: [{name: t, run: \"echo two >> file; git diff --stat\"}]}\n' > /tmp/team/team.yml
        cliq init && cliq assemble /tmp/team && cliq req -m work && cliq run --headless && cliq diff --stat";
    let volume = format!("{}:/work", place.path().display());
    let user = "0:0";
    let output = run(&["-u", user, "-v", &volume, "--entrypoint", "sh", SMALL, "-c", script]);
    assert!(output.contains("COMPLETED") && output.contains("file"), "{output}");
    assert_eq!(std::fs::read_to_string(place.path().join("file")).unwrap(), "one\ntwo\n");
    // The size, without the programs, which are not those of a release here.
    let size: u64 = said(&["image", "inspect", "-f", "{{.Size}}", SMALL]).parse().unwrap();
    let program = run(&["--entrypoint", "sh", SMALL, "-c", "wc -c < /usr/bin/cliq"]);
    let beside = size - program.trim().parse::<u64>().unwrap();
    assert!(beside < BESIDE, "{beside} bytes beside cliq");
    assert!(docker(&["run", "--rm", SMALL, "doctor"]).status.code().is_some_and(|code| code <= 1));
}

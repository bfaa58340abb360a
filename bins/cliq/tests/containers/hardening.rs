//! Permissions of a run in a container, measured from inside.

use cliq_testkit::chain;

use crate::containers::engine::{containers, inspect, project};

/// Script that prints what the run can see and do, one line each.
const LOOK: &str = "{ id -u; id -g; grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t' ' '; \
touch /anywhere 2>/dev/null && echo root is writable || echo root is read-only; \
touch /tmp/file && echo temporary files; \
ls /sys/class/net; \
cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max; \
cat /sys/fs/cgroup/pids/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids.max; \
grep ^Swap /proc/self/status >/dev/null; \
ls $CLIQ_HOME; } > seen";

#[test]
fn a_run_can_do_little() {
    let settings = [("memory", "256m"), ("pids_limit", "200"), ("network_mode", "none")];
    let Some(env) = project(&chain(&[LOOK]), &settings) else { return };
    // As a person who is not root.
    let is_root = rustix::process::getuid().is_root();
    let (user, group) = if is_root { (23_456, socket_group()) } else { own() };
    let arguments = ["run", "--headless"];
    let mut run = if is_root { env.command_of((user, group), arguments) } else { env.command(arguments) };
    cliq_testkit::env::done(&run.output().unwrap()).expect(0);
    let seen = env.read("seen");
    let mut lines = seen.lines();
    let mut next = || lines.next().unwrap_or_default().to_owned();
    assert_eq!((next(), next()), (user.to_string(), group.to_string()));
    assert_eq!((next(), next()), ("CapEff: 0000000000000000".into(), "CapBnd: 0000000000000000".into()));
    assert_eq!((next(), next()), ("NoNewPrivs: 1".into(), "Seccomp: 2".into()));
    assert_eq!((next(), next()), ("root is read-only".into(), "temporary files".into()));
    assert_eq!(next(), "lo", "no network");
    assert_eq!((next(), next()), ((256 << 20).to_string(), "200".into()));
    // Of the home, what a run needs: no database, no tokens of a server.
    let home: Vec<&str> = lines.collect();
    assert!(
        home.iter().all(|name| ["settings.json", "reviews", "teams", "agents", "projects"].contains(name)),
        "{home:?}"
    );
    let file = std::fs::metadata(env.path("seen")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&file), user);
}

fn own() -> (u32, u32) {
    (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw())
}

/// The group that may speak to the engine.
fn socket_group() -> u32 {
    std::os::unix::fs::MetadataExt::gid(&std::fs::metadata("/var/run/docker.sock").unwrap())
}

const MESHES: &str = r#"[{"name": "m", "type": "savant", "url": "https://m.example", "client_id": "c", "client_secret": "hush-mesh", "active": true}]"#;

#[test]
fn keys_arrive_and_are_not_shown() {
    let command = "printenv ANTHROPIC_API_KEY OWN_TOKEN > keys; cat $CLIQ_HOME/settings.json > settings; touch second; while ! test -e go; do sleep 0.1; done";
    let Some(env) = project(&chain(&[command]), &[("env.OWN_TOKEN", "hush-own")]) else { return };
    env.cliq(["settings", "set", "-g", "agents.claude-api.api_key", "hush-setting"]).expect(0);
    env.cliq(["settings", "set", "-g", "server.a2a.meshes", MESHES]).expect(0);
    let mut run = env.command(["run", "--headless"]);
    let run = run.env("ANTHROPIC_API_KEY", "hush-model").env("OTHER_SECRET", "hush-other");
    let run = run.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    env.wait_for("the phase", || env.exists("second"));
    let container = containers(&env.home()).remove(0);
    let shown = inspect(&container).to_string();
    assert!(!shown.contains("hush"), "{shown}");
    let arguments = crate::containers::engine::said(&["top", &container, "-eo", "pid,args"]);
    assert!(arguments.contains("cliq") && !arguments.contains("hush"), "{arguments}");
    env.write("go", "");
    let done = cliq_testkit::env::done(&run.wait_with_output().unwrap()).expect(0);
    assert!(!done.stdout.contains("hush") && !done.stderr.contains("hush"));
    assert_eq!(env.read("keys"), "hush-model\nhush-own\n");
    let settings = env.read("settings");
    assert!(settings.contains("hush-setting"));
    assert!(!settings.contains("hush-mesh") && !settings.contains("hush-own"), "{settings}");
}

#[test]
fn a_project_does_not_loosen_what_a_person_set() {
    let Some(env) =
        project(&chain(&["ls /sys/class/net > net; ls .. > beside"]), &[("network_mode", "none")])
    else {
        return;
    };
    env.write("../private", "hush");
    let private = env.path("../private").canonicalize().unwrap();
    let names_a_file = serde_json::json!({"agents": {"gdrive": {"credentials_file": private}}}).to_string();
    // As an agent could write it.
    env.write(".git", &format!("gitdir: {}/worktrees/x\n", private.parent().unwrap().display()));
    for settings in [
        names_a_file.as_str(),
        "{\"docker\": {\"network_mode\": \"host\", \"image\": \"evil\", \"read_only_rootfs\": false}}",
        "{\"docker\": {\"enabled\": false}}",
        "{\"kubernetes\": {\"enabled\": true}}",
    ] {
        env.write(".cliq/settings.json", settings);
        env.cliq(["run", "-f"]).expect(0);
        assert_eq!(env.read("net"), "lo\n", "{settings}");
        assert!(!env.read("beside").contains("private"), "{settings}");
        std::fs::remove_file(env.path("net")).unwrap();
    }
    env.cliq(["settings", "get", "docker.enabled"]).expect(0).says("true");
}

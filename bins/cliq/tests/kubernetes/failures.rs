//! Messages of failed runs in a cluster: cause and remedy.

use cliq_testkit::chain;
use cliq_testkit::env::Env;

use crate::kubernetes::cluster::{kubectl, of_run, project, said};

fn begins() -> String {
    chain(&["touch begun; while ! test -e go; do sleep 0.1; done"])
}

/// No Job of the project is left.
#[track_caller]
fn nothing_is_left(env: &Env) {
    let left = said(&["get", "jobs,pods,secrets", "-o", "yaml"]);
    let place = env.work().display().to_string();
    assert!(!left.contains(&place), "{left}");
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn start_failures_are_reported() {
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[("image", "nowhere.invalid/x:1")], "waited for its image: "),
        (&[("image", "not there")], "InvalidImageName"),
        (&[("image", "nothing:1"), ("image_pull_policy", "Never")], "ErrImageNeverPull"),
        (
            &[("cpus", "900"), ("cpu_request", "900"), ("start_timeout", "3s")],
            "waited for a node: Unschedulable",
        ),
        (
            &[("node_selector", "[\"no/such=label\"]"), ("start_timeout", "3s")],
            "didn't match Pod's node affinity/selector",
        ),
        (&[("claim", "none")], "there is no PersistentVolumeClaim `none`"),
        (&[("namespace", "none")], "in the namespace `none`"),
        (&[("priority_class", "none"), ("start_timeout", "5s")], "no PriorityClass with name none"),
        (&[("mount_path", "/elsewhere")], "is not below /elsewhere"),
        (&[("context", "none")], "no cluster is known here"),
    ];
    for (settings, says) in cases {
        let env = project(&begins(), settings);
        let run = env.cliq(["run", "--headless"]).expect(1).says(says);
        assert!(run.stderr.contains("hint: "), "{}", run.stderr);
        assert!(!env.exists("begun"));
        nothing_is_left(&env);
    }
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn an_image_without_cliq() {
    // The image of the pause container has one program, which is not cliq.
    let Ok(image) = std::env::var("CLIQ_TEST_OTHER_IMAGE") else {
        cliq_testkit::not_run("no image without cliq is named");
        return;
    };
    let env = project(&begins(), &[("image", &image)]);
    env.cliq(["run", "--headless"]).expect(1).says("executable file not found");
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn rights_that_are_missing_are_named() {
    let env = project(&begins(), &[]);
    let name = format!("without-rights-{}", std::process::id());
    said(&["create", "serviceaccount", &name]);
    let token = said(&["create", "token", &name]);
    let config = said(&["config", "view", "--raw", "--minify", "--flatten"]);
    let without = config.split("users:").next().unwrap().to_owned();
    let user = config.lines().find_map(|line| line.trim().strip_prefix("user: ")).unwrap().to_owned();
    for (token, code_says, doctor_says) in [
        (token.trim(), "the cluster forbids to ", "does not grant: create jobs, get jobs"),
        ("nonsense", "rejected the credentials", "rejected the credentials"),
    ] {
        env.write(
            "../kubeconfig",
            &format!("{without}users:\n- name: {user}\n  user:\n    token: {token}\n"),
        );
        let run = |arguments: &[&str]| {
            let config = env.path("../kubeconfig");
            cliq_testkit::env::done(&env.command(arguments).env("KUBECONFIG", config).output().unwrap())
        };
        run(&["run", "--headless"]).expect(1).says(code_says).says("hint: ");
        run(&["doctor"]).expect(1).says(doctor_says);
    }
    said(&["delete", "serviceaccount", &name]);
    env.cliq(["doctor"]).says("has the claim");
    let away = env.command(["run", "--headless"]).env("KUBECONFIG", "/dev/null").output().unwrap();
    cliq_testkit::env::done(&away).expect(1).says("no cluster is known here");
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn a_quota_is_told() {
    let namespace = format!("cliq-quota-{}", std::process::id());
    said(&["create", "namespace", &namespace]);
    said(&["create", "quota", "none", "--hard=pods=0", "-n", &namespace]);
    let env = project(&begins(), &[("namespace", &namespace), ("start_timeout", "5s")]);
    // The claim is one of the namespace.
    let claim = said(&["get", "pvc", &std::env::var("CLIQ_TEST_CLAIM").unwrap(), "-o", "json"]);
    let mut claim: serde_json::Value = serde_json::from_str(&claim).unwrap();
    claim["metadata"] = serde_json::json!({"name": claim["metadata"]["name"], "namespace": namespace});
    env.write("../claim.json", &claim.to_string());
    said(&["apply", "-f", env.path("../claim.json").to_str().unwrap()]);
    env.cliq(["run", "--headless"]).expect(1).says("waited for its pod: ").says("exceeded quota");
    said(&["delete", "namespace", &namespace, "--wait=false"]);
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn a_run_that_is_ended_says_by_what() {
    type Setting = (&'static str, &'static str);
    let cases: [(Setting, &str, &str); 2] = [
        (("deadline", "4s"), "touch begun; sleep 61", "`kubernetes.deadline`"),
        (
            ("temporary_storage", "16m"),
            "touch begun; head -c 64M /dev/zero > /tmp/x; sleep 61; sleep 61; sleep 61",
            "the run was evicted from its node: ",
        ),
    ];
    for (setting, command, says) in cases {
        let env = project(&chain(&[command]), &[setting]);
        env.cliq(["run", "--headless"]).expect(1).says(says).says("cliq run --resume");
        assert!(env.exists("begun"));
    }
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn memory_is_bounded() {
    // Its pages are counted against the limit, and cannot be given back.
    let eat = "head -c 300M /dev/zero | tail -c 300M > /dev/null";
    let env = project(&chain(&[eat]), &[("memory", "128m")]);
    let run = env.cliq(["run", "--headless"]);
    assert!(matches!(run.code, 1 | 3), "{run:?}");
    run.says("`kubernetes.memory`");
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn a_run_whose_job_or_pod_is_deleted_goes_on_by_resume() {
    let env = project(&begins(), &[]);
    for kind in ["pods", "jobs"] {
        let first = if kind == "pods" { "run" } else { "run -f" };
        let arguments: Vec<&str> = first.split(' ').chain(["--headless"]).collect();
        let run = env.spawn(&arguments);
        env.wait_for("the phase", || env.exists("begun"));
        let id = env.run_id();
        assert_eq!(of_run(kind, &id).len(), 1);
        let gone = kubectl(&["delete", kind, "-l", &format!("cliq.dev/run={id}"), "--grace-period=1"]);
        assert!(gone.status.success());
        let ended = cliq_testkit::env::done(&run.wait_with_output().unwrap());
        ended.expect(1).says("cliq run --resume");
        std::fs::remove_file(env.path("begun")).unwrap();
    }
    env.write("go", "");
    env.cliq(["run", "--resume", "--headless"]).expect(0);
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn postgres_and_a_review_server_are_needed() {
    let env = project(&begins(), &[]);
    env.cliq(["settings", "unset", "-g", "database.url"]).expect(0);
    env.cliq(["run", "--headless"]).expect(1).says("need PostgreSQL").says("database.url");
    env.cliq(["server", "run"]).expect(1).says("need PostgreSQL");
    env.cliq(["doctor"]).expect(1).says("need PostgreSQL");
    let asks = "workflow:
  phases:
    - {name: ask, type: hug, review: {reviewer: ada, timeout: 5m}}
";
    let env = project(asks, &[]);
    env.cliq(["run", "--headless"]).expect(1).says("hug.server_url");
}

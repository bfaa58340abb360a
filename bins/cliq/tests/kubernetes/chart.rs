//! The chart: what it grants is what is needed, and a release of it works.

use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;

use cliq_backends::internals::RIGHTS;
use cliq_testkit::PostgresServer;
use cliq_testkit::machine::{Machine, wait_for};
use cliq_testkit::wire::Wire;
use serde_json::{Value, json};

use crate::kubernetes::cluster::{kubectl, mount, of_run, said};

const TOKEN: &str = "a-long-random-text-of-the-administrator-0123456789";
/// The user of the chart's servers and runs.
const USER: u32 = 1000;

fn chart() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/helm/cliq").display().to_string()
}

#[test]
fn the_role_grants_what_is_needed_and_nothing_else() {
    let text = std::fs::read_to_string(Path::new(&chart()).join("templates/access.yaml")).unwrap();
    let rules = text.split("rules:").nth(1).unwrap().split("---").next().unwrap();
    let granted: Vec<String> = rules
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .split("- apiGroups: ")
        .skip(1)
        .map(|rule| rule.trim().to_owned())
        .collect();
    let needed: Vec<String> = RIGHTS
        .iter()
        .map(|right| {
            let group = if right.group.is_empty() { "\"\"" } else { right.group };
            format!("[{group}] resources: [{}] verbs: [{}]", right.resource, right.verbs.join(", "))
        })
        .collect();
    assert_eq!(granted, needed);
}

/// Helm: what is named, else that of `./test`.
fn helm() -> Option<String> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/helm");
    let named = std::env::var("CLIQ_TEST_HELM").ok();
    let found = named.or_else(|| own.exists().then(|| own.display().to_string()));
    if found.is_none() {
        cliq_testkit::not_run("there is no helm here: `./test` installs it with pip");
    }
    found
}

/// Renders the chart with values.
fn template(helm: &str, sets: &[&str]) -> std::process::Output {
    let mut command = Command::new(helm);
    command.args(["template", "team", &chart(), "--kube-version", "1.34.0"]);
    for set in sets {
        command.args(["--set", set]);
    }
    command.output().unwrap()
}

#[test]
fn chart_manifests_are_valid() {
    let (Some(helm), Some(python)) = (helm(), cliq_testkit::env::python_with("kubernetes_validate")) else {
        return;
    };
    let token = format!("adminToken.value={TOKEN}");
    let least = ["database.url=postgresql://a@b/c", &token];
    let most = [
        "runs.networkPolicy.enabled=true",
        "ingress.enabled=true",
        "ingress.host=cliq.example.com",
        "ingress.tlsSecret=tls",
        "ingress.className=nginx",
        "reviews.token=t",
        "runs.env.ANTHROPIC_API_KEY=hush",
        "runs.settings.deadline=2h",
        "settings.server.max_runs=9",
        "a2a=true",
        "triggers[0].name=nightly",
        "triggers[0].team=@cliq/hello-world",
        "triggers[0].schedule.cron=30 2 * * *",
        "nodeSelector.disk=ssd",
    ];
    let dir = tempfile::tempdir().unwrap();
    for sets in [least.to_vec(), [&least[..], &most].concat()] {
        let made = template(&helm, &sets);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let file = dir.path().join("release.yaml");
        std::fs::write(&file, &made.stdout).unwrap();
        let checked = Command::new(&python)
            .args(["-m", "kubernetes_validate", "--strict", "-k", "1.34"])
            .arg(&file)
            .output()
            .unwrap();
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
        // Keys are in Secrets, and nowhere else.
        let text = String::from_utf8(made.stdout).unwrap();
        assert_eq!(text.contains("mountPath: /home/cliq/triggers.yml"), sets.len() > least.len());
        assert_eq!(text.contains("name: nightly"), sets.len() > least.len());
        for document in
            text.split("\n---\n").filter(|document| document.contains("hush") || document.contains(TOKEN))
        {
            assert!(document.contains("kind: Secret"), "{document}");
        }
    }
    for (sets, says) in [
        (vec![token.as_str()], "PostgreSQL is needed"),
        (vec!["database.url=mysql://a"], "database"),
        (vec![least[0]], "set adminToken.value"),
        (vec![least[0], "adminToken.value=short"], "adminToken"),
        (vec![least[0], &token, "replica=3"], "replica"),
    ] {
        let refused = template(&helm, &sets);
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && error.contains(says), "{sets:?}: {error}");
    }
}

fn get(address: &str, path: &str) -> Option<Value> {
    let answer = ureq::get(format!("http://{address}:4100{path}"))
        .header("authorization", &format!("Bearer {TOKEN}"))
        .call()
        .ok()?;
    answer.into_body().read_json().ok()
}

fn post(address: &str, path: &str, body: &Value) -> Value {
    let sent = ureq::post(format!("http://{address}:4100{path}"))
        .header("authorization", &format!("Bearer {TOKEN}"))
        .send_json(body);
    sent.unwrap().into_body().read_json().unwrap()
}

/// The namespace and the volume of a release; both go with this.
struct Release {
    name: String,
    helm: String,
}

impl Drop for Release {
    fn drop(&mut self) {
        let _ = Command::new(&self.helm).args(["uninstall", "test", "-n", &self.name]).output();
        kubectl(&["delete", "namespace", &self.name, "--wait=false"]);
        kubectl(&["delete", "pv", &self.name, "--wait=false"]);
    }
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn a_release_serves_and_its_runs_outlive_a_server() {
    let Ok(host) = std::env::var("CLIQ_TEST_HOST") else {
        cliq_testkit::not_run("pods of this cluster cannot reach this machine (CLIQ_TEST_HOST)");
        return;
    };
    let Some(helm) = helm() else { return };
    let Some(database) = PostgresServer::start() else { return };
    let release = Release { name: format!("cliq-chart-{}", std::process::id()), helm };
    let namespace = release.name.as_str();
    // What is /data in pods is a directory here.
    let data = Path::new(&mount()).join(namespace);
    std::fs::create_dir_all(&data).unwrap();
    let machine = Machine::new();
    let project = data.join("project");
    std::fs::create_dir_all(&project).unwrap();
    machine.chain(
        "steps",
        &[
            "id -u > user; echo 0 >> ran",
            "echo 1 >> ran; while ! test -e go; do sleep 0.1; done",
            "hostname > where; echo 2 >> ran",
        ],
    );
    machine.ok(&["-C", project.to_str().unwrap(), "init"]);
    machine.ok(&["-C", project.to_str().unwrap(), "assemble", "@local/steps"]);
    for entry in walk(&data) {
        chown(&entry, Some(USER), Some(USER)).unwrap();
    }
    said(&["create", "namespace", namespace]);
    let storage = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": namespace},
         "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": "", "hostPath": {"path": data}}},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": namespace},
         "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": namespace, "resources": {"requests": {"storage": "1Gi"}}}},
    ]});
    let file = machine.path("storage.json");
    std::fs::write(&file, storage.to_string()).unwrap();
    said(&["apply", "-f", file.to_str().unwrap()]);
    let wire = Wire::between(&host, database.port());
    let url = database
        .database()
        .replace(&format!("127.0.0.1:{}", database.port()), &format!("{host}:{}", wire.port));
    let sets = [
        "image.tag=local".to_owned(),
        "runs.image=cliq-runner:local".to_owned(),
        "runs.settings.memory=512m".to_owned(),
        "runs.settings.cpu_request=0.05".to_owned(),
        "runs.settings.memory_request=64m".to_owned(),
        "settings.server.lease=2s".to_owned(),
        "claim.existing=data".to_owned(),
        format!("database.url={url}"),
        format!("adminToken.value={TOKEN}"),
    ];
    let mut install = Command::new(&release.helm);
    install.args(["install", "test", &chart(), "-n", namespace, "--wait", "--timeout", "90s"]);
    for set in &sets {
        install.args(["--set", set]);
    }
    let installed = install.output().unwrap();
    assert!(
        installed.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&installed.stderr),
        said(&["describe", "pods", "-n", namespace])
    );

    let addresses = || -> Vec<(String, String)> {
        let pods =
            said(&["get", "pods", "-n", namespace, "-l", "app.kubernetes.io/name=cliq-server", "-o", "json"]);
        let pods: Value = serde_json::from_str(&pods).unwrap();
        let living = pods["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        living
            .filter_map(|pod| {
                Some((
                    pod["metadata"]["name"].as_str()?.to_owned(),
                    pod["status"]["podIP"].as_str()?.to_owned(),
                ))
            })
            .collect()
    };
    let servers = addresses();
    assert_eq!(servers.len(), 2, "{servers:?}");
    let (first, other) = (&servers[0], &servers[1]);
    let instance = post(&first.1, "/api/v1/instances", &json!({"path": "/data/project"}));
    let started = post(&first.1, "/api/v1/runs", &json!({"instance": instance["id"]}));
    let id = started["id"].as_str().unwrap().to_owned();
    wait_for("the second phase works", || {
        std::fs::read_to_string(project.join("ran")).ok().filter(|ran| ran.contains('1'))
    });
    // The server that started it goes, with the process that follows the Job.
    said(&["delete", "pod", "-n", namespace, &first.0, "--force", "--grace-period=0"]);
    std::thread::sleep(std::time::Duration::from_secs(3));
    std::fs::write(project.join("go"), "").unwrap();
    let run = wait_for("the run ends", || {
        get(&other.1, &format!("/api/v1/runs/{id}")).filter(cliq_testkit::machine::is_final)
    });
    assert_eq!(run["state"], "completed", "{run}");
    assert_eq!(std::fs::read_to_string(project.join("ran")).unwrap(), "0\n1\n2\n", "nothing ran twice");
    assert_eq!(std::fs::read_to_string(project.join("user")).unwrap().trim(), USER.to_string());
    assert!(std::fs::read_to_string(project.join("where")).unwrap().starts_with(&format!("cliq-{id}")));
    assert!(of_run("secrets", &id).is_empty());
    drop(release);
    let _ = std::fs::remove_dir_all(&data);
}

/// A directory with all that is in it.
fn walk(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut found = vec![dir.to_owned()];
    let mut at = 0;
    while at < found.len() {
        if let Ok(entries) = found[at].read_dir() {
            found.extend(entries.map(|entry| entry.unwrap().path()));
        }
        at += 1;
    }
    found
}

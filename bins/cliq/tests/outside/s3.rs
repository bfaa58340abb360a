//! S3, against moto: a server of S3 that others wrote.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cliq_testkit::env::{Env, print_note, python_with};

/// A server of S3, with a bucket.
struct S3 {
    base: String,
    server: Child,
    python: PathBuf,
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl S3 {
    fn start() -> Option<Self> {
        Self::with_objects(0)
    }

    /// Begins with `count` objects `docs/<n / 700>/<n>.txt`, which the server makes itself: it answers about 100 requests a second.
    fn with_objects(count: usize) -> Option<Self> {
        let python = python_with("moto, boto3")?;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let script = format!(
            "import time
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer
store = s3_backends['123456789012']['aws']
store.create_bucket('box', 'us-east-1')
for n in range({count}): store.put_object('box', f'docs/{{n // 700}}/{{n}}.txt', str(n).encode())
ThreadedMotoServer('127.0.0.1', {port}, verbose=False).start()
while True: time.sleep(60)
"
        );
        let server = Command::new(&python)
            .args(["-c", &script])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let this = Self { base: format!("http://127.0.0.1:{port}"), server, python };
        let deadline = Instant::now() + Duration::from_secs(30);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "moto does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(this)
    }

    /// Runs Python with a client of S3 that others wrote. Gives what it prints.
    fn python(&self, script: &str) -> String {
        let head = format!(
            "import boto3, json, sys\ns3 = boto3.client('s3', endpoint_url='{}', aws_access_key_id='k', aws_secret_access_key='s', region_name='us-east-1')\n",
            self.base
        );
        let done = Command::new(&self.python).args(["-c", &(head + script)]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    fn env(&self, workflow: &str) -> Env {
        let env = Env::new(workflow, &[]);
        for (key, value) in
            [("access_key_id", "k"), ("secret_access_key", "s3-secret-key"), ("base_url", &self.base)]
        {
            env.cliq(["settings", "set", "-g", &format!("agents.s3.{key}"), value]).expect(0);
        }
        env
    }
}

#[test]
fn the_connector_fetches_and_publishes() {
    let Some(s3) = S3::start() else { return print_note("SKIPPED: moto is not installed") };
    s3.python("s3.put_object(Bucket='box', Key='in/config.json', Body=b'{\"a\": 1}', ContentType='application/json')");
    let env = s3.env(
        "workflow:
  phases:
    - name: copy
      type: standard
      agent: s3
      sources: [{name: config.json, ref: \"s3://box/in/config.json\"}]
    - name: write
      type: standard
      agent: s3
      depends_on: [copy]
      target_entries: [{name: report, ref: \"box/out/$(date)/report.md\", file: report.md}]
    - {name: check, type: exec, depends_on: [write], commands: [{name: etag, run: 'test -n \"$(handoff.write.targets.report.etag)\"'}]}
",
    );
    env.write("report.md", "the report\n");
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(env.read(".cliq/files/copy/config.json"), "{\"a\": 1}");
    let data = env.read_json(".cliq/channels/copy--write/handoff.json")["data"]["sources"]["config"].clone();
    assert_eq!((data["ref"].as_str(), data["size"].as_u64()), (Some("s3://box/in/config.json"), Some(8)));
    assert_eq!(data["file"], ".cliq/files/copy/config.json");
    let body = s3.python("o = s3.list_objects_v2(Bucket='box', Prefix='out/')['Contents'][0]['Key']; g = s3.get_object(Bucket='box', Key=o); print(g['Body'].read().decode(), g['ContentType'], g['Metadata'])");
    assert!(body.starts_with("the report\n text/markdown") && body.contains("cliq-sha256"), "{body}");
}

#[test]
fn prefixes_are_directories() {
    let Some(s3) = S3::with_objects(1100) else { return print_note("SKIPPED: moto is not installed") };
    s3.python("s3.put_object(Bucket='box', Key='docs/', Body=b'')");
    let env = s3.env("workflow:\n  phases:\n    - name: fetch\n      type: pull\n      sources: [{name: docs, url: \"s3://box/docs/\"}, {name: one, url: \"s3://box/docs/0/7.txt\"}]\n");
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(env.files(".cliq/pull/docs").len(), 1100);
    assert_eq!(
        (env.read(".cliq/pull/docs/1/1000.txt"), env.read(".cliq/pull/one.txt")),
        ("1000".into(), "7".into())
    );
    // One more, one changed, one gone.
    s3.python("s3.put_object(Bucket='box', Key='docs/new.txt', Body=b'new'); s3.put_object(Bucket='box', Key='docs/0/1.txt', Body=b'changed'); s3.delete_object(Bucket='box', Key='docs/0/2.txt')");
    env.cliq(["run", "--headless", "-f"]).expect(0).says("one: unchanged");
    assert_eq!(
        (env.read(".cliq/pull/docs/new.txt"), env.read(".cliq/pull/docs/0/1.txt")),
        ("new".into(), "changed".into())
    );
    assert!(!env.exists(".cliq/pull/docs/0/2.txt"));
    // Names that lead out, and files that are directories too.
    s3.python("s3.put_object(Bucket='box', Key='bad/a/../../x', Body=b'x'); s3.put_object(Bucket='box', Key='both/a', Body=b'x'); s3.put_object(Bucket='box', Key='both/a/b', Body=b'x')");
    for (prefix, expected) in [
        ("bad", "leads out of its directory"),
        ("both", "a file and a directory at the same time"),
        ("none", "there are no objects below"),
    ] {
        let env = s3.env(&format!("workflow:\n  phases:\n    - name: fetch\n      type: pull\n      sources: [{{name: d, url: \"s3://box/{prefix}/\"}}]\n"));
        env.cliq(["run", "--headless"]).expect(3).says(expected);
        assert!(!env.exists(".cliq/pull/d"));
    }
}

#[test]
fn pushes_with_each_mode_and_large_files_in_parts() {
    let Some(s3) = S3::start() else { return print_note("SKIPPED: moto is not installed") };
    s3.python("s3.put_object(Bucket='box', Key='log', Body=b'first\\n'); s3.put_object(Bucket='box', Key='there', Body=b'old')");
    let env = s3.env(
        "workflow:
  phases:
    - name: publish
      type: push
      targets:
        - {file: new.md, to: \"s3://box/log\", mode: append}
        - {file: new.md, to: \"s3://box/there\", mode: replace}
        - {file: new.md, to: \"s3://box/dir/\", name: \"named.md\"}
        - {file: big.bin, to: \"s3://box/big.bin\"}
",
    );
    env.write("new.md", "new\n");
    let big = vec![7_u8; 70 << 20];
    std::fs::write(env.path("big.bin"), &big).unwrap();
    env.cliq(["run", "--headless"]).expect(0);
    let read = |key: &str| {
        s3.python(&format!("print(s3.get_object(Bucket='box', Key='{key}')['Body'].read().decode())"))
    };
    assert_eq!(
        (read("log"), read("there"), read("dir/named.md")),
        ("first\nnew".into(), "new".into(), "new".into())
    );
    let head =
        s3.python("h = s3.head_object(Bucket='box', Key='big.bin'); print(h['ContentLength'], h['ETag'])");
    assert!(head.starts_with(&big.len().to_string()) && head.contains("-5\""), "{head}");
    // The same again: nothing goes. As a new phase: there is something already.
    env.cliq(["run", "--headless", "-f"]).expect(0);
    assert_eq!(read("log"), "first\nnew");
    let env = s3.env("workflow:\n  phases:\n    - name: publish\n      type: push\n      targets: [{file: a.md, to: \"s3://box/there\"}]\n");
    env.write("a.md", "mine");
    env.cliq(["run", "--headless"]).expect(3).says("mode: replace");
}

#[test]
fn errors_say_what_to_do_and_no_secret() {
    let Some(s3) = S3::start() else { return print_note("SKIPPED: moto is not installed") };
    let workflow = "workflow:\n  phases:\n    - name: fetch\n      type: pull\n      sources: [{name: a, url: \"s3://box/nothing\"}]\n";
    let env = s3.env(workflow);
    let done = env.cliq(["run", "--headless"]).expect(3).says("there is no object s3://box/nothing");
    let all =
        done.stdout + &done.stderr + &env.read(".cliq/journal.jsonl") + &env.read(".cliq/orchestrator.log");
    assert!(!all.contains("s3-secret-key") && !all.contains("X-Amz-Signature"), "{all}");
    env.cliq(["doctor", "test", "s3"]).expect(0);
    let env = Env::new(workflow, &[]);
    env.cliq(["run", "--headless"])
        .expect(3)
        .says("`agents.s3.access_key_id` is not set")
        .says("AWS_ACCESS_KEY_ID");
    env.cliq(["doctor", "test", "s3"]).expect(1).says("AWS_ACCESS_KEY_ID");
}

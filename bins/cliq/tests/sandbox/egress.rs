//! Lists of hosts: the egress proxy of a run, with real clients.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use cliq_testkit::env::has_program;
use serde_json::Value;

use crate::sandbox::world::{World, mechanisms};

/// Web server of Python for a directory.
struct Web {
    server: Child,
    port: u16,
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Web {
    fn of(dir: &std::path::Path) -> Self {
        let script = "import functools, http.server, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *_): pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 512
server = Server(('127.0.0.1', 0), functools.partial(Handler, directory=sys.argv[1]))
print(server.server_port, flush=True)
server.serve_forever()";
        let mut server =
            Command::new("python3").args(["-c", script]).arg(dir).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { server, port: line.trim().parse().unwrap() }
    }
}

/// Makes a site of packages: a wheel with its index, an archive for npm, and a crate in a sparse registry.
const PACKAGES: &str = "import hashlib, io, json, pathlib, sys, tarfile, zipfile
site, port = pathlib.Path(sys.argv[1]), sys.argv[2]
def archive(path, files):
    path.parent.mkdir(parents=True)
    with tarfile.open(path, 'w:gz') as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name); info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
archive(site / 'npm/made.tgz', {'package/package.json': json.dumps({'name': 'made', 'version': '1.0.0'})})
(site / 'pip/made').mkdir(parents=True)
wheel = 'made-1.0.0-py3-none-any.whl'
with zipfile.ZipFile(site / 'pip/made' / wheel, 'w') as z:
    z.writestr('made.py', '')
    z.writestr('made-1.0.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: made\\nVersion: 1.0.0\\n')
    z.writestr('made-1.0.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: made\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    z.writestr('made-1.0.0.dist-info/RECORD', '')
(site / 'pip/made/index.html').write_text(f'<a href=\"{wheel}\">{wheel}</a>')
crate = site / 'crates/made/1.0.0/download'
archive(crate, {'made-1.0.0/Cargo.toml': '[package]\\nname = \"made\"\\nversion = \"1.0.0\"\\nedition = \"2021\"\\n', 'made-1.0.0/src/lib.rs': ''})
(site / 'index/ma/de').mkdir(parents=True)
(site / 'index/config.json').write_text(json.dumps({'dl': f'http://localhost:{port}/crates'}))
(site / 'index/ma/de/made').write_text(json.dumps({'name': 'made', 'vers': '1.0.0', 'deps': [], 'features': {}, 'yanked': False, 'cksum': hashlib.sha256(crate.read_bytes()).hexdigest()}) + '\\n')
";

/// Runs a script in a phase that may reach `localhost` only. `PORT` in the script is that of the server.
fn run(mechanism: &str, script: &str) -> (World, i32, String) {
    let workflow = "workflow:
  phases:
    - name: fetch
      type: exec
      sandbox: {network: [localhost, '*.example.com']}
      commands: [{name: fetch, run: 'sh script.sh'}]
";
    let world = World::new(workflow, &[]);
    world.cliq(&["settings", "set", "-g", "sandbox.mechanism", mechanism]).expect(0);
    let site = world.outside("site");
    fs::create_dir(&site).unwrap();
    fs::write(site.join("page"), "a page\n").unwrap();
    let made = Command::new("sh")
        .args(["-c", "git init -q repo && cd repo && git -c user.name=a -c user.email=b commit -q --allow-empty -m first && git update-server-info"])
        .current_dir(&site)
        .status();
    assert!(made.unwrap().success());
    let web = Web::of(&site);
    let port = web.port.to_string();
    let packages = Command::new("python3").args(["-c", PACKAGES]).arg(&site).arg(&port).status();
    assert!(packages.unwrap().success());
    let rustup = std::env::var("RUSTUP_HOME")
        .unwrap_or_else(|_| format!("{}/.rustup", std::env::var("HOME").unwrap_or_default()));
    world.env.write("script.sh", &script.replace("PORT", &port).replace("=RUSTUP ", &format!("={rustup} ")));
    let output = world.cliq(&["run", "--headless"]);
    let log = fs::read_to_string(world.env.path(".cliq/logs/fetch.1.1-fetch.log")).unwrap_or_default();
    (world, output.code, format!("{}{}{log}", output.stdout, output.stderr))
}

fn refusals(world: &World) -> Vec<String> {
    let journal = fs::read_to_string(world.env.path(".cliq/journal.jsonl")).unwrap();
    let events = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let refused = events.filter(|event| event["event"] == "access_refused");
    refused.map(|event| event["access"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn clients_reach_listed_hosts() {
    let script = "set -e
test \"$(curl -sS http://localhost:PORT/page)\" = 'a page'
git clone -q http://localhost:PORT/repo/.git cloned
test -d cloned/.git
python3 -c 'import urllib.request as u; assert u.urlopen(\"http://localhost:PORT/page\").read() == b\"a page\\n\"'
# Anything over a tunnel.
test \"$(curl -sS -p http://localhost:PORT/page)\" = 'a page'
";
    for mechanism in mechanisms() {
        let (world, code, said) = run(mechanism, script);
        assert_eq!(code, 0, "{mechanism}: {said}");
        assert_eq!(refusals(&world), [""; 0]);
    }
}

#[test]
fn node_uses_the_proxy() {
    if !has_program("node") {
        return cliq_testkit::not_run("there is no node");
    }
    let script = "node -e 'const p = new URL(process.env.HTTP_PROXY); require(\"http\").get({host: p.hostname, port: p.port, path: \"http://localhost:PORT/page\"}, r => process.exit(r.statusCode === 200 ? 0 : 1))'";
    for mechanism in mechanisms() {
        let (_world, code, said) = run(mechanism, script);
        assert_eq!(code, 0, "{mechanism}: {said}");
    }
}

#[test]
fn package_managers_use_the_proxy() {
    let script = "set -e
export RUSTUP_HOME=RUSTUP HOME=$PWD/home CARGO_HOME=$PWD/cargo npm_config_cache=$PWD/npm-cache PIP_CONFIG_FILE=/dev/null npm_config_userconfig=/dev/null npm_config_update_notifier=false npm_config_registry=http://localhost:PORT/npm/
mkdir -p $HOME $CARGO_HOME
python3 -m venv venv
venv/bin/pip install --quiet --no-cache-dir --disable-pip-version-check --index-url http://localhost:PORT/pip made
venv/bin/python -c 'import made'
echo '{\"name\": \"t\", \"version\": \"1.0.0\"}' > package.json
npm install --no-audit --no-fund --fetch-retries=0 http://localhost:PORT/npm/made.tgz
test -f node_modules/made/package.json
mkdir -p src && echo > src/lib.rs
printf '[package]\\nname = \"t\"\\nversion = \"1.0.0\"\\nedition = \"2021\"\\n[dependencies]\\nmade = { version = \"1\", registry = \"local\" }\\n' > Cargo.toml
printf '[registries.local]\\nindex = \"sparse+http://localhost:PORT/index/\"\\n' > $CARGO_HOME/config.toml
cargo fetch --quiet
grep -q made Cargo.lock";
    if !has_program("npm") || !has_program("cargo") {
        return cliq_testkit::not_run("there is no npm, or no cargo");
    }
    for mechanism in mechanisms() {
        let (world, code, said) = run(mechanism, script);
        assert_eq!(code, 0, "{mechanism}: {said}");
        assert_eq!(refusals(&world), [""; 0]);
    }
}

#[test]
fn other_hosts_are_refused_and_recorded() {
    let script = "curl -fsS http://example.org/ && exit 1
curl -sS http://example.org/again
curl -sS https://github.com/ && exit 1
curl -sS http://127.0.0.1:PORT/page | grep 'the sandbox refused'
curl -sS --noproxy '*' --max-time 5 http://localhost:PORT/page && exit 1
python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)' && exit 1
python3 - <<'END' || exit 1
import os, socket, urllib.parse
proxy = urllib.parse.urlsplit(os.environ['HTTPS_PROXY'])
def say(text):
    with socket.create_connection((proxy.hostname, proxy.port)) as s:
        s.sendall(text)
        return s.recv(200)
assert b' 400 ' in say(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
assert b' 400 ' in say(b'nonsense\\r\\n\\r\\n')
assert b' 403 ' in say(b'CONNECT [::1]:22 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
assert b' 403 ' in say(b'CONNECT 169.254.169.254:80 HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n')
END
true";
    for mechanism in mechanisms() {
        let (world, code, said) = run(mechanism, script);
        assert_eq!(code, 0, "{mechanism}: {said}");
        let refused = refusals(&world);
        let hosts: Vec<&str> = refused.iter().map(|access| access.split(';').next().unwrap()).collect();
        assert_eq!(hosts[0], "connect to example.org:80", "{refused:?}");
        assert!(hosts.contains(&"connect to github.com:443"), "{refused:?}");
        assert_eq!(
            hosts.iter().filter(|host| host.contains("example.org")).count(),
            1,
            "each host once: {refused:?}"
        );
        let explained = world.cliq(&["explain"]).expect(0);
        explained.says("fetch was refused: connect to github.com:443; allow it with `sandbox.network`");
    }
}

/// Two hundred connections at the same time, each with many requests, and none left after the run.
#[test]
fn connections_are_kept_alive() {
    let script = "python3 - <<'END'
import http.client, os, threading, urllib.parse
proxy = urllib.parse.urlsplit(os.environ['HTTP_PROXY'])
failed, barrier = [], threading.Barrier(200)
def work():
    try:
        connection = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=60)
        connection.connect()
        barrier.wait()
        for _ in range(5):
            connection.request('GET', 'http://localhost:PORT/page')
            response = connection.getresponse()
            assert response.status == 200 and response.read() == b'a page\\n', response.status
    except Exception as error:
        failed.append(repr(error))
        barrier.abort()
threads = [threading.Thread(target=work) for _ in range(200)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(failed[:3])
raise SystemExit(bool(failed))
END";
    for mechanism in mechanisms() {
        let (world, code, said) = run(mechanism, script);
        assert_eq!(code, 0, "{mechanism}: {said}");
        assert_eq!(world.env.left_over(), [""; 0], "nothing is left of the run");
    }
}

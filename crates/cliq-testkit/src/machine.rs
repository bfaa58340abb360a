//! A home of its own with a server, for each test.

use std::cell::Cell;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Deadline of any step of a test.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Temporary cliq home for a server.
pub struct Machine {
    dir: tempfile::TempDir,
    /// The cliq home.
    pub home: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    port: Cell<u16>,
}

/// A server that runs. It is killed when this is dropped.
pub struct Running {
    child: Child,
    /// Base URL.
    pub url: String,
    /// Token with all rights.
    pub token: String,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Headers.
    pub headers: ureq::http::HeaderMap,
    /// Body.
    pub body: String,
}

impl Answer {
    /// Checks the status code.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.body);
        self
    }

    /// Parses the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// Returns a header, or an empty text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// Waits until `done` gives something.
#[track_caller]
pub fn wait_for<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = done() {
            return value;
        }
        assert!(Instant::now() < deadline, "{what}: it takes too long");
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

impl Machine {
    /// Creates an empty home.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().join("home");
        fs::create_dir_all(&home).unwrap();
        Self { dir, home, arguments: Vec::new(), environment: Vec::new(), port: Cell::new(0) }
    }

    /// A directory beside the home.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    /// Writes the settings of the home.
    pub fn settings(self, settings: &Value) -> Self {
        fs::write(self.home.join("settings.json"), settings.to_string()).unwrap();
        self
    }

    /// Sets more arguments of the server.
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments = arguments.iter().map(ToString::to_string).collect();
        self
    }

    /// Sets a variable of all commands.
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Installs the team `@local/NAME`. `workflow` is what follows `name:` in team.yml.
    pub fn team(&self, name: &str, workflow: &str) {
        let dir = self.home.join("teams/@local").join(name);
        fs::create_dir_all(dir.join("roles")).unwrap();
        fs::write(dir.join("team.yml"), format!("name: \"@local/{name}\"\n{workflow}")).unwrap();
    }

    /// Adds an agent to an installed team, and roles for its phases.
    pub fn agent(&self, team: &str, agent: &str, script: &str, phases: &[&str]) {
        let dir = self.home.join("teams/@local").join(team);
        fs::create_dir_all(dir.join("agents")).unwrap();
        for phase in phases {
            fs::write(dir.join("roles").join(format!("{phase}.md")), "You work.\n").unwrap();
        }
        let file = dir.join("agents").join(agent);
        fs::write(&file, script).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Installs a team of exec phases that follow each other, each with one command.
    pub fn chain(&self, name: &str, commands: &[&str]) {
        self.team(name, &crate::chain(commands));
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(crate::program());
        command
            .args(arguments)
            .current_dir(self.dir.path())
            .env("CLIQ_HOME", &self.home)
            .env_remove("CLIQ_ADMIN_TOKEN")
            .envs(self.environment.iter().map(|(k, v)| (k, v)));
        command
    }

    /// Runs a command to its end.
    pub fn cliq(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// As [`Self::cliq`], for one that succeeds: gives its standard output.
    #[track_caller]
    pub fn ok(&self, arguments: &[&str]) -> String {
        let output = self.cliq(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Makes a project in a directory beside the home.
    pub fn project(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).unwrap();
        self.ok(&["-C", path.to_str().unwrap(), "init"]);
        path
    }

    /// From now on the server listens on the port that it had last.
    pub fn keep_port(&self, server: &Running) {
        self.port.set(server.url.rsplit(':').next().unwrap().parse().unwrap());
    }

    /// From now on the server listens on this port.
    pub fn set_port(&self, port: u16) {
        self.port.set(port);
    }

    /// Starts the server and waits until it serves.
    pub fn serve(&self) -> Running {
        let record = self.home.join("server.json");
        let log = fs::File::options().create(true).append(true).open(self.path("log")).unwrap();
        let port = self.port.get().to_string();
        let mut arguments = vec!["server", "run", "--port", &port];
        arguments.extend(self.arguments.iter().map(String::as_str));
        let child = self
            .command(&arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut running = Running { child, url: String::new(), token: String::new() };
        let pid = running.child.id();
        let record = wait_for("the server starts", || {
            let ended = running.child.try_wait().unwrap();
            assert!(ended.is_none(), "{}", fs::read_to_string(self.path("log")).unwrap());
            let record: Value = serde_json::from_slice(&fs::read(&record).ok()?).ok()?;
            (record["pid"] == pid).then_some(record)
        });
        record["url"].as_str().unwrap().clone_into(&mut running.url);
        record["token"].as_str().unwrap().clone_into(&mut running.token);
        running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Kills the server without a warning.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the end of a server that was sent a signal. Gives whether it succeeded.
    pub fn ends_well(mut self) -> bool {
        self.child.wait().unwrap().success()
    }

    /// A request with these headers.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> Answer {
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_global(Some(PATIENCE))
            .allow_non_standard_methods(true)
            .build()
            .into();
        let sent = match body {
            Some(body) => agent.run(request.body(body.to_owned()).unwrap()),
            None => agent.run(request.body(()).unwrap()),
        };
        let mut response = sent.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        Answer { status, headers, body: response.body_mut().read_to_string().unwrap_or_default() }
    }

    fn authorization(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// Waits until that many follow runs.
    #[track_caller]
    pub fn has_subscribers(&self, count: usize) {
        let is_that = |line: &str| line.ends_with(&format!("event_subscribers {count}"));
        wait_for("they follow", || self.get("/metrics").expect(200).body.lines().any(is_that).then_some(()));
    }

    /// Sends a GET request with the token.
    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[("authorization", &self.authorization())], None)
    }

    /// Sends a POST request with the token.
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        let headers =
            [("authorization", self.authorization()), ("content-type", "application/json".to_owned())];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        self.send("POST", path, &headers, Some(&body.to_string()))
    }

    /// Sends a DELETE request with the token.
    pub fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[("authorization", &self.authorization())], None)
    }

    /// Starts a run and gives its id.
    #[track_caller]
    pub fn start_run(&self, body: &Value) -> String {
        self.post("/api/v1/runs", body).expect(201).json()["id"].as_str().unwrap().to_owned()
    }

    /// Returns a run.
    pub fn run(&self, id: &str) -> Value {
        self.get(&format!("/api/v1/runs/{id}")).expect(200).json()
    }

    /// Waits until a run is over, and gives it.
    #[track_caller]
    pub fn ended(&self, id: &str) -> Value {
        wait_for("the run ends", || {
            let run = self.run(id);
            is_final(&run).then_some(run)
        })
    }

    /// All stored events of a run: number and event.
    pub fn events(&self, id: &str) -> Vec<(i64, Value)> {
        let (mut all, mut after) = (Vec::new(), 0);
        loop {
            let page =
                self.get(&format!("/api/v1/runs/{id}/events?after={after}&limit=100")).expect(200).json();
            for event in page["events"].as_array().unwrap() {
                all.push((event["id"].as_i64().unwrap(), event["event"].clone()));
            }
            match page["next"].as_i64() {
                Some(next) => after = next,
                None => return all,
            }
        }
    }

    /// Follows the events of a run by a stream, and gives each frame to `each` until that gives `false` or the stream ends.
    pub fn follow(&self, id: &str, last: Option<i64>, each: impl FnMut(Frame) -> bool) {
        follow(&self.url, &self.token, id, last, each);
    }
}

/// Follows the events of a run of the server at `url`, after the event `last`. The server may not be there.
pub fn follow(url: &str, token: &str, id: &str, last: Option<i64>, mut each: impl FnMut(Frame) -> bool) {
    let mut request = ureq::get(format!("{url}/api/v1/runs/{id}/events"))
        .header("authorization", format!("Bearer {token}"))
        .header("accept", "text/event-stream");
    if let Some(last) = last {
        request = request.header("last-event-id", last.to_string());
    }
    let Ok(response) = request.call() else { return };
    if response.status() == 204 {
        each(Frame { kind: "end".to_owned(), ..Frame::default() });
        return;
    }
    let mut frame = Frame::default();
    for line in BufReader::new(response.into_body().into_reader()).lines().map_while(Result::ok) {
        match line.split_once(": ") {
            Some(("id", id)) => frame.id = id.parse().ok(),
            Some(("event", kind)) => kind.clone_into(&mut frame.kind),
            Some(("data", data)) => data.clone_into(&mut frame.data),
            _ if line.is_empty() && !frame.kind.is_empty() && !each(std::mem::take(&mut frame)) => return,
            _ => {}
        }
    }
}

/// A frame of a stream.
#[derive(Debug, Default, Clone)]
pub struct Frame {
    /// Number of the event.
    pub id: Option<i64>,
    /// Type of the event.
    pub kind: String,
    /// Payload.
    pub data: String,
}

/// Whether a run is over.
pub fn is_final(run: &Value) -> bool {
    ["completed", "escalated", "failed", "cancelled"].contains(&run["state"].as_str().unwrap())
}

/// The processes of this machine whose command line or environment has this text.
pub fn processes_with(text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let has = |file: &str| {
            fs::read(entry.path().join(file))
                .is_ok_and(|bytes| memchr::memmem::find(&bytes, text.as_bytes()).is_some())
        };
        let is_zombie = fs::read_to_string(entry.path().join("stat")).is_ok_and(|stat| stat.contains(") Z "));
        if pid != std::process::id() && !is_zombie && (has("cmdline") || has("environ")) {
            found.push(pid);
        }
    }
    found
}

/// Command lines and environments of the processes of this machine.
pub fn processes() -> Vec<u8> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let is_zombie = fs::read_to_string(entry.path().join("stat")).is_ok_and(|stat| stat.contains(") Z "));
        if pid != std::process::id() && !is_zombie {
            all.extend(fs::read(entry.path().join("cmdline")).unwrap_or_default());
            all.extend(fs::read(entry.path().join("environ")).unwrap_or_default());
        }
    }
    all
}

/// The events of a journal.
pub fn journal(workspace: &Path) -> Vec<Value> {
    let text = fs::read_to_string(workspace.join(".cliq/journal.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

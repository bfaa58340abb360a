//! Push notifications: each update at least once, first deliveries in order, also when the receiver fails or the server is killed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cliq_testkit::agent::{Caller, machine, machine_with, message};
use cliq_testkit::machine::wait_for;
use serde_json::{Value, json};

/// Behaviour of a receiver.
#[derive(Clone, Copy)]
pub(crate) enum Behaviour {
    Take,
    Answer(u16),
    /// Reads and closes without an answer.
    Close,
    /// Takes the update, and closes without an answer: the server cannot know.
    TakeAndClose,
    /// Says nothing for a while.
    Hang,
    Redirect,
}

pub(crate) type Received = Arc<Mutex<Vec<(Vec<String>, Value)>>>;

/// A receiver that behaves so, request by request, and takes all that come later.
pub(crate) fn receiver(behaviours: Vec<Behaviour>) -> (String, Received) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook?key=hush", listener.local_addr().unwrap());
    let received = Received::default();
    let taken = Arc::clone(&received);
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let behaviour = behaviours.get(n).copied().unwrap_or(Behaviour::Take);
            let taken = Arc::clone(&taken);
            std::thread::spawn(move || answer(&stream.unwrap(), behaviour, &taken));
        }
    });
    (url, received)
}

fn answer(stream: &TcpStream, behaviour: Behaviour, taken: &Received) {
    let mut reader = BufReader::new(stream);
    // One request per connection: each is counted.
    let (mut headers, mut length) = (Vec::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
        headers.push(line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let keep = || taken.lock().unwrap().push((headers.clone(), body.clone()));
    let mut stream = stream;
    let mut say = |status: &str| {
        let text = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        let _ = stream.write_all(text.as_bytes());
    };
    match behaviour {
        Behaviour::Take => {
            keep();
            say("204 No Content");
        }
        Behaviour::TakeAndClose => keep(),
        Behaviour::Answer(status) => say(&format!("{status} No")),
        Behaviour::Close => {}
        Behaviour::Hang => std::thread::sleep(Duration::from_secs(3)),
        Behaviour::Redirect => say("302 Found\r\nLocation: http://127.0.0.1:1/"),
    }
}

pub(crate) fn numbers(received: &Received) -> Vec<String> {
    let received = received.lock().unwrap();
    let number = |(_, body): &(_, Value)| {
        let inner = body.get("statusUpdate").or_else(|| body.get("artifactUpdate")).unwrap_or(body);
        inner["metadata"]["eventId"].as_str().unwrap().to_owned()
    };
    received.iter().map(number).collect()
}

pub(crate) fn first_deliveries(numbers: &[String]) -> Vec<String> {
    let mut first = Vec::new();
    for number in numbers {
        if !first.contains(number) {
            first.push(number.clone());
        }
    }
    first
}

pub(crate) fn log(caller: &Caller<'_>, id: &str) -> Vec<String> {
    let mut log = Vec::new();
    cliq_testkit::agent::follow(&caller.server.url, &caller.token, id, Some("0.0"), |(number, item)| {
        log.extend(number);
        !cliq_testkit::agent::is_last(&item)
    });
    log
}

/// Starts a task whose updates go to `url`.
pub(crate) fn start(caller: &Caller<'_>, team: &str, url: &str) -> String {
    // A message that comes again starts nothing: each has an id of its own.
    let params = json!({"message": message(url, team), "configuration": {"returnImmediately": true,
        "taskPushNotificationConfig": {"id": "p", "url": url, "token": "t0ken"}}});
    caller.ok("SendMessage", &params)["task"]["id"].as_str().unwrap().to_owned()
}

pub(crate) fn receiver_of(caller: &Caller<'_>, id: &str) -> Value {
    caller.server.get(&format!("/api/v1/runs/{id}/pushes")).expect(200).json()["receivers"][0].clone()
}

#[test]
fn each_update_in_order_with_its_token() {
    let machine = machine();
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let (url, received) = receiver(Vec::new());
    let id = start(&caller, "@local/steps", &url);
    let state = wait_for("everything is delivered", || {
        let receiver = receiver_of(&caller, &id);
        (receiver["state"] == "done").then_some(receiver)
    });
    assert_eq!(numbers(&received), log(&caller, &id));
    let received = received.lock().unwrap();
    for (headers, body) in received.iter() {
        assert!(headers.contains(&"x-a2a-notification-token: t0ken".to_owned()), "{headers:?}");
        assert!(headers.contains(&"content-type: application/a2a+json".to_owned()), "{headers:?}");
        assert!(body["statusUpdate"].is_object() || body["artifactUpdate"].is_object());
    }
    assert!(!state.to_string().contains("hush"), "{state}");
}

#[test]
fn a_receiver_that_fails_while_the_server_is_killed() {
    use Behaviour::*;
    let machine = machine();
    let server = machine.serve();
    machine.keep_port(&server);
    let caller = Caller::new(&machine, &server);
    let behaviours = vec![
        Answer(500),
        Take,
        TakeAndClose,
        Close,
        Take,
        Take,
        Answer(503),
        Redirect,
        Take,
        TakeAndClose,
        Take,
        Hang,
        Answer(404),
    ];
    let (url, received) = receiver(behaviours);
    let id = start(&caller, "@local/steps", &url);
    let token = caller.token.clone();
    let mut server = server;
    for pause in [400, 900, 1300, 700] {
        std::thread::sleep(Duration::from_millis(pause));
        server.kill();
        server = machine.serve();
    }
    let caller = Caller { server: &server, token };
    wait_for("everything is delivered", || (receiver_of(&caller, &id)["state"] == "done").then_some(()));
    let (got, log) = (numbers(&received), log(&caller, &id));
    assert_eq!(first_deliveries(&got), log);
    assert!(got.len() >= log.len());
}

#[test]
fn a_receiver_that_is_gone_is_given_up_with_the_reason() {
    let machine = machine();
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let (url, received) = receiver(vec![Behaviour::Take, Behaviour::Answer(410)]);
    let id = start(&caller, "@local/steps", &url);
    let dead = wait_for("it is given up", || {
        let receiver = receiver_of(&caller, &id);
        (receiver["state"] == "dead").then_some(receiver)
    });
    assert!(dead["reason"].as_str().unwrap().contains("410"), "{dead}");
    caller.ended(&id);
    assert_eq!(received.lock().unwrap().len(), 1);
    let log = std::fs::read_to_string(machine.path("log")).unwrap();
    assert!(log.contains("is given up") && !log.contains("hush"), "{log}");
}

#[test]
fn receivers_of_0_3_get_the_task() {
    let machine = machine();
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let (url, received) = receiver(Vec::new());
    let message = json!({"kind": "message", "messageId": "m", "role": "user", "parts": [
        {"kind": "text", "text": "Do it"}, {"kind": "data", "data": {"team": "@local/steps"}}]});
    let params = json!({"message": message, "configuration": {"pushNotificationConfig": {"url": url, "token": "my-token",
        "authentication": {"schemes": ["Bearer"], "credentials": "x"}}}});
    let sent = caller.call("0.3", "message/send", &params);
    // 0.3 returns at once.
    let state = sent["result"]["status"]["state"].as_str().unwrap();
    assert!(["submitted", "working"].contains(&state), "{sent}");
    let id = sent["result"]["id"].as_str().unwrap();
    wait_for("everything is delivered", || (receiver_of(&caller, id)["state"] == "done").then_some(()));
    assert_eq!(numbers(&received), log(&caller, id));
    let received = received.lock().unwrap();
    let (headers, last) = received.last().unwrap();
    assert_eq!(
        (&last["kind"], &last["id"], &last["status"]["state"]),
        (&json!("task"), &json!(id), &json!("completed"))
    );
    assert!(
        headers.contains(&"authorization: bearer x".to_owned())
            && headers.contains(&"content-type: application/json".to_owned())
    );
}

#[test]
fn private_addresses_are_refused_unless_they_are_allowed() {
    let machine = machine_with(&json!({"allow_private_push": false, "push_hosts": ["127.0.0.2"]}));
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let id = caller.start("m1", "@local/slow");
    let set = |url: &str| {
        caller.call("1.0", "CreateTaskPushNotificationConfig", &json!({"taskId": id, "url": url}))
    };
    for url in [
        "http://127.0.0.1:1/",
        "http://localhost:1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[::1]/",
        "http://10.0.0.1/",
        "http://[::ffff:169.254.169.254]/",
        "http://169.254.169.254/",
        "http://user@example.com/",
        "file:///etc/passwd",
        "x",
        "",
        "http://example.com@127.0.0.1/",
    ] {
        let error = set(url)["error"].clone();
        assert_eq!(error["code"], -32602, "{url}: {error}");
    }
    // The same with the message that makes a task: there is none then.
    let params = json!({"message": message("m2", "@local/steps"), "configuration": {"taskPushNotificationConfig": {"url": "http://127.0.0.1:1/"}}});
    assert_eq!(caller.error("SendMessage", &params)["code"], -32602);
    assert_eq!(caller.ok("ListTasks", &json!({}))["totalSize"], 1);
    assert!(set("http://127.0.0.2:1/")["error"].is_null());
    // What becomes a header must not end it.
    let params = json!({"taskId": id, "url": "http://127.0.0.2:1/", "token": "a\r\nHost: evil"});
    assert_eq!(caller.error("CreateTaskPushNotificationConfig", &params)["code"], -32602);
    caller.ok("CancelTask", &json!({"id": id}));
}

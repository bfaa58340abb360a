//! Behaviour of the client with faulty servers. Each server sends bytes of a test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cliq_http::{Client, Limits, Page, Request};
use serde_json::json;

/// The heads of all requests that came.
type Heads = Arc<Mutex<Vec<String>>>;

/// A server: `answer` gets the number of a request, from 0, and writes any response.
fn serve(answer: impl Fn(usize, &mut TcpStream) + Send + Sync + 'static) -> (String, Heads) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let (heads, answer) = (Heads::default(), Arc::new(answer));
    let seen = Arc::clone(&heads);
    std::thread::spawn(move || {
        for stream in listener.incoming().filter_map(Result::ok) {
            let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
            std::thread::spawn(move || answer_one(stream, &seen, &*answer));
        }
    });
    (base, heads)
}

fn answer_one(mut stream: TcpStream, seen: &Heads, answer: &dyn Fn(usize, &mut TcpStream)) {
    let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
    let (mut head, mut line) = (String::new(), String::new());
    while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
        head += &line.to_lowercase();
        line.clear();
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).expect("the body");
    let number = {
        let mut seen = seen.lock().expect("the requests");
        seen.push(head);
        seen.len() - 1
    };
    answer(number, &mut stream);
}

fn reply(stream: &mut TcpStream, status: &str, headers: &str, body: &str) {
    let length = body.len();
    let text =
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
    let _ = stream.write_all(text.as_bytes());
}

fn count(heads: &Heads) -> usize {
    heads.lock().expect("the requests").len()
}

fn client() -> Client {
    Client::new(Limits { tries: 3, answer: 1000, ..Limits::default() })
}

#[test]
fn a_thing_is_made_once() {
    for (status, expected) in [("500 x", 1), ("502 x", 1), ("429 x", 2), ("503 x", 2)] {
        let (base, heads) = serve(move |number, stream| {
            let status = if number == 0 { status } else { "200 ok" };
            reply(stream, status, "retry-after: 0\r\n", "{}");
        });
        let made = client().send(&Request::post(&base).json(&json!({"a": 1})));
        assert_eq!((count(&heads), made.is_ok()), (expected, expected == 2), "{status}");
    }
}

#[test]
fn a_kept_connection_that_was_closed_is_opened_again_without_an_attempt() {
    let (base, heads) = serve(|number, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
        if number == 0 {
            // The connection was announced as kept, and ends with the next request.
            let _ = stream.read(&mut [0; 1]);
        }
    });
    let client = Client::new(Limits { tries: 1, ..Limits::default() });
    let request = Request::post(&base).json(&json!({"a": 1})).reopened();
    for expected in [1, 2] {
        let answer = client.send(&request);
        assert!(answer.is_ok(), "{answer:?}");
        assert_eq!(count(&heads), expected);
    }
}

#[test]
fn a_server_that_closes_each_connection_is_not_asked_without_end() {
    let (base, heads) = serve(|_, _| {});
    let client = Client::new(Limits { tries: 1, ..Limits::default() });
    let failed = client.send(&Request::post(&base).json(&json!({})).reopened());
    assert!(failed.is_err());
    assert_eq!(count(&heads), 1, "no connection was kept");
}

#[test]
fn errors_have_the_names_that_the_server_uses() {
    let body = r#"{"error": {"type": "insufficient_quota", "code": "billing_limit", "message": "used up"}}"#;
    let (base, _) = serve(move |_, stream| reply(stream, "429 x", "retry-after: 0\r\n", body));
    let client = Client::new(Limits { tries: 1, ..Limits::default() });
    let failed = client.send(&Request::get(&base)).expect_err("an error");
    assert_eq!(failed.names, ["insufficient_quota", "billing_limit"]);
}

#[test]
fn retry_of_idempotent_requests() {
    for (status, expected) in [("500 x", 2), ("429 x", 2), ("409 x", 1), ("404 x", 1)] {
        let (base, heads) = serve(move |number, stream| {
            let status = if number == 0 { status } else { "200 ok" };
            reply(stream, status, "retry-after: 0\r\n", "");
        });
        let got = client().send(&Request::put(&base).bytes("x"));
        assert_eq!((count(&heads), got.is_ok()), (expected, expected == 2), "{status}");
    }
}

#[test]
fn a_call_that_stalls_ends_when_it_is_cancelled() {
    let (base, heads) = serve(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 ok\r\ncontent-length: 100\r\n\r\nx");
        std::thread::sleep(Duration::from_secs(600));
    });
    let dir = tempfile::tempdir().expect("a directory");
    let client = client();
    let calls = [0, 1].map(|kind| {
        let (client, request, dir) = (client.clone(), Request::get(&base), dir.path().to_owned());
        std::thread::spawn(move || match kind {
            0 => client.send(&request).map(drop),
            _ => client.download(&request, &dir, 1000, &|_, _| {}).map(drop),
        })
    });
    while count(&heads) < 2 {
        std::thread::sleep(Duration::from_millis(5));
    }
    client.cancel();
    for call in calls {
        let error = call.join().expect("no panic").expect_err("it was cancelled");
        assert!(error.message.ends_with("cancelled"), "{error}");
    }
    assert!(client.send(&Request::get(&base)).is_err());
    assert_eq!(count(&heads), 2, "a cancelled client calls nobody");
    assert_eq!(std::fs::read_dir(dir.path()).expect("readable").count(), 0);
}

#[test]
fn a_pause_ends_when_it_is_cancelled() {
    let (base, heads) = serve(|_, stream| reply(stream, "503 x", "retry-after: 600\r\n", ""));
    let client = client();
    let other = client.clone();
    let call = std::thread::spawn(move || other.send(&Request::get(&base)));
    while count(&heads) < 1 {
        std::thread::sleep(Duration::from_millis(5));
    }
    client.cancel();
    let error = call.join().expect("no panic").expect_err("it was cancelled");
    assert!(error.message.ends_with("cancelled"), "{error}");
}

#[test]
fn answers_are_bounded() {
    let (base, _) = serve(|_, stream| reply(stream, "200 ok", "", &"x".repeat(1001)));
    let error = client().send(&Request::get(&base)).expect_err("too long");
    assert!(error.message.contains("sent more than 1000 B"), "{error}");
}

#[test]
fn pages_do_not_go_in_a_circle() {
    let (base, heads) = serve(|number, stream| {
        reply(stream, "200 ok", "", &format!("{{\"next\": {}}}", (number + 1) % 3));
    });
    let error = client()
        .pages(Request::get(format!("{base}/0")), 100, |page, _| {
            let next = page["next"].as_u64().map(|next| Request::get(format!("{base}/{next}")));
            Ok(Page { items: vec![json!(1)], next })
        })
        .expect_err("a circle");
    assert!(error.message.contains("was read before"), "{error}");
    assert_eq!(count(&heads), 3);
}

#[test]
fn a_download_goes_on_where_it_stopped() {
    let (base, heads) = serve(|number, stream| match number {
        0 => {
            let head = "HTTP/1.1 200 ok\r\nconnection: close\r\ncontent-length: 10\r\netag: \"1\"\r\naccept-ranges: bytes\r\n\r\n";
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(b"0123");
        }
        _ => reply(stream, "206 Partial", "content-range: bytes 4-9/10\r\n", "456789"),
    });
    let dir = tempfile::tempdir().expect("a directory");
    let got = client().download(&Request::get(&base), dir.path(), 1000, &|_, _| {});
    let got = got.expect("downloaded").expect("changed");
    assert_eq!(std::fs::read_to_string(got.file.path()).expect("readable"), "0123456789");
    assert_eq!((got.size, got.status), (10, 200));
    let second = heads.lock().expect("the requests")[1].clone();
    assert!(second.contains("range: bytes=4-") && second.contains("if-range: \"1\""), "{second}");
}

#[test]
fn another_part_is_not_taken_for_the_rest() {
    // A part that nobody asked for; and one that does not go on where the first broke off.
    let (unasked, heads) =
        serve(|_, stream| reply(stream, "206 Partial", "content-range: bytes 5-9/10\r\n", "56789"));
    let dir = tempfile::tempdir().expect("a directory");
    let get = |base: &str| client().download(&Request::get(base), dir.path(), 1000, &|_, _| {});
    let error = get(&unasked).expect_err("a part");
    assert!(error.message.contains("another part"), "{error}");
    assert_eq!(count(&heads), 1);

    let (other, heads) = serve(|number, stream| match number {
        0 => {
            let head = "HTTP/1.1 200 ok\r\nconnection: close\r\ncontent-length: 10\r\netag: \"1\"\r\naccept-ranges: bytes\r\n\r\n";
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(b"0123");
        }
        1 => reply(stream, "206 Partial", "content-range: bytes 0-9/10\r\n", "0123456789"),
        _ => reply(stream, "200 ok", "", "0123456789"),
    });
    let got = get(&other).expect("downloaded").expect("changed");
    assert_eq!(std::fs::read_to_string(got.file.path()).expect("readable"), "0123456789");
    let third = heads.lock().expect("the requests")[2].clone();
    assert!(!third.contains("range:"), "it begins again: {third}");
}

#[test]
fn a_part_that_the_caller_wants_is_a_whole() {
    let (base, _) =
        serve(|_, stream| reply(stream, "206 Partial", "content-range: bytes 5-9/10\r\n", "56789"));
    let dir = tempfile::tempdir().expect("a directory");
    let request = Request::get(&base).header("Range", "bytes=5-9");
    let got = client().download(&request, dir.path(), 1000, &|_, _| {});
    let got = got.expect("downloaded").expect("changed");
    assert_eq!(std::fs::read_to_string(got.file.path()).expect("readable"), "56789");
}

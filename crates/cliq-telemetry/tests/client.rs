//! Answers of receivers, and what the client makes of them.

use std::io::{Read, Write};
use std::net::TcpListener;

use cliq_settings::Settings;
use cliq_telemetry::{Client, SpanOptions, TelemetryOptions};

use super::sample::build;

/// Sends spans to a server that gives one answer. Returns the error as text, or "taken".
fn sent(head: &str, body: &str) -> String {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", server.local_addr().expect("an address"));
    let answer =
        format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
    let answers = std::thread::spawn(move || {
        let (mut stream, _) = server.accept().expect("a client");
        let (mut read, mut part) = (Vec::new(), [0; 4096]);
        let whole = |read: &[u8]| {
            let text = String::from_utf8_lossy(read).to_lowercase();
            let end = read.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
            let length =
                text.split("content-length: ").nth(1)?.lines().next()?.trim().parse::<usize>().ok()?;
            (read.len() >= end + length).then_some(())
        };
        while whole(&read).is_none() {
            let n = stream.read(&mut part).expect("a request");
            read.extend_from_slice(&part[..n]);
        }
        stream.write_all(answer.as_bytes()).expect("the client reads");
    });
    let get = |name: &str| (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| url.clone());
    let options = TelemetryOptions::read(get, &Settings::default()).expect("valid");
    let client = Client::new(options.export.expect("a receiver"));
    let outcome = client.send_spans(&build(SpanOptions::default(), &[]).spans);
    answers.join().expect("it answers");
    match outcome {
        Ok(()) => "taken".to_owned(),
        Err(error) => error.to_string().replace(&url, "URL"),
    }
}

#[test]
fn answers_are_what_they_say() {
    let rows = [
        ("200 OK", ""),
        ("200 OK\r\ncontent-type: application/json", "{}"),
        ("200 OK\r\ncontent-type: text/html; charset=utf-8", "<p>Welcome</p>"),
        ("400 Bad Request", ""),
        ("401 Unauthorized", ""),
        ("404 Not Found", ""),
        ("503 Service Unavailable\r\nretry-after: 7", ""),
    ];
    let all: Vec<String> =
        rows.iter().map(|(head, body)| format!("{}: {}", &head[..3], sent(head, body))).collect();
    insta::assert_snapshot!(all.join("\n"), @r"
    200: taken
    200: taken
    200: URL/v1/traces refused traces: it answers with a web page, and is no receiver over OTLP (HTTP)
    400: URL/v1/traces refused traces: status 400
    401: URL/v1/traces refused traces: status 401: its key is a header in `telemetry.headers` or OTEL_EXPORTER_OTLP_HEADERS
    404: URL/v1/traces does not take traces (status 404)
    503: URL/v1/traces does not take traces now: status 503
    ");
}

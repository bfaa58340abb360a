//! A server that answers as it was told and keeps what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// Request as received by the test server.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) path: String,
    pub(crate) headers: Vec<String>,
    pub(crate) body: Value,
}

/// Answers one call after the other with what it was given, the last one again and again.
pub(crate) struct Server {
    pub(crate) base: String,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl Server {
    pub(crate) fn start(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let base = format!("http://{}", listener.local_addr().expect("its address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        std::thread::spawn(move || {
            for (n, stream) in listener.incoming().enumerate() {
                let Ok(mut stream) = stream else { return };
                if let Some(one) = read(&mut stream) {
                    heard.lock().expect("whole").push(one);
                }
                let answer = answers.get(n).or_else(|| answers.last()).expect("an answer");
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { base, asked }
    }

    pub(crate) fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().expect("whole").clone()
    }
}

fn read(stream: &mut TcpStream) -> Option<ReceivedRequest> {
    let mut reader = BufReader::new(stream);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        headers.push(line.trim().to_owned());
    }
    let length =
        headers.iter().find_map(|h| h.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let path = headers.first()?.split(' ').nth(1)?.to_owned();
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).ok()? };
    Some(ReceivedRequest { path, headers, body })
}

/// An answer with a status.
pub(crate) fn status(line: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {line}\r\n{headers}content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

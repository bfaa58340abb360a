//! A site of a test: a closure answers, with any fault that networks and servers have.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReceivedRequest {
    pub(crate) method: String,
    /// With its query.
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Fault of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// The connection is cut after so many bytes of the body.
    CutAfter(usize),
    /// The head promises more than comes.
    TooShort,
    /// The body has no end.
    Endless,
    /// A byte comes, and then nothing.
    Stalls,
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) fault: Fault,
}

pub(crate) fn reply(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Reply {
    let headers = vec![("content-type".to_owned(), kind.to_owned())];
    Reply { status, headers, body: body.into(), fault: Fault::None }
}

pub(crate) fn json(value: &serde_json::Value) -> Reply {
    reply(200, "application/json", value.to_string())
}

pub(crate) fn html(body: &str) -> Reply {
    reply(200, "text/html; charset=utf-8", body)
}

impl Reply {
    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.retain(|(own, _)| own != name);
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn fault(mut self, fault: Fault) -> Self {
        self.fault = fault;
        self
    }
}

type Handler = dyn Fn(&ReceivedRequest) -> Reply + Send + Sync;

pub(crate) struct Site {
    pub(crate) base: String,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl Site {
    pub(crate) fn start(handler: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (seen, handler): (_, Arc<Handler>) = (Arc::clone(&asked), Arc::new(handler));
        std::thread::spawn(move || {
            for stream in listener.incoming().filter_map(Result::ok) {
                let (seen, handler) = (Arc::clone(&seen), Arc::clone(&handler));
                std::thread::spawn(move || serve(&stream, &seen, handler.as_ref()));
            }
        });
        Self { base, asked }
    }

    pub(crate) fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().clone()
    }

    /// `METHOD path` of each request, in their order.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.asked().iter().map(|asked| format!("{} {}", asked.method, asked.path)).collect()
    }

    pub(crate) fn count(&self, method: &str) -> usize {
        self.asked().iter().filter(|asked| asked.method == method).count()
    }
}

fn serve(stream: &TcpStream, seen: &Mutex<Vec<ReceivedRequest>>, handler: &Handler) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let mut asked = ReceivedRequest {
        method: words.next()?.to_owned(),
        path: words.next()?.to_owned(),
        ..ReceivedRequest::default()
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        asked.headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let length = asked.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    asked.body = vec![0; length];
    reader.read_exact(&mut asked.body).ok()?;
    seen.lock().unwrap().push(asked.clone());
    let reply = handler(&asked);
    write(stream, &asked, &reply).ok()
}

fn write(mut stream: &TcpStream, asked: &ReceivedRequest, reply: &Reply) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {} x\r\nconnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        head += &[name, ": ", value, "\r\n"].concat();
    }
    let length = match reply.fault {
        Fault::TooShort => Some(reply.body.len() + 100),
        Fault::Endless => None,
        _ => Some(reply.body.len()),
    };
    if let Some(length) = length.filter(|_| !reply.headers.iter().any(|(name, _)| name == "content-length")) {
        head += &["content-length: ", &length.to_string(), "\r\n"].concat();
    }
    stream.write_all(head.as_bytes())?;
    stream.write_all(b"\r\n")?;
    if asked.method == "HEAD" {
        return Ok(());
    }
    match reply.fault {
        Fault::None | Fault::TooShort => stream.write_all(&reply.body),
        Fault::CutAfter(count) => {
            stream.write_all(&reply.body[..count.min(reply.body.len())])?;
            // What was written arrives; then the connection is gone.
            std::thread::sleep(Duration::from_millis(50));
            stream.shutdown(std::net::Shutdown::Both)
        }
        Fault::Endless => loop {
            stream.write_all(&[b'x'; 65536])?;
        },
        Fault::Stalls => {
            stream.write_all(&reply.body[..1])?;
            std::thread::sleep(Duration::from_secs(600));
            Ok(())
        }
    }
}

//! The server of this machine, by its API.

use std::time::Duration;

use cliq_http::{Client, Limits, Request};
use serde_json::Value;

use crate::server_record::{ServerRecord, running};

/// Deadlines of a call.
const FIRST_BYTE: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(20);
/// Maximum size of a response in bytes.
const RESPONSE: u64 = 32 << 20;

/// Client of the server.
#[derive(Debug)]
pub(super) struct ServerApi {
    client: Client,
}

impl ServerApi {
    pub(super) fn new() -> Self {
        let limits =
            Limits { first_byte: FIRST_BYTE, whole: WHOLE, tries: 1, answer: RESPONSE, ..Limits::default() };
        Self { client: Client::new(limits) }
    }

    /// Returns the record of the server that runs on this machine, if one does.
    pub(super) fn record() -> Option<ServerRecord> {
        running().ok().flatten()
    }

    /// Returns the document at a path of the API, such as `/runs`; `None` if no server runs.
    pub(super) fn get(&self, path: &str) -> Result<Option<Value>, String> {
        let Some(record) = Self::record() else { return Ok(None) };
        self.call(&record, Request::get(url(&record, path))).map(Some)
    }

    /// Posts a document.
    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value, String> {
        let record = Self::record()
            .ok_or_else(|| "no server is running: `cliq server start` starts one".to_owned())?;
        self.call(&record, Request::post(url(&record, path)).json(body))
    }

    fn call(&self, record: &ServerRecord, request: Request) -> Result<Value, String> {
        let request = request
            .secret_header("authorization", format!("Bearer {}", record.token))
            .called(format!("the server {}", record.url))
            .answers(&[400, 403, 404, 409, 410, 422]);
        let answer = self.client.send(&request).map_err(|error| error.message)?;
        let document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if answer.status < 400 {
            return Ok(document);
        }
        // Problems of the API have a sentence each (RFC 9457).
        let said = ["detail", "title"].iter().find_map(|field| document[*field].as_str());
        let mut sentence = said.map_or_else(|| format!("status {}", answer.status), str::to_owned);
        let errors = document["errors"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for error in errors {
            sentence = [&sentence, ": ", error].concat();
        }
        Err(sentence)
    }
}

fn url(record: &ServerRecord, path: &str) -> String {
    format!("{}/api/v1{path}", record.url)
}

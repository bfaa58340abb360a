//! The calls of a mesh of type `savant`. They block: each is made on a thread of its own.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cliq_http::{Client, Limits, Request};
use cliq_settings::{Mesh, Secret};
use serde_json::{Value, json};

/// Deadline for a response of a mesh.
const DEADLINE: Duration = Duration::from_secs(15);
/// The most bytes of an answer.
const MAX_ANSWER: u64 = 1 << 20;
/// Maximum number of characters quoted from a response.
const QUOTED: usize = 200;

/// A token of a mesh.
#[derive(Debug)]
pub(super) struct Token {
    secret: Secret,
    /// Time of expiry, and how long it was valid at first. `None` if it does not say.
    valid: Option<(Instant, Duration)>,
}

impl Token {
    /// Returns the remaining validity, or `None` if the token contains no expiry.
    pub(super) fn left(&self) -> Option<Duration> {
        self.valid.map(|(end, _)| end.saturating_duration_since(Instant::now()))
    }

    /// Whether the next registration takes a new one: most of its time is over.
    pub(super) fn is_worn(&self) -> bool {
        self.valid.is_some_and(|(end, time)| end.saturating_duration_since(Instant::now()) < time / 2)
    }
}

/// A client of one mesh.
#[derive(Debug)]
pub(super) struct MeshClient {
    mesh: Mesh,
    http: Client,
}

impl MeshClient {
    pub(super) fn new(mesh: Mesh) -> Self {
        // Registrations are repeated by who makes them.
        let limits = Limits { whole: DEADLINE, tries: 1, answer: MAX_ANSWER, ..Limits::default() };
        Self { mesh, http: Client::new(limits) }
    }

    /// A new token for the account of this cliq.
    pub(super) fn token(&self) -> Result<Token, String> {
        let body =
            json!({"client_id": self.mesh.client_id, "client_secret": self.mesh.client_secret.reveal()});
        let answer = self.post("/auth/token", None, &body)?;
        let answer: Value = serde_json::from_str(&answer)
            .map_err(|_| format!("{} answered no JSON", self.endpoint("/auth/token")))?;
        let token = ["access_token", "token", "jwt"].iter().find_map(|key| answer[*key].as_str());
        let token = token.filter(|token| !token.is_empty() && token.bytes().all(|b| b.is_ascii_graphic()));
        let token =
            token.ok_or_else(|| format!("{} answered without a token", self.endpoint("/auth/token")))?;
        let seconds = answer["expires_in"].as_f64().filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
        let left =
            seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).or_else(|| claim(token));
        let valid = left.and_then(|left| Some((Instant::now().checked_add(left)?, left)));
        Ok(Token { secret: Secret::new(token), valid })
    }

    /// Makes this server known, or known again.
    pub(super) fn register(&self, token: &Token, body: &Value) -> Result<(), String> {
        self.post("/agents/register", Some(token), body).map(drop)
    }

    /// Removes this server from the mesh.
    pub(super) fn deregister(&self, token: &Token, body: &Value) -> Result<(), String> {
        self.post("/agents/deregister", Some(token), body).map(drop)
    }

    /// Returns the address of a path for messages, without credentials.
    fn endpoint(&self, path: &str) -> String {
        format!("{}{path}", cliq_protocol::without_credentials(&self.mesh.url))
    }

    fn post(&self, path: &str, token: Option<&Token>, body: &Value) -> Result<String, String> {
        let mut request = Request::post(format!("{}{path}", self.mesh.url))
            .called(self.endpoint(path))
            .secret(self.mesh.client_secret.reveal())
            .json(body);
        if let Some(token) = token {
            request = request.secret_header("authorization", format!("Bearer {}", token.secret.reveal()));
        }
        let answer = self.http.send(&request).map_err(|error| quoted(&error.message))?;
        Ok(String::from_utf8_lossy(&answer.body).into_owned())
    }
}

/// The beginning of what a mesh said.
fn quoted(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(QUOTED).collect()
}

/// Returns the validity of a JSON Web Token by its claim `exp`. Its signature is for the mesh to check.
fn claim(token: &str) -> Option<Duration> {
    let payload = token.split('.').nth(1)?;
    let payload: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let exp = Duration::try_from_secs_f64(payload["exp"].as_f64()?).ok()?;
    Some(exp.saturating_sub(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_claim_of_a_token() {
        let jwt = |payload: &str| format!("e30.{}.x", URL_SAFE_NO_PAD.encode(payload));
        let soon = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 100;
        let left = claim(&jwt(&format!("{{\"exp\": {soon}}}"))).unwrap();
        assert!((98..=100).contains(&left.as_secs()), "{left:?}");
        assert_eq!(claim(&jwt("{\"exp\": 5}")), Some(Duration::ZERO));
        for text in [
            "",
            "a.b.c",
            "x",
            &jwt("{}"),
            &jwt("{\"exp\": \"x\"}"),
            &jwt("{\"exp\": -1}"),
            &jwt("{\"exp\": 1e300}"),
        ] {
            assert_eq!(claim(text), None, "{text}");
        }
    }
}

//! One attempt of a call: sends the request, reads the reply piece by piece, and names what is wrong with it.

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use cliq_http::{CallError, Request};
use cliq_protocol::lenient_json;

use super::classify::End;
use super::draft::Draft;
use super::errors::{Class, class};
use super::exchange::{self, Part};
use super::places::{Place, Wait};
use super::termination::Deferred;
use super::{Access, Api, Call};
use crate::llm::display::Display;
use crate::llm::kinds::ApiKind;
use crate::llm::thoughts::Filter;

/// Time between two messages about a server that is silent.
const WAIT_SHOWN: Duration = Duration::from_secs(10);
/// Time of waiting for a place before it is shown.
const SHOWN_AFTER: Duration = Duration::from_secs(1);
/// Polling interval for the signal to end.
const TICK: Duration = Duration::from_millis(100);

/// Pause of all requests of an agent after an answer 429 that asks for none.
const PAUSE: Duration = Duration::from_secs(1);

impl Api {
    /// Waits for a place among the requests of all processes.
    pub(super) fn place(
        &self,
        deferred: &Deferred,
        display: &mut Display<'_>,
        draft: &mut Draft,
    ) -> Result<Option<Place>, CallError> {
        let Some(places) = &self.access.places else { return Ok(None) };
        let (name, mut shown) = (&self.access.name, Instant::now());
        let on_wait = |wait| {
            if shown.elapsed() >= SHOWN_AFTER {
                shown += WAIT_SHOWN;
                display.act(&match wait {
                    Wait::Turn => {
                        format!("waiting for a place: `agents.{name}.max_concurrent` requests are under way")
                    }
                    Wait::Minute => format!(
                        "waiting: `agents.{name}.requests_per_minute` requests were made in the last minute"
                    ),
                    Wait::Pause => format!("waiting: the server of {name} asked for a pause"),
                });
            }
        };
        match places.take(|| deferred.has_come(), on_wait) {
            Ok(Some(place)) => Ok(Some(place)),
            Ok(None) => {
                draft.was_ended = true;
                Err(CallError::permanent(format!("the request to {name} was cancelled")))
            }
            // Limits that cannot be kept are better told than kept by chance.
            Err(error) => {
                Err(CallError::permanent(format!("cannot wait for a place of `agents.{name}`: {error}")))
            }
        }
    }

    /// Lets all requests of the agent wait if the server has asked for it.
    pub(super) fn share_pause(&self, result: &Result<(), CallError>) {
        if let (Some(places), Err(CallError { status: Some(429), pause, is_transient: true, .. })) =
            (&self.access.places, result)
        {
            places.pause(pause.unwrap_or(PAUSE));
        }
    }

    /// Applies a piece of a reply as text.
    pub(super) fn apply_text(&self, data: &[u8], draft: &mut Draft) -> Result<Option<String>, CallError> {
        if data.trim_ascii() == b"[DONE]" {
            draft.is_done = true;
            return Ok(None);
        }
        let name = &self.access.name;
        let value = lenient_json(data).map_err(|_| {
            let shown: String = String::from_utf8_lossy(data).chars().take(200).collect();
            CallError::new(format!("{name}: a piece of the answer is not JSON: {shown}"), true)
        })?;
        let text = self.apply(&value, draft);
        match draft.error.take() {
            Some(error) => {
                draft.class = Some(error.class);
                Err(CallError::new(format!("{name}: {}", error.message), error.class == Class::Passing))
            }
            None => Ok(text),
        }
    }

    /// Makes one attempt of the call. `draft` receives the reply as far as it arrived, even if the attempt fails.
    pub(super) fn try_once(
        &self,
        call: &Call,
        deferred: &Deferred,
        display: &mut Display<'_>,
        draft: &mut Draft,
    ) -> Result<(), CallError> {
        let name = &self.access.name;
        let mut request = Request::post(&call.url).json(&call.body).called(name).reopened();
        for (name, value) in &call.headers {
            request = request.secret_header(*name, value);
        }
        let parts = exchange::start(&self.client, request);
        let (mut filter, mut media_type) = (Filter::default(), String::new());
        let (mut last, mut shown) = (Instant::now(), Instant::now());
        loop {
            let part = match parts.recv_timeout(TICK) {
                Ok(part) => part,
                Err(RecvTimeoutError::Disconnected) => Part::End,
                Err(RecvTimeoutError::Timeout) => {
                    if deferred.has_come() {
                        draft.was_ended = true;
                        return Err(CallError::permanent(format!("the request to {name} was cancelled")));
                    }
                    if shown.elapsed() >= WAIT_SHOWN {
                        shown = Instant::now();
                        display.act(&self.waiting(draft, last.elapsed()));
                    }
                    continue;
                }
            };
            (last, shown) = (Instant::now(), Instant::now());
            match part {
                Part::Head(kind) => {
                    draft.is_begun = true;
                    media_type = kind;
                }
                Part::Event(data) => {
                    if let Some(text) = self.apply_text(data.as_bytes(), draft)? {
                        display.print(&filter.push(&text));
                    }
                    if let Some(words) = repeated(draft) {
                        // Nobody reads on: the end of the connection stops the server.
                        draft.end = Some(End::Repeating(words));
                        return Ok(());
                    }
                }
                Part::Whole(bytes) => {
                    // Servers that do not stream answer all at once, or a JSON text in each line.
                    let lines: Vec<&[u8]> = match lenient_json(&bytes) {
                        Ok(_) => vec![&bytes],
                        Err(_) => bytes
                            .split(|&byte| byte == b'\n')
                            .filter(|line| !line.trim_ascii().is_empty())
                            .collect(),
                    };
                    for line in lines {
                        if let Some(text) = self.apply_text(line, draft)? {
                            display.print(&filter.push(&text));
                        }
                    }
                    draft.is_done = true;
                }
                Part::Page(page) => {
                    return Err(self.not_its_api(&format!("with a web page: {}", first_words(&page))));
                }
                Part::End => {
                    display.print(&filter.finish());
                    return self.check_end(&media_type, draft);
                }
                Part::Broken(error) => {
                    display.print(&filter.finish());
                    return Err(CallError::broken(name, &error));
                }
                Part::Failed(failed) => return Err(self.classified(failed, draft)),
            }
        }
    }

    /// Checks that a response without errors is a reply, and whole.
    fn check_end(&self, media_type: &str, draft: &Draft) -> Result<(), CallError> {
        let name = &self.access.name;
        let broken = |what: &str| CallError::new(format!("the answer of {name} broke off: {what}"), true);
        match &draft.end {
            Some(End::Failed(reason)) => return Err(broken(&format!("the server failed ({reason})"))),
            Some(End::Malformed(reason)) => {
                let why = format!("{name}: the model made a call that cannot be read ({reason})");
                return Err(CallError::new(why, true));
            }
            Some(
                End::Stop
                | End::Length
                | End::Context
                | End::Filtered(_)
                | End::Paused
                | End::Repeating(_)
                | End::Refused(_)
                | End::Unknown(_),
            )
            | None => {}
        }
        // A stream of the Responses API ends with the response that has its status.
        let is_ended = match self.access.kind {
            ApiKind::Responses => draft.end.is_some(),
            ApiKind::Anthropic | ApiKind::OpenAi | ApiKind::Gemini => draft.end.is_some() || draft.is_done,
        };
        match (draft.is_reply, is_ended) {
            (true, true) => Ok(()),
            (true, false) => Err(broken("its end is missing")),
            (false, _)
                if media_type.is_empty()
                    || media_type.contains("json")
                    || media_type.contains("event-stream") =>
            {
                match draft.is_done {
                    true => Err(self.not_its_api("with JSON that is no reply of this API")),
                    false => Err(broken("it is empty")),
                }
            }
            (false, _) => {
                Err(self.not_its_api(&format!("with `{media_type}`, which is no reply of this API")))
            }
        }
    }

    /// Error for a server that does not speak the API.
    fn not_its_api(&self, answered: &str) -> CallError {
        let Access { name, base, .. } = &self.access;
        let base = cliq_protocol::without_credentials(base);
        CallError::permanent(format!(
            "{name} answered {answered} (check `agents.{name}.base_url`, here {base})"
        ))
    }

    /// Returns a message about a server that is silent.
    fn waiting(&self, draft: &Draft, silence: Duration) -> String {
        let (name, limit) = (&self.access.name, self.access.reply_timeout);
        let what = if draft.is_begun { "goes on with its reply" } else { "begins its reply" };
        format!(
            "waiting until {} {what}: {} s of at most {} s (`agents.{name}.reply_timeout`)",
            self.access.model,
            silence.as_secs(),
            limit.as_secs()
        )
    }

    /// Completes an error of a request without a response of status 2xx: its class, and a hint.
    fn classified(&self, mut failed: CallError, draft: &mut Draft) -> CallError {
        let Access { name, base, model, .. } = &self.access;
        let hint = match failed.status {
            Some(status) => {
                let found = class(Some(status.into()), &failed.names, &failed.message);
                draft.class = Some(found);
                failed.is_transient = found == Class::Passing;
                match status {
                    401 | 403 => format!(" (check its key: the environment, or `agents.{name}.api_key`)"),
                    404 => {
                        format!(" (check `agents.{name}.model`, here {model}, and `agents.{name}.base_url`)")
                    }
                    429 if found == Class::Permanent => {
                        " (check the quota and the billing of the account)".to_owned()
                    }
                    _ => String::new(),
                }
            }
            None => {
                // The server may have worked on a request that it was too slow for.
                draft.has_timed_out = failed.is_timeout;
                let base = cliq_protocol::without_credentials(base);
                match failed.is_timeout {
                    true => format!(
                        " (at {base}; `agents.{name}.reply_timeout` is {} s)",
                        self.access.reply_timeout.as_secs()
                    ),
                    false => format!(" (at {base})"),
                }
            }
        };
        failed.message.push_str(&hint);
        failed
    }
}

/// Returns the words that a reply repeats without end.
fn repeated(draft: &mut Draft) -> Option<String> {
    let [of_text, of_thoughts] = &mut draft.watches;
    let thought = draft.thinking.last().map_or("", |thought| thought.text.as_str());
    of_text.repeated(&draft.text).or_else(|| of_thoughts.repeated(thought))
}

/// Returns the first words of a page, without its markup.
fn first_words(page: &str) -> String {
    let mut words = String::new();
    let mut is_tag = false;
    for c in page.chars() {
        match c {
            '<' => is_tag = true,
            '>' => {
                is_tag = false;
                words.push(' ');
            }
            c if !is_tag => words.push(c),
            _ => {}
        }
    }
    let words: Vec<&str> = words.split_whitespace().take(12).collect();
    format!("\"{}\"", words.join(" "))
}

//! Writer for the standard input of a vendor's program: the prompt, and steering messages.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cliq_fs::ChildInput;
use cliq_sdk::Steering;

use super::dialect::PromptInput;
use crate::llm::prompt::guidance;

/// Time within which a program that takes messages prints its first line. Then its input ends, and messages wait for its answer.
const SILENCE: Duration = Duration::from_secs(5);

/// State that the writer shares with the reader of the output.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) has_output: AtomicBool,
    /// Number of requests that the program received.
    pub(super) requests: AtomicUsize,
}

impl Exchange {
    pub(super) fn new() -> Self {
        Self { has_output: AtomicBool::new(false), requests: AtomicUsize::new(1) }
    }
}

/// Writes the prompt, and then steering messages if the program takes them. `on_message` is called with the id of each before it is
/// written.
pub(super) fn feed(
    input: PromptInput,
    prompt: &str,
    stdin: &ChildInput,
    steering: &mut Steering,
    exchange: &Exchange,
    on_message: &(dyn Fn(&str) + Sync),
) {
    if input == PromptInput::Argument {
        return stdin.close();
    }
    // A program that does not read to the end reports the reason itself.
    stdin.write(|| input.encode(prompt));
    if input == PromptInput::Text {
        return stdin.close();
    }
    let started = Instant::now();
    loop {
        let is_silent = !exchange.has_output.load(Ordering::SeqCst);
        let patience = if is_silent { SILENCE.saturating_sub(started.elapsed()) } else { Duration::MAX };
        if !steering.wait(patience) {
            if steering.is_stopped() || !is_silent {
                return;
            }
            if !exchange.has_output.load(Ordering::SeqCst) {
                // A wrapper may read its input to the end before it starts the program.
                return stdin.close();
            }
            continue;
        }
        let message = || {
            let message = steering.try_next().ok().flatten();
            let Some(message) = message else { return Vec::new() };
            on_message(&message.id);
            exchange.requests.fetch_add(1, Ordering::SeqCst);
            input.encode(&guidance(&[message]))
        };
        if !stdin.write(message) {
            return;
        }
    }
}

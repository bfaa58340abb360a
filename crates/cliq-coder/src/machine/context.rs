//! Size of the conversation: estimates, placeholders for old results, summaries.

use cliq_protocol::Usage;

use super::{Loop, MAX_TOO_LONG, Stage};
use crate::conversation::{IMAGE, Turn};
use crate::outcome::Failure;

/// Tokens per byte before a provider has counted any.
pub(super) const FIRST_RATIO: f64 = 0.3;
/// Range of the ratio that counts of providers are trusted in.
const RATIOS: (f64, f64) = (0.15, 1.0);
/// Number of turns with results that are kept while there are older ones.
const KEPT: usize = 2;
/// Share of the context that leads to placeholders, and the share after it, in percent. The distance keeps the beginning of requests
/// stable, so that providers can cache it.
const HIGH: u64 = 90;
const LOW: u64 = 55;
/// Maximum number of refusals of earlier thoughts.
const MAX_STALE_THINKING: u32 = 5;
/// Maximum number of tokens of a reply that needs no cap: that which is requested from APIs that need one.
const USUAL_REPLY: u64 = 32_000;
/// Number of tokens that a reply may have in any case: fewer hold no answer.
const SHORTEST_REPLY: u64 = 256;
/// Number of tokens of the context that are left free.
const CONTEXT_MARGIN: u64 = 256;
/// Start of the text in place of an old result.
const PLACEHOLDER: &str = "[result removed to save space";

pub(super) const SUMMARY_REQUEST: &str = "The conversation is about to exceed your context. Summarize it for yourself: what you have \
    found out, decided and changed (with paths), what is left to do, and everything from the messages above that you need for it. \
    You will continue from the task and this summary alone. Answer with the summary only.";

impl Loop {
    /// Estimated number of tokens of a request.
    #[must_use]
    pub fn estimate(&self) -> u64 {
        self.tokens(self.bytes + self.fixed_bytes())
    }

    /// Number of bytes of a request beside the conversation.
    fn fixed_bytes(&self) -> usize {
        self.limits.fixed_bytes + self.system.as_ref().map_or(0, String::len)
    }

    /// Maximum number of tokens of the next reply: what budget and context leave. `None` if that is more than a reply usually has.
    #[must_use]
    pub fn reply_cap(&self) -> Option<u64> {
        let input = self.estimate();
        // Estimates of the input are not exact.
        let context = self.limits.knows_context.then(|| {
            self.context_tokens.saturating_sub(input.saturating_add(input / 8)).saturating_sub(CONTEXT_MARGIN)
        });
        let left = self.limits.left_for_reply(&self.spent, input).into_iter().chain(context).min()?;
        (left < USUAL_REPLY).then(|| left.max(SHORTEST_REPLY))
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate"
    )]
    fn tokens(&self, bytes: usize) -> u64 {
        (bytes as f64 * self.tokens_per_byte) as u64
    }

    /// Number of tokens that a request may have.
    fn capacity(&self) -> u64 {
        self.context_tokens.saturating_sub(self.reply_tokens).max(self.context_tokens / 2)
    }

    /// Whether the provider has counted so few tokens in a request that it must have cut the request.
    #[must_use]
    pub fn is_input_cut(&self, usage: &Usage) -> bool {
        // The first estimate may be wrong by a factor; later ones are made from the provider's own counts.
        let factor = if self.has_learned { 2 } else { 3 };
        usage.tokens_in > 0 && usage.tokens_in.saturating_mul(factor) < self.estimate()
    }

    /// Learns from the provider's count of the last request.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn learn_ratio(&mut self, usage: &Usage) {
        let bytes = self.bytes + self.fixed_bytes();
        if usage.tokens_in > 0 && bytes > 0 && !usage.estimated && !self.is_input_cut(usage) {
            self.tokens_per_byte = (usage.tokens_in as f64 / bytes as f64).clamp(RATIOS.0, RATIOS.1);
            self.has_learned = true;
        }
    }

    /// Whether the conversation cannot be made short enough for the server. A request after a refusal is shorter than the refused
    /// one.
    pub(super) fn is_out_of_context(&self) -> bool {
        self.is_out_of_context || self.refused_bytes.is_some_and(|refused| self.bytes >= refused)
    }

    /// Whether only a summary makes the conversation fit.
    pub(super) fn is_too_large(&self) -> bool {
        self.turns.len() > 1 && self.estimate() > self.capacity() * HIGH / 100
    }

    /// Replaces old results if the conversation becomes too large.
    pub(super) fn make_room(&mut self) {
        if self.estimate() > self.capacity() * HIGH / 100 {
            self.forget_results(KEPT, self.capacity() * LOW / 100);
        }
        if self.estimate() > self.capacity() * HIGH / 100 {
            // The latest results alone are too much.
            self.forget_results(1, self.capacity() * HIGH / 100);
        }
        if self.is_out_of_context() {
            self.forget_results(0, 0);
        }
    }

    /// Replaces results by placeholders, oldest first, until the estimate is at most `goal`. The last `kept` turns with results stay.
    pub(super) fn forget_results(&mut self, kept: usize, goal: u64) {
        let before = self.bytes;
        self.replace_results(kept, goal);
        if self.bytes != before {
            self.forget_thinking();
        }
    }

    /// Removes thoughts. Providers accept them only if the conversation before them is unchanged.
    fn forget_thinking(&mut self) {
        for turn in &mut self.turns {
            if let Turn::Assistant(reply) = turn
                && !reply.thinking.is_empty()
            {
                let with_thoughts = reply.size();
                reply.thinking.clear();
                self.bytes = self.bytes + reply.size() - with_thoughts;
            }
        }
    }

    /// The provider refused thoughts of the conversation.
    pub(super) fn refused_thinking(&mut self) {
        self.stale_thinking += 1;
        if self.stale_thinking > MAX_STALE_THINKING {
            self.failure = Some(Failure::StaleThinking);
            return;
        }
        self.forget_thinking();
    }

    fn replace_results(&mut self, kept: usize, goal: u64) {
        let with_results = |turn: &&mut Turn| matches!(turn, Turn::Results(_));
        let count = self.turns.iter().filter(|turn| matches!(turn, Turn::Results(_))).count();
        let ratio = self.tokens_per_byte;
        let mut bytes = self.bytes;
        let fixed = self.fixed_bytes();
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate"
        )]
        let estimate = |bytes: usize| ((bytes + fixed) as f64 * ratio) as u64;
        for turn in self.turns.iter_mut().filter(with_results).take(count.saturating_sub(kept)) {
            let Turn::Results(results) = turn else { continue };
            for result in results {
                if goal > 0 && estimate(bytes) <= goal {
                    self.bytes = bytes;
                    return;
                }
                let size = result.text.len();
                let text = format!("{PLACEHOLDER}: {size} bytes; call the tool again if you need it]");
                // Images are large, however short their text.
                let of_images = std::mem::take(&mut result.images).len() * IMAGE;
                bytes -= of_images;
                if result.text.starts_with(PLACEHOLDER) || (text.len() >= size && of_images == 0) {
                    continue;
                }
                bytes = bytes - size + text.len();
                result.text = text;
            }
        }
        self.bytes = bytes;
    }

    /// The API refused the conversation as too long: it is taken for larger than it was thought to be.
    pub(super) fn shorten(&mut self) {
        self.too_long += 1;
        let refused = self.refused_bytes.map_or(self.bytes, |before| before.min(self.bytes));
        self.refused_bytes = Some(refused);
        if self.too_long > MAX_TOO_LONG {
            self.is_out_of_context = true;
            return;
        }
        self.context_tokens = (self.estimate() * 3 / 4).max(1).min(self.context_tokens);
        self.reply_tokens = self.reply_tokens.min(self.context_tokens / 4);
        self.forget_results(0, self.capacity() * LOW / 100);
        if self.bytes >= refused {
            self.forget_thinking();
        }
    }

    /// Replaces the conversation by the task and a summary.
    pub(super) fn condense(&mut self, summary: &str) {
        self.turns.truncate(1);
        let mut text =
            format!("You have worked on this task already. Your summary of that work:\n\n{}", summary.trim());
        for message in self.guidance.iter().chain(&self.feedback) {
            text.push_str("\n\n");
            text.push_str(message);
        }
        text.push_str("\n\nContinue with the task.");
        self.bytes = self.turns.iter().map(Turn::size).sum();
        self.push(Turn::User { text, images: Vec::new() });
        self.stage = Stage::Work;
        (self.useless, self.cuts) = (0, 0);
        if self.is_too_large() {
            // The task and the summary of the work leave no room.
            self.is_out_of_context = true;
        }
    }
}

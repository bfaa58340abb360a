//! Kinds of replies, from finish reasons and content. Pure.
#![deny(clippy::wildcard_enum_match_arm)]

use cliq_coder::Reply;
use cliq_protocol::ReplyKind;

use crate::llm::kinds::ApiKind;

/// End of a reply, as its server reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// The model ended the reply.
    Stop,
    /// The reply reached its maximum length.
    Length,
    /// The conversation and the reply filled the context.
    Context,
    /// A content filter ended the reply, with the server's name of the reason.
    Filtered(String),
    /// The server ended a turn that is not over.
    Paused,
    /// The reply repeats these words without end, and was ended.
    Repeating(String),
    /// The model or the server refused to reply, with the reason.
    Refused(String),
    /// The model made a call that the server cannot read, with the server's name of the reason.
    Malformed(String),
    /// The server failed, with its name of the reason.
    Failed(String),
    /// Another reason.
    Unknown(String),
}

/// Returns the end that a finish reason names, or `None` if the reply goes on.
pub(super) fn end(api: ApiKind, reason: &str) -> Option<End> {
    let name = || reason.to_owned();
    let end = match (api, reason) {
        (_, "" | "null" | "FINISH_REASON_UNSPECIFIED") => return None,
        (ApiKind::Anthropic, "end_turn" | "stop_sequence" | "tool_use" | "stop") => End::Stop,
        (ApiKind::Anthropic, "max_tokens" | "length") => End::Length,
        (ApiKind::Anthropic, "model_context_window_exceeded") => End::Context,
        (ApiKind::Anthropic, "pause_turn") => End::Paused,
        (ApiKind::Anthropic, "refusal" | "safety") => End::Refused(name()),
        (
            ApiKind::OpenAi,
            "stop" | "tool_calls" | "function_call" | "tool_use" | "end_turn" | "stop_sequence" | "eos"
            | "eos_token" | "STOP" | "TOOL_CALLS" | "COMPLETE",
        ) => End::Stop,
        (ApiKind::OpenAi, "length" | "max_tokens" | "MAX_TOKENS" | "max_output_tokens") => End::Length,
        (ApiKind::OpenAi, "model_length" | "model_context_window_exceeded" | "context_length_exceeded") => {
            End::Context
        }
        (ApiKind::OpenAi, "content_filter" | "content-filter" | "sensitive" | "safety" | "SAFETY") => {
            End::Filtered(name())
        }
        (ApiKind::OpenAi, "refusal") => End::Refused(name()),
        (ApiKind::OpenAi, "pause_turn") => End::Paused,
        (
            ApiKind::OpenAi,
            "error"
            | "abort"
            | "aborted"
            | "cancelled"
            | "network_error"
            | "insufficient_system_resource"
            | "timeout",
        ) => End::Failed(name()),
        (ApiKind::Responses, "completed") => End::Stop,
        (ApiKind::Responses, "max_output_tokens") => End::Length,
        (ApiKind::Responses, "content_filter") => End::Filtered(name()),
        (ApiKind::Responses, "failed" | "cancelled") => End::Failed(name()),
        (ApiKind::Gemini, "STOP") => End::Stop,
        (ApiKind::Gemini, "MAX_TOKENS") => End::Length,
        (
            ApiKind::Gemini,
            "SAFETY"
            | "RECITATION"
            | "LANGUAGE"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION",
        ) => End::Refused(name()),
        (
            ApiKind::Gemini,
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" | "MALFORMED_RESPONSE",
        ) => End::Malformed(name()),
        (ApiKind::Anthropic | ApiKind::OpenAi | ApiKind::Responses | ApiKind::Gemini, _) => {
            End::Unknown(name())
        }
    };
    Some(end)
}

/// Limits and counts of a reply, for the reason of a cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) tokens_in: Option<u64>,
    pub(super) tokens_out: Option<u64>,
    /// Value of the setting `max_tokens`.
    pub(super) max_tokens: Option<u64>,
    /// Maximum that is requested without the setting.
    pub(super) default_max: Option<u64>,
    /// Maximum that budget and context left.
    pub(super) cap: Option<u64>,
    pub(super) context_tokens: u64,
}

/// Returns the kind of a complete reply, with the reason if it is not an answer and not calls. `agent` is the name in settings.
pub(super) fn kind(end: &End, reply: &Reply, agent: &str, sizes: &Sizes) -> (ReplyKind, Option<String>) {
    let is_blank = reply.text.trim().is_empty();
    let has_content = !is_blank || !reply.calls.is_empty();
    let cut = |why: String| (ReplyKind::CutOff, Some(format!("the reply of {agent} was cut off: {why}")));
    match end {
        End::Stop if !reply.calls.is_empty() => (ReplyKind::Calls, None),
        End::Stop if is_blank && reply.thinking.iter().any(|thought| !thought.text.is_empty()) => {
            (ReplyKind::Empty, Some(format!("the reply of {agent} has thoughts and no answer")))
        }
        End::Stop if is_blank => (ReplyKind::Empty, Some(format!("the reply of {agent} is empty"))),
        End::Stop => (ReplyKind::Answer, None),
        End::Length => cut(length(agent, sizes)),
        End::Context => cut(context(agent, sizes)),
        End::Filtered(reason) if has_content => cut(format!("a content filter stopped it ({reason})")),
        End::Filtered(reason) => refused(agent, &format!("a content filter stopped it ({reason})")),
        End::Paused => cut("the server paused it before its end (pause_turn)".to_owned()),
        End::Repeating(words) => {
            let words: String = words.chars().take(80).collect();
            cut(format!(
                "it repeated the same words without end (\"{words}\"); another model, or `agents.{agent}.temperature`, may help"
            ))
        }
        End::Refused(why) => refused(agent, why),
        End::Malformed(reason) => cut(format!("the model made a call that cannot be read ({reason})")),
        End::Failed(reason) => cut(format!("the server failed ({reason})")),
        End::Unknown(reason) => {
            cut(format!("its finish reason is `{reason}`, which is not known to be a success"))
        }
    }
}

fn refused(agent: &str, why: &str) -> (ReplyKind, Option<String>) {
    (ReplyKind::Refused, Some(format!("{agent} refused to reply: {why}")))
}

/// Names the limit that a reply has reached: its own, that of the context, or one of the server.
fn length(agent: &str, sizes: &Sizes) -> String {
    let Sizes { tokens_in, tokens_out, max_tokens, default_max, cap, context_tokens } = *sizes;
    let setting = format!("`agents.{agent}.max_tokens`");
    // Servers count a few tokens more or less.
    let has_reached = |count: u64, limit: u64| count.saturating_add(limit / 50) >= limit;
    if let Some(cap) = cap.filter(|cap| tokens_out.is_none_or(|out| has_reached(out, *cap))) {
        return format!(
            "budget and context left {cap} tokens for it; a larger budget, or a larger `agents.{agent}.context_tokens`, gives more"
        );
    }
    let Some(out) = tokens_out else {
        return match (max_tokens, default_max) {
            (Some(max), _) => format!("its limit is {max} tokens; raise {setting}"),
            (None, Some(max)) => format!("its limit is {max} tokens; set {setting} to more"),
            (None, None) => format!(
                "the server's own limit was hit, and no counts were reported; set {setting}, or `agents.{agent}.context_tokens` \
                 (here {context_tokens}) to what the server was started with"
            ),
        };
    };
    let total = tokens_in.unwrap_or(0).saturating_add(out);
    match (max_tokens, default_max) {
        (Some(max), _) if has_reached(out, max) => {
            return format!("it reached its own limit, {out} of {max} tokens; raise {setting}");
        }
        (None, Some(max)) if has_reached(out, max) => {
            return format!("it reached its own limit, {out} of {max} tokens; set {setting} to more");
        }
        (Some(_) | None, _) => {}
    }
    if has_reached(total, context_tokens) {
        return context(agent, sizes);
    }
    let own = max_tokens.map(|max| format!(" of at most {max}")).unwrap_or_default();
    format!(
        "the server's own limit was hit after {out} tokens{own}, {total} with the request, below the context of {context_tokens} \
         tokens; set `agents.{agent}.context_tokens` to what the server was started with{}",
        if max_tokens.is_none() {
            format!(", or {setting} if the server limits replies")
        } else {
            String::new()
        }
    )
}

fn context(agent: &str, sizes: &Sizes) -> String {
    let limit = sizes.context_tokens;
    let setting = format!("`agents.{agent}.context_tokens`");
    match sizes.tokens_in.zip(sizes.tokens_out) {
        Some((tokens_in, tokens_out)) => format!(
            "the request of {tokens_in} tokens and the reply of {tokens_out} filled the context (here {limit} tokens); start the server \
             with a larger one, and set {setting}"
        ),
        None => format!(
            "the context is full (here {limit} tokens); start the server with a larger one, and set {setting}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use cliq_coder::Thinking;
    use cliq_protocol::{Object, ToolCall};

    use super::*;

    fn reply(text: &str, has_calls: bool, thought: &str) -> Reply {
        let call = ToolCall {
            id: "1".into(),
            name: "search".into(),
            arguments: Object::new(),
            invalid: None,
            provider_data: None,
        };
        let thinking = Thinking { text: thought.into(), provider_data: None };
        Reply {
            text: text.into(),
            calls: Vec::from_iter(has_calls.then_some(call)),
            thinking: vec![thinking],
        }
    }

    #[test]
    fn only_known_successes_are_answers() {
        use ApiKind::{Anthropic, Gemini, OpenAi};
        use ReplyKind::{Answer, Calls, CutOff, Empty, Refused};
        for (api, reason, with_text, with_calls, with_nothing) in [
            (OpenAi, "stop", Answer, Calls, Empty),
            (OpenAi, "tool_calls", Answer, Calls, Empty),
            (OpenAi, "eos_token", Answer, Calls, Empty),
            (OpenAi, "length", CutOff, CutOff, CutOff),
            (OpenAi, "model_length", CutOff, CutOff, CutOff),
            (OpenAi, "content_filter", CutOff, CutOff, Refused),
            (OpenAi, "sensitive", CutOff, CutOff, Refused),
            (OpenAi, "refusal", Refused, Refused, Refused),
            (OpenAi, "a_new_reason", CutOff, CutOff, CutOff),
            (Anthropic, "end_turn", Answer, Calls, Empty),
            (Anthropic, "tool_use", Answer, Calls, Empty),
            (Anthropic, "max_tokens", CutOff, CutOff, CutOff),
            (Anthropic, "model_context_window_exceeded", CutOff, CutOff, CutOff),
            (Anthropic, "pause_turn", CutOff, CutOff, CutOff),
            (Anthropic, "refusal", Refused, Refused, Refused),
            (Anthropic, "compaction", CutOff, CutOff, CutOff),
            (Gemini, "STOP", Answer, Calls, Empty),
            (Gemini, "MAX_TOKENS", CutOff, CutOff, CutOff),
            (Gemini, "SAFETY", Refused, Refused, Refused),
            (Gemini, "RECITATION", Refused, Refused, Refused),
            (Gemini, "PROHIBITED_CONTENT", Refused, Refused, Refused),
            (Gemini, "OTHER", CutOff, CutOff, CutOff),
        ] {
            let end = end(api, reason).expect("an end");
            let of =
                |text, has_calls| kind(&end, &reply(text, has_calls, "hm"), "openai-api", &Sizes::default());
            assert_eq!(of("Done.", false).0, with_text, "{reason}");
            assert_eq!(of("", true).0, with_calls, "{reason}");
            assert_eq!(of(" \n", false).0, with_nothing, "{reason}");
            let (kind, detail) = of("Done.", false);
            let is_named = detail.as_ref().is_some_and(|detail| !detail.is_empty());
            assert_eq!(is_named, !matches!(kind, Answer | Calls), "{reason}: {detail:?}");
        }
        assert!(
            kind(&End::Unknown("new".into()), &reply("x", false, ""), "a", &Sizes::default())
                .1
                .is_some_and(|d| d.contains("`new`"))
        );
        assert_eq!(end(ApiKind::OpenAi, ""), None);
    }

    #[test]
    fn a_cut_names_the_limit_with_both_numbers_and_its_setting() {
        let sizes = |tokens_in, tokens_out, max_tokens, default_max| Sizes {
            tokens_in,
            tokens_out,
            max_tokens,
            default_max,
            cap: None,
            context_tokens: 8_192,
        };
        let of = |end: End, sizes: Sizes| {
            kind(&end, &reply("Done", false, ""), "openai-api", &sizes).1.unwrap_or_default()
        };
        let own = of(End::Length, sizes(Some(100), Some(60), Some(60), None));
        assert!(own.contains("60 of 60 tokens; raise `agents.openai-api.max_tokens`"), "{own}");
        let capped =
            of(End::Length, Sizes { cap: Some(300), ..sizes(Some(100), Some(300), Some(900), None) });
        assert!(capped.contains("budget and context left 300 tokens"), "{capped}");
        let default = of(End::Length, sizes(Some(100), Some(8_000), None, Some(8_000)));
        assert!(default.contains("8000 of 8000 tokens; set `agents.openai-api.max_tokens`"), "{default}");
        let full = of(End::Length, sizes(Some(8_000), Some(190), None, None));
        assert!(full.contains("8000 tokens and the reply of 190") && full.contains("8192"), "{full}");
        assert!(full.contains("`agents.openai-api.context_tokens`") && !full.contains("raise"), "{full}");
        let server = of(End::Length, sizes(Some(1_000), Some(512), None, None));
        assert!(
            server.contains("after 512 tokens, 1512 with the request") && server.contains("8192"),
            "{server}"
        );
        assert!(server.contains("server's own limit") && !server.contains("raise"), "{server}");
        let unknown = of(End::Length, sizes(None, None, None, None));
        assert!(unknown.contains("server's own limit") && !unknown.contains("raise"), "{unknown}");
        let context = of(End::Context, sizes(Some(1), Some(u64::MAX), Some(9), None));
        assert!(context.contains("context_tokens"), "{context}");
        assert!(!of(End::Length, sizes(Some(u64::MAX), Some(u64::MAX), Some(u64::MAX), None)).is_empty());
    }
}

//! Facts that a server of models reports: context, slots, tools. Warnings about settings that contradict them. Pure.

use std::fmt;

use serde_json::Value;

/// Context of a model on Ollama if neither its settings nor the model choose one.
const OLLAMA_CONTEXT: u64 = 4_096;

/// Facts that a server reported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// Maximum number of tokens of a request and its reply.
    pub context: Option<u64>,
    /// Number of requests that it works on at the same time.
    pub slots: Option<u64>,
    /// Whether the template of the model has tools.
    pub tools: Option<bool>,
    /// Whether the server is Ollama, whose context is a setting of its own.
    is_ollama: bool,
}

impl ServerFacts {
    /// Reads the answer of `llama-server` to `GET /props`. Returns `None` if it is another answer.
    pub(super) fn of_props(props: &Value) -> Option<Self> {
        let context = props.pointer("/default_generation_settings/n_ctx").and_then(Value::as_u64);
        let caps = props.get("chat_template_caps");
        let tools = caps.and_then(|caps| caps.get("supports_tools").and_then(Value::as_bool));
        let slots = props.get("total_slots").and_then(Value::as_u64);
        (context.is_some() || slots.is_some()).then_some(Self { context, slots, tools, is_ollama: false })
    }

    /// Reads the answer of Ollama to `POST /api/show`. Returns `None` if it is another answer.
    pub(super) fn of_show(show: &Value) -> Option<Self> {
        let capabilities = show.get("capabilities")?.as_array()?;
        let tools = capabilities.iter().any(|name| name == "tools");
        let set = show.get("parameters").and_then(Value::as_str).and_then(|text| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix("num_ctx"))?;
            line.trim().parse().ok()
        });
        Some(Self {
            context: Some(set.unwrap_or(OLLAMA_CONTEXT)),
            slots: None,
            tools: Some(tools),
            is_ollama: true,
        })
    }

    /// Reads the entry of a model in the list of vLLM.
    pub(super) fn of_entry(entry: &Value) -> Option<Self> {
        let context = entry.get("max_model_len").and_then(Value::as_u64)?;
        Some(Self { context: Some(context), ..Self::default() })
    }

    /// Returns the settings that contradict the facts. `context_tokens` is what the agent counts with, `wants_tools` whether it has tools by
    /// its settings.
    pub(super) fn warnings(&self, agent: &str, context_tokens: u64, wants_tools: bool) -> Vec<String> {
        let mut all = Vec::new();
        if let Some(context) = self.context.filter(|context| *context < context_tokens) {
            let how = if self.is_ollama {
                " (Ollama's default is small: OLLAMA_CONTEXT_LENGTH or `num_ctx` raises it)"
            } else {
                ""
            };
            all.push(format!(
                "its context has {context} tokens, and `agents.{agent}.context_tokens` is {context_tokens}: start the server with more{how}, or \
                 `cliq settings set agents.{agent}.context_tokens {context}`"
            ));
        }
        if self.tools == Some(false) && wants_tools {
            all.push(format!(
                "the template of the model has no tools: it cannot call them; choose another model, or `cliq settings set agents.{agent}.tools none`"
            ));
        }
        if self.slots == Some(1) {
            all.push(format!(
                "it has one slot, so that phases wait for one another, each for at most `agents.{agent}.reply_timeout`; `max_parallel 1` runs them in turn"
            ));
        }
        all
    }
}

impl fmt::Display for ServerFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let context = self.context.map(|tokens| format!("context {tokens} tokens"));
        let slots =
            self.slots.map(|slots| if slots == 1 { "1 slot".to_owned() } else { format!("{slots} slots") });
        let tools = self.tools.map(|has| if has { "tools" } else { "no tools" }.to_owned());
        let parts: Vec<String> = [context, slots, tools].into_iter().flatten().collect();
        f.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_of_servers_are_read_and_contradictions_named() {
        let props = json!({"default_generation_settings": {"n_ctx": 8192}, "total_slots": 1, "chat_template_caps": {"supports_tools": false}});
        let llama = ServerFacts::of_props(&props).unwrap();
        assert_eq!(llama.to_string(), "context 8192 tokens, 1 slot, no tools");
        assert_eq!(llama.warnings("local", 32_768, true).len(), 3);
        assert_eq!(llama.warnings("local", 8_192, false).len(), 1, "one slot alone");
        let show = json!({"capabilities": ["completion", "tools"], "parameters": "stop \"x\"\nnum_ctx                        16384"});
        assert_eq!(ServerFacts::of_show(&show).unwrap().to_string(), "context 16384 tokens, tools");
        let small = ServerFacts::of_show(&json!({"capabilities": ["completion"]})).unwrap();
        assert!(small.warnings("o", 32_768, true)[0].contains("OLLAMA_CONTEXT_LENGTH"));
        assert_eq!(
            ServerFacts::of_entry(&json!({"id": "m", "max_model_len": 40_960})).unwrap().to_string(),
            "context 40960 tokens"
        );
        for other in [json!({}), json!([]), json!("x"), json!({"error": "not found"})] {
            assert_eq!((ServerFacts::of_props(&other), ServerFacts::of_show(&other)), (None, None));
        }
    }
}

//! Messages to Slack. Reviews have blocks with the link as a button.

use serde_json::{Value, json};

use super::words::sentence;

/// The body that an incoming webhook of Slack takes.
pub(super) fn message(event: &str, payload: &Value) -> Value {
    let text = sentence(event, payload);
    match event {
        "hug_review" | "hug_reminder" | "hug_outcome" => {
            json!({"text": text, "blocks": blocks(event, payload)})
        }
        _ => json!({"text": text}),
    }
}

fn blocks(event: &str, payload: &Value) -> Vec<Value> {
    let text = |key: &str| payload.get(key).and_then(Value::as_str).unwrap_or_default();
    let head = match event {
        "hug_review" => "Review needed",
        "hug_reminder" => "Review still needed",
        _ => "Review over",
    };
    let head: String = format!("{head}: {}", text("phase")).chars().take(150).collect();
    let mut blocks = vec![json!({"type": "header", "text": {"type": "plain_text", "text": head}})];
    let words: String = escaped(text("message")).chars().take(2900).collect();
    blocks.push(json!({"type": "section", "text": {"type": "mrkdwn", "text": words}}));
    let (passed, total) = (payload["checks"]["passed"].as_u64(), payload["checks"]["total"].as_u64());
    let mut facts = vec![format!("team {}", text("team")), format!("for {}", text("reviewer"))];
    if let (Some(passed), Some(total)) = (passed, total) {
        facts.push(format!("{passed} of {total} checks passed"));
    }
    let facts = escaped(&facts.join(" · "));
    blocks.push(json!({"type": "context", "elements": [{"type": "mrkdwn", "text": facts}]}));
    if let Some(link) = payload.get("link").and_then(Value::as_str) {
        let button = json!({"type": "button", "text": {"type": "plain_text", "text": "Open the review"}, "url": link, "style": "primary"});
        blocks.push(json!({"type": "actions", "elements": [button]}));
    }
    blocks
}

/// Text that Slack shows as it is: without links and mentions of others.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_has_its_link_and_mentions_nobody() {
        let payload = json!({"team": "@a/b", "phase": "approval", "reviewer": "ann", "message": "look <!channel> & <http://x|y>",
            "link": "http://h/review/1/2", "checks": {"passed": 1, "total": 2}});
        let message = message("hug_review", &payload);
        assert_eq!(message["blocks"][0]["text"]["text"], "Review needed: approval");
        assert_eq!(message["blocks"][1]["text"]["text"], "look &lt;!channel&gt; &amp; &lt;http://x|y&gt;");
        assert_eq!(message["blocks"][2]["elements"][0]["text"], "team @a/b · for ann · 1 of 2 checks passed");
        assert_eq!(message["blocks"][3]["elements"][0]["url"], "http://h/review/1/2");
    }
}

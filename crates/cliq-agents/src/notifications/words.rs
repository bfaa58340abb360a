//! Events in words.

use serde_json::Value;

/// The event in words.
pub(super) fn sentence(event: &str, payload: &Value) -> String {
    let text = |key: &str| payload.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let team = text("team").unwrap_or("cliq");
    let phase = text("phase").map(|phase| format!(" `{phase}`")).unwrap_or_default();
    let what = match event {
        "on_start" => "the run has started".to_owned(),
        "on_phase_start" => format!("phase{phase} has started"),
        "on_phase_complete" => format!("phase{phase} is done"),
        "on_complete" if phase.is_empty() => "the run is complete".to_owned(),
        "on_complete" => format!("phase{phase} is done"),
        "on_escalate" => format!(
            "a person is needed{}",
            text("phase").map(|p| format!(", in phase `{p}`")).unwrap_or_default()
        ),
        "on_fail" => format!("phase{phase} has failed"),
        "on_cancel" => "the run was cancelled".to_owned(),
        other => format!("{other}{phase}"),
    };
    let mut line = format!("*{team}*: {what}");
    for key in ["message", "reason"] {
        if let Some(more) = text(key) {
            line.push_str("\n> ");
            line.push_str(&more.replace('\n', "\n> "));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_are_described_in_words() {
        let payload = json!({"team": "@a/b", "phase": "dev", "reason": "it\nfails"});
        assert_eq!(
            sentence("on_escalate", &payload),
            "*@a/b*: a person is needed, in phase `dev`\n> it\n> fails"
        );
        assert_eq!(sentence("on_complete", &json!({})), "*cliq*: the run is complete");
        assert_eq!(sentence("help", &json!({"team": "t", "message": "look"})), "*t*: help\n> look");
    }
}

//! Parser for model replies: data, text, and the verdict at a gate. Pure.

use cliq_protocol::shorten;
use cliq_sdk::{Object, Outcome, PhaseName, Verdict};
use serde_json::Value;

use super::code::blocks;
use super::thoughts;

/// A reply, taken apart (docs/models.md).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    /// Last fenced JSON object.
    pub(crate) data: Option<Object>,
    /// The rest.
    pub(crate) text: String,
}

impl Reply {
    /// Parses a reply. Thoughts in it are left out: nothing in them is a verdict or data.
    pub(crate) fn parse(reply: &str) -> Self {
        let reply = thoughts::split(&reply.replace("\r\n", "\n")).text;
        let found = blocks(&reply).into_iter().rev().find_map(|block| {
            let Ok(Value::Object(object)) = serde_json::from_str(&reply[block.content]) else { return None };
            Some((object, block.whole))
        });
        match found {
            Some((data, whole)) => {
                let (before, after) = (&reply[..whole.start], &reply[whole.end..]);
                let rest = [before.trim_end(), after.trim()]
                    .iter()
                    .filter(|part| !part.is_empty())
                    .copied()
                    .collect::<Vec<_>>();
                Self { data: Some(data), text: rest.join("\n\n").trim_start_matches('\n').to_owned() }
            }
            None => Self { data: None, text: reply.trim().to_owned() },
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.data.is_none() && self.text.is_empty()
    }

    /// The verdict in it, which may route to `targets` only. In order: an object that has one, the last line outside of
    /// fences that is one, the last such line at all. A verdict without a reason has the reply's text for one.
    pub(crate) fn verdict(&self, targets: &[PhaseName]) -> Result<Verdict, String> {
        let mut verdict = match self.verdict_in_data()? {
            Some(verdict) => verdict,
            None => self.verdict_in_text().ok_or("no line of it is PASS, ROUTE to a phase, or ESCALATE")?,
        };
        if let Outcome::Route(target) = &verdict.outcome
            && !targets.contains(target)
        {
            let known: Vec<&str> = targets.iter().map(PhaseName::as_str).collect();
            let known = if known.is_empty() { "nowhere".to_owned() } else { known.join(", ") };
            return Err(format!("it routes to `{target}`, and may route to: {known}"));
        }
        if verdict.reason.as_ref().is_none_or(|reason| reason.trim().is_empty()) {
            let text = self.text_without_verdict();
            verdict.reason = Some(if text.is_empty() { "no reason was given".to_owned() } else { text });
        }
        Ok(verdict)
    }

    fn verdict_in_data(&self) -> Result<Option<Verdict>, String> {
        let Some(data) = &self.data else { return Ok(None) };
        let value = match (data.get("verdict"), data.contains_key("outcome")) {
            (Some(Value::String(text)), _) => {
                let read = line_verdict(text).ok_or_else(|| format!("its `verdict` is {text:?}"));
                return read.map(|mut verdict| {
                    if verdict.reason.is_none() {
                        verdict.reason = data.get("reason").and_then(Value::as_str).map(str::to_owned);
                    }
                    Some(verdict)
                });
            }
            (Some(value), _) => value.clone(),
            (None, true) => Value::Object(data.clone()),
            (None, false) => return Ok(None),
        };
        let target = value.get("target").and_then(Value::as_str).unwrap_or_default().trim().to_owned();
        let verdict = Verdict::from_value(value).map_err(|error| error.to_string())?;
        if verdict.outcome == Outcome::Pass && !target.is_empty() {
            // Which of the two was meant is not clear.
            return Err(format!("it is a PASS with the target `{}`: a PASS has none", shorten(&target, 80)));
        }
        Ok(Some(verdict))
    }

    fn verdict_in_text(&self) -> Option<Verdict> {
        let mut fenced = blocks(&self.text).into_iter().peekable();
        let mut offset = 0;
        let (mut outside, mut inside) = (None, None);
        for line in self.text.split_inclusive('\n') {
            let place = offset;
            offset += line.len();
            let Some(verdict) = line_verdict(line) else { continue };
            while fenced.next_if(|block| block.whole.end <= place).is_some() {}
            match fenced.peek().is_some_and(|block| block.whole.contains(&place)) {
                true => inside = Some(verdict),
                false => outside = Some(verdict),
            }
        }
        outside.or(inside)
    }

    fn text_without_verdict(&self) -> String {
        let lines: Vec<&str> = self.text.lines().filter(|line| line_verdict(line).is_none()).collect();
        lines.join("\n").trim().to_owned()
    }
}

/// A line that is a verdict: `PASS`, `ROUTE:dev`, `ROUTE to dev: why`, `ESCALATE: why`; after `VERDICT:` and within the
/// marks that models like to put around it.
fn line_verdict(line: &str) -> Option<Verdict> {
    let is_mark = |c: char| c.is_whitespace() || matches!(c, '*' | '_' | '`' | '#' | '>' | '-' | '"' | '\'');
    let mut line = line.trim_matches(is_mark);
    for label in ["VERDICT", "Verdict", "verdict", "FINAL VERDICT", "Final verdict", "Final Verdict"] {
        if let Some(rest) = line.strip_prefix(label) {
            let rest = rest.trim_start_matches(is_mark);
            if let Some(rest) = rest.strip_prefix(':').or_else(|| rest.strip_prefix('=')) {
                line = rest.trim_start_matches(is_mark);
            }
        }
    }
    for (word, verdict) in [
        ("PASS", Verdict::pass as fn(String) -> Verdict),
        ("ESCALATE", Verdict::escalate as fn(String) -> Verdict),
    ] {
        if let Some(rest) = line.strip_prefix(word) {
            return Some(with_reason(verdict(String::new()), reason(rest)?));
        }
    }
    let rest = line.strip_prefix("ROUTE")?.trim_start_matches(|c: char| is_mark(c) || c == ':' || c == '→');
    let rest = rest.strip_prefix("to ").or_else(|| rest.strip_prefix("TO ")).unwrap_or(rest);
    let rest = rest.trim_start_matches(|c: char| is_mark(c) || c == ':');
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_').unwrap_or(rest.len());
    let name = rest[..end].trim_end_matches(['-', '_']);
    let target = PhaseName::parse(name).ok()?;
    Some(with_reason(Verdict::route(target, String::new()), reason(&rest[name.len()..])?))
}

/// Parses the text after the word of a verdict: nothing, or a separator and a reason. Returns `None` if the word continues, so that
/// it is another word.
fn reason(rest: &str) -> Option<Option<String>> {
    let trimmed =
        rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '`' | '"' | '\''));
    if trimmed.is_empty() || trimmed == "." || trimmed == "!" {
        return Some(None);
    }
    let marks = [':', '-', '–', '—', '(', '.', ',', ';', '='];
    let after = trimmed.strip_prefix(marks)?;
    let text = after.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '`' | '-'));
    Some((!text.is_empty()).then(|| text.to_owned()))
}

fn with_reason(mut verdict: Verdict, reason: Option<String>) -> Verdict {
    verdict.reason = reason;
    verdict
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> PhaseName {
        text.parse().expect("a name")
    }

    fn decide(reply: &str) -> Result<(String, String), String> {
        let verdict = Reply::parse(reply).verdict(&[name("dev"), name("write-docs")])?;
        Ok((verdict.to_string(), verdict.reason.unwrap_or_default()))
    }

    #[test]
    fn the_last_object_is_data_and_the_rest_is_text() {
        let reply =
            Reply::parse("Done.\n\n```json\n{\"a\": 1}\n```\n\nAnd:\n```json\n{\"b\": 2}\n```\nBye.\n");
        assert_eq!(reply.data, serde_json::json!({"b": 2}).as_object().cloned());
        assert_eq!(reply.text, "Done.\n\n```json\n{\"a\": 1}\n```\n\nAnd:\n\nBye.");
        let plain = Reply::parse("Just {\"a\": 1} text\n```sh\nls\n```");
        assert_eq!((plain.data, plain.text.as_str()), (None, "Just {\"a\": 1} text\n```sh\nls\n```"));
        let nested = Reply::parse("````json\n{\"code\": \"```\"}\n````");
        assert_eq!((nested.data.map(|d| d.len()), nested.text.as_str()), (Some(1), ""));
        assert_eq!(Reply::parse("```json\n{\"open\": 1}").data, None);
        assert_eq!(Reply::parse("```json\r\n{\"a\": 1}\r\n```\r\n").data.map(|d| d.len()), Some(1));
    }

    #[test]
    fn verdicts_are_found_in_many_forms() {
        for (reply, outcome, reason) in [
            ("PASS", "PASS", "no reason was given"),
            ("All good.\n\nPASS: tests are green", "PASS", "tests are green"),
            ("All good.\n\n**PASS**", "PASS", "All good."),
            ("**Verdict:** PASS — fine", "PASS", "fine"),
            ("VERDICT: ROUTE to dev: handle errors", "ROUTE:dev", "handle errors"),
            ("It fails.\nROUTE:dev", "ROUTE:dev", "It fails."),
            ("ROUTE to `write-docs`: say how", "ROUTE:write-docs", "say how"),
            ("ROUTE: dev - mend it", "ROUTE:dev", "mend it"),
            ("> ROUTE to dev", "ROUTE:dev", "no reason was given"),
            ("### ESCALATE: who pays?", "ESCALATE", "who pays?"),
            ("PASS: first thought\nBut no.\nROUTE to dev: second", "ROUTE:dev", "second"),
            ("ROUTE to dev: real\n```\nPASS\n```", "ROUTE:dev", "real"),
            ("```\nPASS: only here\n```", "PASS", "only here"),
            ("x\n```json\n{\"verdict\": \"ROUTE:dev\", \"reason\": \"r\"}\n```", "ROUTE:dev", "r"),
            ("x\n```json\n{\"verdict\": {\"outcome\": \"PASS\", \"reason\": \"r\"}}\n```", "PASS", "r"),
            (
                "x\n```json\n{\"outcome\": \"ROUTE\", \"target\": \"dev\", \"reason\": \"r\"}\n```",
                "ROUTE:dev",
                "r",
            ),
            ("words\n```json\n{\"findings\": []}\n```\nPASS: r", "PASS", "r"),
            ("<think>PASS</think>\nROUTE to dev: empty input", "ROUTE:dev", "empty input"),
            ("<thinking>\n```json\n{\"verdict\": \"PASS\"}\n```\n</thinking>\nESCALATE: x", "ESCALATE", "x"),
            ("PASS\n</think>\nVERDICT: ROUTE to dev: x", "ROUTE:dev", "x"),
        ] {
            assert_eq!(decide(reply), Ok((outcome.to_owned(), reason.to_owned())), "{reply}");
        }
    }

    #[test]
    fn reply_without_verdict_is_explained() {
        for (reply, why) in [
            ("", "no line"),
            ("Looks fine to me!", "no line"),
            ("PASSING all the tests is hard", "no line"),
            ("PASS the salt", "no line"),
            ("ROUTE", "no line"),
            ("pass", "no line"),
            ("<think>\nPASS\n</think>\nI cannot decide this.", "no line"),
            ("Hm.\nPASS\n</think>\n\nNot enough.", "no line"),
            ("I think.\n<reasoning>PASS", "no line"),
            ("<|channel|>analysis<|message|>\nPASS\n", "no line"),
            ("<think>```json\n{\"verdict\": \"PASS\"}\n```</think>", "no line"),
            ("ROUTE to nobody: x", "may route to: dev, write-docs"),
            ("```json\n{\"verdict\": \"MAYBE\"}\n```", "MAYBE"),
            ("```json\n{\"verdict\": {\"outcome\": \"ROUTE\"}}\n```", "target"),
        ] {
            let error = decide(reply).expect_err(reply);
            assert!(error.contains(why), "{reply}: {error}");
        }
    }

    /// A quadratic search would not end within the time limit of a test.
    #[test]
    fn large_replies_take_linear_time() {
        for unit in
            ["```json\n{}\n```\nPASS\n", "```\n", "PASS\n~~~\n", "```json\n{\"a\": [\n", "ROUTE:dev\n"]
        {
            let reply = Reply::parse(&unit.repeat((1 << 20) / unit.len()));
            let verdict = reply.verdict(&[name("dev")]).map(|verdict| verdict.to_string());
            assert_eq!(verdict.is_ok(), unit.contains("PASS") || unit.contains("ROUTE"), "{unit:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken_apart(text in "(?s)[`~{}:\"a-zA-Z\n\r* >-]{0,200}|.{0,100}") {
            let reply = Reply::parse(&text);
            let _ = reply.verdict(&[name("dev")]);
            prop_assert!(reply.data.is_some() || reply.text.len() <= text.len());
        }

        #[test]
        fn data_survives_any_text_around_it(before in "[a-z \n.]{0,50}", after in "[a-z \n.]{0,50}", key in "[a-z]{1,8}", value: i64) {
            let object = serde_json::json!({ key: value });
            let reply = Reply::parse(&format!("{before}\n```json\n{object}\n```\n{after}"));
            prop_assert_eq!(reply.data.map(Value::Object), Some(object));
        }
    }
}

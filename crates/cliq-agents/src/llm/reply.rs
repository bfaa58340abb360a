//! Parser for model replies: data, text, and the verdict at a gate. Pure.

use cliq_protocol::{check_unique_keys, shorten};
use cliq_sdk::{Object, Outcome, PhaseName, Verdict};
use serde_json::Value;

use super::code::blocks;
use super::thoughts;

/// Words of a line that speak against the work, before its end or a reason.
const AGAINST: &[&str] = &[
    "BLOCK",
    "BLOCKED",
    "CHANGES REQUESTED",
    "DENIED",
    "DENY",
    "DO NOT PASS",
    "ESCALATE",
    "FAIL",
    "FAILED",
    "FAILS",
    "FAILURE",
    "NO PASS",
    "NOT PASS",
    "NOT PASSED",
    "REJECT",
    "REJECTED",
    "REQUEST CHANGES",
    "REQUEST_CHANGES",
    "ROUTE",
];

/// A reply, taken apart (docs/models.md).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    /// Last fenced JSON object.
    pub(crate) data: Option<Object>,
    /// The rest.
    pub(crate) text: String,
    /// Fenced JSON objects before the last one that say a verdict.
    earlier: Vec<Object>,
    /// Key that an object with a verdict has twice, as an error.
    repeated_key: Option<String>,
}

impl Reply {
    /// Parses a reply. Thoughts in it are left out: nothing in them is a verdict or data.
    pub(crate) fn parse(reply: &str) -> Self {
        let reply = thoughts::split(&reply.replace("\r\n", "\n")).text;
        let mut last = None;
        let (mut earlier, mut repeated_key) = (Vec::new(), None);
        for block in blocks(&reply) {
            let json = &reply[block.content];
            let Ok(Value::Object(object)) = serde_json::from_str(json) else { continue };
            if says_verdict(&object)
                && let Err(error) = check_unique_keys(json.as_bytes())
            {
                repeated_key = Some(error.to_string());
            }
            if let Some((before, _)) = last.replace((object, block.whole))
                && says_verdict(&before)
            {
                earlier.push(before);
            }
        }
        let Some((data, whole)) = last else {
            return Self { data: None, text: reply.trim().to_owned(), earlier, repeated_key };
        };
        let (before, after) = (&reply[..whole.start], &reply[whole.end..]);
        let rest = [before.trim_end(), after.trim()]
            .iter()
            .filter(|part| !part.is_empty())
            .copied()
            .collect::<Vec<_>>();
        let text = rest.join("\n\n").trim_start_matches('\n').to_owned();
        Self { data: Some(data), text, earlier, repeated_key }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.data.is_none() && self.text.is_empty()
    }

    /// The verdict in it, which may route to `targets` only. In order: an object that has one, the last line outside of
    /// fences that is one, the last such line at all. A PASS stands alone: nothing else in the reply is or negates a verdict
    /// (docs/decisions/0091-a-pass-stands-alone.md). A verdict without a reason has the reply's text for one.
    pub(crate) fn verdict(&self, targets: &[PhaseName]) -> Result<Verdict, String> {
        let lines = Lines::read(&self.text);
        let in_data = self.data.as_ref().map_or(Ok(None), verdict_of)?;
        let is_in_text = in_data.is_none();
        let mut verdict = match in_data {
            Some(verdict) => verdict,
            None => lines.last().ok_or("no line of it is PASS, ROUTE to a phase, or ESCALATE")?,
        };
        match &verdict.outcome {
            Outcome::Pass => {
                if let Some(error) = &self.repeated_key {
                    return Err(format!("it is a PASS in an object that says more than one thing: {error}"));
                }
                if let Some(other) = self.contradiction(&lines) {
                    return Err(format!("it says PASS, and `{}` too", shorten(&other, 80)));
                }
                if is_in_text && !lines.has_own_pass {
                    let why = "its PASS stands in a quotation, or in a block that text follows";
                    return Err(why.to_owned());
                }
            }
            Outcome::Route(target) if !targets.contains(target) => {
                let known: Vec<&str> = targets.iter().map(PhaseName::as_str).collect();
                let known = if known.is_empty() { "nowhere".to_owned() } else { known.join(", ") };
                return Err(format!("it routes to `{target}`, and may route to: {known}"));
            }
            Outcome::Route(_) | Outcome::Escalate => {}
        }
        if verdict.reason.as_ref().is_none_or(|reason| reason.trim().is_empty()) {
            let text = self.text_without_verdict();
            verdict.reason = Some(if text.is_empty() { "no reason was given".to_owned() } else { text });
        }
        Ok(verdict)
    }

    /// Returns what a PASS cannot stand beside: another verdict, or a word against the work.
    fn contradiction(&self, lines: &Lines) -> Option<String> {
        let is_pass =
            |object: &&Object| matches!(verdict_of(object), Ok(Some(Verdict { outcome: Outcome::Pass, .. })));
        let object = self.earlier.iter().find(|object| !is_pass(object));
        object.map(|object| Value::Object(object.clone()).to_string()).or_else(|| lines.against.clone())
    }

    fn text_without_verdict(&self) -> String {
        let lines: Vec<&str> = self.text.lines().filter(|line| line_verdict(line).is_none()).collect();
        lines.join("\n").trim().to_owned()
    }
}

/// Whether an object says a verdict, of any form.
fn says_verdict(object: &Object) -> bool {
    object.contains_key("verdict") || object.contains_key("outcome")
}

/// Reads the verdict that an object has: `verdict`, or `outcome` with `target` and `reason`.
fn verdict_of(data: &Object) -> Result<Option<Verdict>, String> {
    let text = |value: &Value, name: &str| {
        value.get(name).and_then(Value::as_str).map(|text| text.trim().to_owned())
    };
    let whole = Value::Object(data.clone());
    let (verdict, mut target) = match data.get("verdict") {
        Some(Value::String(line)) => {
            let mut verdict =
                line_verdict(line).ok_or_else(|| format!("its `verdict` is {:?}", shorten(line, 80)))?;
            if verdict.reason.is_none() {
                verdict.reason = text(&whole, "reason");
            }
            (verdict, text(&whole, "target"))
        }
        Some(value) => {
            let target = text(value, "target");
            (Verdict::from_value(value.clone()).map_err(|error| error.to_string())?, target)
        }
        None if data.contains_key("outcome") => {
            let target = text(&whole, "target");
            (Verdict::from_value(whole.clone()).map_err(|error| error.to_string())?, target)
        }
        None => return Ok(None),
    };
    if verdict.outcome == Outcome::Pass {
        // Which of the two was meant is not clear.
        if let Some(target) = target.take().filter(|target| !target.is_empty()) {
            return Err(format!("it is a PASS with the target `{}`: a PASS has none", shorten(&target, 80)));
        }
        if let Some(outcome) = data.get("outcome").filter(|outcome| outcome.as_str() != Some("PASS")) {
            return Err(format!(
                "its `verdict` is PASS, and its `outcome` is {}",
                shorten(&outcome.to_string(), 80)
            ));
        }
    }
    Ok(Some(verdict))
}

/// Lines of a text that say something about the work.
#[derive(Default)]
struct Lines {
    /// Last verdict outside of fences.
    outside: Option<Verdict>,
    /// Last verdict within fences.
    inside: Option<Verdict>,
    /// Whether a PASS is the model's own: in no quotation, and in no block that text follows.
    has_own_pass: bool,
    /// First line that a PASS cannot stand beside.
    against: Option<String>,
}

impl Lines {
    fn read(text: &str) -> Self {
        let mut fenced = blocks(text).into_iter().peekable();
        let mut lines = Self::default();
        let mut offset = 0;
        // Whether a PASS stands in a fenced block that no text has followed yet.
        let mut has_fenced_pass = false;
        for line in text.split_inclusive('\n') {
            let place = offset;
            offset += line.len();
            while fenced.next_if(|block| block.whole.end <= place).is_some() {}
            let is_fenced = fenced.peek().is_some_and(|block| block.whole.contains(&place));
            has_fenced_pass &= is_fenced || line.trim().is_empty();
            let Some(verdict) = line_verdict(line) else {
                if !is_fenced && is_against(line) {
                    lines.against.get_or_insert_with(|| line.trim().to_owned());
                }
                continue;
            };
            if verdict.outcome != Outcome::Pass {
                lines.against.get_or_insert_with(|| line.trim().to_owned());
            } else if is_fenced {
                has_fenced_pass = true;
            } else if !is_quoted(line) {
                lines.has_own_pass = true;
            }
            *(if is_fenced { &mut lines.inside } else { &mut lines.outside }) = Some(verdict);
        }
        lines.has_own_pass |= has_fenced_pass;
        lines
    }

    /// Returns the last verdict outside of fences, or the last one at all.
    fn last(&self) -> Option<Verdict> {
        self.outside.clone().or_else(|| self.inside.clone())
    }
}

/// Marks that models put around a verdict.
fn is_mark(c: char) -> bool {
    c.is_whitespace() || matches!(c, '*' | '_' | '`' | '#' | '>' | '-' | '"' | '\'')
}

/// Whether a line is a quotation in Markdown.
fn is_quoted(line: &str) -> bool {
    line.chars().take_while(|&c| is_mark(c)).any(|c| c == '>')
}

/// Text of a line after a label such as `VERDICT:`.
fn labelled(line: &str) -> Option<&str> {
    ["VERDICT", "Verdict", "verdict", "FINAL VERDICT", "Final verdict", "Final Verdict"].iter().find_map(
        |label| {
            let rest = line.strip_prefix(label)?.trim_start_matches(is_mark);
            rest.strip_prefix([':', '=']).map(|rest| rest.trim_start_matches(is_mark))
        },
    )
}

/// Whether a line that is no verdict speaks against the work, or names a verdict of another kind: `FAIL: why`, `Verdict: not yet`.
fn is_against(line: &str) -> bool {
    let line = line.trim_matches(is_mark);
    if labelled(line).is_some_and(|rest| !rest.is_empty()) {
        return true;
    }
    let end = line.find(|c: char| !c.is_ascii_uppercase() && c != '_' && c != ' ').unwrap_or(line.len());
    AGAINST.contains(&line[..end].trim_end_matches(['_', ' '])) && reason(&line[end..]).is_some()
}

/// A line that is a verdict: `PASS`, `ROUTE:dev`, `ROUTE to dev: why`, `ESCALATE: why`; after `VERDICT:` and within the
/// marks that models like to put around it.
fn line_verdict(line: &str) -> Option<Verdict> {
    let line = line.trim_matches(is_mark);
    let line = labelled(line).unwrap_or(line);
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
            ("FAIL\nESCALATE: who pays?", "ESCALATE", "who pays?"),
            ("PASS: one\n\nPASS: two", "PASS", "two"),
            ("The log:\n```\nFAIL: test_a\n```\nIt was mended.\nPASS: green", "PASS", "green"),
            ("FAIL fast is what it does now.\nPASS: green", "PASS", "green"),
            ("**Verdict:**\n\nPASS: green", "PASS", "green"),
            ("```\nPASS: only here\n```\n\n```json\n{\"a\": 1}\n```", "PASS", "only here"),
            (
                "```json\n{\"verdict\": \"PASS\"}\n```\n```json\n{\"verdict\": \"PASS\", \"reason\": \"r\"}\n```",
                "PASS",
                "r",
            ),
            (
                "```json\n{\"outcome\": \"PASS\"}\n```\nESCALATE: x\n```json\n{\"outcome\": \"ESCALATE\", \"reason\": \"y\"}\n```",
                "ESCALATE",
                "y",
            ),
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

    #[test]
    fn pass_beside_anything_else_is_explained() {
        for (reply, why) in [
            ("ROUTE to dev: it panics\n\nPASS: on second thought", "`ROUTE to dev: it panics` too"),
            ("ESCALATE\nPASS", "`ESCALATE` too"),
            ("PASS\nFAIL", "`FAIL` too"),
            ("**FAILED** - two tests\nPASS: the rest", "`**FAILED** - two tests` too"),
            ("REJECTED.\nPASS", "`REJECTED.` too"),
            ("VERDICT: FAIL\nPASS: green", "`VERDICT: FAIL` too"),
            ("Verdict: not yet\nPASS: green", "`Verdict: not yet` too"),
            ("CHANGES REQUESTED: names\n\nPASS", "CHANGES REQUESTED"),
            ("DO NOT PASS: names\n\nPASS", "DO NOT PASS"),
            ("The verdicts there are:\n- ROUTE to other\n- ESCALATE\n- PASS", "too"),
            ("ROUTE\nPASS", "`ROUTE` too"),
            ("```\nROUTE to dev: x\n```\nPASS", "`ROUTE to dev: x` too"),
            ("> PASS: said the last reviewer", "quotation"),
            ("I would say\n\n```\nPASS\n```\n\nif the tests ran.", "that text follows"),
            ("```\nPASS\n```\n\nNot yet.\n\n```json\n{\"a\": 1}\n```", "that text follows"),
            (
                "```json\n{\"verdict\": \"ROUTE:dev\"}\n```\n```json\n{\"verdict\": \"PASS\"}\n```",
                "ROUTE:dev",
            ),
            ("```json\n{\"verdict\": \"MAYBE\"}\n```\n```json\n{\"verdict\": \"PASS\"}\n```", "MAYBE"),
            ("```json\n{\"outcome\": \"ESCALATE\"}\n```\n```json\n{\"a\": 1}\n```\nPASS", "ESCALATE"),
            ("ROUTE to dev\n```json\n{\"verdict\": \"PASS\"}\n```", "`ROUTE to dev` too"),
            ("```json\n{\"verdict\": \"ROUTE:dev\", \"verdict\": \"PASS\"}\n```", "`verdict` is there twice"),
            ("```json\n{\"verdict\": \"PASS\", \"target\": \"dev\"}\n```", "a PASS has none"),
            ("```json\n{\"outcome\": \"PASS\", \"target\": \"dev\"}\n```", "a PASS has none"),
            ("```json\n{\"verdict\": \"PASS\", \"outcome\": \"ROUTE\"}\n```", "its `outcome` is"),
            (
                "```json\n{\"verdict\": {\"outcome\": \"PASS\"}, \"outcome\": \"FAIL\"}\n```",
                "its `outcome` is",
            ),
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

        /// Property: a reply with another verdict is never a PASS.
        #[test]
        fn pass_stands_alone(
            parts in prop::collection::vec("[a-z ]{0,20}|PASS|PASS: r|```\n[a-z]{0,5}\n```|> PASS", 0..6),
            other in "ROUTE to dev|ROUTE:dev: x|ESCALATE|ESCALATE: y|FAIL|REJECT: z|VERDICT: FAIL",
            at in 0_usize..7,
        ) {
            let mut parts = parts;
            parts.insert(at.min(parts.len()), other);
            let verdict = Reply::parse(&parts.join("\n\n")).verdict(&[name("dev")]);
            prop_assert!(!verdict.is_ok_and(|verdict| verdict.outcome == Outcome::Pass), "{:?}", parts);
        }
    }
}

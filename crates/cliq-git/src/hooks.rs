//! Hooks that failed, as git itself reports them in its trace.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde::Deserialize;
use tempfile::NamedTempFile;

/// Maximum number of bytes of a trace that are read.
const MAX_TRACE: u64 = 4 << 20;

/// An event of a trace. Others have the same fields or none of them.
#[derive(Deserialize)]
struct Event {
    event: String,
    sid: String,
    child_id: Option<i64>,
    child_class: Option<String>,
    hook_name: Option<String>,
    code: Option<i64>,
}

/// Creates the file into which git writes its trace.
pub(crate) fn trace_file() -> io::Result<NamedTempFile> {
    NamedTempFile::with_prefix("cliq-git-trace-")
}

/// Returns the name of the hook that failed last, or `None` if no hook failed.
pub(crate) fn failed(trace: &Path) -> Option<String> {
    let file = std::fs::File::open(trace).ok()?;
    failed_in(BufReader::new(file.take(MAX_TRACE)))
}

fn failed_in(trace: impl BufRead) -> Option<String> {
    let mut running = Vec::new();
    let mut failed = None;
    for line in trace.split(b'\n').map_while(Result::ok) {
        let Ok(event) = serde_json::from_slice::<Event>(&line) else { continue };
        // A hook may call git itself, whose identifier contains that of its parent.
        if event.sid.contains('/') {
            continue;
        }
        match event.event.as_str() {
            "child_start" if event.child_class.as_deref() == Some("hook") => {
                running.push((event.child_id, event.hook_name.unwrap_or_default()));
            }
            "child_exit" if event.code != Some(0) => {
                if let Some((_, name)) = running.iter().rfind(|(id, _)| *id == event.child_id) {
                    failed = Some(name.clone());
                }
            }
            _ => {}
        }
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_hook_is_found_among_other_children() {
        let trace = r#"{"event":"version","sid":"1","evt":"3"}
{"event":"child_start","sid":"1","child_id":0,"child_class":"hook","hook_name":"pre-commit","argv":["x"]}
{"event":"child_start","sid":"1/2","child_id":0,"child_class":"hook","hook_name":"post-index-change","argv":["x"]}
{"event":"child_exit","sid":"1/2","child_id":0,"code":1}
{"event":"child_exit","sid":"1","child_id":0,"code":CODE}
{"event":"child_start","sid":"1","child_id":1,"child_class":"?","argv":["gpg"]}
{"event":"child_exit","sid":"1","child_id":1,"code":2}
half a li"#;
        let failed = |code: &str| failed_in(trace.replace("CODE", code).as_bytes());
        assert_eq!(failed("1").as_deref(), Some("pre-commit"));
        assert_eq!(failed("0"), None);
    }
}

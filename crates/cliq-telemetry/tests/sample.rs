//! A run with everything that spans are made of.

use cliq_orchestrator::Record;
use cliq_protocol::{PhaseName, TranscriptEntry};
use cliq_telemetry::{Batch, SpanOptions, TraceBuilder};

pub(crate) const JOURNAL: &str = r#"
{"event":"run_started","version":1,"run_id":"r1","team":"@a/b","title":"a secret title","cliq_version":"1","pid":7,"ts":"2026-01-31T10:30:00.000Z"}
{"event":"phase_started","phase":"work","kind":"standard","iteration":1,"ts":"2026-01-31T10:30:00.100Z"}
{"event":"agent_started","phase":"work","iteration":1,"agent":"claude-api","pid":8,"ts":"2026-01-31T10:30:00.200Z"}
{"event":"usage_reported","phase":"work","usage":{"provider":"anthropic","model":"claude-sonnet-4-5","tokens_in":100,"tokens_out":20},"final":true,"ts":"2026-01-31T10:30:05.000Z"}
{"event":"agent_completed","phase":"work","ts":"2026-01-31T10:30:05.100Z"}
{"event":"phase_completed","phase":"work","ts":"2026-01-31T10:30:05.100Z"}
{"event":"phase_started","phase":"check","kind":"gate","iteration":1,"ts":"2026-01-31T10:30:05.200Z"}
{"event":"commands_finished","phase":"check","iteration":1,"results":[{"name":"a","pass":true,"exit_code":0,"duration_ms":300},{"name":"b","pass":false,"exit_code":1,"duration_ms":200}],"ts":"2026-01-31T10:30:06.000Z"}
{"event":"review_waits","phase":"check","iteration":1,"review":{"id":"v1","reviewers":["ada"],"since":"2026-01-31T10:30:06.000Z","until":"2026-02-01T10:30:06.000Z"},"ts":"2026-01-31T10:30:06.000Z"}
{"event":"verdict","gate":"check","iteration":1,"max_iterations":3,"verdict":{"outcome":"ROUTE","target":"work","reason":"a secret reason"},"ts":"2026-01-31T10:31:06.000Z"}
{"event":"phase_started","phase":"work","kind":"standard","iteration":2,"routed_by":"check","ts":"2026-01-31T10:31:06.100Z"}
{"event":"agent_started","phase":"work","iteration":2,"agent":"script","pid":9,"ts":"2026-01-31T10:31:06.200Z"}
{"event":"work_failed","phase":"work","reason":"a secret failure","cause":"timeout","ts":"2026-01-31T10:31:08.000Z"}
{"event":"items_merged","phase":"work","conflict":1,"files":["x"],"ts":"2026-01-31T10:31:08.100Z"}
{"event":"phase_escalated","phase":"work","reason":"a secret failure","ts":"2026-01-31T10:31:08.200Z"}
{"event":"run_finished","status":"ESCALATED","reason":"a secret failure","phase":"work","ts":"2026-01-31T10:31:09.000Z"}
"#;

const TRANSCRIPT: &str = r#"
{"ts":"2026-01-31T10:30:00.300Z","type":"start","version":1,"run_id":"r1","phase":"work","activation":1,"agent":"claude-api","model":"claude-sonnet-4-5"}
{"ts":"2026-01-31T10:30:00.300Z","type":"message","role":"system","text":"a secret role"}
{"ts":"2026-01-31T10:30:00.300Z","type":"message","role":"user","text":"a secret task","origin":"task"}
{"ts":"2026-01-31T10:30:01.300Z","type":"error","message":"a secret error","is_retried":true}
{"ts":"2026-01-31T10:30:02.300Z","type":"message","role":"assistant","text":"a secret answer"}
{"ts":"2026-01-31T10:30:02.300Z","type":"tool_call","id":"c1","name":"read_file","arguments":{"path":"a secret path"}}
{"ts":"2026-01-31T10:30:02.300Z","type":"tool_call","id":"c2","name":"files__list","arguments":{}}
{"ts":"2026-01-31T10:30:02.300Z","type":"usage","usage":{"provider":"anthropic","model":"claude-sonnet-4-5-20250929","tokens_in":60,"tokens_out":12,"tokens_cached":40,"tokens_reasoning":4,"cost_usd":0.01},"duration_ms":900,"kind":"calls"}
{"ts":"2026-01-31T10:30:02.500Z","type":"tool_result","id":"c1","is_error":false,"text":"a secret text","duration_ms":150}
{"ts":"2026-01-31T10:30:02.600Z","type":"tool_result","id":"c2","is_error":true,"text":"a secret text"}
{"ts":"2026-01-31T10:30:04.000Z","type":"message","role":"assistant","text":"a secret end"}
{"ts":"2026-01-31T10:30:04.000Z","type":"usage","usage":{"provider":"anthropic","model":"claude-sonnet-4-5-20250929","tokens_in":40,"tokens_out":8},"duration_ms":1200,"kind":"answer"}
{"ts":"2026-01-31T10:30:04.000Z","type":"end","text":"a secret end"}
"#;

pub(crate) fn records() -> Vec<Record> {
    JOURNAL.trim().lines().map(|line| Record::decode(line.as_bytes()).expect(line)).collect()
}

pub(crate) fn transcript() -> Vec<TranscriptEntry> {
    TRANSCRIPT.trim().lines().map(|line| TranscriptEntry::decode(line.as_bytes()).expect(line)).collect()
}

/// Builds all spans. `cuts` are the positions in the transcript at which its reader pauses.
pub(crate) fn build(options: SpanOptions, cuts: &[usize]) -> Batch {
    let (records, lines) = (records(), transcript());
    let mut builder = TraceBuilder::new(&records[0], options).expect("a run");
    let work = PhaseName::parse("work").expect("a name");
    let mut at = 0;
    for (n, record) in records.iter().enumerate() {
        if n == 4 {
            for cut in cuts.iter().copied().chain([lines.len()]) {
                builder.transcript(&work, 1, at == 0, &lines[at..cut.max(at)]);
                at = cut.max(at);
            }
        }
        builder.observe(record);
    }
    builder.take()
}

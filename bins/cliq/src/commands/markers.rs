//! `cliq markers`

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use cliq_markers::{Handler, Marker, MarkerKind, Scan, scan};
use serde_json::{Value, json};

use crate::args::MarkersArgs;
use crate::failure::Failure;
use crate::ui::{self, paint};

pub(super) fn run(args: &MarkersArgs) -> Result<ExitCode, Failure> {
    if let Some(name) = &args.format {
        return formats(name.as_deref());
    }
    let bytes = match &args.file {
        Some(file) if file != "-" => cliq_fs::read_limited(file, cliq_fs::DEFAULT_FILE_LIMIT)
            .map_err(|error| Failure::usage(error.to_string()))?,
        _ => {
            if args.file.is_none() && std::io::stdin().is_terminal() {
                ui::hint("reading standard input; end it with Ctrl-D");
            }
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes)?;
            bytes
        }
    };
    let text = String::from_utf8_lossy(&bytes);
    let found = scan(&text);
    if args.json {
        ui::json(&document(&found))?
    } else {
        show(&found)?
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the marker formats for prompts: of one marker, or of all.
fn formats(name: Option<&str>) -> Result<ExitCode, Failure> {
    let kinds: Vec<MarkerKind> = match name {
        None => MarkerKind::all().collect(),
        Some(name) => vec![MarkerKind::find(name).ok_or_else(|| {
            let near = cliq_workflow::nearest(&name.to_lowercase(), MarkerKind::all().map(MarkerKind::key));
            let failure = Failure::usage(format!("there is no marker `{name}`"));
            match near.and_then(MarkerKind::find) {
                Some(near) => failure.hint(format!("did you mean `{}`?", near.name())),
                None => failure.hint("`cliq markers --format` shows all"),
            }
        })?],
    };
    let formats: Vec<String> = kinds.into_iter().map(MarkerKind::format).collect();
    ui::raw(formats.join("\n").as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// docs/protocol.md, "Markers".
fn document(found: &Scan<'_>) -> Value {
    let decisive = found.decisive();
    json!({
        "signal": decisive.map_or("unknown", |marker| marker.kind.key()),
        "handler": found.handler().as_str(),
        "decisive": decisive.map(marker),
        "markers": found.markers.iter().map(marker).collect::<Vec<_>>(),
        "malformed": found.malformed,
    })
}

pub(super) fn marker(marker: &Marker<'_>) -> Value {
    json!({
        "signal": marker.kind.key(),
        "name": marker.kind.name(),
        "handler": marker.handler().as_str(),
        "id": marker.id(),
        "subject": (!marker.subject.is_empty()).then_some(&marker.subject),
        "line": marker.line,
        "fenced": marker.fenced,
        "priority": marker.kind.priority(),
        "fields": marker.body(),
        "warnings": marker.warnings(),
    })
}

fn show(found: &Scan<'_>) -> Result<(), Failure> {
    let decisive = found.decisive();
    for marker in &found.markers {
        let decides = decisive.is_some_and(|other| other.line == marker.line);
        let sign = if decides { paint(ui::GREEN, "▸") } else { " ".to_owned() };
        let head = ui::plain(&marker.head());
        let head = if decides { paint(ui::BOLD, head) } else { head };
        ui::line(format!("{sign} line {}: {head}  {}", marker.line, paint(ui::DIM, marker.handler())))?;
        for warning in marker.warnings() {
            ui::line(format!("    {} {}", paint(ui::YELLOW, "warning:"), ui::plain(&warning)))?;
        }
    }
    for malformed in &found.malformed {
        let (line, name, why) = (malformed.line, malformed.name, malformed.why);
        ui::line(format!("  line {line}: {} {name} does not count: {why}", paint(ui::YELLOW, "warning:")))?;
    }
    if decisive.is_none() {
        ui::line(format!("no marker  {}", paint(ui::DIM, Handler::RequestClarification)))?;
    }
    Ok(())
}

//! Folders of Drive, with all that is below them.

use std::collections::BTreeSet;

use camino::Utf8PathBuf;
use serde_json::{Value, json};

use super::{FOLDER, File, SHORTCUT, children, content, explain, export_of, local_name, metadata, stamp};
use crate::entry::Format;
use crate::error::file_error;
use crate::files::inside;
use crate::pulled::{PullDestination, PullResult, Validators, folder_of};
use crate::service::in_parallel;
use crate::{ConnectorError, Context, Entry};

/// Maximum depth of folders.
const DEPTH: usize = 32;

struct FolderEntry {
    path: Utf8PathBuf,
    file: File,
}

/// Fetches a folder. Files that have not changed are not fetched again; those that are gone there go here too.
pub(super) fn pull(
    cx: &Context<'_>,
    folder: &File,
    place: &PullDestination<'_>,
) -> Result<Option<PullResult>, ConnectorError> {
    let dir = folder_of(place);
    let format = place.source.format;
    let mut found = Vec::new();
    let mut visited = BTreeSet::new();
    collect(cx, &folder.id, &Utf8PathBuf::new(), format, &mut visited, &mut found)?;
    crate::folder::check_no_conflicts(found.iter().map(|found| found.path.as_path()))?;
    std::fs::create_dir_all(&dir).map_err(|error| file_error("make", &dir, &error))?;
    (cx.progress)(&format!("{}: {} files", folder.name, found.len()));
    let results = in_parallel(&found, cx.bounds.parallel, |FolderEntry { path, file }| {
        let local = dir.join(path);
        let stamp = stamp(file);
        let shown = cx.shown(&local);
        let before = place.before.and_then(|record| record.entry.more.get("files")?.as_array());
        let before = before
            .and_then(|files| files.iter().find(|entry| entry["file"].as_str() == Some(shown.as_str())));
        if let Some(entry) =
            before.filter(|entry| local.is_file() && !stamp.is_empty() && entry["etag"] == stamp.as_str())
        {
            return Ok(entry.clone());
        }
        let parent = local.parent().unwrap_or(&dir);
        std::fs::create_dir_all(parent).map_err(|error| file_error("make", parent, &error))?;
        let (request, _) = content(cx, file, format)?;
        let download = cx.client.download(&request, parent.as_std_path(), cx.bounds.file, &|_, _| {});
        let download = download.map_err(|error| explain(error.into(), &file.id).within(&file.name))?;
        let download =
            download.ok_or_else(|| ConnectorError::new("Google Drive says that nothing changed"))?;
        let entry = json!({"ref": file.id, "file": shown, "size": download.size, "etag": stamp, "title": file.name, "url": file.web_view_link});
        download.keep(local.as_std_path()).map_err(|error| file_error("write", &local, &error))?;
        Ok(entry)
    });
    let files = results.into_iter().collect::<Result<Vec<Value>, ConnectorError>>()?;
    crate::folder::remove_others(&dir, &found.iter().map(|found| found.path.clone()).collect::<Vec<_>>())?;
    let size = files.iter().filter_map(|file| file["size"].as_u64()).sum();
    let entry = Entry {
        reference: place.source.wanted()?.to_owned(),
        file: cx.shown(&dir),
        size,
        url: folder.web_view_link.clone(),
        ..Entry::default()
    };
    let entry = entry.with("title", folder.name.as_str()).with("count", files.len()).with("files", files);
    Ok(Some(PullResult { entry, validators: Validators::default(), sha256: None }))
}

fn collect(
    cx: &Context<'_>,
    folder: &str,
    path: &Utf8PathBuf,
    format: Format,
    visited: &mut BTreeSet<String>,
    found: &mut Vec<FolderEntry>,
) -> Result<(), ConnectorError> {
    // A shortcut may lead to a folder above.
    if !visited.insert(folder.to_owned()) || path.components().count() > DEPTH {
        return Ok(());
    }
    let room = cx.bounds.files.saturating_sub(found.len());
    for file in children(cx, folder, room)? {
        let is_shortcut = file.mime_type == SHORTCUT;
        let name = file.name.clone();
        let target_is_folder =
            file.shortcut_details.as_ref().and_then(|s| s.target_mime_type.as_deref()) == Some(FOLDER);
        let file = if is_shortcut {
            match metadata(cx, &file.id) {
                // It keeps the name of the shortcut.
                Ok(target) => File { name, ..target },
                Err(error) if error.is_not_found() => {
                    let what = if target_is_folder { "folder" } else { "file" };
                    (cx.progress)(&format!("{name}: its {what} is gone or not shared; left out"));
                    continue;
                }
                Err(error) => return Err(error),
            }
        } else {
            file
        };
        if file.mime_type == FOLDER {
            let below = path.join(local_name(&file, None));
            inside(below.as_str())?;
            collect(cx, &file.id, &below, format, visited, found)?;
            continue;
        }
        let export = export_of(&file.mime_type, format);
        if export.is_none() && file.mime_type.starts_with("application/vnd.google-apps.") {
            (cx.progress)(&format!("{}: Google cannot export {}; left out", file.name, file.mime_type));
            continue;
        }
        let local = path.join(local_name(&file, export.map(|(_, extension)| extension)));
        inside(local.as_str())?;
        found.push(FolderEntry { path: local, file });
    }
    Ok(())
}

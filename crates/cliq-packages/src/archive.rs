//! Archives: a gzipped tar with the files of a team (docs/packages.md, "Format").

use std::io::{Read, Write};

use camino::Utf8PathBuf;
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use tar::{Archive, Builder, EntryType, Header};

use crate::content::{Content, ContentError, File, MAX_ARCHIVE_BYTES, MAX_BYTES, MAX_FILES, check_path};

/// Maximum number of entries that are no files: directories, and headers of long paths.
const MAX_OTHER: usize = MAX_FILES;
/// Bytes of an archive beside its files: headers and padding of each entry.
const MAX_OVERHEAD: u64 = 4096 * (MAX_FILES + MAX_OTHER) as u64;

impl Content {
    /// Packs the files. The same files give the same bytes: entries are sorted and have neither times nor owners.
    ///
    /// # Errors
    /// The archive is larger than a package may be, or two paths cannot be kept together.
    pub fn to_archive(&self) -> Result<Vec<u8>, ContentError> {
        self.check_together()?;
        let packed = self.pack().map_err(|error| ContentError::Archive(error.to_string()))?;
        let bytes = packed.len() as u64;
        if bytes > MAX_ARCHIVE_BYTES { Err(ContentError::ArchiveTooLarge { bytes }) } else { Ok(packed) }
    }

    fn pack(&self) -> std::io::Result<Vec<u8>> {
        let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
        for (path, file) in self.files() {
            let mut header = Header::new_gnu();
            header.set_entry_type(EntryType::Regular);
            header.set_size(file.bytes.len() as u64);
            header.set_mode(if file.executable { 0o755 } else { 0o644 });
            header.set_mtime(0);
            builder.append_data(&mut header, path, file.bytes.as_slice())?;
        }
        let mut encoder = builder.into_inner()?;
        encoder.flush()?;
        encoder.finish()
    }

    /// Unpacks an archive into memory. An archive that grows beyond the limits is given up while it is read, at most [`MAX_BYTES`] in.
    ///
    /// # Errors
    /// The archive is damaged; has an entry that leaves the folder, is hidden, comes twice or is neither file nor directory; or exceeds a
    /// limit.
    pub fn from_archive(bytes: &[u8]) -> Result<Self, ContentError> {
        let size = bytes.len() as u64;
        if size > MAX_ARCHIVE_BYTES {
            return Err(ContentError::ArchiveTooLarge { bytes: size });
        }
        let limited = GzDecoder::new(bytes).take(MAX_BYTES + MAX_OVERHEAD);
        let mut archive = Archive::new(limited);
        let mut content = Self::default();
        let mut others = 0;
        let damaged = |error: std::io::Error| ContentError::Archive(error.to_string());
        // Raw entries: extensions are interpreted here, so that a path is what is checked.
        for entry in archive.entries().map_err(damaged)? {
            let mut entry = entry.map_err(damaged)?;
            let raw = entry.path_bytes().into_owned();
            let path = String::from_utf8(raw).map_err(|error| ContentError::Path {
                path: String::from_utf8_lossy(error.as_bytes()).into_owned(),
                why: "is not UTF-8",
            })?;
            let kind = match entry.header().entry_type() {
                EntryType::Regular | EntryType::Continuous => None,
                EntryType::Directory => {
                    others += 1;
                    if others > MAX_OTHER {
                        return Err(ContentError::TooMany);
                    }
                    let place = path.trim_start_matches("./").trim_end_matches('/');
                    if !place.is_empty() || path.starts_with('/') {
                        check_path(place.into())?;
                    }
                    continue;
                }
                EntryType::Symlink => Some("a symbolic link"),
                EntryType::Link => Some("a hard link"),
                EntryType::Char | EntryType::Block => Some("a device"),
                EntryType::Fifo => Some("a FIFO"),
                EntryType::GNUSparse => Some("a sparse file"),
                _ => Some("an entry of an unknown kind"),
            };
            if let Some(kind) = kind {
                return Err(ContentError::Kind { path, kind });
            }
            content.check_room(entry.size())?;
            let executable = entry.header().mode().map_err(damaged)? & 0o111 != 0;
            let mut bytes = Vec::new();
            (&mut entry).take(content.room() + 1).read_to_end(&mut bytes).map_err(damaged)?;
            content.add(Utf8PathBuf::from(path.trim_start_matches("./")), File { executable, bytes })?;
        }
        // To the end, where the checksum is.
        let mut limited = archive.into_inner();
        std::io::copy(&mut limited, &mut std::io::sink()).map_err(damaged)?;
        if limited.limit() == 0 {
            return Err(ContentError::TooLarge);
        }
        if !limited.into_inner().into_inner().is_empty() {
            return Err(ContentError::Archive("it has bytes behind its end".to_owned()));
        }
        content.check_together()?;
        Ok(content)
    }
}

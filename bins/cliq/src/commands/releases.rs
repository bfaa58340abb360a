//! Releases, as their SHA256SUMS list them, and ways to update a program.

use std::cmp::Ordering;
use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};
use semver::Version;
use serde::Serialize;

/// File that lists what a release has.
pub(super) const SUMS: &str = "SHA256SUMS";

/// Target of the archive for this system.
pub(super) const TARGET: &str = if cfg!(target_os = "macos") {
    if cfg!(target_arch = "aarch64") { "aarch64-apple-darwin" } else { "x86_64-apple-darwin" }
} else if cfg!(target_os = "linux") {
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" }
} else {
    // Releases have none.
    "this system"
};

/// The newest release that is listed for a system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Release {
    /// Address or directory, without credentials.
    pub(super) from: String,
    pub(super) newest: Version,
    pub(super) standing: Standing,
    /// Name of its archive.
    pub(super) archive: String,
}

/// Address or directory of a release. `Display` shows no credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// Address without a slash at its end.
    Address(String),
    Directory(Utf8PathBuf),
}

impl Source {
    /// Parses an argument.
    ///
    /// # Errors
    /// Returns a sentence if it is empty, or an address that cannot be used.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        // The list itself may be named too.
        let text =
            text.strip_suffix(SUMS).filter(|rest| rest.is_empty() || rest.ends_with('/')).unwrap_or(text);
        let shown = cliq_protocol::without_credentials(text);
        match text.split_once("://") {
            _ if text.is_empty() => Err("the address or directory of the release is empty".to_owned()),
            Some((scheme, rest)) if ["http", "https"].contains(&scheme.to_lowercase().as_str()) => {
                if rest.trim_matches('/').is_empty() {
                    return Err(format!("`{shown}` names no host"));
                }
                Ok(Self::Address(format!("{}://{}", scheme.to_lowercase(), rest.trim_end_matches('/'))))
            }
            Some((scheme, _)) => Err(format!(
                "`{shown}`: releases are read over https, http or from a directory, not by {scheme}"
            )),
            None => Ok(Self::Directory(text.into())),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(url) => f.write_str(&cliq_protocol::without_credentials(url)),
            Self::Directory(dir) => write!(f, "{dir}"),
        }
    }
}

/// Standing of a release relative to this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Standing {
    /// The release is newer.
    Newer,
    /// The release is this version.
    Current,
    /// The release is older.
    Older,
    /// The list has only versions before a release, and this program is a release.
    Candidate,
}

impl Release {
    /// Returns a sentence for people.
    pub(super) fn sentence(&self, version: &Version) -> String {
        let Self { from, newest, .. } = self;
        match self.standing {
            Standing::Newer => format!("{newest} is newer than {version}; from {from}"),
            Standing::Current => format!("{newest} is the newest; from {from}"),
            Standing::Older => format!("{newest} is the newest of {from}, and older than {version}"),
            Standing::Candidate => format!("{from} has only {newest}, a version before a release"),
        }
    }
}

/// Returns the newest version in a list of sums that has an archive for `target`. Versions before a release (`1.0.0-rc.1`) count only for a
/// program that is one.
///
/// # Errors
/// Returns a sentence if the list has no such archive, or a line that is none of sums.
pub(super) fn newest(sums: &str, target: &str, version: &Version, from: String) -> Result<Release, String> {
    let mut archives: Vec<(Version, &str)> = Vec::new();
    for (number, line) in sums.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let name = name_of(line).ok_or_else(|| {
            format!("{SUMS} of {from}, line {}: it is no sum with the name of a file", number + 1)
        })?;
        let middle =
            name.strip_prefix("cliq-").and_then(|rest| rest.strip_suffix(&format!("-{target}.tar.gz")));
        let Some(text) = middle else { continue };
        let listed = Version::parse(text)
            .map_err(|error| format!("{SUMS} of {from}, line {}: version {text}: {error}", number + 1))?;
        archives.push((listed, name));
    }
    let is_released = |(listed, _): &&(Version, &str)| listed.pre.is_empty() || !version.pre.is_empty();
    let released = archives.iter().filter(is_released).max();
    let Some((newest, archive)) = released.or_else(|| archives.iter().max()) else {
        return Err(format!("{SUMS} of {from} has no archive for {target}"));
    };
    let standing = match newest.cmp_precedence(version) {
        _ if released.is_none() => Standing::Candidate,
        Ordering::Greater => Standing::Newer,
        Ordering::Equal => Standing::Current,
        Ordering::Less => Standing::Older,
    };
    Ok(Release { archive: (*archive).to_owned(), from, newest: newest.clone(), standing })
}

/// Name of the file in a line of sums: 64 digits, a blank, a blank or `*`, the name.
fn name_of(line: &str) -> Option<&str> {
    let (sum, rest) = line.split_at_checked(64)?;
    let name = rest.strip_prefix("  ").or_else(|| rest.strip_prefix(" *"))?.trim_end();
    let name = name.strip_prefix("./").unwrap_or(name);
    (sum.bytes().all(|byte| byte.is_ascii_hexdigit()) && !name.is_empty()).then_some(name)
}

/// Returns the way to update a program, by its path: each way to install has a place of its own.
pub(super) fn update(program: &Utf8Path, from: Option<&Source>) -> String {
    let has = |part: &str| program.as_str().contains(part);
    if has("/node_modules/") {
        "npm install --global @cliq/cliq@latest".to_owned()
    } else if has("/pipx/venvs/") {
        "pipx upgrade cliq".to_owned()
    } else if has("/uv/tools/") {
        "uv tool upgrade cliq".to_owned()
    } else if has("/Cellar/") {
        "brew upgrade cliq".to_owned()
    } else if has("/.cargo/bin/") {
        "`cargo install` or `cargo binstall`, as it was installed".to_owned()
    } else if program.parent().is_some_and(|dir| dir == "/usr/bin") {
        "install the new deb or rpm over this one, or use the new image".to_owned()
    } else {
        let from = from.map_or("URL".into(), ToString::to_string);
        let to = program.parent().unwrap_or(program);
        format!("`sh install.sh --from {from} --to {to}`, with the install.sh of the release")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn sums(names: &[&str]) -> String {
        names.iter().map(|name| format!("{SUM}  {name}\n")).collect()
    }

    fn found(names: &[&str], version: &str) -> Result<(String, Standing), String> {
        let version = Version::parse(version).unwrap();
        newest(&sums(names), "x86_64-unknown-linux-gnu", &version, "there".to_owned())
            .map(|release| (release.archive, release.standing))
    }

    #[test]
    fn newest_of_several_versions() {
        let names = [
            "cliq-0.9.0-x86_64-unknown-linux-gnu.tar.gz",
            "cliq-0.10.0-x86_64-unknown-linux-gnu.tar.gz",
            "cliq-0.11.0-aarch64-unknown-linux-gnu.tar.gz",
            "cliq-1.0.0-rc.1-x86_64-unknown-linux-gnu.tar.gz",
            "cliq_2.0.0_amd64.deb",
            "install.sh",
        ];
        let (released, candidate) = (names[1].to_owned(), names[3].to_owned());
        assert_eq!(found(&names, "0.9.0"), Ok((released.clone(), Standing::Newer)));
        assert_eq!(found(&names, "0.10.0"), Ok((released.clone(), Standing::Current)));
        assert_eq!(found(&names, "0.10.1"), Ok((released, Standing::Older)));
        assert_eq!(found(&names, "1.0.0-beta.1"), Ok((candidate, Standing::Newer)));
    }

    #[test]
    fn candidates_are_named_and_no_newer_release() {
        let names = ["./cliq-1.0.0-rc.1-x86_64-unknown-linux-gnu.tar.gz"];
        assert_eq!(found(&names, "0.1.0"), Ok((names[0][2..].to_owned(), Standing::Candidate)));
    }

    #[test]
    fn sources_are_addresses_or_directories() {
        let address = |text: &str| Ok(Source::Address(text.to_owned()));
        assert_eq!(Source::parse("HTTPS://host/a/SHA256SUMS"), address("https://host/a"));
        assert_eq!(Source::parse("http://host/"), address("http://host"));
        assert_eq!(Source::parse("../dist/SHA256SUMS"), Ok(Source::Directory("../dist/".into())));
        assert_eq!(Source::parse("https://me:hush@host").unwrap().to_string(), "https://***@host");
        for wrong in ["", " ", "http://", "ftp://host", "file:///x"] {
            assert!(Source::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lists_that_say_nothing_are_errors() {
        let wrong = ["cliq-new-x86_64-unknown-linux-gnu.tar.gz"];
        assert!(found(&wrong, "0.1.0").unwrap_err().contains("line 1: version new"));
        assert!(found(&["install.sh"], "0.1.0").unwrap_err().contains("no archive for"));
        for wrong in
            ["<html>", &format!("{SUM} name"), &format!("{}  name", "z".repeat(64)), &format!("{SUM}  ")]
        {
            let error = newest(wrong, "x", &Version::new(1, 0, 0), "there".to_owned()).unwrap_err();
            assert!(error.contains("line 1"), "{wrong}: {error}");
        }
    }

    #[test]
    fn each_place_has_its_way() {
        for (program, says) in [
            ("/usr/lib/node_modules/@cliq/cliq/node_modules/@cliq/cliq-linux-x64/bin/cliq", "npm install"),
            ("/home/u/.local/share/pipx/venvs/cliq/bin/cliq", "pipx upgrade"),
            ("/home/u/.local/share/uv/tools/cliq/bin/cliq", "uv tool upgrade"),
            ("/opt/homebrew/Cellar/cliq/0.1.0/bin/cliq", "brew upgrade"),
            ("/home/u/.cargo/bin/cliq", "cargo binstall"),
            ("/usr/bin/cliq", "deb or rpm"),
            ("/home/u/.local/bin/cliq", "install.sh --from there --to /home/u/.local/bin"),
        ] {
            let way = update(Utf8Path::new(program), Some(&Source::parse("there").unwrap()));
            assert!(way.contains(says), "{program}: {way}");
        }
    }
}

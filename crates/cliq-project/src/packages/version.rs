//! Raising the version in a team.yml.

use semver::Version;

/// Returns the text of a team.yml with another version. Everything else, comments included, stays. A text without a version gets one
/// below the name. `None` if the text has neither at the beginning of a line.
#[must_use]
pub fn with_version(text: &str, version: &Version) -> Option<String> {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let end_of = |line: &str| if line.ends_with("\r\n") { "\r\n" } else { "\n" };
    if let Some(line) = lines.iter_mut().find(|line| line.starts_with("version:")) {
        let rest = line["version:".len()..].trim_end();
        // A comment begins after a space; a version has none.
        let comment = rest.find(" #").map_or("", |at| &rest[at..]);
        *line = format!("version: {version}{comment}{}", end_of(line));
        return Some(lines.concat());
    }
    let at = lines.iter().position(|line| line.starts_with("name:"))?;
    let end = end_of(&lines[at]);
    if !lines[at].ends_with('\n') {
        lines[at].push_str(end);
    }
    lines.insert(at + 1, format!("version: {version}{end}"));
    Some(lines.concat())
}

#[cfg(test)]
mod tests {
    use super::with_version;

    #[test]
    fn nothing_but_the_version_changes() {
        let next = "1.3.0".parse().unwrap();
        let text = "# a team\nname: \"@a/b\"\nversion: \"1.2.9\" # raised by hand\nphases: []\n";
        assert_eq!(
            with_version(text, &next).unwrap(),
            "# a team\nname: \"@a/b\"\nversion: 1.3.0 # raised by hand\nphases: []\n"
        );
        let text = "name: \"@a/b\"\r\nphases:\r\n  - name: a\r\n    version: 7\r\n";
        assert_eq!(
            with_version(text, &next).unwrap(),
            "name: \"@a/b\"\r\nversion: 1.3.0\r\nphases:\r\n  - name: a\r\n    version: 7\r\n"
        );
        assert_eq!(with_version("name: x", &next).unwrap(), "name: x\nversion: 1.3.0\n");
        assert_eq!(with_version("{name: x}", &next), None);
    }
}

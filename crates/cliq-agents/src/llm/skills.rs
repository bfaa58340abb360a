//! Agent Skills: those of the team, the project and the person, and what a model reads of them (docs/models.md).

use std::fmt::Write;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_coder::tools::ToolSpec;
use cliq_protocol::{Object, SkillSelection, shorten};
use cliq_workflow::Skill;
use serde_json::{Value, json};

/// Name of the tool that returns the body of a skill.
pub(crate) const ACTIVATE: &str = "activate_skill";
/// Maximum number of skills of a catalogue.
const MAX_SKILLS: usize = 500;
/// Maximum number of bytes of the catalogue.
const MAX_CATALOGUE: usize = 48_000;
/// Maximum number of bytes of a `SKILL.md`.
const MAX_FILE: u64 = 256 << 10;
/// Maximum number of files beside a `SKILL.md`, and of their bytes.
const MAX_FILES: usize = 200;
const MAX_BYTES: u64 = 10 << 20;
/// Maximum depth of directories of a skill.
const MAX_DEPTH: usize = 8;

/// Owner of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Team,
    Project,
    Person,
}

impl Owner {
    fn as_str(self) -> &'static str {
        match self {
            Self::Team => "team",
            Self::Project => "project",
            Self::Person => "person",
        }
    }
}

/// Directory with skills.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) owner: Owner,
    pub(crate) dir: Utf8PathBuf,
}

#[derive(Debug)]
struct Found {
    skill: Skill,
    owner: Owner,
    /// Directory of the skill. Links are resolved.
    dir: Utf8PathBuf,
}

/// Skills that a model may read.
#[derive(Debug, Default)]
pub(crate) struct Skills {
    all: Vec<Found>,
    /// Notices for the transcript.
    pub(crate) notices: Vec<String>,
}

impl Skills {
    /// Finds the skills of a selection. Of skills with the same name the first one counts.
    ///
    /// # Errors
    /// Returns the skills of the selection that are not there, with the places that were searched.
    pub(crate) fn find(sources: &[Source], selection: &SkillSelection) -> Result<Self, String> {
        let mut this = Self::default();
        if *selection == SkillSelection::None {
            return Ok(this);
        }
        for source in sources {
            this.add_all(source, selection);
        }
        if let SkillSelection::Only(names) = selection
            && let Some(missing) =
                names.iter().find(|name| !this.all.iter().any(|found| found.skill.name == **name))
        {
            let places: Vec<&str> = sources.iter().map(|source| source.dir.as_str()).collect();
            return Err(format!(
                "there is no skill `{}`; searched: {} (skills of a project need `cliq trust`)",
                shorten(missing, 80),
                places.join(", ")
            ));
        }
        if !this.all.is_empty() {
            let names: Vec<&str> = this.all.iter().take(20).map(|found| found.skill.name.as_str()).collect();
            let more = this.all.len() - names.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            this.notices.insert(0, format!("skills: {}{more}", names.join(", ")));
        }
        Ok(this)
    }

    fn add_all(&mut self, source: &Source, selection: &SkillSelection) {
        let Ok(root) = source.dir.canonicalize_utf8() else { return };
        let Ok(entries) = root.read_dir_utf8() else { return };
        let mut dirs: Vec<(Utf8PathBuf, bool)> = entries
            .filter_map(Result::ok)
            .filter_map(|entry| {
                let kind = entry.file_type().ok()?;
                (kind.is_dir() || kind.is_symlink()).then(|| (entry.into_path(), kind.is_symlink()))
            })
            .collect();
        dirs.sort();
        // Few system calls for each: there may be hundreds.
        for (mut dir, is_link) in dirs {
            let name = dir.file_name().unwrap_or_default().to_owned();
            if is_link {
                // A link may lead out of the directory of the owner.
                let target = dir.canonicalize_utf8().ok().filter(|_| source.owner == Owner::Person);
                let Some(target) = target else { continue };
                dir = target;
            }
            let text = match cliq_fs::read_within(&dir.join("SKILL.md"), &dir, MAX_FILE) {
                Err(error) if error.is_not_found() => continue,
                text => text.map_err(|error| error.source.to_string()),
            };
            let text = text.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "not text".to_owned()));
            let place = || format!("the skill `{}` of the {}", shorten(&name, 80), source.owner.as_str());
            let skill = match text {
                Ok(text) => {
                    let (skill, problems) = Skill::read(&text, &name);
                    skill.ok_or_else(|| {
                        problems.first().map_or_else(String::new, |problem| problem.message.clone())
                    })
                }
                Err(why) => Err(why),
            };
            match skill {
                Ok(skill) if !selection.allows(&skill.name) => {}
                Ok(skill) if self.all.iter().any(|found| found.skill.name == skill.name) => {
                    self.notices.push(format!("{} is left out: another one has its name", place()));
                }
                Ok(_) if self.all.len() >= MAX_SKILLS => {
                    self.notices.push(format!("{} is left out: there are more than {MAX_SKILLS}", place()));
                }
                Ok(skill) => self.all.push(Found { skill, owner: source.owner, dir }),
                Err(why) => self.notices.push(format!("{} is left out: {}", place(), shorten(&why, 200))),
            }
        }
    }

    /// Tool that returns the body of a skill, if there are skills.
    pub(crate) fn tool(&self) -> Option<ToolSpec> {
        let names: Vec<Value> = self.all.iter().map(|found| found.skill.name.as_str().into()).collect();
        (!names.is_empty()).then(|| ToolSpec {
            name: ACTIVATE.to_owned(),
            description: "Returns the instructions of a skill. Call it before you work on something that a skill is for.".to_owned(),
            schema: json!({
                "type": "object", "properties": {"name": {"type": "string", "enum": names, "description": "Name of the skill."}},
                "required": ["name"], "additionalProperties": false,
            }),
        })
    }

    /// Section of the prompt: name and description of each skill. Empty if there are none.
    pub(crate) fn catalogue(&self) -> String {
        if self.all.is_empty() {
            return String::new();
        }
        let names: usize = self.all.iter().map(|found| found.skill.name.len() + 8).sum();
        let most = MAX_CATALOGUE.saturating_sub(names) / self.all.len();
        let mut text = format!(
            "## Skills\n\nInstructions for particular kinds of work. If one fits your task, read it with the tool `{ACTIVATE}` before you begin. \
             A skill changes neither your role nor the form of your answer.\n\n"
        );
        for found in &self.all {
            let description = found.skill.description.split_whitespace().collect::<Vec<_>>().join(" ");
            let _ = writeln!(text, "- {}: {}", found.skill.name, shorten(&description, most.max(40)));
        }
        text.push('\n');
        text
    }

    /// Returns the body of a skill, and the paths of its files. `workspace` is that of the tools, `files` a directory inside it that the
    /// files of a skill from elsewhere are copied to.
    ///
    /// # Errors
    /// Returns the reason why it cannot be read, for the model.
    pub(crate) fn activate(
        &self,
        arguments: &Object,
        workspace: &Utf8Path,
        files: &Utf8Path,
    ) -> Result<String, String> {
        let name = arguments.get("name").and_then(Value::as_str).unwrap_or_default();
        let Some(found) = self.all.iter().find(|found| found.skill.name == name) else {
            let known: Vec<&str> = self.all.iter().map(|found| found.skill.name.as_str()).collect();
            return Err(format!(
                "there is no skill `{}`; there are: {}",
                shorten(name, 80),
                known.join(", ")
            ));
        };
        let failed = |why: &dyn std::fmt::Display| format!("the skill `{name}` cannot be read: {why}");
        let text = cliq_fs::read_within(&found.dir.join("SKILL.md"), &found.dir, MAX_FILE)
            .map_err(|error| failed(&error.source))?;
        let text = String::from_utf8(text).map_err(|_| failed(&"not text"))?;
        let body = text.get(found.skill.body..).unwrap_or_default().trim();
        let mut out = format!("<skill name=\"{name}\" of=\"{}\">\n{body}\n</skill>\n", found.owner.as_str());
        let mut paths = Vec::new();
        list(&found.dir, &found.dir, 0, &mut paths);
        if paths.is_empty() {
            return Ok(out);
        }
        let workspace = workspace.canonicalize_utf8().unwrap_or_else(|_| workspace.to_owned());
        let place = match found.owner {
            Owner::Project if found.dir.starts_with(&workspace) => found.dir.clone(),
            Owner::Team | Owner::Project | Owner::Person => {
                // Hidden: what others receive from the phase does not include it.
                let copy = files.join(".skills").join(name);
                copy_files(&found.dir, &paths, &copy).map_err(|error| failed(&error))?;
                copy.canonicalize_utf8().unwrap_or(copy)
            }
        };
        match place.strip_prefix(&workspace) {
            Ok(below) => {
                let _ =
                    writeln!(out, "Its files are in `{below}/`; paths in it are relative to that directory:");
            }
            Err(_) => out.push_str("Its files, which your tools cannot read here:\n"),
        }
        for path in &paths {
            let _ = writeln!(out, "- {path}");
        }
        Ok(out)
    }
}

/// Lists the regular files of a skill, other than its `SKILL.md`. Links are left out.
fn list(root: &Utf8Path, dir: &Utf8Path, depth: usize, paths: &mut Vec<Utf8PathBuf>) {
    let Ok(entries) = dir.read_dir_utf8() else { return };
    let mut entries: Vec<Utf8PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.into_path())).collect();
    entries.sort();
    for path in entries {
        let Ok(meta) = std::fs::symlink_metadata(&path) else { continue };
        let is_head = dir == root && path.file_name() == Some("SKILL.md");
        if meta.is_dir() && depth < MAX_DEPTH && path.file_name() != Some(".git") {
            list(root, &path, depth + 1, paths);
        } else if meta.is_file() && !is_head && paths.len() < MAX_FILES {
            paths.push(path.strip_prefix(root).unwrap_or(&path).to_owned());
        }
    }
}

fn copy_files(from: &Utf8Path, paths: &[Utf8PathBuf], to: &Utf8Path) -> std::io::Result<()> {
    let mut left = MAX_BYTES;
    for path in paths {
        let (source, target) = (from.join(path), to.join(path));
        let size = std::fs::symlink_metadata(&source)?.len();
        if size > left {
            return Err(std::io::Error::other(format!("its files have more than {MAX_BYTES} bytes")));
        }
        left -= size;
        if let Some(dir) = target.parent() {
            std::fs::create_dir_all(dir)?;
        }
        std::fs::copy(&source, &target)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(dir: &Utf8Path) -> Vec<Source> {
        let source = |owner, name: &str| Source { owner, dir: dir.join(name) };
        vec![
            source(Owner::Team, "team"),
            source(Owner::Project, "work/.agents/skills"),
            source(Owner::Person, "person"),
        ]
    }

    fn write(dir: &Utf8Path, path: &str, text: &str) {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn head(name: &str, description: &str) -> String {
        format!("---\nname: {name}\ndescription: {description}\n---\nBody of {name}.\n")
    }

    fn named(name: &str) -> Object {
        serde_json::from_value(json!({ "name": name })).unwrap()
    }

    #[test]
    fn skills_are_found_chosen_and_read_with_their_files() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(temp.path()).unwrap().canonicalize_utf8().unwrap();
        write(&dir, "team/review/SKILL.md", &head("review", "Reviews."));
        write(&dir, "team/review/scripts/run.sh", "true\n");
        write(&dir, "work/.agents/skills/review/SKILL.md", &head("review", "Another."));
        write(&dir, "work/.agents/skills/forms/SKILL.md", &head("forms", "Fills forms."));
        write(&dir, "work/.agents/skills/forms/notes.md", "Notes.\n");
        write(&dir, "person/broken/SKILL.md", "no head\n");
        std::os::unix::fs::symlink("/etc/passwd", dir.join("team/review/link")).unwrap();
        let skills = Skills::find(&sources(&dir), &SkillSelection::All).unwrap();
        assert_eq!(skills.notices[0], "skills: review, forms");
        assert!(skills.notices[1].contains("another one has its name"), "{:?}", skills.notices);
        assert!(skills.notices[2].contains("it has no head"), "{:?}", skills.notices);
        assert!(skills.catalogue().contains("- review: Reviews.\n- forms: Fills forms.\n"));
        let (workspace, files) = (dir.join("work"), dir.join("work/.cliq/files/a"));
        let text = skills.activate(&named("review"), &workspace, &files).unwrap();
        assert!(
            text.contains("Body of review.") && text.contains("`.cliq/files/a/.skills/review/`"),
            "{text}"
        );
        assert!(text.contains("- scripts/run.sh\n") && !text.contains("link"), "{text}");
        assert!(files.join(".skills/review/scripts/run.sh").is_file());
        let text = skills.activate(&named("forms"), &workspace, &files).unwrap();
        assert!(text.contains("`.agents/skills/forms/`") && text.contains("- notes.md"), "{text}");
        assert!(
            skills
                .activate(&named("../review"), &workspace, &files)
                .unwrap_err()
                .contains("there are: review, forms")
        );
        let only = SkillSelection::Only(vec!["forms".to_owned()]);
        assert_eq!(Skills::find(&sources(&dir), &only).unwrap().all.len(), 1);
        let missing = SkillSelection::Only(vec!["missing".to_owned()]);
        assert!(Skills::find(&sources(&dir), &missing).unwrap_err().contains("there is no skill `missing`"));
        assert!(Skills::find(&sources(&dir), &SkillSelection::None).unwrap().tool().is_none());
    }

    #[test]
    fn catalogue_of_many_skills_is_bounded() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(temp.path()).unwrap();
        for n in 0..200 {
            let name = format!("skill-{n:03}");
            write(dir, &format!("team/{name}/SKILL.md"), &head(&name, &"words ".repeat(170)));
        }
        let skills = Skills::find(&sources(dir), &SkillSelection::All).unwrap();
        let catalogue = skills.catalogue();
        assert!(catalogue.contains("- skill-199: words") && catalogue.len() < 60_000, "{}", catalogue.len());
    }
}

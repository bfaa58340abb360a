//! Teams that the agent offers (docs/a2a.md).

/// The rules of `server.a2a.advertise`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advertise {
    includes: Vec<String>,
    excludes: Vec<String>,
}

impl Advertise {
    /// Reads patterns: `@` (all teams), `@scope`, `@scope/name`, each with `!` before it to leave out.
    ///
    /// # Errors
    /// Names the first that is not a pattern.
    pub fn parse(patterns: &[String]) -> Result<Self, String> {
        let mut rules = Self { includes: Vec::new(), excludes: Vec::new() };
        for pattern in patterns {
            let (list, name) = match pattern.strip_prefix('!') {
                Some(name) => (&mut rules.excludes, name),
                None => (&mut rules.includes, pattern.as_str()),
            };
            let plain = |part: &str| {
                !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
            };
            let right = match name.strip_prefix('@') {
                None => false,
                Some("") => true,
                Some(rest) => {
                    rest.split_once('/').map_or(plain(rest), |(scope, team)| plain(scope) && plain(team))
                }
            };
            if !right {
                return Err(format!(
                    "{pattern:?} is not a pattern: write \"@\", \"@scope\" or \"@scope/name\", with \"!\" before it to leave out"
                ));
            }
            list.push(name.to_owned());
        }
        Ok(rules)
    }

    /// Whether a team, `@scope/name`, is offered: what the included patterns match without what the excluded ones match. Without
    /// an included pattern all teams are included.
    #[must_use]
    pub fn includes(&self, team: &str) -> bool {
        let included = self.includes.is_empty() || self.includes.iter().any(|pattern| matches(pattern, team));
        included && !self.excludes.iter().any(|pattern| matches(pattern, team))
    }
}

fn matches(pattern: &str, team: &str) -> bool {
    pattern == "@" || pattern == team || team.split_once('/').is_some_and(|(scope, _)| scope == pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_seed() {
        let all = ["@cliq/hello-world", "@cliq/code", "@local/blog", "@acme/x"];
        for (patterns, offered) in [
            (vec!["@cliq"], vec!["@cliq/hello-world", "@cliq/code"]),
            (vec!["@"], all.to_vec()),
            (vec![], all.to_vec()),
            (vec!["@local", "@cliq/code"], vec!["@cliq/code", "@local/blog"]),
            (vec!["@cliq", "!@cliq/hello-world"], vec!["@cliq/code"]),
            (vec!["!@local"], vec!["@cliq/hello-world", "@cliq/code", "@acme/x"]),
            (vec!["!@"], vec![]),
            (vec!["@", "!@cliq", "@cliq/code"], vec!["@local/blog", "@acme/x"]),
        ] {
            let rules =
                Advertise::parse(&patterns.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
            let found: Vec<&str> = all.into_iter().filter(|team| rules.includes(team)).collect();
            assert_eq!(found, offered, "{patterns:?}");
        }
        for wrong in ["cliq", "", "!", "@a/b/c", "@a/", "@ a", "!!@a", "@../x/y"] {
            assert!(Advertise::parse(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }
}

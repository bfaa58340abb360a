//! Groups of the provider as scopes of the server.

use cliq_model::Scope;

/// Groups that give a scope. `*` stands for everybody with an account.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupScopes {
    /// Groups with the scope `admin`.
    pub admin: Vec<String>,
    /// Groups with the scope `edit`.
    pub edit: Vec<String>,
    /// Groups with the scope `run`.
    pub run: Vec<String>,
    /// Groups with the scope `read`.
    pub read: Vec<String>,
}

impl GroupScopes {
    /// Returns the greatest scope of a person in these groups, or `None` if no group gives one.
    #[must_use]
    pub fn scope_of(&self, groups: &[String]) -> Option<Scope> {
        let is_in = |listed: &[String]| listed.iter().any(|group| group == "*" || groups.contains(group));
        [
            (&self.admin, Scope::Admin),
            (&self.edit, Scope::Edit),
            (&self.run, Scope::Run),
            (&self.read, Scope::Read),
        ]
        .into_iter()
        .find(|(listed, _)| is_in(listed))
        .map(|(_, scope)| scope)
    }

    /// Whether no group gives a scope.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.admin.is_empty() && self.edit.is_empty() && self.run.is_empty() && self.read.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greatest_scope_counts() {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let groups = GroupScopes {
            admin: list(&["ops"]),
            edit: list(&["authors"]),
            run: list(&["dev", "qa"]),
            read: Vec::new(),
        };
        assert_eq!(groups.scope_of(&list(&["dev", "ops"])), Some(Scope::Admin));
        assert_eq!(groups.scope_of(&list(&["qa"])), Some(Scope::Run));
        assert_eq!(groups.scope_of(&list(&["qa", "authors"])), Some(Scope::Edit));
        assert_eq!(groups.scope_of(&list(&["Dev", ""])), None);
        assert_eq!(groups.scope_of(&[]), None);
        let open = GroupScopes { read: list(&["*"]), ..groups };
        assert_eq!(open.scope_of(&[]), Some(Scope::Read));
    }
}

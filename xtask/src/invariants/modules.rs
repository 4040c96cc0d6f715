//! Rules for the knowledge of modules about each other, by imports and paths.

use crate::syntax::{self, Absolute, Names, Source};

/// Restriction on the names in a module.
struct Rule {
    /// Restricted module, with its submodules.
    within: &'static str,
    /// Crate or module with restricted use.
    of: &'static str,
    /// Permitted names of it; names inside the restricted module are always permitted.
    only: &'static [&'static str],
}

const RULES: &[Rule] = &[
    Rule {
        within: "simulator::cloud",
        of: "simulator",
        only: &["simulator::machine", "simulator::data_plane"],
    },
    Rule {
        within: "simulator::guest",
        of: "simulator",
        only: &[
            "simulator::disruption",
            "simulator::etcd",
            "simulator::json",
            "simulator::data_plane",
        ],
    },
    Rule {
        within: "simulator::runner",
        of: "simulator",
        only: &[
            "simulator::guest::Outside",
            "simulator::guest::outside::Outside",
            "simulator::machine",
            "simulator::data_plane",
        ],
    },
];

/// Violations of a [`Rule`], and unused permissions.
pub(super) fn broken(sources: &[Source], names: &Names) -> Vec<String> {
    let rules = RULES.iter();
    rules
        .flat_map(|rule| rule.broken_by(sources, names))
        .collect()
}

impl Rule {
    fn broken_by(&self, sources: &[Source], names: &Names) -> Vec<String> {
        let mut problems = Vec::new();
        let mut needed = vec![false; self.only.len()];
        for (source, _) in syntax::production(sources) {
            for path in &source.content.paths {
                if !syntax::begins_with(&path.module, self.within) {
                    continue;
                }
                let mut named = names.named(&path.module, &path.path).into_iter();
                let forbidden: Option<Absolute> =
                    named.find(|name| !self.allows(name, &mut needed));
                problems.extend(forbidden.map(|name| {
                    format!(
                        "{}:{}: {}: `{}` may know {} of `{}` (ARCHITECTURE.md)",
                        source.name,
                        path.line,
                        syntax::joined(&name),
                        self.within,
                        self.permissions(),
                        self.of
                    )
                }));
            }
        }
        let unneeded = self.only.iter().zip(needed).filter(|(_, needed)| !needed);
        problems.extend(unneeded.map(|(only, _)| {
            format!(
                "`{}` does not know `{only}`: take it from the rule (xtask/src/invariants/modules.rs)",
                self.within
            )
        }));
        problems
    }

    fn allows(&self, name: &[String], needed: &mut [bool]) -> bool {
        let is_elsewhere = !syntax::begins_with(name, self.of);
        if is_elsewhere || syntax::begins_with(name, self.within) {
            return true;
        }
        let mut only = self.only.iter();
        match only.position(|only| syntax::begins_with(name, only)) {
            Some(index) => {
                needed[index] = true;
                true
            }
            None => false,
        }
    }

    fn permissions(&self) -> String {
        match self.only {
            [] => "nothing".to_owned(),
            only => format!("`{}` alone", only.join("`, `")),
        }
    }
}

#[cfg(test)]
mod tests;

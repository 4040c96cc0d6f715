//! Sections of CHANGELOG.md: one for each version.

/// Problem if the changelog has no section for the version, or an empty one.
pub(crate) fn without_version(changelog: &str, version: &str) -> Option<String> {
    let is_of = |title: &str| {
        let name = title.split_whitespace().next();
        name.is_some_and(|name| name.trim_matches(['[', ']', ',']) == version)
    };
    let mut sections = changelog.split("\n## ").skip(1);
    let Some(section) = sections.find(|section| is_of(section)) else {
        return Some(format!(
            "CHANGELOG.md: no section `## {version}`, which is the version in Cargo.toml"
        ));
    };
    let says_something = section.lines().skip(1).any(|line| line.starts_with("- "));
    (!says_something).then(|| format!("CHANGELOG.md: the section `## {version}` is empty"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_has_a_section_that_says_something() {
        let changelog = "# Changelog\n\n## Unreleased\n\n- 0.3.0\n\n## 0.2.0, not released yet\n\n### up\n\n- New.\n\n## [0.1.0]\n";
        assert_eq!(without_version(changelog, "0.2.0"), None);
        for version in ["0.1.0", "0.3.0", "0.2"] {
            let problem = without_version(changelog, version).unwrap();
            assert!(problem.contains(&format!("`## {version}`")), "{problem}");
        }
    }
}

//! Configuration of the steps after a login: mapped roles, namespaces of projects, and RoleBindings of roles.

use serde::{Deserialize, Deserializer};

mod plan;

pub use plan::{Binding, Bindings, Changes, Wanted, wanted};

/// Maximum size of the configuration in bytes.
pub const LARGEST: usize = 1 << 20;

/// Configuration, under the keys of the Go program.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// [`DataType`]s that a login writes to the cluster.
    #[serde(default, deserialize_with = "null_is_default")]
    pub data_types_to_sync: Vec<DataType>,
    /// Format of a project's namespace: `%i` is the id of the project, `%n` its name, `%d` the id of the user's
    /// domain.
    #[serde(default = "default_format")]
    pub namespace_format: String,
    /// Ids of excluded projects.
    #[serde(default, deserialize_with = "null_is_default")]
    pub projects_blacklist: Vec<String>,
    /// Names of excluded projects.
    #[serde(default, deserialize_with = "null_is_default")]
    pub projects_name_blacklist: Vec<String>,
    /// Mapping of roles to user names and groups.
    #[serde(default, deserialize_with = "null_is_default")]
    pub role_mappings: Vec<RoleMapping>,
}

/// Kinds of objects that a login writes to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataType {
    /// A namespace for each project.
    Projects,
    /// A RoleBinding for each role of a user.
    RoleAssignments,
}

/// Mapping of a role to a user name and groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RoleMapping {
    /// The role.
    #[serde(default)]
    pub keystone_role: String,
    /// Name of users with the role; their own name if empty.
    #[serde(default)]
    pub username: String,
    /// Groups of users with the role.
    #[serde(default, deserialize_with = "null_is_default")]
    pub groups: Vec<String>,
}

/// Error of an unusable configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(String);

impl Default for Config {
    fn default() -> Self {
        Self {
            data_types_to_sync: Vec::new(),
            namespace_format: default_format(),
            projects_blacklist: Vec::new(),
            projects_name_blacklist: Vec::new(),
            role_mappings: Vec::new(),
        }
    }
}

impl Config {
    /// Parses a configuration; an empty text is the default one.
    ///
    /// # Errors
    /// The text is no YAML, has an unknown key, or a format with one namespace for two projects.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if text.len() > LARGEST {
            return Err(Invalid(format!("it has more than {} MiB", LARGEST >> 20)));
        }
        let config: Option<Self> =
            serde_saphyr::from_str(text).map_err(|error| Invalid(one_line(&error.to_string())))?;
        let config = config.unwrap_or_default();
        if !config.namespace_format.contains("%i") {
            return Err(Invalid(
                "namespace-format has no %i, the id of the project: two projects could have one namespace".to_owned(),
            ));
        }
        let text = config
            .namespace_format
            .replace("%i", "")
            .replace("%n", "")
            .replace("%d", "");
        let is_plain =
            |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
        if !text.chars().all(is_plain) {
            return Err(Invalid(format!(
                "namespace-format `{}` has more than letters, digits, `-`, `_`, `.`, %i, %n and %d",
                config.namespace_format
            )));
        }
        if config
            .role_mappings
            .iter()
            .any(|it| it.keystone_role.is_empty())
        {
            return Err(Invalid(
                "an element of role-mappings has no keystone-role".to_owned(),
            ));
        }
        Ok(config)
    }
}

fn default_format() -> String {
    "%i".to_owned()
}

/// First line of an error, with the place; later lines quote the text.
fn one_line(words: &str) -> String {
    words.lines().next().unwrap_or_default().to_owned()
}

fn null_is_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the text is, it is refused in one line, or names the id of the project.
        #[test]
        fn no_text_makes_it_panic(
            key in "(namespace-format|projects-blacklist|data-types-to-sync|role-mappings|[a-z*&!]{1,5})",
            value in "(\"[%a-zA-Z._ -]{0,12}\"|[\\[\\]{}:,&*!|>%\\-a-z0-9\"' ]{0,24})",
            any in ".{0,40}",
        ) {
            for text in [format!("{key}: {value}\n"), format!("{key}:\n- {value}\n"), any] {
                match Config::parse(&text) {
                    Ok(config) => prop_assert!(config.namespace_format.contains("%i")),
                    Err(invalid) => {
                        let words = invalid.to_string();
                        prop_assert!(!words.is_empty() && !words.contains('\n'), "{}", words);
                    }
                }
            }
        }
    }

    #[test]
    fn the_configuration_is_that_of_the_go_program() {
        let text = "data-types-to-sync:\n- projects\n- role_assignments\nnamespace-format: \"prefix-%d-%n-%i\"\n\
            projects-blacklist: [\"id1\"]\nprojects-name-blacklist: [\"admin\"]\n\
            role-mappings:\n- keystone-role: r\n  username: u\n  groups: [\"g\"]\n- keystone-role: s\n  groups:\n";
        let config = Config::parse(text).unwrap();
        assert_eq!(
            config.data_types_to_sync,
            [DataType::Projects, DataType::RoleAssignments]
        );
        assert_eq!(config.namespace_format, "prefix-%d-%n-%i");
        assert_eq!(
            (
                &*config.projects_blacklist[0],
                &*config.projects_name_blacklist[0]
            ),
            ("id1", "admin")
        );
        assert_eq!(config.role_mappings[0].groups, ["g"]);
        assert_eq!(config.role_mappings[1].username, "");
        for empty in ["", "# nothing\n", "role-mappings:\n"] {
            assert_eq!(Config::parse(empty).unwrap(), Config::default(), "{empty}");
        }
    }

    /// Each key of a row is one that there is, and each key has a row.
    #[test]
    fn the_table_in_the_documentation_is_that_of_the_keys() {
        const PAGE: &str = include_str!("../../../docs/guides/keystone-authentication.md");
        let (_, section) = PAGE
            .split_once("\n## Namespaces and RoleBindings\n")
            .unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        let rows = section.lines().filter(|line| line.starts_with("| `"));
        let cells = rows.map(|row| row.split(" | ").next().unwrap());
        let keys: Vec<&str> = cells
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .collect();
        let unknown = serde_json::from_str::<Config>(r#"{"x": 1}"#).unwrap_err();
        let unknown = unknown.to_string();
        let (_, known) = unknown.split_once("expected one of ").unwrap();
        let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        assert_eq!(keys, known);
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_its_place() {
        let large = "#".repeat(LARGEST + 1);
        for (text, words) in [
            ("data-types-to-sync:\n- project\n", "line 2"),
            ("namespace-format: x\n", "has no %i"),
            ("namespace-format: \"%i %n\"\n", "has more than letters"),
            ("namespace-format: \"%i%x\"\n", "has more than letters"),
            ("role-mapping: []\n", "role-mapping"),
            ("role-mappings:\n- groups: [a]\n", "has no keystone-role"),
            ("role-mappings: 1\n", "line 1"),
            ("a: [\n", "line "),
            (&large, "more than 1 MiB"),
        ] {
            let error = Config::parse(text).unwrap_err().to_string();
            assert!(
                error.contains(words) && !error.contains('\n'),
                "{text}: {error}"
            );
        }
    }
}

//! Configuration of a service: sections of options, each with its value and the reason for the value.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Value as written to the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// One value.
    Text(String),
    /// Values separated by commas.
    List(Vec<String>),
    /// The option is repeated for each value.
    Multi(Vec<String>),
    /// Secret: this text, with the password of the account in place of each `{}`.
    Secret {
        /// Text around the password.
        pattern: String,
        /// Account: `database`, `messaging` or `identity`.
        account: &'static str,
    },
    /// Secret in the parameters; the option is repeated for each value.
    Given(Vec<String>),
}

/// Origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Demanded by the structure of the cloud, for the reason in the text; not changeable by the user.
    Structure(&'static str),
    /// Default of ferrostack, changeable by the user; the text is the reason for the difference to the project's
    /// default.
    Default(&'static str),
    /// Field of the parameters.
    Parameter(&'static str),
    /// `services.NAME.config` of the parameters.
    User,
}

impl Source {
    /// Message that the user cannot set the option; `None` if the user can.
    pub(crate) fn forbids(&self) -> Option<String> {
        match self {
            Self::Structure(why) => Some(format!("this option cannot be set: {why}")),
            Self::Parameter(field) => {
                Some(format!("set {field} instead, from which it is derived"))
            }
            Self::Default(_) | Self::User => None,
        }
    }
}

/// [`Value`] with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Value.
    pub value: Value,
    /// Origin of the value.
    pub source: Source,
}

/// Configuration of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    sections: BTreeMap<String, BTreeMap<String, Setting>>,
}

impl Config {
    /// Sets an option, in place of an earlier value.
    pub fn set(&mut self, section: &str, name: &str, value: Value, source: Source) {
        self.sections
            .entry(section.to_owned())
            .or_default()
            .insert(name.to_owned(), Setting { value, source });
    }

    /// [`Setting`] of an option.
    pub fn get(&self, section: &str, name: &str) -> Option<&Setting> {
        self.sections.get(section)?.get(name)
    }

    /// All options: section, name, setting.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str, &Setting)> {
        self.sections.iter().flat_map(|(section, options)| {
            options
                .iter()
                .map(move |(name, setting)| (section.as_str(), name.as_str(), setting))
        })
    }

    /// Keeps only these options.
    pub(crate) fn retain(&mut self, wanted: impl Fn(&str, &str) -> bool) {
        for (section, options) in &mut self.sections {
            options.retain(|name, _| wanted(section, name));
        }
    }

    /// Replaces the user in every login of the account: in URLs, and as the `username` of sections with its password.
    pub(crate) fn log_in_as(&mut self, account: &str, user: &str, other: &str) {
        for options in self.sections.values_mut() {
            let mut has_password = false;
            for setting in options.values_mut() {
                let Value::Secret {
                    pattern,
                    account: of,
                } = &mut setting.value
                else {
                    continue;
                };
                if *of == account {
                    has_password = true;
                    *pattern = pattern.replace(&format!("//{user}:"), &format!("//{other}:"));
                }
            }
            let username = options.get_mut("username").filter(|_| has_password);
            if let Some(username) = username.filter(|it| it.value == Value::text(user)) {
                username.value = Value::text(other);
            }
        }
    }

    /// File without secrets. oslo.config merges the file of the secrets.
    pub fn public(&self) -> String {
        self.render(
            |_, setting| !setting.value.is_secret(),
            |_, _| String::new(),
        )
    }

    /// File of the secrets; `password` returns the password of an account.
    pub fn secret(&self, password: impl Fn(&'static str) -> String) -> String {
        self.render(
            |_, setting| setting.value.is_secret(),
            // A `$` would refer to another option.
            |pattern, account| pattern.replace("{}", &password(account).replace('$', "$$")),
        )
    }

    fn render(
        &self,
        wanted: impl Fn(&str, &Setting) -> bool,
        secret: impl Fn(&str, &'static str) -> String,
    ) -> String {
        let mut text = String::new();
        for (section, options) in &self.sections {
            let mut lines = options
                .iter()
                .filter(|(name, setting)| wanted(name, setting))
                .peekable();
            if lines.peek().is_none() {
                continue;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            let _ = writeln!(text, "[{section}]");
            for (name, setting) in lines {
                for value in setting.value.lines(&secret) {
                    let _ = writeln!(text, "{name} = {value}");
                }
            }
        }
        text
    }
}

impl Value {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// True if the value has to be in a Secret.
    pub fn is_secret(&self) -> bool {
        matches!(self, Self::Secret { .. } | Self::Given(_))
    }

    /// Value with each password as `********`.
    pub fn masked(&self) -> String {
        if let Self::Given(_) = self {
            return "********".to_owned();
        }
        self.lines(|pattern, _| pattern.replace("{}", "********"))
            .join(", ")
    }

    fn lines(&self, secret: impl Fn(&str, &'static str) -> String) -> Vec<String> {
        match self {
            Self::Text(text) => vec![text.clone()],
            Self::List(items) => vec![items.join(",")],
            Self::Multi(items) | Self::Given(items) => items.clone(),
            Self::Secret { pattern, account } => vec![secret(pattern, account)],
        }
    }
}

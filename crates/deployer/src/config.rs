//! The configuration of a service: sections of options, each with its value and the reason for it.

use std::collections::BTreeMap;
use std::fmt::Write;

/// A value as it is written to the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// One value.
    Text(String),
    /// Values separated by commas.
    List(Vec<String>),
    /// The option is repeated for each value.
    Multi(Vec<String>),
    /// A secret: this text, in which each `{}` is the password of the account.
    Secret {
        /// The text around the password.
        pattern: String,
        /// The account: `database`, `messaging` or `identity`.
        account: &'static str,
    },
    /// A secret that the parameters hold; the option is repeated for each value.
    Given(Vec<String>),
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The structure of the cloud demands it; the text says why. It cannot be set by the user.
    Structure(&'static str),
    /// Our default, which the user can change; the text says why it is not the project's.
    Default(&'static str),
    /// The field of the parameters.
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

/// A value and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The value.
    pub value: Value,
    /// Where it comes from.
    pub source: Source,
}

/// The configuration of a service.
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

    /// The setting of an option.
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

    /// Another user in every login with the account: in URLs, and as the `username` of sections with its password.
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

    /// The file without its secrets, which are in a file of their own: oslo.config merges both.
    pub fn public(&self) -> String {
        self.render(
            |_, setting| !setting.value.is_secret(),
            |_, _| String::new(),
        )
    }

    /// The file of the secrets; `password` gives the password of an account.
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

    /// True if it has to be in a Secret.
    pub fn is_secret(&self) -> bool {
        matches!(self, Self::Secret { .. } | Self::Given(_))
    }

    /// The value with each password as `********`.
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

//! Values of options: accepted values of each type, as in oslo.config.

use std::net::IpAddr;

use regex::Regex;
use serde_json::Value as Json;

use super::{Kind, OptionEntry};
use crate::config::Value;

impl OptionEntry {
    /// [`Value`] as written to a configuration file.
    ///
    /// # Errors
    /// A phrase that follows the name of the option: `is not an integer`, `is below 1`.
    pub fn value(&self, json: &Json) -> Result<Value, String> {
        match (self.kind, json) {
            (_, Json::Null) => Err("has no value; remove the line to get the default".to_owned()),
            (Kind::List | Kind::Multi, Json::Array(items)) => {
                let items: Result<Vec<String>, String> =
                    items.iter().map(|item| self.text(item)).collect();
                Ok(match (self.kind, self.bounds) {
                    (Kind::Multi, _) => Value::Multi(items?),
                    (_, true) => Value::Text(format!("[{}]", items?.join(","))),
                    _ => Value::List(items?),
                })
            }
            (Kind::Dict, Json::Object(pairs)) => pairs
                .iter()
                .map(|(key, value)| Ok(format!("{}:{}", line(key.clone())?, scalar(value)?)))
                .collect::<Result<Vec<String>, String>>()
                .map(Value::List),
            (_, Json::Array(_)) => Err(format!("is a list; it takes {}", self.takes())),
            (_, Json::Object(_)) => Err(format!("is a map; it takes {}", self.takes())),
            (Kind::Multi, one) => Ok(Value::Multi(vec![self.text(one)?])),
            (_, one) => Ok(Value::Text(self.bounded(self.text(one)?))),
        }
    }

    /// Text of a list, in required brackets.
    fn bounded(&self, text: String) -> String {
        match self.bounds && !text.starts_with('[') {
            true => format!("[{text}]"),
            false => text,
        }
    }

    fn text(&self, json: &Json) -> Result<String, String> {
        let text = scalar(json)?;
        // `$name` refers to another option: its value is known to the service only.
        if !text.contains('$') || self.kind == Kind::Boolean {
            self.judge(&text)?;
        }
        Ok(match (self.kind, json) {
            (Kind::Boolean, _) => if truth(&text) == Some(true) {
                "true"
            } else {
                "false"
            }
            .to_owned(),
            _ => text,
        })
    }

    fn judge(&self, text: &str) -> Result<(), String> {
        let wrong = || format!("is `{text}`; it takes {}", self.takes());
        match self.kind {
            Kind::Boolean => truth(text).map(|_| ()).ok_or_else(wrong)?,
            Kind::Integer => self.within(text.parse::<i64>().map_err(|_| wrong())? as f64, text)?,
            Kind::Float => self.within(text.parse::<f64>().map_err(|_| wrong())?, text)?,
            Kind::Port => {
                let port: u16 = text.parse().map_err(|_| wrong())?;
                self.within(f64::from(port), text)?;
            }
            Kind::Address => drop(text.parse::<IpAddr>().map_err(|_| wrong())?),
            Kind::Host => host(text).then_some(()).ok_or_else(wrong)?,
            Kind::Uri => self.scheme(text).then_some(()).ok_or_else(wrong)?,
            Kind::String | Kind::List | Kind::Dict | Kind::Multi | Kind::Range => {}
        }
        self.form(text)?;
        let chosen =
            |choice: &Json| scalar(choice).is_ok_and(|choice| choice.eq_ignore_ascii_case(text));
        if self.choices.is_empty() || self.choices.iter().any(chosen) {
            Ok(())
        } else {
            Err(wrong())
        }
    }

    /// True if a URI has a scheme permitted by the option.
    fn scheme(&self, text: &str) -> bool {
        let scheme = text.split_once(':').map(|(scheme, _)| scheme);
        scheme.is_some_and(|it| self.schemes.is_empty() || self.schemes.iter().any(|one| one == it))
    }

    /// Checks the length of a text, and its pattern.
    fn form(&self, text: &str) -> Result<(), String> {
        if let Some(most) = self.max_length.filter(|most| text.chars().count() > *most) {
            return Err(format!("has more than {most} characters"));
        }
        // A test compiles every pattern of the tables.
        let pattern = self
            .pattern
            .as_deref()
            .and_then(|it| Some((it, Regex::new(it).ok()?)));
        match pattern.filter(|(_, regex)| !regex.is_match(text)) {
            Some((pattern, _)) => Err(format!("is `{text}`; it does not match {pattern}")),
            None => Ok(()),
        }
    }

    fn within(&self, number: f64, text: &str) -> Result<(), String> {
        if let Some(min) = self.min.filter(|min| number < *min) {
            return Err(format!("is {text}; the lowest value is {min}"));
        }
        if let Some(max) = self.max.filter(|max| number > *max) {
            return Err(format!("is {text}; the highest value is {max}"));
        }
        Ok(())
    }

    /// Description of the accepted values: `an integer from 0 to 65535`, `iso9660 or vfat`.
    pub fn takes(&self) -> String {
        if !self.choices.is_empty() {
            let names: Vec<String> = self
                .choices
                .iter()
                .filter_map(|it| scalar(it).ok())
                .collect();
            return format!("one of: {}", names.join(", "));
        }
        let kind = match self.kind {
            Kind::String => "a string",
            Kind::Integer => "an integer",
            Kind::Boolean => "true or false",
            Kind::Float => "a number",
            Kind::List => "a list",
            Kind::Dict => "a map",
            Kind::Port => "a port",
            Kind::Uri if !self.schemes.is_empty() => {
                return format!("a URI of {}", self.schemes.join(", "));
            }
            Kind::Uri => "a URI",
            Kind::Multi => "one or more strings",
            Kind::Host => "a host name or IP address",
            Kind::Address => "an IP address",
            Kind::Range => "a range such as 1-5",
        };
        match (self.min, self.max) {
            (Some(min), Some(max)) => format!("{kind} from {min} to {max}"),
            (Some(min), None) => format!("{kind}, at least {min}"),
            (None, Some(max)) => format!("{kind}, at most {max}"),
            (None, None) => kind.to_owned(),
        }
    }
}

/// A scalar as text. A line break would end the option in the file.
fn scalar(json: &Json) -> Result<String, String> {
    let text = match json {
        Json::String(text) => text.clone(),
        Json::Bool(truth) => truth.to_string(),
        Json::Number(number) => number.to_string(),
        Json::Null => String::new(),
        Json::Array(_) | Json::Object(_) => {
            return Err("holds a list or a map in a list".to_owned());
        }
    };
    line(text)
}

/// Text without line breaks, for every reader of lines.
fn line(text: String) -> Result<String, String> {
    let breaks = |it: char| it.is_control() && it != '\t' || matches!(it, '\u{2028}' | '\u{2029}');
    if text.contains(breaks) {
        return Err("holds a line break or another control character".to_owned());
    }
    Ok(text)
}

/// Words accepted by oslo.config as a truth value.
fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "on" | "yes" => Some(true),
        "false" | "0" | "off" | "no" => Some(false),
        _ => None,
    }
}

fn host(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
        || (!text.is_empty()
            && text.len() <= 253
            && text
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_')))
}

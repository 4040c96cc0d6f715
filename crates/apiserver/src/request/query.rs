//! Query parameters.

use std::num::{IntErrorKind, ParseIntError};

use crate::error::ApiError;

/// Parameters of a query string in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self(pairs.into_owned().collect())
    }

    /// First non-empty value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut found = self.0.iter().filter(|(key, _)| key == name);
        found
            .find(|(_, value)| !value.is_empty())
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// As in Go's conversion, any value but `false` and `0` is true.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.all(name)
            .next()
            .is_some_and(|value| !matches!(value.to_lowercase().as_str(), "false" | "0"))
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| {
            ApiError::bad_request(format!(
                "strconv.ParseInt: parsing {text:?}: invalid syntax"
            ))
        })
    }

    /// Number, possibly negative.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|error: ParseIntError| {
            let why = match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
        })
    }

    /// `resourceVersion` of a list.
    pub(crate) fn revision(&self) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.get("resourceVersion") else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| {
            ApiError::bad_request(format!(
                "invalid resource version: resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
            ))
        })
    }

    /// `dryRun`; the only valid value is `All`.
    pub(crate) fn dry_run(&self, kind: &str) -> Result<bool, ApiError> {
        let mut dry = false;
        for value in self.all("dryRun") {
            match value {
                "All" => dry = true,
                other => {
                    let error = apimachinery::schema::FieldError::not_supported(
                        "dryRun",
                        &serde_json::json!([other]),
                        &["All".to_owned()],
                    );
                    return Err(ApiError::invalid("meta.k8s.io", kind, "", &[error]));
                }
            }
        }
        Ok(dry)
    }
}

//! Field errors, in the words of kube-apiserver (`k8s.io/apimachinery/pkg/util/validation/field`).

use serde_json::Value;

use super::go::{go_quote, go_value};

/// Beginning of the only message with a path at the end.
pub(super) const UNCORRELATABLE: &str =
    "oldSelf cannot be used on the uncorrelatable portion of the schema within ";

/// Reason for the rejection of a field: the `reason` of a `StatusCause`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A value that must be unique is a duplicate.
    Duplicate,
    /// The field may not be set or changed.
    Forbidden,
    /// The value is invalid.
    Invalid,
    /// The object named by the field does not exist.
    NotFound,
    /// The value is not in the enumeration.
    NotSupported,
    /// The field is missing.
    Required,
    /// The text is longer than allowed.
    TooLong,
    /// There are more items than allowed.
    TooMany,
    /// The value has the wrong JSON type.
    TypeInvalid,
    /// The rule itself could not be evaluated.
    Internal,
}

impl Reason {
    /// Returns the `reason` of a `StatusCause`: `FieldValueInvalid` and so on.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::Invalid => "FieldValueInvalid",
            Self::NotFound => "FieldValueNotFound",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Required => "FieldValueRequired",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
        }
    }
}

/// Violation of a rule. `Display` prints `path: message`, as in the message of a `Status`; `message` alone is the one
/// of the `StatusCause`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Field, such as `spec.list[0].name`; empty for the object itself (see [`Self::field`]).
    pub path: String,
    /// Kind of violation, value and detail: `Invalid value: "x": must be shorter`.
    pub message: String,
    /// Machine-readable reason.
    pub reason: Reason,
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = if self.path.is_empty() {
            "<nil>"
        } else {
            &self.path
        };
        write!(f, "{path}: {}", self.message)
    }
}

impl std::error::Error for FieldError {}

impl FieldError {
    /// Returns the `field` of the `StatusCause`: the path, or `<nil>` for the object itself.
    pub fn field(&self) -> &str {
        if self.path.is_empty() {
            "<nil>"
        } else {
            &self.path
        }
    }

    /// Moves the error below an enclosing value: `spec.name` under `items[0]` becomes `items[0].spec.name`. A path at
    /// the end of the message is prefixed, too.
    #[must_use]
    pub fn under(mut self, prefix: &str) -> Self {
        if let Some((before, named)) = self.message.rsplit_once(UNCORRELATABLE)
            && self.reason == Reason::Invalid
        {
            let named = joined(prefix, if named == "<nil>" { "" } else { named });
            self.message = format!("{before}{UNCORRELATABLE}{named}");
        }
        self.path = joined(prefix, &self.path);
        self
    }

    /// Returns `Invalid value: <value>: <detail>`.
    pub fn invalid(path: impl Into<String>, value: &Value, detail: impl AsRef<str>) -> Self {
        Self::with_value(path, Reason::Invalid, value, detail.as_ref())
    }

    /// Returns `Invalid value: <detail>`, without the value.
    pub fn invalid_unprinted(path: impl Into<String>, detail: impl AsRef<str>) -> Self {
        Self::plain(path, Reason::Invalid, detail.as_ref())
    }

    /// Returns `Invalid value: <value>: <detail>` for a wrong JSON type.
    pub fn type_invalid(path: impl Into<String>, value: &Value, detail: impl AsRef<str>) -> Self {
        Self::with_value(path, Reason::TypeInvalid, value, detail.as_ref())
    }

    /// Returns `Duplicate value: <value>`.
    pub fn duplicate(path: impl Into<String>, value: &Value) -> Self {
        Self::with_value(path, Reason::Duplicate, value, "")
    }

    /// Returns `Not found: <value>`.
    pub fn not_found(path: impl Into<String>, value: &Value) -> Self {
        Self::with_value(path, Reason::NotFound, value, "")
    }

    /// Returns `Required value: <detail>`; the detail may be empty.
    pub fn required(path: impl Into<String>, detail: impl AsRef<str>) -> Self {
        Self::plain(path, Reason::Required, detail.as_ref())
    }

    /// Returns `Forbidden: <detail>`.
    pub fn forbidden(path: impl Into<String>, detail: impl AsRef<str>) -> Self {
        Self::plain(path, Reason::Forbidden, detail.as_ref())
    }

    /// Returns `Internal error: <detail>`.
    pub fn internal(path: impl Into<String>, detail: impl AsRef<str>) -> Self {
        Self::plain(path, Reason::Internal, detail.as_ref())
    }

    /// Returns `Unsupported value: <value>: supported values: "a", "b"`.
    pub fn not_supported(path: impl Into<String>, value: &Value, supported: &[String]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|v| go_quote(v)).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Self::with_value(path, Reason::NotSupported, value, &detail)
    }

    /// Returns `Too long: may not be more than <max> bytes`.
    pub fn too_long(path: impl Into<String>, max: i64) -> Self {
        let detail = match max {
            1 => "may not be more than 1 byte".into(),
            max if max >= 0 => format!("may not be more than {max} bytes"),
            _ => "value is too long".to_owned(),
        };
        Self::plain(path, Reason::TooLong, &detail)
    }

    /// Returns `Too many: <actual>: must have at most <max> items`.
    pub fn too_many(path: impl Into<String>, actual: i64, max: i64) -> Self {
        let detail = match max {
            1 => "must have at most 1 item".into(),
            max if max >= 0 => format!("must have at most {max} items"),
            _ => "has too many items".into(),
        };
        if actual >= 0 {
            Self::with_value(path, Reason::TooMany, &Value::from(actual), &detail)
        } else {
            Self::plain(path, Reason::TooMany, &detail)
        }
    }

    fn with_value(path: impl Into<String>, reason: Reason, value: &Value, detail: &str) -> Self {
        let label = label(reason);
        let value = go_value(value);
        let message = if detail.is_empty() {
            format!("{label}: {value}")
        } else {
            format!("{label}: {value}: {detail}")
        };
        Self {
            path: path.into(),
            message,
            reason,
        }
    }

    fn plain(path: impl Into<String>, reason: Reason, detail: &str) -> Self {
        let label = label(reason);
        let message = if detail.is_empty() {
            label.to_owned()
        } else {
            format!("{label}: {detail}")
        };
        Self {
            path: path.into(),
            message,
            reason,
        }
    }
}

fn label(reason: Reason) -> &'static str {
    match reason {
        Reason::Duplicate => "Duplicate value",
        Reason::Forbidden => "Forbidden",
        Reason::Invalid | Reason::TypeInvalid => "Invalid value",
        Reason::NotFound => "Not found",
        Reason::NotSupported => "Unsupported value",
        Reason::Required => "Required value",
        Reason::TooLong => "Too long",
        Reason::TooMany => "Too many",
        Reason::Internal => "Internal error",
    }
}

/// Joins two paths; either may be empty.
fn joined(prefix: &str, path: &str) -> String {
    if prefix.is_empty() || path.is_empty() || path.starts_with('[') {
        format!("{prefix}{path}")
    } else {
        format!("{prefix}.{path}")
    }
}

//! Label and field selectors, as `labelSelector` and `fieldSelector` of a list or watch request.
//!
//! Grammar and messages: `k8s.io/apimachinery/pkg/labels` and `pkg/fields`.

use serde_json::Value;

/// Why a selector was refused. The message is fit for a `Status` of reason `BadRequest`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    /// What was wrong, in kube-apiserver's words.
    pub message: String,
}

/// A parsed label selector: every requirement must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {}

impl LabelSelector {
    /// Parses the query-string form: `a=b,c!=d,e in (f,g),h notin (i),j,!k`. The empty string selects everything.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        if text.is_empty() {
            Ok(Self::default())
        } else {
            Err(ParseError {
                message: "not built yet".into(),
            })
        }
    }

    /// Parses the object form, `{"matchLabels": {..}, "matchExpressions": [..]}`. An empty object selects everything.
    pub fn from_object(_selector: &Value) -> Result<Self, ParseError> {
        Err(ParseError {
            message: "not built yet".into(),
        })
    }

    /// Whether an object with these labels (the value of `metadata.labels`, or null) is selected.
    pub fn matches(&self, _labels: &Value) -> bool {
        true
    }

    /// Whether everything is selected.
    pub fn is_empty(&self) -> bool {
        true
    }
}

/// A parsed field selector: every term must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {}

impl FieldSelector {
    /// Parses `metadata.name=a,status.phase!=Running`.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        if text.is_empty() {
            Ok(Self::default())
        } else {
            Err(ParseError {
                message: "not built yet".into(),
            })
        }
    }

    /// Whether an object is selected; `field` gives the value of a field path, `None` counts as the empty string.
    pub fn matches(&self, _field: impl Fn(&str) -> Option<String>) -> bool {
        true
    }

    /// The field paths that are asked about, for a check against those that the kind supports.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        std::iter::empty()
    }

    /// The value that `field` must equal, if the selector says so (`metadata.name=x` makes a list a get).
    pub fn required(&self, _field: &str) -> Option<&str> {
        None
    }

    /// Whether everything is selected.
    pub fn is_empty(&self) -> bool {
        true
    }
}

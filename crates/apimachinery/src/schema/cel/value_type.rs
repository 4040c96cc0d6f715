//! Types of expressions, as cel-go has them, and the types of values by their schema
//! (`apiserver/pkg/cel/common/schemas.go`).

use std::{collections::BTreeMap, fmt, sync::Arc};

use super::convert::escape;
use crate::schema::node::{Additional, Kind, Node};

/// Name of the optional type.
pub(super) const OPTIONAL: &str = "optional_type";

/// Type of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    Dyn,
    /// Type of an expression with an error, which leads to no second error.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List(Arc<Type>),
    Map(Arc<(Type, Type)>),
    /// Type of a type: `type(1)`. `None` for the name `type`.
    Meta(Option<Arc<Type>>),
    /// Type of a library, with its parameters: `net.IP`, `optional_type(string)`.
    Opaque(Arc<str>, Arc<[Type]>),
    Object(Arc<Object>),
    /// Variable of the inference.
    Variable(usize),
    /// Parameter in the signature of a function.
    Parameter(char),
}

/// Object with the declared fields only. Two objects are of one type if they have the same name.
#[derive(Debug)]
pub(super) struct Object {
    name: String,
    pub(super) fields: BTreeMap<String, Type>,
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Type {
    fn object(name: String, fields: impl IntoIterator<Item = (String, Type)>) -> Self {
        let fields = fields.into_iter().collect();
        Self::Object(Arc::new(Object { name, fields }))
    }

    pub(super) fn list(item: Type) -> Self {
        Self::List(Arc::new(item))
    }

    pub(super) fn map(key: Type, value: Type) -> Self {
        Self::Map(Arc::new((key, value)))
    }

    pub(super) fn optional(value: Type) -> Self {
        Self::Opaque(OPTIONAL.into(), [value].into())
    }

    /// Returns the type within an optional, or the type itself, and true if it was an optional.
    pub(super) fn unwrapped(&self) -> (&Type, bool) {
        match self {
            Self::Opaque(name, parameters) if &**name == OPTIONAL && !parameters.is_empty() => {
                (&parameters[0], true)
            }
            other => (other, false),
        }
    }

    /// Applies `change` to the types that this type consists of.
    pub(super) fn rebuilt(&self, change: &mut dyn FnMut(&Type) -> Type) -> Self {
        match self {
            Self::List(item) => Self::list(change(item)),
            Self::Map(entry) => Self::map(change(&entry.0), change(&entry.1)),
            Self::Meta(Some(of)) => Self::Meta(Some(Arc::new(change(of)))),
            Self::Opaque(name, parameters) => {
                Self::Opaque(name.clone(), parameters.iter().map(change).collect())
            }
            other => other.clone(),
        }
    }

    /// Returns the types that this type consists of.
    pub(super) fn parts(&self) -> Vec<&Type> {
        match self {
            Self::List(item) => vec![item],
            Self::Map(entry) => vec![&entry.0, &entry.1],
            Self::Meta(Some(of)) => vec![of],
            Self::Opaque(_, parameters) => parameters.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the type of `self` in the rules of a [`Node`]; `None` if expressions cannot see the value. `root` is true
    /// for an object with a name and a kind of its own.
    pub(super) fn of_schema(node: &Node, root: bool) -> Option<Self> {
        // kube-apiserver appends a number that changes with each compilation.
        Self::named(node, root, "selfType")
    }

    /// Recursion is bounded: the depth of the schema has been checked.
    fn named(node: &Node, root: bool, name: &str) -> Option<Self> {
        if node.int_or_string {
            return Some(Self::Dyn);
        }
        let format = node.checks.as_ref().and_then(|c| c.format.as_deref());
        match node.kind {
            Some(Kind::Array) => {
                let items = node.items.as_deref()?;
                let item = Self::named(items, items.embedded, &format!("{name}.@idx"))?;
                Some(Self::list(item))
            }
            Some(Kind::Object) => Self::of_object(node, root, name),
            None if root => Self::of_object(node, root, name),
            Some(Kind::String) => Some(match format {
                Some("byte") => Self::Bytes,
                Some("duration") => Self::Duration,
                Some("date" | "date-time") => Self::Timestamp,
                _ => Self::String,
            }),
            Some(Kind::Boolean) => Some(Self::Bool),
            Some(Kind::Number) => Some(Self::Double),
            Some(Kind::Integer) => Some(Self::Int),
            None => None,
        }
    }

    fn of_object(node: &Node, root: bool, name: &str) -> Option<Self> {
        if let Some(Additional::Schema(values)) = &node.additional {
            let value = Self::named(values, values.embedded, &format!("{name}.@elem"))?;
            return Some(Self::map(Self::String, value));
        }
        let mut fields: BTreeMap<String, Type> = node
            .properties
            .iter()
            .filter_map(|(field, property)| {
                let field = escape(field);
                let of = Self::named(property, property.embedded, &format!("{name}.{field}"))?;
                Some((field, of))
            })
            .collect();
        if root {
            let names = ["name", "generateName"].map(|field| (field.to_owned(), Self::String));
            let metadata = Self::object(format!("{name}.metadata"), names);
            fields.insert("apiVersion".into(), Self::String);
            fields.insert("kind".into(), Self::String);
            fields.insert("metadata".into(), metadata);
        }
        Some(Self::object(name.to_owned(), fields))
    }
}

/// Prints a type as cel-go does.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dyn => "dyn",
            Self::Error => "!error!",
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Duration => "duration",
            Self::Timestamp => "timestamp",
            Self::Meta(None) => "type",
            Self::Meta(Some(of)) => return write!(f, "type({of})"),
            Self::List(item) => return write!(f, "list({item})"),
            Self::Map(entry) => return write!(f, "map({}, {})", entry.0, entry.1),
            Self::Opaque(name, parameters) if parameters.is_empty() => name,
            Self::Opaque(name, parameters) => {
                let parameters: Vec<String> = parameters.iter().map(Type::to_string).collect();
                return write!(f, "{name}({})", parameters.join(", "));
            }
            Self::Object(object) => &object.name,
            Self::Variable(number) => return write!(f, "_var{number}"),
            Self::Parameter(name) => return write!(f, "{name}"),
        })
    }
}

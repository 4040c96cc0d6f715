//! Types that direct merging, from the schema of a custom resource or from the descriptions of built-in kinds
//! (`kube-openapi/pkg/schemaconv`).

use serde_json::Value;

use crate::{
    openapi::builtin::{self, ListKind, OBJECT_META, Shape},
    schema::{Additional, Kind, ListType, MapType, Node},
};

/// Type of a value. Cheap to copy; [`Type::resolve`] returns the [`Atom`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Type<'a> {
    /// [`Node`] of a custom resource's schema. `preserve` is inherited from the parent.
    Node {
        node: &'a Node,
        preserve: bool,
        root: bool,
    },
    /// Built-in type; `atomic` overrides the flag of a referenced type.
    Shape { shape: &'a Shape, atomic: bool },
    /// Text without a declaration in the schema.
    Text,
    /// Type without a schema: maps are merged, everything else is atomic.
    Deduced,
    /// Type with atomic values.
    Untyped,
}

/// Forms that a type permits; several only for values without a schema.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Atom<'a> {
    pub(crate) scalar: Option<Scalar>,
    pub(crate) list: Option<List<'a>>,
    pub(crate) map: Option<Map<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Number,
    Text,
    Boolean,
    Any,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct List<'a> {
    /// Keys of list items; `None` for an atomic list, empty for a set.
    pub(crate) keys: Option<&'a [String]>,
    pub(crate) item: Type<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Map<'a> {
    pub(crate) atomic: bool,
    fields: Fields<'a>,
    /// [`Type`] of values of undeclared keys; `None` if only declared fields are allowed.
    pub(crate) value: Option<Type<'a>>,
}

#[derive(Clone, Copy, Debug)]
enum Fields<'a> {
    None,
    Node {
        node: &'a Node,
        preserve: bool,
        root: bool,
    },
    Object(&'a builtin::Object),
}

impl<'a> Type<'a> {
    pub(crate) fn resolve(self) -> Atom<'a> {
        match self {
            Self::Text => Atom {
                scalar: Some(Scalar::Text),
                ..Atom::default()
            },
            Self::Deduced => free(Type::Deduced, false),
            Self::Untyped => free(Type::Untyped, true),
            Self::Node {
                node,
                preserve,
                root,
            } => node_atom(node, preserve, root),
            Self::Shape { shape, atomic } => shape_atom(shape, atomic),
        }
    }

    fn of_shape(shape: &'a Shape) -> Self {
        Self::Shape {
            shape,
            atomic: false,
        }
    }

    fn metadata() -> Self {
        builtin::shape(OBJECT_META).map_or(Type::Deduced, Type::of_shape)
    }
}

impl<'a> Atom<'a> {
    /// Reduces the [`Atom`] to the form of a value. Keeps all forms if none matches, for a better error later.
    pub(crate) fn deduce(self, value: Option<&Value>) -> Atom<'a> {
        match value {
            Some(Value::Number(_) | Value::String(_) | Value::Bool(_)) if self.scalar.is_some() => {
                Atom {
                    scalar: self.scalar,
                    ..Atom::default()
                }
            }
            Some(Value::Array(_)) if self.list.is_some() => Atom {
                list: self.list,
                ..Atom::default()
            },
            Some(Value::Object(_)) if self.map.is_some() => Atom {
                map: self.map,
                ..Atom::default()
            },
            _ => self,
        }
    }

    /// Returns the [`Form`] to use: a map before a scalar before a list.
    pub(crate) fn form(self) -> Form<'a> {
        match (self.map, self.scalar, self.list) {
            (Some(map), _, _) => Form::Map(map),
            (None, Some(scalar), _) => Form::Scalar(scalar),
            (None, None, Some(list)) => Form::List(list),
            (None, None, None) => Form::Scalar(Scalar::Any),
        }
    }
}

/// Form of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form<'a> {
    Map(Map<'a>),
    Scalar(Scalar),
    List(List<'a>),
}

impl Form<'_> {
    /// True if both forms are of the same kind.
    pub(crate) fn is_like(&self, other: &Form<'_>) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl<'a> Map<'a> {
    /// Returns the [`Type`] of a declared field.
    pub(crate) fn field(&self, name: &str) -> Option<Type<'a>> {
        match self.fields {
            Fields::None => None,
            Fields::Node {
                node,
                preserve,
                root,
            } => {
                if root || node.embedded {
                    match name {
                        "apiVersion" | "kind" => return Some(Type::Text),
                        "metadata" => return Some(Type::metadata()),
                        _ => {}
                    }
                }
                let node = node.properties.get(name)?;
                Some(Type::Node {
                    node,
                    preserve,
                    root: false,
                })
            }
            Fields::Object(object) => {
                let field = object.fields.get(name)?;
                Some(Type::Shape {
                    shape: &field.shape,
                    atomic: field.atomic,
                })
            }
        }
    }

    /// Returns the [`Type`] of a declared field or of a key.
    pub(crate) fn member(&self, name: &str) -> Option<Type<'a>> {
        self.field(name).or(self.value)
    }

    /// Returns the default of a field, for list keys that an item omits.
    pub(crate) fn default_of(&self, name: &str) -> Option<&'a Value> {
        match self.fields {
            Fields::None => None,
            Fields::Node { node, .. } => node.properties.get(name)?.default.as_ref(),
            Fields::Object(object) => object.fields.get(name)?.default.as_ref(),
        }
    }

    /// True if the schema declares nothing about the content.
    pub(crate) fn is_deduced(&self) -> bool {
        matches!(self.fields, Fields::None) && matches!(self.value, Some(Type::Deduced))
    }
}

fn free(inner: Type<'static>, atomic: bool) -> Atom<'static> {
    Atom {
        scalar: Some(Scalar::Any),
        list: Some(List {
            keys: None,
            item: Type::Untyped,
        }),
        map: Some(Map {
            atomic,
            fields: Fields::None,
            value: Some(inner),
        }),
    }
}

fn node_atom(node: &Node, preserve: bool, root: bool) -> Atom<'_> {
    let preserve = preserve || node.preserve;
    let map = || {
        let root = root || node.embedded;
        let bare = node.properties.is_empty() && !root;
        let value = match &node.additional {
            None if preserve || bare => Some(Type::Deduced),
            Some(Additional::Any(true)) => Some(Type::Deduced),
            None | Some(Additional::Any(false)) => None,
            Some(Additional::Schema(node)) => Some(Type::Node {
                node,
                preserve,
                root: false,
            }),
        };
        let fields = if bare {
            Fields::None
        } else {
            Fields::Node {
                node,
                preserve,
                root,
            }
        };
        Map {
            atomic: node.map == Some(MapType::Atomic),
            fields,
            value,
        }
    };
    let list = || List {
        keys: match &node.list {
            Some(ListType::Map(keys)) => Some(keys),
            Some(ListType::Set) => Some(&[]),
            Some(ListType::Atomic) | None => None,
        },
        item: match &node.items {
            Some(node) => Type::Node {
                node,
                preserve,
                root: false,
            },
            None => Type::Untyped,
        },
    };
    let scalar = |scalar| Atom {
        scalar: Some(scalar),
        ..Atom::default()
    };
    let kind = node.kind.filter(|_| !node.int_or_string);
    match kind {
        None => Atom {
            scalar: Some(Scalar::Any),
            list: Some(list()),
            map: Some(map()),
        },
        Some(Kind::Object) => Atom {
            map: Some(map()),
            ..Atom::default()
        },
        Some(Kind::Array) => Atom {
            list: Some(list()),
            ..Atom::default()
        },
        Some(Kind::Integer | Kind::Number) => scalar(Scalar::Number),
        Some(Kind::Boolean) => scalar(Scalar::Boolean),
        Some(Kind::String) => {
            let format = node
                .checks
                .as_ref()
                .and_then(|checks| checks.format.as_deref());
            scalar(if format.is_none_or(|f| f == "byte") {
                Scalar::Text
            } else {
                Scalar::Any
            })
        }
    }
}

fn shape_atom(shape: &Shape, atomic: bool) -> Atom<'_> {
    let scalar = |scalar| Atom {
        scalar: Some(scalar),
        ..Atom::default()
    };
    match shape {
        Shape::Reference(name) => match builtin::shape(name) {
            Some(shape) => shape_atom(shape, atomic),
            None => Type::Deduced.resolve(),
        },
        Shape::Untyped => Type::Untyped.resolve(),
        Shape::Text => scalar(Scalar::Text),
        Shape::Number => scalar(Scalar::Number),
        Shape::Boolean => scalar(Scalar::Boolean),
        Shape::List(list) => {
            let keys = match &list.kind {
                ListKind::Atomic => None,
                ListKind::Set => Some(&[][..]),
                ListKind::Map(keys) => Some(&keys[..]),
            };
            let list = List {
                keys,
                item: Type::of_shape(&list.items),
            };
            Atom {
                list: Some(list),
                ..Atom::default()
            }
        }
        Shape::Object(object) => {
            let bare = object.fields.is_empty();
            let value = match &object.values {
                Some(shape) => Some(Type::of_shape(shape)),
                None if bare => Some(Type::Deduced),
                None => None,
            };
            let fields = if bare {
                Fields::None
            } else {
                Fields::Object(object)
            };
            let map = Map {
                atomic: atomic || object.atomic,
                fields,
                value,
            };
            Atom {
                map: Some(map),
                ..Atom::default()
            }
        }
    }
}

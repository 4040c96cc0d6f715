//! Enums whose variants are words of conditions, each with its meaning.

/// Type of a condition: a variant of an enum of this crate.
pub trait ConditionType: Copy {
    /// Value of `conditions[].type`.
    fn as_str(self) -> &'static str;
}

/// Reason of a condition: a variant of an enum of this crate.
pub trait ConditionReason: Copy {
    /// Value of `conditions[].reason`.
    fn as_str(self) -> &'static str;
}

/// Declares an enum that implements the trait in front of it. The names of the variants are the values; the meanings are in
/// docs/reference/conditions.md.
macro_rules! vocabulary {
    (
        impl $trait:ident for
        $(#[doc = $head:literal])+
        pub enum $name:ident { $($word:ident: $meaning:literal,)+ }
    ) => {
        $(#[doc = $head])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $(#[doc = $meaning] $word),+ }

        impl $name {
            /// All variants.
            pub const ALL: &[Self] = &[$(Self::$word),+];

            /// Value in JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$word => stringify!($word)),+ }
            }

            /// Variant with this value; `None` for a word of another program.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|it| it.as_str() == word)
            }

            /// Meaning, as a sentence.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$word => $meaning),+ }
            }
        }

        impl $crate::conditions::$trait for $name {
            fn as_str(self) -> &'static str {
                Self::as_str(self)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl PartialEq<$name> for &str {
            fn eq(&self, other: &$name) -> bool {
                *self == other.as_str()
            }
        }

        impl PartialEq<$name> for String {
            fn eq(&self, other: &$name) -> bool {
                self == other.as_str()
            }
        }
    };
}

pub(crate) use vocabulary;

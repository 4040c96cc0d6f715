//! Serde deserializer for a [`Value`].

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer as _, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Number, Value, map};

use super::Undecoded;

/// Value to decode.
#[derive(Clone, Copy)]
pub(super) struct Field<'de>(pub(super) &'de Value);

impl<'de> Field<'de> {
    fn text<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Undecoded> {
        match self.0 {
            Value::String(text) => visitor.visit_borrowed_str(text),
            other => Err(Undecoded::of_type(other, &visitor)),
        }
    }

    fn number<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Undecoded> {
        match self.0 {
            Value::Number(number) => visited(number, visitor),
            other => Err(Undecoded::of_type(other, &visitor)),
        }
    }

    fn list<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Undecoded> {
        match self.0 {
            Value::Array(items) => listed(items, visitor),
            other => Err(Undecoded::of_type(other, &visitor)),
        }
    }

    fn object<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Undecoded> {
        match self.0 {
            Value::Object(members) => visitor.visit_map(Members::from_members(members)),
            other => Err(Undecoded::of_type(other, &visitor)),
        }
    }
}

fn visited<'de, V: Visitor<'de>>(number: &Number, visitor: V) -> Result<V::Value, Undecoded> {
    match (number.as_u64(), number.as_i64()) {
        (Some(value), _) => visitor.visit_u64(value),
        (None, Some(value)) => visitor.visit_i64(value),
        (None, None) => visitor.visit_f64(number.as_f64().unwrap_or_default()),
    }
}

fn listed<'de, V: Visitor<'de>>(items: &'de [Value], visitor: V) -> Result<V::Value, Undecoded> {
    let mut left = Items { items, next: 0 };
    let value = visitor.visit_seq(&mut left)?;
    left.end()?;
    Ok(value)
}

macro_rules! are {
    ($what:ident: $($method:ident)*) => {
        $(
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Undecoded> {
                self.$what(visitor)
            }
        )*
    };
}

impl<'de> Deserializer<'de> for Field<'de> {
    type Error = Undecoded;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Undecoded> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => visited(number, visitor),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => listed(items, visitor),
            Value::Object(members) => visitor.visit_map(Members::from_members(members)),
        }
    }

    are! { text: deserialize_char deserialize_str deserialize_string deserialize_identifier }
    are! { number: deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 }
    are! { number: deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 }
    are! { number: deserialize_f32 deserialize_f64 }
    are! { list: deserialize_seq }
    are! { object: deserialize_map }

    // Types in choices, and types that may be text or bytes.
    forward_to_deserialize_any! { bytes byte_buf }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Undecoded> {
        match self.0 {
            Value::Bool(value) => visitor.visit_bool(*value),
            other => Err(Undecoded::of_type(other, &visitor)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Undecoded> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Undecoded> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            other => Err(Undecoded::of_type(other, &visitor)),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Undecoded> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Undecoded> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Undecoded> {
        self.list(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Undecoded> {
        self.list(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Undecoded> {
        self.object(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Undecoded> {
        visitor.visit_enum(Choice::from_value(self.0)?)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Undecoded> {
        visitor.visit_unit()
    }
}

/// Items of a list.
struct Items<'de> {
    items: &'de [Value],
    next: usize,
}

impl Items<'_> {
    fn end(&self) -> Result<(), Undecoded> {
        match self.next < self.items.len() {
            true => Err(Undecoded::invalid_length(
                self.items.len(),
                &"fewer elements in array",
            )),
            false => Ok(()),
        }
    }
}

impl<'de> SeqAccess<'de> for &mut Items<'de> {
    type Error = Undecoded;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Undecoded> {
        let index = self.next;
        let Some(item) = self.items.get(index) else {
            return Ok(None);
        };
        self.next += 1;
        match seed.deserialize(Field(item)) {
            Ok(item) => Ok(Some(item)),
            Err(error) => Err(error.at_index(index)),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.next)
    }
}

/// Members of an object.
struct Members<'de> {
    left: map::Iter<'de>,
    /// Member of the last read key.
    member: Option<(&'de str, &'de Value)>,
}

impl<'de> Members<'de> {
    fn from_members(members: &'de Map<String, Value>) -> Self {
        Self {
            left: members.iter(),
            member: None,
        }
    }

    fn key(&mut self) -> Option<&'de str> {
        let (key, value) = self.left.next()?;
        self.member = Some((key, value));
        Some(key)
    }

    fn value(&mut self) -> Result<(&'de str, &'de Value), Undecoded> {
        let missing = || Undecoded::custom("value is missing");
        self.member.take().ok_or_else(missing)
    }
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = Undecoded;

    fn next_key_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Undecoded> {
        let Some(key) = self.key() else {
            return Ok(None);
        };
        match seed.deserialize(Key(key)) {
            Ok(key) => Ok(Some(key)),
            Err(error) => Err(error.at_key(key)),
        }
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Undecoded> {
        let (key, value) = self.value()?;
        match seed.deserialize(Field(value)) {
            Ok(value) => Ok(value),
            Err(error) => Err(error.at_key(key)),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.len())
    }
}

/// Key of a member.
struct Key<'de>(&'de str);

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = Undecoded;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Undecoded> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Undecoded> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Undecoded> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Undecoded> {
        BorrowedStrDeserializer::new(self.0).deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// Variant of an enum, with its content.
struct Choice<'de> {
    variant: &'de str,
    value: Option<&'de Value>,
}

impl<'de> Choice<'de> {
    fn from_value(value: &'de Value) -> Result<Self, Undecoded> {
        match value {
            Value::String(variant) => Ok(Self {
                variant,
                value: None,
            }),
            Value::Object(members) => {
                let mut members_left = members.iter();
                match (members_left.next(), members_left.next()) {
                    (Some((variant, value)), None) => Ok(Self {
                        variant,
                        value: Some(value),
                    }),
                    _ => Err(Undecoded::invalid_value(
                        Unexpected::Map,
                        &"map with a single key",
                    )),
                }
            }
            other => Err(Undecoded::of_type(other, &"string or map")),
        }
    }

    fn field(&self) -> Result<Field<'de>, Undecoded> {
        self.value.map(Field).ok_or_else(|| {
            de::Error::invalid_type(Unexpected::UnitVariant, &"a variant with a value")
        })
    }
}

impl<'de> EnumAccess<'de> for Choice<'de> {
    type Error = Undecoded;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), Undecoded> {
        let variant = seed.deserialize(self.variant.into_deserializer())?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Choice<'de> {
    type Error = Undecoded;

    fn unit_variant(self) -> Result<(), Undecoded> {
        match self.value {
            None | Some(Value::Null) => Ok(()),
            Some(other) => Err(Undecoded::of_type(other, &"unit variant").at_key(self.variant)),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Undecoded> {
        let value = seed.deserialize(self.field()?);
        value.map_err(|error| error.at_key(self.variant))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Undecoded> {
        let value = self.field()?.list(visitor);
        value.map_err(|error| error.at_key(self.variant))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Undecoded> {
        let value = self.field()?.object(visitor);
        value.map_err(|error| error.at_key(self.variant))
    }
}

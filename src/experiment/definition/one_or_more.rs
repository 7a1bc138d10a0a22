//! Lists that a single thing may stand for: `k = 1` means `k = [1]`.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{self, IntoDeserializer, value},
};

use crate::experiment::row::K;

/// A thing that definitions have lists of.
pub(super) trait MayStandAlone {
    /// The values that may stand in its place, in words.
    const EXPECTED: &'static str;
}

impl MayStandAlone for K {
    const EXPECTED: &'static str = "a number of terminals or \"infinite\", or a list of these";
}

impl MayStandAlone for usize {
    const EXPECTED: &'static str = "a number, or a list of numbers";
}

impl MayStandAlone for f64 {
    const EXPECTED: &'static str = "a number, or a list of numbers";
}

impl MayStandAlone for String {
    const EXPECTED: &'static str = "a name, or a list of names";
}

/// Reads a list, or one thing in its place.
pub(super) fn list_or_one<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + MayStandAlone,
{
    deserializer.deserialize_any(ListOrOne(PhantomData))
}

/// Reads it from a key that may be left out.
pub(super) fn some_or_one<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + MayStandAlone,
{
    list_or_one(deserializer).map(Some)
}

struct ListOrOne<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + MayStandAlone> ListOrOne<T> {
    /// Reads the list of one thing. An error says what is wrong by the thing's own type, then what may stand
    /// there.
    fn of_one<E: de::Error>(one: impl IntoDeserializer<'de, value::Error>) -> Result<Vec<T>, E> {
        let one = T::deserialize(one.into_deserializer()).map_err(|error| {
            let said = error.to_string();
            let wrong = said.split_once(", expected ").map_or(&*said, |(wrong, _)| wrong);
            E::custom(format!("{wrong}, expected {}", T::EXPECTED))
        })?;
        Ok(vec![one])
    }
}

impl<'de, T: Deserialize<'de> + MayStandAlone> de::Visitor<'de> for ListOrOne<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_bool<E: de::Error>(self, one: bool) -> Result<Vec<T>, E> {
        Self::of_one(one)
    }

    fn visit_i64<E: de::Error>(self, one: i64) -> Result<Vec<T>, E> {
        Self::of_one(one)
    }

    fn visit_u64<E: de::Error>(self, one: u64) -> Result<Vec<T>, E> {
        Self::of_one(one)
    }

    fn visit_f64<E: de::Error>(self, one: f64) -> Result<Vec<T>, E> {
        Self::of_one(one)
    }

    fn visit_str<E: de::Error>(self, one: &str) -> Result<Vec<T>, E> {
        Self::of_one(one)
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, list: A) -> Result<Vec<T>, A::Error> {
        Deserialize::deserialize(value::SeqAccessDeserializer::new(list))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, one: A) -> Result<Vec<T>, A::Error> {
        T::deserialize(value::MapAccessDeserializer::new(one)).map(|one| vec![one])
    }
}

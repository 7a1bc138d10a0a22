//! `Vocabulary`: tokens and their bytes, of any tokenizer that Python knows.

use std::path::PathBuf;

use domino::{TokenId, Vocabulary};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict, PyList},
};

use crate::{
    engine::unlocked,
    failure::{Failure, Outcome},
};

/// The tokens of a model, and the bytes that each adds to a text. Immutable; pickles have all of it.
#[pyclass(name = "Vocabulary", module = "domino_decoding", frozen)]
#[derive(Debug, Clone)]
pub(crate) struct PyVocabulary {
    pub(crate) inner: Vocabulary,
}

/// A token id of a number from Python.
///
/// # Errors
/// If it is negative or has more than 32 bits.
pub(crate) fn token_id(token: i64) -> Outcome<TokenId> {
    u32::try_from(token).map(TokenId::new).map_err(|_| Failure::NoToken(token))
}

/// Token ids of numbers from Python.
///
/// # Errors
/// As [`token_id`].
pub(crate) fn token_ids(tokens: &[i64]) -> Outcome<Vec<TokenId>> {
    tokens.iter().map(|&token| token_id(token)).collect()
}

fn ended(vocabulary: Vocabulary, end_of_text: Option<Vec<i64>>) -> Outcome<PyVocabulary> {
    let inner = match end_of_text {
        Some(ids) => vocabulary.with_end_of_text(token_ids(&ids)?)?,
        None => vocabulary,
    };
    Ok(PyVocabulary { inner })
}

#[pymethods]
impl PyVocabulary {
    /// Reads the text of a `tokenizer.json`. `end_of_text`: ids in place of those found by name.
    #[staticmethod]
    #[pyo3(signature = (text, /, *, end_of_text=None))]
    fn from_json(py: Python<'_>, text: &str, end_of_text: Option<Vec<i64>>) -> Outcome<Self> {
        unlocked(py, || ended(Vocabulary::from_tokenizer_json(text)?, end_of_text))
    }

    /// Reads a `tokenizer.json`, the one in a model's folder, or the tokenizer in a GGUF file.
    #[staticmethod]
    #[pyo3(signature = (path, /, *, end_of_text=None))]
    fn from_file(py: Python<'_>, path: PathBuf, end_of_text: Option<Vec<i64>>) -> Outcome<Self> {
        unlocked(py, || ended(Vocabulary::from_tokenizer_file(path)?, end_of_text))
    }

    /// The vocabulary of these tokens: a list of `bytes` by id, with `None` for holes, or a `dict` of ids.
    /// `special`: names of special tokens by id.
    #[staticmethod]
    #[pyo3(signature = (tokens, /, *, end_of_text, special=None))]
    fn from_tokens(
        tokens: &Bound<'_, PyAny>,
        end_of_text: Vec<i64>,
        special: Option<&Bound<'_, PyDict>>,
    ) -> Outcome<Self> {
        let mut builder = Vocabulary::builder();
        let bytes_of = |bytes: &Bound<'_, PyAny>| -> Outcome<Vec<u8>> {
            let bytes = bytes.cast::<PyBytes>();
            let bytes = bytes.map_err(|_| Failure::Type("tokens must be `bytes`".to_owned()))?;
            Ok(bytes.as_bytes().to_vec())
        };
        if let Ok(tokens) = tokens.cast::<PyDict>() {
            for (id, bytes) in tokens.iter() {
                builder = builder.token(token_id(id.extract()?)?, bytes_of(&bytes)?);
            }
        } else if let Ok(tokens) = tokens.cast::<PyList>() {
            for (id, bytes) in (0..).zip(tokens.iter()) {
                if !bytes.is_none() {
                    builder = builder.token(TokenId::new(id), bytes_of(&bytes)?);
                }
            }
        } else {
            return Err(Failure::Type(
                "tokens must be a list of `bytes`, or a dict of ids and `bytes`".into(),
            ));
        }
        for (id, name) in special.into_iter().flatten() {
            builder = builder.special(token_id(id.extract()?)?, name.extract::<String>()?);
        }
        let builder =
            token_ids(&end_of_text)?.into_iter().fold(builder, |builder, id| builder.end_of_text(id));
        unlocked(tokens.py(), || Ok(Self { inner: builder.build()? }))
    }

    /// Makes the same vocabulary with other tokens that end a text.
    #[pyo3(signature = (ids, /))]
    fn with_end_of_text(&self, py: Python<'_>, ids: Vec<i64>) -> Outcome<Self> {
        unlocked(py, || ended(self.inner.clone(), Some(ids)))
    }

    /// One more than the highest id: the number of bits of a row of a mask.
    #[getter]
    fn size(&self) -> usize {
        self.inner.size()
    }

    /// Words of 32 bits in a row of a mask: `ceil(size / 32)`.
    #[getter]
    fn words(&self) -> usize {
        self.inner.size().div_ceil(32)
    }

    /// The ids that end a text.
    #[getter]
    fn end_of_text(&self) -> Vec<u32> {
        self.inner.end_of_text().iter().map(|id| id.raw()).collect()
    }

    /// Names of special tokens by id.
    #[getter]
    fn special<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let names = PyDict::new(py);
        self.inner.special_tokens().try_for_each(|(id, name)| names.set_item(id.raw(), name))?;
        Ok(names)
    }

    /// A hash of all of it: equal vocabularies have equal ones.
    #[getter]
    fn fingerprint(&self) -> String {
        self.inner.fingerprint().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The bytes that a token adds to a text; None of special tokens and holes.
    #[pyo3(signature = (token, /))]
    fn bytes<'py>(&self, py: Python<'py>, token: i64) -> Outcome<Option<Bound<'py, PyBytes>>> {
        Ok(self.inner.bytes(token_id(token)?).map(|bytes| PyBytes::new(py, bytes)))
    }

    /// The text of these tokens, without special ones.
    #[pyo3(signature = (tokens, /))]
    fn concat<'py>(&self, py: Python<'py>, tokens: Vec<i64>) -> Outcome<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.inner.concat(&token_ids(&tokens)?)))
    }

    fn __len__(&self) -> usize {
        self.inner.size()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let bytes = PyBytes::new(py, &self.inner.to_bytes());
        Ok((py.get_type::<Self>().getattr("from_bytes")?, (bytes,)))
    }

    /// All of it, for a file. Sealed with a checksum.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner.to_bytes())
    }

    /// Reads what `to_bytes` made.
    #[staticmethod]
    #[pyo3(signature = (data, /))]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> Outcome<Self> {
        unlocked(py, || Ok(Self { inner: Vocabulary::from_bytes(data)? }))
    }

    fn __repr__(&self) -> String {
        format!("<Vocabulary of {} tokens>", self.inner.token_count())
    }
}

//! Rows of masks in memory of others: numpy, torch, or a bare address.
//!
//! The only file with `unsafe`. It is sound because the caller holds the object that owns the memory for as
//! long as its rows are used, its layout was checked before, and each row is written by one thread.
#![expect(unsafe_code, reason = "masks are written into memory of numpy, torch or a bare address")]

use std::{
    ptr::NonNull,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
};

use domino::{TokenId, vocab::TokenSet};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods, npyffi::flags};
use pyo3::{
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyBytes, PyDict, PyTuple, PyWeakrefMethods, PyWeakrefReference},
};

use crate::{
    failure::{Failure, Outcome},
    vocabulary::PyVocabulary,
};

/// Bytes of a word.
const WORD: usize = size_of::<i32>();

/// Rows of words at equal distances.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    start: NonNull<i32>,
    /// Words from one row to the next.
    stride: usize,
    rows: usize,
    /// Words of a row.
    words: usize,
}

/// A row.
#[derive(Debug)]
pub(crate) struct Row {
    start: NonNull<i32>,
    words: usize,
}

// SAFETY: a row is memory of its own, and nobody else has it.
unsafe impl Send for Row {}

impl Rows {
    /// Finds the rows of a mask, for a vocabulary that needs `needed` words.
    ///
    /// # Errors
    /// If there are none, of another type, on a card, read-only, with gaps between words, or too few words.
    pub(crate) fn of(mask: &Bound<'_, PyAny>, needed: usize) -> Outcome<Self> {
        let rows = if let Ok(own) = mask.cast_exact::<PyMask>() {
            own.get().rows()
        } else if let Some(array) = as_numpy(mask) {
            of_numpy(array)?
        } else if let Ok(raw) = mask.cast_exact::<PyRawMask>() {
            raw.get().rows
        } else {
            of_torch(mask)?
        };
        if rows.words < needed {
            let has = rows.words;
            return wrong(format!(
                "a row of the mask has {has} words of 32 bits; the vocabulary needs {needed}"
            ));
        }
        Ok(rows)
    }

    /// The row of this number.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn row(&self, index: i64) -> Outcome<Row> {
        let rows = self.rows;
        let place = usize::try_from(index).ok().filter(|&index| index < rows);
        let place =
            place.ok_or_else(|| Failure::Mask(format!("there is no row {index}: the mask has {rows}")))?;
        // SAFETY: the row is within the memory, by the check of `place` and of the layout before.
        Ok(Row { start: unsafe { self.start.add(place * self.stride) }, words: self.words })
    }

    /// Makes rows of a layout in bytes.
    fn new(address: usize, shape: &[usize], strides: &[isize]) -> Outcome<Self> {
        let (rows, words, between, within) = match (shape, strides) {
            (&[words], &[within]) => (1, words, 0, within),
            (&[rows, words], &[between, within]) => (rows, words, between, within),
            _ => return wrong(format!("a mask has one or two dimensions, not {}", shape.len())),
        };
        let word = WORD.cast_signed();
        if words > 1 && within != word {
            return wrong("the words of a row must lie side by side; use a contiguous mask".to_owned());
        }
        let between = if rows > 1 { between } else { word.saturating_mul(words.cast_signed()) };
        let stride =
            usize::try_from(between).ok().filter(|stride| stride % WORD == 0).map(|stride| stride / WORD);
        let stride = stride.filter(|&stride| stride >= words);
        let stride = stride
            .ok_or_else(|| Failure::Mask("the rows of the mask overlap or run backwards".to_owned()))?;
        if !address.is_multiple_of(WORD) {
            return wrong("the mask's memory is not aligned to words of 32 bits".to_owned());
        }
        let start = NonNull::new(std::ptr::with_exposed_provenance_mut(address));
        let start = start.ok_or_else(|| Failure::Mask("the mask has no memory".to_owned()))?;
        Ok(Self { start, stride, rows, words })
    }
}

impl Row {
    /// Writes a set of tokens.
    pub(crate) fn write(&mut self, set: &TokenSet) {
        set.write_bits32(self.slice());
    }

    /// Allows all tokens, the padding behind the vocabulary included.
    pub(crate) fn allow_all(&mut self) {
        self.slice().fill(-1);
    }

    fn slice(&mut self) -> &mut [i32] {
        // SAFETY: see the head of this file.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.words) }
    }
}

fn wrong<T>(text: String) -> Outcome<T> {
    Err(Failure::Mask(text))
}

/// Returns the array, if the object is one of numpy. If numpy was not imported yet no object is one, and the
/// check itself would import it.
fn as_numpy<'a, 'py>(mask: &'a Bound<'py, PyAny>) -> Option<&'a Bound<'py, PyUntypedArray>> {
    static LOADED: AtomicBool = AtomicBool::new(false);
    if !LOADED.load(Ordering::Relaxed) {
        let modules = mask.py().import("sys").and_then(|sys| sys.getattr("modules")).ok()?;
        if !modules.contains("numpy").unwrap_or(false) {
            return None;
        }
        mask.py().import("numpy").ok()?;
        LOADED.store(true, Ordering::Relaxed);
    }
    mask.cast::<PyUntypedArray>().ok()
}

fn of_numpy(array: &Bound<'_, PyUntypedArray>) -> Outcome<Rows> {
    let dtype = array.dtype();
    if !matches!(dtype.kind(), b'i' | b'u')
        || dtype.itemsize() != WORD
        || dtype.byteorder() == foreign_order()
    {
        return wrong(format!("a mask must be of int32, not of {dtype}"));
    }
    let object = array.as_array_ptr();
    // SAFETY: the pointer is to a live array, of which only fields are read.
    let (data, flags) = unsafe { ((*object).fields.data, (*object).fields.flags) };
    if flags & flags::NPY_ARRAY_WRITEABLE == 0 {
        return wrong("the mask is read-only".to_owned());
    }
    Rows::new(data.expose_provenance(), array.shape(), array.strides())
}

/// The mark of numpy for the byte order that this machine does not have.
fn foreign_order() -> u8 {
    if cfg!(target_endian = "little") { b'>' } else { b'<' }
}

/// Memory of a tensor, as it describes it.
struct Tensor {
    /// Is it of one of the types that masks may have?
    fits: bool,
    is_cpu: bool,
    shape: Vec<usize>,
    strides: Vec<isize>,
    address: usize,
}

impl Tensor {
    fn read(tensor: &Bound<'_, PyAny>) -> PyResult<Self> {
        static INT32: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = tensor.py();
        let int32 =
            INT32.get_or_try_init(py, || PyResult::Ok(py.import("torch")?.getattr("int32")?.unbind()))?;
        let dtype = tensor.getattr(intern!(py, "dtype"))?;
        Ok(Self {
            fits: dtype.is(int32) || dtype.str()?.to_cow()? == "torch.uint32",
            is_cpu: tensor.getattr(intern!(py, "is_cpu"))?.extract()?,
            shape: tensor.getattr(intern!(py, "shape"))?.extract()?,
            strides: tensor.call_method0(intern!(py, "stride"))?.extract()?,
            address: tensor.call_method0(intern!(py, "data_ptr"))?.extract()?,
        })
    }
}

/// Is it a tensor of torch? The addresses that other classes state are not trusted.
fn is_torch(mask: &Bound<'_, PyAny>) -> PyResult<bool> {
    static TENSOR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = mask.py();
    if let Some(tensor) = TENSOR.get(py) {
        return mask.is_instance(tensor.bind(py));
    }
    // Never imports it: without it nothing is a tensor.
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    let Some(torch) = modules.get_item("torch")? else { return Ok(false) };
    let tensor = TENSOR.get_or_try_init(py, || torch.getattr("Tensor").map(Bound::unbind))?;
    mask.is_instance(tensor.bind(py))
}

/// The tensor that was written last, whose rows need not be asked for again: a step of a text writes into
/// the same tensor as the step before, and five answers of torch take longer than the step.
struct LastTensor {
    tensor: Py<PyWeakrefReference>,
    /// An array of numpy over the same memory. It keeps the memory, whatever becomes of the tensor.
    _memory: Py<PyAny>,
    rows: Rows,
}

// SAFETY: the rows are those of memory that is held beside them.
unsafe impl Send for LastTensor {}

static LAST_TENSOR: Mutex<Option<LastTensor>> = Mutex::new(None);

impl LastTensor {
    /// The rows of the tensor, if it is the last one and has the memory and the shape that it had.
    fn rows_of(mask: &Bound<'_, PyAny>) -> PyResult<Option<Rows>> {
        let py = mask.py();
        let rows = {
            let last = LAST_TENSOR.lock().unwrap_or_else(PoisonError::into_inner);
            let same = |last: &&LastTensor| last.tensor.bind(py).upgrade().is_some_and(|one| one.is(mask));
            last.as_ref().filter(same).map(|last| last.rows)
        };
        let Some(rows) = rows else { return Ok(None) };
        let address: usize = mask.call_method0(intern!(py, "data_ptr"))?.extract()?;
        let shape = mask.getattr(intern!(py, "shape"))?.cast_into::<PyTuple>()?;
        let at = |index: usize| shape.get_item(index).and_then(|size| size.extract::<usize>());
        let of_shape = match shape.len() {
            1 => (1, at(0)?),
            2 => (at(0)?, at(1)?),
            _ => return Ok(None),
        };
        let as_before = address == rows.start.addr().get() && of_shape == (rows.rows, rows.words);
        Ok(as_before.then_some(rows))
    }

    /// Keeps the rows of a tensor, if numpy can hold its memory.
    fn keep(mask: &Bound<'_, PyAny>, rows: Rows) {
        let py = mask.py();
        let Ok(memory) = mask.call_method0(intern!(py, "numpy")) else { return };
        let Ok(tensor) = PyWeakrefReference::new(mask) else { return };
        let kept = Self { tensor: tensor.unbind(), _memory: memory.unbind(), rows };
        // The one before is dropped when the lock is free: that may run code of others.
        let before = LAST_TENSOR.lock().unwrap_or_else(PoisonError::into_inner).replace(kept);
        drop(before);
    }
}

fn of_torch(mask: &Bound<'_, PyAny>) -> Outcome<Rows> {
    let py = mask.py();
    if let Some(rows) = LastTensor::rows_of(mask).unwrap_or_default() {
        return Ok(rows);
    }
    if !is_torch(mask)? {
        let wanted = "a numpy array or torch tensor of int32, a Mask or a RawMask";
        let kind = mask.get_type().name()?;
        return wrong(format!("no mask can be written into an object of type {kind}; give {wanted}"));
    }
    let tensor = Tensor::read(mask)
        .map_err(|error| Failure::Mask(format!("the mask is no plain tensor: {}", error.value(py))))?;
    if !tensor.is_cpu {
        return wrong("the mask is not in the CPU's memory; fill one there and copy it".to_owned());
    }
    if !tensor.fits {
        return wrong(format!("a mask must be of torch.int32, not of {}", mask.getattr("dtype")?));
    }
    let bytes = |stride: isize| stride.saturating_mul(WORD.cast_signed());
    let strides: Vec<isize> = tensor.strides.iter().copied().map(bytes).collect();
    let rows = Rows::new(tensor.address, &tensor.shape, &strides)?;
    LastTensor::keep(mask, rows);
    Ok(rows)
}

/// A mask with memory of its own: `rows` rows of `words` words of 32 bits, token `t` as bit `t % 32` of word
/// `t // 32`. `numpy.asarray(mask)` shares its memory: an array of int32, of shape (rows, words).
#[pyclass(name = "Mask", module = "domino_decoding", frozen)]
#[derive(Debug)]
pub(crate) struct PyMask {
    memory: Box<[AtomicI32]>,
    words: usize,
}

/// Most words of a mask: 4 GiB.
const MOST_WORDS: usize = 1 << 30;

#[pymethods]
impl PyMask {
    /// A mask that allows nothing, for a vocabulary or a number of tokens.
    #[new]
    #[pyo3(signature = (vocabulary, /, rows=1))]
    fn new(vocabulary: &Bound<'_, PyAny>, rows: usize) -> Outcome<Self> {
        let size = match vocabulary.cast::<PyVocabulary>() {
            Ok(vocabulary) => vocabulary.get().inner.size(),
            Err(_) => vocabulary.extract()?,
        };
        let words = size.div_ceil(32);
        let all = rows.checked_mul(words).filter(|&all| all <= MOST_WORDS);
        let all = all
            .ok_or_else(|| Failure::Value(format!("a mask of {rows} rows of {words} words is too large")))?;
        Ok(Self { memory: (0..all).map(|_| AtomicI32::new(0)).collect(), words })
    }

    /// Rows and words of a row.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.memory.len().checked_div(self.words).unwrap_or_default(), self.words)
    }

    /// The address of the first word.
    #[getter]
    fn address(&self) -> usize {
        self.memory.as_ptr().expose_provenance()
    }

    /// Description by which numpy shares the memory.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", if cfg!(target_endian = "little") { "<i4" } else { ">i4" })?;
        interface.set_item("data", (self.address(), false))?;
        interface.set_item("shape", self.shape())?;
        Ok(interface)
    }

    /// The tokens of a row, in order.
    #[pyo3(signature = (row=0, /))]
    fn tokens(&self, row: usize) -> Outcome<Vec<usize>> {
        let words = self.row(row)?;
        let word = |word: &AtomicI32| word.load(Ordering::Relaxed);
        Ok((0..words.len() * 32).filter(|token| word(&words[token / 32]) >> (token % 32) & 1 == 1).collect())
    }

    /// Is a token in a row?
    #[pyo3(signature = (token, row=0, /))]
    fn allows(&self, token: u32, row: usize) -> Outcome<bool> {
        let (words, token) = (self.row(row)?, TokenId::new(token).index());
        Ok(words.get(token / 32).is_some_and(|word| word.load(Ordering::Relaxed) >> (token % 32) & 1 == 1))
    }

    /// A copy of all words, in this machine's byte order.
    fn tobytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes: Vec<u8> =
            self.memory.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        PyBytes::new(py, &bytes)
    }

    fn __len__(&self) -> usize {
        self.shape().0
    }

    fn __repr__(&self) -> String {
        let (rows, words) = self.shape();
        format!("<Mask of {rows} rows of {words} words>")
    }
}

impl PyMask {
    fn row(&self, row: usize) -> Outcome<&[AtomicI32]> {
        let rows = self.shape().0;
        if row >= rows {
            return Err(Failure::Mask(format!("there is no row {row}: the mask has {rows}")));
        }
        Ok(&self.memory[row * self.words..][..self.words])
    }

    fn rows(&self) -> Rows {
        // Atomics have the layout of their numbers, and may be written through shared references.
        let start = NonNull::from(&*self.memory).cast();
        Rows { start, stride: self.words, rows: self.shape().0, words: self.words }
    }
}

/// Memory of others as a mask: `rows` rows of `words` words of 32 bits from `address` on, `stride` words from
/// one to the next (default: `words`). Nothing can be checked: where the memory is not there, the program
/// ends.
#[pyclass(name = "RawMask", module = "domino_decoding", frozen)]
#[derive(Debug)]
pub(crate) struct PyRawMask {
    rows: Rows,
}

// SAFETY: it is an address; who gave it says that the memory may be written by any thread.
unsafe impl Send for PyRawMask {}
// SAFETY: the same.
unsafe impl Sync for PyRawMask {}

#[pymethods]
impl PyRawMask {
    #[new]
    #[pyo3(signature = (address, rows, words, *, stride=None))]
    fn new(address: usize, rows: usize, words: usize, stride: Option<usize>) -> Outcome<Self> {
        let stride = stride.unwrap_or(words);
        let bytes = stride.checked_mul(WORD).filter(|&bytes| bytes.checked_mul(rows).is_some());
        let bytes = bytes.and_then(|bytes| isize::try_from(bytes).ok());
        let bytes = bytes.ok_or_else(|| Failure::Mask("the mask is larger than memory".to_owned()))?;
        Ok(Self { rows: Rows::new(address, &[rows, words], &[bytes, WORD.cast_signed()])? })
    }
}

//! Models and their templates.

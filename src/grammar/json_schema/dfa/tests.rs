//! Held against slow, obvious deciders.

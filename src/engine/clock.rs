//! The monotonic clock. `wasm32-unknown-unknown` has none, and that of the standard library panics there;
//! here it then stands still. Bounds in time never end a step there, those in units of work do.

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use std::time::Instant;

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub use still::Instant;

/// A clock that stands still, with the methods of [`std::time::Instant`] that the library calls.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod still {
    use std::time::Duration;

    /// The only time there is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Instant;

    impl Instant {
        pub fn now() -> Self {
            Self
        }

        pub fn elapsed(&self) -> Duration {
            Duration::ZERO
        }

        pub fn duration_since(&self, _: Self) -> Duration {
            Duration::ZERO
        }
    }
}

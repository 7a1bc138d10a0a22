//! Identifies the callers between whom turns are shared and for each of whom bounds are kept.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, OnceLock},
};

use axum::http::Extensions;

/// The client that sent a request. All who share a key are one client; where no key is asked for, all who
/// share an address are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    /// A client with the key of this name.
    Key(Arc<str>),
    /// A client without a key that calls from this address. Of IPv6 only the first 64 bits count, since that
    /// is what one subscriber gets.
    Address(IpAddr),
    /// The server itself, or a caller whose address the system does not tell.
    Unknown,
}

impl Caller {
    /// A client without a key at `address`.
    pub(crate) fn at(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(whole) => {
                let [a, b, c, d, ..] = whole.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            v4 @ IpAddr::V4(_) => v4,
        })
    }

    /// A number of 64 bits that stands for the caller in caches and turns; the same while the program runs. 0
    /// is the server itself.
    pub(crate) fn number(&self) -> u64 {
        if *self == Self::Unknown {
            return 0;
        }
        static KEYS: OnceLock<RandomState> = OnceLock::new();
        KEYS.get_or_init(RandomState::new).hash_one(self)
    }

    /// Returns a name that lasts from run to run; `None` for the server itself and for those whom nothing
    /// tells apart.
    pub(crate) fn lasting(&self) -> Option<String> {
        (*self != Self::Unknown).then(|| self.to_string())
    }

    /// The caller of a request, which the layer that asks for keys has put there.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get::<Self>().cloned().unwrap_or(Self::Unknown)
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(name) => write!(f, "key {name}"),
            Self::Address(address) => write!(f, "{address}"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_client_however_it_is_written() {
        let at = |text: &str| Caller::at(text.parse().unwrap());
        assert_eq!(at("::ffff:10.0.0.1"), at("10.0.0.1"));
        assert_eq!(at("2001:db8:1:2:3:4:5:6"), at("2001:db8:1:2::1"));
        assert_ne!(at("2001:db8:1:2::1"), at("2001:db8:1:3::1"));
        assert_ne!(at("10.0.0.1"), at("10.0.0.2"));
        assert_eq!(at("10.0.0.1").number(), at("10.0.0.1").number());
        assert_ne!(at("10.0.0.1").number(), at("10.0.0.2").number());
        assert_eq!(Caller::of(&Extensions::new()), Caller::Unknown);
        assert_eq!(at("2001:db8:1:2::1").to_string(), "2001:db8:1:2::");
        assert_eq!(Caller::Key("10.0.0.1".into()).lasting().as_deref(), Some("key 10.0.0.1"));
        assert_eq!(at("10.0.0.1").lasting().as_deref(), Some("10.0.0.1"));
        assert_eq!(Caller::Unknown.lasting(), None);
    }
}

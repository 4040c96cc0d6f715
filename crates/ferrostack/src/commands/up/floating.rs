//! Range of the simulated cloud's floating IPs.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// The ranges are 127.64.0.0/16 to 127.254.0.0/16.
const FIRST: u8 = 64;
const COUNT: u8 = 191;
/// Port bound on the last address of a range in use: hardly any program binds this port on all addresses.
const PORT: u16 = 20_064;

/// A range 127.N.0.0/16.
#[derive(Debug)]
pub(super) struct Range {
    pub(super) second_byte: u8,
    /// Socket to keep the range from other processes; `None` if another process has the range.
    lease: Option<TcpListener>,
}

impl Range {
    fn take(second_byte: u8) -> Self {
        let last = Ipv4Addr::new(127, second_byte, 255, 254);
        Self {
            second_byte,
            lease: TcpListener::bind((last, PORT)).ok(),
        }
    }

    /// Stored [`Range`], or else an unused one, so that several data directories can be in use on one machine.
    pub(super) fn find(stored: Option<u8>, cloud: SocketAddr) -> Self {
        if let Some(second_byte) = stored {
            return Self::take(second_byte);
        }
        let first = u8::try_from(cloud.port() % u16::from(COUNT)).unwrap_or(0);
        let nth = |n: u8| {
            FIRST + u8::try_from((u16::from(first) + u16::from(n)) % u16::from(COUNT)).unwrap_or(0)
        };
        let free = (0..COUNT)
            .map(|n| Self::take(nth(n)))
            .find(|range| range.lease.is_some());
        free.unwrap_or_else(|| Self::take(nth(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clouds_at_the_same_time_have_different_ranges() {
        let address = SocketAddr::from(([127, 0, 0, 1], 40_000));
        let (one, other) = (Range::find(None, address), Range::find(None, address));
        assert_ne!(one.second_byte, other.second_byte);
        let (kept, free) = (one.second_byte, other.second_byte);
        assert_eq!(Range::find(Some(kept), address).second_byte, kept);
        drop(other);
        assert_eq!(Range::find(Some(free), address).second_byte, free);
    }
}

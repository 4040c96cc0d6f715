//! Flags to run servers as machines.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use guests::program::Program;
use ipnet::Ipv4Net;

/// Settings to run servers of the simulated cloud as machines.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RunnerArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    /// Range of the floating IPs of a new simulated cloud; needs a network namespace in which the whole range is
    /// local.
    #[arg(long, value_name = "CIDR", value_parser = range, requires = "guest_runner")]
    pub(crate) external_network: Option<Ipv4Net>,
}

/// Program that runs servers as machines.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ProgramArgs {
    /// Program started for each server, to run it as a machine instead of a simulated guest.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) guest_runner: Option<PathBuf>,
    /// Address of the metadata service for machines [default: a free port of 127.0.0.1].
    #[arg(long, value_name = "ADDRESS", value_parser = metadata, requires = "guest_runner")]
    pub(crate) metadata_address: Option<SocketAddr>,
}

impl ProgramArgs {
    /// Guest runner, if named.
    pub(crate) fn program(&self) -> Option<Program> {
        let path = self.guest_runner.clone()?;
        Some(Program {
            path,
            metadata_address: self.metadata_address,
        })
    }
}

/// Loopback or link-local address: the service gives secrets to every client.
fn metadata(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .parse()
        .map_err(|_| format!("`{text}` is not an address such as 169.254.169.254:80"))?;
    match address.ip() {
        IpAddr::V4(ip) if ip.is_loopback() || ip.is_link_local() => Ok(address),
        IpAddr::V6(ip) if ip.is_loopback() || ip.is_unicast_link_local() => Ok(address),
        ip => Err(format!(
            "{ip} is neither a loopback nor a link-local address"
        )),
    }
}

/// Range with room for floating IPs above the first ten addresses, left to others.
fn range(text: &str) -> Result<Ipv4Net, String> {
    let range: Ipv4Net = text
        .parse()
        .map_err(|_| format!("`{text}` is not a range such as 203.0.113.0/24"))?;
    if range.trunc() != range {
        return Err(format!("`{text}` has host bits; write {}", range.trunc()));
    }
    if !(8..=27).contains(&range.prefix_len()) {
        return Err(format!("`{text}`: a range from /8 to /27 is expected"));
    }
    Ok(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_where_they_are_given() {
        assert!(metadata("169.254.169.254:80").is_ok());
        assert!(metadata("127.0.0.1:0").is_ok());
        for wrong in ["0.0.0.0:80", "10.0.0.1:80", "169.254.169.254", ""] {
            assert!(metadata(wrong).is_err(), "{wrong}");
        }
        assert!(range("203.0.113.0/24").is_ok());
        for wrong in [
            "203.0.113.1/24",
            "203.0.113.0/28",
            "0.0.0.0/0",
            "fd00::/64",
            "x",
        ] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }
}

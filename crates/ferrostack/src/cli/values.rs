//! Values of flags, checked at parsing.

use std::net::SocketAddr;
use std::path::PathBuf;

use api::version::{InvalidVersion, Version};
use ipnet::IpNet;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LatencyArg {
    /// Everything at once.
    None,
    /// As measured on a real cloud.
    Real,
    /// As configured in a file.
    File(PathBuf),
}

/// CIDRs separated by commas, none in an empty text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cidrs(pub(crate) Vec<IpNet>);

/// [`Cidrs`] as read by the Go managers: `10.244.0.0/16,fd00:244::/48`, or nothing.
pub(super) fn cidrs(text: &str) -> Result<Cidrs, String> {
    if text.is_empty() {
        return Ok(Cidrs::default());
    }
    let parsed = text.split(',').map(|one| {
        let trimmed = one.trim();
        let parsed = trimmed.parse::<IpNet>();
        parsed.map_err(|_| format!("`{trimmed}` is not a CIDR such as 10.244.0.0/16"))
    });
    Ok(Cidrs(parsed.collect::<Result<_, _>>()?))
}

/// `none`, `real`, or a path.
pub(super) fn latency(text: &str) -> Result<LatencyArg, String> {
    Ok(match text {
        "" => return Err("write none, real, or the name of a file".to_owned()),
        "none" => LatencyArg::None,
        "real" => LatencyArg::Real,
        path => LatencyArg::File(PathBuf::from(path)),
    })
}

/// `90s`, `10m`, `1h30m`, or a number of seconds.
pub(super) fn duration(text: &str) -> Result<std::time::Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write it as 90s, 10m or 1h30m");
    let (mut total, mut digits) = (0u64, String::new());
    for c in text.chars() {
        match c {
            '0'..='9' => digits.push(c),
            's' | 'm' | 'h' => {
                let number: u64 = digits.parse().map_err(|_| wrong())?;
                let unit = match c {
                    's' => 1,
                    'm' => 60,
                    _ => 3600,
                };
                let part = number.checked_mul(unit).ok_or_else(wrong)?;
                total = total.checked_add(part).ok_or_else(wrong)?;
                digits.clear();
            }
            _ => return Err(wrong()),
        }
    }
    if !digits.is_empty() {
        if total > 0 {
            return Err(wrong());
        }
        total = digits.parse().map_err(|_| wrong())?;
    }
    if total == 0 {
        return Err(wrong());
    }
    Ok(std::time::Duration::from_secs(total))
}

/// Loopback address, since no service here is for clients outside.
pub(super) fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .parse()
        .map_err(|_| format!("`{text}` is not an address such as 127.0.0.1:6443"))?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err(format!("{} is not a loopback address", address.ip()))
    }
}

/// A semantic version, with the `v` that Cluster API requires.
pub(super) fn kubernetes_version(text: &str) -> Result<String, InvalidVersion> {
    text.parse::<Version>().map(|version| format!("v{version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked_where_they_are_given() {
        assert_eq!(duration("1h30m").unwrap().as_secs(), 5400);
        assert_eq!(duration("45").unwrap().as_secs(), 45);
        for wrong in [
            "",
            "0s",
            "10x",
            "m",
            "5m3",
            "99999999999999999999s",
            "9999999999999999h",
        ] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!(kubernetes_version("1.34.2").unwrap(), "v1.34.2");
        assert_eq!(kubernetes_version("v1.35.0-rc.1").unwrap(), "v1.35.0-rc.1");
        for wrong in ["1.34", "v1.x.2", "latest", "", "v1.34.2-", "v1.034.2"] {
            assert!(kubernetes_version(wrong).is_err(), "{wrong}");
        }
        assert!(loopback("127.3.2.1:80").is_ok());
        assert!(loopback("0.0.0.0:80").is_err());
        assert!(loopback("127.0.0.1").is_err());
    }
}

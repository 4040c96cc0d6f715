//! Memory of measured processes.

use anyhow::Context;

/// Resident memory of a process, and its part without a file behind it, in megabytes.
///
/// # Errors
///
/// The process has ended.
pub(crate) fn resident(process: u32) -> anyhow::Result<(f64, f64)> {
    let path = format!("/proc/{process}/status");
    let status = std::fs::read_to_string(&path)?;
    let megabytes = |field: &str| -> anyhow::Result<f64> {
        let rest = status.lines().find_map(|line| line.strip_prefix(field));
        let number = rest.and_then(|rest| rest.split_whitespace().next());
        let kibibytes: f64 = number
            .with_context(|| format!("{field} in {path}"))?
            .parse()?;
        Ok(kibibytes * 1024.0 / 1e6)
    };
    Ok((megabytes("VmRSS:")?, megabytes("RssAnon:")?))
}

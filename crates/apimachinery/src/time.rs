//! Times in the forms of Kubernetes and kubectl.

use jiff::Timestamp;

/// Formats a time like Kubernetes: RFC 3339 in whole seconds.
pub fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns the time since `since`, in the form of kubectl (`duration.HumanDuration`).
pub fn age(since: &str, now: Timestamp) -> String {
    let Ok(since) = since.parse::<Timestamp>() else {
        return "<invalid>".to_owned();
    };
    human(now.duration_since(since).as_secs())
}

/// Formats a duration in seconds like kubectl: `45s`, `2m5s`, `3h20m`, `5d`.
pub fn human(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    let and = |rest: i64, unit: &str| {
        if rest == 0 {
            String::new()
        } else {
            format!("{rest}{unit}")
        }
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => format!("{minutes}m{}", and(seconds % 60, "s")),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => format!("{hours}h{}", and(minutes % 60, "m")),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => format!("{days}d{}", and(hours % 24, "h")),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => format!("{}y{}", days / 365, and(days % 365, "d")),
        _ => format!("{}y", days / 365),
    }
}
